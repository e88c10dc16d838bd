//! What stands between Claude and the arbiter: delays as measured, and, where a knob is on, everything
//! that goes wrong. Decides when a signal arrives, never what is right.

use std::fmt;
use std::str::FromStr;

use crate::chance::Chance;
use crate::truth::Id;

/// Which troubles are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knobs {
    /// Hooks arrive up to five seconds late, stamped at the source.
    pub delay: bool,
    /// Some hooks, or all of them, are lost.
    pub lose: bool,
    /// Hooks arrive twice, with the same id.
    pub repeat: bool,
    /// Hooks overtake one another inside half a second.
    pub swap: bool,
    /// Of several writes of the status file a reader sees only the last.
    pub coalesce: bool,
    /// The status file is now and then found torn first.
    pub tear: bool,
    /// The transcript can't be read for a while.
    pub blind: bool,
    /// The server is restarted.
    pub restart: bool,
    /// The wall clock is set.
    pub jump: bool,
    /// Probes fail: a transcript that can't be read now, a process that can't be measured.
    pub fail: bool,
    /// Before it is restarted the server hangs: hooks go into the spool although it lives.
    pub hang: bool,
    /// Hooks that don't know which process, or in which pane, fired them (sudo, old versions).
    pub nameless: bool,
}

/// Names of the knobs, as they are typed.
const NAMES: [&str; 12] = [
    "delay", "lose", "repeat", "swap", "coalesce", "tear", "blind", "restart", "jump", "fail",
    "hang", "nameless",
];

/// Sets that are tried in turn, each on its own and all together.
pub const IN_TURN: [&str; 9] = [
    "none",
    "hooks",
    "coalesce,tear",
    "blind,fail",
    "restart,hang",
    "jump",
    "hooks,restart,hang",
    "hooks,coalesce,tear,fail",
    "hooks,coalesce,tear,blind,restart,jump,fail,hang",
];

impl Knobs {
    /// Each knob by its place in the list of names.
    fn all_mut(&mut self) -> [&mut bool; 12] {
        [
            &mut self.delay,
            &mut self.lose,
            &mut self.repeat,
            &mut self.swap,
            &mut self.coalesce,
            &mut self.tear,
            &mut self.blind,
            &mut self.restart,
            &mut self.jump,
            &mut self.fail,
            &mut self.hang,
            &mut self.nameless,
        ]
    }

    /// Of the allowed knobs each is on in half of all histories.
    #[must_use]
    pub fn drawn(mut self, chance: &mut Chance) -> Self {
        for knob in self.all_mut() {
            *knob = *knob && chance.percent(50);
        }
        self
    }

    /// The same with one knob fewer, for each knob that is on.
    #[must_use]
    pub fn fewer(self) -> Vec<Self> {
        let mut all = Vec::new();
        for place in 0..NAMES.len() {
            let mut less = self;
            let knob = &mut *less.all_mut()[place];
            if *knob {
                *knob = false;
                all.push(less);
            }
        }
        all
    }

    /// Hooks may come late or never, so what only a hook says may be missing.
    #[must_use]
    pub fn disturbs_hooks(self) -> bool {
        self.delay || self.lose || self.swap || self.restart
    }
}

impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        let on: Vec<&str> = copy
            .all_mut()
            .into_iter()
            .zip(NAMES)
            .filter_map(|(knob, name)| knob.then_some(name))
            .collect();
        if on.is_empty() {
            f.write_str("none")
        } else {
            f.write_str(&on.join(","))
        }
    }
}

impl FromStr for Knobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut knobs = Self::default();
        for word in text.split(',') {
            match word {
                "none" => {}
                "all" => knobs.all_mut().into_iter().for_each(|knob| *knob = true),
                "hooks" => {
                    for knob in knobs.all_mut().into_iter().take(4) {
                        *knob = true;
                    }
                }
                name => {
                    let place = NAMES.iter().position(|known| *known == name);
                    let place = place.ok_or_else(|| {
                        format!(
                            "{name:?} is no knob; use none, hooks, all or {}",
                            NAMES.join(", ")
                        )
                    })?;
                    *knobs.all_mut()[place] = true;
                }
            }
        }
        Ok(knobs)
    }
}

/// A stretch of time, both ends in milliseconds after boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: u64,
    pub to: u64,
}

impl Stretch {
    /// `at` lies inside.
    #[must_use]
    pub fn holds(&self, at: u64) -> bool {
        (self.from..self.to).contains(&at)
    }
}

/// The troubles of one history, drawn from its seed.
#[derive(Clone, Debug)]
pub struct Adversary {
    /// What is on.
    pub knobs: Knobs,
    seed: u64,
    delayed: u64,
    lost: u64,
    window: u64,
    /// While the server is down.
    pub down: Vec<Stretch>,
    /// While it hangs.
    pub hung: Vec<Stretch>,
    /// While the transcript can't be read.
    pub blind: Vec<Stretch>,
    /// From this moment the wall clock is off by so much.
    pub jumps: Vec<(u64, i64)>,
}

