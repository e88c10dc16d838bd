//! The REST routes. Each takes one request, asks the owner of what it is about, and answers; none keeps
//! anything itself.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::{Extension, Json};
use http::{StatusCode, header};
use purplemux_wire::browser::{Item, Workspace};
use purplemux_wire::sentence::{Cause, Notice};
use serde::{Deserialize, Serialize};

use super::auth::Denied;
use super::owner::Owner;
use super::{App, Caller, Input, Problem, SentTo, Shared};

use crate::conversations::{self, Conversation};
use crate::hub::Snapshot;
use crate::store::TabRow;
use crate::tabs::{Closing, Edit, NewTab, NewWorkspace, PaneOp, Refusal};
use crate::{clock, settings, tmux};

/// The largest text typed into a tab by a program, with room for its JSON: the paste of 1 MB that a browser
/// may make as well.
pub const SEND_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What `GET /api/health` says.
#[derive(Debug, Serialize)]
pub struct Health {
    app: &'static str,
    version: &'static str,
}

/// `GET /api/health`.
pub async fn health() -> Json<Health> {
    Json(Health {
        app: "purplemux",
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Body of `POST /api/login`.
#[derive(Debug, Deserialize)]
pub struct LoginCode {
    code: String,
    /// What the device is to be called in the list of devices.
    #[serde(default)]
    name: String,
}

/// `POST /api/login`: trades a code for a cookie and a secret.
///
/// # Errors
/// 401 for a code that is not good, 429 for too many of those.
pub async fn login(
    State(app): Shared,
    sent_to: Option<Extension<SentTo>>,
    Input(LoginCode { code, name }): Input<LoginCode>,
) -> Result<Response, Problem> {
    let Some(Extension(SentTo { authority, from })) = sent_to else {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "Programs on the unix socket need no login.",
        ));
    };
    let granted = app
        .auth
        .sign_in(&code, &authority, &name, from, clock::wall_ms())
        .await
        .map_err(|error| Problem::internal(&error))?;
    let granted = granted.map_err(|denied| match denied {
        Denied::Code => Problem::of(StatusCode::UNAUTHORIZED, Cause::LinkUsed),
        Denied::TooMany => Problem::of(StatusCode::TOO_MANY_REQUESTS, Cause::TooManyCodes),
    })?;
    let cookie = app.auth.set_cookie(Some(&granted), app.names.https_only());
    let body = serde_json::json!({
        "secret": granted.secret, "instance": app.instance, "login": granted.login,
    });
    Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), Json(body)).into_response())
}

/// `GET /api/session`: who the asker is to us.
pub async fn session(State(app): Shared, Extension(caller): Extension<Caller>) -> Response {
    let login = match caller {
        Caller::Login { id, .. } => Some(id),
        Caller::Local | Caller::Stranger => None,
    };
    Json(serde_json::json!({ "login": login, "instance": app.instance, "host": app.host }))
        .into_response()
}

/// `POST /api/logout`.
///
/// # Errors
/// The login could not be removed for good.
pub async fn logout(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    match caller {
        Caller::Login { id, .. } => app
            .auth
            .sign_out(&id)
            .await
            .map_err(|error| Problem::internal(&error))?,
        Caller::Local | Caller::Stranger => {}
    }
    let cookie = app.auth.set_cookie(None, app.names.https_only());
    Ok((
        StatusCode::NO_CONTENT,
        AppendHeaders([(header::SET_COOKIE, cookie)]),
    )
        .into_response())
}

/// `POST /api/login/code`, on the unix socket only: a code for a sign-in link.
///
/// # Errors
/// It could not be kept.
pub async fn mint_code(State(app): Shared, _: Owner) -> Result<Response, Problem> {
    let (code, expires_ms) = app
        .auth
        .mint_code(clock::wall_ms())
        .await
        .map_err(|error| Problem::internal(&error))?;
    let url = format!("{}/#login={code}", app.address);
    Ok(
        Json(serde_json::json!({ "code": code, "expires_ms": expires_ms, "url": url }))
            .into_response(),
    )
}

/// What `GET /api/items` says: a snapshot over HTTP.
#[derive(Debug, Serialize)]
pub struct Items {
    epoch: String,
    rev: u64,
    now_ms: i64,
    items: Vec<Item>,
    workspaces: Vec<Workspace>,
    notices: Vec<String>,
}

