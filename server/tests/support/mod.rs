//! A server of its own for each test, and a client that behaves like the browser: it signs in with a code,
//! keeps cookie and secret, sends Origin. Everything lives in a throw-away directory with its own tmux.

#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test's helper fails as the test does"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "it starts the server and waits with a deadline"
)]

pub mod dialogs;
pub mod push_service;
pub mod standin;

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::num::NonZero;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use purplemux_wire::browser::{Changes, ClientMsg, Item, ServerMsg, Workspace};
use purplemux_wire::frame::{FromViewer, ToViewer};
use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// Longer than anything takes on a busy machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub struct TestServer {
    pub dir: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
}

/// The binary with an environment of its own below `dir`.
pub fn purplemux(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purplemux"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir.join("person"))
        .env("SHELL", "/bin/bash")
        .env("USER", "person")
        .env("LANG", "C.UTF-8")
        .env("TMUX_TMPDIR", dir)
        .env("PURPLEMUX_HOME", dir.join("home"))
        .stdin(Stdio::null());
    command
}

/// A directory for a server that has not been started.
pub fn place() -> tempfile::TempDir {
    // Short: tmux's socket lies below it.
    let dir = tempfile::Builder::new().prefix("pm").tempdir().unwrap();
    std::fs::create_dir(dir.path().join("person")).unwrap();
    dir
}

impl TestServer {
    pub fn start() -> Self {
        Self::start_in(place())
    }

    pub fn start_in(dir: tempfile::TempDir) -> Self {
        Self::start_with(dir, &[])
    }

    pub fn start_with(dir: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut command = purplemux(dir.path());
        command.args(["serve", "--port", "0"]).args(arguments);
        let (child, port) = start(command);
        Self {
            dir,
            port,
            child: Some(child),
        }
    }

    /// On a machine that grants no watch. The limits of a user namespace are its own: no other program of ours
    /// runs out of anything.
    pub fn start_unwatched(dir: tempfile::TempDir) -> Self {
        let plain = purplemux(dir.path());
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-current-user", "--keep-caps", "sh", "-c"])
            .arg("echo 0 >/proc/sys/user/max_inotify_instances && exec \"$0\" serve --port 0")
            .arg(plain.get_program())
            .env_clear();
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let (child, port) = start(command);
        Self::adopt(dir, port, child)
    }

    /// Takes over a server that was started by hand.
    pub fn adopt(dir: tempfile::TempDir, port: u16, child: Child) -> Self {
        Self {
            dir,
            port,
            child: Some(child),
        }
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.authority())
    }

    pub fn token(&self) -> String {
        let token = std::fs::read_to_string(self.home().join("cli-token")).unwrap();
        token.trim().to_owned()
    }

    /// Runs a command of the binary to its end.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        purplemux(self.dir.path()).args(arguments).output().unwrap()
    }

    /// Its standard output, of a command that must succeed.
    pub fn cli_ok(&self, arguments: &[&str]) -> String {
        let output = self.cli(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.cli_ok(arguments)).unwrap()
    }

    pub fn code(&self) -> String {
        let minted = self.json(&["login", "--json"]);
        minted["code"].as_str().unwrap().to_owned()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end of the process; its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it with this signal and gives the directory back, for another start.
    pub fn end(mut self, signal: &str) -> tempfile::TempDir {
        self.signal(signal);
        self.wait();
        let empty = tempfile::tempdir().unwrap();
        std::mem::replace(&mut self.dir, empty)
    }

    /// One request over TCP with just these headers besides Host.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let authority = self.authority();
        self.request_as(&authority, method, path, headers, body)
    }

    /// As [`Self::request`], with this Host; empty for none.
    pub fn request_as(
        &self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let stream = TcpStream::connect(self.authority()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(stream, host, method, path, headers, body)
    }

    /// One request over the unix socket.
    pub fn local(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let stream = UnixStream::connect(self.home().join("purplemux.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(stream, "purplemux", method, path, headers, body)
    }

    pub fn browser(&self) -> Browser<'_> {
        Browser::sign_in(self)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            end(&mut child);
        }
        end_tmux(self.dir.path());
    }
}

