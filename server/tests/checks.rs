//! Who may ask: the checks of Host and Origin, the sign-in, and what a cookie alone is worth (S01, S02).

#![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

mod support;

use serde_json::json;
use support::{TestServer, close_code, say, upgrade};

/// Every route there is, with a method that it takes.
const ROUTES: [(&str, &str); 16] = [
    ("GET", "/"),
    ("GET", "/index.html"),
    ("GET", "/assets/none.js"),
    ("GET", "/api/health"),
    ("POST", "/api/login"),
    ("POST", "/api/login/code"),
    ("GET", "/api/session"),
    ("POST", "/api/logout"),
    ("GET", "/api/items"),
    ("GET", "/api/workspaces"),
    ("GET", "/api/tabs"),
    ("POST", "/api/tabs"),
    ("DELETE", "/api/tabs/t-00000000"),
    ("POST", "/api/tabs/t-00000000/send"),
    ("GET", "/api/check-claude?tab=x"),
    ("POST", "/api/status/hook"),
];

#[test]
fn s02_no_route_answers_to_a_name_that_is_not_ours() {
    let server = TestServer::start();
    let browser = server.browser();
    let token = server.token();
    let port = server.port;
    let names = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        "127.0.0.1".to_owned(),
        "127.0.0.1:1".to_owned(),
        format!("0.0.0.0:{port}"),
        String::new(),
    ];
    for host in &names {
        let origin = format!("http://{host}");
        let headers = [
            ("origin", origin.as_str()),
            ("cookie", browser.cookie.as_str()),
            ("x-pmux-secret", browser.secret.as_str()),
            ("x-pmux-token", token.as_str()),
        ];
        for (method, path) in ROUTES {
            for headers in [&headers[..], &headers[3..]] {
                let answer = server.request_as(host, method, path, headers, b"");
                assert!(
                    matches!(answer.status, 400 | 403 | 421),
                    "{method} {path} as {host:?}: {}",
                    answer.status
                );
                assert!(!answer.text().contains("<html"), "{method} {path}");
                assert!(!answer.text().contains("version"), "{method} {path}");
            }
        }
    }
    // By our own names it answers.
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let answer = server.request_as(&format!("{host}:{port}"), "GET", "/api/health", &[], b"");
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[test]
fn s02_a_proxys_name_is_admitted_when_it_is_named() {
    let dir = support::place();
    let server = TestServer::start_with(dir, &["--allow-host", "mux.example.net"]);
    let answer = server.request_as("mux.example.net", "GET", "/api/health", &[], b"");
    assert_eq!(answer.status, 200);
    let body = json!({ "code": server.code() }).to_string();
    let login = |origin: &str| {
        let headers = [("origin", origin), ("content-type", "application/json")];
        let host = "mux.example.net";
        server.request_as(host, "POST", "/api/login", &headers, body.as_bytes())
    };
    assert_eq!(login("http://mux.example.net").status, 403, "plain http");
    assert_eq!(login("https://mux.example.net:8443").status, 403);
    assert_eq!(login("https://mux.example.net").status, 200);
}

#[test]
fn s01_a_foreign_page_can_neither_write_nor_open_a_socket() {
    let server = TestServer::start();
    let browser = server.browser();
    let other_port = format!("http://127.0.0.1:{}", server.port.wrapping_add(1));
    let origins = [
        Some("http://evil.example"),
        Some("null"),
        Some(other_port.as_str()),
        Some("http://127.0.0.1"),
        None,
    ];
    let secure = format!("https://{}", server.authority());
    for origin in origins.into_iter().chain([Some(secure.as_str())]) {
        for path in ["/api/status", "/api/terminal?tab=t-00000000"] {
            let refused = browser.upgrade(path, origin).err();
            assert_eq!(refused, Some(403), "{path} from {origin:?}");
        }
        let mut headers = vec![
            ("cookie", browser.cookie.as_str()),
            ("x-pmux-secret", browser.secret.as_str()),
            ("content-type", "application/json"),
        ];
        headers.extend(origin.map(|origin| ("origin", origin)));
        for (method, path) in ROUTES {
            if method == "GET" {
                continue;
            }
            let answer = server.request(method, path, &headers, b"{}");
            assert_eq!(answer.status, 403, "{method} {path} from {origin:?}");
        }
    }
    assert_eq!(
        browser.get("/api/tabs").json(),
        json!([]),
        "nothing was made"
    );
}

