//! The person's settings: one JSON object that all of their devices share (language, theme, keys, fonts). One task
//! owns it; it keeps every change, then tells whoever looks. What the words in it mean is for the page to know;
//! unknown ones are kept as they are.
//!
//! Must never hold what the server itself decides by (`agents.workspaces`, `journal.text`): those are settings of
//! their own in the store. The one exception is `resume`, which [`crate::tabs`] reads at a start.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::store::Store;

/// The settings as they are now.
pub type Object = Map<String, Value>;

/// The largest they may be, as JSON: a page's choices and its key map are a few kilobytes.
pub const BYTES_MAX: usize = 64 * 1024;

/// Where the store keeps them.
pub const KEY: &str = "person";

/// Changes that may wait.
const INBOX: usize = 16;

/// Why they stay as they were.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Too much.
    #[error("Settings may have {BYTES_MAX} bytes in all; leave something out.")]
    TooLarge,
    /// They could not be kept, or the server is stopping.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

/// What is to become of them.
#[derive(Clone, Debug)]
pub enum Change {
    /// These in place of all.
    All(Object),
    /// These beside the others; null takes one away.
    Some(Object),
}

#[derive(Debug)]
struct Ask {
    change: Change,
    answer: oneshot::Sender<Result<(), Refusal>>,
}

/// The way to them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Settings {
    asks: mpsc::Sender<Ask>,
    now: watch::Receiver<Arc<Object>>,
}

impl Settings {
    /// Reads what was kept, and starts the task. What can't be read is left alone until the first change, and nothing
    /// is set meanwhile.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn start(store: Store) -> Result<Self> {
        let kept = kept(&store).await?;
        let (publish, now) = watch::channel(Arc::new(kept));
        let (asks, mut inbox) = mpsc::channel::<Ask>(INBOX);
        crate::task::spawn("settings", async move {
            while let Some(ask) = inbox.recv().await {
                let next = changed(&publish.borrow(), ask.change);
                let done = match next {
                    Ok((object, json)) => match store.set_setting(KEY, json).await {
                        Ok(()) => {
                            publish.send_replace(Arc::new(object));
                            Ok(())
                        }
                        Err(why) => Err(why.into()),
                    },
                    Err(why) => Err(why),
                };
                crate::task::answer(ask.answer, done);
            }
        });
        Ok(Self { asks, now })
    }

    /// As they are, now and at every change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Object>> {
        self.now.clone()
    }

    /// Makes a change.
    ///
    /// # Errors
    /// They would be too large, or can't be kept; they stay as they were.
    pub async fn change(&self, change: Change) -> Result<(), Refusal> {
        let stopping = || anyhow::anyhow!("purplemux is stopping");
        let (answer, wait) = oneshot::channel();
        let ask = Ask { change, answer };
        self.asks.send(ask).await.map_err(|_| stopping())?;
        wait.await.map_err(|_| stopping())?
    }
}

/// What the store has of them.
///
/// # Errors
/// The store can't be read.
pub async fn kept(store: &Store) -> Result<Object> {
    let kept = store.setting(KEY).await?;
    Ok(kept
        .and_then(|json| {
            serde_json::from_str(&json)
                .inspect_err(|why| tracing::warn!("The settings can't be read: {why}."))
                .ok()
        })
        .unwrap_or_default())
}

fn changed(now: &Object, change: Change) -> Result<(Object, String), Refusal> {
    let next = match change {
        Change::All(all) => all,
        Change::Some(some) => {
            let mut next = now.clone();
            for (key, value) in some {
                if value.is_null() {
                    next.remove(&key);
                } else {
                    next.insert(key, value);
                }
            }
            next
        }
    };
    let json = Value::Object(next.clone()).to_string();
    if json.len() > BYTES_MAX {
        return Err(Refusal::TooLarge);
    }
    Ok((next, json))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn what_is_named_changes_and_the_rest_stays() {
        let now = object(json!({"theme": "dark", "future": {"x": [1]}}));
        let some = object(json!({"theme": "light", "lang": "zh-TW"}));
        let (next, _) = changed(&now, Change::Some(some)).unwrap();
        let wanted = json!({"theme": "light", "future": {"x": [1]}, "lang": "zh-TW"});
        assert_eq!(Value::Object(next.clone()), wanted);
        let (next, _) = changed(&next, Change::Some(object(json!({"theme": null})))).unwrap();
        assert!(!next.contains_key("theme"));
        let (next, json) = changed(&next, Change::All(Object::new())).unwrap();
        assert!(next.is_empty());
        assert_eq!(json, "{}");
    }

    #[test]
    fn there_is_an_end_to_them() {
        let fits = "x".repeat(BYTES_MAX - r#"{"a":""}"#.len());
        let now = Object::new();
        changed(&now, Change::All(object(json!({"a": fits})))).unwrap();
        let over = object(json!({"a": fits + "x"}));
        let why = changed(&now, Change::Some(over)).unwrap_err();
        assert!(matches!(why, Refusal::TooLarge), "{why}");
    }
}
