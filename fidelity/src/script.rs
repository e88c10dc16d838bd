//! The scripts: what one person does in one session, drawn by a seed. Pure values; nothing here waits or types.
//!
//! Must never draw from anything but its seed, so that a number names a script.

use std::fmt;

use purplemux_sim::chance::Chance;

/// How Claude is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Asks for everything that writes.
    Manual,
    /// The plan mode.
    Plan,
    /// The auto mode, whose check can't be reached here.
    Auto,
    /// `--continue`.
    Continue,
}

impl Mode {
    /// What is typed.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Manual => "claude --permission-mode manual",
            Self::Plan => "claude --permission-mode plan",
            Self::Auto => "claude --permission-mode auto",
            Self::Continue => "claude --permission-mode manual --continue",
        }
    }
}

/// How a dialog is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Yes.
    Approve,
    /// Esc.
    Escape,
    /// The option "No".
    No,
}

/// A turn that goes on long enough to be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// Text that streams.
    Stream,
    /// No token yet.
    Silent,
    /// A tool that runs.
    Tool,
    /// An API that fails.
    Retry,
    /// A command of the person's own.
    Bang,
}

/// A menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Menu {
    /// `/model`
    Model,
    /// `/help`
    Help,
    /// `/config`
    Config,
}

impl Menu {
    /// What is typed.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Model => "/model",
            Self::Help => "/help",
            Self::Config => "/config",
        }
    }
}

/// Something that the person does. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A prompt that is answered in words, over so long.
    Say { spread: u64 },
    /// Tools that need no permission, then words.
    Tools,
    /// Tools that ask, one after the other, each looked at for so long.
    Permission {
        tools: u64,
        dwell: u64,
        reply: Reply,
    },
    /// The same with keys that change nothing before the answer.
    Stray { dwell: u64 },
    /// Two tools in one message, both of which ask.
    Pair { dwell: u64 },
    /// Questions.
    Question { two: bool, dwell: u64, reply: Reply },
    /// A plan; only in the plan mode.
    Plan { dwell: u64, reply: Reply },
    /// The dialog of the auto mode; only there.
    Auto { dwell: u64 },
    /// Esc after so long.
    Interrupt { long: Long, after: u64 },
    /// A second prompt while the first is answered; Esc ends the first one, or does not.
    Queue { interrupt: bool },
    /// A menu while Claude waits.
    MenuIdle { menu: Menu, dwell: u64 },
    /// A menu while Claude works, closed before the end or after it.
    MenuBusy { menu: Menu, over: bool },
    /// `/clear`
    Clear,
    /// `/compact`, with Esc after so long.
    Compact { interrupt: Option<u64> },
    /// `!command`
    Bang,
    /// A shell that goes on in the background, and ends after so long.
    Shell { lasts: u64 },
    /// A subagent, which asks or does not.
    Agent { asks: bool, lasts: u64 },
    /// An answer that is an error.
    Fail { how: &'static str },
    /// Errors, then an answer.
    Retry,
    /// Ctrl-Z for so long, in the midst of a turn or at rest.
    Suspend { busy: bool, away: u64 },
    /// kill -9 so long after a prompt, and another Claude.
    Kill { after: u64 },
    /// `/exit`, and another Claude.
    Exit { next: Mode },
}

impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

impl Act {
    /// About how long it takes, ms; a guess that keeps the scripts alike in length.
    fn lasts(self) -> u64 {
        match self {
            Self::Say { spread } => 900 + spread,
            Self::Tools => 1800,
            Self::Permission { tools, dwell, .. } => 900 + tools * (900 + dwell),
            Self::Stray { dwell } => 1800 + dwell,
            Self::Pair { dwell } => 1800 + 2 * dwell,
            Self::Question { two, dwell, .. } => 1500 + dwell + if two { 1200 } else { 0 },
            Self::Plan { dwell, .. } | Self::Auto { dwell } => 1800 + dwell,
            Self::Interrupt { after, .. } => 1000 + after,
            Self::Queue { .. } => 4500,
            Self::MenuIdle { dwell, .. } => 900 + dwell,
            Self::MenuBusy { .. } => 4500,
            Self::Clear => 1200,
            Self::Compact { interrupt } => 900 + interrupt.unwrap_or(2000),
            Self::Bang => 2500,
            Self::Shell { lasts } => 2500 + lasts,
            Self::Agent { lasts, .. } => 4000 + lasts,
            Self::Fail { .. } => 1300,
            Self::Retry => 3000,
            Self::Suspend { away, .. } => 2000 + away,
            Self::Kill { after } => 4000 + after,
            Self::Exit { .. } => 4000,
        }
    }
}

