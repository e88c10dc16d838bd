//! The routes that read a tab's history, what has scrolled off its screen: tmux keeps it, and it is asked over the one
//! control client. Lines are numbered from the oldest that tmux has kept, so that a line keeps its number while more
//! come; once tmux throws the oldest away, all numbers fall, and a reader finds out by the lines it knows.
//!
//! Must never change anything: no mode of tmux is entered, so that a reader is nobody else's business.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use http::StatusCode;
use purplemux_core::TabId;
use purplemux_wire::sentence::Cause;
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use super::{App, Problem, Shared};

use crate::tmux::{Error, Session};

/// The most lines that one answer holds.
const LINES_MAX: u64 = 5_000;

/// Lines asked of tmux at a time in a search: about half a megabyte, so that what else is asked of it comes between.
const SEARCH_LINES: u64 = 5_000;

/// The most places that one search names.
const FOUND_MAX: usize = 500;

/// The longest text that is searched for, in characters.
const SOUGHT_CHARS_MAX: usize = 200;

/// What tmux is asked about a pane.
const STATE: &str = "#{history_size} #{pane_width} #{pane_height}";

/// Which lines: `from` up to but not including `to`.
#[derive(Debug, Deserialize)]
pub struct Which {
    from: Option<u64>,
    to: Option<u64>,
    /// In place of `from`: so many above the screen.
    last: Option<u64>,
}

/// What is searched for.
#[derive(Debug, Deserialize)]
pub struct Sought {
    text: String,
}

/// Lines of a tab.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// Lines above the screen.
    history: u64,
    cols: u64,
    rows: u64,
    /// The number of the first line given.
    from: u64,
    /// With their colours, as escape sequences.
    lines: Vec<String>,
}

/// Where a text stands.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    history: u64,
    /// Numbers of lines, the newest first.
    lines: Vec<u64>,
    /// There are more, and older ones.
    more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pane {
    history: u64,
    cols: u64,
    rows: u64,
}

impl Pane {
    fn read(lines: &[String]) -> Option<Self> {
        let mut words = lines.first()?.split(' ').map(str::parse);
        let mut next = || words.next()?.ok();
        Some(Self {
            history: next()?,
            cols: next()?,
            rows: next()?,
        })
    }

    fn end(self) -> u64 {
        self.history + self.rows
    }

    /// A line's number as tmux counts: from the top of the screen, negative above it.
    fn relative(self, line: u64) -> String {
        match line.checked_sub(self.history) {
            Some(below) => below.to_string(),
            None => format!("-{}", self.history - line),
        }
    }
}

