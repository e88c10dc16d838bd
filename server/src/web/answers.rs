//! The REST routes about answering: for programs that ask once and wait for the end.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::StatusCode;
use purplemux_wire::browser::{Answer, Sending};
use purplemux_wire::sentence::{Cause, Sentence};
use serde::Deserialize;

use super::owner::{self, Owner};
use super::{App, Caller, Input, Problem, Shared};

use crate::answer::{Ended, Ending, LOG_MAX, Refusal, Wish, unsent};
use crate::push::buttons::Dialog;

/// Body of `POST /api/tabs/{id}/answer`.
#[derive(Debug, Deserialize)]
pub struct Given {
    ask: u64,
    reading: String,
    answer: Answer,
}

/// `POST /api/tabs/{id}/answer`: answers the ask of a row and waits until Claude has taken it.
///
/// # Errors
/// 409 with the reason: nothing was typed.
pub async fn answer(
    State(app): Shared,
    Owner(asker): Owner,
    Path(item): Path<String>,
    Input(given): Input<Given>,
) -> Result<Response, Problem> {
    let wish = Wish {
        request: 0,
        item,
        ask: given.ask,
        reading: given.reading,
        answer: given.answer,
    };
    ended(app.answers.answer(wish, asker).await).await
}

/// Body of `POST /api/push/answer`: what the notification carried, and which button was pressed.
#[derive(Debug, Deserialize)]
pub struct Pressed {
    #[serde(flatten)]
    dialog: Dialog,
    seal: String,
    button: Button,
}

/// The buttons of a notification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Button {
    Yes,
    No,
}

/// `POST /api/push/answer`: a button on a notification. A service worker has no secret to show; the seal that came with
/// the notification stands for it, and is good for these two answers alone.
///
/// # Errors
/// 401 for a seal that is not of this login and this run of the server, 409 with the reason: nothing was typed.
pub async fn pressed(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    Owner(asker): Owner,
    Input(pressed): Input<Pressed>,
) -> Result<Response, Problem> {
    let Pressed {
        dialog,
        seal,
        button,
    } = pressed;
    let sent = match &caller {
        Caller::Login { id, .. } => app.push.sent(id, &dialog, &seal),
        Caller::Local | Caller::Stranger => false,
    };
    if !sent {
        return Err(Problem::of(
            StatusCode::UNAUTHORIZED,
            unsent(Cause::ButtonTooOld),
        ));
    }
    let option = match button {
        Button::Yes => dialog.yes,
        Button::No => dialog.no,
    };
    let wish = Wish {
        request: 0,
        item: dialog.item,
        ask: dialog.ask,
        reading: dialog.reading,
        answer: Answer::Choose { option },
    };
    ended(app.answers.answer(wish, asker).await).await
}

/// `POST /api/tabs/{id}/stop`: interrupts the agent of a row.
///
/// # Errors
/// 409 with the reason: nothing was typed.
pub async fn stop(
    State(app): Shared,
    Owner(asker): Owner,
    Path(item): Path<String>,
) -> Result<Response, Problem> {
    ended(app.answers.stop(item, asker).await).await
}

/// Body of `POST /api/tabs/{id}/prompt`.
#[derive(Debug, Deserialize)]
pub struct Prompt {
    text: String,
}

/// `POST /api/tabs/{id}/prompt`: types a prompt into the box of a row's agent, enters it and waits until it is taken.
///
/// # Errors
/// 409 with the reason: nothing was typed. 502: it was typed and not seen to be taken.
pub async fn prompt(
    State(app): Shared,
    Owner(asker): Owner,
    Path(item): Path<String>,
    Input(Prompt { text }): Input<Prompt>,
) -> Result<Response, Problem> {
    ended(app.answers.prompt(item, text, asker).await).await
}

async fn ended(ending: Result<Ending, Refusal>) -> Result<Response, Problem> {
    let refused = |why: Refusal| Problem::of(StatusCode::CONFLICT, why);
    let ending = ending.map_err(refused)?;
    let Ended { outcome, what, why } = ending
        .await
        .map_err(|_| Problem::of(StatusCode::SERVICE_UNAVAILABLE, Cause::ServerStopping))?
        .map_err(refused)?;
    let status = match outcome {
        Sending::Sending | Sending::Sent => StatusCode::OK,
        Sending::Failed => StatusCode::BAD_GATEWAY,
    };
    let said = why;
    let why = said.as_ref().map(Sentence::english);
    let error = why.clone().filter(|_| outcome == Sending::Failed);
    let body = serde_json::json!({ "outcome": outcome, "what": what, "why": why, "said": said, "error": error });
    Ok((status, Json(body)).into_response())
}

/// Query of `GET /api/answers`.
#[derive(Debug, Deserialize)]
pub struct Most {
    most: Option<u32>,
}

/// `GET /api/answers`: who has answered what, newest first.
///
/// # Errors
/// The database can't be read.
pub async fn log(
    State(app): Shared,
    most: Result<Query<Most>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(Most { most }) = most.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Write ?most=50, or nothing for 200.",
        )
    })?;
    let rows = app.store.answers(most.unwrap_or(200).min(LOG_MAX)).await;
    Ok(Json(rows.map_err(|why| Problem::internal(&why))?).into_response())
}

/// Body of `PUT /api/workspaces/{id}/agents`.
#[derive(Debug, Deserialize)]
pub struct Agents {
    allow: bool,
}

/// `PUT /api/workspaces/{id}/agents`: whether the agents of a workspace may do what is the person's to do.
///
/// # Errors
/// 404 if there is no such workspace; it can't be written down.
pub async fn agents(
    State(app): Shared,
    _: Owner,
    Path(wanted): Path<String>,
    Input(Agents { allow }): Input<Agents>,
) -> Result<StatusCode, Problem> {
    let id = workspace(&app, &wanted)?;
    let mut allowed = owner::allowed(&app).await;
    if allow {
        allowed.insert(id);
    } else {
        allowed.remove(&id);
    }
    let list = serde_json::json!(allowed).to_string();
    app.store
        .set_setting(owner::ALLOWED, list)
        .await
        .map_err(|why| Problem::internal(&why))?;
    Ok(StatusCode::NO_CONTENT)
}

fn workspace(app: &App, wanted: &str) -> Result<String, Problem> {
    let layout = app.tabs.layout();
    let found = layout.workspace(wanted);
    found.map(|workspace| workspace.id.clone()).ok_or_else(|| {
        Problem::of(
            StatusCode::NOT_FOUND,
            Cause::NoWorkspace {
                id: wanted.to_owned(),
            },
        )
    })
}
