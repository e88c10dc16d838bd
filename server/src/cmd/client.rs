//! How the commands talk to the running server: HTTP and WebSocket over its unix socket. They know no
//! database, no tmux and no Claude; what they print is what the server says.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use axum::body::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use purplemux_wire::text::deceives;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;

use crate::home::Home;

/// Characters of a title where there is no terminal whose width would bound it.
pub const PIPED_CHARS: usize = 40;
/// And on the narrowest terminal: enough to tell rows apart.
const TITLE_CHARS_MIN: usize = 16;
/// What the last column may ask for: it is not padded, and reads well when it is wrapped.
const LAST_CHARS: usize = 30;

/// No server answers in this home (exit code 3).
#[derive(Debug, thiserror::Error)]
#[error("No purplemux server is running in {home}; start one with `purplemux`.")]
pub struct NotRunning {
    home: String,
}

/// The server of one home.
#[derive(Clone, Debug)]
pub struct Client {
    home: String,
    socket: PathBuf,
}

impl Client {
    /// Knows where the server would be; connects to nothing yet.
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self {
            home: home.dir().display().to_string(),
            socket: home.socket_to_reach(),
        }
    }

    async fn connect(&self) -> Result<UnixStream> {
        match UnixStream::connect(&self.socket).await {
            Ok(stream) => Ok(stream),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
                ) =>
            {
                Err(NotRunning {
                    home: self.home.clone(),
                }
                .into())
            }
            Err(error) => Err(error)
                .with_context(|| format!("Can't reach the server at {}", self.socket.display())),
        }
    }

    /// One request; its answer as JSON (`null` for none).
    ///
    /// # Errors
    /// No server runs, or it refused: the error is then its own sentence.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let stream = self.connect().await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .context("The server does not speak HTTP")?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "purplemux")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(
                body.map(|body| body.to_string()).unwrap_or_default(),
            )))
            .context("That can't be asked")?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let bytes = response.into_body().collect().await?.to_bytes();
            hyper::Result::Ok((status, bytes))
        };
        // The connection's own task: polled beside the exchange, done when it is.
        let (status, bytes) = tokio::select! {
            done = exchange => done.context("The server broke off")?,
            ended = connection => {
                ended.context("The server broke off")?;
                bail!("The server broke off");
            }
        };
        answer(status, &bytes)
    }

    /// As [`Self::ask`], for a known form.
    ///
    /// # Errors
    /// As there, or the answer has another form (a server of another version).
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let value = self.ask(Method::GET, path, None).await?;
        match serde_json::from_value(value) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let other = self.another().await;
                Err(anyhow::Error::new(error).context(other))
            }
        }
    }

    /// Why the server may answer in another form, and what to do: an update puts another program in the place of
    /// one that runs, and the old one goes on.
    pub async fn another(&self) -> String {
        let ours = env!("CARGO_PKG_VERSION");
        let health = self.ask(Method::GET, "/api/health", None).await;
        let runs = match health
            .as_ref()
            .ok()
            .and_then(|health| health["version"].as_str())
        {
            Some(theirs) if theirs != ours => {
                format!("it is purplemux {theirs} and this is {ours}")
            }
            Some(_) | None => "it was started from another build of purplemux".to_owned(),
        };
        let process = self.process().await;
        let stop = match process {
            Some(pid) => format!("kill {pid}"),
            None => "Ctrl-C where it runs".to_owned(),
        };
        format!(
            "The server answers in another form: {runs}. Restart it: stop it ({stop}), then start `purplemux`; tabs live on."
        )
    }

    /// The process that listens on the socket, as the kernel knows it.
    async fn process(&self) -> Option<i32> {
        let stream = self.connect().await.ok()?;
        stream.peer_cred().ok()?.pid()
    }

    /// The status stream.
    ///
    /// # Errors
    /// No server runs, or it refused.
    pub async fn status(&self) -> Result<WebSocketStream<UnixStream>> {
        let stream = self.connect().await?;
        let (socket, _) = tokio_tungstenite::client_async("ws://purplemux/api/status", stream)
            .await
            .context("The server refused the status stream")?;
        Ok(socket)
    }
}

fn answer(status: StatusCode, bytes: &[u8]) -> Result<Value> {
    if status.is_success() {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        return serde_json::from_slice(bytes).context("The server answers something odd");
    }
    let said: Option<Value> = serde_json::from_slice(bytes).ok();
    match said.as_ref().and_then(|said| said["error"].as_str()) {
        Some(why) => bail!("{why}"),
        None => bail!("The server refused ({status})."),
    }
}

