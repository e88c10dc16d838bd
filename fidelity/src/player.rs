//! Plays a script in a tab as a person would: looks at the screen, presses keys. The screen and the fake's log are
//! all it goes by.
//!
//! Must never look at a badge, a hook or a status file, nor end a process but the Claude of its own tab.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use purplemux_lab::home::claude_binary;
use rustix::process::{Pid, Signal, kill_process};

use crate::heard::Aim;
use crate::screen::{Class, Tail};
use crate::script::{Act, Long, Mode, Reply, Script};
use crate::stage::Stage;
use crate::terminal::{Picture, Terminal};
use purplemux_sim::chance::Chance;

/// For everything that Claude has to do; a loaded machine needs much of it.
const PATIENCE: Duration = Duration::from_secs(45);

/// A key that did nothing is pressed again: Claude disregards keys for a moment after it has drawn a dialog.
const AGAIN: Duration = Duration::from_millis(900);

/// … so often.
const PRESSES: usize = 25;

/// The screen has come to rest when it has not changed for so long.
const STILL: Duration = Duration::from_millis(250);

/// One session at play.
pub struct Player<'a> {
    stage: &'a Stage,
    terminal: &'a Terminal,
    session: usize,
    prompts: usize,
    chance: Chance,
}

impl<'a> Player<'a> {
    /// Nothing happens before [`Self::play`].
    pub fn new(stage: &'a Stage, terminal: &'a Terminal, seed: u64, session: usize) -> Self {
        Self {
            stage,
            terminal,
            session,
            prompts: 0,
            chance: Chance::stream(seed, 1000 + u64::try_from(session).unwrap_or(0)),
        }
    }

    /// Starts Claude as the script says, and waits until it is ready.
    pub fn begin(&mut self, script: &Script) -> Result<()> {
        if script.tab {
            self.ready("a Claude that its tab has started")
        } else {
            self.start(script.mode)
        }
    }

    /// Everything after that.
    pub fn play(&mut self, script: &Script) -> Result<()> {
        for (act, rest) in &script.acts {
            self.act(*act).with_context(|| {
                let screen = self
                    .terminal
                    .picture()
                    .map(|p| p.screen)
                    .unwrap_or_default();
                format!("{act}; the screen:\n{screen}")
            })?;
            self.pause(*rest);
        }
        Ok(())
    }

