//! Which word fits which badge, all of them.

use super::*;

#[test]
fn a_word_is_one_badge_and_fits_its_like() {
    let ask = Ask {
        id: 1,
        kind: AskKind::Permission,
        text: None,
        tool: None,
        options: Vec::new(),
    };
    let outcome = Outcome {
        error: None,
        shells: 0,
        wakes_at_ms: None,
    };
    let words = [
        Says::Idle,
        Says::Busy,
        Says::Open,
        Says::NeedsInput,
        Says::Review,
    ];
    // Which words are a badge's own, and which fit it: an open call may run or be asked about.
    for (badge, own, fitting) in [
        (
            Badge::Idle,
            &[Says::Idle][..],
            &[Says::Idle, Says::Review][..],
        ),
        (
            Badge::Busy(Doing::default()),
            &[Says::Busy, Says::Open],
            &[Says::Busy, Says::Open],
        ),
        (
            Badge::NeedsInput(ask),
            &[Says::NeedsInput],
            &[Says::NeedsInput, Says::Open],
        ),
        (
            Badge::Review(outcome),
            &[Says::Review],
            &[Says::Idle, Says::Review],
        ),
        (Badge::Unknown, &[], &[]),
    ] {
        for word in words {
            assert_eq!(word.is(&badge), own.contains(&word), "{word:?} {badge:?}");
            assert_eq!(
                word.fits(&badge),
                fitting.contains(&word),
                "{word:?} {badge:?}"
            );
        }
    }
}
