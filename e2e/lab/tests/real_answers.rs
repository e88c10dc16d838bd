//! The real Claude Code, asked through its own dialogs and answered through the product: what the card says, which
//! key is typed, and that no key ever reaches another dialog or Claude's box. Each begins at a key in the terminal and
//! ends at the badges, the answer's own end and the screen.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::answers::{Asked, Outcome, Person, answer_at};
use purplemux_lab::clock::{until, wall_ns};
use purplemux_lab::product::{Lab, PATIENCE, SILENT_END_MS, Tab, TabKind};
use serde_json::json;

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

/// From the wish to "sent": two seconds for Claude, and before that the time in which it takes no key.
const SENT_MS: f64 = 2000.0;

/// What Claude wrote into its transcripts in this home.
fn transcripts(lab: &Lab) -> String {
    let mut all = String::new();
    let mut folders = vec![lab.home().dir().join(".claude/projects")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    all
}

fn sent(lab: &Lab, outcome: &Outcome) -> Result<()> {
    ensure!(outcome.is_sent(), "{outcome:?}");
    lab.latency("answer to sent", SENT_MS, outcome.from_ns, outcome.to_ns)
}

fn refused(outcome: &Outcome) -> Result<String> {
    let why = outcome.refused().with_context(|| format!("{outcome:?}"))?;
    ensure!(why.len() > 10, "no reason: {outcome:?}");
    Ok(why.to_owned())
}

/// Claude's box is in front, and nobody has typed anything into it.
fn box_is_empty(tab: &Tab<'_>) -> Result<()> {
    until(PATIENCE, || tab.in_box())
        .with_context(|| format!("Claude's box never came:\n{}", tab.screen()))
        .and_then(|typed| {
            ensure!(typed.is_empty(), "{typed:?} stands in Claude's box");
            Ok(())
        })
}

/// Claude asks whether it may run this.
fn asks(tab: &mut Tab<'_>, command: &str) -> Result<Asked> {
    tab.prompt(&format!("bash: {command} ;; say understood"))?;
    tab.expect(&["needs-input(permission)"])?;
    let asked = tab.open_card()?;
    ensure!(asked.subject().contains(command), "{}", asked.card);
    Ok(asked)
}

#[test]
fn a01_a10_a_refusal_is_one_key_and_words_are_never_typed_into_a_dialog() -> Result<()> {
    let lab = Lab::start("a01")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    // The last option.
    let asked = asks(&mut tab, "touch a.txt")?;
    let labels = asked.labels();
    ensure!(
        labels.len() == 4 && labels[0] == "Yes" && labels[3] == "No",
        "{labels:?}"
    );
    ensure!(
        asked.card["question"] == "Do you want to proceed?",
        "{}",
        asked.card
    );
    ensure!(
        asked.card["reject"] == true && asked.card["words"] == true,
        "{}",
        asked.card
    );
    sent(&lab, &lab.answer(&asked, &asked.choice("No")?)?)?;
    tab.expect(&["idle"])?;
    box_is_empty(&tab)?;
    // Esc.
    let asked = asks(&mut tab, "touch b.txt")?;
    sent(&lab, &lab.answer(&asked, &json!({"do": "reject"}))?)?;
    tab.expect(&["idle"])?;
    box_is_empty(&tab)?;
    // Words, with the digit of "Yes" in them.
    let asked = asks(&mut tab, "touch c.txt")?;
    let words = json!({"do": "words", "text": "use 1 file"});
    sent(&lab, &lab.answer(&asked, &words)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    box_is_empty(&tab)?;
    ensure!(
        transcripts(&lab).contains("use 1 file"),
        "Claude was told what to do instead"
    );
    for file in ["a.txt", "b.txt", "c.txt"] {
        ensure!(!tab.dir.join(file).exists(), "{file} was refused");
    }
    // And one that is allowed.
    let asked = asks(&mut tab, "touch d.txt")?;
    sent(&lab, &lab.answer(&asked, &asked.choice("Yes")?)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    ensure!(tab.dir.join("d.txt").exists(), "it was allowed");
    box_is_empty(&tab)
}

#[test]
fn a10_where_a_dialog_takes_no_words_they_are_the_next_prompt() -> Result<()> {
    let lab = Lab::start("a10")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt(r#"tool: WebFetch {"url":"http://127.0.0.1:9/a","prompt":"say it"} ;; say no"#)?;
    tab.expect(&["needs-input(permission)"])?;
    let asked = tab.open_card()?;
    let words = json!({"do": "words", "text": "say 1 thing"});
    sent(&lab, &lab.answer(&asked, &words)?)?;
    lab.fake()
        .wait(PATIENCE, |request| request.prompt == "say 1 thing")
        .with_context(|| format!("the prompt never came; {}", tab.evidence()))?;
    tab.settle("review(finished)")?;
    box_is_empty(&tab)
}

#[test]
fn a02_an_answer_to_a_dialog_that_was_replaced_is_refused() -> Result<()> {
    let lab = Lab::start("a02")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("bash: touch a.txt ;; bash: touch b.txt ;; say finished")?;
    tab.expect(&["needs-input(permission)"])?;
    let first = tab.open_card()?;
    ensure!(first.subject().contains("touch a.txt"), "{}", first.card);
    tab.answer("1", "❯ 1. Yes")?;
    tab.expect(&["busy", "needs-input(permission)"])?;
    // The tap of somebody who still sees the first one: at once, and when the second one is drawn.
    let why = refused(&lab.answer(&first, &first.choice("Yes")?)?)?;
    let second = tab.card("the second card", |asked| {
        asked.subject().contains("touch b.txt") && asked.cannot().is_none()
    })?;
    for answer in [
        first.choice("Yes")?,
        json!({"do": "reject"}),
        json!({"do": "words", "text": "1"}),
    ] {
        refused(&lab.answer(&first, &answer)?)?;
    }
    tab.stays(QUIET)?;
    ensure!(!tab.dir.join("b.txt").exists(), "nobody allowed it: {why}");
    tab.pane.wait_for("touch b.txt", PATIENCE)?;
    sent(&lab, &lab.answer(&second, &second.choice("No")?)?)?;
    tab.expect(&["idle"])?;
    ensure!(!tab.dir.join("b.txt").exists(), "it was refused");
    box_is_empty(&tab)
}

#[test]
fn a03_an_answer_after_one_in_the_terminal_is_refused() -> Result<()> {
    let lab = Lab::start("a03")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let mut person = Person::at(&lab, &tab)?;
    for (at, late_ms) in [0u64, 30, 60, 120, 300, 1500].into_iter().enumerate() {
        let file = format!("f{at}.txt");
        let asked = asks(&mut tab, &format!("touch {file}"))?;
        // For half a second Claude takes no key at all.
        until(PATIENCE, || tab.stays(Duration::from_millis(800)).ok()).context("it stays")?;
        let at_ns = person.press("1")?;
        thread::sleep(Duration::from_millis(late_ms));
        let late = lab.answer(&asked, &asked.choice("No")?)?;
        refused(&late)?;
        let lines = tab.expect(&["busy", "review(finished)"])?;
        lab.latency(
            "key in the terminal to no card",
            500.0,
            at_ns,
            lines[0].at_ns,
        )?;
        ensure!(
            lines[0].item["detail"]["ask"].is_null(),
            "{}",
            lines[0].item
        );
        ensure!(
            tab.dir.join(&file).exists(),
            "it was allowed in the terminal"
        );
        box_is_empty(&tab)?;
    }
    Ok(())
}

#[test]
fn a05_trust_moves_the_mark_and_looks_before_enter() -> Result<()> {
    let lab = Lab::start("a05")?;
    let strange = lab.home().dir().join("strange");
    std::fs::create_dir(&strange)?;
    let mut tab = lab.tab_in(TabKind::Terminal, strange)?;
    tab.shell_ready()?;
    tab.enter("claude")?;
    tab.expect_unmeasured(&["needs-input(startup)"])?;
    let asked = tab.open_card()?;
    ensure!(
        asked.labels() == ["No, exit", "Yes, I trust this folder"],
        "{}",
        asked.card
    );
    ensure!(
        asked.card["options"][0]["marked"] == true && asked.card["options"][0]["number"].is_null(),
        "{}",
        asked.card
    );
    // In words it can't be answered, and nothing is confirmed.
    ensure!(asked.card["words"] == false, "{}", asked.card);
    sent(
        &lab,
        &lab.answer(&asked, &asked.choice("Yes, I trust this folder")?)?,
    )?;
    tab.ready()?;
    box_is_empty(&tab)
}

#[test]
fn a06_two_questions_are_answered_one_by_one_and_submitted() -> Result<()> {
    let lab = Lab::start("a06")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let questions = json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
            {"label": "Amber", "description": "warm"}, {"label": "Violet", "description": "cool"}]},
        {"question": "Which features?", "header": "Features", "multiSelect": true, "options": [
            {"label": "Alpha", "description": "first"}, {"label": "Beta", "description": "second"},
            {"label": "Gamma", "description": "third"}]},
    ]});
    // The end of a prompt is what is waited for on the screen: no two may have the same.
    let ask = |tab: &mut Tab<'_>, end: &str| -> Result<Asked> {
        tab.prompt(&format!("tool: AskUserQuestion {questions} ;; say {end}"))?;
        tab.expect(&["needs-input(question)"])?;
        let first = tab.open_card()?;
        ensure!(
            first.card["part"]["count"] == 2 && first.card["part"]["index"] == 0,
            "{}",
            first.card
        );
        ensure!(first.labels()[..2] == ["Amber", "Violet"], "{}", first.card);
        Ok(first)
    };
    let first = ask(&mut tab, "thanks")?;
    sent(&lab, &lab.answer(&first, &first.choice("Violet")?)?)?;
    let second = tab.card("the second question", |asked| {
        asked.card["part"]["index"] == 1
    })?;
    ensure!(
        second.ask == first.ask,
        "one ask: {} {}",
        first.ask,
        second.ask
    );
    ensure!(
        second.card["part"]["answered"][0] == true,
        "{}",
        second.card
    );
    ensure!(
        second.labels()[..3] == ["Alpha", "Beta", "Gamma"],
        "{}",
        second.card
    );
    // What was seen before is over.
    refused(&lab.answer(&first, &first.choice("Amber")?)?)?;
    sent(
        &lab,
        &lab.answer(&second, &json!({"do": "check", "options": [0, 2]}))?,
    )?;
    let last = tab.card("the page that sends them", |asked| {
        asked.card["submit"] == true
    })?;
    let said = last.subject();
    ensure!(
        said.contains("Violet") && said.contains("Alpha") && said.contains("Gamma"),
        "{said}"
    );
    ensure!(!said.contains("Beta"), "{said}");
    sent(&lab, &lab.answer(&last, &json!({"do": "submit"}))?)?;
    tab.expect(&["busy", "review(finished)"])?;
    let told = transcripts(&lab);
    ensure!(
        told.contains("Violet") && !told.contains(r#""Which colour?":"Amber""#),
        "the answers"
    );
    box_is_empty(&tab)?;

    // Esc cancels all, also from the second one.
    let first = ask(&mut tab, "no thanks")?;
    sent(&lab, &lab.answer(&first, &first.choice("Amber")?)?)?;
    let second = tab.card("the second question", |asked| {
        asked.card["part"]["index"] == 1
    })?;
    sent(&lab, &lab.answer(&second, &json!({"do": "reject"}))?)?;
    tab.expect(&["idle"])?;
    box_is_empty(&tab)
}