    fn act(&mut self, act: Act) -> Result<()> {
        match act {
            Act::Say { spread } => {
                let prompt = self.slow(spread, "word");
                self.turn(&prompt)
            }
            Act::Tools => {
                let tag = self.tag();
                self.turn(&format!(
                    "bash: cat notes.txt ;; read notes.txt ;; bash: cat missing.txt ;; say {tag}"
                ))
            }
            Act::Permission {
                tools,
                dwell,
                reply,
            } => {
                let tag = self.tag();
                let tool = |n| format!("bash: touch {tag}-{n}.txt");
                let tools: Vec<String> = (0..tools).map(tool).collect();
                self.prompt(&format!("{} ;; say {tag}", tools.join(" ;; ")))?;
                for _ in &tools {
                    self.dialog(dwell)?;
                    self.reply(reply)?;
                    if reply != Reply::Approve {
                        break;
                    }
                }
                self.ready("the end of the turn")
            }
            Act::Stray { dwell } => {
                let tag = self.tag();
                self.prompt(&format!("bash: touch {tag}.txt ;; say {tag}"))?;
                self.dialog(dwell)?;
                for key in ["Down", "C-c", "Up", "C-d"] {
                    self.terminal.press(key, Aim::Stray)?;
                    self.pause(150);
                }
                self.reply(Reply::Approve)?;
                self.ready("the end of the turn")
            }
            Act::Pair { dwell } => {
                let tag = self.tag();
                self.prompt(&format!(
                    "par: bash: touch {tag}-a.txt || bash: touch {tag}-b.txt ;; say {tag}"
                ))?;
                self.dialog(dwell)?;
                self.approve_all(dwell)?;
                self.ready("the end of the turn")
            }
            Act::Question { two, dwell, reply } => {
                let tag = self.tag();
                let ask = if two { "ask2" } else { "ask" };
                self.prompt(&format!("{ask} ;; say {tag}"))?;
                self.dialog(dwell)?;
                if reply == Reply::Approve {
                    self.approve_all(dwell.min(600))?;
                } else {
                    self.reply(Reply::Escape)?;
                }
                self.ready("the end of the turn")
            }
            Act::Plan { dwell, reply } => {
                let tag = self.tag();
                self.prompt(&format!("plan ;; say {tag}"))?;
                self.dialog(dwell)?;
                let reply = if reply == Reply::No {
                    Reply::Escape
                } else {
                    reply
                };
                self.reply(reply)?;
                self.ready("the end of the turn")
            }
            Act::Auto { dwell } => {
                let tag = self.tag();
                self.prompt(&format!("bash: rm -rf /etc/lab ;; say {tag}"))?;
                self.dialog(dwell)?;
                self.reply(Reply::Escape)?;
                self.ready("the end of the turn")
            }
            Act::Interrupt { long, after } => self.interrupt(long, after),
            Act::Queue { interrupt } => {
                let first = self.slow(2600, "first");
                self.prompt(&first)?;
                self.pause(300);
                let second = self.slow(900, "queued");
                self.terminal.enter(&second, Aim::Prompt(second.clone()))?;
                if interrupt && self.works() {
                    self.pause(200);
                    self.terminal.press("Escape", Aim::Interrupt)?;
                }
                let asked = |prompt: &str| *prompt == second;
                self.asked(asked).context("the queued prompt never ran")?;
                self.ready("the end of both turns")
            }
            Act::MenuIdle { menu, dwell } => {
                self.open(menu.command())?;
                self.pause(dwell);
                self.close()
            }
            Act::MenuBusy { menu, over } => {
                let prompt = self.slow(if over { 2200 } else { 3500 }, "word");
                self.prompt(&prompt)?;
                self.pause(200);
                self.open(menu.command())?;
                if over {
                    let ended = self.terminal.wait(PATIENCE, |picture| {
                        picture.look.class == Class::Menu { working: false }
                    });
                    ensure!(ended, "the turn never ended under the menu");
                    let rest = self.chance.between(100, 3500);
                    self.pause(rest);
                }
                self.close()?;
                self.ready("the end of the turn")
            }
            Act::Clear => {
                self.terminal.enter("/clear", Aim::Clear)?;
                let clear = |screen: &str| screen.contains("❯ /clear");
                let cleared = self
                    .terminal
                    .wait(PATIENCE, |picture| clear(&picture.screen));
                ensure!(cleared, "/clear does nothing");
                self.ready("a fresh conversation")
            }
            Act::Compact { interrupt } => {
                // Something to compact, so that it is one.
                let prompt = self.slow(0, "word");
                self.turn(&prompt)?;
                self.terminal.enter("/compact", Aim::Compact)?;
                if let Some(after) = interrupt {
                    let spins = self.terminal.wait_class(PATIENCE, |c| c == Class::Working);
                    ensure!(spins, "/compact does nothing");
                    self.pause(after);
                    if self.works() {
                        self.terminal.press("Escape", Aim::Interrupt)?;
                    }
                    self.ready("the end of the compaction")?;
                    self.empty_box()
                } else {
                    let done = |screen: &str| screen.contains("Compacted (ctrl+o");
                    let compacted = self.terminal.wait(PATIENCE, |p| done(&p.screen));
                    ensure!(compacted, "/compact never ends");
                    self.ready("the end of the compaction")
                }
            }
            Act::Bang => {
                self.terminal.enter("!sleep 0.7; echo a", Aim::Bang)?;
                let spins = self.terminal.wait_class(PATIENCE, |c| c == Class::Working);
                ensure!(spins, "the command does not run");
                self.ready("the end of the turn")
            }
            Act::Shell { lasts } => {
                let tag = self.tag();
                let seconds = seconds(lasts);
                // Needs no permission.
                self.prompt(&format!("bg: sleep {seconds} ;; say {tag}"))?;
                self.notified()
            }
            Act::Agent { asks, lasts } => {
                let tag = self.tag();
                let seconds = seconds(lasts);
                // The subagent's own prompt bears another mark, so that its requests are known from Claude's.
                let task = if asks {
                    format!("sleep {seconds} then bash: touch {tag}.txt >> say sub{tag}")
                } else {
                    format!("slow {seconds} sub{tag} is talking >> say sub{tag}")
                };
                self.prompt(&format!("task: {task} ;; say {tag}"))?;
                if asks {
                    self.dialog(600)?;
                    self.reply(Reply::Approve)?;
                }
                self.notified()
            }
            Act::Fail { how } => {
                let prompt = self.numbered(how);
                self.turn(&prompt)
            }
            Act::Retry => {
                let prompt = self.numbered("error 500 x2");
                self.turn(&prompt)
            }
            Act::Suspend { busy, away } => self.suspend(busy, away),
            Act::Kill { after } => self.kill(after),
            Act::Exit { next } => {
                self.terminal.enter("/exit", Aim::Exit)?;
                self.shell()?;
                let rest = self.chance.between(100, 1500);
                self.pause(rest);
                self.start(next)
            }
        }
    }

