//! Permission, question, plan, form: when amber comes and when it goes.

use purplemux_core::witness::{Hook, HookKind, ToolCall};
use purplemux_core::{Effect, Event};

use crate::dsl::{World, at, check, key, run};
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

/// A turn whose tool is asked about from 1500 on.
const ASKED: &str = "
    0    found
    60   key
    200  hook start startup
    250  file none
    500  file idle
    1000 hook prompt
    1050 file busy
    1300 hook pre Bash id=1 \"touch a.txt\"
    1480 hook pr Bash \"touch a.txt\"
    1500 file permission
";

/// What [`ASKED`] shows.
const ASKED_SEEN: &str = "
    500  idle
    1000 busy
    1500 needs-input permission \"touch a.txt\"
";

#[test]
fn q01_amber_with_the_dialog() {
    check(
        &format!(
            "{ASKED}
        7500 hook note permission_prompt
        20000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        "
        ),
    );
    // The request after the file: amber first, its words as soon as they come.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file permission
        1658 hook pr Bash \"touch a.txt\"
        5000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission
        1658 needs-input permission \"touch a.txt\"
        2700 notify
        ",
    );
}

#[test]
fn q02_busy_again_with_the_key() {
    check(
        &format!(
            "{ASKED}
        3500 file busy
        3900 hook post Bash id=1 \"touch a.txt\"
        4100 hook stop
        4160 file idle
        9000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        3500 busy
        3500 withdraw
        4160 review finished
        5360 notify
        "
        ),
    );
    // Approved after the Notification; the tool runs 9 s more.
    check(
        &format!(
            "{ASKED}
        7500 hook note permission_prompt
        8000 file busy
        17000 hook post Bash id=1 \"touch a.txt\"
        17100 hook stop
        17160 file idle
        30000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        8000 busy
        8000 withdraw
        17160 review finished
        18360 notify
        "
        ),
    );
}

#[test]
fn q03_refused() {
    // (a) Esc and (b) "No": no hook; the marker is in the transcript.
    check(
        &format!(
            "{ASKED}
        5500 file idle
        5600 tx interrupt
        20000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        6000 idle (interrupted)
        6000 withdraw
        "
        ),
    );
    // (c) "No" with a comment: Claude goes on.
    check(
        &format!(
            "{ASKED}
        5500 file busy
        5900 hook stop
        5960 file idle
        20000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        5500 busy
        5500 withdraw
        5960 review finished
        7160 notify
        "
        ),
    );
}

#[test]
fn q03_a_comment_does_not_leave_its_words_to_the_next_dialog() {
    check(
        &format!(
            "{ASKED}
        2000 file busy
        2300 hook pre Bash id=2 \"touch b.txt\"
        2380 hook pr Bash \"touch b.txt\"
        2400 file permission
        3000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2000 busy
        2400 needs-input permission \"touch b.txt\"
        "
        ),
    );
}

#[test]
fn q04_dialog_survives_stray_keys() {
    // Keys leave no signal but a late Notification; the file is rewritten with the same status.
    check(
        &format!(
            "{ASKED}
        4000 file permission
        9000 file permission
        25900 hook note permission_prompt
        131500 file idle
        131600 tx interrupt
        140000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        132000 idle (interrupted)
        132000 withdraw
        "
        ),
    );
    // The waiting time counts from the status's time in the file.
    let world = check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1540 file permission since=1500
        2000 end
        "
        ),
        "
        500  idle
        1000 busy
        1540 needs-input permission
        ",
    );
    assert_eq!(world.item('A').since, crate::dsl::at(1500));
}

#[test]
fn q05_question_is_a_question() {
    for (pre, file, pr) in [(1300, 1500, 1480), (1490, 1500, 1520), (1300, 1500, 1650)] {
        let mut lines = [
            (
                pre,
                format!("{pre} hook pre AskUserQuestion id=1 \"Which colour?\""),
            ),
            (file, format!("{file} file input")),
            (
                pr,
                format!("{pr} hook pr AskUserQuestion \"Which colour?\""),
            ),
        ];
        lines.sort();
        let asked: String = lines.map(|(_, line)| line + "\n").concat();
        // (a) answered
        check(
            &format!(
                "{IDLE}
            1000 hook prompt
            1050 file busy
            {asked}
            7400 hook note permission_prompt
            8000 file busy
            8050 hook post AskUserQuestion id=1 \"Which colour?\"
            8500 hook stop
            8560 file idle
            20000 end
            "
            ),
            "
            500  idle
            1000 busy
            1500 needs-input question \"Which colour?\"
            2700 notify
            8000 busy
            8000 withdraw
            8560 review finished
            9760 notify
            ",
        );
        // (b) Esc
        check(
            &format!(
                "{IDLE}
            1000 hook prompt
            1050 file busy
            {asked}
            4000 file idle
            4100 tx interrupt
            20000 end
            "
            ),
            "
            500  idle
            1000 busy
            1500 needs-input question \"Which colour?\"
            2700 notify
            4500 idle (interrupted)
            4500 withdraw
            ",
        );
    }
}

#[test]
fn q06_plan_by_the_tools_name() {
    let plan = "
        1000 hook prompt
        1050 file busy
        1300 hook pre ExitPlanMode id=1 \"1. do it\"
        1480 hook pr ExitPlanMode \"1. do it\"
        1500 file permission
    ";
    check(
        &format!(
            "{IDLE}{plan}
        3960 hook post ExitPlanMode id=1 \"1. do it\"
        4000 file busy
        5000 hook stop
        5060 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input plan \"1. do it\"
        2700 notify
        4000 busy
        4000 withdraw
        5060 review finished
        6260 notify
        ",
    );
    check(
        &format!(
            "{IDLE}{plan}
        2000 file idle
        2100 tx interrupt
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input plan \"1. do it\"
        2500 idle (interrupted)
        ",
    );
}

#[test]
fn q07_form_declined() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1400 hook pre mcp__lab__ask id=1
        1490 hook form \"Pick a shade\"
        1500 file input
        7500 hook note elicitation_dialog
        9000 file busy
        9020 hook formdone
        9040 hook note elicitation_response
        9100 hook post mcp__lab__ask id=1
        9500 hook stop
        9560 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input form \"Pick a shade\"
        2700 notify
        9000 busy
        9000 withdraw
        9560 review finished
        10760 notify
        ",
    );
}

