//! What the judge lets pass because nobody who sees the same evidence could know better, and that the fault beside
//! it is still found: each test plays a history, then plants the fault in what was shown.

use std::sync::Arc;

use purplemux_core::view::AskKind;
use purplemux_core::witness::HookKind;
use purplemux_sim::adversary::{Adversary, Knobs, Stretch};
use purplemux_sim::claude::BEGIN;
use purplemux_sim::judge::judge;
use purplemux_sim::script::*;
use purplemux_sim::trial::{self, Case};
use purplemux_sim::truth::{Id, Played, Row, Want, What};
use purplemux_sim::world::{Run, Seen, Shown};

/// A history that was played and judged right.
struct Right {
    played: Played,
    adversary: Adversary,
    run: Run,
}

impl Right {
    fn new(history: History, seed: u64, knobs: &str) -> Self {
        let knobs = knobs.parse().expect("knobs");
        let case = Case {
            history,
            seed,
            knobs,
        };
        let (played, adversary, run) = trial::run(&case, false);
        assert_eq!(judge(&played, &run, &adversary), Vec::<String>::new());
        Self {
            played,
            adversary,
            run,
        }
    }

    fn row(&self, row: Row) -> usize {
        let mut truths = self.played.truths.iter();
        let place = truths.position(|truth| truth.row == row);
        place.expect("the row is there")
    }

    /// What this row showed at that moment.
    fn seen(&self, row: Row, at: u64) -> Seen {
        let seen = self.run.seen[self.row(row)].iter();
        let last = seen.rev().find(|seen| seen.at <= at);
        last.expect("every row begins").clone()
    }

    /// Faults, had the row shown this from `from` to `to` instead.
    fn had_shown(&mut self, row: Row, from: u64, to: u64, what: &Seen) -> Vec<String> {
        let place = self.row(row);
        let mut seen = self.run.seen[place].clone();
        let after = self.seen(row, to);
        seen.retain(|seen| !(from..=to).contains(&seen.at));
        seen.push(Seen {
            at: from,
            ..what.clone()
        });
        seen.push(Seen { at: to, ..after });
        seen.sort_by_key(|seen| seen.at);
        let kept = std::mem::replace(&mut self.run.seen[place], seen);
        let faults = judge(&self.played, &self.run, &self.adversary);
        self.run.seen[place] = kept;
        faults
    }

    /// Faults, had this signal arrived then.
    fn had_arrived(&mut self, id: Id, at: u64) -> Vec<String> {
        let kept = self.run.arrived[id].replace(at);
        let faults = judge(&self.played, &self.run, &self.adversary);
        self.run.arrived[id] = kept;
        faults
    }

    /// The last signal of which this holds.
    fn signal(&self, holds: impl Fn(&What) -> bool) -> Id {
        let signals = self.played.signals.iter();
        let mut places = signals.enumerate().rev();
        let found = places.find(|(_, s)| s.as_ref().is_some_and(|s| holds(&s.what)));
        found.expect("the signal is there").0
    }
}

fn badge(shown: Shown) -> Seen {
    Seen {
        at: 0,
        shown,
        text: None,
        episode: None,
    }
}

fn step(wait: u64, seed: u64, pane: usize, act: Act) -> Step {
    Step {
        wait,
        seed,
        pane,
        act,
    }
}

fn start(how: Start) -> Act {
    Act::Start {
        how,
        same_pid: false,
    }
}

fn answers(pieces: Vec<Piece>) -> Act {
    slowly(pieces, 0)
}

fn slowly(pieces: Vec<Piece>, slow: u64) -> Act {
    Act::Prompt(Turn {
        pieces,
        end: End::Answer { vetoes: 0, slow },
        blocked: false,
    })
}

fn tool(ms: u64, dialog: Dialog) -> Tool {
    Tool {
        ms,
        dialog: Some(dialog),
        fails: false,
    }
}

fn thinks(silent: u64, text: u64) -> Piece {
    Piece::Think { silent, text }
}

/// The dialog of a parked session stands; the server goes down; it is answered, the turn ends, the pane's Claude
/// leaves; the server comes back and another Claude starts in the pane.
fn left_while_down() -> History {
    let asks = vec![Piece::Tool(tool(299, Dialog::Permission))];
    History {
        panes: 1,
        steps: vec![
            step(48233, 11698560252336369912, 0, start(Start::Plain)),
            step(2383, 6608572378722130069, 0, Act::Nothing),
            step(46999, 6981214931142717877, 0, Act::Park),
            step(2137, 17348860661671125113, 0, Act::Nothing),
            step(18, 13941815974417775796, 0, Act::Attach),
            step(1837, 10917466911859427843, 0, Act::Nothing),
            step(2084, 383583471992995650, 0, answers(asks)),
            step(2068, 7444953425150510316, 0, Act::Nothing),
            step(190, 5083501615902958771, 0, Act::Yes),
            step(3542, 11821626701431172536, 0, Act::Nothing),
            step(2417, 8767364233441239550, 0, Act::Terminate),
            step(8011, 6449701217423532235, 0, start(Start::Plain)),
        ],
    }
}

