//! Writes histories: a person at the keyboard who does what makes sense at the moment, and now and then
//! what does not, quickly or slowly.

use std::str::FromStr;

use crate::chance::Chance;
use crate::claude::Claude;
use crate::script::{Act, Dialog, End, Piece, Start, Step, Tool, Turn};

/// What histories may contain. Widened step by step; all of it is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Subagents and teammates.
    pub agents: bool,
    /// Menus of the person's own.
    pub menus: bool,
    /// Prompts while busy.
    pub queue: bool,
    /// Background shells and wake-ups.
    pub shells: bool,
    /// `/compact`, `/clear`, `/resume`.
    pub commands: bool,
    /// Ctrl-Z, exits, kill -9, new processes.
    pub processes: bool,
    /// Esc at any moment.
    pub esc: bool,
    /// Questions, plans, forms, dialogs of auto mode and requests that ask nobody, besides permissions.
    pub dialogs: bool,
    /// Commands that do not exist, dialogs of the start, `--continue`.
    pub oddities: bool,
}

impl Scope {
    /// Everything the model can do.
    pub const ALL: Self = Self {
        agents: true,
        menus: true,
        queue: true,
        shells: true,
        commands: true,
        processes: true,
        esc: true,
        dialogs: true,
        oddities: true,
    };

    /// Turns with tools and permissions.
    pub const PLAIN: Self = Self {
        agents: false,
        menus: false,
        queue: false,
        shells: false,
        commands: false,
        processes: false,
        esc: false,
        dialogs: false,
        oddities: false,
    };
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut scope = Self::PLAIN;
        for word in text.split(',') {
            match word {
                "plain" => {}
                "all" => scope = Self::ALL,
                "agents" => scope.agents = true,
                "menus" => scope.menus = true,
                "queue" => scope.queue = true,
                "shells" => scope.shells = true,
                "commands" => scope.commands = true,
                "processes" => scope.processes = true,
                "esc" => scope.esc = true,
                "dialogs" => scope.dialogs = true,
                "oddities" => scope.oddities = true,
                other => {
                    return Err(format!(
                        "{other:?} is no part of a history; use plain, all, agents, menus, queue, \
                         shells, commands, processes, esc, dialogs, oddities"
                    ));
                }
            }
        }
        Ok(scope)
    }
}

/// The step after what has happened so far.
pub fn next(claude: &Claude, chance: &mut Chance, scope: Scope) -> Step {
    let (wait, act) = choose(claude, chance, scope);
    Step {
        wait,
        seed: chance.bits(),
        act,
    }
}

fn pause(chance: &mut Chance) -> u64 {
    match chance.weighted(&[(3, 0), (5, 1), (4, 2), (1, 3)]) {
        0 => chance.between(1, 250),
        1 => chance.between(250, 2500),
        2 => chance.between(2500, 9000),
        _ => chance.between(9000, 70_000),
    }
}

fn choose(claude: &Claude, chance: &mut Chance, scope: Scope) -> (u64, Act) {
    let wait = pause(chance);
    if claude.is_dead() {
        let how = if scope.oddities {
            chance.weighted(&[
                (8, Start::Plain),
                (1, Start::Untrusted),
                (1, Start::Continue),
                (1, Start::Fork),
            ])
        } else {
            Start::Plain
        };
        let same_pid = chance.percent(20);
        return (wait, Act::Start { how, same_pid });
    }
    if claude.is_starting() {
        if claude.is_untrusted() {
            let choices = [(5, Act::Yes), (1, Act::Esc), (1, Act::Kill)];
            return (wait + 600, pick(chance, &choices));
        }
        return (wait + 500, Act::Nothing);
    }
    if claude.is_suspended() {
        let choices = [(6, Act::Resume), (1, Act::Kill), (2, Act::Nothing)];
        return (wait, pick(chance, &choices));
    }
    if scope.processes && chance.percent(2) {
        let choices = [(1, Act::Kill), (1, Act::Terminate)];
        return (wait, pick(chance, &choices));
    }
    if claude.has_menu() {
        let choices = [
            (6, Act::Esc),
            (if scope.commands { 2 } else { 0 }, Act::PickConversation),
            (2, Act::Nothing),
        ];
        return (wait, pick(chance, &choices));
    }
    if let Some(main) = claude.dialog_of() {
        let choices = [
            (8, Act::Yes),
            (if main && scope.esc { 3 } else { 0 }, Act::Esc),
            (if main { 1 } else { 0 }, Act::NoWithWords),
            (2, Act::StrayKey),
            (2, Act::Nothing),
        ];
        return (wait, pick(chance, &choices));
    }
    if claude.is_working() || claude.has_agents() {
        let choices = [
            (10, Act::Nothing),
            (on(scope.esc, 5), Act::Esc),
            (on(scope.menus, 3), Act::OpenMenu),
            (on(scope.processes, 1), Act::Suspend),
        ];
        let prompts = scope.queue && chance.percent(20);
        let act = if prompts {
            Act::Prompt(turn(chance, scope))
        } else {
            pick(chance, &choices)
        };
        return (wait, act);
    }
    match chance.weighted(&[
        (14, 0),
        (2, 1),
        (on(scope.commands, 3), 2),
        (on(scope.commands, 2), 3),
        (on(scope.menus, 3), 4),
        (on(scope.oddities, 1), 5),
        (on(claude.rests_in_review(), 4), 6),
        (on(scope.processes, 1), 7),
        (on(scope.processes, 1), 8),
        (1, 9),
    ]) {
        0 => (wait, Act::Prompt(turn(chance, scope))),
        1 => {
            let ms = chance.between(100, 6000);
            (wait, Act::Bang { ms })
        }
        2 => {
            let ms = chance.between(300, 20_000);
            (wait, Act::Compact { ms })
        }
        3 => (wait, Act::Clear),
        4 => (wait, Act::OpenMenu),
        5 => (wait, Act::UnknownCommand),
        // A look counts after two seconds (P09), so the badge has long been there.
        6 => (wait + 2500, Act::Look),
        7 => (wait, Act::Suspend),
        8 => (wait, Act::Exit),
        _ => (wait, Act::Nothing),
    }
}

