//! The public face: one router for TCP and for the unix socket. Owns the checks that come before every
//! handler, the security headers and the shape of errors.
//!
//! No handler runs before [`guard`] has let the request pass, and no handler checks anything of that again.

pub mod auth;
pub mod listen;

pub mod answers;
pub mod api;
pub mod assets;
pub mod explain;
pub mod files;
pub mod history;
pub mod hook;
pub mod notices;
pub mod owner;
pub mod status_ws;
pub mod terminal_ws;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, FromRequest, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::{HeaderValue, Method, StatusCode, header};
use purplemux_wire::sentence::{Cause, Notice, Sentence};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer;
use crate::conversations::Conversations;
use crate::hub;
use crate::push;
use crate::settings::Settings;
use crate::store::Store;
use crate::tabs::Tabs;
use crate::tmux;
use auth::{Auth, Names, Origin, SECRET_HEADER};
use listen::Guest;

/// How long the body of a request may take, once its head is there.
pub const BODY_WITHIN: Duration = Duration::from_secs(10);

/// What is read of a refused request, and for how long.
const DRAIN_BYTES_MAX: usize = 64 * 1024;
const DRAIN_WITHIN: Duration = Duration::from_millis(200);

/// What the page may load and run: our own files and nothing inline. Styles are the exception because
/// xterm.js writes its own style elements; pictures may be drawn in the page (the favicon is).
const CONTENT_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// What every handler can reach.
#[derive(Debug)]
pub struct App {
    /// Logins and the hooks' token.
    pub auth: Auth,
    /// By which names we may be called.
    pub names: Names,
    /// Eight hex digits that tell this instance from others.
    pub instance: String,
    /// This machine's name.
    pub host: String,
    /// What to open in a browser on this machine: `http://host:port`, or the public URL.
    pub address: String,
    /// Changes with every start.
    pub epoch: String,
    /// Unix ms before anything was decided: what the journal has from earlier was another start's.
    pub started_ms: i64,
    /// The fleet's owner.
    pub hub: hub::Handle,
    /// Who hears what a page has in front.
    pub alerts: push::Handle,
    /// The devices that are told.
    pub push: push::Push,
    /// Who answers asks.
    pub answers: answer::Handle,
    /// The layout's owner.
    pub tabs: Tabs,
    /// Past conversations.
    pub conversations: Conversations,
    /// Files for messages.
    pub files: crate::files::Files,
    /// The person's settings.
    pub settings: Settings,
    /// The database, for what lies in no one else's memory.
    pub store: Store,
    /// Our tmux server.
    pub tmux: tmux::Handle,
    /// Whether Claude Code is on this machine.
    pub claude: crate::claude::Handle,
    /// `$PURPLEMUX_HOME`.
    pub home: std::path::PathBuf,
    /// Terminals that may be resumed.
    pub panes: crate::pane::Panes,
    /// Cancelled when the server stops: every socket then closes with 1012.
    pub stopping: CancellationToken,
    /// The tasks of open sockets.
    pub tasks: TaskTracker,
}

impl App {
    /// All sentences that a viewer is to see.
    #[must_use]
    pub fn notices(&self, snapshot: &hub::Snapshot) -> Vec<Notice> {
        let set_aside = self.store.notice().map(Notice::from);
        set_aside
            .into_iter()
            .chain(snapshot.notices.iter().cloned())
            .collect()
    }
}

/// The state of all handlers.
pub type Shared = State<Arc<App>>;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A browser or program over TCP.
    Tcp {
        /// Its address.
        remote: SocketAddr,
        /// Ours.
        local: SocketAddr,
    },
    /// A program over the unix socket; `None`: the kernel did not say whose.
    Unix {
        /// Its user.
        uid: Option<u32>,
        /// Its process, as it was when it connected.
        pid: Option<u32>,
    },
}

/// Who asks, as [`guard`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A program of our own user over the unix socket.
    Local,
    /// A browser whose cookie holds here. `proven`: it has shown its secret as well; a WebSocket shows it
    /// in its first message instead.
    Login {
        /// The login.
        id: String,
        /// The secret was in a header.
        proven: bool,
    },
    /// Anyone else; only what needs no login.
    Stranger,
}

/// Where a request over TCP was sent to, for what is bound to it.
#[derive(Clone, Debug)]
pub struct SentTo {
    /// Host and port.
    pub authority: String,
    /// Who sent it.
    pub from: std::net::IpAddr,
}

/// An answer that is not the one asked for.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    said: Sentence,
}

impl Problem {
    /// What a person may be told; the page says it in theirs.
    pub fn of(status: StatusCode, said: impl Into<Sentence>) -> Self {
        Self {
            status,
            said: said.into(),
        }
    }