/// In each row what was stored may be shown for two seconds after a start, in that of a job too.
#[test]
fn h03_r08_what_was_stored_is_shown_in_the_row_of_its_job_for_two_seconds() {
    let mut right = Right::new(left_while_down(), 6622603571806039398, "restart");
    let (tab, job) = (Row::Tab(0), Row::Job(1));
    let down = right.adversary.down[1];
    let stored = right.seen(tab, down.from);
    assert_eq!(stored.shown, Shown::Ask(AskKind::Permission));
    let up = down.to;
    let still = right.had_shown(job, up, up + 1990, &stored);
    assert_eq!(still, Vec::<String>::new());
    let longer = right.had_shown(job, up, up + 2100, &stored);
    assert!(longer[0].contains("is shown in Job(1)"), "{longer:?}");
    for other in [
        Shown::Busy,
        Shown::Ask(AskKind::Question),
        Shown::Review(Some(Arc::from("overloaded"))),
    ] {
        let faults = right.had_shown(job, up, up + 200, &badge(other));
        assert!(faults[0].contains("is shown in Job(1)"), "{faults:?}");
    }
    // Who was there when it was left knows better.
    let mut right = Right::new(left_while_down(), 6622603571806039398, "none");
    let gone = right.signal(|what| *what == What::Died { process: 0 });
    let gone = right.run.arrived[gone].expect("seen");
    let faults = right.had_shown(job, gone + 1200, gone + 1300, &stored);
    assert!(faults[0].contains("is shown in Job(1)"), "{faults:?}");
}

/// The server starts in mid-turn and sees the turn end; only later is the session parked, and its pane left.
fn ends_just_after_a_start() -> History {
    let fails = Act::Prompt(Turn {
        pieces: vec![],
        end: End::Error {
            kind: 4,
            late: true,
        },
        blocked: false,
    });
    let long = vec![thinks(276, 8304)];
    History {
        panes: 1,
        steps: vec![
            step(2749, 7009334128032618071, 0, start(Start::Plain)),
            step(7529, 16546227766176995442, 0, Act::Nothing),
            step(594, 620298454891053527, 0, answers(long)),
            step(3430, 9848498778234388232, 0, Act::Nothing),
            step(8365, 6829911619947181326, 0, Act::Nothing),
            step(221, 16469208685069213373, 0, Act::Park),
            step(2260, 10404379324600338018, 0, Act::Nothing),
            step(1871, 2570467773333409378, 0, Act::Attach),
            step(531, 16976073685281976151, 0, fails),
            step(4868, 10681696974161996034, 0, Act::Nothing),
            step(5651, 17048355611090743906, 0, Act::Exit),
            step(270, 10132793519475401643, 0, start(Start::Plain)),
        ],
    }
}

/// What is news in the tab is news, although the session has a row of its own in the end; what was found is found.
#[test]
fn h01_h02_news_right_after_a_start_is_announced_and_what_was_found_is_not() {
    let right = Right::new(ends_just_after_a_start(), 2012695577403804522, "restart");
    let up = right.adversary.down[0].to;
    let loud = |alert: &&purplemux_sim::world::Alert| alert.silent == Some(false);
    let first = right.run.alerts.iter().find(loud).expect("announced");
    let found = |run: &Run, at: u64| {
        let mut found = run.found.iter();
        found.find(|(when, _)| *when >= at).copied()
    };
    assert!(first.at > up && first.at < up + 4000);
    let early = found(&right.run, up).filter(|(when, _)| *when < up + 1000);
    assert_eq!(early, None);
    // With the end of the same turn inside the outage it is found, and an announcement would be a fault.
    let ended = BEGIN + 19_844;
    let mut seeds = (0..500).filter_map(|seed| {
        let knobs = "restart".parse().expect("knobs");
        let history = ends_just_after_a_start();
        let case = Case {
            history,
            seed,
            knobs,
        };
        let (_, adversary, run) = trial::run(&case, false);
        let mut down = adversary.down.iter();
        let down = *down.find(|down| down.from + 500 < ended && ended + 500 < down.to)?;
        let alone = adversary.down.iter().all(|other| {
            *other == down || other.to < BEGIN + 10_000 || other.from > down.to + 4000
        });
        alone.then_some((down, run))
    });
    let (down, run) = seeds.next().expect("one of many");
    let (when, episode) = found(&run, down.to).expect("found by recovery");
    assert!(when < down.to + 1000, "{when} {down:?}");
    let alerts = run.alerts.iter().filter(loud);
    assert_eq!(alerts.filter(|alert| alert.episode == episode).count(), 0);
}

