//! A server that is killed, hung or doubled, and files of its own that are damaged: it starts again, shows what
//! is so, and loses nothing that it had acknowledged.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::time::{Duration, Instant};

use support::TestServer;
use support::standin::{Standin, shows};

/// A second server is told within this; it looks for a second whether the first is just about to end.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);

/// Starts another server in the same home; what it says before it gives up.
fn refused(server: &TestServer) -> String {
    let from = Instant::now();
    let output = server.cli(&["serve", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(from.elapsed() < REFUSED_WITHIN, "{:?}", from.elapsed());
    assert!(output.stdout.is_empty(), "it says no address");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn h10_a_second_server_is_refused_and_steals_nothing_even_from_one_that_hangs() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let browser = server.browser();
    let tab = browser.tab();
    let mut viewer = browser.status();
    let home = server.home();
    let port = std::fs::read_to_string(home.join("port")).unwrap();
    for hung in [false, true] {
        if hung {
            server.signal("-STOP");
        }
        let said = refused(&server);
        for part in [
            "already running",
            &server.pid().to_string(),
            home.to_str().unwrap(),
            "stop it, or set PURPLEMUX_HOME",
        ] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        if hung {
            server.signal("-CONT");
        }
    }
    // Socket, port, tmux server, database and viewers are the first one's as before.
    assert_eq!(std::fs::read_to_string(home.join("port")).unwrap(), port);
    assert_eq!(server.json(&["tab", "list", "--json"])[0]["id"], tab);
    let lock = std::fs::read_to_string(home.join("lock")).unwrap();
    assert_eq!(lock.trim(), server.pid().to_string());
    standin.write("waiting");
    shows(&server, &standin, "needs-input");
    let asked = |viewer: &support::Viewer| viewer.items.iter().any(|item| item.attention);
    viewer.until(asked);
}