#[test]
fn a07_a_pane_that_is_scrolled_back_is_left_before_anything_is_read() -> Result<()> {
    let lab = Lab::start("a07")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    // An older dialog stays readable above: a program prints it.
    let old = asks(&mut tab, "touch old.txt")?;
    let screen = tab.screen();
    sent(&lab, &lab.answer(&old, &json!({"do": "reject"}))?)?;
    tab.expect(&["idle"])?;
    std::fs::write(tab.dir.join("old-dialog.txt"), screen)?;
    let in_mode = |tab: &Tab<'_>| -> Result<bool> {
        let mode = tab
            .pane
            .tmux("display-message", &["-p", "#{pane_in_mode}"])?;
        Ok(mode.trim() == "1")
    };
    for scrolled_before in [true, false] {
        let file = format!("new-{scrolled_before}.txt");
        if scrolled_before {
            tab.enter(&format!(
                "sleep 2 then bash: touch {file} ;; say understood"
            ))?;
            tab.expect(&["busy"])?;
            tab.pane.tmux("copy-mode", &["-u"])?;
            ensure!(in_mode(&tab)?, "it is scrolled back");
            tab.expect(&["needs-input(permission)"])?;
        } else {
            asks(&mut tab, &format!("touch {file}"))?;
        }
        let asked = tab.card("the new dialog or none", |asked| {
            asked.subject().contains(&file) || asked.cannot().is_some()
        })?;
        ensure!(!asked.subject().contains("old.txt"), "{}", asked.card);
        tab.pane.tmux("copy-mode", &["-u"])?;
        ensure!(in_mode(&tab)?, "it is scrolled back");
        let answer = json!({"do": "choose", "option": 0});
        let outcome = lab.answer(&asked, &answer)?;
        if outcome.is_sent() {
            ensure!(!in_mode(&tab)?, "it was left first");
            tab.expect(&["busy", "review(finished)"])?;
            ensure!(tab.dir.join(&file).exists(), "it was allowed");
        } else {
            refused(&outcome)?;
            ensure!(!tab.dir.join(&file).exists(), "nothing was sent");
            tab.pane.tmux("send-keys", &["-X", "cancel"]).ok();
            tab.answer("Escape", "❯ 1. Yes")?;
            tab.expect(&["idle"])?;
        }
        box_is_empty(&tab)?;
    }
    Ok(())
}