#[test]
fn s01_a_form_of_another_local_app_is_refused() {
    let server = TestServer::start();
    let browser = server.browser();
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("origin", "http://127.0.0.1:3000"),
        ("content-type", "text/plain"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    for path in ["/api/tabs", "/api/login", "/api/status/hook"] {
        let answer = server.request("POST", path, &headers, b"{}");
        assert_eq!(answer.status, 403, "{path}");
    }
    // Not even with our own origin does a form's body pass for JSON.
    let origin = server.origin();
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("x-pmux-secret", browser.secret.as_str()),
        ("origin", origin.as_str()),
        ("content-type", "text/plain"),
    ];
    let answer = server.request("POST", "/api/tabs", &headers, b"{}");
    assert_eq!(answer.status, 415);
    // Another page can't load our answers as its own script or picture.
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-dest", "script"),
    ];
    for path in ["/api/items", "/api/health", "/"] {
        let answer = server.request("GET", path, &headers, b"");
        assert_eq!(answer.status, 403, "{path}");
    }
    // But a link to the page may be followed.
    let headers = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(server.request("GET", "/", &headers, b"").status, 200);
}

#[test]
fn s01_the_cookie_alone_is_not_enough() {
    let server = TestServer::start();
    let browser = server.browser();
    let cookie = [("cookie", browser.cookie.as_str())];
    for path in ["/api/items", "/api/session", "/api/tabs", "/api/workspaces"] {
        let answer = server.request("GET", path, &cookie, b"");
        assert_eq!(answer.status, 401, "{path}");
    }
    let origin = server.origin();
    let with_origin = [
        ("cookie", browser.cookie.as_str()),
        ("origin", origin.as_str()),
        ("content-type", "application/json"),
    ];
    let answer = server.request("POST", "/api/tabs", &with_origin, b"{}");
    assert_eq!(answer.status, 401);
    // A replayed cookie opens the socket but gets nothing out of it without the secret.
    for hello in [
        purplemux_wire::browser::ClientMsg::Resync,
        purplemux_wire::browser::ClientMsg::Hello {
            secret: "guess".to_owned(),
        },
    ] {
        let mut socket = browser.upgrade("/api/status", Some(&origin)).unwrap();
        say(&mut socket, &hello);
        assert_eq!(close_code(&mut socket), Some(1008));
    }
    // The secret alone is worth nothing either, nor is the cookie at another of our names.
    let secret = [("x-pmux-secret", browser.secret.as_str())];
    assert_eq!(
        server.request("GET", "/api/items", &secret, b"").status,
        401
    );
    let both = [cookie[0], secret[0]];
    let local = format!("localhost:{}", server.port);
    let answer = server.request_as(&local, "GET", "/api/items", &both, b"");
    assert_eq!(answer.status, 401);
    assert_eq!(server.request("GET", "/api/items", &both, b"").status, 200);
    assert_eq!(
        upgrade(&server, "/api/status", Some(&origin), None).err(),
        Some(401)
    );
}

