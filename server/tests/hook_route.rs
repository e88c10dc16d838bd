//! The route that hooks post to: what it takes and what it refuses. What a hook then means is tested where
//! it is decided.

#![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

mod support;

use support::{Answer, TestServer};

const PATH: &str = "/api/status/hook";
const STOP: &[u8] = br#"{"event":"stop","session":"t-00000000"}"#;

fn post(server: &TestServer, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    server.request("POST", PATH, headers, body)
}

#[test]
fn it_takes_the_minimal_body_and_a_full_hook_over_both_sockets() {
    let server = TestServer::start();
    let token = server.token();
    let minimal = [("x-pmux-token", token.as_str())];
    assert_eq!(post(&server, &minimal, STOP).status, 204);
    assert_eq!(server.local("POST", PATH, &minimal, STOP).status, 204);
    let full = [
        ("x-pmux-token", token.as_str()),
        ("x-pmux-event", "UserPromptSubmit"),
        ("x-pmux-pid", "1"),
        ("x-pmux-start", "1"),
        ("x-pmux-id", "abc"),
    ];
    let body = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi"}"#;
    assert_eq!(post(&server, &full, body).status, 204);
    assert_eq!(server.local("POST", PATH, &full, body).status, 204);
}

#[test]
fn it_refuses_a_wrong_token_a_cookie_and_a_foreign_origin() {
    let server = TestServer::start();
    let token = server.token();
    let right = ("x-pmux-token", token.as_str());
    assert_eq!(post(&server, &[], STOP).status, 401);
    assert_eq!(
        post(&server, &[("x-pmux-token", "wrong")], STOP).status,
        401
    );
    assert_eq!(server.local("POST", PATH, &[], STOP).status, 401);
    let cookie = ("cookie", "anything=1");
    assert_eq!(post(&server, &[right, cookie], STOP).status, 403);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:3000"] {
        assert_eq!(
            post(&server, &[right, ("origin", origin)], STOP).status,
            403
        );
    }
}

#[test]
fn its_token_opens_nothing_else() {
    let server = TestServer::start();
    let token = server.token();
    let headers = [
        ("x-pmux-token", token.as_str()),
        ("x-pmux-secret", token.as_str()),
    ];
    for path in ["/api/items", "/api/tabs", "/api/session"] {
        assert_eq!(
            server.request("GET", path, &headers, b"").status,
            401,
            "{path}"
        );
    }
    let answer = server.request("POST", "/api/tabs", &headers, b"{}");
    assert_eq!(answer.status, 403);
}

#[test]
fn what_is_no_hook_is_refused_in_words_and_the_server_goes_on() {
    let server = TestServer::start();
    let token = server.token();
    let right = [("x-pmux-token", token.as_str())];
    for body in [&b""[..], b"{", b"[]", b"\xff\xfe", b"{\"event\":7}"] {
        let answer = post(&server, &right, body);
        assert_eq!(answer.status, 400, "{body:?}");
        assert!(answer.json()["error"].is_string());
    }
    assert_eq!(post(&server, &right, STOP).status, 204);
}

#[test]
fn a_body_over_a_mebibyte_is_left_out_and_the_event_counts() {
    let server = TestServer::start();
    let token = server.token();
    let headers = [
        ("x-pmux-token", token.as_str()),
        ("x-pmux-event", "Stop"),
        ("x-pmux-id", "big"),
    ];
    let body = vec![b' '; 2 * 1024 * 1024];
    assert_eq!(post(&server, &headers, &body).status, 204);
}