/// Ends a server in an orderly way: a tmux server whose control client was torn away may not end at all.
pub fn end(child: &mut Child) {
    let pid = child.id().to_string();
    Command::new("kill").arg(&pid).status().unwrap();
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends every tmux server whose socket is below `dir`, one that is only just starting included.
pub fn end_tmux(dir: &Path) {
    let until = Instant::now() + PATIENCE;
    // A process that forks and ends while /proc is being listed is missed by one look.
    let mut none_seen = 0;
    while none_seen < 3 {
        for socket in sockets(dir) {
            let mut tmux = Command::new("tmux");
            tmux.arg("-S").arg(socket).arg("kill-server");
            tmux.stderr(Stdio::null()).status().unwrap();
        }
        let left = mentioning(dir);
        none_seen = if left.is_empty() { none_seen + 1 } else { 0 };
        assert!(Instant::now() < until, "tmux does not end: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn sockets(dir: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries(dir)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("tmux-"))
        .flat_map(|entry| entries(&entry.path()).collect::<Vec<_>>())
        .map(|entry| entry.path())
        .collect()
}

/// What a person types: `tmux …`, on this server's socket.
pub fn tmux(server: &TestServer, arguments: &[&str]) -> String {
    tmux_below(server.dir.path(), arguments)
}

/// The same, on the one socket below this directory.
pub fn tmux_below(dir: &Path, arguments: &[&str]) -> String {
    let socket = sockets(dir).pop().unwrap();
    let mut tmux = Command::new("tmux");
    let output = tmux.arg("-S").arg(socket).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The tmux processes whose command line names this directory.
fn mentioning(dir: &Path) -> Vec<String> {
    let dir = dir.to_string_lossy();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.starts_with("tmux ") && line.contains(&*dir))
        .collect()
}

/// Starts a server and waits for the line that says its address.
pub fn start(mut command: Command) -> (Child, u16) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let port = line
        .split("http://127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("no address in {line:?}"));
    (child, port)
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

fn exchange(
    mut stream: impl std::io::Read + std::io::Write,
    host: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !host.is_empty() {
        head += &format!("host: {host}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() || method != "GET" {
        head += &format!("content-length: {}\r\n", body.len());
    }
    head += "\r\n";
    // A server that has heard enough may answer and close before all is written: the answer counts.
    let written = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    assert!(!answer.is_empty(), "no answer: {written:?} {read:?}");
    let end = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&answer)));
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head,
        body: answer[end + 4..].to_vec(),
    }
}

/// A browser that is signed in.
pub struct Browser<'s> {
    pub server: &'s TestServer,
    /// `name=value`.
    pub cookie: String,
    pub secret: String,
}

pub type Socket = WebSocket<TcpStream>;

impl<'s> Browser<'s> {
    pub fn sign_in(server: &'s TestServer) -> Self {
        let body = serde_json::json!({ "code": server.code() }).to_string();
        let answer = server.request(
            "POST",
            "/api/login",
            &[
                ("origin", &server.origin()),
                ("content-type", "application/json"),
            ],
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        let cookie = answer.header("set-cookie").unwrap();
        Self {
            server,
            cookie: cookie.split(';').next().unwrap().to_owned(),
            secret: answer.json()["secret"].as_str().unwrap().to_owned(),
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("x-pmux-secret", self.secret.as_str()),
        ];
        self.server.request("GET", path, &headers, b"")
    }

    pub fn write(&self, method: &str, path: &str, body: &Value) -> Answer {
        let origin = self.server.origin();
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("x-pmux-secret", self.secret.as_str()),
            ("origin", &origin),
            ("content-type", "application/json"),
        ];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.server.request(method, path, &headers, body.as_bytes())
    }