impl Adversary {
    /// Draws the troubles for a history that lasts from `begin` to `end`.
    #[must_use]
    pub fn new(knobs: Knobs, seed: u64, begin: u64, end: u64) -> Self {
        let mut chance = Chance::new(seed ^ 0x00AD_5EED);
        let delayed = chance.weighted(&[(1, 10), (1, 50), (1, 100)]);
        let lost = chance.weighted(&[(2, 5), (2, 30), (1, 100)]);
        let window = chance.between(20, 250);
        let mut stretches = |on: bool, count: u64, longest: u64, apart: u64| {
            let mut all = Vec::new();
            let mut from = begin;
            for _ in 0..count {
                from = chance.between(from, end.max(from + 1));
                let to = from + chance.between(200, longest);
                if on && to + 3000 < end {
                    all.push(Stretch { from, to });
                }
                // Also again just after, and while it still recovers.
                from = to + chance.between(apart / 100, apart);
            }
            all
        };
        let down = stretches(knobs.restart, 3, 15_000, 4000);
        let blind = stretches(knobs.blind, 3, 5000, 4000);
        let hung = down
            .iter()
            .filter(|_| knobs.hang)
            .map(|stretch| Stretch {
                from: stretch.from - chance.between(0, 3000).min(stretch.from),
                to: stretch.from,
            })
            .collect();
        let mut jumps = Vec::new();
        for _ in 0..2 {
            let at = chance.between(begin, end);
            let by = i64::try_from(chance.between(0, 172_800_000)).unwrap_or(0) - 86_400_000;
            // What is found after a start of the server, or long after it was written, can be ordered by wall time
            // only; with the clock set as well nothing is known.
            if knobs.jump && down.is_empty() && blind.is_empty() && !knobs.fail {
                jumps.push((at, by));
            }
        }
        jumps.sort_unstable();
        Self {
            knobs,
            seed,
            delayed,
            lost,
            window,
            down,
            hung,
            blind,
            jumps,
        }
    }

    fn chance(&self, id: Id) -> Chance {
        let id = u64::try_from(id).unwrap_or(u64::MAX);
        Chance::new(self.seed ^ id.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// When a hook that was stamped at `at` arrives: never, once or twice.
    #[must_use]
    pub fn hook(&self, id: Id, at: u64) -> Vec<u64> {
        let mut chance = self.chance(id);
        let mut arrives = at + chance.between(2, 8);
        if self.knobs.swap && chance.percent(40) {
            arrives += chance.between(0, 500);
        }
        if self.knobs.delay && chance.percent(self.delayed) {
            arrives += chance.between(0, 5000);
        }
        let again = arrives + chance.between(0, 3000);
        let repeated = self.knobs.repeat && chance.percent(30);
        if self.knobs.lose && chance.percent(self.lost) {
            Vec::new()
        } else if repeated {
            vec![arrives, again]
        } else {
            vec![arrives]
        }
    }

    /// How long after a write the status file is read; what is written until then is read with it.
    #[must_use]
    pub fn file(&self, id: Id, met: bool) -> u64 {
        let mut chance = self.chance(id);
        if self.tears(id) && met && chance.percent(20) {
            // Not readable for a while (H11); what was never read is rather a version without a status.
            return chance.between(20, 900);
        }
        if self.knobs.coalesce {
            chance.between(5, self.window)
        } else {
            chance.between(1, 12)
        }
    }

    /// The first reading of this write is torn.
    #[must_use]
    pub fn tears(&self, id: Id) -> bool {
        self.knobs.tear && self.chance(id ^ 0x7EA4).percent(20)
    }

    /// How long a watch, a probe or a look at /proc takes.
    #[must_use]
    pub fn soon(&self, id: Id) -> u64 {
        self.chance(id ^ 0x5007).between(1, 15)
    }

    /// This question is not answered.
    #[must_use]
    pub fn fails(&self, question: u64) -> bool {
        let question = usize::try_from(question).unwrap_or(0);
        self.knobs.fail && self.chance(question ^ 0xFA11).percent(40)
    }

    /// Whether this hook lacks its process, and its pane.
    #[must_use]
    pub fn nameless(&self, id: Id) -> (bool, bool) {
        let mut chance = self.chance(id ^ 0x0A11);
        let process = self.knobs.nameless && chance.percent(60);
        (process, process && chance.percent(50))
    }

    /// How far the wall clock is off at this moment.
    #[must_use]
    pub fn wall_off(&self, at: u64) -> i64 {
        let last = self.jumps.iter().rev().find(|(from, _)| *from <= at);
        last.map_or(0, |(_, by)| *by)
    }
}
