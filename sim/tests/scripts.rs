//! Single histories, as the simulator prints them: what it found once and must not find again, and that
//! what it prints is Rust.

use purplemux_sim::script::*;
use purplemux_sim::trial::{Case, verdict};

fn is_right(history: History, seed: u64, knobs: &str) {
    let knobs = knobs.parse().expect("knobs");
    let case = Case {
        history,
        seed,
        knobs,
    };
    assert_eq!(verdict(&case), Vec::<String>::new());
}

/// Every kind of step and piece; the text below is what `as_rust` prints of it, in rustfmt's lines.
fn one_of_each() -> History {
    History {
        panes: 2,
        steps: vec![
            Step {
                wait: 1000,
                seed: 7,
                pane: 0,
                act: Act::Start {
                    how: Start::Plain,
                    same_pid: false,
                },
            },
            Step {
                wait: 4000,
                seed: 8,
                pane: 0,
                act: Act::Prompt(Turn {
                    pieces: vec![
                        Piece::Think {
                            silent: 50,
                            text: 60,
                        },
                        Piece::Tool(Tool {
                            ms: 70,
                            dialog: Some(Dialog::Permission),
                            fails: false,
                        }),
                        Piece::Agent {
                            think: 80,
                            tools: vec![Tool {
                                ms: 90,
                                dialog: None,
                                fails: true,
                            }],
                        },
                        Piece::Nested(Turn {
                            pieces: vec![],
                            end: End::Error {
                                kind: 1,
                                late: false,
                            },
                            blocked: false,
                        }),
                    ],
                    end: End::Answer { vetoes: 0, slow: 0 },
                    blocked: false,
                }),
            },
            Step {
                wait: 2000,
                seed: 9,
                pane: 0,
                act: Act::Yes,
            },
            Step {
                wait: 9000,
                seed: 10,
                pane: 1,
                act: Act::Start {
                    how: Start::Old { file: true },
                    same_pid: false,
                },
            },
        ],
    }
}

#[test]
fn what_is_printed_is_rust() {
    let bare = |text: &str| -> String {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        text.replace(",}", "}")
            .replace(",]", "]")
            .replace(",)", ")")
    };
    let source = include_str!("scripts.rs");
    assert!(bare(source).contains(&bare(&one_of_each().as_rust())));
    is_right(one_of_each(), 1, "none");
}

/// The pane's Claude leaves a second before the agent's tool ends, of two dialogs the first was answered. Nothing
/// but that tool's end tells that the second is in front (Q11), and by then the session has a row of its own.
#[test]
fn q11_r08_the_pane_is_left_between_two_dialogs() {
    let history = History {
        panes: 2,
        steps: vec![
            Step {
                wait: 29334,
                seed: 864282722190323670,
                pane: 0,
                act: Act::Start {
                    how: Start::Plain,
                    same_pid: false,
                },
            },
            Step {
                wait: 2353,
                seed: 7124179834978731054,
                pane: 1,
                act: Act::Prompt(Turn {
                    pieces: vec![Piece::Think {
                        silent: 3127,
                        text: 1712,
                    }],
                    end: End::Error {
                        kind: 0,
                        late: true,
                    },
                    blocked: false,
                }),
            },
            Step {
                wait: 83,
                seed: 1587768736472192181,
                pane: 0,
                act: Act::Park,
            },
            Step {
                wait: 4875,
                seed: 5414399379918718191,
                pane: 0,
                act: Act::Nothing,
            },
            Step {
                wait: 29,
                seed: 16252453376191810932,
                pane: 0,
                act: Act::Attach,
            },
            Step {
                wait: 94,
                seed: 5626837886744607055,
                pane: 0,
                act: Act::Prompt(Turn {
                    pieces: vec![
                        Piece::Think {
                            silent: 383,
                            text: 185,
                        },
                        Piece::Agent {
                            think: 2228,
                            tools: vec![
                                Tool {
                                    ms: 3613,
                                    dialog: Some(Dialog::Permission),
                                    fails: false,
                                },
                                Tool {
                                    ms: 4598,
                                    dialog: Some(Dialog::Permission),
                                    fails: false,
                                },
                            ],
                        },
                        Piece::Tool(Tool {
                            ms: 109,
                            dialog: Some(Dialog::Permission),
                            fails: false,
                        }),
                    ],
                    end: End::Answer {
                        vetoes: 1,
                        slow: 6500,
                    },
                    blocked: false,
                }),
            },
            Step {
                wait: 159,
                seed: 2610348493459097552,
                pane: 1,
                act: Act::Esc,
            },
            Step {
                wait: 175,
                seed: 5036034643257097244,
                pane: 0,
                act: Act::Nothing,
            },
            Step {
                wait: 320,
                seed: 7746897632188127241,
                pane: 0,
                act: Act::Nothing,
            },
            Step {
                wait: 1213,
                seed: 206371100078036438,
                pane: 1,
                act: Act::Compact { ms: 11276 },
            },
            Step {
                wait: 1449,
                seed: 14925042988442812810,
                pane: 0,
                act: Act::Yes,
            },
            Step {
                wait: 15,
                seed: 7953449578183891720,
                pane: 0,
                act: Act::Exit,
            },
        ],
    };
    is_right(history, 12608546628138410587, "none");
}