    /// A new shell; the tab's id.
    pub fn tab(&self) -> String {
        let made = self.write("POST", "/api/tabs", &serde_json::json!({}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["tab"].as_str().unwrap().to_owned()
    }

    /// A WebSocket with this browser's cookie and these further headers.
    pub fn upgrade(&self, path: &str, origin: Option<&str>) -> Result<Socket, u16> {
        upgrade(self.server, path, origin, Some(&self.cookie))
    }

    fn greeted(&self, path: &str) -> Socket {
        let origin = self.server.origin();
        let mut socket = self.upgrade(path, Some(&origin)).expect("our own page");
        let hello = ClientMsg::Hello {
            secret: self.secret.clone(),
        };
        say(&mut socket, &hello);
        socket
    }

    pub fn status(&self) -> Viewer {
        Viewer::new(self.greeted("/api/status"))
    }

    pub fn terminal(&self, tab: &str, cols: u16, rows: u16) -> Terminal {
        let path = format!("/api/terminal?tab={tab}&cols={cols}&rows={rows}");
        Terminal::new(self.greeted(&path), cols, rows)
    }

    /// The terminal of a session outside our tabs.
    pub fn terminal_elsewhere(&self, item: &str, cols: u16, rows: u16) -> Terminal {
        let path = format!("/api/terminal?item={item}&cols={cols}&rows={rows}");
        Terminal::new(self.greeted(&path), cols, rows)
    }

    pub fn resume(&self, tab: &str, offset: u64, cols: u16, rows: u16) -> Terminal {
        let path = format!("/api/terminal?tab={tab}&cols={cols}&rows={rows}&offset={offset}");
        Terminal::new(self.greeted(&path), cols, rows)
    }
}

/// A WebSocket, or the status that refused it.
pub fn upgrade(
    server: &TestServer,
    path: &str,
    origin: Option<&str>,
    cookie: Option<&str>,
) -> Result<Socket, u16> {
    let stream = TcpStream::connect(server.authority()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let url = format!("ws://{}{path}", server.authority());
    let mut request = url.into_client_request().unwrap();
    if let Some(origin) = origin {
        request
            .headers_mut()
            .insert("origin", origin.parse().unwrap());
    }
    if let Some(cookie) = cookie {
        request
            .headers_mut()
            .insert("cookie", cookie.parse().unwrap());
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn say(socket: &mut Socket, message: &ClientMsg) {
    let text = serde_json::to_string(message).unwrap();
    socket.send(Message::text(text)).unwrap();
}

/// The code with which the server closes this socket, whatever it sends before.
pub fn close_code(socket: &mut Socket) -> Option<u16> {
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// A page's link: applies what it is told and checks that nothing is missing in between.
pub struct Viewer {
    pub socket: Socket,
    pub epoch: String,
    pub rev: u64,
    pub items: Vec<Item>,
    pub workspaces: Vec<Workspace>,
    pub notices: Vec<purplemux_wire::sentence::Notice>,
    pub snapshots: u32,
    pub settings: Option<serde_json::Map<String, Value>>,
}

impl Viewer {
    fn new(socket: Socket) -> Self {
        let mut viewer = Self {
            socket,
            epoch: String::new(),
            rev: 0,
            items: Vec::new(),
            workspaces: Vec::new(),
            notices: Vec::new(),
            snapshots: 0,
            settings: None,
        };
        viewer.until(|viewer| viewer.snapshots == 1);
        viewer
    }

    /// The next message but those that tell the settings, which are kept.
    pub fn next(&mut self) -> ServerMsg {
        loop {
            match self.any() {
                ServerMsg::Settings { settings } => self.settings = Some(settings),
                message => return message,
            }
        }
    }

    fn any(&mut self) -> ServerMsg {
        loop {
            match self.socket.read().expect("the link holds") {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    pub fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < until, "not in time: {:?}", self.items);
            match self.any() {
                ServerMsg::Settings { settings } => self.settings = Some(settings),
                ServerMsg::Snapshot {
                    epoch,
                    rev,
                    items,
                    workspaces,
                    notices,
                    now_ms: _,
                } => {
                    self.epoch = epoch;
                    self.rev = rev;
                    self.items = items;
                    self.workspaces = workspaces;
                    self.notices = notices;
                    self.snapshots += 1;
                }
                ServerMsg::Diff {
                    epoch,
                    rev,
                    set,
                    gone,
                    workspaces,
                    notices,
                    now_ms: _,
                } => {
                    assert_eq!(epoch, self.epoch);
                    assert_eq!(rev, self.rev + 1, "no gap");
                    self.rev = rev;
                    let changes = Changes {
                        set,
                        gone,
                        workspaces,
                        notices,
                    };
                    changes.apply(&mut self.items, &mut self.workspaces, &mut self.notices);
                }
                ServerMsg::Heartbeat { epoch, rev, .. } => {
                    assert_eq!((epoch, rev), (self.epoch.clone(), self.rev));
                }
                ServerMsg::Refused { why, .. } => panic!("refused: {why}"),
                ServerMsg::Answered { .. } | ServerMsg::Stopped { .. } => {}
            }
        }
    }
}

/// A page's terminal, with an emulator that shows what the person would see.
pub struct Terminal {
    pub socket: Socket,
    pub screen: vt100::Parser,
    /// Offset of the next data byte.
    pub offset: u64,
    /// All offsets that were announced.
    pub announced: Vec<u64>,
    pub received: u64,
    /// How large the window was said to be, and whether by this viewer's choice.
    pub sizes: Vec<(u16, u16, bool)>,
    pub titles: Vec<String>,
    pub ended: Option<String>,
    /// Whether every byte is confirmed as soon as it has been shown.
    pub confirms: bool,
}

fn emulator(cols: u16, rows: u16) -> vt100::Parser {
    let size = |n| NonZero::new(n).unwrap();
    vt100::Parser::new(size(rows), size(cols), 0)
}

impl Terminal {
    fn new(socket: Socket, cols: u16, rows: u16) -> Self {
        Self {
            socket,
            screen: emulator(cols, rows),
            offset: 0,
            announced: Vec::new(),
            received: 0,
            sizes: Vec::new(),
            titles: Vec::new(),
            ended: None,
            confirms: true,
        }
    }

    pub fn send(&mut self, frame: &FromViewer) {
        self.socket.send(Message::binary(frame.encode())).unwrap();
    }

    pub fn keys(&mut self, keys: &str) {
        self.send(&FromViewer::Data(keys.as_bytes().to_vec()));
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        let size = |n| NonZero::new(n).unwrap();
        self.screen.screen_mut().set_size(size(rows), size(cols));
        self.send(&FromViewer::Resize { cols, rows });
    }

    /// Takes in one message; false when the socket has closed.
    pub fn step(&mut self) -> bool {
        match self.socket.read() {
            Ok(Message::Binary(frame)) => self.take(&frame),
            Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => return false,
            Ok(_) => {}
            Err(error) => panic!("the terminal's socket: {error}"),
        }
        true
    }

    pub fn take(&mut self, frame: &[u8]) {
        match ToViewer::decode(frame).unwrap() {
            ToViewer::Offset(offset) => {
                if offset != self.offset {
                    let (rows, cols) = self.screen.screen().size();
                    self.screen = emulator(cols.get(), rows.get());
                }
                self.offset = offset;
                self.announced.push(offset);
            }
            ToViewer::Data(bytes) => {
                self.screen.process(&bytes);
                self.offset += bytes.len() as u64;
                self.received += bytes.len() as u64;
                if self.confirms {
                    let credit = FromViewer::Credit(u32::try_from(bytes.len()).unwrap());
                    // While the socket is closing, nobody wants it any more.
                    drop(self.socket.send(Message::binary(credit.encode())));
                }
            }
            ToViewer::Size { cols, rows, own } => self.sizes.push((cols, rows, own)),
            ToViewer::Title(title) => self.titles.push(title),
            ToViewer::End(reason) => self.ended = Some(reason),
        }
    }

    pub fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Reads until the screen shows this.
    pub fn until(&mut self, wanted: &str) {
        self.until_that(wanted, |terminal| terminal.text().contains(wanted));
    }

    pub fn until_that(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < until, "never {what:?}:\n{}", self.text());
            assert!(self.step(), "closed before {what:?}:\n{}", self.text());
        }
    }

    /// Breaks the connection without a farewell, as a lost network does.
    pub fn cut(self) -> u64 {
        let stream = self.socket.get_ref();
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        self.offset
    }
}

/// Asks until it is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
