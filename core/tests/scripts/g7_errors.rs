//! Errors and retries.

use crate::dsl::check;
use crate::g1_plain::IDLE;

#[test]
fn e01_a_failed_turn_says_so() {
    for kind in [
        "unknown",
        "authentication_failed",
        "model_not_found",
        "invalid_request",
        "max_output_tokens",
    ] {
        check(
            &format!(
                "{IDLE}
            1000 hook prompt
            1050 file busy
            1300 hook stopfail {kind}
            1360 file idle
            9000 end
            "
            ),
            &format!(
                "
            500  idle
            1000 busy
            1360 review failed({kind})
            2560 notify
            "
            ),
        );
    }
}

#[test]
fn e02_three_minutes_of_retries() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        181000 hook stop
        181060 file idle
        190000 end
        "
        ),
        "
        500    idle
        1000   busy
        181060 review finished
        182260 notify
        ",
    );
}

#[test]
fn e03_idle_just_before_the_failure() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        9000 file idle
        9006 hook stopfail rate_limit
        20000 end
        "
        ),
        "
        500   idle
        1000  busy
        9006  review failed(rate_limit)
        10206 notify
        ",
    );
}

#[test]
fn e04_failed_until_read() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook stopfail server_error
        1360 file idle
        59300 hook note idle_prompt
        70000 seen
        80000 hook prompt
        80050 file busy
        80500 hook stop
        80560 file idle
        90000 end
        "
        ),
        "
        500   idle
        1000  busy
        1360  review failed(server_error)
        2560  notify
        70000 idle (failed: server_error)
        70000 withdraw
        80000 busy
        80560 review finished
        81760 notify
        ",
    );
}

#[test]
fn e05_failure_without_hooks() {
    check(
        "
        0    found
        250  file none
        500  file idle
        1050 file busy
        1300 tx error rate_limit
        1360 file idle
        9000 end
        ",
        "
        500  idle
        1050 busy
        1860 review failed(rate_limit)
        3060 notify
        ",
    );
}

#[test]
fn e06_a_kind_never_seen_before() {
    // Cleaning and shortening is done where the payload is read.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook stopfail cosmic_rays
        1360 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1360 review failed(cosmic_rays)
        2560 notify
        ",
    );
}

#[test]
fn e05_i06_a_review_by_the_transcript_takes_no_other_turn_s_stop() {
    // The turn's own Stop is lost. Before its prompt another turn failed; after its end the next one answers.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1400 hook stopfail unknown
        1410 hook prompt
        1500 tx prompt
        1800 tx error server_error
        1900 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2400 review failed(server_error)
        3600 notify
        ",
    );
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1800 tx error server_error
        1900 file idle
        5000 hook prompt
        5010 torn
        5150 hook stop
        5300 file@5200 idle since=5200
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2400 review failed(server_error)
        3600 notify
        5000 busy
        5000 withdraw
        5300 review finished
        6500 notify
        ",
    );
}
