//! Files that are handed over for a message: only by who is signed in, kept for the owner alone, bounded, and gone
//! whole when they do not come whole.

#![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use support::{Answer, Browser, TestServer, eventually};

/// As the page posts one.
fn post(server: &TestServer, browser: &Browser<'_>, name: &str, body: &[u8]) -> Answer {
    let origin = server.origin();
    let headers = [
        ("origin", origin.as_str()),
        ("cookie", browser.cookie.as_str()),
        ("x-pmux-secret", browser.secret.as_str()),
        ("content-type", "image/png"),
    ];
    let path = format!("/api/files?name={name}");
    server.request("POST", &path, &headers, body)
}

fn left(server: &TestServer) -> usize {
    fs::read_dir(server.home().join("files")).unwrap().count()
}

#[test]
fn a08_a_file_is_kept_for_its_owner_alone_under_a_name_that_means_nothing_else() {
    let server = TestServer::start();
    let browser = server.browser();
    let kept = post(
        &server,
        &browser,
        "%24(rm%20-rf%20~)%2Fa%20b.png",
        b"\x89PNG\0\xff",
    );
    assert_eq!(kept.status, 201, "{}", kept.text());
    let kept = kept.json();
    let path = Path::new(kept["path"].as_str().unwrap());
    assert!(path.starts_with(server.home().join("files")), "{path:?}");
    assert_eq!(path.file_name().unwrap(), "a_b.png");
    assert_eq!(fs::read(path).unwrap(), b"\x89PNG\0\xff");
    assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    for dir in [
        path.parent().unwrap(),
        path.parent().unwrap().parent().unwrap(),
    ] {
        assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o700);
    }
    assert_eq!(kept["bytes"], 6);
}

#[test]
fn nobody_hands_over_a_file_without_a_login() {
    let server = TestServer::start();
    let browser = server.browser();
    let bare = server.request("POST", "/api/files?name=a", &[], b"x");
    assert!(matches!(bare.status, 401 | 403), "{}", bare.status);
    let (origin, cookie) = (server.origin(), browser.cookie.clone());
    let without = [("origin", origin.as_str()), ("cookie", cookie.as_str())];
    let without = server.request("POST", "/api/files?name=a", &without, b"x");
    assert!(matches!(without.status, 401 | 403), "{}", without.status);
    assert_eq!(left(&server), 0);
}

#[test]
fn one_that_is_too_large_or_torn_leaves_nothing() {
    let server = TestServer::start();
    let browser = server.browser();
    let large = vec![7; 40 * 1024 * 1024 + 1];
    let refused = post(&server, &browser, "large.bin", &large);
    assert_eq!(refused.status, 413, "{}", refused.text());
    assert!(
        refused.text().contains("larger than 40 MiB"),
        "{}",
        refused.text()
    );
    assert_eq!(left(&server), 0);

    let mut torn = TcpStream::connect(server.authority()).unwrap();
    write!(
        torn,
        "POST /api/files?name=torn HTTP/1.1\r\nhost: {}\r\norigin: {}\r\ncookie: {}\r\nx-pmux-secret: {}\r\ncontent-length: 1000\r\n\r\nhalf of it",
        server.authority(),
        server.origin(),
        browser.cookie,
        browser.secret,
    )
    .unwrap();
    eventually("it is on its way", || left(&server) == 1);
    torn.shutdown(std::net::Shutdown::Write).unwrap();
    // Whatever is answered to it, or nothing.
    drop(torn.read_to_end(&mut Vec::new()));
    eventually("it is gone", || left(&server) == 0);
}
