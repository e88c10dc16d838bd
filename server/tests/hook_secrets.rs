//! K08: what a hook's environment holds and is nobody's business. Nothing goes to a proxy that it names, and
//! Claude's messaging token is in no request, spool, log, database or crash dump.

#![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]
#![allow(
    clippy::disallowed_methods,
    reason = "it runs the hook as Claude Code does"
)]

mod support;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use support::{PATIENCE, TestServer, eventually, place, purplemux};

const TOKEN: &str = "messaging-token-that-nobody-may-see";
const BODY: &str = r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi"}"#;

/// Takes connections as a proxy would, and answers none of them.
struct Proxy {
    listener: TcpListener,
}

impl Proxy {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let address = format!("http://{}", self.listener.local_addr().unwrap());
        [
            "http_proxy",
            "HTTP_PROXY",
            "https_proxy",
            "HTTPS_PROXY",
            "all_proxy",
            "ALL_PROXY",
        ]
        .into_iter()
        .map(|name| (name, address.clone()))
        .collect()
    }

    fn was_asked(&self) -> bool {
        self.listener.accept().is_ok()
    }
}

/// The hook as Claude Code runs it, with everything in its environment that could leak.
fn hook(dir: &Path, proxy: &Proxy, line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let ours = purplemux(dir);
    let environment = ours
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    command
        .args(["-c", line])
        .env_clear()
        .envs(environment)
        .envs(proxy.environment())
        .env("CLAUDE_CODE_MESSAGING_TOKEN", TOKEN)
        .env("CLAUDE_PID", std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(mut command: Command) {
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(BODY.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}

/// The script's line in our settings; with `by_curl`, as if the program had gone.
fn line(home: &Path, by_curl: bool) -> String {
    let script = home.join("status-hook.sh");
    if !by_curl {
        return format!("'{}' UserPromptSubmit", script.display());
    }
    let text = fs::read_to_string(&script).unwrap();
    let gone = text.replace(env!("CARGO_BIN_EXE_purplemux"), "/nowhere/purplemux");
    assert_ne!(text, gone);
    let copy = home.join("shell/by-curl.sh");
    fs::write(&copy, gone).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
    format!("'{}' UserPromptSubmit", copy.display())
}

/// Every file below the home that holds the token.
fn leaks(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(leaks(&entry.path()));
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let token = TOKEN.as_bytes();
            if bytes.windows(token.len()).any(|part| part == token) {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn k08_nothing_goes_to_a_proxy_and_the_token_is_written_nowhere() {
    let dir = place();
    let proxy = Proxy::new();
    // A server that says everything it can, in an environment with the same proxy.
    let mut command = purplemux(dir.path());
    command
        .envs(proxy.environment())
        .env("PURPLEMUX_LOG", "trace")
        .args(["serve", "--port", "0"]);
    let (child, port) = support::start(command);
    let server = TestServer::adopt(dir, port, child);
    let home = server.home();
    for by_curl in [false, true] {
        run(hook(server.dir.path(), &proxy, &line(&home, by_curl)));
    }
    eventually("the hooks are in the log", || {
        fs::read_to_string(home.join("logs/server.log"))
            .is_ok_and(|log| log.contains("UserPromptSubmit") || log.contains("hook"))
    });
    let dir = server.end("-TERM");
    for by_curl in [false, true] {
        run(hook(dir.path(), &proxy, &line(&home, by_curl)));
    }
    let spooled = fs::read_dir(home.join("spool")).unwrap().count();
    assert!(spooled >= 1, "the one without curl is kept");
    assert_eq!(leaks(&home), Vec::<PathBuf>::new());
    assert!(!proxy.was_asked());
    support::end_tmux(dir.path());
}

/// Everything that is sent to a listener, until something whole has come.
fn first_request(mut stream: impl std::io::Read + std::io::Write) -> String {
    let mut request = Vec::new();
    let mut block = [0_u8; 4096];
    while !String::from_utf8_lossy(&request).contains(BODY) {
        let n = stream.read(&mut block).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&request));
        request.extend_from_slice(&block[..n]);
    }
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    String::from_utf8(request).unwrap()
}

#[test]
fn k08_the_request_itself_holds_our_headers_and_claude_s_payload_and_nothing_more() {
    let server = TestServer::start();
    let home = server.home();
    let lines = [line(&home, false), line(&home, true)];
    let dir = server.end("-TERM");
    let proxy = Proxy::new();
    let socket = home.join("purplemux.sock");
    if socket.exists() {
        fs::remove_file(&socket).unwrap();
    }
    let unix = UnixListener::bind(&socket).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::write(
        home.join("port"),
        format!("{}\n", tcp.local_addr().unwrap().port()),
    )
    .unwrap();
    let receive: [JoinHandle<String>; 2] = [
        std::thread::spawn(move || first_request(unix.accept().unwrap().0)),
        std::thread::spawn(move || first_request(tcp.accept().unwrap().0)),
    ];
    for (line, receiver) in lines.iter().zip(receive) {
        // On a loaded machine a call may find its time over before it was answered.
        let until = Instant::now() + PATIENCE;
        while !receiver.is_finished() {
            assert!(Instant::now() < until, "nothing came");
            run(hook(dir.path(), &proxy, line));
        }
        let request = receiver.join().unwrap();
        assert!(
            request.contains("x-pmux-event: UserPromptSubmit"),
            "{request}"
        );
        assert!(!request.contains(TOKEN), "{request}");
        assert!(request.ends_with(BODY), "{request}");
        let head = request.split("\r\n\r\n").next().unwrap();
        for header in head.lines().skip(1) {
            let name = header.split(':').next().unwrap().to_ascii_lowercase();
            let known = [
                "host",
                "connection",
                "content-type",
                "content-length",
                "user-agent",
                "accept",
            ];
            assert!(
                name.starts_with("x-pmux-") || known.contains(&name.as_str()),
                "{header}"
            );
        }
    }
    assert!(!proxy.was_asked());
    support::end_tmux(dir.path());
}

/// Ends a process as a fault in it would; whether the kernel wrote its memory down.
fn dumped(mut child: Child) -> bool {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(6));
    status.core_dumped()
}

/// Whether the hook is seen waiting for its payload before it gives up.
fn eventually_waits(pid: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        if read("comm").trim() == "purplemux" && read("stat").contains(") S ") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn k08_a_hook_that_crashes_leaves_no_dump() {
    let dir = place();
    let proxy = Proxy::new();
    let program = env!("CARGO_BIN_EXE_purplemux");
    let limit = "ulimit -c unlimited; cd \"$HOME\"; exec";
    let ours = format!("{limit} '{program}' hook Stop");
    // It waits half a second for its payload, and has said by then that it is not to be dumped.
    let until = Instant::now() + PATIENCE;
    let waiting = loop {
        assert!(Instant::now() < until, "never seen waiting");
        let mut child = hook(dir.path(), &proxy, &ours).spawn().unwrap();
        if eventually_waits(child.id()) {
            break child;
        }
        child.wait().unwrap();
    };
    assert!(!dumped(waiting));
    // Where a dump is made at all, another program is dumped: the test can fail.
    let mut other = hook(dir.path(), &proxy, &format!("{limit} sleep 60"));
    let other = other.spawn().unwrap();
    eventually("another program runs", || {
        fs::read_to_string(format!("/proc/{}/comm", other.id()))
            .is_ok_and(|name| name.trim() == "sleep")
    });
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let other_dumped = dumped(other);
    assert!(
        other_dumped || pattern.starts_with('|') || pattern.starts_with('/'),
        "this machine makes no dumps: {pattern}"
    );
}