#[test]
fn s01_the_cookie_is_strict_hidden_from_scripts_and_named_by_instance() {
    let server = TestServer::start();
    let origin = server.origin();
    let headers = [
        ("origin", origin.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({ "code": server.code() }).to_string();
    let answer = server.request("POST", "/api/login", &headers, body.as_bytes());
    let cookie = answer.header("set-cookie").unwrap();
    let instance = answer.json()["instance"].as_str().unwrap().to_owned();
    assert_eq!(instance.len(), 8);
    assert!(cookie.starts_with(&format!("pmux_{instance}=")), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
}

#[test]
fn a_code_signs_in_once_and_a_login_can_be_ended() {
    let server = TestServer::start();
    let origin = server.origin();
    let headers = [
        ("origin", origin.as_str()),
        ("content-type", "application/json"),
    ];
    let code = server.code();
    assert_eq!(code.len(), 32, "128 bits");
    let body = json!({ "code": code }).to_string();
    let login = || server.request("POST", "/api/login", &headers, body.as_bytes());
    assert_eq!(login().status, 200);
    let again = login();
    assert_eq!(again.status, 401);
    assert!(
        again.json()["error"]
            .as_str()
            .unwrap()
            .contains("purplemux login")
    );

    let browser = server.browser();
    let session = browser.get("/api/session");
    assert_eq!(session.status, 200);
    assert!(session.json()["login"].is_string());
    assert_eq!(
        browser.write("POST", "/api/logout", &json!(null)).status,
        204
    );
    assert_eq!(browser.get("/api/session").status, 401);
}

#[test]
fn codes_are_minted_on_the_unix_socket_alone_and_never_stand_in_a_file() {
    let server = TestServer::start();
    let browser = server.browser();
    let answer = browser.write("POST", "/api/login/code", &json!({}));
    assert_eq!(answer.status, 404);
    let code = server.code();
    for file in ["purplemux.db", "purplemux.db-wal", "logs/server.log"] {
        let bytes = std::fs::read(server.home().join(file)).unwrap();
        for secret in [&code, &browser.secret, &server.token()] {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{file} holds a secret");
        }
    }
}

#[test]
fn the_unix_socket_is_for_programs_not_for_a_proxied_browser() {
    let server = TestServer::start();
    assert_eq!(server.local("GET", "/api/items", &[], b"").status, 200);
    for header in [
        ("origin", "http://127.0.0.1"),
        ("sec-fetch-site", "same-origin"),
    ] {
        assert_eq!(
            server.local("GET", "/api/items", &[header], b"").status,
            403
        );
    }
}

#[test]
fn many_wrong_codes_have_to_wait() {
    let server = TestServer::start();
    let origin = server.origin();
    let headers = [
        ("origin", origin.as_str()),
        ("content-type", "application/json"),
    ];
    let guess = || {
        let body = br#"{"code":"00000000000000000000000000000000"}"#;
        server.request("POST", "/api/login", &headers, body).status
    };
    let answers: Vec<u16> = (0..25).map(|_| guess()).collect();
    assert_eq!(answers.first(), Some(&401));
    assert_eq!(answers.last(), Some(&429));
    // The owner has the same address as every other user of this machine, and gets in all the same.
    server.browser();
}

#[test]
fn every_answer_carries_the_policies() {
    let server = TestServer::start();
    for (path, status) in [("/", 200), ("/api/items", 401), ("/assets/none.js", 404)] {
        let answer = server.request("GET", path, &[], b"");
        assert_eq!(answer.status, status, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("script-src"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    }
}

#[test]
fn what_is_not_understood_is_refused_in_words() {
    let server = TestServer::start();
    let browser = server.browser();
    let answer = browser.write("POST", "/api/tabs", &json!({ "type": "zeppelin" }));
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"].is_string());
    let answer = browser.write("POST", "/api/tabs", &json!({ "cwd": "/no/such/place" }));
    assert_eq!(answer.status, 400);
    let answer = browser.write("POST", "/api/tabs", &json!({ "workspace": "nowhere" }));
    assert_eq!(answer.status, 404);
    let answer = browser.write("DELETE", "/api/tabs/t-00000000", &json!(null));
    assert_eq!(answer.status, 404);
    let long = json!({ "code": "x".repeat(3 * 1024 * 1024) });
    let answer = browser.write("POST", "/api/login", &long);
    assert_eq!(answer.status, 413);
    assert_eq!(browser.get("/api/none").status, 404);
    assert_eq!(browser.get("/api/terminal").status, 400, "which tab?");
}

#[test]
fn the_page_is_served_compressed_and_remembered() {
    let server = TestServer::start();
    let page = server.request("GET", "/", &[], b"");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let etag = page.header("etag").unwrap().to_owned();
    let again = server.request("GET", "/", &[("if-none-match", &etag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    let deep = server.request("GET", "/workspace/some", &[], b"");
    assert_eq!((deep.status, &deep.body), (200, &page.body));
    let head = server.request("HEAD", "/", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(server.request("GET", "/no.css", &[], b"").status, 404);
    // The script it loads has its content in its name; it comes as small as the browser can read it.
    let text = page.text();
    let script = text
        .split('"')
        .find(|part| part.contains("assets/") && part.ends_with(".js"))
        .expect("the page was built");
    let script = format!("/{}", script.trim_start_matches(['.', '/']));
    let plain = server.request("GET", &script, &[], b"");
    assert_eq!(plain.status, 200);
    let cache = plain.header("cache-control").unwrap();
    assert!(cache.contains("immutable"), "{cache}");
    assert_eq!(plain.header("content-encoding"), None);
    for (takes, gets) in [("gzip, deflate, br", "br"), ("gzip", "gzip")] {
        let small = server.request("GET", &script, &[("accept-encoding", takes)], b"");
        assert_eq!(small.header("content-encoding"), Some(gets));
        assert_eq!(small.header("vary"), Some("accept-encoding"));
        assert!(small.body.len() < plain.body.len());
    }
}