#[test]
fn q08_auto_mode_asks_without_a_request() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook pre Bash id=1 \"rm -rf /etc/lab\"
        1500 file menu
        7500 hook note agent_needs_input
        9000 file busy
        9100 hook stop
        9160 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input dialog \"rm -rf /etc/lab\"
        2700 notify
        9000 busy
        9000 withdraw
        9160 review finished
        10360 notify
        ",
    );
    // Without hooks the transcript backs it, half a second after the file.
    check(
        "
        0    found
        60   key
        250  file none
        500  file idle
        1050 file busy
        1200 tx prompt
        1400 tx tool Bash id=1 \"rm -rf /etc/lab\"
        1500 file menu
        9000 end
        ",
        "
        500  idle
        1050 busy
        2000 needs-input dialog \"rm -rf /etc/lab\"
        3200 notify
        ",
    );
}

#[test]
fn q09_the_persons_own_menus() {
    let menus = "
        5000 file menu
        7000 file idle
        8000 file menu
        9000 file idle
        60000 end
    ";
    check(&format!("{IDLE}{menus}"), "500 idle");
    check(&format!("{REVIEW}{menus}"), REVIEW_SEEN);
    // A prompt out of a menu: `/resume` picked, or a dialog from a menu.
    check(
        &format!(
            "{REVIEW}
        5000 file menu
        6000 file busy
        7000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        6000 busy
        6000 withdraw
        "
        ),
    );
}

#[test]
fn q10_two_dialogs_one_after_the_other() {
    check(
        &format!(
            "{ASKED}
        3500 file busy
        3560 hook post Bash id=1 \"touch a.txt\"
        3600 hook pre Bash id=2 \"touch b.txt\"
        3770 hook pr Bash \"touch b.txt\"
        3800 file permission
        6000 file busy
        6060 hook post Bash id=2 \"touch b.txt\"
        6500 hook stop
        6560 file idle
        9000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        3500 busy
        3500 withdraw
        3800 needs-input permission \"touch b.txt\"
        5000 notify
        6000 busy
        6000 withdraw
        6560 review finished
        7760 notify
        "
        ),
    );
    // The file's busy in between was never seen: still two dialogs.
    check(
        &format!(
            "{ASKED}
        3560 hook post Bash id=1 \"touch a.txt\"
        3770 hook pr Bash \"touch b.txt\"
        3800 file permission since=3800
        5500 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        3800 needs-input permission \"touch b.txt\"
        3800 withdraw
        5000 notify
        "
        ),
    );
}

#[test]
fn q11_two_subagents_ask_at_once() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1100 hook pre Agent id=1 c
        1110 hook pre Agent id=2 d
        1150 hook post Agent id=1 c
        1160 hook sub c
        1170 hook post Agent id=2 d
        1180 hook sub d
        1300 hook pre Bash id=3 \"touch c.txt\" lane=c
        1400 hook pr Bash \"touch c.txt\" lane=c
        1480 file permission
        1600 hook stop agents=2
        1650 hook pr Bash \"touch d.txt\" lane=d
        5000 hook post Bash id=3 \"touch c.txt\" lane=c
        5100 hook subend c
        5200 hook task
        5300 hook stop agents=1
        8000 file busy
        8050 hook post Bash id=4 \"touch d.txt\" lane=d
        8100 hook subend d
        8200 file busy since=8190 # idle in between, never seen
        8220 hook task
        8300 hook stop
        8380 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        1160 busy 1 agent
        1180 busy 2 agent
        1480 needs-input permission \"touch c.txt\"
        2680 notify
        5000 needs-input permission \"touch d.txt\"
        5000 update
        8000 busy 1 agent
        8000 withdraw
        8100 busy
        8380 review finished
        9580 notify
        ",
    );
}

#[test]
fn q12_request_without_a_dialog() {
    // With status: no amber at all.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook pre Read id=1 x
        1400 hook pr Read x
        1700 hook post Read id=1 x
        5000 hook stop
        5060 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        5060 review finished
        6260 notify
        ",
    );
    // Without status: until the tool's result.
    check(
        "
        0    found
        100  hook start startup
        1000 hook prompt
        1300 hook pre Read id=1 x
        1400 hook pr Read x
        1700 hook post Read id=1 x
        5000 hook stop
        9000 end
        ",
        "
        400  idle
        1000 busy
        1400 needs-input permission \"x\"
        1700 busy
        5000 review finished
        6200 notify
        ",
    );
}