/// `GET /api/items`.
pub async fn items(State(app): Shared) -> Json<Items> {
    let snapshot = shown(&app);
    Json(Items {
        epoch: app.epoch.clone(),
        rev: snapshot.rev,
        now_ms: clock::wall_ms(),
        items: snapshot.rows(),
        workspaces: snapshot.workspaces.to_vec(),
        notices: in_english(app.notices(&snapshot)),
    })
}

/// `GET /api/workspaces`.
pub async fn workspaces(State(app): Shared) -> Response {
    let layout = app.tabs.layout();
    let all: Vec<_> = layout
        .workspaces()
        .map(|workspace| {
            let tabs = layout.tabs().filter(|tab| tab.workspace == workspace.id);
            let tabs: Vec<&str> = tabs.map(|tab| tab.id.as_str()).collect();
            let arranged = layout.arranged(workspace);
            serde_json::json!({
                "id": workspace.id, "name": workspace.name, "dir": workspace.dir,
                "color": arranged.color, "group": arranged.group, "panes": arranged.panes,
                "tabs": tabs,
            })
        })
        .collect();
    Json(all).into_response()
}

/// `POST /api/workspaces`.
///
/// # Errors
/// 400 or 409 with the reason.
pub async fn create_workspace(
    State(app): Shared,
    Input(new): Input<NewWorkspace>,
) -> Result<Response, Problem> {
    let id = app.tabs.add_workspace(new).await?;
    let body = serde_json::json!({ "workspace": id });
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// `PATCH /api/workspaces/{id}`.
///
/// # Errors
/// 400 or 404 with the reason.
pub async fn edit_workspace(
    State(app): Shared,
    Path(id): Path<String>,
    Input(edit): Input<Edit>,
) -> Result<StatusCode, Problem> {
    app.tabs.edit_workspace(&id, edit).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/workspaces/{id}`.
///
/// # Errors
/// 404, 409 (something lives in it, or it is the only one) or 503 with the reason.
pub async fn remove_workspace(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
    how: Result<Query<How>, QueryRejection>,
) -> Result<Response, Problem> {
    let how = closing(how)?;
    Ok(closed(app.tabs.remove_workspace(&id, how).await?))
}

/// Body of `PUT /api/workspaces/order`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    ids: Vec<String>,
}

/// `PUT /api/workspaces/order`.
///
/// # Errors
/// 409: there are others now.
pub async fn order_workspaces(
    State(app): Shared,
    Input(Order { ids }): Input<Order>,
) -> Result<StatusCode, Problem> {
    app.tabs.order(ids).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/workspaces/{id}/panes`: one change of its panes.
///
/// # Errors
/// 400, 404 (a stale id) or 409 (no room, or the last one) with the reason.
pub async fn panes(
    State(app): Shared,
    Path(id): Path<String>,
    Input(op): Input<PaneOp>,
) -> Result<Response, Problem> {
    Ok(match app.tabs.panes(&id, op).await? {
        Some(pane) => Json(serde_json::json!({ "pane": pane })).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// `GET /api/tabs`: the rows that are tabs.
pub async fn tabs(State(app): Shared) -> Json<Vec<Item>> {
    Json(
        shown(&app)
            .items
            .iter()
            .filter(|item| item.tab.is_some())
            .map(|item| Item::clone(item))
            .collect(),
    )
}

/// `POST /api/tabs`.
///
/// # Errors
/// 400, 404 or 503 with the reason.
pub async fn create_tab(
    State(app): Shared,
    Input(new): Input<NewTab>,
) -> Result<Response, Problem> {
    let tab = app.tabs.create(new).await?;
    Ok(made(&app, &tab))
}

/// What making a tab answers.
fn made(app: &App, tab: &TabRow) -> Response {
    let body = serde_json::json!({
        "tab": tab.id,
        "workspace": tab.workspace,
        "tmux": { "socket": app.tmux.socket(), "session": tab.id },
    });
    (StatusCode::CREATED, Json(body)).into_response()
}

/// Body of `PATCH /api/tabs/{id}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TabEdit {
    name: Option<String>,
    pane: Option<String>,
    index: Option<usize>,
}

/// `PATCH /api/tabs/{id}`: another name, or another place.
///
/// # Errors
/// 400 or 404 with the reason.
pub async fn edit_tab(
    State(app): Shared,
    Path(id): Path<String>,
    Input(TabEdit { name, pane, index }): Input<TabEdit>,
) -> Result<StatusCode, Problem> {
    match (name, pane) {
        (Some(name), None) if index.is_none() => app.tabs.rename(&id, &name).await?,
        (None, Some(pane)) => app.tabs.place(&id, &pane, index).await?,
        (Some(_) | None, Some(_) | None) => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "Send a name, or a pane and the place in it (index).",
            ));
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Query of what closes something.
#[derive(Debug, Deserialize)]
pub struct How {
    #[serde(default)]
    force: u8,
    #[serde(default)]
    undo: u8,
}

fn closing(how: Result<Query<How>, QueryRejection>) -> Result<Closing, Problem> {
    let Query(How { force, undo }) = how.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Write ?force=1 to close what is alive, and undo=1 to be able to bring it back.",
        )
    })?;
    Ok(Closing {
        force: force != 0,
        undo: undo != 0,
    })
}

/// What closing answers: nothing, or until when it can be undone.
fn closed(until_ms: Option<i64>) -> Response {
    match until_ms {
        Some(until_ms) => Json(serde_json::json!({ "until_ms": until_ms })).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// `DELETE /api/tabs/{id}`.
///
/// # Errors
/// 404, 409 (an agent is alive in it) or 503 with the reason.
pub async fn close_tab(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
    how: Result<Query<How>, QueryRejection>,
) -> Result<Response, Problem> {
    let how = closing(how)?;
    Ok(closed(app.tabs.close(&id, how).await?))
}

/// `POST /api/tabs/{id}/restore` and `POST /api/workspaces/{id}/restore`: brings back what was closed with `undo`.
///
/// # Errors
/// 404: it has ended, or was never closed.
pub async fn restore(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.tabs.restore(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/tabs/{id}/reopen`: starts the shell of a tab that has ended again, in the tab's directory.
///
/// # Errors
/// 404, 409 (its shell lives) or 503 with the reason.
pub async fn reopen_tab(State(app): Shared, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    app.tabs.reopen(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/tabs/{id}/resume`: takes up the conversation that is offered in a tab.
///
/// # Errors
/// 404, or 409 (nothing is offered, or its shell is busy) with the reason.
pub async fn resume_tab(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.tabs.resume(&id, true).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/tabs/{id}/resume`: offers it no more.
///
/// # Errors
/// 404, or 409: nothing is offered.
pub async fn leave_tab(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.tabs.resume(&id, false).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Conversations in one answer, if nobody says otherwise, and at most.
const CONVERSATIONS: usize = 100;
const CONVERSATIONS_MAX: usize = 500;

/// Query of `GET /api/conversations`.
#[derive(Debug, Deserialize)]
pub struct Sought {
    #[serde(default)]
    q: String,
    #[serde(default)]
    most: Option<usize>,
}

/// A past conversation, and the row that it runs in now.
#[derive(Debug, Serialize)]
pub struct Past {
    #[serde(flatten)]
    conversation: Conversation,
    item: Option<String>,
}

/// `GET /api/conversations?q=&most=`: those of all projects, newest first.
///
/// # Errors
/// 400 for an address that says something else.
pub async fn conversations(
    State(app): Shared,
    sought: Result<Query<Sought>, QueryRejection>,
) -> Result<Json<Vec<Past>>, Problem> {
    let Query(Sought { q, most }) = sought.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Write ?q=WORDS&most=N, or leave either out.",
        )
    })?;
    let dirs = app.hub.witnesses().processes.claude_dirs().all();
    let all = app.conversations.clone();
    let most = most.unwrap_or(CONVERSATIONS).min(CONVERSATIONS_MAX);
    let look = tokio::task::spawn_blocking(move || all.list(&dirs, &q, most));
    let found = look
        .await
        .map_err(|why| Problem::internal(&anyhow::Error::new(why)))?;
    let past = found.into_iter().map(|conversation| Past {
        item: runs_in(&app, &conversation.id),
        conversation,
    });
    Ok(Json(past.collect()))
}

/// The row in which a conversation runs now.
fn runs_in(app: &App, conversation: &str) -> Option<String> {
    let snapshot = shown(app);
    let mut items = snapshot.items.iter();
    items
        .find(|item| item.session_id.as_deref() == Some(conversation) && item.state.is_some())
        .map(|item| item.id.clone())
}

/// Body of `POST /api/conversations/{id}/resume`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Where {
    workspace: Option<String>,
    pane: Option<String>,
}

/// `POST /api/conversations/{id}/resume`: a new tab in its directory, in which it is taken up.
///
/// # Errors
/// 404 for one that does not exist, 409 while it runs, or as for a new tab.
pub async fn take_up(
    State(app): Shared,
    Path(id): Path<String>,
    Input(Where { workspace, pane }): Input<Where>,
) -> Result<Response, Problem> {
    if let Some(item) = runs_in(&app, &id) {
        return Err(Problem::of(
            StatusCode::CONFLICT,
            Cause::ConversationRuns { item },
        ));
    }
    let dirs = app.hub.witnesses().processes.claude_dirs().all();
    let wanted = id.clone();
    let look = tokio::task::spawn_blocking(move || conversations::find(&dirs, &wanted));
    let found = look
        .await
        .map_err(|why| Problem::internal(&anyhow::Error::new(why)))?;
    let found =
        found.ok_or_else(|| Problem::of(StatusCode::NOT_FOUND, Cause::NoConversation { id }))?;
    let tab = app.tabs.take_up(&found, workspace, pane).await?;
    Ok(made(&app, &tab))
}

/// `GET /api/settings`: what all devices of the person share.
pub async fn settings(State(app): Shared) -> Json<settings::Object> {
    let now = app.settings.watch();
    let now = now.borrow();
    Json(settings::Object::clone(&now))
}

/// `PUT /api/settings`: these in place of all.
///
/// # Errors
/// 400 or 413 with the reason.
pub async fn put_settings(
    State(app): Shared,
    _: Owner,
    Input(all): Input<settings::Object>,
) -> Result<StatusCode, Problem> {
    app.settings.change(settings::Change::All(all)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `PATCH /api/settings`: these beside the others; null takes one away.
///
/// # Errors
/// 400 or 413 with the reason.
pub async fn patch_settings(
    State(app): Shared,
    _: Owner,
    Input(some): Input<settings::Object>,
) -> Result<StatusCode, Problem> {
    app.settings.change(settings::Change::Some(some)).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<settings::Refusal> for Problem {
    fn from(refusal: settings::Refusal) -> Self {
        match refusal {
            settings::Refusal::TooLarge => {
                let max = u32::try_from(settings::BYTES_MAX).unwrap_or(u32::MAX);
                Self::of(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    Cause::SettingsTooLarge { max },
                )
            }
            settings::Refusal::Failed(error) => Self::internal(&error),
        }
    }
}

/// Body of `POST /api/tabs/{id}/send`.
#[derive(Debug, Deserialize)]
pub struct Typed {
    text: String,
    #[serde(default)]
    enter: bool,
}

/// `POST /api/tabs/{id}/send`.
///
/// # Errors
/// 404, 409 (the shell has ended, or its pane takes no text) or 503 with the reason.
pub async fn send(
    State(app): Shared,
    _: Owner,
    Path(id): Path<String>,
    Input(Typed { text, enter }): Input<Typed>,
) -> Result<StatusCode, Problem> {
    let row = app.hub.explain(id.clone()).await.ok().flatten();
    let agent = row.and_then(|row| row.item.agent.and(row.item.pane));
    app.tabs.send(&id, agent.as_ref(), &text, enter).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Absent(_) => StatusCode::NOT_FOUND,
            Refusal::Invalid(_) => StatusCode::BAD_REQUEST,
            Refusal::InTheWay(_) | Refusal::Tmux(tmux::Error::Gone | tmux::Error::Deaf(_)) => {
                StatusCode::CONFLICT
            }
            Refusal::Tmux(
                tmux::Error::Refused(_) | tmux::Error::Unreachable(_) | tmux::Error::Late,
            ) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Failed(error) => return Self::internal(error),
        };
        let why = match refusal {
            Refusal::Absent(why) | Refusal::Invalid(why) | Refusal::InTheWay(why) => why,
            Refusal::Tmux(error) => error.into(),
            Refusal::Failed(error) => return Self::internal(&error),
        };
        Self::of(status, why)
    }
}

fn in_english(notices: Vec<Notice>) -> Vec<String> {
    notices.into_iter().map(|notice| notice.why).collect()
}

fn shown(app: &App) -> Arc<Snapshot> {
    Arc::clone(&app.hub.snapshots().borrow())
}

/// A script may start many processes; more than this below one tab are not looked at.
const TREE_MAX: usize = 256;

/// Query of `GET /api/check-claude`.
#[derive(Debug, Deserialize)]
pub struct Which {
    tab: String,
}

/// What `GET /api/check-claude` says. It never touches a badge.
#[derive(Debug, Serialize)]
pub struct Checked {
    installed: bool,
    running: bool,
    pid: Option<u32>,
    session_id: Option<String>,
    checked_at_ms: i64,
}

/// `GET /api/check-claude?tab=`: whether Claude runs in a tab now.
///
/// # Errors
/// 400 without a tab, 404 for one that does not exist.
pub async fn check_claude(
    State(app): Shared,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Checked>, Problem> {
    let Query(Which { tab }) = which.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Say which tab: /api/check-claude?tab=ID.",
        )
    })?;
    if app.tabs.layout().tab(&tab).is_none() {
        let id = tab;
        return Err(Problem::of(StatusCode::NOT_FOUND, Cause::NoTab { id }));
    }
    let pid = claude_in(&app, &tab).await;
    let session_id = shown(&app)
        .items
        .iter()
        .find(|item| pid.is_some() && item.pid == pid)
        .and_then(|item| item.session_id.clone());
    Ok(Json(Checked {
        installed: app.claude.found().installed(),
        running: pid.is_some(),
        pid,
        session_id,
        checked_at_ms: clock::wall_ms(),
    }))
}

/// The nearest Claude in the process tree below a tab's panes, as the kernel has it now. Whoever is found is
/// announced to the hub by the process witness.
async fn claude_in(app: &App, tab: &str) -> Option<u32> {
    let listing = app.tmux.list_now().await.ok()?;
    let panes = listing.panes.iter().filter(|pane| pane.is_of(tab));
    let mut level: Vec<u32> = panes.filter_map(|pane| pane.pid).collect();
    let mut asked = 0;
    while !level.is_empty() && asked < TREE_MAX {
        for pid in &level {
            asked += 1;
            let found = app.hub.witnesses().processes.look(*pid, None).await;
            if let Some(agent) = found {
                return Some(agent.pid);
            }
        }
        level = level.into_iter().flat_map(crate::sys::children).collect();
    }
    None
}

/// Query of `GET /api/claude`.
#[derive(Debug, Deserialize)]
pub struct Anew {
    #[serde(default)]
    again: u8,
}

/// What `GET /api/claude` says: the three things that must be there before a session can have a state.
#[derive(Debug, Serialize)]
pub struct Ready {
    installed: bool,
    started: bool,
    #[serde(flatten)]
    found: crate::claude::Found,
    /// tmux's version, if it answers, and its program.
    tmux: Option<String>,
    tmux_program: Option<std::path::PathBuf>,
    /// The settings that Claude is given, if they are there.
    hooks: Option<std::path::PathBuf>,
    checked_at_ms: i64,
}

/// `GET /api/claude`: whether Claude Code is installed and was started once. With `?again=1` the login shell
/// is asked anew; without, it is what a watch keeps up to date.
///
/// # Errors
/// 400 for an address that says something else.
pub async fn claude(
    State(app): Shared,
    anew: Result<Query<Anew>, QueryRejection>,
) -> Result<Json<Ready>, Problem> {
    let Query(Anew { again }) = anew.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "Write ?again=1 to look anew, or nothing.",
        )
    })?;
    let found = match again {
        0 => app.claude.found(),
        _ => app.claude.look().await,
    };
    let version = app
        .tmux
        .command(&["display-message", "-p", "#{version}"])
        .await;
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(Json(Ready {
        installed: found.installed(),
        started: found.started(),
        found,
        tmux: version.ok().and_then(|lines| lines.into_iter().next()),
        tmux_program: crate::hooks::version::find_on_path("tmux", &path, None),
        hooks: Some(app.home.join("hooks.json")).filter(|file| file.is_file()),
        checked_at_ms: clock::wall_ms(),
    }))
}

/// What `GET /api/doctor` says, over the unix socket only: what the server alone knows of its own health.
#[derive(Debug, Serialize, Deserialize)]
pub struct Inside {
    /// The server's version; another than the program's after an update.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// What could not be used since its start.
    pub odd: crate::ingest::odd::Counts,
    /// What viewers are told is degraded.
    pub notices: Vec<String>,
}

/// `GET /api/doctor`.
pub async fn doctor(State(app): Shared) -> Json<Inside> {
    let snapshot = shown(&app);
    Json(Inside {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        odd: app.hub.witnesses().odd.counts(),
        notices: in_english(app.notices(&snapshot)),
    })
}
