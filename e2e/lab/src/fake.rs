//! A fake of the Messages API on 127.0.0.1: the sockets, the stream of server-sent events and a log of requests.
//! What it answers is decided by [`crate::script`].
//!
//! Must never listen beyond loopback, and never reach the network itself.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::clock::wall_ns;
use crate::script::{self, Block, Kind, Plan};

/// Claude's requests carry the whole conversation and every tool's schema; 64 MiB is far above any test's.
const BODY_MAX: usize = 64 << 20;

/// Events waiting for a slow reader; the writer waits when it is full.
const EVENTS_MAX: usize = 64;

/// How long a compaction takes, so that a badge can be seen meanwhile.
const COMPACT_DELAY: Duration = Duration::from_secs(2);

/// To the first token. A model takes at least as long, and Claude 2.1.332 leaves no trace of a turn in its status
/// file when everything is over within some 50 ms (measured).
const FIRST_TOKEN: Duration = Duration::from_millis(250);

/// One request, as logged.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// Its number, counted from 1.
    pub id: u64,
    /// When it had been read, unix ms.
    pub at_ms: i64,
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// Claude's session, from its own header.
    pub session: String,
    /// `main`, `compact`, `helper`; empty for everything but messages.
    pub kind: &'static str,
    /// The newest prompt of the person.
    pub prompt: String,
    /// Which step of it was answered.
    pub step: usize,
}

/// How the answer to a request for a message ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// The request's number.
    pub id: u64,
    /// Unix ns.
    pub at_ns: i64,
    /// How.
    pub how: How,
}

/// The ways in which an answer ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Everything was sent, with this `stop_reason`.
    Complete(&'static str),
    /// Answered with this HTTP status.
    Failed(u16),
    /// Claude hung up before the end.
    HungUp,
    /// Broken off on our side, as the script wanted.
    Cut,
}

/// The running fake. Dropping it closes every connection.
pub struct Fake {
    port: u16,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    log: Mutex<Log>,
    grown: Condvar,
    served: Mutex<HashMap<(String, String, usize), u32>>,
    ids: AtomicU64,
}

#[derive(Default)]
struct Log {
    requests: Vec<Request>,
    ends: Vec<End>,
    file: Option<File>,
}