#[test]
fn q12_a_request_that_was_allowed_does_not_lend_its_words() {
    // A subagent's tool was allowed without asking and still runs when another asks.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook pre Bash id=1 make lane=a
        1300 hook pr Bash make lane=a
        4000 hook pre Bash id=2 \"touch b.txt\"
        4080 hook pr Bash \"touch b.txt\"
        4100 file permission
        5000 hook post Bash id=1 make lane=a
        6000 end
        "
        ),
        "
        500  idle
        1000 busy
        4100 needs-input permission \"touch b.txt\"
        5300 notify
        ",
    );
    // The result of a tool that ran beside it is not its answer, with status or without.
    check(
        "
        0    found
        100  hook start startup
        1000 hook prompt
        1200 hook pre Bash id=1 ls
        1300 hook pre Bash id=2 \"touch b.txt\"
        1400 hook pr Bash \"touch b.txt\"
        1500 hook post Bash id=1 ls
        9000 hook post Bash id=2 \"touch b.txt\"
        9100 end
        ",
        "
        400  idle
        1000 busy
        1400 needs-input permission \"touch b.txt\"
        2600 notify
        9000 busy
        9000 withdraw
        ",
    );
    // The person changed the command while allowing it: the call is known by its id.
    check(
        "
        0    found
        100  hook start startup
        1000 hook prompt
        1300 hook pre Bash id=2 \"touch b.txt\"
        1400 hook pr Bash \"touch b.txt\"
        2000 hook post Bash id=2 \"touch c.txt\"
        9100 end
        ",
        "
        400  idle
        1000 busy
        1400 needs-input permission \"touch b.txt\"
        2000 busy
        ",
    );
}

#[test]
fn q12_no_words_rather_than_wrong_ones() {
    // Refused with a comment while the file's busy went unread: the next dialog has its own words or none.
    check(
        &format!(
            "{ASKED}
        3000 tx result id=1
        3100 file permission since=3090
        3180 hook pr Bash \"touch b.txt\"
        4000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        3100 needs-input permission
        3100 withdraw
        3180 needs-input permission \"touch b.txt\"
        "
        ),
    );
    // A question is answered and a subagent's dialog moves to the front; its request is lost.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1480 hook pr AskUserQuestion \"Which colour?\"
        1500 file input
        3000 file permission
        4000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input question \"Which colour?\"
        2700 notify
        3000 needs-input permission
        3000 update
        ",
    );
}

#[test]
fn q11_of_two_requests_beside_the_dialog_neither_is_named() {
    // Which of them was drawn first can't be told; the first answer leaves the other one.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1380 hook pr Bash \"touch a.txt\" lane=a
        1390 hook pr Bash \"touch b.txt\" lane=b
        1500 file permission
        4000 hook post Bash \"touch a.txt\" lane=a
        5000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission
        2700 notify
        4000 needs-input permission \"touch b.txt\"
        ",
    );
    // One that was started after the dialog stood stands behind it, even if the first one's request is lost.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1100 hook sub a
        1500 file permission
        1540 hook pre Bash id=2 \"touch b.txt\"
        1600 hook pr Bash \"touch b.txt\"
        2000 end
        "
        ),
        "
        500  idle
        1000 busy
        1100 busy 1 agent
        1500 needs-input permission
        ",
    );
}

#[test]
fn q11_an_answered_request_does_not_stay_on_the_card() {
    // The file still says that somebody is asked, and the next one's request was lost.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        4000 hook post Bash \"touch a.txt\" lane=a
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        4300 needs-input permission
        4300 update
        ",
    );
    // Three wait, the second one's answer is heard first: the front is the first one or the third.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        2000 hook pr Bash \"touch b.txt\" lane=b
        3000 hook pr Bash \"touch c.txt\"
        5000 hook post Bash \"touch b.txt\" lane=b
        6000 hook post Bash \"touch a.txt\" lane=a
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        5000 needs-input permission
        5000 update
        6000 needs-input permission \"touch c.txt\"
        6000 update
        ",
    );
    // The card is from before a restart.
    check(
        "
        200  restored@100 needs-input episode=4
        210  found
        220  file permission since=90
        300  recovered
        2000 hook post Bash \"touch old.txt\"
        9000 end
        ",
        "
        210  needs-input permission \"touch old.txt\"
        2300 needs-input permission
        ",
    );
}

#[test]
fn q06_a_plan_is_named_by_its_request_alone() {
    // A subagent's dialog is in front; its request was lost.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1450 hook pre ExitPlanMode id=1 \"1. do it\"
        1500 file permission
        2000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission
        ",
    );
}

#[test]
fn q10_a_request_just_before_the_files_busy_is_the_next_dialogs() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        4000 hook pr Bash \"touch b.txt\"
        4010 file busy
        4050 file permission
        4500 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        4010 busy
        4010 withdraw
        4050 needs-input permission \"touch b.txt\"
        ",
    );
}

#[test]
fn q01_a_late_timer_tells_what_is_shown() {
    let mut world = run(&format!(
        "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file permission
        1600 end
        "
    ));
    // No timer fires before the request is heard.
    world.now = 3000;
    let request = Hook {
        id: None,
        at: at(1480),
        agent: Some(key('A')),
        pane: None,
        conversation: None,
        transcript: None,
        cwd: None,
        agent_id: None,
        prompt_id: None,
        job: false,
        kind: HookKind::PermissionRequested {
            tool: ToolCall {
                name: "Bash".into(),
                use_id: None,
                arg: Some("touch a.txt".into()),
                input_digest: 1,
                questions: Vec::new(),
            },
        },
    };
    let hook = Box::new(request);
    let effects = world.fleet.step(at(3000), Event::HookFired { hook });
    let told = effects.into_iter().find_map(|effect| {
        if let Effect::Notify { badge, .. } = effect {
            Some(badge)
        } else {
            None
        }
    });
    assert_eq!(told, world.item('A').badge, "told what is shown");
}

#[test]
fn q16_a_result_that_only_the_transcript_tells() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook pre Bash id=1 x
        1310 tx tool Bash id=1 x
        3000 tx result id=1
        3200 file menu
        3290 tx end
        9000 hook@3000 post Bash id=1 x
        9100 hook@3150 stop
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        3700 review finished
        4900 notify
        ",
    );
}