/// Runs one command's talk with the server.
///
/// # Errors
/// The command's own.
pub fn block_on<T>(talk: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Can't start")?
        .block_on(talk)
}

/// Prints one line at once, also into a pipe. A reader that has left ends the command quietly.
///
/// # Errors
/// Standard output can't be written.
pub fn print(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(error).context("Can't write to standard output"),
    }
}

/// Text that came from elsewhere, safe to print on a terminal: one line, no control characters, none that take no
/// room or turn the reading direction, but for the joiners that emoji and scripts are made with.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut before = ' ';
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.push(' ');
        } else if !deceives(c, before) {
            out.push(c);
        }
        before = c;
    }
    out
}

/// At most so many characters, the last of which says that there was more.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    // A joiner that joins nothing any more.
    let kept = kept.trim_end_matches(['\u{200c}', '\u{200d}']).trim_end();
    format!("{kept}…")
}

/// Cuts one column so that the rows fit on the terminal; where there is none, to [`PIPED_CHARS`]. The columns
/// behind it may still be longer than the line.
pub fn fit(rows: &mut [Vec<String>], column: usize) {
    let width = rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    fit_into(rows, column, width);
}

fn fit_into(rows: &mut [Vec<String>], column: usize, width: Option<usize>) {
    let most = width.map_or(PIPED_CHARS, |width| {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let others = (0..columns).filter(|other| *other != column).map(|other| {
            let wanted = column_width(rows, other);
            2 + if other + 1 == columns {
                wanted.min(LAST_CHARS)
            } else {
                wanted
            }
        });
        width.saturating_sub(others.sum()).max(TITLE_CHARS_MIN)
    });
    for row in rows {
        if let Some(cell) = row.get_mut(column) {
            *cell = cut(cell, most);
        }
    }
}

fn column_width(rows: &[Vec<String>], column: usize) -> usize {
    rows.iter()
        .filter_map(|row| row.get(column))
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or(0)
}

/// Rows of cells as aligned columns; the last column is not padded.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| column_width(rows, column))
        .collect();
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn what_hides_is_left_out_and_what_joins_stays() {
        assert_eq!(plain("a\u{202e}b\u{200b}c\x1b[1m\nd"), "abc [1m d");
        let family = "👩\u{200d}👩\u{200d}👧 team ❤\u{fe0f}\u{200d}🔥";
        assert_eq!(plain(family), family);
        assert_eq!(plain("می\u{200c}خواهم"), "می\u{200c}خواهم");
        assert_eq!(plain("in\u{200d}visible"), "invisible");
    }

    #[test]
    fn a_title_is_cut_at_what_the_terminal_leaves() {
        let title = "one two three ".repeat(10);
        let rows = || {
            vec![
                ["TAB", "TITLE", "WHAT"].map(str::to_owned).to_vec(),
                vec!["t-01234567".to_owned(), title.clone(), "w".repeat(90)],
            ]
        };
        let widest = |width| {
            let mut rows = rows();
            fit_into(&mut rows, 1, width);
            assert_eq!(rows[0][1], "TITLE");
            rows[1][1].chars().count()
        };
        assert_eq!(widest(None), PIPED_CHARS);
        assert_eq!(widest(Some(100)), 100 - 12 - 32);
        assert_eq!(widest(Some(30)), TITLE_CHARS_MIN);
        assert_eq!(widest(Some(500)), title.chars().count());
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("shorter", 5), "shor…");
        assert_eq!(cut("👩\u{200d}👩 x", 3), "👩…");
    }

    /// Answers every question as a server of another version would.
    async fn another_version(listener: tokio::net::UnixListener) {
        // Kept open until the asker has read its answer.
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let n = stream.read(&mut asked).await.unwrap();
            let health = asked[..n].starts_with(b"GET /api/health");
            let body = if health {
                r#"{"app":"purplemux","version":"0.0.1"}"#
            } else {
                r#"{"other":true}"#
            };
            let head = format!("content-length: {}", body.len());
            let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            open.push(stream);
        }
    }

    #[test]
    fn a_server_of_another_version_is_to_be_restarted() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("sock");
        let client = Client {
            home: "/home/x".to_owned(),
            socket: socket.clone(),
        };
        let said = block_on(async {
            let listener = tokio::net::UnixListener::bind(&socket)?;
            let asked = client.get::<Vec<u32>>("/api/tabs");
            tokio::select! {
                () = another_version(listener) => bail!("it ended"),
                answer = asked => Ok(answer.unwrap_err().to_string()),
            }
        })
        .unwrap();
        for part in [
            "it is purplemux 0.0.1 and this is",
            &format!("Restart it: stop it (kill {})", std::process::id()),
            "tabs live on",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
