//! The way of one message to one device: encrypted, signed, posted, tried again. One courier a device, so that
//! a push service that hangs delays no other. Must never hold more than the newest wish for each row.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use purplemux_wire::browser::Item;
use purplemux_wire::push::Buttons;
use purplemux_wire::push::Push;
use purplemux_wire::sentence::{Cause, Sentence};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, watch};
use web_push_native::jwt_simple::algorithms::{ECDSAP256KeyPairLike as _, ES256KeyPair};
use web_push_native::jwt_simple::claims::Claims;
use web_push_native::{Auth, p256::PublicKey};

use super::base64;
use super::buttons::Sealer;
use super::devices::{Address, Choices, Delivery};
use super::message::{self, Content};

use crate::clock;
use crate::hub::Snapshot;

/// How long a push service may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How long it keeps a message for a device that is not there (RFC 8030 §5.2); a day's work is over then.
const KEPT_FOR: Duration = Duration::from_secs(12 * 60 * 60);

/// Waits between attempts; then it is given up.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
];

/// The longest that a push service may ask us to wait (RFC 9110 §10.2.3).
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// What is read of an answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// What all couriers share.
#[derive(Debug)]
pub struct Office {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    key: ES256KeyPair,
    contact: String,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Of the buttons on notifications.
    pub sealer: Sealer,
}

/// How an attempt went.
#[derive(Debug)]
enum Attempt {
    Taken(StatusCode),
    /// The subscription is no more: 404 or 410 (RFC 8030 §7.3).
    Gone(StatusCode),
    /// May go better later.
    Later {
        status: Option<StatusCode>,
        why: Cause,
        after: Option<Duration>,
    },
    /// Will not.
    Never {
        status: Option<StatusCode>,
        why: Cause,
    },
}

impl Office {
    /// `contact`: a URL by which a push service reaches whoever runs this server (RFC 8292 §2.1).
    #[must_use]
    pub fn new(
        key: ES256KeyPair,
        contact: String,
        snapshots: watch::Receiver<Arc<Snapshot>>,
    ) -> Self {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .build();
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            key,
            contact,
            snapshots,
            sealer: Sealer::fresh(),
        }
    }

    /// The signing key's public half.
    #[must_use]
    pub fn public_key(&self) -> String {
        super::keys::public(&self.key)
    }

    fn request(
        &self,
        address: &Address,
        urgent: bool,
        topic: &str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>> {
        let (endpoint, key, auth) = read(address)?;
        let body = web_push_native::encrypt(body, &key, &auth)
            .map_err(|why| anyhow!("can't encrypt: {why}"))?;
        let urgency = if urgent { "high" } else { "normal" };
        // A message that was not fetched yet is replaced by the next about the same row (RFC 8030 §5.4).
        let topic = base64::encode(&Sha256::digest(topic)[..24]);
        let request = Request::post(&endpoint)
            .header(header::AUTHORIZATION, self.authorization(&endpoint)?)
            .header(header::CONTENT_ENCODING, "aes128gcm")
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header("ttl", KEPT_FOR.as_secs())
            .header("urgency", urgency)
            .header("topic", topic)
            .body(Full::new(Bytes::from(body)))?;
        Ok(request)
    }

    /// Says who we are (RFC 8292 §2 and §3). The audience is the endpoint's origin, its port included.
    fn authorization(&self, endpoint: &Uri) -> Result<String> {
        let (Some(scheme), Some(authority)) = (endpoint.scheme_str(), endpoint.authority()) else {
            bail!("endpoint has no origin");
        };
        let claims = Claims::create(KEPT_FOR.into())
            .with_audience(format!("{scheme}://{authority}"))
            .with_subject(&self.contact);
        let token = self
            .key
            .sign(claims)
            .map_err(|why| anyhow!("can't sign: {why}"))?;
        Ok(format!("vapid t={token}, k={}", self.public_key()))
    }

    async fn attempt(&self, request: Request<Full<Bytes>>) -> Attempt {
        let failed = |why: Cause| Attempt::Later {
            status: None,
            why,
            after: None,
        };
        let answer = async {
            let answer = self.client.request(request).await?;
            let (head, body) = answer.into_parts();
            // What it says beyond the status helps whoever reads the log.
            let text = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
                Ok(body) => String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
                Err(_) => String::new(),
            };
            Ok::<_, hyper_util::client::legacy::Error>((head, text))
        };
        let (head, text) = match tokio::time::timeout(ANSWER_WITHIN, answer).await {
            Err(_) => {
                return failed(Cause::PushSilent {
                    seconds: u32::try_from(ANSWER_WITHIN.as_secs()).unwrap_or(u32::MAX),
                });
            }
            Ok(Err(error)) => {
                return failed(Cause::PushUnreachable {
                    detail: format!("{:#}", anyhow::Error::from(error)),
                });
            }
            Ok(Ok(answer)) => answer,
        };
        judge(head.status, &head.headers, &text)
    }

    /// How many need the person now, without a stay that is over but may still be on show.
    fn count(&self, over: Option<(&str, u64)>) -> usize {
        let snapshot = self.snapshots.borrow();
        let needs = |item: &&Arc<Item>| {
            item.attention
                && over.is_none_or(|(row, stay)| item.id != row || item.episode != Some(stay))
        };
        snapshot.items.iter().filter(needs).count()
    }

    fn buttons(&self, login: &str, content: &Content, choices: &Choices) -> Option<Buttons> {
        let snapshot = self.snapshots.borrow();
        let mut items = snapshot.items.iter();
        let item = items.find(|item| item.id == content.row)?;
        self.sealer.buttons(login, item, content, choices)
    }

    /// Whether the stay is still what the row shows.
    fn holds(&self, row: &str, episode: u64) -> bool {
        let snapshot = self.snapshots.borrow();
        snapshot
            .items
            .iter()
            .any(|item| item.id == row && item.episode == Some(episode))
    }
}