#[test]
fn q13_notifications_decide_nothing() {
    let notes = |from: u64| -> String {
        [
            "idle_prompt",
            "auth_success",
            "agent_completed",
            "computer_use_enter",
            "invented_tomorrow",
            "agent_needs_input",
            "permission_prompt",
            "",
        ]
        .iter()
        .zip(1..)
        .map(|(kind, n)| format!("{} hook note {kind}\n", from + n * 100))
        .collect()
    };
    check(&format!("{IDLE}{} 90000 end", notes(5000)), "500 idle");
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        {} 90000 end",
            notes(2000)
        ),
        "
        500  idle
        1000 busy
        ",
    );
    check(&format!("{REVIEW}{} 90000 end", notes(62_000)), REVIEW_SEEN);
}

#[test]
fn q14_version_without_status() {
    check(
        "
        0     found
        100   hook start startup
        1000  hook prompt
        1200  hook pre Bash id=1 \"touch a.txt\"
        1600  hook pr Bash \"touch a.txt\"
        7500  hook note permission_prompt
        12800 hook post Bash id=1 \"touch a.txt\"
        13300 hook stop
        20000 hook prompt
        20200 hook pre Bash id=2 \"touch b.txt\"
        20600 hook pr Bash \"touch b.txt\"
        24000 tx interrupt
        30000 hook prompt
        30200 hook pr Bash \"touch c.txt\"
        31000 hook fail Bash id=3 \"touch c.txt\"
        32000 hook stop
        40000 end
        ",
        "
        400   idle
        1000  busy
        1600  needs-input permission \"touch a.txt\"
        2800  notify
        12800 busy
        12800 withdraw
        13300 review finished
        14500 notify
        20000 busy
        20000 withdraw
        20600 needs-input permission \"touch b.txt\"
        21800 notify
        24000 idle (interrupted)
        24000 withdraw
        30000 busy
        30200 needs-input permission \"touch c.txt\"
        31000 busy
        32000 review finished
        33200 notify
        ",
    );
    // Nothing but the seven original hooks: the Notification is all there is.
    check(
        "
        0     found
        100   hook start startup
        1000  hook prompt
        7500  hook note permission_prompt
        12800 hook post Bash id=1 x
        13300 hook stop
        14000 end
        ",
        "
        400   idle
        1000  busy
        7500  needs-input permission
        8700  notify
        12800 busy
        12800 withdraw
        13300 review finished
        ",
    );
}

#[test]
fn q15_question_behind_an_idle_file() {
    // The file turns idle as the question opens.
    let open = "
        1000 hook prompt
        1050 file busy
        1300 hook pre AskUserQuestion id=1 \"Which colour?\"
        1400 hook pr AskUserQuestion \"Which colour?\"
        1410 tx tool AskUserQuestion id=1 \"Which colour?\"
        1450 file idle
    ";
    let shown = "
        500  idle
        1000 busy
        1950 needs-input question \"Which colour?\"
        3150 notify
    ";
    // Until its result; then the Stop makes review.
    check(
        &format!(
            "{IDLE}{open}
        50000 hook post AskUserQuestion id=1 \"Which colour?\"
        50010 tx result id=1
        50400 hook stop
        60000 end
        "
        ),
        &format!(
            "{shown}
        50000 busy
        50000 withdraw
        50400 review finished
        51600 notify
        "
        ),
    );
    // Until the marker.
    check(
        &format!(
            "{IDLE}{open}
        50000 tx interrupt
        60000 end
        "
        ),
        &format!(
            "{shown}
        50000 busy
        50000 withdraw
        50500 idle (interrupted)
        "
        ),
    );
    // Until the next prompt.
    check(
        &format!(
            "{IDLE}{open}
        50000 hook prompt
        50050 file busy
        55000 end
        "
        ),
        &format!(
            "{shown}
        50000 busy
        50000 withdraw
        "
        ),
    );
    // The file never left idle at all.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1300 hook pre AskUserQuestion id=1 \"Which colour?\"
        1400 hook pr AskUserQuestion \"Which colour?\"
        1410 tx tool AskUserQuestion id=1 \"Which colour?\"
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1900 needs-input question \"Which colour?\"
        3100 notify
        ",
    );
}

#[test]
fn q16_turn_ends_under_an_open_menu() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        8000 hook stop
        8060 file menu
        12000 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        8060 review finished
        9260 notify
        ",
    );
    // The Stop after the file.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        8060 file menu
        8100 hook stop
        12000 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        8100 review finished
        9300 notify
        ",
    );
    // Without hooks: half a second after the file the transcript is asked.
    check(
        "
        0    found
        60   key
        250  file none
        500  file idle
        1050 file busy
        1200 tx prompt
        8060 file menu
        8160 tx end
        12000 file idle
        20000 end
        ",
        "
        500  idle
        1050 busy
        8560 review finished
        9760 notify
        ",
    );
}

#[test]
fn q17_menu_opened_and_closed_in_mid_turn() {
    // The file stays busy; and even where it said so, nothing would stand open.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook pre Bash id=1 x
        1300 hook post Bash id=1 x
        3000 file menu
        6000 file busy
        8000 hook stop
        8060 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        8060 review finished
        9260 notify
        ",
    );
}

#[test]
fn q08_h07_a_dialog_after_a_spent_stop_whose_next_hooks_are_late() {
    // The Stop lists subagents and a queued prompt was taken up; only the transcript has the tool that asks.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1100 tx prompt
        2000 hook stop agents=2
        2100 tx end
        2200 tx prompt
        3000 tx@2950 tool Bash id=3 \"rm -rf /etc/lab\"
        3050 file menu
        5000 hook@2950 pre Bash id=3 \"rm -rf /etc/lab\"
        6000 end
        "
        ),
        "
        500  idle
        1000 busy
        2000 busy 2 agent
        3550 needs-input dialog \"rm -rf /etc/lab\"
        4750 notify
        ",
    );
}