    /// A prompt and its turn, to the end.
    fn turn(&mut self, prompt: &str) -> Result<()> {
        self.prompt(prompt)?;
        self.ready("the end of the turn")
    }

    /// A prompt, until Claude works on it.
    fn prompt(&mut self, prompt: &str) -> Result<()> {
        self.terminal
            .enter(prompt, Aim::Prompt(prompt.to_owned()))?;
        let taken = self.terminal.wait_class(PATIENCE, |class| {
            matches!(class, Class::Working | Class::Dialog(_))
        });
        ensure!(taken, "Claude does not take {prompt:?}");
        Ok(())
    }

    fn interrupt(&mut self, long: Long, after: u64) -> Result<()> {
        match long {
            Long::Stream => {
                let prompt = self.slow(20_000, "word");
                self.terminal.enter(&prompt, Aim::Prompt(prompt.clone()))?;
            }
            Long::Silent => {
                let tag = self.tag();
                let prompt = format!("sleep 20 then say {tag}");
                self.terminal.enter(&prompt, Aim::Prompt(prompt.clone()))?;
            }
            Long::Tool => {
                let tag = self.tag();
                let prompt = format!("bash: tail -f notes.txt ;; say {tag}");
                self.terminal.enter(&prompt, Aim::Prompt(prompt.clone()))?;
            }
            Long::Retry => {
                let prompt = self.numbered("error 500");
                self.terminal.enter(&prompt, Aim::Prompt(prompt.clone()))?;
            }
            Long::Bang => {
                self.terminal.enter("!sleep 30", Aim::Bang)?;
            }
        }
        self.pause(after);
        // One that comes before Claude has taken the prompt does nothing.
        for _ in 0..PRESSES {
            let works = self
                .terminal
                .wait_class(PATIENCE, |class| class == Class::Working);
            ensure!(works, "Claude does not take the prompt");
            self.terminal.press("Escape", Aim::Interrupt)?;
            if self
                .terminal
                .wait_class(AGAIN * 2, |class| class == Class::Ready)
            {
                self.ready("the end of the turn")?;
                return self.empty_box();
            }
        }
        bail!("Esc does not end the turn")
    }

    fn suspend(&mut self, busy: bool, away: u64) -> Result<()> {
        if busy {
            let prompt = self.slow(3000, "word");
            self.prompt(&prompt)?;
            self.pause(300);
        }
        self.terminal.press("C-z", Aim::Suspend)?;
        self.shell()?;
        self.pause(away);
        self.fresh_shell()?;
        self.terminal.enter("fg", Aim::Foreground)?;
        self.ready("the end of the turn")
    }

    fn kill(&mut self, after: u64) -> Result<()> {
        let tag = self.tag();
        let prompt = if self.chance.percent(50) {
            self.slow(9000, "word")
        } else {
            format!("ask ;; say {tag}")
        };
        self.prompt(&prompt)?;
        self.pause(after);
        let pid = self.claude()?;
        self.terminal.note(Aim::Kill);
        kill_process(pid, Signal::KILL)?;
        self.shell()?;
        self.pause(700);
        self.fresh_shell()?;
        self.start(Mode::Manual)
    }

    /// Starts Claude from the shell.
    fn start(&mut self, mode: Mode) -> Result<()> {
        self.shell()?;
        self.fresh_shell()?;
        self.terminal.enter(mode.command(), Aim::Start)?;
        let started = self
            .terminal
            .wait_class(PATIENCE, |class| class != Class::Shell);
        ensure!(started, "Claude does not start");
        self.ready("a fresh Claude")
    }

