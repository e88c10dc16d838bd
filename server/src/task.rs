//! The one home of `tokio::spawn`: every task has a name, and one that panics is heard of. Also how tasks
//! answer each other. Must know nothing of what a task does.

use std::future::Future;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{error, trace};

/// Runs `future` as a task of its own. If it panics, that is logged under its name.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is the home of spawning"
)]
pub fn spawn(
    name: &'static str,
    future: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(failed) = tokio::spawn(future).await
            && failed.is_panic()
        {
            error!("The task {name:?} died: {failed}");
        }
    })
}

/// Answers a question. Whoever asked may have stopped waiting, and then nothing is lost.
pub fn answer<T>(to: oneshot::Sender<T>, value: T) {
    if to.send(value).is_err() {
        trace!("nobody waits for an answer any more");
    }
}