/// `GET /api/tabs/{id}/history?from=&to=`. Without numbers: the screen and what is right above it.
///
/// # Errors
/// 404 for a tab that does not exist, 409 for one that has ended, 503 while tmux does not answer.
pub async fn lines(
    State(app): Shared,
    _: Owner,
    Path(tab): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Lines>, Problem> {
    let Query(Which { from, to, last }) = which.map_err(|error| {
        let why = format!("Say which lines by numbers: ?from=0&to=100. {error}");
        Problem::new(StatusCode::BAD_REQUEST, why)
    })?;
    let session = session(&app, &tab).await?;
    let pane = look(&app, &session).await?;
    let to = to.unwrap_or(pane.end()).min(pane.end());
    let from = from
        .unwrap_or_else(|| pane.history.saturating_sub(last.unwrap_or(LINES_MAX / 2)))
        .max(to.saturating_sub(LINES_MAX))
        .min(to);
    let (pane, from, lines) = capture(&app, &session, pane, from, to, true).await?;
    Ok(Json(Lines {
        history: pane.history,
        cols: pane.cols,
        rows: pane.rows,
        from,
        lines,
    }))
}

/// `GET /api/tabs/{id}/history/search?text=`: lines that contain it, in upper or lower case.
///
/// # Errors
/// As [`lines`], and 400 for a text that is empty or too long.
pub async fn search(
    State(app): Shared,
    _: Owner,
    Path(tab): Path<String>,
    sought: Result<Query<Sought>, QueryRejection>,
) -> Result<Json<Found>, Problem> {
    let bad = |why: String| Problem::new(StatusCode::BAD_REQUEST, why);
    let Query(Sought { text }) =
        sought.map_err(|error| bad(format!("Say what to search for: ?text=. {error}")))?;
    if text.is_empty() || text.chars().count() > SOUGHT_CHARS_MAX {
        let max = u32::try_from(SOUGHT_CHARS_MAX).unwrap_or(u32::MAX);
        let why = Cause::SearchLength { max };
        return Err(Problem::of(StatusCode::BAD_REQUEST, why));
    }
    let text = text.to_lowercase();
    let session = session(&app, &tab).await?;
    let pane = look(&app, &session).await?;
    let mut found = Vec::new();
    let mut to = pane.end();
    while to > 0 && found.len() <= FOUND_MAX {
        let from = to.saturating_sub(SEARCH_LINES);
        // More may have come meanwhile: these numbers are of now.
        let (_, first, lines) = capture(&app, &session, pane, from, to, false).await?;
        let numbered: Vec<(u64, &String)> = (first..).zip(&lines).collect();
        let holding = numbered
            .iter()
            .rev()
            .filter(|(_, line)| line.to_lowercase().contains(&text));
        found.extend(holding.map(|(number, _)| *number));
        to = from;
    }
    let more = found.len() > FOUND_MAX;
    found.truncate(FOUND_MAX);
    Ok(Json(Found {
        history: pane.history,
        lines: found,
        more,
    }))
}

async fn session(app: &Arc<App>, tab: &str) -> Result<Session, Problem> {
    if app.tabs.layout().tab(tab).is_none() {
        let id = tab.to_owned();
        return Err(Problem::of(StatusCode::NOT_FOUND, Cause::NoTab { id }));
    }
    let session = app.tmux.session(&TabId::from(tab)).await;
    session.map_err(refused)
}

fn refused(error: Error) -> Problem {
    let status = match error {
        Error::Gone | Error::Deaf(_) | Error::Refused(_) => StatusCode::CONFLICT,
        Error::Unreachable(_) | Error::Late => StatusCode::SERVICE_UNAVAILABLE,
    };
    Problem::of(status, Cause::from(error))
}

async fn look(app: &App, session: &Session) -> Result<Pane, Problem> {
    let arguments = ["display-message", "-p", "-t", &session.pane(), STATE];
    let said = app.tmux.command_in(&session.run, &arguments).await;
    let said = said.map_err(refused)?;
    Pane::read(&said).ok_or_else(|| refused(Error::Gone))
}

/// The lines from `from` to `to` as they are numbered when they are read, and the number of the first of them. tmux
/// counts from the screen, and more may have scrolled off it since `then`.
async fn capture(
    app: &App,
    session: &Session,
    then: Pane,
    from: u64,
    to: u64,
    colours: bool,
) -> Result<(Pane, u64, Vec<String>), Problem> {
    if from >= to {
        return Ok((then, from, Vec::new()));
    }
    let target = session.pane();
    let (start, end) = (then.relative(from), then.relative(to - 1));
    let flags = if colours { "-pe" } else { "-p" };
    let said = app
        .tmux
        .together(
            &session.run,
            &[
                &["display-message", "-p", "-t", &target, STATE],
                &[
                    "capture-pane",
                    flags,
                    "-t",
                    &target,
                    "-S",
                    &start,
                    "-E",
                    &end,
                ],
            ],
        )
        .await
        .map_err(refused)?;
    let [state, lines]: [Vec<String>; 2] = said.try_into().map_err(|_| refused(Error::Gone))?;
    let now = Pane::read(&state).ok_or_else(|| refused(Error::Gone))?;
    let moved = now.history.saturating_sub(then.history);
    // tmux gives what it has: a history that was cleared meanwhile is shorter than what was asked for.
    let from = (from + moved).min(now.end());
    Ok((now, from, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_from_the_oldest() {
        let pane = Pane::read(&["2000 80 24".to_owned()]).unwrap();
        assert_eq!(pane.end(), 2024);
        assert_eq!(pane.relative(0), "-2000");
        assert_eq!(pane.relative(1999), "-1");
        assert_eq!(pane.relative(2000), "0");
        assert_eq!(pane.relative(2023), "23");
        assert_eq!(Pane::read(&[String::new()]), None);
    }
}