    /// A program's mistake in its request, which the page never makes: told as it is.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::of(status, Cause::NotUnderstood { detail })
    }

    /// The sentence.
    #[must_use]
    pub fn why(&self) -> String {
        self.said.english()
    }

    /// Something of ours failed; the details go to the log and the sentence to the asker.
    #[must_use]
    pub fn internal(error: &anyhow::Error) -> Self {
        if let Some(full) = error.downcast_ref::<crate::store::Full>() {
            let home = full.home.clone();
            return Self::of(StatusCode::INSUFFICIENT_STORAGE, Cause::DiskFull { home });
        }
        tracing::error!("request failed: {error:#}");
        let detail = format!("{error:#}");
        Self::of(
            StatusCode::INTERNAL_SERVER_ERROR,
            Cause::Internal { detail },
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.why(), "said": self.said });
        (self.status, axum::Json(body)).into_response()
    }
}

/// A JSON body, with errors in our own shape.
#[derive(Debug)]
pub struct Input<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| {
                kind.split(';')
                    .next()
                    .is_some_and(|kind| kind.trim() == "application/json")
            });
        if !json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Send JSON with content-type: application/json.",
            ));
        }
        let limit = api::SEND_BYTES_MAX;
        let body = axum::body::to_bytes(request.into_body(), limit);
        let bytes = tokio::time::timeout(BODY_WITHIN, body)
            .await
            .map_err(|_| half_sent())?
            .map_err(|_| {
                Problem::of(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    Cause::TooMuch {
                        max: u32::try_from(limit).unwrap_or(u32::MAX),
                    },
                )
            })?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, format!("Not understood: {error}."))
        })
    }
}

/// All routes; the same for both kinds of connection.
pub fn router(app: Arc<App>) -> Router {
    let signed_in = Router::new()
        .route("/api/session", get(api::session))
        .route("/api/logout", post(api::logout))
        .route("/api/items", get(api::items))
        .route(
            "/api/workspaces",
            get(api::workspaces).post(api::create_workspace),
        )
        .route("/api/workspaces/order", put(api::order_workspaces))
        .route(
            "/api/workspaces/{id}",
            delete(api::remove_workspace).patch(api::edit_workspace),
        )
        .route("/api/workspaces/{id}/panes", post(api::panes))
        .route("/api/workspaces/{id}/restore", post(api::restore))
        .route("/api/tabs", get(api::tabs).post(api::create_tab))
        .route(
            "/api/tabs/{id}",
            delete(api::close_tab).patch(api::edit_tab),
        )
        .route("/api/tabs/{id}/restore", post(api::restore))
        .route("/api/tabs/{id}/send", post(api::send))
        .route("/api/tabs/{id}/answer", post(answers::answer))
        .route("/api/tabs/{id}/stop", post(answers::stop))
        .route("/api/tabs/{id}/history", get(history::lines))
        .route("/api/tabs/{id}/history/search", get(history::search))
        .route("/api/tabs/{id}/prompt", post(answers::prompt))
        .route("/api/answers", get(answers::log))
        .route("/api/workspaces/{id}/agents", put(answers::agents))
        .route("/api/tabs/{id}/reopen", post(api::reopen_tab))
        .route(
            "/api/tabs/{id}/resume",
            post(api::resume_tab).delete(api::leave_tab),
        )
        .route("/api/files", post(files::put))
        .route("/api/conversations", get(api::conversations))
        .route("/api/conversations/{id}/resume", post(api::take_up))
        .route(
            "/api/settings",
            get(api::settings)
                .put(api::put_settings)
                .patch(api::patch_settings),
        )
        .route("/api/check-claude", get(api::check_claude))
        .route("/api/claude", get(api::claude))
        .route("/api/explain", get(explain::explain))
        .route(
            "/api/push",
            get(notices::push)
                .put(notices::subscribe)
                .delete(notices::unsubscribe),
        )
        .route("/api/push/test", post(notices::test))
        .route("/api/notifications", get(notices::notifications))
        .route("/api/devices", get(notices::devices))
        .route("/api/devices/{id}", delete(notices::revoke))
        .layer(axum::middleware::from_fn(proven));
    let sockets = Router::new()
        .route("/api/push/answer", post(answers::pressed))
        .route("/api/status", get(status_ws::open))
        .route("/api/terminal", get(terminal_ws::open))
        .layer(axum::middleware::from_fn(known));
    let local = Router::new()
        .route("/api/login/code", post(api::mint_code))
        .route("/api/doctor", get(api::doctor))
        .route("/api/journal", get(explain::records))
        .layer(axum::middleware::from_fn(local_only));
    Router::new()
        .merge(signed_in)
        .merge(sockets)
        .merge(local)
        .route("/api/health", get(api::health))
        .route("/api/login", post(api::login))
        .route(hook::PATH, post(hook::post))
        .route(hook::STATUS_LINE, post(hook::status_line))
        .route("/api/{*rest}", axum::routing::any(no_such_route))
        .method_not_allowed_fallback(wrong_method)
        .fallback(assets::serve)
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The rest of a request did not come.
fn half_sent() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "The request was not sent whole in time.",
    )
}

async fn no_such_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "There is no such route.")
}

async fn wrong_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This route does not take that method.",
    )
}