#[test]
fn q05_h07_a_reading_that_comes_twice_makes_no_other_card() {
    // A subagent's question of the same words has its result; the main lane's still stands.
    let once = format!(
        "{IDLE}
        1000 hook prompt
        1050 file busy
        1400 hook pre AskUserQuestion id=5 \"Which colour?\"
        1450 hook@1510 post AskUserQuestion id=4 \"Which colour?\" lane=a
        1500 file input
        "
    );
    let ask = |script: &str| run(script).item('A').badge;
    // Of two requests neither is named, and the file itself has words for what moved to the front.
    let doubt = format!(
        "{IDLE}
        1000 hook prompt
        1050 file busy
        1490 hook pr Bash make lane=a
        1495 hook pr Bash make lane=b
        1500 file permission
        2000 file worker
        "
    );
    assert_eq!(
        run(&doubt).item('A').badge,
        run(&format!("{doubt}\n2000 file worker")).item('A').badge
    );
    let (first, again) = (
        ask(&format!("{once}\n1800 torn\n2000 file worker\n4000 end")),
        ask(&format!(
            "{once}\n1500 file input\n1800 torn\n2000 file worker\n4000 end"
        )),
    );
    assert_eq!(first, again);
}

#[test]
fn q11_what_was_asked_after_the_answer_did_not_wait_behind_it() {
    // The file says nothing when the first of two is answered: who is in front now was asked before. Of that one
    // only the tool was heard, its request was lost.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1480 hook pre Bash id=1 \"touch a.txt\" lane=a
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        3000 hook pre Bash id=2 \"touch b.txt\" lane=b
        5000 hook post Bash id=1 \"touch a.txt\" lane=a
        5100 hook pre Bash id=3 \"touch c.txt\" lane=a
        5150 hook pr Bash \"touch c.txt\" lane=a
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        5300 needs-input permission
        5300 update
        ",
    );
    // The file told of another kind of dialog, and then of one that was asked long after.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1495 hook form Pick
        1500 file input
        2000 file permission
        5000 hook@5000 pr Bash \"touch c.txt\" lane=a
        6000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input form \"Pick\"
        2000 needs-input permission
        2700 notify
        ",
    );
}

#[test]
fn q11_a_dialog_of_another_kind_means_that_the_first_was_answered() {
    // Its result is late: its words do not come back with the next dialog of its kind.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        3000 hook form Pick
        5000 file input
        5300 hook pre Bash id=4 \"touch b.txt\" lane=a
        5420 file permission
        5450 hook@5150 post Bash id=1 \"touch a.txt\" lane=a
        5640 hook@5310 pr Bash \"touch b.txt\" lane=a
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        5000 needs-input form \"Pick\"
        5000 update
        5420 needs-input permission
        5420 update
        5640 needs-input permission \"touch b.txt\"
        ",
    );
}

#[test]
fn q12_h07_the_transcript_answers_a_request_that_arrives_late() {
    // The first asked nobody; its result is in the transcript before its request is here.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 tx tool Bash id=1 \"touch a.txt\"
        1200 tx tool Bash id=2 \"touch b.txt\"
        1700 tx@1600 result id=1
        1800 file permission
        2000 hook@1450 pr Bash \"touch a.txt\"
        2500 hook@1620 pre Bash id=2 \"touch b.txt\"
        2600 hook@1770 pr Bash \"touch b.txt\"
        2700 hook@1600 post Bash id=1 \"touch a.txt\"
        4000 end
        "
        ),
        "
        500  idle
        1000 busy
        1800 needs-input permission
        2600 needs-input permission \"touch b.txt\"
        3000 notify
        ",
    );
}

#[test]
fn q11_beside_subagents_a_request_after_the_file_names_nothing() {
    // The subagent's own request comes three seconds late; until then the main lane's looks like the one. Whose dialog
    // stands when the later request has its answer can't be told while hooks come that late.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook sub a lane=a
        1500 file permission
        1700 hook@1683 pr Bash \"touch b.txt\"
        4000 hook@1470 pr Bash \"touch a.txt\" lane=a
        4500 hook post Bash id=2 \"touch b.txt\"
        6000 end
        "
        ),
        "
        500  idle
        1000 busy
        1300 busy 1 agent
        1500 needs-input permission
        2700 notify
        4000 needs-input permission \"touch a.txt\"
        4500 needs-input permission
        4500 update
        ",
    );
    // In time they are believed: the later one asked nobody.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook sub a lane=a
        1470 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        1683 hook pr Bash \"touch b.txt\"
        4500 hook post Bash id=2 \"touch b.txt\"
        6000 end
        "
        ),
        "
        500  idle
        1000 busy
        1300 busy 1 agent
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        ",
    );
}

#[test]
fn q08_the_result_of_what_was_asked_may_be_here_before_the_file() {
    // Of two writes the reader saw the last, 70 ms late: not busy for a moment, and no second alarm.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1400 hook pre Bash id=1 \"rm -rf /etc/lab\"
        1500 file menu
        5040 hook post Bash id=1 \"rm -rf /etc/lab\"
        5060 file@5000 permission
        8000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input dialog \"rm -rf /etc/lab\"
        2700 notify
        5060 needs-input permission
        5060 update
        ",
    );
    // The file says nothing more: then the tool's result counts.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1400 hook pre Bash id=1 \"rm -rf /etc/lab\"
        1500 file menu
        5040 hook post Bash id=1 \"rm -rf /etc/lab\"
        8000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input dialog \"rm -rf /etc/lab\"
        2700 notify
        5340 busy
        5340 withdraw
        ",
    );
}