fn judge(status: StatusCode, headers: &HeaderMap, text: &str) -> Attempt {
    let said = || Cause::PushAnswered {
        status: status.to_string(),
        text: text.chars().filter(|c| !c.is_control()).take(200).collect(),
    };
    match status {
        _ if status.is_success() => Attempt::Taken(status),
        StatusCode::NOT_FOUND | StatusCode::GONE => Attempt::Gone(status),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            later(status, headers, said())
        }
        _ if status.is_server_error() => later(status, headers, said()),
        _ => Attempt::Never {
            status: Some(status),
            why: said(),
        },
    }
}

fn later(status: StatusCode, headers: &HeaderMap, why: Cause) -> Attempt {
    let after = headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.trim().parse().ok())
        .map(Duration::from_secs);
    Attempt::Later {
        status: Some(status),
        why,
        after: after.map(|after| after.min(RETRY_AFTER_MAX)),
    }
}

/// A subscription as the browser gave it, or what is wrong with it.
///
/// # Errors
/// The endpoint is no https URL (http is taken on loopback alone), or a key has the wrong form.
pub fn read(address: &Address) -> Result<(Uri, PublicKey, Auth)> {
    let endpoint: Uri = address.endpoint.parse().context("endpoint is no URL")?;
    let host = endpoint.host().unwrap_or_default();
    let loopback = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_loopback());
    match endpoint.scheme_str() {
        Some("https") if !host.is_empty() => {}
        Some("http") if loopback => {}
        Some(_) | None => bail!("endpoint must be an https URL"),
    }
    let key = PublicKey::from_sec1_bytes(&base64::decode(&address.p256dh)?)
        .map_err(|_| anyhow!("p256dh is no public key of P-256"))?;
    let auth = base64::decode(&address.auth)?;
    if auth.len() != 16 {
        bail!("auth must have 16 bytes");
    }
    Ok((endpoint, key, Auth::clone_from_slice(&auth)))
}

/// What a row's notification on this device should become.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Show it.
    Show {
        /// Which stay.
        episode: u64,
        /// What it says.
        content: Arc<Content>,
        /// Without sound.
        silent: bool,
    },
    /// Take it away.
    Close {
        /// Of which stay.
        episode: u64,
    },
}

/// What a courier reports.
#[derive(Debug)]
pub struct Report {
    /// How it went.
    pub delivery: Delivery,
    /// The push service does not know the device any more.
    pub gone: bool,
}

/// A device's mailbox.
#[derive(Debug)]
pub struct Courier {
    wishes: Mutex<BTreeMap<String, Wish>>,
    more: Notify,
}