/// The pane's Claude is told to leave, and two milliseconds later the job asks.
fn asks_as_its_pane_is_left() -> History {
    let asks = vec![thinks(370, 43), Piece::Tool(tool(231, Dialog::Permission))];
    History {
        panes: 2,
        steps: vec![
            step(172, 17762536531045818156, 1, start(Start::Plain)),
            step(2576, 2467982544228029334, 0, Act::Nothing),
            step(358, 12937540674276312909, 1, Act::Park),
            step(1705, 210258905861971043, 1, Act::Nothing),
            step(223, 10723939698005815856, 1, Act::Attach),
            step(312, 11474256436366753840, 1, answers(asks)),
            step(396, 3719625611161289368, 0, answers(vec![])),
            step(15, 11783847696871074705, 1, Act::Nothing),
            step(315, 8456427149628024280, 1, Act::Exit),
        ],
    }
}

/// Until the end of the pane's Claude is known the pane's row shows what the job asks.
#[test]
fn r08_a_dialog_of_the_job_is_shown_in_the_row_of_a_pane_that_is_just_left() {
    let mut right = Right::new(asks_as_its_pane_is_left(), 18201830515861337233, "lose");
    let tab = Row::Tab(1);
    let died = right.signal(|what| *what == What::Died { process: 0 });
    let died = right.run.arrived[died].expect("seen");
    let asks = right.seen(tab, died - 1);
    assert_eq!(asks.shown, Shown::Ask(AskKind::Permission));
    assert_eq!(right.seen(tab, died).shown, Shown::None);
    let begins = asks.at;
    for other in [
        Shown::Idle,
        Shown::Ask(AskKind::Question),
        Shown::Review(None),
    ] {
        let faults = right.had_shown(tab, begins, died, &badge(other));
        assert!(faults[0].contains("is shown in Tab(1)"), "{faults:?}");
    }
    // It is over when the end was shown, and a second after it at the latest.
    for from in [died + 200, died + 1100] {
        let faults = right.had_shown(tab, from, from + 50, &asks);
        assert!(faults[0].contains("is shown in Tab(1)"), "{faults:?}");
    }
    let faults = right.had_shown(tab, begins, died + 1100, &asks);
    assert!(faults[0].contains("is shown in Tab(1)"), "{faults:?}");
}

/// An agent asks, behind it the main lane, whose request is lost; both are answered, the agent asks again.
fn asks_unheard() -> History {
    let agent = Piece::Agent {
        think: 5227,
        tools: vec![
            tool(2514, Dialog::Permission),
            tool(117, Dialog::Permission),
        ],
    };
    let first = vec![
        Piece::Tool(tool(252, Dialog::Phantom)),
        thinks(3764, 216),
        agent,
    ];
    let second = vec![
        thinks(4423, 1540),
        Piece::Tool(tool(102, Dialog::Permission)),
    ];
    History {
        panes: 1,
        steps: vec![
            step(490, 12405553459552852586, 0, start(Start::Untrusted)),
            step(2591, 17222590299293413204, 0, Act::Yes),
            step(9128, 2630617742627121696, 0, Act::Nothing),
            step(156, 8362799668087990365, 0, answers(first)),
            step(1815, 6828722218745885819, 0, Act::Nothing),
            step(891, 8413889949786219402, 0, answers(second)),
            step(3840, 1447608610558304230, 0, answers(vec![])),
            step(4046, 8667013227127575043, 0, Act::Nothing),
            step(2259, 6677247818415179076, 0, Act::Yes),
            step(3185, 2685236032222740808, 0, Act::Yes),
        ],
    }
}

/// The result of a tool whose request never came tells nothing of the dialog in front: it may have asked nobody.
#[test]
fn q11_q12_a_card_of_which_nothing_tells_stays_until_its_own_result() {
    let mut right = Right::new(asks_unheard(), 12737777684231780116, "delay,lose,repeat");
    let row = Row::Tab(0);
    let hook = |asks: bool, number: u64| {
        move |what: &What| match what {
            What::Hook {
                kind: HookKind::PermissionRequested { tool },
                ..
            } => asks && tool.input_digest == number,
            What::Hook {
                kind: HookKind::ToolEnded { tool },
                ..
            } => !asks && tool.input_digest == number,
            What::Hook { .. }
            | What::Wrote { .. }
            | What::Removed { .. }
            | What::Line { .. }
            | What::Found { .. }
            | What::KeyFile { .. }
            | What::Quiet { .. }
            | What::Stopped { .. }
            | What::Died { .. }
            | What::Looked { .. } => false,
        }
    };
    let (other, result) = (right.signal(hook(true, 4)), right.signal(hook(false, 3)));
    assert_eq!(right.run.arrived[other], None);
    let told = right.run.arrived[result].expect("late, but told");
    let shown = right.seen(row, told - 1);
    assert_eq!(shown.text.as_deref(), Some("touch file-3.txt"));
    let longer = right.had_shown(row, told, told + 1500, &shown);
    assert!(longer[0].contains("shown is"), "{longer:?}");
    // Had the other request been known, its result would have told.
    let asked = right.played.signals[other].as_ref().expect("asked").at;
    let faults = right.had_arrived(other, asked + 5);
    assert!(faults[0].contains("shown is"), "{faults:?}");
    // Nor may it be a text that nobody asked about.
    let invented = Seen {
        text: Some(Arc::from("touch file-9.txt")),
        ..shown
    };
    let faults = right.had_shown(row, told - 500, told + 200, &invented);
    assert!(faults[0].contains("shown is"), "{faults:?}");
}