#[test]
fn a09_a_narrow_pane_is_read_right_or_not_offered() -> Result<()> {
    let lab = Lab::start("a09")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let size = |tab: &Tab<'_>| {
        tab.pane
            .tmux("display-message", &["-p", "#{pane_width}x#{pane_height}"])
    };
    tab.pane.tmux("resize-window", &["-x", "40", "-y", "34"])?;
    let narrow = size(&tab)?;
    ensure!(narrow.trim() == "40x34", "{narrow}");
    let long = "重寫整個設定載入程式並且保留所有舊的格式與相容性的測試案例";
    let questions = json!({"questions": [{"question": "Which way, in this very narrow terminal?",
        "header": "Way", "multiSelect": false, "options": [
            {"label": "Keep the present loader and mend only what is broken in it", "description": "small and safe, and seen by nobody"},
            {"label": long, "description": "把所有東西都改掉"}]}]});
    tab.prompt(&format!("tool: AskUserQuestion {questions} ;; say thanks"))?;
    tab.expect(&["needs-input(question)"])?;
    let asked = tab.open_card()?;
    ensure!(
        asked.card["question"] == "Which way, in this very narrow terminal?",
        "{}",
        asked.card
    );
    ensure!(
        asked.labels()[..2]
            == [
                "Keep the present loader and mend only what is broken in it",
                long
            ],
        "{}",
        asked.card
    );
    sent(&lab, &lab.answer(&asked, &asked.choice(long)?)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    box_is_empty(&tab)?;
    ensure!(
        transcripts(&lab).contains(&format!("={long}")) || transcripts(&lab).contains(long),
        "the answer"
    );

    // Wrapped options of a permission.
    let asked = asks(&mut tab, "touch wide-漢字.txt")?;
    ensure!(
        asked.labels()[1].contains("always allow access to"),
        "{}",
        asked.card
    );
    sent(&lab, &lab.answer(&asked, &asked.choice("No")?)?)?;
    tab.expect(&["idle"])?;
    box_is_empty(&tab)?;

    // Taller than the screen: its beginning can't be seen, so nothing of it is offered.
    let rows: Vec<String> = (0..60).map(|row| format!("row {row}")).collect();
    let command = json!({"command": format!("touch tall.txt; cat <<'EOF'\n{}\nEOF", rows.join("\n")),
        "description": "Many rows"});
    tab.prompt(&format!("tool: Bash {command} ;; say understood"))?;
    tab.expect(&["needs-input(permission)"])?;
    let asked = tab.card("a card without options", |asked| asked.cannot().is_some())?;
    ensure!(asked.labels().is_empty(), "{}", asked.card);
    refused(&lab.answer(&asked, &json!({"do": "choose", "option": 0}))?)?;
    tab.stays(QUIET)?;
    ensure!(size(&tab)? == narrow, "the pane keeps its size");
    tab.press(&["Escape"])?;
    tab.expect(&["idle"])?;
    ensure!(!tab.dir.join("tall.txt").exists(), "nobody allowed it");
    box_is_empty(&tab)
}

