//! The REST routes about notifications and the devices they go to. A device is a login; each browser sets up
//! its own, and any of them may end another.

use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use purplemux_wire::sentence::Cause;
use serde::Deserialize;

use super::owner::Owner;
use super::{Caller, Input, Problem, Shared};

use crate::push::devices::{Address, Choices};
use crate::push::read_address;

/// The login behind a request.
fn device(caller: Caller) -> Result<String, Problem> {
    match caller {
        Caller::Login { id, .. } => Ok(id),
        Caller::Local | Caller::Stranger => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "Notifications belong to a signed-in browser; a program on the unix socket has none.",
        )),
    }
}

fn not_subscribed() -> Problem {
    Problem::of(StatusCode::NOT_FOUND, Cause::NotificationsOff)
}

/// `GET /api/push`: the key to subscribe with, and this device's choices.
///
/// # Errors
/// The asker is no browser.
pub async fn push(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let login = device(caller)?;
    let body = serde_json::json!({
        "public_key": app.push.public_key(), "device": app.push.device(&login),
    });
    Ok(Json(body).into_response())
}

/// Body of `PUT /api/push`: what `PushSubscription.toJSON()` gives, and the choices.
#[derive(Debug, Deserialize)]
pub struct Subscription {
    endpoint: String,
    keys: Keys,
    #[serde(default)]
    choices: Choices,
}

#[derive(Debug, Deserialize)]
struct Keys {
    p256dh: String,
    auth: String,
}

/// `PUT /api/push`: this device is told from now on, or chooses anew.
///
/// # Errors
/// 400 with what is wrong with the subscription or the choices.
pub async fn subscribe(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    Input(wanted): Input<Subscription>,
) -> Result<StatusCode, Problem> {
    let login = device(caller)?;
    let address = Address {
        endpoint: wanted.endpoint,
        p256dh: wanted.keys.p256dh,
        auth: wanted.keys.auth,
    };
    let odd = |why: Cause| Problem::of(StatusCode::BAD_REQUEST, why);
    read_address(&address).map_err(|why| {
        odd(Cause::NoSubscription {
            detail: format!("{why:#}"),
        })
    })?;
    wanted.choices.check().map_err(odd)?;
    app.push
        .put(&login, address, wanted.choices)
        .await
        .map_err(|why| Problem::internal(&why))?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/push`: this device is told nothing more.
///
/// # Errors
/// It could not be written down.
pub async fn unsubscribe(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<StatusCode, Problem> {
    let login = device(caller)?;
    app.push
        .remove(&login)
        .await
        .map_err(|why| Problem::internal(&why))?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/push/test`: sends a test notification and says what the push service made of it.
///
/// # Errors
/// 404 if this device has not subscribed.
pub async fn test(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let login = device(caller)?;
    let delivery = app
        .push
        .test(&login)
        .await
        .map_err(|why| Problem::internal(&why))?
        .ok_or_else(not_subscribed)?;
    Ok(Json(delivery).into_response())
}

/// `GET /api/notifications`: the last 200, newest first.
///
/// # Errors
/// The database can't be read.
pub async fn notifications(State(app): Shared) -> Result<Response, Problem> {
    let rows = app
        .store
        .notifications()
        .await
        .map_err(|why| Problem::internal(&why))?;
    Ok(Json(rows).into_response())
}

/// `GET /api/devices`: the signed-in browsers, the newest first.
pub async fn devices(State(app): Shared, Extension(caller): Extension<Caller>) -> Response {
    let own = match &caller {
        Caller::Login { id, .. } => Some(id.as_str()),
        Caller::Local | Caller::Stranger => None,
    };
    let rows: Vec<_> = app
        .auth
        .devices()
        .into_iter()
        .map(|login| {
            serde_json::json!({
                "id": login.id, "name": login.name, "authority": login.authority,
                "created_ms": login.created_ms, "seen_ms": login.seen_ms,
                "this": own == Some(login.id.as_str()), "push": app.push.device(&login.id),
            })
        })
        .collect();
    Json(rows).into_response()
}

/// `DELETE /api/devices/ID`: signs that browser out, at once.
///
/// # Errors
/// 404 if there is no such login.
pub async fn revoke(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if !app.auth.devices().iter().any(|login| login.id == id) {
        return Err(Problem::of(StatusCode::NOT_FOUND, Cause::NoDevice));
    }
    app.push
        .remove(&id)
        .await
        .map_err(|why| Problem::internal(&why))?;
    app.auth
        .sign_out(&id)
        .await
        .map_err(|why| Problem::internal(&why))?;
    Ok(StatusCode::NO_CONTENT)
}