/// A Stop hook of the person's takes three seconds; between our Stop and the file's idle the server is restarted.
fn ends_slowly() -> History {
    let bang = Act::Bang { ms: 4409 };
    let slow = slowly(vec![thinks(392, 1994)], 3000);
    History {
        panes: 2,
        steps: vec![
            step(139, 14796491614571450733, 1, start(Start::Plain)),
            step(242, 3791152517259343262, 0, start(Start::Plain)),
            step(75, 1981117978506212564, 0, Act::Nothing),
            step(226, 17617373329801662548, 0, Act::Nothing),
            step(308, 10941080247556614607, 0, Act::Nothing),
            step(5402, 13606580219776894410, 0, bang),
            step(35, 1941986673466367583, 1, answers(vec![])),
            step(238, 9544924500667513577, 0, answers(vec![])),
            step(2280, 10095627986707554359, 1, Act::Nothing),
            step(242, 16489902499495994489, 1, answers(vec![])),
            step(285, 18225241881463778734, 0, Act::Nothing),
            step(158, 1079686921664893333, 0, answers(vec![])),
            step(183, 6298340730513903408, 0, Act::Esc),
            step(233, 15504105210062643342, 1, Act::Nothing),
            step(102, 2831692968167741772, 1, Act::Nothing),
            step(20, 11036117228230601026, 1, Act::Nothing),
            step(1181, 9704065864552680854, 0, slow),
            step(183, 2094674714448482313, 1, Act::Nothing),
        ],
    }
}

/// A Stop in mid-turn is forgotten with the server that heard it; if the transcript can't be read then either, the
/// turn is idle for want of evidence, until it can.
#[test]
fn h09_b11_an_end_that_only_an_earlier_life_of_the_server_heard_waits_for_the_transcript() {
    let mut right = Right::new(ends_slowly(), 1677904034855964810, "blind,restart");
    let row = Row::Tab(0);
    let stop = right.signal(|what| {
        matches!(
            what,
            What::Hook {
                process: 0,
                kind: HookKind::Stopped { .. },
                ..
            }
        )
    });
    let down = right.adversary.down[0];
    assert!(right.run.arrived[stop].is_some_and(|heard| heard < down.from));
    let mut review = right.run.seen[right.row(row)].iter();
    let review = review.find(|seen| seen.at > down.to && seen.shown == Shown::Review(None));
    let read = review.expect("in the end").at;
    let idle = badge(Shown::Idle);
    assert_eq!(right.seen(row, read - 1).shown, Shown::Idle);
    let longer = right.had_shown(row, read - 1, read + 400, &idle);
    assert!(longer[0].contains("is shown in Tab(0)"), "{longer:?}");
    // Whoever heard the Stop knows.
    let heard = right.had_arrived(stop, down.to + 300);
    assert!(heard[0].contains("Tab(0)"), "{heard:?}");
}

/// The server is down while a turn comes to something that the file calls "dialog open", and then the transcript
/// can't be read for four seconds.
fn unreadable(history: &History) -> Right {
    let played = trial::play(history);
    let mut adversary = Adversary::new(Knobs::default(), 7, BEGIN, played.end);
    adversary.knobs.restart = true;
    adversary.knobs.blind = true;
    let (from, to) = (BEGIN + 6000, BEGIN + 16_000);
    adversary.down = vec![Stretch { from, to }];
    let (from, to) = (BEGIN + 15_000, BEGIN + 20_000);
    adversary.blind = vec![Stretch { from, to }];
    let run = trial::watch(&played, &adversary, false);
    Right {
        played,
        adversary,
        run,
    }
}

/// Rule 5: what is open over a turn may be a dialog or the person's own menu. While nothing can be read it stays
/// busy (rule 2), in both histories; idle hides a dialog that stands.
#[test]
fn q08_h02_what_nothing_can_be_read_of_stays_busy() {
    let begins = |turn| {
        vec![
            step(1000, 1, 0, start(Start::Plain)),
            step(1000, 5, 0, Act::HooksVanish),
            step(3000, 2, 0, turn),
        ]
    };
    let mut steps = begins(answers(vec![
        thinks(200, 2000),
        Piece::Tool(tool(100, Dialog::Auto)),
    ]));
    let asks = History {
        panes: 1,
        steps: steps.clone(),
    };
    steps = begins(answers(vec![thinks(200, 9000)]));
    steps.push(step(3000, 3, 0, Act::Esc));
    steps.push(step(2000, 4, 0, Act::OpenMenu));
    let menu = History { panes: 1, steps };
    let (up, read) = (BEGIN + 16_000, BEGIN + 20_000);
    let row = Row::Tab(0);
    for (history, hides) in [(asks, true), (menu, false)] {
        let mut right = unreadable(&history);
        let end = right.played.truths[0].entries.last().map(|e| &e.want);
        assert_eq!(matches!(end, Some(Want::Ask { .. })), hides, "{end:?}");
        let stays = right.had_shown(row, up, read, &badge(Shown::Busy));
        let until = format!("at {}", read / 1000);
        let early = stays.iter().find(|fault| fault.as_str() < until.as_str());
        assert_eq!(early, None);
        let idle = right.had_shown(row, up + 200, read, &badge(Shown::Idle));
        let hidden = idle.iter().any(|fault| fault.contains("Idle is shown"));
        assert_eq!(hidden, hides, "{idle:?}");
    }
}