impl Courier {
    /// An empty one.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            wishes: Mutex::default(),
            more: Notify::new(),
        })
    }

    /// Puts a wish in place of an older one about the same row.
    pub fn wish(&self, row: &str, wish: Wish) {
        self.wishes().insert(row.to_owned(), wish);
        self.more.notify_one();
    }

    fn wishes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Wish>> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a wish that is to be sent, delivers it and says how that went.
    pub async fn next(
        &self,
        office: &Office,
        login: &str,
        address: &Address,
        choices: &Choices,
    ) -> Report {
        loop {
            let next = self.wishes().pop_first();
            let Some((row, wish)) = next else {
                self.more.notified().await;
                continue;
            };
            if let Some(report) = self
                .deliver(office, login, (address, choices), &row, &wish)
                .await
            {
                return report;
            }
        }
    }

    /// `None`: nothing needed to be sent any more.
    async fn deliver(
        &self,
        office: &Office,
        login: &str,
        (address, choices): (&Address, &Choices),
        row: &str,
        wish: &Wish,
    ) -> Option<Report> {
        let mut pauses = PAUSES.into_iter();
        let mut tried = None;
        loop {
            let (urgent, bytes) = match wish {
                Wish::Show {
                    episode,
                    content,
                    silent,
                } => {
                    if !office.holds(row, *episode) {
                        return tried;
                    }
                    let buttons = office.buttons(login, content, choices);
                    let count = office.count(None);
                    let payload =
                        message::show(content, *episode, *silent, count, choices, buttons);
                    (!silent, payload.bytes())
                }
                Wish::Close { episode } => {
                    let payload = Push::Close {
                        row,
                        episode: *episode,
                        count: office.count(Some((row, *episode))),
                        lang: &choices.lang,
                    };
                    (false, payload.bytes())
                }
            };
            let attempt = match office.request(address, urgent, row, bytes) {
                Ok(request) => office.attempt(request).await,
                Err(why) => Attempt::Never {
                    status: None,
                    why: Cause::Internal {
                        detail: format!("{why:#}"),
                    },
                },
            };
            let pause = match attempt {
                Attempt::Later { after, .. } => pauses.next().map(|pause| after.unwrap_or(pause)),
                Attempt::Taken(_) | Attempt::Gone(_) | Attempt::Never { .. } => None,
            };
            let report = told(attempt);
            let Some(pause) = pause else {
                return Some(report);
            };
            tried = Some(report);
            clock::passed(pause).await;
            if self.wishes().contains_key(row) {
                // There is something newer to say.
                return tried;
            }
        }
    }
}

fn told(attempt: Attempt) -> Report {
    let (ok, gone, status, why) = match attempt {
        Attempt::Taken(status) => (true, false, Some(status), None),
        Attempt::Gone(status) => (false, true, Some(status), Some(Cause::PushGone)),
        Attempt::Later { status, why, .. } | Attempt::Never { status, why } => {
            (false, false, status, Some(why))
        }
    };
    Report {
        delivery: Delivery {
            at_ms: clock::wall_ms(),
            ok,
            status: status.map(|status| status.as_u16()),
            why: why.as_ref().map(Cause::to_string),
            said: why.map(Sentence::from),
        },
        gone,
    }
}

/// Sends a test message once.
pub async fn test(office: &Office, address: &Address, choices: &Choices) -> Report {
    let payload = Push::Test {
        lang: &choices.lang,
    };
    let attempt = match office.request(address, true, "test", payload.bytes()) {
        Ok(request) => office.attempt(request).await,
        Err(why) => Attempt::Never {
            status: None,
            why: Cause::Internal {
                detail: format!("{why:#}"),
            },
        },
    };
    told(attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(endpoint: &str) -> Address {
        // The receiver's keys of RFC 8291, appendix A.
        Address {
            endpoint: endpoint.to_owned(),
            p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
                .to_owned(),
            auth: "BTBZMqHH6r4Tts7J_aSIgg".to_owned(),
        }
    }

    #[test]
    fn only_https_or_loopback_is_written_to() {
        assert!(read(&address("https://push.example.net/x")).is_ok());
        assert!(read(&address("http://127.0.0.1:9/x")).is_ok());
        for odd in [
            "http://push.example.net/x",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "",
        ] {
            assert!(read(&address(odd)).is_err(), "{odd}");
        }
        let mut short = address("https://push.example.net/x");
        short.auth = "AAAA".to_owned();
        assert!(read(&short).is_err());
    }

    #[test]
    fn answers_are_told_apart() {
        let said = |status: u16, retry: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(retry) = retry {
                headers.insert(header::RETRY_AFTER, retry.parse().unwrap());
            }
            judge(StatusCode::from_u16(status).unwrap(), &headers, "")
        };
        assert!(matches!(said(201, None), Attempt::Taken(_)));
        assert!(matches!(said(404, None), Attempt::Gone(_)));
        assert!(matches!(said(410, None), Attempt::Gone(_)));
        assert!(matches!(said(413, None), Attempt::Never { .. }));
        assert!(matches!(
            said(500, None),
            Attempt::Later { after: None, .. }
        ));
        let Attempt::Later { after, .. } = said(429, Some("7")) else {
            panic!("429 may go better later");
        };
        assert_eq!(after, Some(Duration::from_secs(7)));
        let Attempt::Later { after, .. } = said(503, Some("86400")) else {
            panic!("503 may go better later");
        };
        assert_eq!(after, Some(RETRY_AFTER_MAX));
    }
}
