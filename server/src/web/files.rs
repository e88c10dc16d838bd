//! `POST /api/files`: a file for a message, as it comes. What becomes of it is [`crate::files`]'s.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use super::{BODY_WITHIN, Problem, Shared, half_sent};
use crate::clock;
use crate::files::{Incoming, KEPT_MS, Refusal};

/// Query of `POST /api/files`.
#[derive(Debug, Deserialize)]
pub struct Named {
    /// What it was called where it comes from.
    #[serde(default)]
    name: String,
}

/// Where it is now.
#[derive(Debug, Serialize)]
pub struct Kept {
    path: String,
    bytes: u64,
    /// Until then at least, unix ms.
    until_ms: i64,
}

/// `POST /api/files?name=`: keeps the body as a file for a day.
///
/// # Errors
/// 408 when nothing comes for ten seconds, 413 for one that is too large, 507 for a full disk.
pub async fn put(
    State(app): Shared,
    _: Owner,
    named: Result<Query<Named>, QueryRejection>,
    mut body: Body,
) -> Result<(StatusCode, Json<Kept>), Problem> {
    let Query(Named { name }) =
        named.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "Write ?name=NAME."))?;
    let files = app.files.clone();
    let mut incoming = waiting(move || files.begin(&name)).await?;
    loop {
        // Each piece in time, not all of them: a phone's line may be slow, and is no trouble as long as it goes on.
        let frame = tokio::time::timeout(BODY_WITHIN, body.frame())
            .await
            .map_err(|_| half_sent())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("The file did not arrive whole: {error}."),
            )
        })?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        incoming = waiting(move || {
            incoming.write(&piece)?;
            Ok(incoming)
        })
        .await?;
    }
    let (path, bytes) = waiting(move || Incoming::keep(incoming)).await?;
    let until_ms = clock::wall_ms() + KEPT_MS;
    let path = path.to_str().ok_or_else(|| {
        Problem::new(
            StatusCode::CONFLICT,
            "The path of purplemux's home is no UTF-8, so that it can't stand in a message.",
        )
    })?;
    let kept = Kept {
        path: path.to_owned(),
        bytes,
        until_ms,
    };
    Ok((StatusCode::CREATED, Json(kept)))
}

/// Away from the threads that serve.
async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|why| Problem::internal(&anyhow::Error::new(why)))?;
    Ok(done?)
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooLarge | Refusal::TooMany { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, refusal.to_string())
            }
            Refusal::Full => Self::new(StatusCode::INSUFFICIENT_STORAGE, refusal.to_string()),
            Refusal::Failed(error) => Self::internal(&error),
        }
    }
}