fn history(panes: usize, steps: Vec<Step>) -> History {
    History { panes, steps }
}

/// With the badge before shown for two seconds more, or with one that is never right just before it, it is a fault.
fn is_still_caught(right: &mut Right, row: Row, shown: &Shown) {
    let mut seen = right.run.seen[right.row(row)].iter();
    let at = seen.rfind(|seen| seen.shown == *shown).expect("shown").at;
    let before = right.seen(row, at - 1);
    let late = right.had_shown(row, at, at + 2000, &before);
    assert!(
        late.iter().any(|fault| fault.contains("is shown")),
        "{late:?}"
    );
    let invented = badge(Shown::Review(Some(Arc::from("invented"))));
    let wrong = right.had_shown(row, at - 40, at, &invented);
    assert!(
        wrong.iter().any(|fault| fault.contains("is shown")),
        "{wrong:?}"
    );
}

/// A deadline is kept to the millisecond, whatever else happens or does not happen around it.
#[test]
fn p02_a_badge_that_is_a_millisecond_late_is_late() {
    let steps = vec![
        step(1000, 1, 0, start(Start::Plain)),
        step(4000, 2, 0, answers(vec![thinks(200, 900)])),
    ];
    let mut right = Right::new(history(1, steps), 1, "none");
    let row = Row::Tab(0);
    let read = right.signal(|what| matches!(what, What::Wrote { .. }));
    let due = right.run.arrived[read].expect("read") + 300;
    let before = right.seen(row, due - 300 - 1);
    assert_eq!(before.shown, Shown::Busy);
    let early = right.run.seen[0].last().expect("shown").at;
    let kept = right.had_shown(row, early, due, &before);
    assert!(
        !kept.iter().any(|fault| fault.contains("is shown")),
        "{kept:?}"
    );
    let late = right.had_shown(row, early, due + 2, &before);
    assert!(late[0].contains("Busy is shown"), "{late:?}");
}

/// Of an end under a menu no hook tells; within the half second the menu is closed, and the wait begins anew (rules 4 and 5).
#[test]
fn q16_h06_an_end_under_a_menu_is_looked_for_when_the_file_rests() {
    let mut right = Right::new(
        history(
            3,
            vec![
                step(120, 5692064080165304692, 0, start(Start::Plain)),
                step(
                    4165,
                    12693851029766534206,
                    0,
                    answers(vec![thinks(3792, 4997)]),
                ),
                step(8629, 10217218415400692710, 0, Act::Nothing),
                step(283, 18209898255374080183, 0, Act::OpenMenu),
                step(218, 7189414147732599807, 1, answers(vec![])),
                step(202, 8450391838182905667, 0, Act::Esc),
            ],
        ),
        803159911156290655,
        "lose",
    );
    is_still_caught(&mut right, Row::Tab(0), &Shown::Review(None));
}

/// The idle between a refused dialog and the next prompt is never read: its prompt looks like one that waits (rule 4).
#[test]
fn h11_a_spell_whose_beginning_was_not_read_waits_half_a_second() {
    let mut right = Right::new(
        history(
            1,
            vec![
                step(
                    77,
                    9721840196616780307,
                    0,
                    Act::Start {
                        how: Start::Untrusted,
                        same_pid: true,
                    },
                ),
                step(8109, 11190532665106186316, 0, Act::Esc),
                step(195, 12732472248424857686, 0, start(Start::Plain)),
                step(4793, 3909209335477572693, 0, Act::OpenMenu),
                step(1477, 8337776177766827733, 0, Act::PickConversation),
                step(
                    6700,
                    15271810900100937378,
                    0,
                    answers(vec![
                        thinks(34, 2675),
                        Piece::Tool(tool(257, Dialog::Permission)),
                    ]),
                ),
                step(7720, 12103965545693075754, 0, Act::Esc),
                step(
                    235,
                    1316561899782062478,
                    0,
                    Act::Prompt(Turn {
                        pieces: vec![thinks(142, 1257)],
                        end: End::Error {
                            kind: 1,
                            late: false,
                        },
                        blocked: false,
                    }),
                ),
            ],
        ),
        14857752389261845317,
        "tear",
    );
    is_still_caught(
        &mut right,
        Row::Tab(0),
        &Shown::Review(Some(Arc::from("authentication_failed"))),
    );
}