/// A weight that counts only where the scope allows.
fn on(allowed: bool, weight: u64) -> u64 {
    if allowed { weight } else { 0 }
}

fn pick(chance: &mut Chance, choices: &[(u64, Act)]) -> Act {
    let places: Vec<(u64, usize)> = choices
        .iter()
        .enumerate()
        .map(|(place, (weight, _))| (*weight, place))
        .collect();
    choices[chance.weighted(&places)].1.clone()
}

fn turn(chance: &mut Chance, scope: Scope) -> Turn {
    let mut pieces = vec![think(chance)];
    for _ in 0..chance.weighted(&[(3, 0), (4, 1), (2, 2), (1, 4)]) {
        pieces.push(piece(chance, scope));
        if chance.percent(40) {
            pieces.push(think(chance));
        }
    }
    let end = if chance.percent(12) {
        End::Error {
            kind: u8::try_from(chance.between(0, 6)).unwrap_or(0),
            late: chance.percent(30),
        }
    } else {
        End::Answer {
            vetoes: u8::from(chance.percent(6)),
            slow: chance.weighted(&[(20, 0), (1, 3000), (1, 6500)]),
        }
    };
    Turn {
        pieces,
        end,
        blocked: chance.percent(4),
    }
}

fn think(chance: &mut Chance) -> Piece {
    let silent = match chance.weighted(&[(6, 0), (3, 1), (1, 2)]) {
        0 => chance.between(20, 400),
        1 => chance.between(400, 6000),
        _ => chance.between(6000, 90_000),
    };
    let text = match chance.weighted(&[(6, 0), (3, 1)]) {
        0 => chance.between(5, 300),
        _ => chance.between(300, 9000),
    };
    Piece::Think { silent, text }
}

fn piece(chance: &mut Chance, scope: Scope) -> Piece {
    match chance.weighted(&[
        (12, 0),
        (on(scope.agents, 3), 1),
        (on(scope.agents, 1), 2),
        (on(scope.shells, 2), 3),
        (on(scope.commands, 1), 4),
        (on(scope.shells, 1), 5),
    ]) {
        0 => {
            let more = on(scope.dialogs, 1);
            let dialog = match chance.weighted(&[
                (5, 0),
                (5, 1),
                (more, 2),
                (more, 3),
                (more, 4),
                (more, 5),
                (more, 6),
            ]) {
                0 => None,
                1 => Some(Dialog::Permission),
                2 => Some(Dialog::Question),
                3 => Some(Dialog::Plan),
                4 => Some(Dialog::Form),
                5 => Some(Dialog::Auto),
                _ => Some(Dialog::Phantom),
            };
            Piece::Tool(Tool {
                ms: tool_ms(chance),
                dialog,
                fails: chance.percent(15),
            })
        }
        kind @ (1 | 2) => {
            let think = chance.between(50, 9000);
            let count = chance.weighted(&[(3, 0), (3, 1), (1, 2)]);
            let tools = (0..count)
                .map(|_| Tool {
                    ms: tool_ms(chance),
                    dialog: chance.percent(60).then_some(Dialog::Permission),
                    fails: false,
                })
                .collect();
            if kind == 1 {
                Piece::Agent { think, tools }
            } else {
                Piece::Teammate { think, tools }
            }
        }
        3 => Piece::Shell {
            ms: chance.between(200, 60_000),
        },
        4 => Piece::Compaction {
            ms: chance.between(300, 9000),
        },
        _ => Piece::Wakeup {
            ms: chance.between(1000, 80_000),
        },
    }
}

fn tool_ms(chance: &mut Chance) -> u64 {
    match chance.weighted(&[(6, 0), (3, 1), (1, 2)]) {
        0 => chance.between(10, 300),
        1 => chance.between(300, 6000),
        _ => chance.between(6000, 120_000),
    }
}
