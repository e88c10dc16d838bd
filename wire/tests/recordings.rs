//! Every recorded run of the real Claude Code, played into the fleet and compared with its `expect` file. One
//! test for each run, named after it and the cases of the catalogue that it exercises.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

mod replay;

use purplemux_wire::journal::{self, Record};
use purplemux_wire::recording as export;
use replay::perturb::{self, Chance};
use replay::recording::Moment;
use replay::{expect, judge, recording, world};

macro_rules! recordings {
    ($($test:ident => $run:literal,)*) => {
        /// Every test with its run.
        const TESTS: &[(&str, &str)] = &[$((stringify!($test), $run)),*];

        $(
            #[test]
            fn $test() {
                plays_right($run);
            }
        )*
    };
}

recordings! {
    c1_menu_busy_q16_q17_d02 => "c1_menu_busy",
    c2_menu_over_end_q16_q17_d02 => "c2_menu_over_end",
    c3_keys_busy_q17_p02_d02 => "c3_keys_busy",
    c4_idle_menu_then_bg_b04_q09_d02 => "c4_idle_menu_then_bg",
    c5_rewind_q09_p02_d02 => "c5_rewind",
    c6_perm_over_menu_a11_q01_q03_q17_d02 => "c6_perm_over_menu",
    d1_two_settings_k09_i06_d02 => "d1_two_settings",
    d2_sub_k09_p02_d01 => "d2_sub",
    d3_badevent_d06_i06_d02 => "d3_badevent",
    d4_inline_k09_i06_d02 => "d4_inline",
    e2_free_text_q01_q04_d02 => "e2_free_text",
    e3_interrupt_send_i01_d02 => "e3_interrupt_send",
    f1_digit_text_a10_q01_q04_d02 => "f1_digit_text",
    f2_paste_text_a10_q01_q04_d02 => "f2_paste_text",
    f3_menu_over_end_nohooks_q16_q17_k07_d02 => "f3_menu_over_end_nohooks",
    f4_digit_keys_a10_q02_d02 => "f4_digit_keys",
    f5_double_a12_q02_d02 => "f5_double",
    g1_queued_turn_esc_b12_b05_d02 => "g1_queued_turn_esc",
    g2_bg_agent_esc_b01_d02 => "g2_bg_agent_esc",
    s01_start_idle_p01 => "s01_start_idle",
    s02_simple_p01_p02_q01_q02_d02 => "s02_simple",
    s03_bash_approve_p02_q01_q02_d02 => "s03_bash_approve",
    s03b_approve_long_tool_p02_q01_q02_d02 => "s03b_approve_long_tool",
    s04_deny_q01_q03_d02 => "s04_deny",
    s05_perm_left_alone_p02_q01_q02_d02 => "s05_perm_left_alone",
    s05_perm_left_alone_v21128_q01_q02_n10_d02 => "s05_perm_left_alone_v21128",
    s05_perm_left_alone_v21200_q01_q02_n10_d02 => "s05_perm_left_alone_v21200",
    s05b_perm_keys_defer_q01_q02_q04_d02 => "s05b_perm_keys_defer",
    s06a_esc_streaming_i01_p02_d02 => "s06a_esc_streaming",
    s06a_esc_streaming_v21128_i01_p02_n10_d02 => "s06a_esc_streaming_v21128",
    s06a_esc_streaming_v21200_i01_p02_n10_d02 => "s06a_esc_streaming_v21200",
    s06b_esc_before_first_token_i02_p02_d02 => "s06b_esc_before_first_token",
    s06b_esc_before_first_token_v21128_i02_p02_n10_d02 => "s06b_esc_before_first_token_v21128",
    s06b_esc_before_first_token_v21200_i02_p02_n10_d02 => "s06b_esc_before_first_token_v21200",
    s06c_esc_running_tool_i03_d02 => "s06c_esc_running_tool",
    s06d_ctrl_c_i01_q01_q04_d02 => "s06d_ctrl_c",
    s06e_esc_then_idle_i01_d02 => "s06e_esc_then_idle",
    s07_ask_q05_d02 => "s07_ask",
    s08_plan_q06_d02 => "s08_plan",
    s09a_task_permission_b02_q01_d02 => "s09a_task_permission",
    s09a_task_permission_v21128_b02_n10_q01_d02 => "s09a_task_permission_v21128",
    s09a_task_permission_v21200_b02_n10_q01_d02 => "s09a_task_permission_v21200",
    s09b_bgtask_permission_b01_b02_d02 => "s09b_bgtask_permission",
    s09c_bgtask_plain_b01_t08_d02 => "s09c_bgtask_plain",
    s09d_bg_bash_b04_d02 => "s09d_bg_bash",
    s10a_compact_manual_p02_c01_c03_b03_d02 => "s10a_compact_manual",
    s10b_compact_auto_p02_c02_b03_d02 => "s10b_compact_auto",
    s11_clear_resume_p02_p09_q09_r01_r03_r04_r06_d01_d02 => "s11_clear_resume",
    s12a_errors_e01_c05_d02 => "s12a_errors",
    s12b_retry_e02_i02_p02_d02 => "s12b_retry",
    s12c_retry_exhausted_e03_d02 => "s12c_retry_exhausted",
    s13_exits_p02_d01_d02_d03 => "s13_exits",
    s13b_kill_pane_d02 => "s13b_kill_pane",
    s14_queue_b05_b06_p02_d02 => "s14_queue",
    s14b_queued_needs_permission_b07_d02 => "s14b_queued_needs_permission",
    s15_slash_bang_q09_p07_p08_d02 => "s15_slash_bang",
    s15b_bang_long_p02_p08_i04_d02 => "s15b_bang_long",
    s16_idle_p02_q13_d02 => "s16_idle",
    s17_headless_d09_q12 => "s17_headless",
    s18_suspend_d05_p02_d02 => "s18_suspend",
    s19_resize_p02_d02 => "s19_resize",
    s20a_slow_hooks_b11_m03_d01 => "s20a_slow_hooks",
    s20b_failing_hooks_p02_d02 => "s20b_failing_hooks",
    s20c_async_hooks_q01_q02_d01 => "s20c_async_hooks",
    s20d_stop_block_b10_d02 => "s20d_stop_block",
    s20e_prompt_block_i05_d02 => "s20e_prompt_block",
    s21_auto_mode_p04_q08_d02 => "s21_auto_mode",
    s22_statusline_q01_q02_d02 => "s22_statusline",
    s23_title_no_mux_p02_q01_q02_n10_d02 => "s23_title_no_mux",
    s24_osc7501_p02_q01_q02_q05_q09_i01_e01_b04_d02 => "s24_osc7501",
    s25a_http_hooks_k07_q01_q02_i06_e05_c01_d01 => "s25a_http_hooks",
    s25b_http_hooks_down_k07_q01_q02_i06_b11_d01 => "s25b_http_hooks_down",
    s26_trust_d06_p01_d02 => "s26_trust",
    s27_todo_p02_p04_d02 => "s27_todo",
    s28_parallel_perms_q10_q11_b02_d02 => "s28_parallel_perms",
    s29_agents_view_r07_d07_b03_d02 => "s29_agents_view",
    s29b_left_arrow_idle_r08_d07_p02_d02 => "s29b_left_arrow_idle",
    s30_ctrlc_dialog_q01_q03_q04_d01 => "s30_ctrlc_dialog",
    s31_bg_session_n10_q01_d08 => "s31_bg_session",
    s32_two_sessions_n01_i06_k07_d02 => "s32_two_sessions",
    s33_agents_json_p02_q01_q03_d02 => "s33_agents_json",
    s34_elicitation_q07_d02 => "s34_elicitation",
    s35_async_failing_q01_q02_m03_d01 => "s35_async_failing",
    s36_wakeup_b08_p02_d02 => "s36_wakeup",
    s37_cwd_n07_p04_d02 => "s37_cwd",
    s38_teammate_b09_b02_d02 => "s38_teammate",
    s39_kill9_d03_q01_p02_d02 => "s39_kill9",
    s40_inotify_p02_q01_q02_d01 => "s40_inotify",
    s41_v2077_q14_b03 => "s41_v2077",
    s42_settings_merge_k03_p02_d05_d02 => "s42_settings_merge",
    s43_latency_p02_q01_q02_i01_d02 => "s43_latency",
    s44_long_ask_q04_q05_d02 => "s44_long_ask",
    s44_long_perm_q01_q03_q04_d02 => "s44_long_perm",
    s45_no_hooks_modes_k07_i06_d01 => "s45_no_hooks_modes",
    s46_config_dir_n08_d02 => "s46_config_dir",
    s47_misc_p06_q01_d02 => "s47_misc",
    s48_sessionend_d01 => "s48_sessionend",
    s49_tool_failure_p02_p04_d02 => "s49_tool_failure",
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn expected(run: &str) -> expect::Expect {
    let path = folder().join(run).join("expect");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    expect::parse(&text)
}

fn plays_right(run: &str) {
    let expect = expected(run);
    let moments = recording::load(&folder().join(run));
    let seen = world::play(&expect, &moments);
    let faults: Vec<String> = expect
        .agents
        .iter()
        .filter_map(|(letter, judged)| judge::verdict(*letter, judged, &seen[letter]))
        .collect();
    assert!(faults.is_empty(), "{run}\n{}", faults.concat());
}

/// A run that nobody plays proves nothing, and a test that does not name its cases claims none.
#[test]
fn every_run_has_its_test_and_every_test_its_run() {
    let mut wanted = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).expect("the recordings") {
        let entry = entry.expect("a folder entry");
        if entry.file_type().expect("its type").is_dir() {
            let run = entry.file_name().into_string().expect("plain names");
            let cases = expected(&run).cases;
            let ids: String = cases
                .iter()
                .map(|id| format!("_{}", id.to_lowercase()))
                .collect();
            wanted.insert((format!("{run}{ids}"), run));
        }
    }
    let tests = TESTS
        .iter()
        .map(|(test, run)| ((*test).to_owned(), (*run).to_owned()));
    assert_eq!(tests.collect::<BTreeSet<_>>(), wanted);
}