/// While the end of a turn is waited for the file changes and can't be read: it may be busy again (rule 2).
#[test]
fn h11_a_file_that_is_torn_while_an_end_is_decided_is_waited_for() {
    let mut right = Right::new(
        history(
            2,
            vec![
                step(1493, 5014933078248469492, 0, start(Start::Continue)),
                step(5009, 16021983596930916945, 1, start(Start::Fork)),
                step(2925, 494222887980340085, 1, Act::Nothing),
                step(388, 7394921010981952665, 1, Act::Compact { ms: 10502 }),
                step(248, 12426814133694053947, 0, Act::OpenMenu),
                step(2359, 17825740130255177560, 1, Act::Terminate),
                step(41787, 13119993990182476852, 1, start(Start::Plain)),
                step(140, 14545142569439292352, 0, Act::Esc),
                step(3615, 16777829223308745819, 0, answers(vec![])),
                step(229, 12058888587801095953, 1, Act::Bang { ms: 1484 }),
                step(
                    8901,
                    7198737541490477166,
                    1,
                    Act::Prompt(Turn {
                        pieces: vec![],
                        end: End::Answer { vetoes: 0, slow: 0 },
                        blocked: true,
                    }),
                ),
                step(348, 14547541475654148599, 0, Act::Clear),
                step(189, 17231816961802452104, 1, Act::Park),
                step(
                    2339,
                    14015135369560266886,
                    0,
                    answers(vec![Piece::Tool(tool(222, Dialog::Question))]),
                ),
            ],
        ),
        6675630645712969808,
        "tear",
    );
    is_still_caught(&mut right, Row::Tab(1), &Shown::Idle);
}

/// Without a status a tool's end tells that its dialog was answered; of one that was never heard of it tells nothing.
#[test]
fn q14_the_result_of_a_tool_tells_of_an_answer_only_where_the_request_is_known() {
    let mut right = Right::new(
        history(
            1,
            vec![
                step(
                    2403,
                    14470392786526962672,
                    0,
                    Act::Print(Turn {
                        pieces: vec![
                            thinks(154, 199),
                            Piece::Tool(Tool {
                                ms: 4393,
                                dialog: None,
                                fails: false,
                            }),
                        ],
                        end: End::Answer { vetoes: 0, slow: 0 },
                        blocked: false,
                    }),
                ),
                step(8548, 1237599666050404185, 0, Act::Kill),
                step(
                    217,
                    1960210184463355241,
                    0,
                    start(Start::Old { file: true }),
                ),
                step(
                    6630,
                    1373001764533454405,
                    0,
                    answers(vec![Piece::Tool(tool(280, Dialog::Permission))]),
                ),
                step(729, 2121125408639059379, 0, Act::Nothing),
                step(233, 1307775328035746578, 0, Act::Yes),
            ],
        ),
        5838385939368171571,
        "delay,swap",
    );
    // Idle until the Stop is right only as long as the request is not known by then.
    let asked = right.signal(|what| {
        matches!(
            what,
            What::Hook {
                kind: HookKind::PermissionRequested { .. },
                ..
            }
        )
    });
    let row = Row::Tab(0);
    let mut seen = right.run.seen[0].iter();
    let review = seen.find(|seen| matches!(seen.shown, Shown::Review(_)));
    let review = review.expect("in the end").at;
    let mut seen = right.run.seen[0].clone();
    seen.retain(|seen| seen.shown != Shown::Busy || !(review - 3000..review).contains(&seen.at));
    right.run.seen[0] = seen;
    assert_eq!(right.seen(row, review - 1).shown, Shown::Idle);
    let unknown = judge(&right.played, &right.run, &right.adversary);
    assert_eq!(unknown, Vec::<String>::new());
    let at = right.played.signals[asked].as_ref().expect("asked").at;
    let known = right.had_arrived(asked, at + 5);
    let idle = |fault: &String| fault.contains("Idle is shown");
    assert!(known.iter().any(idle), "{known:?}");
}

/// Its start is told late, and /clear comes before the file has had its time to get a status.
#[test]
fn p01_r02_a_version_without_a_status_is_known_only_after_its_file_had_time_for_one() {
    let mut right = Right::new(
        history(
            3,
            vec![
                step(
                    259,
                    8425530473054193239,
                    0,
                    start(Start::Old { file: true }),
                ),
                step(284, 3282539369759034891, 0, Act::Nothing),
                step(360, 9978007751196256553, 0, Act::Nothing),
                step(4708, 9898586882563499350, 2, start(Start::Plain)),
                step(140, 15806624981251739032, 1, answers(vec![])),
                step(96, 15865897074863870066, 0, Act::Clear),
            ],
        ),
        648214750946931085,
        "delay,swap",
    );
    is_still_caught(&mut right, Row::Tab(0), &Shown::Idle);
}