#[test]
fn a11_a_dialog_behind_a_menu_is_not_answered() -> Result<()> {
    let lab = Lab::start("a11")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("sleep 4 then bash: touch q.txt ;; say understood")?;
    tab.enter("/model")?;
    tab.pane.wait_for("Select model", PATIENCE)?;
    tab.expect(&["needs-input(permission)"])?;
    let asked = tab.card("a card that says why not", |asked| asked.cannot().is_some())?;
    ensure!(
        asked
            .cannot()
            .is_some_and(|why| why.contains("menu is open in the terminal")),
        "{}",
        asked.card
    );
    for answer in [
        json!({"do": "choose", "option": 0}),
        json!({"do": "reject"}),
        json!({"do": "words", "text": "1"}),
    ] {
        let why = refused(&lab.answer(&asked, &answer)?)?;
        ensure!(why.contains("menu is open"), "{why}");
    }
    tab.pane.wait_for("Select model", PATIENCE)?;
    tab.pane.press_away(&["Escape"], "Select model")?;
    let asked = tab.open_card()?;
    sent(&lab, &lab.answer(&asked, &asked.choice("No")?)?)?;
    tab.expect(&["idle"])?;
    ensure!(!tab.dir.join("q.txt").exists(), "it was refused");
    box_is_empty(&tab)
}