#[test]
fn q14_the_transcript_answers_where_the_result_s_hook_is_late() {
    // A version without status: the second command on the card, not the first.
    check(
        "
        0    found
        200  hook start startup
        1000 hook prompt
        1300 hook pre Bash id=1 \"touch a.txt\"
        1310 tx tool Bash id=1 \"touch a.txt\"
        1390 hook pr Bash \"touch a.txt\"
        4000 tx@3900 result id=1
        4050 hook pr Bash \"touch b.txt\"
        8000 hook@3900 post Bash id=1 \"touch a.txt\"
        9000 end
        ",
        "
        500  idle
        1000 busy
        1390 needs-input permission \"touch a.txt\"
        2590 notify
        4000 busy
        4000 withdraw
        4050 needs-input permission \"touch b.txt\"
        5250 notify
        ",
    );
}

#[test]
fn q14_a_clock_that_is_set_back_hides_no_turn() {
    check(
        "
        0    found
        200  hook start startup
        1000 clock -60000
        2000 hook@2000 prompt
        2300 hook pre Bash id=1 ls
        4000 hook stop
        9000 end
        ",
        "
        500  idle
        2000 busy
        4000 review finished
        5200 notify
        ",
    );
}

/// The tools that ask: their start, what the file says, the request's hook, and the card.
const KINDS: [(&str, &str, &str, &str); 4] = [
    (
        "pre Bash id=9 ls",
        "permission",
        "pr Bash ls",
        "permission \"ls\"",
    ),
    (
        "pre ExitPlanMode id=9 steps",
        "permission",
        "pr ExitPlanMode steps",
        "plan \"steps\"",
    ),
    (
        "pre AskUserQuestion id=9 Which?",
        "input",
        "pr AskUserQuestion Which?",
        "question \"Which?\"",
    ),
    ("pre mcp__lab id=9 x", "input", "form Pick", "form \"Pick\""),
];

/// What came before: nothing; a plan that was refused by Esc; one that was refused with a comment, in the same turn;
/// a subagent that has ended.
const BEFORE: [(&str, &str); 4] = [
    (
        "",
        "
        3000 hook prompt
        3050 file busy
        3300 hook sub a
        3400 hook pre Read id=2 x lane=a
        3500 hook post Read id=2 x lane=a
        3600 hook subend a
        ",
    ),
    ("9000 hook prompt\n 9050 file busy", ""),
    (
        "9000 hook prompt\n 9050 file busy",
        "
        3000 hook prompt
        3050 file busy
        3300 hook pre ExitPlanMode id=1 steps
        3490 hook pr ExitPlanMode steps
        3500 file permission
        6000 file idle
        6100 tx interrupt
        ",
    ),
    (
        "",
        "
        3000 hook prompt
        3050 file busy
        3300 hook pre ExitPlanMode id=1 steps
        3490 hook pr ExitPlanMode steps
        3500 file permission
        6000 file busy
        ",
    ),
];

/// A dialog at 10000 whose hooks were stamped and heard so many ms after it.
fn asked_with(
    (begins, before): (&str, &str),
    (start, waiting, request, _): (&str, &str, &str, &str),
    (started, stamped): (i64, i64),
    (start_heard, heard): (u64, u64),
) -> World {
    let moment = |after: i64| 10_000_u64.saturating_add_signed(after);
    let mut lines = [
        (moment(0), format!("{} file {waiting}", moment(0))),
        (
            moment(started) + start_heard,
            format!(
                "{} hook@{} {start}",
                moment(started) + start_heard,
                moment(started)
            ),
        ),
        (
            moment(stamped) + heard,
            format!(
                "{} hook@{} {request}",
                moment(stamped) + heard,
                moment(stamped)
            ),
        ),
    ];
    lines.sort();
    let [one, two, three] = lines.map(|(_, line)| line);
    run(&format!(
        "{IDLE}\n{before}\n{begins}\n{one}\n{two}\n{three}\n16000 end"
    ))
}

