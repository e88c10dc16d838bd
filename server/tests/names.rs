//! Names that a terminal or a path can't hold as they are: directories that are no UTF-8, titles that are longer
//! than the line, and emoji made of several characters.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands and starts programs"
)]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::json;
use support::{TestServer, purplemux};

#[test]
fn a_directory_that_is_no_utf8_is_refused_and_no_other_is_opened() {
    let server = TestServer::start();
    let dir = server.dir.path();
    let odd = dir.join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    // What the name would become if its bytes were read as text.
    let lookalike = dir.join("caf\u{fffd}");
    fs::create_dir_all(lookalike.join("inside")).unwrap();
    fs::create_dir(odd.join("inside")).unwrap();

    let create = |cwd: &OsStr| {
        let mut command = purplemux(dir);
        command
            .args(["tab", "create", "--json", "--cwd"])
            .arg(cwd)
            .current_dir(&odd);
        command.output().unwrap()
    };
    for cwd in [odd.as_os_str(), OsStr::new("."), OsStr::new("inside")] {
        let refused = create(cwd);
        assert!(!refused.status.success(), "{cwd:?}: {refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("UTF-8"), "{said}");
    }
    let tabs = server.json(&["tab", "list", "--json"]);
    assert_eq!(tabs, json!([]), "nothing was opened anywhere");
    // The one whose name has that letter is opened itself.
    let made = create(lookalike.as_os_str());
    assert!(made.status.success(), "{made:?}");
    let tabs = server.json(&["tab", "list", "--json"]);
    assert_eq!(tabs[0]["cwd"], lookalike.to_str().unwrap());
}

#[test]
fn lists_cut_long_names_and_keep_emoji_whole() {
    let server = TestServer::start();
    let browser = server.browser();
    let long = "a very long name for a tab that nobody can read at once";
    let family = "👩\u{200d}👩\u{200d}👧 family";
    for name in [long, family] {
        let tab = browser.tab();
        let path = format!("/api/tabs/{tab}");
        let renamed = browser.write("PATCH", &path, &json!({ "name": name }));
        assert_eq!(renamed.status, 204);
    }
    for command in [&["status"][..], &["tab", "list"]] {
        let said = server.cli_ok(command);
        assert!(!said.contains(long), "{said}");
        let cut: String = long.chars().take(39).collect();
        assert!(said.contains(&format!("{}…", cut.trim_end())), "{said}");
        assert!(said.contains(family), "{said}");
        let whole = server.cli_ok(&[command, &["--json"]].concat());
        assert!(whole.contains(long), "{whole}");
    }
}
