//! The routes that hooks and the status line post to. Owns their checks (token, size); what a hook means is for
//! `ingest::hook` and `core`. The token opens these two routes and nothing else.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;

use super::{App, BODY_WITHIN, Problem, Shared, half_sent, known_from_now_on};
use crate::ingest;
use crate::ingest::hook::Route;
use crate::ingest::odd::Kind;

/// The header that carries the token.
const TOKEN_HEADER: &str = "x-pmux-token";

/// A larger body is left out and the event still counts: its name and time are worth more than its text.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What is read and thrown away of an oversized body before the connection is given up: a client that is
/// cut off in the middle of its writing would not see our answer.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A hook's path.
pub const PATH: &str = "/api/status/hook";
/// The status line's path.
pub const STATUS_LINE: &str = "/api/status/statusline";

/// `POST /api/status/hook`.
///
/// # Errors
/// 400 for a body that is no hook's, 401 for a wrong token, 408 for one that does not come, 413 for an endless one,
/// 503 while stopping.
pub async fn post(State(app): Shared, request: Request) -> Result<StatusCode, Problem> {
    take(&app, request, Route::Hook).await
}

/// `POST /api/status/statusline`: what Claude Code tells its status line, unchanged.
///
/// # Errors
/// As for [`post`].
pub async fn status_line(State(app): Shared, request: Request) -> Result<StatusCode, Problem> {
    take(&app, request, Route::StatusLine).await
}

async fn take(app: &Arc<App>, request: Request, route: Route) -> Result<StatusCode, Problem> {
    let (parts, body) = request.into_parts();
    check_token(app, &parts.headers)?;
    known_from_now_on(&parts.extensions);
    let odd = &app.hub.witnesses().odd;
    let body = tokio::time::timeout(BODY_WITHIN, read(body))
        .await
        .unwrap_or_else(|_| Err(half_sent()))
        .inspect_err(|problem| odd.add(Kind::HookRefused, problem.why()))?;
    let cut = body.is_none();
    let post = ingest::hook::HookPost::new(&parts.headers, body.unwrap_or_default());
    if cut {
        let name = post.headers.event.as_deref();
        odd.add(Kind::HookCut, name.unwrap_or("a hook without a name"));
    }
    match ingest::hook::accept(&app.hub, post, route).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(ingest::hook::Refusal::Malformed(why)) => {
            tracing::warn!("a hook was refused: {why}");
            Err(Problem::new(StatusCode::BAD_REQUEST, why))
        }
        Err(ingest::hook::Refusal::Stopped(stopped)) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            stopped.to_string(),
        )),
    }
}

fn check_token(app: &Arc<App>, headers: &HeaderMap) -> Result<(), Problem> {
    let right = headers
        .get(TOKEN_HEADER)
        .and_then(|token| token.to_str().ok())
        .is_some_and(|token| app.auth.is_token(token.trim()));
    if right {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNAUTHORIZED,
        "Send the token of the file cli-token in the header x-pmux-token.",
    ))
}

/// The body, or `None` if it is too large to be kept.
async fn read(mut body: Body) -> Result<Option<Vec<u8>>, Problem> {
    let mut kept = Vec::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("The body did not arrive whole: {error}."),
            )
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        seen += data.len();
        if seen > DRAIN_BYTES_MAX {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The body is too large.",
            ));
        }
        if seen <= BODY_BYTES_MAX {
            kept.extend_from_slice(&data);
        }
    }
    Ok((seen <= BODY_BYTES_MAX).then_some(kept))
}