/// The answer to a dialog is never read, and the turn's end only as a menu: it may be the next dialog (rule 5).
#[test]
fn q16_h11_a_menu_that_is_read_right_after_a_dialog_leaves_it_standing() {
    let asks = vec![thinks(4322, 91), Piece::Tool(tool(79, Dialog::Permission))];
    let mut steps = vec![
        step(6305, 11176679887116595405, 0, start(Start::Plain)),
        step(700, 2370525111498617541, 0, answers(asks)),
        step(8975, 4775378977906426176, 0, Act::OpenMenu),
        step(65, 10669230463251901884, 0, Act::Yes),
        step(184, 6185931146037915771, 0, Act::OpenMenu),
    ];
    let open = history(1, steps.clone());
    let mut right = Right::new(open, 15195615643670842555, "tear");
    let row = Row::Tab(0);
    let end = right.run.end;
    let menu = right.signal(|what| matches!(what, What::Wrote { .. }));
    let menu = right.run.arrived[menu].expect("read");
    for other in [Shown::Busy, Shown::Ask(AskKind::Question)] {
        let faults = right.had_shown(row, menu + 2000, menu + 2500, &badge(other));
        assert!(faults[0].contains("is shown in Tab(0)"), "{faults:?}");
    }
    // Once it is closed the end is told, and the dialog is over.
    steps.push(step(5000, 5, 0, Act::Esc));
    let closed = history(1, steps);
    let mut right = Right::new(closed, 15195615643670842555, "tear");
    let asked = right.seen(row, menu);
    assert_eq!(asked.shown, Shown::Ask(AskKind::Permission));
    let stays = right.had_shown(row, menu, end - 1000, &asked);
    assert!(stays[0].contains("is shown in Tab(0)"), "{stays:?}");
}

/// With this badge in the row from a second and a half after the pane's end on, it is a fault.
fn is_wrong_later(right: &mut Right, job: usize, host: usize, shown: Shown) {
    let died = right.signal(|what| *what == What::Died { process: host });
    let died = right.run.arrived[died].expect("seen");
    let faults = right.had_shown(Row::Job(job), died + 1500, died + 1600, &badge(shown));
    assert!(faults[0].contains("is shown in Job"), "{faults:?}");
}

/// The auto mode asks, and the hook of its tool is lost: the pane's row stays busy, and so does the job's.
#[test]
fn r08_q08_a_job_comes_out_of_its_pane_with_the_badge_that_it_had_there() {
    let mut right = Right::new(
        history(
            1,
            vec![
                step(18262, 1158691405082556035, 0, start(Start::Plain)),
                step(11261, 241939334699673989, 0, Act::Park),
                step(5618, 3639901076412529023, 0, Act::Attach),
                step(
                    3636,
                    13111053745529758715,
                    0,
                    answers(vec![
                        Piece::Tool(tool(296, Dialog::Permission)),
                        Piece::Tool(tool(68, Dialog::Auto)),
                    ]),
                ),
                step(8163, 5239885724204455829, 0, Act::Yes),
                step(3420, 5006663526035558236, 0, Act::Terminate),
            ],
        ),
        13644448115987450048,
        "lose,fail",
    );
    for shown in [
        Shown::Idle,
        Shown::Review(None),
        Shown::Ask(AskKind::Permission),
    ] {
        is_wrong_later(&mut right, 1, 0, shown);
    }
}

/// A blocked prompt that the file was never read to be busy with leaves the review, in both rows.
#[test]
fn r08_i05_a_job_keeps_the_review_that_nothing_told_the_end_of() {
    let mut right = Right::new(
        history(
            2,
            vec![
                step(37, 5179995011023256198, 0, start(Start::Plain)),
                step(1554, 7159862156101320100, 0, Act::Nothing),
                step(90, 17568866884646210960, 0, Act::Park),
                step(4035, 3660248096649119039, 0, Act::Attach),
                step(311, 6138096252865652201, 0, answers(vec![])),
                step(846, 6917700633444937860, 0, Act::Nothing),
                step(
                    252,
                    18145159705069554278,
                    0,
                    Act::Prompt(Turn {
                        pieces: vec![],
                        end: End::Answer { vetoes: 0, slow: 0 },
                        blocked: true,
                    }),
                ),
                step(62903, 3027102457976925418, 0, Act::Kill),
            ],
        ),
        3516722057029990078,
        "lose,coalesce",
    );
    for shown in [
        Shown::Busy,
        Shown::Ask(AskKind::Permission),
        Shown::Review(Some(Arc::from("unknown"))),
    ] {
        is_wrong_later(&mut right, 1, 0, shown);
    }
}

