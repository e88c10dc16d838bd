//! A machine whose watches are used up, and more changes at once than its queue holds: what is shown is
//! still right within two seconds, and the page says that something is degraded.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs;
use std::time::{Duration, Instant};

use support::standin::{Standin, shows};
use support::{TestServer, eventually, place};

/// The deadline, and what a machine that runs other tests beside adds.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

#[test]
fn h12_without_watches_changes_are_seen_and_the_page_says_so() {
    let dir = place();
    let standin = Standin::new(dir.path());
    standin.write("idle");
    let server = TestServer::start_unwatched(dir);
    shows(&server, &standin, "idle");
    let browser = server.browser();
    let viewer = browser.status();
    assert!(
        viewer
            .notices
            .iter()
            .any(|notice| notice.why.contains("can't be watched")),
        "{:?}",
        viewer.notices
    );
    for status in ["busy", "idle", "busy"] {
        standin.write(status);
        let written = Instant::now();
        shows(&server, &standin, status);
        assert!(written.elapsed() < SEEN_WITHIN, "{:?}", written.elapsed());
    }
}

#[test]
fn h12_more_events_than_the_queue_holds_lose_nothing() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let queue: usize = queue.trim().parse().unwrap();
    // It is not there to read them.
    server.signal("-STOP");
    for n in 0..=queue / 2 {
        // At least two events each: made, and closed by its writer.
        fs::write(standin.sessions.join(format!("stranger-{n}")), "").unwrap();
    }
    standin.write("busy");
    server.signal("-CONT");
    let goes_on = Instant::now();
    shows(&server, &standin, "busy");
    assert!(goes_on.elapsed() < SEEN_WITHIN, "{:?}", goes_on.elapsed());
    // The watch goes on as before.
    eventually("the log says what happened", || {
        let log = fs::read_to_string(server.home().join("logs/server.log")).unwrap();
        log.contains("Events of Claude's status files were lost")
    });
    standin.write("idle");
    shows(&server, &standin, "idle");
}
