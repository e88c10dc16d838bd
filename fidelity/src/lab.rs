//! One lab: a seed's sessions, played side by side on one product, judged, and kept where something was wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use purplemux_lab::clock::{until, wall_ns};
use serde_json::Value;

use crate::heard::{MS, Run};
use crate::judge::{Verdict, Whose, file_badges, judge};
use crate::player::{Player, is_agent, is_of};
use crate::screen::Class;
use crate::script::{draw, restarts, words};
use crate::stage::{Stage, Tab, interrupts};
use crate::terminal::Terminal;
use crate::{base, truth};

/// What is to be played.
#[derive(Clone, Debug)]
pub struct Order {
    /// The seed.
    pub seed: u64,
    /// How many sessions at a time.
    pub sessions: usize,
    /// Where failed runs are kept.
    pub keep: PathBuf,
    /// Keep the others too.
    pub keep_all: bool,
}

/// A run and what is said about it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What it left behind.
    pub run: Run,
    /// About the product.
    pub ours: Verdict,
    /// About the base mapping.
    pub base: Verdict,
    /// About Claude's own file.
    pub file: Verdict,
    /// Where it is kept.
    pub kept: Option<PathBuf>,
}

impl Outcome {
    /// Judges a run.
    #[must_use]
    pub fn of(run: Run) -> Self {
        let truth = truth::conclude(&run);
        let (shown, told) = base::play(&run);
        Self {
            ours: judge(Whose::Ours, &run, &truth, &run.shown, &run.told),
            base: judge(Whose::Base, &run, &truth, &shown, &told),
            file: judge(Whose::File, &run, &truth, &file_badges(&run), &[]),
            run,
            kept: None,
        }
    }

    /// Nothing was wrong, and it was played to its end.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.run.broken.is_none() && self.ours.faults().is_empty()
    }
}

