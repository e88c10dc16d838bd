//! Before the first session: whether Claude Code is on the machine at all.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use serde_json::json;
use support::{TestServer, eventually, place, purplemux, start};

/// A PATH with everything that tests need and no Claude Code.
fn path_without_claude(dir: &std::path::Path) -> std::path::PathBuf {
    let bin = dir.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["tmux", "sh", "bash", "sleep", "cat"] {
        let there = std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .find(|path| path.is_file());
        std::os::unix::fs::symlink(there.unwrap(), bin.join(program)).unwrap();
    }
    bin
}

#[test]
fn y06_whether_claude_is_installed_is_watched() {
    let dir = place();
    let bin = path_without_claude(dir.path());
    let person = dir.path().join("person");
    let mut command = purplemux(dir.path());
    command.args(["serve", "--port", "0"]).env("PATH", &bin);
    // Nothing of a real login may be found.
    command.env("PURPLEMUX_SHELL", bin.join("sh"));
    let (child, port) = start(command);
    let server = TestServer::adopt(dir, port, child);
    let browser = server.browser();
    let shown = || browser.get("/api/claude").json();
    let state = || {
        let shown = shown();
        (shown["installed"] == true, shown["started"] == true)
    };
    let home = server.home();

    // (a) Neither program nor directory; what else is needed is there.
    assert_eq!(state(), (false, false));
    assert_eq!(
        browser.get("/api/claude?again=1").json()["installed"],
        false
    );
    assert_eq!(
        shown()["hooks"],
        json!(home.canonicalize().unwrap().join("hooks.json"))
    );
    assert_eq!(shown()["tmux_program"], json!(bin.join("tmux")));
    assert!(
        shown()["tmux"]
            .as_str()
            .is_some_and(|version| version.starts_with('3'))
    );

    // (b) Its installer puts the program into a directory that was not there.
    let installed = person.join(".local/bin");
    std::fs::create_dir_all(&installed).unwrap();
    std::fs::copy("/bin/sleep", installed.join("claude")).unwrap();
    eventually("installed, not started yet", || state() == (true, false));
    assert_eq!(shown()["program"], json!(installed.join("claude")));
    let tab = browser.tab();
    let checked = browser.get(&format!("/api/check-claude?tab={tab}")).json();
    assert_eq!(
        (&checked["installed"], &checked["running"]),
        (&json!(true), &json!(false))
    );

    // (c) Its first start makes the directory, in an old version without `sessions`.
    std::fs::create_dir(person.join(".claude")).unwrap();
    eventually("as usual", || state() == (true, true));
    assert_eq!(shown()["directory"], json!(person.join(".claude")));
}