/// What one session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How Claude is started at first.
    pub mode: Mode,
    /// The tab starts Claude by itself; then the mode is the manual one.
    pub tab: bool,
    /// What the person does, each with a rest after it, ms.
    pub acts: Vec<(Act, u64)>,
}

/// What a session may take from its first prompt on, ms.
const BUDGET: u64 = 17_000;

/// How many acts that do not fit are passed over before a script is full.
const SKIPS: usize = 6;

/// The script of a session of this seed.
#[must_use]
pub fn draw(seed: u64, session: usize) -> Script {
    let mut chance = Chance::stream(seed, 1 + u64::try_from(session).unwrap_or(0));
    let tab = chance.percent(50);
    let mode = if tab {
        Mode::Manual
    } else {
        chance.weighted(&[(50, Mode::Manual), (25, Mode::Plan), (25, Mode::Auto)])
    };
    let mut now = mode;
    let mut left = BUDGET;
    let mut skipped = 0;
    let mut acts = Vec::new();
    loop {
        let said = acts
            .iter()
            .any(|(act, _)| matches!(act, Act::Say { .. } | Act::Tools));
        let mut act = act(&mut chance, now);
        let on = Act::Exit {
            next: Mode::Continue,
        };
        if act == on && !said {
            // There is nothing to continue.
            act = Act::Exit { next: Mode::Manual };
        }
        // Half of the rests outlast the dwell of a notification, half do not.
        let rest = if chance.percent(50) {
            chance.between(100, 900)
        } else {
            chance.between(1500, 4500)
        };
        let lasts = act.lasts() + rest;
        if lasts > left {
            // Something shorter may fit, so that long acts are not rarer than they are drawn.
            if skipped == SKIPS {
                break;
            }
            skipped += 1;
            continue;
        }
        left -= lasts;
        now = match act {
            Act::Exit { next } => next,
            // The plan is left by approving it, and the next Claude is a plain one.
            Act::Plan {
                reply: Reply::Approve,
                ..
            }
            | Act::Kill { .. } => Mode::Manual,
            Act::Say { .. }
            | Act::Tools
            | Act::Permission { .. }
            | Act::Stray { .. }
            | Act::Pair { .. }
            | Act::Question { .. }
            | Act::Plan { .. }
            | Act::Auto { .. }
            | Act::Interrupt { .. }
            | Act::Queue { .. }
            | Act::MenuIdle { .. }
            | Act::MenuBusy { .. }
            | Act::Clear
            | Act::Compact { .. }
            | Act::Bang
            | Act::Shell { .. }
            | Act::Agent { .. }
            | Act::Fail { .. }
            | Act::Retry
            | Act::Suspend { .. } => now,
        };
        acts.push((act, rest));
    }
    Script { mode, tab, acts }
}