#[test]
fn q05_q06_q07_what_is_asked_is_mended_in_place_however_late_its_request() {
    for story in BEFORE {
        for asked in KINDS {
            for stamped in [-190, -150, -10, 0, 40, 60, 100, 180, 240, 320, 490] {
                // The process of either hook may be the slower one to start.
                for started in [-300, stamped - 20, stamped + 10, stamped + 300] {
                    for heard in [(0, 0), (1, 1), (0, 80), (700, 0), (0, 3_000), (3_000, 700)] {
                        let world = asked_with(story, asked, (started.max(-900), stamped), heard);
                        let seen = world.seen.join("\n");
                        let what =
                            format!("{story:?} {asked:?} {stamped} {started} {heard:?}\n{seen}");
                        let card = crate::dsl::words(&world.item('A'));
                        assert_eq!(card, format!("needs-input {}", asked.3), "{what}");
                        let since = world.seen.iter().rposition(|l| l.ends_with("busy"));
                        let told: Vec<&str> = world.seen[since.expect("busy")..]
                            .iter()
                            .filter_map(|l| l.split_once(' '))
                            .map(|(_, word)| word)
                            .filter(|word| matches!(*word, "notify" | "update"))
                            .collect();
                        assert_eq!(told, ["notify"], "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn q15_h07_a_hidden_question_that_is_answered_ends_with_its_stop_at_once() {
    // The file rests anew as the question is found: no second word is needed to see that its Stop has come.
    check(
        &format!(
            "{IDLE}
        5000 file menu
        5048 hook pr AskUserQuestion Which?
        5100 hook stop
        5110 tx tool AskUserQuestion id=1 Which?
        5548 file idle
        5548 file idle
        9000 end
        "
        ),
        "
        500  idle
        5548 needs-input question \"Which?\"
        5548 review finished
        6748 notify
        ",
    );
}

#[test]
fn q11_h07_another_dialog_in_front_is_named_at_once_or_not_at_all() {
    // Its card says the same however often the file is read.
    for again in ["", "6200 file worker since=6150"] {
        check(
            &format!(
                "{IDLE}
            1000 hook prompt
            1050 file busy
            4990 hook pr ExitPlanMode steps
            5000 file permission
            6000 tx interrupt
            6001 hook pr Bash \"touch a.txt\" lane=a
            6200 file worker since=6150
            {again}
            9900 end
            "
            ),
            "
            500  idle
            1000 busy
            5000 needs-input plan \"steps\"
            6200 notify
            6200 needs-input permission \"touch a.txt\"
            6200 update
            ",
        );
    }
}

#[test]
fn q11_a_lane_that_asks_again_had_its_answer() {
    // One subagent's result is lost; whose dialog stands now can't be told.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        2600 hook pr Bash \"touch b.txt\" lane=a
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission \"touch a.txt\"
        2600 needs-input permission
        2700 notify
        ",
    );
}

#[test]
fn q03_q11_esc_goes_to_the_dialog_in_front() {
    // The subagent's was answered and its result is lost: what Esc refuses is the main lane's.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook sub a lane=a
        1490 hook pr Bash \"touch a.txt\" lane=a
        1500 file permission
        2000 hook pr Bash \"touch b.txt\"
        6100 tx interrupt
        6150 hook pr Bash \"touch c.txt\" lane=b
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1300 busy 1 agent
        1500 needs-input permission \"touch a.txt\"
        2700 notify
        6150 needs-input permission \"touch c.txt\"
        6150 update
        ",
    );
}

#[test]
fn q14_a_lane_asks_one_thing_at_a_time() {
    // Without status: the first one's result is still on its way, or its request comes late.
    for requests in [
        "1400 hook pr Bash \"touch a.txt\"\n 4000 hook pr Bash \"touch b.txt\"",
        "4000 hook pr Bash \"touch b.txt\"\n 4100 hook@1400 pr Bash \"touch a.txt\"",
    ] {
        let world = run(&format!(
            "
            0    found
            100  hook start startup
            1000 hook prompt
            {requests}
            4200 end
            "
        ));
        let card = crate::dsl::words(&world.item('A'));
        assert_eq!(card, "needs-input permission \"touch b.txt\"");
    }
}

#[test]
fn q08_h11_what_a_torn_file_says_is_not_known() {
    // A dialog of auto mode is answered while the file can't be read: its Stop does not make the menu of it the
    // person's own.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook pre Bash id=1 ls
        1400 file menu
        5000 torn
        5070 hook post Bash id=1 ls
        5270 hook stop
        5470 file@5350 idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1400 needs-input dialog \"ls\"
        2600 notify
        5370 busy
        5370 withdraw
        5470 review finished
        6670 notify
        ",
    );
    // It was idle for a moment, and is written again as the next turn begins, whose Stop this is.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        5000 file idle
        5016 torn
        5160 hook stop
        5400 file@5030 busy
        5500 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        5500 review finished
        6700 notify
        ",
    );
    // Under a torn file the person's menu was closed, and a turn began and ended.
    check(
        &format!(
            "{IDLE}
        1000 file menu
        1500 torn
        1600 hook prompt
        1800 hook stop
        2300 file@1900 idle
        9000 end
        "
        ),
        "
        500  idle
        1600 busy
        2300 review finished
        3500 notify
        ",
    );
}

#[test]
fn q08_h11_a_dialog_of_auto_mode_after_a_busy_that_nobody_saw() {
    // Idle, a prompt, and the file can't be read until Claude asks.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file idle
        1650 hook prompt
        1680 torn
        1800 hook pre Bash id=1 ls
        2200 file@1900 menu
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2200 needs-input dialog \"ls\"
        3400 notify
        ",
    );
    // A dialog was answered, and the next tool asks.
    check(
        &format!(
            "{ASKED}
        5000 torn
        5100 hook post Bash id=1 \"touch a.txt\"
        5300 hook pre Bash id=2 ls
        5600 file@5500 menu
        9000 end
        "
        ),
        &format!(
            "{ASKED_SEEN}
        2700 notify
        5400 needs-input permission
        5400 update
        5600 needs-input dialog \"ls\"
        5600 withdraw
        6800 notify
        "
        ),
    );
}

#[test]
fn q10_what_was_on_the_card_is_not_the_next_dialogs() {
    // Answered at once; the next one's request is lost.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook sub a
        1509 hook pr Bash \"touch a.txt\" lane=a
        1510 file permission
        1594 file busy
        1987 file permission
        3000 end
        "
        ),
        "
        500  idle
        1000 busy
        1200 busy 1 agent
        1510 needs-input permission \"touch a.txt\"
        1594 busy 1 agent
        1987 needs-input permission
        ",
    );
}

#[test]
fn q08_h11_a_tool_s_start_alone_tells_of_a_turn_behind_a_menu() {
    // The prompt's hook was lost, and the file could not be read while it was busy.
    check(
        &format!(
            "{IDLE}
        5000 torn
        5210 hook pre Bash ls id=t1
        5800 file@5340 menu
        9000 end
        "
        ),
        r#"
        500   idle
        5800  needs-input dialog "ls"
        7000  notify
        "#,
    );
    // Of a tool that Esc cut off, the process of its hook was slow to start: the menu is the person's.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 file idle
        3400 hook pre Bash ls id=t1
        9000 file menu
        9900 end
        "
        ),
        "
        500     idle
        1000    busy
        3500    idle
        ",
    );
}