/// Runs in which hooks are the only witness, or whose file was not recorded.
const HOOKS_ALONE: [&str; 3] = ["s41_v2077", "s45_no_hooks_modes", "s46_config_dir"];

/// Plays every run as it is and as `change` makes it, and collects where the badges part and where more or
/// fewer alerts are sent than a person found right. Also says how many moments were looked at.
fn compared(
    pushes_too: bool,
    change: impl Fn(&[Moment]) -> Vec<Vec<Moment>>,
) -> (usize, Vec<String>) {
    let mut looked = 0;
    let mut faults = Vec::new();
    for (_, run) in TESTS.iter().filter(|(_, run)| !HOOKS_ALONE.contains(run)) {
        let expect = expected(run);
        let moments = recording::load(&folder().join(run));
        let plain = world::play(&expect, &moments);
        for (variant, changed) in change(&moments).iter().enumerate() {
            let played = world::play(&expect, changed);
            for (letter, judged) in &expect.agents {
                let name = format!("{run} #{variant}: {letter}");
                let (plain, other) = (&plain[letter], &played[letter]);
                for at in perturb::moments_to_compare(&expect, judged.pid, &moments) {
                    looked += 1;
                    let (wanted, got) = (plain.at(at).badge, other.at(at).badge);
                    if wanted.word != got.word && !may_be_idle(run, at) {
                        faults.push(format!("{name} at {at}: `{got}` instead of `{wanted}`"));
                    }
                }
                if let Some(wanted) = judged.pushes.filter(|_| pushes_too)
                    && !wanted.has(other.pushes)
                {
                    let (got, at) = (other.pushes, &other.pushed_at);
                    faults.push(format!(
                        "{name}: {got} pushes at {at:?} instead of {wanted}"
                    ));
                }
            }
        }
    }
    (looked, faults)
}