/// The next act of a Claude in this mode.
fn act(chance: &mut Chance, mode: Mode) -> Act {
    #[derive(Clone, Copy)]
    enum Kind {
        Say,
        Tools,
        Permission,
        Stray,
        Pair,
        Question,
        Special,
        Interrupt,
        Queue,
        MenuIdle,
        MenuBusy,
        Clear,
        Compact,
        Bang,
        Shell,
        Agent,
        Fail,
        Retry,
        Suspend,
        Kill,
        Exit,
    }
    // In the plan mode and in the auto mode, tools that ask come to other dialogs or to none.
    let asks = match mode {
        Mode::Manual | Mode::Continue => 1,
        Mode::Plan | Mode::Auto => 0,
    };
    let kind = chance.weighted(&[
        (10, Kind::Say),
        (6, Kind::Tools),
        (18 * asks, Kind::Permission),
        (3 * asks, Kind::Stray),
        (3 * asks, Kind::Pair),
        (8, Kind::Question),
        (if asks == 0 { 30 } else { 0 }, Kind::Special),
        (16, Kind::Interrupt),
        (7, Kind::Queue),
        (5, Kind::MenuIdle),
        (6, Kind::MenuBusy),
        (4, Kind::Clear),
        (5, Kind::Compact),
        (4, Kind::Bang),
        (7 * asks, Kind::Shell),
        (8 * asks, Kind::Agent),
        (6, Kind::Fail),
        (3, Kind::Retry),
        (5, Kind::Suspend),
        (4, Kind::Kill),
        (5, Kind::Exit),
    ]);
    let dwell = if chance.percent(50) {
        chance.between(200, 900)
    } else {
        chance.between(1200, 4200)
    };
    let reply = chance.weighted(&[(5, Reply::Approve), (2, Reply::Escape), (1, Reply::No)]);
    let menu = chance.weighted(&[(1, Menu::Model), (1, Menu::Help), (1, Menu::Config)]);
    match kind {
        Kind::Say => Act::Say {
            spread: chance.between(0, 2500),
        },
        Kind::Tools => Act::Tools,
        Kind::Permission => Act::Permission {
            tools: chance.between(1, 2),
            dwell,
            reply,
        },
        Kind::Stray => Act::Stray { dwell },
        Kind::Pair => Act::Pair { dwell },
        Kind::Question => Act::Question {
            two: chance.percent(30),
            dwell,
            reply,
        },
        Kind::Special if mode == Mode::Plan => Act::Plan { dwell, reply },
        Kind::Special => Act::Auto { dwell },
        Kind::Interrupt => Act::Interrupt {
            long: chance.weighted(&[
                (4, Long::Stream),
                (3, Long::Silent),
                (2, Long::Tool),
                (2, Long::Retry),
                (1, Long::Bang),
            ]),
            after: chance.between(80, 2600),
        },
        Kind::Queue => Act::Queue {
            interrupt: chance.percent(40),
        },
        Kind::MenuIdle => Act::MenuIdle { menu, dwell },
        Kind::MenuBusy => Act::MenuBusy {
            menu,
            over: chance.percent(50),
        },
        Kind::Clear => Act::Clear,
        Kind::Compact => Act::Compact {
            interrupt: chance.percent(30).then(|| chance.between(300, 1500)),
        },
        Kind::Bang => Act::Bang,
        Kind::Shell => Act::Shell {
            lasts: chance.between(2500, 4500),
        },
        Kind::Agent => Act::Agent {
            asks: chance.percent(40),
            lasts: chance.between(800, 2500),
        },
        Kind::Fail => Act::Fail {
            how: chance.weighted(&[
                (2, "error 400"),
                (1, "error 403"),
                (1, "error 404"),
                (1, "refuse"),
                (1, "max"),
            ]),
        },
        Kind::Retry => Act::Retry,
        Kind::Suspend => Act::Suspend {
            busy: chance.percent(70),
            away: chance.between(1500, 3500),
        },
        Kind::Kill => Act::Kill {
            after: chance.between(100, 2500),
        },
        Kind::Exit => Act::Exit {
            next: chance.weighted(&[
                (3, Mode::Manual),
                (1, Mode::Plan),
                (1, Mode::Auto),
                (2, Mode::Continue),
            ]),
        },
    }
}

/// A script of this seed in words, with what happens to the server meanwhile.
#[must_use]
pub fn words(seed: u64, script: &Script) -> Vec<String> {
    let mut words = vec![script.mode.command().to_owned()];
    let acts = script.acts.iter();
    words.extend(acts.map(|(act, rest)| format!("{act}, rest {rest}")));
    for (at, away, kill) in restarts(seed) {
        let how = if kill { "killed" } else { "stopped" };
        words.push(format!("the server is {how} at {at}, away for {away}"));
    }
    words
}

/// When the server is ended, ms after the sessions have begun, and how; `(at, away, kill)`.
#[must_use]
pub fn restarts(seed: u64) -> Vec<(u64, u64, bool)> {
    let mut chance = Chance::stream(seed, 0);
    if !chance.percent(33) {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut at = chance.between(3_000, 9_000);
    for _ in 0..chance.between(1, 2) {
        let kill = chance.percent(50);
        all.push((at, chance.between(50, 2_500), kill));
        at += chance.between(6_000, 9_000);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_script_and_scripts_are_of_a_length() {
        assert_eq!(draw(7, 2), draw(7, 2));
        assert_ne!(draw(7, 2), draw(7, 1));
        for seed in 0..200 {
            let script = draw(seed, 0);
            let lasts: u64 = script
                .acts
                .iter()
                .map(|(act, rest)| act.lasts() + rest)
                .sum();
            assert!(!script.acts.is_empty() && lasts <= BUDGET, "{lasts}");
        }
    }

    #[test]
    fn plans_and_the_auto_mode_s_dialog_come_only_in_their_modes() {
        for seed in 0..500 {
            let script = draw(seed, 1);
            let mut mode = script.mode;
            for (act, _) in script.acts {
                if let Act::Plan { reply, .. } = act {
                    assert_eq!(mode, Mode::Plan);
                    if reply == Reply::Approve {
                        mode = Mode::Manual;
                    }
                }
                if let Act::Auto { .. } = act {
                    assert_eq!(mode, Mode::Auto);
                }
                if let Act::Exit { next } = act {
                    mode = next;
                }
                if let Act::Kill { .. } = act {
                    mode = Mode::Manual;
                }
            }
        }
    }

    #[test]
    fn a_third_of_the_labs_have_restarts() {
        let with = (0..300).filter(|seed| !restarts(*seed).is_empty()).count();
        assert!((70..130).contains(&with), "{with}");
    }
}