    /// The Claude of this tab: the child of the pane's shell whose program it is.
    fn claude(&self) -> Result<Pid> {
        let binary = claude_binary()?.canonicalize()?;
        let mut todo = vec![self.terminal.pane_pid()?];
        while let Some(pid) = todo.pop() {
            let exe = fs::read_link(format!("/proc/{pid}/exe"));
            if exe.is_ok_and(|exe| exe == binary) {
                return Pid::from_raw(pid).context("a pid");
            }
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.unwrap_or_default();
            todo.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            );
        }
        bail!("no Claude runs in this tab")
    }

    fn open(&self, command: &str) -> Result<()> {
        self.terminal.enter(command, Aim::OpenMenu)?;
        let open = |class| matches!(class, Class::Menu { .. });
        ensure!(
            self.terminal.wait_class(PATIENCE, open),
            "{command} opens no menu"
        );
        Ok(())
    }

    fn close(&self) -> Result<()> {
        for _ in 0..PRESSES {
            if !matches!(self.terminal.class(), Class::Menu { .. }) {
                return Ok(());
            }
            self.terminal.press("Escape", Aim::CloseMenu)?;
            self.terminal
                .wait_class(AGAIN, |class| !matches!(class, Class::Menu { .. }));
        }
        bail!("the menu does not close")
    }

    /// Waits for a dialog, and looks at it for a while.
    fn dialog(&self, dwell: u64) -> Result<()> {
        let asks = |class| matches!(class, Class::Dialog(_));
        ensure!(self.terminal.wait_class(PATIENCE, asks), "no dialog comes");
        self.pause(dwell);
        Ok(())
    }

    fn reply(&self, reply: Reply) -> Result<()> {
        let (key, aim) = match reply {
            Reply::Approve => ("Enter", Aim::Approve),
            Reply::Escape => ("Escape", Aim::Refuse),
            Reply::No => ("4", Aim::Refuse),
        };
        for _ in 0..PRESSES {
            if !matches!(self.terminal.class(), Class::Dialog(_)) {
                return Ok(());
            }
            self.terminal.press(key, aim.clone())?;
            self.terminal
                .wait_class(AGAIN, |class| !matches!(class, Class::Dialog(_)));
        }
        bail!("{key} does not answer the dialog")
    }

    /// Says yes to whatever is asked, until Claude is at rest.
    fn approve_all(&self, dwell: u64) -> Result<()> {
        for _ in 0..PRESSES {
            self.terminal.press("Enter", Aim::Approve)?;
            self.terminal
                .wait_class(AGAIN, |class| !matches!(class, Class::Dialog(_)));
            let open = |class| matches!(class, Class::Dialog(_) | Class::Ready);
            ensure!(
                self.terminal.wait_class(PATIENCE, open),
                "the turn does not end"
            );
            if self.terminal.class() == Class::Ready {
                return Ok(());
            }
            self.pause(dwell);
        }
        bail!("the dialogs do not end")
    }

    /// Waits until Claude has been told of something that ended behind it, and has said so.
    fn notified(&mut self) -> Result<()> {
        let noticed = "noticed the finished background task";
        let before = self
            .terminal
            .picture()
            .map_or(0, |picture| picture.screen.matches(noticed).count());
        let told = self.terminal.wait(PATIENCE, |picture| {
            let now = picture.screen.matches(noticed).count();
            now > before
        });
        ensure!(told, "Claude never hears of the end");
        self.ready("the end of the turn")
    }

    /// Waits for a request with this prompt.
    fn asked(&self, fits: impl Fn(&str) -> bool) -> Result<()> {
        let fake = self.stage.fake();
        let found = fake.wait(PATIENCE, |request| fits(&request.prompt));
        found.context("no such request").map(drop)
    }

    /// Waits for the box, with nothing moving.
    fn ready(&self, what: &str) -> Result<()> {
        let there = self
            .terminal
            .wait_still(PATIENCE, STILL, |class| class == Class::Ready);
        ensure!(there, "waiting for {what}");
        Ok(())
    }

    fn shell(&self) -> Result<()> {
        let shell = self
            .terminal
            .wait_class(PATIENCE, |class| class == Class::Shell);
        ensure!(shell, "no shell");
        // Its prompt is drawn a moment after it has the terminal.
        let prompt = |screen: &str| {
            screen
                .lines()
                .any(|line| line.starts_with("lab$") || line.starts_with("lab#"))
        };
        ensure!(
            self.terminal
                .wait(PATIENCE, |picture| prompt(&picture.screen)),
            "no prompt of the shell"
        );
        Ok(())
    }

    /// Clears the shell's screen and line, whatever is left on them.
    fn fresh_shell(&self) -> Result<()> {
        for _ in 0..PRESSES {
            self.terminal.press("C-u C-l", Aim::Stray)?;
            let fresh = |screen: &str| matches!(screen.trim(), "lab$" | "lab#");
            if self.terminal.wait(AGAIN, |picture| fresh(&picture.screen)) {
                return Ok(());
            }
        }
        bail!("the shell's screen does not clear")
    }

    /// Esc before the first token puts the prompt back into the box.
    fn empty_box(&self) -> Result<()> {
        // Where the turn had begun, it says that it was interrupted, and nothing comes back.
        let settled =
            |picture: &Picture| picture.look.draft || picture.look.tail == Tail::Interrupted;
        self.terminal.wait(AGAIN * 2, settled);
        // What looks like a draft may be a hint of Claude's, which goes with the first letter.
        for _ in 0..3 {
            if self
                .terminal
                .picture()
                .is_none_or(|picture| !picture.look.draft)
            {
                break;
            }
            self.terminal.press("C-u", Aim::Stray)?;
            self.terminal.wait(STILL * 2, |picture| !picture.look.draft);
        }
        // The shell mode of the box is left by a key.
        let bang = |screen: &str| screen.contains("! for shell mode");
        if self
            .terminal
            .picture()
            .is_some_and(|picture| bang(&picture.screen))
        {
            self.terminal.press("BSpace", Aim::Stray)?;
            self.terminal.wait(AGAIN, |picture| !bang(&picture.screen));
        }
        Ok(())
    }

    fn works(&self) -> bool {
        self.terminal.class() == Class::Working
    }

    /// A prompt that is answered over so many ms, with words that name it.
    fn slow(&mut self, spread: u64, word: &str) -> String {
        let tag = self.tag();
        let words = [word; 8].join(" ");
        if spread == 0 {
            format!("say {tag} {words}")
        } else {
            format!("slow {} {tag} {words}", seconds(spread))
        }
    }

    /// Marks a prompt as this session's.
    fn tag(&mut self) -> String {
        self.prompts += 1;
        format!("{}{}", mark(self.session), self.prompts)
    }

    /// A step that takes no words, as a prompt that is this session's own.
    fn numbered(&mut self, step: &str) -> String {
        self.prompts += 1;
        format!("{}{:03} then {step}", number(self.session), self.prompts)
    }

    /// The person does nothing for a while: part of the script, not a wait for something.
    fn pause(&self, ms: u64) {
        self.terminal.wait(Duration::from_millis(ms), |_| false);
    }
}

