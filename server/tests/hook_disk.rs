//! K02: a hook that finds no server and no room to keep its event: it says nothing, succeeds, and leaves no
//! half of a file.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong, and runs the hook as Claude Code does"
)]

mod support;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use support::{TestServer, end_tmux, purplemux};

/// Fills a disk of its own (a mount that no other process sees), runs the hook, and lists what is there after.
const ON_A_FULL_DISK: &str = r#"
mount -t tmpfs -o size=16k full "$PURPLEMUX_HOME/spool" || exit 90
cat /dev/zero >"$PURPLEMUX_HOME/spool/ballast" 2>/dev/null
"$PURPLEMUX_HOME/status-hook.sh" Stop
code=$?
ls -A "$PURPLEMUX_HOME/spool" >"$HOME/left"
exit $code
"#;

#[test]
fn k02_a_full_disk_is_seen_nowhere_and_leaves_no_half_file() {
    let server = TestServer::start();
    let dir = server.end("-TERM");
    let ours = purplemux(dir.path());
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(ON_A_FULL_DISK)
        .env_clear();
    for (name, value) in ours.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let body = format!(
        "{{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"last_assistant_message\":\"{}\"}}",
        "x".repeat(64 * 1024)
    );
    input.write_all(body.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    let left = fs::read_to_string(dir.path().join("person/left")).unwrap();
    assert_eq!(left, "ballast\n");
    end_tmux(dir.path());
}
