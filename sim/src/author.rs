//! Writes histories: a person at the keyboard who does what makes sense at the moment, and now and then
//! what does not, quickly or slowly.

use std::str::FromStr;

use crate::cast::Cast;
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
    /// Up to three panes at once, all in one directory.
    pub panes: bool,
    /// Sessions in the background: parked ones and dispatched ones.
    pub parking: bool,
    /// `claude -p` in the shell, and subcommands.
    pub headless: bool,
    /// A tool that runs `claude -p`.
    pub nested: bool,
    /// Versions without a status, and subagents that the turn waits for.
    pub versions: bool,
    /// Hooks that vanish in the middle of a session.
    pub vanish: bool,
}

/// The words for the parts, as they are typed.
const WORDS: [&str; 15] = [
    "agents",
    "menus",
    "queue",
    "shells",
    "commands",
    "processes",
    "esc",
    "dialogs",
    "oddities",
    "panes",
    "parking",
    "headless",
    "nested",
    "versions",
    "vanish",
];

impl Scope {
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
        panes: false,
        parking: false,
        headless: false,
        nested: false,
        versions: false,
        vanish: false,
    };

    /// Everything the model can do.
    #[must_use]
    pub fn all() -> Self {
        let mut scope = Self::PLAIN;
        scope.parts().into_iter().for_each(|part| *part = true);
        scope
    }

    /// Each part by its place in the list of words.
    fn parts(&mut self) -> [&mut bool; 15] {
        [
            &mut self.agents,
            &mut self.menus,
            &mut self.queue,
            &mut self.shells,
            &mut self.commands,
            &mut self.processes,
            &mut self.esc,
            &mut self.dialogs,
            &mut self.oddities,
            &mut self.panes,
            &mut self.parking,
            &mut self.headless,
            &mut self.nested,
            &mut self.versions,
            &mut self.vanish,
        ]
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut scope = Self::PLAIN;
        for word in text.split(',') {
            // `-word` takes a part away.
            let (name, on) = word
                .strip_prefix('-')
                .map_or((word, true), |name| (name, false));
            match name {
                "plain" => {}
                "all" => scope = Self::all(),
                name => {
                    let place = WORDS.iter().position(|known| *known == name);
                    let place = place.ok_or_else(|| {
                        format!(
                            "{name:?} is no part of a history; use plain, all, {}",
                            WORDS.join(", ")
                        )
                    })?;
                    *scope.parts()[place] = on;
                }
            }
        }
        Ok(scope)
    }
}

/// How many panes a history has.
pub fn panes(chance: &mut Chance, scope: Scope) -> usize {
    if scope.panes {
        chance.weighted(&[(2, 1), (2, 2), (1, 3)])
    } else {
        1
    }
}