/// The first write of a spell is torn and never read.
#[test]
fn h11_a_spell_whose_first_write_was_not_read_waits_half_a_second() {
    let mut right = Right::new(
        history(
            2,
            vec![
                step(30, 15063695545024209530, 1, start(Start::Plain)),
                step(32256, 17263047011042904583, 0, start(Start::Plain)),
                step(
                    241,
                    12079996330692723134,
                    1,
                    answers(vec![Piece::Tool(Tool {
                        ms: 258,
                        dialog: None,
                        fails: false,
                    })]),
                ),
                step(4982, 7274255137242342963, 1, Act::OpenMenu),
                step(
                    366,
                    17492371501938864067,
                    0,
                    answers(vec![Piece::Tool(Tool {
                        ms: 3804,
                        dialog: None,
                        fails: false,
                    })]),
                ),
                step(387, 2820775268174699307, 1, Act::Esc),
                step(
                    2252,
                    4700846868149249589,
                    1,
                    answers(vec![
                        Piece::Tool(Tool {
                            ms: 4424,
                            dialog: None,
                            fails: false,
                        }),
                        thinks(2555, 83),
                        Piece::Agent {
                            think: 3820,
                            tools: vec![],
                        },
                        Piece::Agent {
                            think: 8637,
                            tools: vec![],
                        },
                    ]),
                ),
                step(393, 282849344062560, 0, Act::Esc),
            ],
        ),
        3816215353047151241,
        "swap,tear",
    );
    is_still_caught(&mut right, Row::Tab(1), &Shown::Review(None));
}

/// A whole turn is not read, but for the menu over its end: it may have been opened over the rest before.
#[test]
fn q16_h11_a_menu_that_is_read_right_after_a_rest_waits_for_the_hook() {
    let mut right = Right::new(
        history(
            2,
            vec![
                step(
                    60,
                    18271531323943336162,
                    0,
                    Act::Start {
                        how: Start::Untrusted,
                        same_pid: true,
                    },
                ),
                step(207, 1772489146785084429, 0, Act::Yes),
                step(355, 1781545338827582571, 1, start(Start::Plain)),
                step(352, 11733564235012410046, 0, answers(vec![thinks(380, 85)])),
                step(270, 11166322105657348596, 1, Act::Esc),
                step(238, 2995353220468290777, 0, Act::OpenMenu),
            ],
        ),
        4885989337145257361,
        "delay,tear",
    );
    is_still_caught(&mut right, Row::Tab(0), &Shown::Review(None));
}

/// The answer to a form is told by a hook while the file can't be read: what stands, if anything, has no name.
#[test]
fn q07_h11_a_form_that_was_answered_is_a_question_until_the_file_is_read() {
    let mut right = Right::new(
        history(
            1,
            vec![
                step(1902, 6581536381607411399, 0, start(Start::Plain)),
                step(6053, 8181370665719686324, 0, Act::Nothing),
                step(
                    236,
                    12740424201550957956,
                    0,
                    answers(vec![
                        Piece::Agent {
                            think: 8812,
                            tools: vec![
                                tool(102457, Dialog::Permission),
                                tool(68095, Dialog::Permission),
                            ],
                        },
                        Piece::Tool(tool(3034, Dialog::Form)),
                        Piece::Tool(Tool {
                            ms: 2163,
                            dialog: None,
                            fails: false,
                        }),
                    ]),
                ),
                step(7853, 11711475828529799897, 0, Act::Nothing),
                step(5777, 9768921761030724196, 0, Act::Yes),
            ],
        ),
        9269252840834314131,
        "tear",
    );
    let row = Row::Tab(0);
    let answered = right.signal(|what| {
        matches!(
            what,
            What::Hook {
                kind: HookKind::FormAnswered,
                ..
            }
        )
    });
    let told = right.run.arrived[answered].expect("told");
    let before = right.had_shown(
        row,
        told - 900,
        told - 800,
        &badge(Shown::Ask(AskKind::Question)),
    );
    assert!(before[0].contains("is shown in Tab(0)"), "{before:?}");
    let other = right.had_shown(
        row,
        told + 100,
        told + 110,
        &badge(Shown::Ask(AskKind::Plan)),
    );
    assert!(other[0].contains("is shown in Tab(0)"), "{other:?}");
}

/// A turn that ends 80 ms after a start, while the witnesses are still asked, is news: it is told like any other.
#[test]
fn h01_a_turn_that_ends_while_a_start_recovers_is_pushed() {
    let steps = vec![
        step(1000, 1, 0, start(Start::Plain)),
        step(4000, 2, 0, answers(vec![thinks(200, 9000)])),
    ];
    let played = trial::play(&history(1, steps));
    let stop = played.signals.iter().flatten().find(|signal| {
        matches!(
            signal.what,
            What::Hook {
                kind: HookKind::Stopped { .. },
                ..
            }
        )
    });
    let to = stop.expect("it ends").at - 80;
    let mut adversary = Adversary::new(Knobs::default(), 7, BEGIN, played.end);
    adversary.knobs.restart = true;
    let from = to - 3000;
    adversary.down = vec![Stretch { from, to }];
    let mut run = trial::watch(&played, &adversary, false);
    assert_eq!(judge(&played, &run, &adversary), Vec::<String>::new());
    run.alerts.clear();
    let faults = judge(&played, &run, &adversary);
    assert!(faults[0].contains("was never pushed"), "{faults:?}");
}