/// Whether this is a prompt of the session's, or of one of its subagents'.
#[must_use]
pub fn is_of(session: usize, prompt: &str) -> bool {
    let number = number(session);
    let numbered = |rest: &str| rest.get(3..).is_some_and(|rest| rest.starts_with(" then "));
    prompt.contains(&mark(session)) || prompt.strip_prefix(&number).is_some_and(numbered)
}

/// Whether it is a subagent's.
#[must_use]
pub fn is_agent(session: usize, prompt: &str) -> bool {
    prompt.contains(&format!("sub{}", mark(session))) && !prompt.starts_with("task:")
}

fn mark(session: usize) -> String {
    format!("t{session}m")
}

fn number(session: usize) -> String {
    format!("sleep 0.{session}")
}

fn seconds(ms: u64) -> String {
    format!("{}.{}", ms / 1000, ms % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_name_their_session_and_lane() {
        assert!(is_of(2, "slow 1.5 t2m7 word") && !is_of(2, "slow 1.5 t3m7 word"));
        assert!(
            is_of(2, "sleep 0.2011 then error 400") && !is_of(2, "sleep 0.3011 then error 400")
        );
        assert!(!is_of(2, "sleep 0.2 then bash: ls"));
        assert!(is_agent(2, "slow 1.0 subt2m3 is talking ;; say subt2m3"));
        assert!(!is_agent(
            2,
            "task: slow 1.0 subt2m3 >> say subt2m3 ;; say t2m3"
        ));
        assert_eq!(seconds(2450), "2.4");
    }
}