/// The checks of every request, then the headers of every answer.
async fn guard(
    State(app): Shared,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match admit(&app, peer, &mut request) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            drain(request.into_body()).await;
            problem.into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", CONTENT_POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Reads what a refused request still has to say, if it is short: a connection closed with something unread is
/// reset, and the reset could overtake the refusal.
async fn drain(body: axum::body::Body) {
    let short = axum::body::to_bytes(body, DRAIN_BYTES_MAX);
    // Too long or too slow: then it is reset.
    drop(tokio::time::timeout(DRAIN_WITHIN, short).await);
}

fn admit(app: &App, peer: Peer, request: &mut Request) -> Result<(), Problem> {
    match peer {
        Peer::Unix { uid, .. } => {
            if uid != Some(rustix::process::geteuid().as_raw()) {
                return Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    "This socket serves its owner only.",
                ));
            }
            // A browser can only have come through a proxy, which would lend it its own uid.
            let headers = request.headers();
            if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
                return Err(foreign());
            }
            request.extensions_mut().insert(Caller::Local);
        }
        Peer::Tcp { remote, local } => {
            let (caller, sent_to) = admit_tcp(app, remote, local, request)?;
            if matches!(caller, Caller::Login { .. }) {
                known_from_now_on(request.extensions());
            }
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(sent_to);
        }
    }
    Ok(())
}

/// The connection that brought this request need not make room for strangers any more.
fn known_from_now_on(extensions: &http::Extensions) {
    // Over the unix socket nobody is counted.
    if let Some(guest) = extensions.get::<Arc<Guest>>() {
        guest.is_known();
    }
}

fn foreign() -> Problem {
    Problem::of(StatusCode::FORBIDDEN, Cause::NotOurPage)
}

fn admit_tcp(
    app: &App,
    remote: SocketAddr,
    local: SocketAddr,
    request: &Request,
) -> Result<(Caller, SentTo), Problem> {
    let headers = request.headers();
    let Some(host) = app.names.admit(headers, request.uri(), local) else {
        return Err(Problem::of(
            StatusCode::MISDIRECTED_REQUEST,
            Cause::NotCalledThat,
        ));
    };
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => None,
        (Some(origin), None) => {
            let origin = origin
                .to_str()
                .ok()
                .and_then(Origin::parse)
                .filter(|origin| app.names.trusts(origin, &host, local));
            Some(origin.ok_or_else(foreign)?)
        }
        (Some(_), Some(_)) => return Err(foreign()),
    };
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let upgrades = headers.contains_key(header::UPGRADE);
    let hook =
        *request.method() == Method::POST && (path == hook::PATH || path == hook::STATUS_LINE);
    if hook {
        // Hooks come from a program with the token; what carries a cookie is a browser.
        if headers.contains_key(header::COOKIE) {
            return Err(foreign());
        }
    } else if (!reads || upgrades) && origin.is_none() {
        return Err(foreign());
    }
    if crosses_sites(request, path) {
        return Err(foreign());
    }
    let authority = host.bound();
    let caller = match app.auth.by_cookie(headers, &authority) {
        None => Caller::Stranger,
        Some(id) => {
            let proven = headers
                .get(SECRET_HEADER)
                .and_then(|secret| secret.to_str().ok())
                .is_some_and(|secret| app.auth.proves(&id, secret));
            Caller::Login { id, proven }
        }
    };
    let sent_to = SentTo {
        authority,
        from: remote.ip(),
    };
    Ok((caller, sent_to))
}

/// Whether a browser says that another site asked for this. Following a link to the page is fine: the
/// page itself holds nothing of the person's.
fn crosses_sites(request: &Request, path: &str) -> bool {
    let value = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    match value("sec-fetch-site") {
        None | Some("same-origin" | "none") => false,
        Some(_) => {
            let follows_link = value("sec-fetch-mode") == Some("navigate")
                && value("sec-fetch-dest") == Some("document");
            path.starts_with("/api/") || !follows_link
        }
    }
}

fn sign_in_first() -> Problem {
    Problem::of(StatusCode::UNAUTHORIZED, Cause::SignIn)
}

/// Lets programs of our user pass, and browsers with cookie and secret.
async fn proven(request: Request, next: Next) -> Response {
    match request.extensions().get::<Caller>() {
        Some(Caller::Local | Caller::Login { proven: true, .. }) => next.run(request).await,
        Some(Caller::Login { proven: false, .. } | Caller::Stranger) | None => {
            sign_in_first().into_response()
        }
    }
}

/// As [`proven`], but the secret is still to come in the socket's first message.
async fn known(request: Request, next: Next) -> Response {
    match request.extensions().get::<Caller>() {
        Some(Caller::Local | Caller::Login { .. }) => next.run(request).await,
        Some(Caller::Stranger) | None => sign_in_first().into_response(),
    }
}

/// For what exists on the unix socket alone; over TCP there is nothing there.
async fn local_only(request: Request, next: Next) -> Response {
    match request.extensions().get::<Caller>() {
        Some(Caller::Local) => next.run(request).await,
        Some(Caller::Login { .. } | Caller::Stranger) | None => {
            no_such_route().await.into_response()
        }
    }
}