#[test]
fn q08_h11_no_dialog_follows_an_answered_one_while_the_file_cannot_be_read() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 tx tool Bash ls id=t1
        1300 file menu
        9000 torn
        9100 hook post Bash ls id=t1
        9600 tx tool form id=t2
        9750 file@9650 idle
        20000 end
        "
        ),
        r#"
        500   idle
        1000  busy
        1800  needs-input dialog "ls"
        3000  notify
        9400  busy
        9400  withdraw
        10150 idle (ended without Stop)
        "#,
    );
}

#[test]
fn q14_a_result_alone_tells_of_a_turn() {
    let start = "0 found\n 1000 hook start startup\n";
    // All hooks before it were lost.
    check(
        &format!("{start} 9000 hook fail Bash ls id=t1\n 20000 end"),
        "
        1300  idle
        9000  busy
        ",
    );
    check(
        &format!(
            "{start}
        2000 hook prompt
        3000 hook stop
        3500 hook post Bash ls id=t1   # that turn's: its process was slow to start
        3501 hook post Bash ps id=t2
        20000 end
        "
        ),
        "
        1300    idle
        2000    busy
        3000    review finished
        3501    busy
        ",
    );
}

#[test]
fn q14_what_esc_cut_off_asks_nobody() {
    // The process of its request's hook started when the marker was written.
    let turn = "
        0    found
        1000 hook start startup
        2000 hook prompt
        3000 hook pre Bash ls id=t1
        3100 tx interrupt
        ";
    check(
        &format!("{turn} 3101 hook pr Bash ls\n 20000 end"),
        "
        1300  idle
        2000  busy
        3100  idle (interrupted)
        ",
    );
    check(
        &format!("{turn} 3300 hook pr Bash ls\n 20000 end"),
        "
        1300    idle
        2000    busy
        3100    idle (interrupted)
        ",
    );
    // A moment later its prompt's hook was lost.
    check(
        &format!("{turn} 3301 hook pr Bash ls\n 20000 end"),
        r#"
        1300    idle
        2000    busy
        3100    idle (interrupted)
        3301    needs-input permission "ls"
        4501    notify
        "#,
    );
    // After another prompt it is that one's.
    check(
        &format!("{turn} 3200 hook prompt\n 3300 hook pr Bash ls\n 20000 end"),
        r#"
        1300    idle
        2000    busy
        3100    idle (interrupted)
        3200    busy
        3300    needs-input permission "ls"
        4500    notify
        "#,
    );
}

#[test]
fn p09_h07_a_stop_that_comes_after_its_review_was_read_is_spent() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 tx error server_error
        2005 file idle
        5000 seen
        6000 hook@2010 stopfail server_error
        7000 file menu
        9000 end
        "
        ),
        "
        500   idle
        1000  busy
        2505  review failed(server_error)
        3705  notify
        5000  idle (failed: server_error)
        5000  withdraw
        ",
    );
}

#[test]
fn q08_h06_a_dialog_whose_tool_only_the_transcript_names_stays() {
    let first = format!(
        "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook pre Bash ls id=t1
        ",
    );
    // The result of the first tool is not heard, and the transcript tells of both at once.
    check(
        &format!(
            "{first}
        3000 file menu
        3100 tx@2800 result id=t1
        3101 tx@2900 tool Bash ps id=t2
        9000 end
        "
        ),
        r#"
        500     idle
        1000    busy
        3000    needs-input dialog "ls"
        3100    needs-input dialog
        3500    needs-input dialog "ps"
        4200    notify
        "#,
    );
    // Or of the second one only when it is asked.
    check(
        &format!(
            "{first}
        3000 file menu
        3100 tx@2800 result id=t1
        3101 tx@2900 tool Bash ps id=t2 unseen
        9000 end
        "
        ),
        r#"
        500     idle
        1000    busy
        3000    needs-input dialog "ls"
        3100    needs-input dialog
        3500    needs-input dialog "ps"
        4200    notify
        "#,
    );
    // There is no second one: the menu is the person's.
    check(
        &format!(
            "{first}
        3000 file menu
        3100 tx@2800 result id=t1
        9000 end
        "
        ),
        r#"
        500     idle
        1000    busy
        3000    needs-input dialog "ls"
        3100    needs-input dialog
        3500    busy
        "#,
    );
}

#[test]
fn b05_h11_a_queued_turn_that_asks_at_once() {
    // The hook of its prompt is older than the idle between, and the file could not be read while it was busy.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 hook prompt
        5000 file idle
        5030 torn
        5150 hook pre Bash ls id=t1
        5160 tx@5032 prompt
        5600 file@5260 menu
        9000 end
        "
        ),
        r#"
        500     idle
        1000    busy
        5600    needs-input dialog "ls"
        6800    notify
        "#,
    );
}

#[test]
fn q07_h11_an_answered_form_becomes_no_question_while_the_file_cannot_be_read() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook form Which?
        1205 file input
        9000 torn
        9050 hook formdone
        9800 file@9010 permission
        12000 end
        "
        ),
        r#"
        500     idle
        1000    busy
        1205    needs-input form "Which?"
        2405    notify
        9350    needs-input form
        9350    update
        9800    needs-input permission
        9800    update
        "#,
    );
}

#[test]
fn q11_what_a_lone_lane_asks_stays_on_the_card() {
    // The lane asks again later: the first was answered, unheard, or the second call ran beside it and its hook was slow.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook pre Bash ls id=t1
        1201 hook pre Bash ps id=t2
        1250 hook pr Bash ls
        1260 file permission
        3300 hook pr Bash ps
        9000 end
        "
        ),
        r#"
        500     idle
        1000    busy
        1260    needs-input permission "ls"
        2460    notify
        "#,
    );
}