#[test]
fn a12_the_same_answer_twice_is_one_key() -> Result<()> {
    let lab = Lab::start("a12")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    for (at, gap_ms) in [0u64, 10, 30, 200].into_iter().enumerate() {
        let file = format!("f{at}.txt");
        let asked = asks(&mut tab, &format!("touch {file}"))?;
        let yes = asked.choice("Yes")?;
        let socket = lab.socket();
        let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
            let tap = |wait: u64| {
                thread::sleep(Duration::from_millis(wait));
                answer_at(&socket, &asked, &yes)
            };
            let taps = [
                scope.spawn(move || tap(0)),
                scope.spawn(move || tap(gap_ms)),
            ];
            taps.into_iter()
                .map(|tap| tap.join().expect("no panic"))
                .collect()
        });
        let outcomes = outcomes.into_iter().collect::<Result<Vec<Outcome>>>()?;
        let won = outcomes.iter().filter(|outcome| outcome.is_sent()).count();
        ensure!(won == 1, "{outcomes:?}");
        for late in outcomes.iter().filter(|outcome| !outcome.is_sent()) {
            refused(late)?;
        }
        tab.expect(&["busy", "review(finished)"])?;
        ensure!(tab.dir.join(&file).exists(), "it was allowed");
        box_is_empty(&tab)?;
    }
    Ok(())
}

