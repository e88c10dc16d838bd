//! The routes that say why an item shows what it shows: what the fleet remembers, what the journal holds from
//! before this start, and a look at the process. Must decide nothing: see `wire::explain`.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use http::StatusCode;
use purplemux_core::AgentKey;
use purplemux_core::view::Item;
use purplemux_wire::explain::{self, Explanation, Known, Look, TRANSITIONS_MAX, Transition};
use purplemux_wire::journal::{self, What};
use purplemux_wire::sentence::Cause;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{App, Problem, Shared};

use crate::{clock, hub, sys};

/// Query of both routes.
#[derive(Debug, Deserialize)]
pub struct Which {
    item: String,
}

type Asked = Result<Query<Which>, QueryRejection>;

fn which(asked: Asked) -> Result<String, Problem> {
    match asked {
        Ok(Query(Which { item })) => Ok(item),
        Err(_) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "Say which item: ?item=ID, a tab's id or host:pid:start.",
        )),
    }
}

fn absent(item: &str) -> Problem {
    Problem::of(
        StatusCode::NOT_FOUND,
        Cause::NoSession {
            id: item.to_owned(),
        },
    )
}

/// `GET /api/explain?item=`.
///
/// # Errors
/// 400 without an item, 404 for one that does not exist, 503 while stopping.
pub async fn explain(State(app): Shared, asked: Asked) -> Result<Json<Explanation>, Problem> {
    let item = which(asked)?;
    let known = ask_hub(&app, &item).await?.ok_or_else(|| absent(&item))?;
    let earlier = earlier(&app, &known.item).await;
    Ok(Json(explain::explain(Known {
        item: &known.item,
        evidence: &known.evidence,
        history: &known.history,
        earlier: &earlier,
        process: known
            .item
            .agent
            .as_ref()
            .map(|agent| look(&app, &known.item, agent)),
        now: clock::now(),
    })))
}

async fn ask_hub(app: &App, item: &str) -> Result<Option<hub::Explained>, Problem> {
    app.hub
        .explain(item.to_owned())
        .await
        .map_err(|_| Problem::of(StatusCode::SERVICE_UNAVAILABLE, Cause::ServerStopping))
}

/// Badges from before this start of the server. A journal that can't be read makes the answer shorter and
/// nothing else: the evidence lies in memory.
async fn earlier(app: &App, item: &Item) -> Vec<Transition> {
    let agent = match (&item.agent, &item.tab) {
        (Some(agent), _) => Ok(Some(agent.to_string())),
        (None, Some(tab)) => app.store.last_agent(tab.to_string()).await,
        (None, None) => Ok(None),
    };
    let most = u32::try_from(TRANSITIONS_MAX * 2).unwrap_or(u32::MAX);
    let lines = match agent {
        Ok(Some(agent)) => app.store.verdicts(agent, most).await,
        Ok(None) => Ok(Vec::new()),
        Err(why) => Err(why),
    };
    let lines = lines.unwrap_or_else(|why| {
        warn!("The journal can't be read: {why:#}");
        Vec::new()
    });
    lines
        .iter()
        .filter_map(|line| match journal::decode(line) {
            Ok(record) if record.at.wall_ms >= app.started_ms => None,
            Ok(record) => match record.what {
                What::Verdict(verdict) => Some(Transition::new(
                    verdict.since.wall_ms,
                    verdict.badge.as_ref(),
                )),
                What::Evidence(_) | What::Lost(_) | What::Started(_) => None,
            },
            Err(why) => {
                warn!("The journal: {why}");
                None
            }
        })
        .collect()
}

fn look(app: &App, item: &Item, agent: &AgentKey) -> Look {
    let alive =
        sys::stat(agent.pid).is_some_and(|stat| stat.start == agent.start && stat.state != 'Z');
    let listing = app.tmux.listing();
    let pane = item.tab.as_ref().and_then(|tab| {
        let panes = &listing.borrow().panes;
        let in_tab = panes.iter().find(|pane| pane.is_of(tab.as_str()));
        in_tab.map(|pane| pane.pane)
    });
    Look {
        pid: agent.pid,
        alive,
        pane,
    }
}

/// What `GET /api/journal` says.
#[derive(Debug, Serialize)]
pub struct About {
    /// `host:pid:start`.
    agent: String,
    /// The journal's lines about it, oldest first, with those about nobody between them.
    records: Vec<String>,
}

/// `GET /api/journal?item=`, on the unix socket only: one agent's journal. A tab without an agent stands for
/// the one that was last shown in it.
///
/// # Errors
/// 400 without an item, 404 if the journal knows nothing of it, 500 if it can't be read.
pub async fn records(State(app): Shared, asked: Asked) -> Result<Json<About>, Problem> {
    let item = which(asked)?;
    let failed = |error: anyhow::Error| Problem::internal(&error);
    let shown = ask_hub(&app, &item)
        .await?
        .and_then(|known| known.item.agent);
    let agent = match shown {
        Some(agent) => agent.to_string(),
        None => {
            let last = app.store.last_agent(item.clone()).await.map_err(failed)?;
            last.unwrap_or_else(|| item.clone())
        }
    };
    let records = app
        .store
        .records_about(agent.clone())
        .await
        .map_err(failed)?;
    if records.is_empty() {
        return Err(absent(&item));
    }
    Ok(Json(About { agent, records }))
}