/// Parked, attached, a failed turn, a look, and the pane's Claude leaves.
fn read_and_left() -> History {
    History {
        panes: 1,
        steps: vec![
            Step {
                wait: 1726,
                seed: 5841929833046337363,
                pane: 0,
                act: Act::Start {
                    how: Start::Plain,
                    same_pid: false,
                },
            },
            Step {
                wait: 685,
                seed: 8088689263385440309,
                pane: 0,
                act: Act::Nothing,
            },
            Step {
                wait: 1176,
                seed: 9371196038091212825,
                pane: 0,
                act: Act::Park,
            },
            Step {
                wait: 8820,
                seed: 1909228698648624713,
                pane: 0,
                act: Act::Nothing,
            },
            Step {
                wait: 1655,
                seed: 4063200105168005682,
                pane: 0,
                act: Act::Attach,
            },
            Step {
                wait: 187,
                seed: 13541618292426482647,
                pane: 0,
                act: Act::Prompt(Turn {
                    pieces: vec![],
                    end: End::Error {
                        kind: 0,
                        late: false,
                    },
                    blocked: false,
                }),
            },
            Step {
                wait: 6254,
                seed: 3956564907382254832,
                pane: 0,
                act: Act::Look,
            },
            Step {
                wait: 1637,
                seed: 10697266641400214177,
                pane: 0,
                act: Act::Exit,
            },
        ],
    }
}

/// The server is down during the look, so nobody can have looked: the job's row is the review, unread.
#[test]
fn p09_h04_r08_a_look_at_a_page_that_is_not_served_reads_nothing() {
    is_right(read_and_left(), 3848537255808505487, "restart");
}

/// And where the look came, the job's row rests.
#[test]
fn p09_r08_a_review_that_was_read_is_read_in_the_row_of_its_job() {
    is_right(read_and_left(), 1, "none");
}

/// What a compaction left as it was is right in the row of the job too, which has no earlier badge of its own.
#[test]
fn c01_r08_what_was_before_a_compaction_is_right_in_the_row_of_its_job() {
    let history = History {
        panes: 1,
        steps: vec![
            Step {
                wait: 1824,
                seed: 9722642417790509533,
                pane: 0,
                act: Act::Start {
                    how: Start::Plain,
                    same_pid: true,
                },
            },
            Step {
                wait: 2299,
                seed: 16468047453798887581,
                pane: 0,
                act: Act::Compact { ms: 9277 },
            },
            Step {
                wait: 24291,
                seed: 9109678417158533062,
                pane: 0,
                act: Act::Esc,
            },
            Step {
                wait: 653,
                seed: 7934967817258687511,
                pane: 0,
                act: Act::Park,
            },
            Step {
                wait: 600,
                seed: 1636364840157853531,
                pane: 0,
                act: Act::Nothing,
            },
            Step {
                wait: 584,
                seed: 3824039626974918589,
                pane: 0,
                act: Act::Attach,
            },
            Step {
                wait: 6615,
                seed: 12156673855006812848,
                pane: 0,
                act: Act::Prompt(Turn {
                    pieces: vec![],
                    end: End::Answer { vetoes: 0, slow: 0 },
                    blocked: false,
                }),
            },
            Step {
                wait: 188,
                seed: 5738064992865775859,
                pane: 0,
                act: Act::Exit,
            },
        ],
    };
    is_right(history, 1205051149735474878, "none");
}
