//! The real Claude Code in a terminal that two pages look at: who decides its size, and what it is told when it asks the
//! terminal something.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use purplemux_lab::clock::{until, wall_ns};
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind};
use purplemux_wire::frame::{FromViewer, Hold, ToViewer};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);
/// What the page waits between two sizes that it sends, in nanoseconds.
const PACE_NS: i64 = 250_000_000;
/// How long the window is dragged.
const DRAGGED: Duration = Duration::from_secs(5);
/// A look at what has come.
const LOOK: Duration = Duration::from_millis(20);

/// One page's terminal.
struct Page {
    socket: WebSocket<UnixStream>,
    /// What the window's size was said to be, and whether by this page's choice.
    size: Option<(u16, u16, bool)>,
}

impl Page {
    fn open(lab: &Lab, tab: &Tab<'_>, cols: u16, rows: u16) -> Result<Self> {
        let stream = UnixStream::connect(lab.home().product().join("purplemux.sock"))?;
        // A handshake that is waited for is no error; afterwards a look must end.
        stream.set_read_timeout(Some(PATIENCE))?;
        let id = &tab.id;
        let address = format!("ws://localhost/api/terminal?tab={id}&cols={cols}&rows={rows}");
        let (socket, _) =
            tungstenite::client(address.into_client_request()?, stream).context("no terminal")?;
        socket.get_ref().set_read_timeout(Some(LOOK))?;
        let mut page = Self { socket, size: None };
        page.until("a size", |page| page.size.is_some())?;
        Ok(page)
    }

    fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) -> Result<()> {
        let mut failed = None;
        until(PATIENCE, || match self.look() {
            Ok(()) => so(self).then_some(()),
            Err(why) => {
                failed = Some(why);
                Some(())
            }
        })
        .with_context(|| format!("never {what}: {:?}", self.size))?;
        failed.map_or(Ok(()), Err)
    }

    fn send(&mut self, frame: &FromViewer) -> Result<()> {
        Ok(self.socket.send(Message::binary(frame.encode()))?)
    }

    fn resize(&mut self, cols: u16, rows: u16) -> Result<()> {
        self.send(&FromViewer::Resize { cols, rows })
    }

    /// Takes in what is there, and confirms it.
    fn look(&mut self) -> Result<()> {
        loop {
            match self.socket.read() {
                Ok(Message::Binary(frame)) => match ToViewer::decode(&frame)? {
                    ToViewer::Data(bytes) => {
                        self.send(&FromViewer::Credit(u32::try_from(bytes.len())?))?;
                    }
                    ToViewer::Size { cols, rows, own } => self.size = Some((cols, rows, own)),
                    ToViewer::End(why) => bail!("the terminal has ended: {why}"),
                    ToViewer::Offset(_) | ToViewer::Title(_) => {}
                },
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error).context("the terminal's socket"),
            }
        }
    }
}

fn window(tab: &Tab<'_>) -> Result<String> {
    let said = tab.pane.tmux(
        "display-message",
        &[
            "-p",
            "-t",
            tab.pane.target(),
            "#{window_width}x#{window_height}",
        ],
    )?;
    Ok(said.trim().to_owned())
}

/// Does it again and again for so long.
fn for_so_long(how_long: Duration, mut what: impl FnMut() -> Result<()>) -> Result<()> {
    let failed = until(how_long, || what().err());
    failed.map_or(Ok(()), Err)
}

#[test]
fn w01_a_second_viewer_never_shrinks_claudes_window_and_the_owner_drags_it() -> Result<()> {
    let lab = Lab::start("w01")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    let mut owner = Page::open(&lab, &tab, 120, 30)?;
    tab.ready()?;
    ensure!(owner.size == Some((120, 30, true)), "{:?}", owner.size);
    let mut other = Page::open(&lab, &tab, 60, 15)?;
    ensure!(other.size == Some((120, 30, false)), "{:?}", other.size);

    // The other is dragged while Claude works: the window stays as it is.
    tab.prompt("slow 5 one two three four")?;
    let mut cols = 60;
    for_so_long(DRAGGED, || {
        cols = if cols == 60 { 58 } else { 60 };
        other.resize(cols, 15)?;
        other.look()?;
        owner.look()?;
        let now = window(&tab)?;
        ensure!(now == "120x30", "shrunk to {now}");
        Ok(())
    })?;
    tab.expect(&["review(finished)"])?;

    // The owner is dragged, at the page's pace: everybody follows, and Claude lives through it.
    let mut next_ns = wall_ns();
    let mut cols = 120;
    for_so_long(DRAGGED, || {
        if wall_ns() >= next_ns {
            next_ns += PACE_NS;
            cols -= 1;
            owner.resize(cols, 30)?;
        }
        owner.look()?;
        other.look()
    })?;
    let is = |wanted: &str| until(PATIENCE, || (window(&tab).ok()? == wanted).then_some(()));
    owner.until("its last size", |page| page.size == Some((cols, 30, true)))?;
    other.until("the owner's", |page| page.size == Some((cols, 30, false)))?;
    is(&format!("{cols}x30")).context("the window has the last size")?;

    // The other takes it, and when it has gone without a word the owner's is there again.
    other.send(&FromViewer::Hold(Hold::Take))?;
    other.until("its own", |page| matches!(page.size, Some((_, 15, true))))?;
    owner.until("the other's", |page| {
        matches!(page.size, Some((_, 15, false)))
    })?;
    drop(other);
    owner.until("its own again", |page| page.size == Some((cols, 30, true)))?;
    is(&format!("{cols}x30")).context("the window is given back")?;
    tab.prompt("say x")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn w07_what_claude_asks_its_terminal_leaves_nothing_at_the_prompt_with_two_viewers() -> Result<()> {
    let lab = Lab::start("w07")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    // Questions in the history and on the screen, which were answered before anybody looked.
    tab.enter("stty raw -echo; printf '\\033[c\\033[6n\\033]11;?\\007'; timeout 1 cat > told; stty sane; wc -c < told; printf 'as''ked\\n'")?;
    tab.pane.wait_for("\nasked", PATIENCE)?;
    let pages = RefCell::new([
        Page::open(&lab, &tab, 100, 30)?,
        Page::open(&lab, &tab, 80, 24)?,
    ]);
    let look = || -> Result<()> {
        for page in pages.borrow_mut().iter_mut() {
            page.look()?;
        }
        Ok(())
    };
    for_so_long(QUIET, look)?;
    tab.shell_ready()?;
    // Claude asks what it always asks when it starts, and is looked at by two.
    tab.start_claude("claude --permission-mode manual")?;
    for_so_long(QUIET, look)?;
    let screen = tab.screen();
    for stray in ["[?", ";1R", "0;276;0c", "1;2c", "rgb:"] {
        ensure!(!screen.contains(stray), "{stray} at the prompt:\n{screen}");
    }
    // Whatever had been typed into the box would be a part of this prompt.
    tab.prompt("say x")?;
    tab.expect(&["review(finished)"])?;
    let requests = lab.fake().requests();
    let prompts: Vec<&str> = requests
        .iter()
        .map(|request| request.prompt.as_str())
        .filter(|prompt| prompt.contains("say x"))
        .collect();
    ensure!(!prompts.is_empty(), "the prompt has not arrived");
    ensure!(
        prompts.iter().all(|prompt| *prompt == "say x"),
        "{prompts:?}"
    );
    tab.stays(QUIET)
}