/// Plays a lab.
///
/// # Errors
/// It could not be set up, or the product did not come back.
pub fn play(order: &Order) -> Result<Vec<Outcome>> {
    let stage = Stage::start()?;
    let scripts: Vec<_> = (0..order.sessions)
        .map(|session| draw(order.seed, session))
        .collect();
    let tabs = scripts
        .iter()
        .enumerate()
        .map(|(session, script)| stage.tab(session + 1, script.tab))
        .collect::<Result<Vec<Tab>>>()?;
    let begun = Barrier::new(order.sessions + 1);
    let left = AtomicUsize::new(order.sessions);
    let (runs, restarted) = thread::scope(|scope| {
        let players: Vec<_> = scripts
            .iter()
            .zip(&tabs)
            .enumerate()
            .map(|(session, (script, tab))| {
                let (stage, begun, left) = (&stage, &begun, &left);
                scope.spawn(move || {
                    let mut waited = false;
                    let run = session_run(order, stage, session, script, tab, || {
                        waited = true;
                        begun.wait();
                    });
                    if !waited {
                        begun.wait();
                    }
                    left.fetch_sub(1, Ordering::Relaxed);
                    run
                })
            })
            .collect();
        begun.wait();
        let restarted = restart(&stage, order.seed, &left);
        let runs: Vec<_> = players
            .into_iter()
            .map(|player| player.join().expect("a player does not panic"))
            .collect();
        (runs, restarted)
    });
    restarted.context("restart the server")?;
    let mut outcomes = Vec::new();
    for (run, tab) in runs.into_iter().zip(&tabs) {
        let (mut run, terminal) = run?;
        collect(&stage, tab, &terminal, &mut run)?;
        let mut outcome = Outcome::of(run);
        if order.keep_all || !outcome.is_good() {
            let name = format!("{}-{}", order.seed, outcome.run.session);
            let dir = order.keep.join(name);
            keep(&stage, tab, &terminal, &outcome, &dir)
                .with_context(|| format!("keep the run in {}", dir.display()))?;
            outcome.kept = Some(dir);
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Ends the server and starts it again at the moments of the seed, as long as somebody plays.
fn restart(stage: &Stage, seed: u64, left: &AtomicUsize) -> Result<()> {
    let start = wall_ns();
    let playing = || left.load(Ordering::Relaxed) > 0;
    for (at, away, kill) in restarts(seed) {
        let due = start + i64::try_from(at).unwrap_or(0) * MS;
        until(Duration::from_secs(120), || {
            (wall_ns() >= due || !playing()).then_some(())
        });
        if playing() {
            stage.restart(kill, Duration::from_millis(away))?;
        }
    }
    Ok(())
}

fn session_run(
    order: &Order,
    stage: &Stage,
    session: usize,
    script: &crate::script::Script,
    tab: &Tab,
    begun: impl FnOnce(),
) -> Result<(Run, Terminal)> {
    let terminal = Terminal::attach(&tab.socket, &tab.session)?;
    let mut run = Run {
        seed: order.seed,
        session,
        script: words(order.seed, script),
        from: wall_ns(),
        ..Run::default()
    };
    let mut player = Player::new(stage, &terminal, order.seed, session);
    let mut broken = player.begin(script).err();
    begun();
    if broken.is_none() {
        broken = player.play(script).err();
    }
    run.broken = broken.map(|why| format!("{why:#}"));
    run.to = wall_ns();
    Ok((run, terminal))
}

/// Everything that the run left behind.
fn collect(stage: &Stage, tab: &Tab, terminal: &Terminal, run: &mut Run) -> Result<()> {
    (run.seen, run.keys) = terminal.record();
    let session = run.session;
    // A request without a prompt of ours (a `!command`'s, a notice) is known by its conversation.
    let hooks = stage.heard(&terminal.pane()?)?;
    let named: Vec<String> = hooks
        .iter()
        .filter_map(|(_, line)| line["input"]["session_id"].as_str())
        .map(str::to_owned)
        .collect();
    run.asked = stage.asked(
        |prompt| is_of(session, prompt),
        |prompt| is_agent(session, prompt),
        &named,
    );
    run.shown = stage.shown(tab);
    run.told = stage.told(tab);
    run.told.retain(|told| told.at <= run.to);
    run.outages = stage.outages();
    run.heard = hooks.into_iter().map(|(heard, _)| heard).collect();
    run.interrupts = interrupts(&transcripts(stage, terminal)?);
    run.written = stage.written(tab);
    Ok(())
}

fn transcripts(stage: &Stage, terminal: &Terminal) -> Result<Vec<String>> {
    let hooks = stage.heard(&terminal.pane()?)?;
    let mut paths: Vec<String> = hooks
        .iter()
        .filter_map(|(_, line)| line["input"]["transcript_path"].as_str())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Puts a run where somebody can look at it: what was judged, the screens, Claude's own words, and the product's
/// journal as a recorded run.
fn keep(
    stage: &Stage,
    tab: &Tab,
    terminal: &Terminal,
    outcome: &Outcome,
    dir: &Path,
) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    fs::write(
        dir.join("run.json"),
        serde_json::to_vec_pretty(&outcome.run)?,
    )?;
    fs::write(dir.join("story.txt"), story(outcome))?;
    let mut screens = String::new();
    for (at, screen) in terminal.screens() {
        let ms = (at - outcome.run.from) / MS;
        screens.push_str(&format!("===== +{ms} ms\n{}\n", screen.trim_end()));
    }
    fs::write(dir.join("screens.txt"), screens)?;
    let hooks = stage.heard(&terminal.pane()?)?;
    let lines: Vec<String> = hooks.iter().map(|(_, line)| line.to_string()).collect();
    fs::write(dir.join("hooks-original.jsonl"), lines.join("\n"))?;
    for path in transcripts(stage, terminal)? {
        let path = Path::new(&path);
        if let Some(name) = path.file_name()
            && path.is_file()
        {
            fs::copy(path, dir.join(name))?;
        }
    }
    let told: Vec<String> = stage.log().lines().map(str::to_owned).collect();
    fs::write(dir.join("server.log"), told.join("\n"))?;
    fs::write(dir.join("serve.txt"), stage.said())?;
    let lines: Vec<Value> = stage.lines(tab).into_iter().map(|line| line.item).collect();
    fs::write(dir.join("status.json"), serde_json::to_vec_pretty(&lines)?)?;
    for (number, agent) in stage.agents(tab)?.iter().enumerate() {
        let into = dir.join(format!("agent-{number}"));
        if let Err(why) = stage.export(agent, &into) {
            fs::write(dir.join(format!("agent-{number}.txt")), format!("{why:#}"))?;
        }
    }
    Ok(())
}

/// Everything on one line of time, for the eye.
#[must_use]
pub fn story(outcome: &Outcome) -> String {
    let run = &outcome.run;
    let mut all: Vec<(i64, String)> = Vec::new();
    for key in &run.keys {
        all.push((key.at, format!("KEY    {:?}", key.aim)));
    }
    for seen in &run.seen {
        let (class, tail) = (seen.look.class, seen.look.tail);
        let draft = if seen.look.draft { " draft" } else { "" };
        let word = match class {
            Class::Dialog(ask) => format!("dialog {}", ask.word()),
            Class::Shell | Class::Blank | Class::Ready | Class::Working | Class::Menu { .. } => {
                format!("{class:?}")
            }
        };
        let since = (seen.at - seen.before) / MS;
        all.push((
            seen.at,
            format!("SCREEN {word} {tail:?}{draft} (not {since} ms before)"),
        ));
    }
    for asked in &run.asked {
        let lane = if asked.agent { "agent" } else { "" };
        all.push((
            asked.at,
            format!("API    {} {lane} {:?}", asked.kind, asked.prompt),
        ));
        if let Some((at, how)) = &asked.end {
            all.push((*at, format!("API    end {how:?} {lane}")));
        }
    }
    for shown in &run.shown {
        let suspended = if shown.suspended { " suspended" } else { "" };
        all.push((shown.at, format!("SHOWN  {}{suspended}", shown.badge)));
    }
    for told in &run.told {
        let silent = if told.silent { " silent" } else { "" };
        all.push((told.at, format!("TOLD   {}{silent}", told.state)));
    }
    for heard in &run.heard {
        all.push((heard.at, format!("HOOK   {} {}", heard.event, heard.kind)));
    }
    for write in &run.written {
        let status = write.status.as_deref().unwrap_or("-");
        let waits = write.waiting_for.as_deref().unwrap_or("");
        all.push((write.at, format!("FILE   {status} {waits}")));
    }
    for at in &run.interrupts {
        all.push((*at, "LINE   interrupted".to_owned()));
    }
    for outage in &run.outages {
        all.push((outage.from, "SERVER down".to_owned()));
        all.push((outage.to, "SERVER up".to_owned()));
    }
    let truth = truth::conclude(run);
    for span in &truth.spans {
        let again = if span.again { " again" } else { "" };
        let words = format!(
            "TRUTH  {}{again} [{}, due {}] {}",
            span.want.join(" or "),
            (span.hi - span.lo) / MS,
            (span.due - span.lo) / MS,
            span.kind.words()
        );
        all.push((span.lo, words));
    }
    for (name, fault) in outcome.ours.faults() {
        all.push((
            fault.at,
            format!("FAULT  {name} for {} ms: {}", fault.ns / MS, fault.what),
        ));
    }
    for fault in &outcome.ours.returns {
        let what = &fault.what;
        all.push((fault.at, format!("RETURN for {} ms: {what}", fault.ns / MS)));
    }
    all.sort_by_key(|(at, _)| *at);
    let mut out = format!("seed {} session {}\n", run.seed, run.session);
    for line in &run.script {
        out.push_str(&format!("  {line}\n"));
    }
    if let Some(why) = &run.broken {
        out.push_str(&format!("BROKEN {why}\n"));
    }
    for (at, what) in all {
        out.push_str(&format!("{:>7} {what}\n", (at - run.from) / MS));
    }
    out
}
