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