impl Fake {
    /// Listens on a free port of loopback; `log` also gets one JSON line per request.
    pub fn start(log: Option<&Path>) -> anyhow::Result<Self> {
        let file = log
            .map(|path| File::create(path).with_context(|| format!("create {}", path.display())))
            .transpose()?;
        let shared = Arc::new(Shared {
            log: Mutex::new(Log {
                requests: Vec::new(),
                ends: Vec::new(),
                file,
            }),
            grown: Condvar::new(),
            served: Mutex::default(),
            ids: AtomicU64::new(1),
        });
        let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .context("bind to loopback")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let state = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("fake-api".into())
            .spawn(move || {
                runtime.block_on(async move {
                    let listener = tokio::net::TcpListener::from_std(listener)
                        .expect("the runtime has just been built");
                    let app = Router::new().fallback(answer).with_state(state);
                    tokio::select! {
                        served = async { axum::serve(listener, app).await } => {
                            served.expect("accepting on loopback does not fail");
                        }
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            port,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What `ANTHROPIC_BASE_URL` has to be.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// How those that asked for a message have ended so far, in that order; one that is not here is being answered.
    pub fn ends(&self) -> Vec<End> {
        self.shared.log().ends.clone()
    }

    /// Waits for a request that fits, also one that has come already.
    pub fn wait(&self, deadline: Duration, fits: impl Fn(&Request) -> bool) -> Option<Request> {
        let end = Instant::now() + deadline;
        let mut log = self.shared.log();
        loop {
            if let Some(found) = log.requests.iter().find(|request| fits(request)) {
                return Some(found.clone());
            }
            let left = end.checked_duration_since(Instant::now())?;
            log = self
                .shared
                .grown
                .wait_timeout(log, left)
                .expect("no holder of the log panics")
                .0;
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed already, and a second one while unwinding would abort the test.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no holder of the log panics")
    }

    /// Writes a request down and returns its number.
    fn record(&self, mut request: Request) -> u64 {
        let mut log = self.log();
        let id = u64::try_from(log.requests.len()).unwrap_or(u64::MAX) + 1;
        request.id = id;
        if let Some(file) = &mut log.file {
            let mut line = serde_json::to_string(&request).expect("a request is plain data");
            line.push('\n');
            file.write_all(line.as_bytes())
                .expect("the log can be written");
        }
        log.requests.push(request);
        drop(log);
        self.grown.notify_all();
        id
    }

    fn ended(&self, id: u64, how: How) {
        let at_ns = wall_ns();
        self.log().ends.push(End { id, at_ns, how });
    }

    /// Throw-away ids that look like the API's.
    fn id(&self, prefix: &str) -> String {
        format!(
            "{prefix}_fake{:018x}",
            self.ids.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// Counts an error served for a step; true while the plan wants more of them.
    fn fails(&self, session: &str, prompt: &str, step: usize, times: u32) -> bool {
        let mut served = self.served.lock().expect("no holder of the counts panics");
        let count = served
            .entry((session.to_owned(), prompt.to_owned(), step))
            .or_default();
        *count = count.saturating_add(1);
        *count <= times
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let path = uri.path().to_owned();
    let body = match axum::body::to_bytes(body, BODY_MAX).await {
        Ok(bytes) => bytes,
        Err(why) => return error(StatusCode::PAYLOAD_TOO_LARGE, &why.to_string()),
    };
    let session = headers
        .get("x-claude-code-session-id")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut request = Request {
        id: 0,
        at_ms: wall_ns() / 1_000_000,
        method: method.to_string(),
        path: path.clone(),
        session: session.to_owned(),
        kind: "",
        prompt: String::new(),
        step: 0,
    };
    if method != Method::POST || path != "/v1/messages" {
        shared.record(request);
        return match (method, path.as_str()) {
            (Method::POST, "/v1/messages/count_tokens") => {
                json_response(&json!({"input_tokens": estimate(&body)}))
            }
            (Method::GET, "/v1/models") => json_response(
                &json!({"data": [], "has_more": false, "first_id": null, "last_id": null}),
            ),
            (Method::GET, _) => error(StatusCode::NOT_FOUND, "not in this fake"),
            _ => json_response(&json!({})),
        };
    }
    let Ok(wanted) = serde_json::from_slice::<Value>(&body) else {
        shared.record(request);
        return error(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    let decision = script::decide(&wanted, COMPACT_DELAY);
    request.kind = match decision.kind {
        Kind::Main => "main",
        Kind::Compact => "compact",
        Kind::Helper => "helper",
    };
    request.prompt.clone_from(&decision.prompt);
    request.step = decision.step;
    let session = request.session.clone();
    let request = shared.record(request);

    let mut plan = decision.plan;
    if !plan.quick {
        plan.delay += FIRST_TOKEN;
    }
    if let Some(failure) = plan.failure {
        let (prompt, step) = (&decision.prompt, decision.step);
        if shared.fails(&session, prompt, step, failure.times) {
            tokio::time::sleep(plan.delay).await;
            shared.ended(request, How::Failed(failure.status));
            let status =
                StatusCode::from_u16(failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return error(status, &format!("lab error {}", failure.status));
        }
        plan = script::say("recovered");
        plan.delay = FIRST_TOKEN;
    }
    let message = Message {
        id: shared.id("msg"),
        model: wanted["model"].clone(),
        input_tokens: plan.input_tokens.unwrap_or_else(|| estimate(&body)),
        tool_ids: plan.blocks.iter().map(|_| shared.id("toolu")).collect(),
        plan,
    };
    if wanted["stream"] == true {
        message.streamed(shared, request)
    } else {
        tokio::time::sleep(message.plan.delay + message.plan.spread).await;
        shared.ended(request, How::Complete(message.plan.stop));
        json_response(&message.whole())
    }
}

/// A message of the assistant, ready to be sent in either form.
struct Message {
    id: String,
    model: Value,
    input_tokens: u64,
    /// One per block; used by tool calls only.
    tool_ids: Vec<String>,
    plan: Plan,
}

impl Message {
    fn usage(&self, output_tokens: u64) -> Value {
        json!({"input_tokens": self.input_tokens, "output_tokens": output_tokens,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
    }

    fn head(&self, content: Vec<Value>, stop: Value, output_tokens: u64) -> Value {
        json!({"id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": self.usage(output_tokens)})
    }

    fn block(&self, index: usize, block: &Block) -> Value {
        match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::ToolUse { name, input } => {
                json!({"type": "tool_use", "id": self.tool_ids[index], "name": name, "input": input})
            }
        }
    }

    fn whole(&self) -> Value {
        let blocks = self
            .plan
            .blocks
            .iter()
            .enumerate()
            .map(|(index, block)| self.block(index, block))
            .collect();
        self.head(blocks, json!(self.plan.stop), 20)
    }

    fn streamed(self, shared: Arc<Shared>, request: u64) -> Response {
        let (events, reader) = mpsc::channel::<Result<Bytes, std::io::Error>>(EVENTS_MAX);
        tokio::spawn(async move {
            // An error means that Claude has hung up, which is what Esc does: nothing is left to send. While nothing
            // is sent, the hanging up is noticed all the same.
            let sent = tokio::select! {
                sent = self.send(&events) => sent,
                () = events.closed() => None,
            };
            let how = match sent {
                Some(()) => How::Complete(self.plan.stop),
                None if self.plan.cut && !events.is_closed() => How::Cut,
                None => How::HungUp,
            };
            shared.ended(request, how.clone());
            if how == How::Cut {
                let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                drop(events.send(Err(broken)).await);
            }
        });
        let body = Body::from_stream(stream::unfold(reader, |mut reader| async move {
            let event = reader.recv().await?;
            Some((event, reader))
        }));
        ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
    }

    /// Sends every event in its time; `None` when the stream ended early.
    async fn send(&self, events: &mpsc::Sender<Result<Bytes, std::io::Error>>) -> Option<()> {
        let emit = async |kind: &str, mut data: Value| {
            data["type"] = json!(kind);
            events
                .send(Ok(Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))))
                .await
                .ok()
        };
        tokio::time::sleep(self.plan.delay).await;
        emit(
            "message_start",
            json!({"message": self.head(Vec::new(), Value::Null, 1)}),
        )
        .await?;
        for (index, block) in self.plan.blocks.iter().enumerate() {
            match block {
                Block::Text(text) => {
                    let start =
                        json!({"index": index, "content_block": {"type": "text", "text": ""}});
                    emit("content_block_start", start).await?;
                    let words: Vec<&str> = text.split_inclusive(' ').collect();
                    let pause =
                        self.plan.spread / u32::try_from(words.len()).unwrap_or(u32::MAX).max(1);
                    for word in words {
                        let delta =
                            json!({"index": index, "delta": {"type": "text_delta", "text": word}});
                        emit("content_block_delta", delta).await?;
                        tokio::time::sleep(pause).await;
                    }
                }
                Block::ToolUse { input, .. } => {
                    let mut empty = self.block(index, block);
                    empty["input"] = json!({});
                    emit(
                        "content_block_start",
                        json!({"index": index, "content_block": empty}),
                    )
                    .await?;
                    let delta =
                        json!({"type": "input_json_delta", "partial_json": input.to_string()});
                    emit(
                        "content_block_delta",
                        json!({"index": index, "delta": delta}),
                    )
                    .await?;
                }
            }
            if self.plan.cut {
                return None;
            }
            emit("content_block_stop", json!({"index": index})).await?;
        }
        let delta = json!({"stop_reason": self.plan.stop, "stop_sequence": null});
        emit(
            "message_delta",
            json!({"delta": delta, "usage": self.usage(20)}),
        )
        .await?;
        emit("message_stop", json!({})).await
    }
}

/// About four bytes a token; only its order of magnitude matters.
fn estimate(body: &Bytes) -> u64 {
    u64::try_from(body.len())
        .unwrap_or(u64::MAX)
        .div_euclid(4)
        .max(10)
}

fn json_response(value: &Value) -> Response {
    axum::Json(value).into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    let kind = match status.as_u16() {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        _ => "api_error",
    };
    (
        status,
        axum::Json(json!({"type": "error", "error": {"type": kind, "message": message}})),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpStream;

    use super::*;

    /// One request over a plain socket, read to its end.
    fn post(fake: &Fake, path: &str, body: &Value) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", fake.port())).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: lab\r\nconnection: close\r\nx-claude-code-session-id: s1\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A stream that is cut ends in an error; what came before it is the answer.
        drop(socket.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn prompt(text: &str, stream: bool) -> Value {
        json!({"model": "m", "stream": stream, "tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": text}]})
    }

    #[test]
    fn a_streamed_answer_has_the_events_of_the_api_in_order() {
        let fake = Fake::start(None).unwrap();
        let answer = post(
            &fake,
            "/v1/messages?beta=true",
            &prompt("bash: touch a", true),
        );
        let kinds: Vec<&str> = answer
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .collect();
        assert_eq!(kinds.first(), Some(&"message_start"));
        assert_eq!(kinds[kinds.len() - 2..], ["message_delta", "message_stop"]);
        assert!(answer.contains(r#""stop_reason":"tool_use""#), "{answer}");
        assert!(answer.contains(r#"\"command\":\"touch a\""#), "{answer}");
        assert!(answer.contains("text/event-stream"));
    }

    #[test]
    fn a_slow_answer_takes_its_time_and_a_plain_one_does_not() {
        let fake = Fake::start(None).unwrap();
        let start = Instant::now();
        post(&fake, "/v1/messages", &prompt("slow 0.4 a b c d", true));
        assert!(start.elapsed() >= Duration::from_millis(400));
        let whole = post(&fake, "/v1/messages", &prompt("say hello", false));
        assert!(
            whole.contains(r#""text":"hello""#) && whole.contains(r#""stop_reason":"end_turn""#),
            "{whole}"
        );
    }

    #[test]
    fn errors_end_after_so_many_and_a_cut_stream_has_no_end() {
        let fake = Fake::start(None).unwrap();
        for _ in 0..2 {
            let answer = post(&fake, "/v1/messages", &prompt("error 429 x2", true));
            assert!(
                answer.starts_with("HTTP/1.1 429") && answer.contains("rate_limit_error"),
                "{answer}"
            );
        }
        assert!(post(&fake, "/v1/messages", &prompt("error 429 x2", true)).contains("recovered"));
        let cut = post(&fake, "/v1/messages", &prompt("cut 0.1", true));
        assert!(
            cut.contains("message_start") && !cut.contains("message_stop"),
            "{cut}"
        );
    }

    #[test]
    fn tokens_models_and_unknown_routes_are_answered() {
        let fake = Fake::start(None).unwrap();
        assert!(
            post(&fake, "/v1/messages/count_tokens", &prompt("x", false)).contains("input_tokens")
        );
        assert!(post(&fake, "/api/event_logging", &json!({})).starts_with("HTTP/1.1 200"));
        assert!(
            post(&fake, "/v1/messages", &json!(null)).starts_with("HTTP/1.1 200"),
            "null is JSON, and a helper"
        );
    }

    #[test]
    fn requests_are_logged_in_memory_and_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("api.jsonl");
        let fake = Fake::start(Some(&file)).unwrap();
        assert!(fake.wait(Duration::ZERO, |_| true).is_none());
        post(&fake, "/v1/messages", &prompt("say logged", true));
        let found = fake
            .wait(Duration::from_secs(5), |request| {
                request.prompt == "say logged"
            })
            .unwrap();
        assert_eq!(
            (found.session.as_str(), found.kind, found.step),
            ("s1", "main", 0)
        );
        let ends = fake.ends();
        assert_eq!(
            ends.iter()
                .map(|end| (end.id, &end.how))
                .collect::<Vec<_>>(),
            [(found.id, &How::Complete("end_turn"))]
        );
        let line: Value =
            serde_json::from_str(std::fs::read_to_string(&file).unwrap().trim()).unwrap();
        assert_eq!(line["prompt"], "say logged");
    }
}
