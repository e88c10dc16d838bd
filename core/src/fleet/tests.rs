//! Rule 7 and the names of rows, all of them. Must not play situations: scripts do that.

use super::*;
use crate::view::{Ask, AskKind, Doing, Outcome};

fn review(error: Option<&str>) -> Badge {
    Badge::Review(Outcome {
        error: error.map(Arc::from),
        shells: 0,
        wakes_at_ms: None,
    })
}

#[test]
fn rule_7_in_its_order() {
    let ask = Ask {
        id: 1,
        kind: AskKind::Question,
        text: None,
        tool: None,
        options: Vec::new(),
    };
    let order = [
        Badge::NeedsInput(ask),
        review(Some("rate_limit")),
        review(None),
        Badge::Busy(Doing::default()),
        Badge::Unknown,
        Badge::Idle,
    ];
    for pair in order.windows(2) {
        assert!(urgency(&pair[0]) > urgency(&pair[1]), "{pair:?}");
    }
}

#[test]
fn a_row_is_named_by_its_command_and_the_last_part_of_its_directory() {
    assert_eq!(&*titled("claude", "/home/dev/notes"), "claude · notes");
    assert_eq!(&*titled("vim", "/home/dev/notes/"), "vim · notes");
    assert_eq!(&*titled("vim", "/"), "vim");
    assert_eq!(&*titled("vim", ""), "vim");
}