/// Without its PreCompact a cancelled compaction can't be told from a turn that ended in silence.
fn may_be_idle(run: &str, at: i64) -> bool {
    run == "s10a_compact_manual" && at > 15_102
}

#[test]
fn h06_hooks_removed_change_no_badge() {
    let (looked, faults) = compared(false, |moments| vec![perturb::without_hooks(moments)]);
    assert!(looked > 350, "only {looked} moments");
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn h07_hooks_doubled_change_nothing() {
    let (_, faults) = compared(true, |moments| vec![perturb::doubled(moments)]);
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn h07_notifications_after_the_answer_change_nothing() {
    let (_, faults) = compared(true, |moments| vec![perturb::notifications_last(moments)]);
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Plays of each run: 95 runs make about a thousand seeds for each kind of disorder.
const SEEDS: u64 = 10;

#[test]
fn h07_hooks_swapped_change_nothing() {
    let (_, faults) = compared(true, |moments| {
        (0..SEEDS)
            .map(|seed| perturb::swapped(moments, &mut Chance::new(seed)))
            .collect()
    });
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn h07_hooks_delayed_change_no_badge() {
    let (_, faults) = compared(true, |moments| {
        (0..SEEDS)
            .map(|seed| perturb::delayed(moments, &mut Chance::new(seed)))
            .collect()
    });
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Runs in which the judged session goes on in a background job: its badge is another agent's.
const NOT_ALONE: [&str; 2] = ["s29_agents_view", "s29b_left_arrow_idle"];

/// The journal of a run, written line by line, read again, exported as a recording and played: the same badges,
/// judged by the same hand-written truth.
#[test]
fn an_exported_journal_plays_like_the_run() {
    let mut faults = Vec::new();
    let mut played = 0;
    for (_, run) in TESTS.iter().filter(|(_, run)| !NOT_ALONE.contains(run)) {
        let expect = expected(run);
        let (_, journal, keys) = world::play_noting(&expect, &recording::load(&folder().join(run)));
        let journal: Vec<Record> = journal
            .iter()
            .map(|record| {
                let line = journal::encode(record).expect("plain data");
                journal::decode(&line).expect("our own")
            })
            .collect();
        for (letter, key) in keys {
            let Some(exported) = export::of_agent(&key, &journal) else {
                continue;
            };
            let dir = tempfile::tempdir().expect("a place");
            for (name, text) in exported.files() {
                std::fs::write(dir.path().join(name), text).expect("written");
            }
            // What it says itself can be read, and judges nothing yet.
            let skeleton = expect::parse(&exported.expect);
            assert!(skeleton.agents[&'A'].changes.is_empty());
            assert_eq!(skeleton.agents[&'A'].pid, key.pid);
            let alone = expect::Expect {
                agents: expected(run)
                    .agents
                    .into_iter()
                    .filter(|(other, _)| *other == letter)
                    .collect(),
                ..expected(run)
            };
            let seen = world::play(&alone, &recording::load(dir.path()));
            played += 1;
            faults.extend(
                judge::verdict(letter, &alone.agents[&letter], &seen[&letter])
                    .map(|fault| format!("{run}\n{fault}")),
            );
        }
    }
    assert!(played > 90, "only {played} played");
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// A judge that never objects would let every run pass.
#[test]
fn what_was_not_seen_is_reported() {
    let run = "s05_perm_left_alone";
    let text = std::fs::read_to_string(folder().join(run).join("expect")).expect("its expect");
    let moments = recording::load(&folder().join(run));
    let objects = |text: &str| {
        let expect = expect::parse(text);
        let seen = world::play(&expect, &moments);
        expect
            .agents
            .iter()
            .find_map(|(letter, judged)| judge::verdict(*letter, judged, &seen[letter]))
    };
    assert_eq!(objects(&text), None);
    for (right, wrong) in [
        ("needs-input permission ask", "needs-input question ask"),
        ("ask \"touch a.txt\"", "ask \"touch b.txt\""),
        ("pushes A 1..2", "pushes A 3..4"),
        ("A 25943..26336 busy", "A 25943..25950 busy"),
        ("idle\n", "busy\n"),
    ] {
        let changed = text.replacen(right, wrong, 1);
        assert_ne!(changed, text, "{right}");
        assert!(objects(&changed).is_some(), "{wrong}");
    }
    let dropped: String = text
        .lines()
        .filter(|line| !line.contains("needs-input"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(objects(&dropped).is_some_and(|table| table.contains("seen `")));
}
