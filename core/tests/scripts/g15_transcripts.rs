//! Transcripts: what a branch that was given up and a subagent's lines must not do, and what a row shows beside its
//! badge.

use crate::dsl::{check, run};

/// Without hooks, so that the transcript alone tells a turn's end from its interruption.
const TURN: &str = "
    0    found
    500  file idle
    1050 file busy
    1060 tx prompt
    2000 tx usage 14000 model=claude-opus-5-5
    2010 tx end says=two
    2060 file idle
";

const TURN_SEEN: &str = "
    500  idle
    1050 busy
    2560 review finished
    3760 notify
";

#[test]
fn t06_a_branch_that_was_given_up_decides_nothing() {
    // The marker of the abandoned turn is read late, in one piece with the prompt that goes back behind it.
    let world = check(
        &format!(
            "{TURN}
        5000  file busy
        5010  tx prompt
        6000  tx usage 15000
        6100  file idle
        9000  file busy
        9010  tx@6080 interrupt
        9020  tx rewound to=2020
        9020  tx prompt
        9900  tx usage 14500
        9910  tx end says=three
        10000 file idle
        20000 end
        "
        ),
        &format!(
            "{TURN_SEEN}
        5000  busy
        5000  withdraw
        6600  idle
        9000  busy
        10500 review finished
        11700 notify
        "
        ),
    );
    let item = world.item('A');
    assert_eq!(item.last_message.as_deref(), Some("three"));
    assert_eq!(item.context_tokens, Some(14_500));
}

#[test]
fn t06_after_going_back_the_row_shows_what_still_counts() {
    let mut world = run(&format!(
        "{TURN}
        5000  file busy
        5010  tx prompt
        6000  tx usage 15000
        6050  tx end says=gone
        6100  file idle
        9000  file busy
        "
    ));
    let item = world.item('A');
    assert_eq!(item.last_message.as_deref(), Some("gone"));
    assert_eq!(item.context_tokens, Some(15_000));
    world.line("9020 tx rewound to=2020");
    world.line("9020 tx prompt");
    let item = world.item('A');
    assert_eq!(item.last_message.as_deref(), Some("two"));
    assert_eq!(item.context_tokens, Some(14_000));
    assert_eq!(item.model.as_deref(), Some("claude-opus-5-5"));
    // And to before everything.
    world.line("9500 tx rewound");
    let item = world.item('A');
    assert_eq!((item.last_message, item.context_tokens), (None, None));
}

#[test]
fn t06_an_abandoned_end_is_no_end_of_the_live_turn() {
    // A version without a status in its file: hooks lost, the transcript alone decides. The end marker belongs to
    // the branch that the live prompt goes back behind, though both are read at once.
    check(
        "
        0     found
        100   hook start startup
        1000  hook prompt
        1100  tx prompt
        2000  tx interrupt
        3000  hook prompt
        3100  tx prompt
        3200  tx@2900 end
        3200  tx rewound to=1100
        3200  tx prompt
        60000 end
        ",
        "
        400  idle
        1000 busy
        2000 idle (interrupted)
        3000 busy
        ",
    );
}

#[test]
fn t08_lines_of_subagents_never_decide() {
    check(
        "
        0     found
        500   file idle
        1050  file busy
        1060  tx prompt
        1500  tx tool Agent id=t1
        1600  tx prompt sidechain
        2000  tx end sidechain
        2100  tx interrupt sidechain
        2200  tx error rate_limit sidechain
        3000  tx result id=t1
        3100  tx end
        3200  file idle
        4000  tx interrupt sidechain
        20000 end
        ",
        "
        500  idle
        1050 busy
        3700 review finished
        4900 notify
        ",
    );
    // A turn of which only a subagent's end is written was ended by Esc.
    check(
        "
        0     found
        500   file idle
        1050  file busy
        1060  tx prompt
        2000  tx end sidechain
        3200  file idle
        20000 end
        ",
        "
        500  idle
        1050 busy
        3700 idle
        ",
    );
}

#[test]
fn a_look_at_a_file_shows_what_it_is_called_and_moves_no_badge() {
    // After a restart: idle, its file not followed.
    let mut world = run("
        900 restored@100 idle
        1000 found
        1010 file idle since=100
        1020 recovered
        1100 tx first \"refactor the tax code\"
        1100 tx usage 14000 model=claude-opus-5-5
        1100 tx words \"all done\"
    ");
    let item = world.item('A');
    assert_eq!(&*item.title, "refactor the tax code");
    assert_eq!(item.last_message.as_deref(), Some("all done"));
    assert_eq!(item.context_tokens, Some(14_000));
    // A title stands before the first prompt, the person's own before Claude's, whenever it is read.
    world.line("1200 tx title \"Tax code\"");
    assert_eq!(&*world.item('A').title, "Tax code");
    world.line("1300 tx title \"My taxes\" named");
    world.line("1400 tx title \"Tax code, again\"");
    assert_eq!(&*world.item('A').title, "My taxes");
    assert_eq!(world.seen, ["1000 idle"]);
    // Words that came by a hook are newer than a look.
    world.line("2000 hook prompt");
    world.line("3000 hook stop says=newest");
    world.line("3100 tx words \"all done\"");
    assert_eq!(
        world.item('A').last_message.as_deref(),
        Some("newest"),
        "a look brings nothing new"
    );
}

#[test]
fn another_conversation_begins_without_the_old_one_s_words_and_numbers() {
    let mut world = run(&format!(
        "{TURN}
        5000 tx title Taxes named
        5100 hook bye clear
        5150 hook start clear conv=new
        5200 file idle conv=new
        "
    ));
    let item = world.item('A');
    assert_eq!((&item.last_message, item.context_tokens), (&None, None));
    assert!(!item.title.contains("Taxes"), "{}", item.title);
    world.line("6000 tx title \"The next thing\"");
    assert_eq!(&*world.item('A').title, "The next thing");
}

#[test]
fn e02_another_request_without_an_answer_is_a_retry() {
    check(
        "
        0    found
        500  file idle
        1000 hook prompt
        1050 file busy
        1200 tx@1010 prompt
        1200 tx@1100 request
        1700 tx@1600 request
        2900 tx@2800 request
        5000 tx@4900 usage 14000
        5000 tx@4900 tool Bash
        5100 hook pre Bash
        6000 hook post Bash
        6100 tx@6000 result id=t1
        6200 tx@6100 request
        7000 hook stop
        7060 file idle
        9000 file busy
        9060 hook prompt
        9200 tx@9060 prompt
        9300 tx@9200 request
        9900 tx@9700 request
        12000 file idle
        # The prompt returns to the box, and another is sent: nothing of it has been asked yet.
        15000 file busy
        15060 hook prompt
        17000 end
        ",
        "
        500  idle
        1000 busy
        1700 busy retrying
        5000 busy
        7060 review finished
        8260 notify
        9000 busy
        9000 withdraw
        9900 busy retrying
        12000 busy
        12500 idle
        15000 busy
        ",
    );
}