#[test]
fn a13_stop_is_one_esc_while_busy_and_never_into_a_dialog() -> Result<()> {
    let lab = Lab::start("a13")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let stop = |tab: &Tab<'_>| lab.post(&format!("/api/tabs/{}/stop", tab.id), &json!({}));
    let slow = format!("slow 20 {}", "word ".repeat(40));
    // While nothing runs.
    refused(&stop(&tab)?)?;
    // While Claude answers.
    tab.prompt(slow.trim_end())?;
    tab.stays(QUIET)?;
    let at_ns = wall_ns();
    let stopped = stop(&tab)?;
    ensure!(stopped.is_sent(), "{stopped:?}");
    let lines = tab.expect(&["idle"])?;
    lab.latency("stop to idle shown", SILENT_END_MS, at_ns, lines[0].at_ns)?;
    box_is_empty(&tab)?;
    // While a dialog is drawn: Esc would refuse it.
    let asked = asks(&mut tab, "touch a.txt")?;
    refused(&stop(&tab)?)?;
    tab.stays(QUIET)?;
    let still = tab.open_card()?;
    ensure!(still.reading == asked.reading, "{}", still.card);
    sent(&lab, &lab.answer(&asked, &asked.choice("Yes")?)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    // With a prompt that waits: it will run, and that is said.
    tab.prompt(slow.trim_end())?;
    tab.enter("say the next one")?;
    tab.stays(QUIET)?;
    let stopped = stop(&tab)?;
    ensure!(stopped.is_sent(), "{stopped:?}");
    ensure!(stopped.why().contains("prompt"), "{stopped:?}");
    lab.fake()
        .wait(PATIENCE, |request| request.prompt == "say the next one")
        .with_context(|| format!("it never ran; {}", tab.evidence()))?;
    tab.settle("review(finished)")?;
    Ok(())
}

#[test]
fn a02_a03_a12_ten_answers_at_random_moments_go_where_they_are_meant() -> Result<()> {
    let rounds = purplemux_fidelity::answers::play(7, 10, |_| {})?;
    ensure!(rounds.len() == 10, "{}", rounds.len());
    for round in &rounds {
        ensure!(round.wrong.is_empty(), "{round:?}");
    }
    ensure!(
        rounds
            .iter()
            .flat_map(|round| &round.answers)
            .any(|(_, outcome)| outcome.is_sent()),
        "none was sent"
    );
    Ok(())
}

/// One question, or one of several, with a choice or with boxes to tick.
fn question(text: &str, several: bool, labels: [&str; 3]) -> serde_json::Value {
    let options =
        labels.map(|label| json!({"label": label, "description": format!("about {label}")}));
    json!({"question": text, "header": labels[0], "multiSelect": several, "options": options})
}

/// Every dialog that can be answered, in a pane of this width: approved, refused, allowed for good; a question, two
/// questions, boxes to tick; a plan; trust; one behind a menu.
fn every_dialog_in(cols: u16) -> Result<()> {
    let lab = Lab::start(&format!("a-{cols}"))?;
    let resize = |tab: &Tab<'_>| {
        let cols = cols.to_string();
        tab.pane.tmux("resize-window", &["-x", &cols, "-y", "44"])
    };
    let strange = lab.home().dir().join("strange");
    std::fs::create_dir(&strange)?;
    let mut tab = lab.tab_in(TabKind::Terminal, strange)?;
    resize(&tab)?;
    tab.shell_ready()?;
    tab.enter("claude")?;
    tab.expect_unmeasured(&["needs-input(startup)"])?;
    let asked = tab.open_card()?;
    sent(
        &lab,
        &lab.answer(&asked, &asked.choice("Yes, I trust this folder")?)?,
    )?;
    tab.ready()?;
    // Approved and refused.
    let asked = asks(&mut tab, "touch a.txt")?;
    sent(&lab, &lab.answer(&asked, &asked.choice("Yes")?)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    let asked = asks(&mut tab, "touch b.txt")?;
    sent(&lab, &lab.answer(&asked, &asked.choice("No")?)?)?;
    tab.expect(&["idle"])?;
    ensure!(
        tab.dir.join("a.txt").exists() && !tab.dir.join("b.txt").exists(),
        "as answered"
    );
    // Allowed for good: the next one is not asked about.
    let fetch = |at: &str| {
        let input = json!({"url": format!("http://127.0.0.1:9/{at}"), "prompt": "say it"});
        format!("tool: WebFetch {input} ;; say fetched")
    };
    tab.prompt(&fetch("first"))?;
    tab.expect(&["needs-input(permission)"])?;
    let asked = tab.open_card()?;
    let for_good = asked.choice("Yes, and don't ask again for 127.0.0.1")?;
    sent(&lab, &lab.answer(&asked, &for_good)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    tab.prompt(&fetch("second"))?;
    tab.expect(&["review(finished)"])?;
    // A question; two of them, one with boxes.
    let one = json!({"questions": [question("Which colour?", false, ["Amber", "Violet", "Teal"])]});
    tab.prompt(&format!("tool: AskUserQuestion {one} ;; say thanks"))?;
    tab.expect(&["needs-input(question)"])?;
    let asked = tab.open_card()?;
    sent(&lab, &lab.answer(&asked, &asked.choice("Teal")?)?)?;
    tab.expect(&["busy", "review(finished)"])?;
    let two = json!({"questions": [
        question("Which shape?", false, ["Dot", "Bar", "Ring"]),
        question("Which sizes?", true, ["Small", "Middle", "Large"]),
    ]});
    tab.prompt(&format!("tool: AskUserQuestion {two} ;; say thanks"))?;
    tab.expect(&["needs-input(question)"])?;
    let asked = tab.open_card()?;
    sent(&lab, &lab.answer(&asked, &asked.choice("Ring")?)?)?;
    let asked = tab.card("the boxes", |asked| asked.card["part"]["index"] == 1)?;
    sent(
        &lab,
        &lab.answer(&asked, &json!({"do": "check", "options": [1, 2]}))?,
    )?;
    let asked = tab.card("the page that sends them", |asked| {
        asked.card["submit"] == true
    })?;
    sent(&lab, &lab.answer(&asked, &json!({"do": "submit"}))?)?;
    tab.expect(&["busy", "review(finished)"])?;
    let told = transcripts(&lab);
    for answer in ["Teal", "Ring", "Middle, Large"] {
        ensure!(told.contains(answer), "Claude was told {answer:?}");
    }
    // Behind a menu of the person's own.
    tab.prompt("sleep 4 then bash: touch c.txt ;; say understood")?;
    tab.enter("/model")?;
    tab.expect(&["needs-input(permission)"])?;
    let asked = tab.card("a card that says why not", |asked| asked.cannot().is_some())?;
    let why = refused(&lab.answer(&asked, &json!({"do": "choose", "option": 0}))?)?;
    ensure!(why.contains("menu is open"), "{why}");
    tab.pane.press_away(&["Escape"], "Select model")?;
    let asked = tab.open_card()?;
    sent(&lab, &lab.answer(&asked, &json!({"do": "reject"}))?)?;
    tab.expect(&["idle"])?;
    ensure!(!tab.dir.join("c.txt").exists(), "it was refused");
    box_is_empty(&tab)?;
    // A plan, refused and then carried out.
    let mut tab = lab.tab(TabKind::Terminal)?;
    resize(&tab)?;
    tab.start_claude("claude --permission-mode plan")?;
    for (label, then) in [("No", "idle"), ("Yes", "review(finished)")] {
        tab.prompt(&format!("plan ;; say done after {label}"))?;
        // Until the hook comes it is a permission, as Claude's file says.
        tab.settle("needs-input(plan)")?;
        let asked = tab.open_card()?;
        let labels = asked.labels();
        let chosen = labels.iter().find(|is| is.starts_with(label));
        let choice = asked.choice(chosen.with_context(|| format!("{labels:?}"))?)?;
        sent(&lab, &lab.answer(&asked, &choice)?)?;
        tab.settle(then)?;
        box_is_empty(&tab)?;
    }
    Ok(())
}

#[test]
fn a01_a05_a06_a09_a11_every_dialog_in_40_columns() -> Result<()> {
    every_dialog_in(40)
}

#[test]
fn a01_a05_a06_a11_every_dialog_in_80_columns() -> Result<()> {
    every_dialog_in(80)
}

#[test]
fn a01_a05_a06_a11_every_dialog_in_200_columns() -> Result<()> {
    every_dialog_in(200)
}