/// The step after what has happened so far.
pub fn next(cast: &Cast, chance: &mut Chance, scope: Scope) -> Step {
    let last = u64::try_from(cast.panes()).unwrap_or(1) - 1;
    let pane = usize::try_from(chance.between(0, last)).unwrap_or(0);
    let (mut wait, mut act) = choose(cast.pane(pane), chance, scope);
    if last > 0 && chance.percent(60) {
        // Several people's worth of keys: some fall within moments of another pane's.
        wait = wait.min(chance.between(1, 400));
    }
    if scope.parking && cast.job().is_some() && chance.percent(10) {
        act = Act::StopJob;
    }
    Step {
        wait,
        seed: chance.bits(),
        pane,
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
        if scope.headless && chance.percent(15) {
            let ms = chance.between(100, 2000);
            let prints = Act::Print(printed_turn(chance));
            return (
                wait,
                pick(chance, &[(4, prints), (1, Act::Subcommand { ms })]),
            );
        }
        if scope.parking && chance.percent(6) {
            return (wait, Act::Dispatch(turn(chance, scope)));
        }
        let how = chance.weighted(&[
            (8, Start::Plain),
            (on(scope.oddities, 1), Start::Untrusted),
            (on(scope.oddities, 1), Start::Continue),
            (on(scope.oddities, 1), Start::Fork),
            (on(scope.versions, 2), Start::Old { file: false }),
            (on(scope.versions, 1), Start::Old { file: true }),
        ]);
        let same_pid = chance.percent(20);
        return (wait, Act::Start { how, same_pid });
    }
    if claude.is_printing() {
        let choices = [(5, Act::Nothing), (on(scope.processes, 1), Act::Kill)];
        return (wait, pick(chance, &choices));
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
    if let Some(attached) = claude.parked() {
        return (wait, parked(claude, chance, scope, attached));
    }
    if claude.is_old() {
        return (wait, old(claude, chance, scope));
    }
    if scope.vanish && chance.percent(3) {
        return (wait, Act::HooksVanish);
    }
    if scope.parking && claude.can_park() && chance.percent(8) {
        return (wait, Act::Park);
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
        (on(scope.oddities, 1), 10),
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
        10 => (wait, Act::Return),
        _ => (wait, Act::Nothing),
    }
}

/// A session that goes on in the background, in the list of all or on the screen.
fn parked(claude: &Claude, chance: &mut Chance, scope: Scope, attached: bool) -> Act {
    if chance.percent(6) {
        let choices = [(3, Act::Exit), (1, Act::Terminate), (1, Act::Kill)];
        return pick(chance, &choices);
    }
    if !attached {
        return pick(chance, &[(4, Act::Attach), (1, Act::Nothing)]);
    }
    if claude.dialog_of().is_some() {
        let choices = [
            (4, Act::Yes),
            (on(scope.esc, 2), Act::Esc),
            (1, Act::Nothing),
        ];
        return pick(chance, &choices);
    }
    if claude.is_working() || claude.has_agents() {
        return Act::Nothing;
    }
    let prompt = Act::Prompt(turn(chance, scope));
    let look = on(claude.rests_in_review(), 2);
    pick(chance, &[(5, prompt), (look, Act::Look), (1, Act::Nothing)])
}

/// A version without a status: what was recorded of it, and no more.
fn old(claude: &Claude, chance: &mut Chance, scope: Scope) -> Act {
    if scope.processes && chance.percent(3) {
        return pick(chance, &[(1, Act::Kill), (1, Act::Terminate)]);
    }
    if claude.dialog_of().is_some() {
        let choices = [
            (8, Act::Yes),
            (on(scope.esc, 3), Act::Esc),
            (1, Act::NoWithWords),
            (1, Act::StrayKey),
            (2, Act::Nothing),
        ];
        return pick(chance, &choices);
    }
    if claude.is_working() {
        let choices = [
            (10, Act::Nothing),
            (on(scope.esc, 4), Act::Esc),
            (on(scope.processes, 1), Act::Suspend),
        ];
        return pick(chance, &choices);
    }
    let mut turn = printed_turn(chance);
    turn.end = End::Answer { vetoes: 0, slow: 0 };
    let choices = [
        (14, Act::Prompt(turn)),
        (on(scope.commands, 2), Act::Clear),
        (on(claude.rests_in_review(), 3), Act::Look),
        (on(scope.processes, 1), Act::Exit),
        (1, Act::Nothing),
    ];
    pick(chance, &choices)
}

/// Text and tools of the simplest kind.
fn printed_turn(chance: &mut Chance) -> Turn {
    let mut turn = turn(chance, Scope::PLAIN);
    turn.blocked = false;
    if let End::Answer { vetoes, slow } = &mut turn.end {
        (*vetoes, *slow) = (0, 0);
    }
    turn
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
        (on(scope.versions, 1), 6),
        (on(scope.nested, 1), 7),
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
        5 => Piece::Wakeup {
            ms: chance.between(1000, 80_000),
        },
        6 => {
            let count = chance.between(0, 2);
            let tools = (0..count)
                .map(|_| Tool {
                    ms: tool_ms(chance),
                    dialog: chance.percent(60).then_some(Dialog::Permission),
                    fails: false,
                })
                .collect();
            Piece::Inner { tools }
        }
        _ => Piece::Nested(printed_turn(chance)),
    }
}

fn tool_ms(chance: &mut Chance) -> u64 {
    match chance.weighted(&[(6, 0), (3, 1), (1, 2)]) {
        0 => chance.between(10, 300),
        1 => chance.between(300, 6000),
        _ => chance.between(6000, 120_000),
    }
}
