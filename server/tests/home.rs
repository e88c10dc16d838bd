//! The home and the one server in it: permissions (S07), the lock, the port, starting and stopping.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it starts servers and measures how long they take; a helper fails as the test does"
)]

mod support;

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use support::{TestServer, end_tmux, eventually, place, purplemux, start};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o777
}

#[test]
fn s07_everything_is_private_whatever_the_umask() {
    let dir = place();
    // umask is the shell's builtin; exec keeps it.
    let mut command = purplemux(dir.path());
    let binary = command.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .args(["-c", "umask 000; exec \"$0\" serve --port 0"])
        .arg(binary)
        .stdin(Stdio::null());
    let (mut child, _) = start(shell);
    command.args(["login", "--json"]);
    assert!(command.output().unwrap().status.success());
    let home = dir.path().join("home");
    assert_eq!(mode(&home), 0o700);
    eventually("the home is complete", || home.join("port").exists());
    let mut open = vec![home.clone()];
    let mut seen = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                assert_eq!(mode(&path), 0o700, "{}", path.display());
                open.push(path);
            } else if !kind.is_symlink() {
                let others = mode(&path) & 0o077;
                assert_eq!(others, 0, "{}", path.display());
                seen.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    for name in [
        "cli-token",
        "port",
        "lock",
        "purplemux.db",
        "purplemux.sock",
        "server.log",
    ] {
        assert!(seen.iter().any(|one| one == name), "{name} in {seen:?}");
        // Those that are secrets or data are not even executable for us.
        let path = if name == "server.log" {
            home.join("logs/server.log")
        } else {
            home.join(name)
        };
        assert_eq!(mode(&path), 0o600, "{name}");
    }
    support::end(&mut child);
    end_tmux(dir.path());
}

#[test]
fn s07_a_folder_of_somebody_else_is_refused() {
    let dir = place();
    // As root we can make a folder that is another's; otherwise `/` is one.
    let home = if rustix::process::geteuid().is_root() {
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
        home
    } else {
        "/".into()
    };
    let mut command = purplemux(dir.path());
    command
        .env("PURPLEMUX_HOME", &home)
        .args(["serve", "--port", "0"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("belongs to user"), "{said}");
    assert!(said.contains(&home.display().to_string()), "{said}");
}

#[test]
fn s07_another_user_is_refused_at_the_socket() {
    if !rustix::process::geteuid().is_root() {
        // Only root can become somebody else; the folder's own permissions are tested above.
        return;
    }
    let server = TestServer::start();
    // Even if the folder were open to them.
    let open = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    };
    open(server.dir.path());
    open(&server.home());
    open(&server.home().join("purplemux.sock"));
    let mut command = purplemux(server.dir.path());
    command.uid(65534).gid(65534).args(["login", "--json"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("serves its owner only"), "{said}");
}

#[test]
fn a_second_server_is_refused_and_told_who_is_first() {
    let server = TestServer::start();
    let output = server.cli(&["serve", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&server.pid().to_string()), "{said}");
    assert!(said.contains("home"), "{said}");
    // Removing the file does not help.
    std::fs::remove_file(server.home().join("lock")).unwrap();
    let output = server.cli(&["serve", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(server.request("GET", "/api/health", &[], b"").status, 200);
}

#[test]
fn the_lock_is_free_again_after_kill_9_and_logins_hold() {
    let server = TestServer::start();
    let browser = server.browser();
    // tmux is up then: torn away while it starts, it might be started twice on one socket.
    let tab = browser.tab();
    let (cookie, secret, port) = (browser.cookie.clone(), browser.secret.clone(), server.port);
    let dir = server.end("-KILL");
    let mut command = purplemux(dir.path());
    command.args(["serve", "--port", &port.to_string()]);
    let (child, _) = start(command);
    let server = TestServer::adopt(dir, port, child);
    let headers = [
        ("cookie", cookie.as_str()),
        ("x-pmux-secret", secret.as_str()),
    ];
    assert_eq!(
        server.request("GET", "/api/session", &headers, b"").status,
        200
    );
    assert_eq!(server.json(&["tab", "list", "--json"])[0]["id"], tab);
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = place();
    let mut command = purplemux(dir.path());
    let output = command.args(["serve", "--port", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
}

#[test]
fn plain_http_beyond_this_machine_needs_a_word() {
    let dir = place();
    let mut command = purplemux(dir.path());
    let output = command
        .args(["serve", "--port", "0", "--host", "0.0.0.0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--insecure-http"), "{said}");
}

#[test]
fn without_a_server_the_commands_say_so() {
    let dir = place();
    for arguments in [
        &["status"][..],
        &["login"],
        &["tab", "list"],
        &["workspace", "list"],
    ] {
        let output = purplemux(dir.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("No purplemux server"), "{said}");
    }
    let output = purplemux(dir.path()).arg("frobnicate").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_signal_ends_it_with_order() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut server = TestServer::start();
        let mut viewer = server.browser().status();
        server.signal(signal);
        assert_eq!(support::close_code(&mut viewer.socket), Some(1012));
        let before = Instant::now();
        assert_eq!(server.wait(), Some(0), "{signal}");
        assert!(before.elapsed().as_secs() < 3, "{signal}");
        assert!(!server.home().join("port").exists());
        assert_eq!(server.cli(&["status"]).status.code(), Some(3));
    }
}

#[test]
fn a_damaged_database_is_set_aside_and_said_so() {
    let dir = place();
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("purplemux.db"), [b'x'; 10_000]).unwrap();
    let server = TestServer::start_in(dir);
    let viewer = server.browser().status();
    let notice = viewer
        .notices
        .iter()
        .find(|notice| notice.why.contains("damaged"));
    assert!(notice.is_some(), "{:?}", viewer.notices);
    assert_eq!(
        server.json(&["workspace", "list", "--json"])[0]["name"],
        "main"
    );
}

#[test]
fn a_home_with_a_long_path_works() {
    let dir = place();
    let long = dir.path().join("x".repeat(120));
    let runtime = dir.path().join("run");
    std::fs::create_dir(&runtime).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = purplemux(dir.path());
        command
            .env("PURPLEMUX_HOME", &long)
            .env("XDG_RUNTIME_DIR", &runtime)
            .args(arguments);
        command
    };
    let (mut child, _) = start(command(&["serve", "--port", "0"]));
    let output = command(&["login"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    support::end(&mut child);
    end_tmux(dir.path());
    end_tmux(&runtime);
}
