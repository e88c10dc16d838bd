//! A page's link to the server, over loopback with a login of its own, that notes when each frame came.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use purplemux_wire::browser::{Changes, ClientMsg, Item, ServerMsg};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::crowd;
use crate::server::Server;

/// Longer than anything may take; then the measurement has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a browser holds after signing in.
#[derive(Clone)]
pub struct Login {
    authority: String,
    cookie: String,
    secret: String,
}

impl Login {
    /// Signs in with a code of the server's.
    pub fn new(server: &Server) -> anyhow::Result<Self> {
        let minted: Value = serde_json::from_str(&server.run(&["login", "--json"])?)?;
        let body = json!({ "code": minted["code"] }).to_string();
        let authority = format!("127.0.0.1:{}", server.port()?);
        let mut stream = TcpStream::connect(&authority)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "POST /api/login HTTP/1.1\r\nhost: {authority}\r\norigin: http://{authority}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .and_then(|line| line.split(';').next())
            .with_context(|| format!("no cookie in {head}"))?;
        let body: Value = serde_json::from_str(body)?;
        Ok(Self {
            authority,
            cookie: cookie.to_owned(),
            secret: body["secret"].as_str().context("no secret")?.to_owned(),
        })
    }

    /// A socket at this path, with the hello said.
    pub fn socket(&self, path: &str) -> anyhow::Result<WebSocket<TcpStream>> {
        let stream = TcpStream::connect(&self.authority)?;
        stream.set_nodelay(true)?;
        self.over(stream, path)
    }

    /// As [`Self::socket`], over this connection.
    fn over(&self, stream: TcpStream, path: &str) -> anyhow::Result<WebSocket<TcpStream>> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut request = format!("ws://{}{path}", self.authority).into_client_request()?;
        let headers = request.headers_mut();
        headers.insert("origin", format!("http://{}", self.authority).parse()?);
        headers.insert("cookie", self.cookie.parse()?);
        let (mut socket, _) =
            tungstenite::client(request, stream).map_err(|why| anyhow::anyhow!("{why}"))?;
        let hello = ClientMsg::Hello {
            secret: self.secret.clone(),
        };
        socket.send(Message::text(serde_json::to_string(&hello)?))?;
        Ok(socket)
    }

    /// Writes as the page does; the status of the answer.
    pub fn put(&self, path: &str, body: &Value) -> anyhow::Result<u16> {
        let Self {
            authority,
            cookie,
            secret,
        } = self;
        let body = body.to_string();
        let mut stream = TcpStream::connect(authority)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "PUT {path} HTTP/1.1\r\nhost: {authority}\r\norigin: http://{authority}\r\nconnection: close\r\n\
             cookie: {cookie}\r\nx-pmux-secret: {secret}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        crowd::status(&mut stream)
    }
}

/// One socket, and what it was told.
pub struct Viewer {
    socket: WebSocket<TcpStream>,
    /// All rows now.
    pub items: Vec<Item>,
    rev: u64,
}

impl Viewer {
    /// Connects, and returns when the snapshot is there.
    pub fn open(login: &Login) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(&login.authority)?;
        stream.set_nodelay(true)?;
        Self::over(stream, login)
    }

    /// As [`Self::open`], over this connection.
    pub fn over(stream: TcpStream, login: &Login) -> anyhow::Result<Self> {
        let mut viewer = Self {
            socket: login.over(stream, "/api/status")?,
            items: Vec::new(),
            rev: 0,
        };
        while viewer.rev == 0 {
            viewer.next()?;
        }
        Ok(viewer)
    }

    /// Says something to the server.
    pub fn say(&mut self, message: &ClientMsg) -> anyhow::Result<()> {
        let text = serde_json::to_string(message)?;
        self.socket.send(Message::text(text))?;
        Ok(())
    }

    /// Takes in one frame; when it came.
    pub fn next(&mut self) -> anyhow::Result<Instant> {
        let (at, text) = loop {
            match self.socket.read()? {
                Message::Text(text) => break (Instant::now(), text),
                Message::Close(why) => bail!("closed: {why:?}"),
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
            }
        };
        match serde_json::from_str(&text)? {
            ServerMsg::Snapshot { rev, items, .. } => {
                self.rev = rev;
                self.items = items;
            }
            ServerMsg::Diff { rev, set, gone, .. } => {
                ensure!(rev == self.rev + 1, "a revision is missing before {rev}");
                self.rev = rev;
                let changes = Changes {
                    set,
                    gone,
                    ..Changes::default()
                };
                changes.apply(&mut self.items, &mut Vec::new(), &mut Vec::new());
            }
            ServerMsg::Heartbeat { .. }
            | ServerMsg::Settings { .. }
            | ServerMsg::Answered { .. }
            | ServerMsg::Stopped { .. } => {}
            ServerMsg::Refused { why, .. } => bail!("refused: {why}"),
        }
        Ok(at)
    }

    /// Reads a kilobyte a second until `end`, as a bad network lets through, and takes nothing of it in. What was read
    /// comes first afterwards; a connection that the server closes meanwhile shows that then.
    pub fn read_slowly(&mut self, end: Instant) -> anyhow::Result<()> {
        let mut stream = self.socket.get_ref().try_clone()?;
        let mut early = Vec::new();
        let mut some = [0; 100];
        while Instant::now() < end {
            match stream.read(&mut some) {
                Ok(read) if read > 0 => early.extend_from_slice(&some[..read]),
                Ok(_) | Err(_) => break,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.socket = WebSocket::from_partially_read(stream, early, Role::Client, None);
        Ok(())
    }

    /// Takes frames in until it is so; when the frame came that made it so.
    pub fn until(&mut self, what: &str, so: impl Fn(&[Item]) -> bool) -> anyhow::Result<Instant> {
        let end = Instant::now() + PATIENCE;
        loop {
            let at = self.next()?;
            if so(&self.items) {
                return Ok(at);
            }
            ensure!(
                Instant::now() < end,
                "never {what}: {:?}",
                self.items.first()
            );
        }
    }
}

/// The row of a process.
pub fn find(items: &[Item], pid: u32) -> Option<&Item> {
    items.iter().find(|item| item.pid == Some(pid))
}
