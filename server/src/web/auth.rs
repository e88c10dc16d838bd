//! Who may ask: the checks of Host and Origin, the sign-in, and the credentials that every request over
//! TCP carries. Owns the list of logins in memory; the store keeps it.
//!
//! Nothing here ever logs or echoes a code, cookie, secret or token, and none of them is kept in the clear:
//! a copy of the database signs nobody in.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use anyhow::{Result, bail};
use http::{HeaderMap, Uri, header};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use crate::home::random_hex;
use crate::store::{LoginRow, Store};
use crate::{clock, task};

/// How long a login code can be traded, in milliseconds.
pub const CODE_MS_MAX: i64 = 10 * 60 * 1000;

/// Refused attempts that one address has per minute. A code has 128 bits: this guards our time, not it.
const FAILURES_PER_MINUTE: u32 = 20;

/// Addresses remembered for that; beyond it the oldest minute's are forgotten.
const ADDRESSES_MAX: usize = 1024;

/// How exactly it is kept when a login was last used.
const SEEN_EVERY_MS: u64 = 60_000;

/// The header that carries a login's secret.
pub const SECRET_HEADER: &str = "x-pmux-secret";

/// A host with its port, as a Host header or an origin names it; lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    name: String,
    port: Option<u16>,
}

impl Authority {
    /// Reads `name`, `name:port`, `[v6]` or `[v6]:port`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']')?;
                address.parse::<std::net::Ipv6Addr>().ok()?;
                match after.strip_prefix(':') {
                    Some(port) => (&text[..address.len() + 2], Some(port)),
                    None if after.is_empty() => (text, None),
                    None => return None,
                }
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        let plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
        if name.is_empty() || !name.chars().all(plain) {
            return None;
        }
        let port = match port {
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some(port.parse().ok()?),
            Some(_) => return None,
            None => None,
        };
        Some(Self {
            name: name.to_ascii_lowercase(),
            port,
        })
    }

    /// What a login made here is bound to.
    #[must_use]
    pub fn bound(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.name),
            None => self.name.clone(),
        }
    }

    fn is_loopback(&self) -> bool {
        matches!(self.name.as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    fn with_default(&self, port: u16) -> (&str, u16) {
        (&self.name, self.port.unwrap_or(port))
    }
}

/// Scheme, host and port of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    https: bool,
    authority: Authority,
}

impl Origin {
    /// Reads `http://host[:port]` or `https://…`, with nothing after it; `None` for `null` and the rest.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (https, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://")?),
        };
        Some(Self {
            https,
            authority: Authority::parse(rest)?,
        })
    }

    fn port(&self) -> u16 {
        if self.https { 443 } else { 80 }
    }

    fn same(&self, other: &Self) -> bool {
        self.https == other.https
            && self.authority.with_default(self.port())
                == other.authority.with_default(other.port())
    }
}

/// By which names this server may be called.
#[derive(Clone, Debug)]
pub struct Names {
    port: u16,
    proxies: Vec<Authority>,
    public: Option<Origin>,
    insecure_http: bool,
}

impl Names {
    /// `port`: where we listen. `allow_hosts` and `public_url`: as given on the command line.
    ///
    /// # Errors
    /// One of them is not a name or a URL.
    pub fn new(
        port: u16,
        allow_hosts: &[String],
        public_url: Option<&str>,
        insecure_http: bool,
    ) -> Result<Self> {
        let mut proxies = Vec::new();
        for text in allow_hosts {
            match Authority::parse(text) {
                Some(authority) => proxies.push(authority),
                None => bail!(
                    "--allow-host takes a host name such as mux.example.net or mux.example.net:8443, not {text:?}."
                ),
            }
        }
        let public = match public_url {
            None => None,
            Some(url) => match Origin::parse(url.trim_end_matches('/')) {
                Some(origin) => Some(origin),
                None => bail!(
                    "--public-url takes a URL without a path such as https://mux.example.net, not {url:?}."
                ),
            },
        };
        Ok(Self {
            port,
            proxies,
            public,
            insecure_http,
        })
    }

    /// The authority that a request was sent to, if it is one of ours: the only Host header, and the
    /// request line's own authority where it has one. `local`: our end of the connection.
    #[must_use]
    pub fn admit(&self, headers: &HeaderMap, uri: &Uri, local: SocketAddr) -> Option<Authority> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = Authority::parse(hosts.next()?.to_str().ok()?)?;
        if hosts.next().is_some() {
            return None;
        }
        if let Some(inline) = uri.authority()
            && Authority::parse(inline.as_str()).as_ref() != Some(&host)
        {
            return None;
        }
        (self.is_local(&host, local) || self.is_proxy(&host)).then_some(host)
    }

    fn is_local(&self, host: &Authority, local: SocketAddr) -> bool {
        if host.port.unwrap_or(80) != self.port {
            return false;
        }
        // A connection's own address can't be the target of rebinding: no name was resolved for it.
        let ours = match local.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
                Some(ip) => ip.to_string(),
                None => format!("[{ip}]"),
            },
        };
        let loopback = local.ip().to_canonical().is_loopback();
        host.name == ours || (loopback && host.is_loopback())
    }

    fn is_proxy(&self, host: &Authority) -> bool {
        let named = self.proxies.iter().any(|proxy| {
            proxy.name == host.name
                && match (proxy.port, host.port) {
                    (_, None | Some(80 | 443)) => true,
                    (Some(wanted), Some(port)) => wanted == port,
                    (None, Some(port)) => port == self.port,
                }
        });
        named
            || self.public.as_ref().is_some_and(|public| {
                public.authority.with_default(public.port()) == host.with_default(public.port())
            })
    }

    /// Whether a page of this origin may act on us, when it has called us `host`.
    #[must_use]
    pub fn trusts(&self, origin: &Origin, host: &Authority, local: SocketAddr) -> bool {
        if self
            .public
            .as_ref()
            .is_some_and(|public| public.same(origin))
        {
            return true;
        }
        let same_place =
            origin.authority.with_default(origin.port()) == host.with_default(origin.port());
        let right_scheme = if origin.https {
            !self.is_local(host, local)
        } else {
            // Another port of loopback, admitted by name, is the near end of a tunnel.
            self.is_local(host, local) || host.is_loopback() || self.insecure_http
        };
        same_place && right_scheme
    }

    /// Whether browsers reach us only over https, so that the cookie can say so.
    #[must_use]
    pub fn https_only(&self) -> bool {
        self.public.as_ref().is_some_and(|public| public.https)
    }
}

/// What a browser is given once, at sign-in.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The login's id; not secret.
    pub login: String,
    /// Value of the cookie.
    pub cookie: String,
    /// What every hello and every request carries besides.
    pub secret: String,
}

/// Why there is no login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The code was never minted, has been used, or is too old.
    Code,
    /// Too many refused attempts from that address.
    TooMany,
}

/// The logins, and the way to new ones.
#[derive(Debug)]
pub struct Auth {
    store: Store,
    cookie_name: String,
    token_hash: [u8; 32],
    logins: Mutex<HashMap<String, LoginRow>>,
    failures: Mutex<HashMap<IpAddr, (i64, u32)>>,
    /// Counts logins that were ended, so that their open sockets hear of it at once.
    endings: watch::Sender<u64>,
}

impl Auth {
    /// Reads the logins. `token`: what hooks carry. `instance`: names the cookie.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn open(store: Store, instance: &str, token: &str) -> Result<Self> {
        let logins = store.logins().await?;
        Ok(Self {
            store,
            cookie_name: format!("pmux_{instance}"),
            token_hash: hash(token),
            logins: Mutex::new(
                logins
                    .into_iter()
                    .map(|row| (row.id.clone(), row))
                    .collect(),
            ),
            failures: Mutex::new(HashMap::new()),
            endings: watch::Sender::new(0),
        })
    }

    /// Mints a code of 128 bits; returns it with the moment it ends, in unix ms.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn mint_code(&self, now_ms: i64) -> Result<(String, i64)> {
        let code = random_hex::<16>();
        let expires_ms = now_ms + CODE_MS_MAX;
        self.store
            .add_login_code(hash(&code).to_vec(), expires_ms, now_ms)
            .await?;
        Ok((code, expires_ms))
    }

    /// Trades a code for a login bound to `authority`. `name`: what the browser calls itself.
    ///
    /// # Errors
    /// The store can't be written; a refusal is the inner value.
    pub async fn sign_in(
        &self,
        code: &str,
        authority: &str,
        name: &str,
        from: IpAddr,
        now_ms: i64,
    ) -> Result<Result<Granted, Denied>> {
        // A right code is always let through: others of this machine share the owner's address, and must
        // not be able to keep the owner out by guessing.
        let code_hash = hash(code).to_vec();
        if !self.store.use_login_code(code_hash, now_ms).await? {
            if self.is_tired_of(from, now_ms) {
                return Ok(Err(Denied::TooMany));
            }
            self.note_failure(from, now_ms);
            return Ok(Err(Denied::Code));
        }
        let (login, half, secret) = (random_hex::<8>(), random_hex::<32>(), random_hex::<32>());
        let row = LoginRow {
            id: login.clone(),
            authority: authority.to_owned(),
            cookie_hash: hash(&half).to_vec(),
            secret_hash: hash(&secret).to_vec(),
            created_ms: now_ms,
            name: purplemux_wire::text::line(name, purplemux_wire::text::NAME_CHARS_MAX)
                .as_ref()
                .to_owned(),
            seen_ms: 0,
        };
        self.store.add_login(row.clone()).await?;
        self.logins().insert(login.clone(), row);
        Ok(Ok(Granted {
            cookie: format!("{login}.{half}"),
            login,
            secret,
        }))
    }

    /// Ends a login.
    ///
    /// # Errors
    /// The store can't be written; the login is then ended until the next start only.
    pub async fn sign_out(&self, login: &str) -> Result<()> {
        self.logins().remove(login);
        self.endings.send_modify(|ended| *ended += 1);
        self.store.remove_login(login.to_owned()).await
    }

    /// Returns when this login has been ended. Programs of our own user (an empty login) stay signed in.
    pub async fn until_signed_out(&self, login: &str) {
        let mut endings = self.endings.subscribe();
        while login.is_empty() || self.logins().contains_key(login) {
            if endings.changed().await.is_err() {
                // Nobody is left who could end it.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The login that the cookie proves at this authority. Half of what is needed: [`Self::proves`] is the
    /// other half, because browsers send cookies to every port of a host.
    #[must_use]
    pub fn by_cookie(&self, headers: &HeaderMap, authority: &str) -> Option<String> {
        let value = self.cookie(headers)?;
        let (login, half) = value.split_once('.')?;
        let half_hash = hash(half);
        let logins = self.logins();
        let row = logins.get(login)?;
        let right = bool::from(half_hash.ct_eq(row.cookie_hash.as_slice()));
        (right && row.authority == authority).then(|| login.to_owned())
    }

    /// Whether `secret` is this login's.
    #[must_use]
    pub fn proves(&self, login: &str, secret: &str) -> bool {
        let secret_hash = hash(secret);
        let mut logins = self.logins();
        let Some(row) = logins
            .get_mut(login)
            .filter(|row| bool::from(secret_hash.ct_eq(row.secret_hash.as_slice())))
        else {
            return false;
        };
        let now_ms = clock::wall_ms();
        if now_ms.abs_diff(row.seen_ms) >= SEEN_EVERY_MS {
            row.seen_ms = now_ms;
            let (store, id) = (self.store.clone(), row.id.clone());
            task::spawn("login seen", async move {
                if let Err(why) = store.login_seen(id, now_ms).await {
                    tracing::debug!("when a login was used can't be written down: {why:#}");
                }
            });
        }
        true
    }

    /// The logins, the newest first.
    #[must_use]
    pub fn devices(&self) -> Vec<LoginRow> {
        let mut rows: Vec<_> = self.logins().values().cloned().collect();
        rows.sort_by(|a, b| (b.created_ms, &b.id).cmp(&(a.created_ms, &a.id)));
        rows
    }

    /// Whether this is the hooks' token.
    #[must_use]
    pub fn is_token(&self, token: &str) -> bool {
        hash(token).ct_eq(&self.token_hash).into()
    }

    /// The `Set-Cookie` of a login; with `None`, the one that removes it.
    #[must_use]
    pub fn set_cookie(&self, granted: Option<&Granted>, https_only: bool) -> String {
        let secure = if https_only { "; Secure" } else { "" };
        let (value, age) = match granted {
            // 400 days is the longest that browsers keep a cookie.
            Some(granted) => (granted.cookie.as_str(), 400 * 24 * 3600),
            None => ("", 0),
        };
        format!(
            "{}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}",
            self.cookie_name
        )
    }

    fn cookie<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == self.cookie_name)
            .map(|(_, value)| value)
    }

    fn logins(&self) -> std::sync::MutexGuard<'_, HashMap<String, LoginRow>> {
        self.logins
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn is_tired_of(&self, from: IpAddr, now_ms: i64) -> bool {
        let failures = self
            .failures
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        failures.get(&from).is_some_and(|(since_ms, count)| {
            now_ms - since_ms < 60_000 && *count >= FAILURES_PER_MINUTE
        })
    }

    fn note_failure(&self, from: IpAddr, now_ms: i64) {
        let mut failures = self
            .failures
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, (since_ms, _)| now_ms - *since_ms < 60_000);
            if failures.len() >= ADDRESSES_MAX {
                failures.clear();
            }
        }
        let (since_ms, count) = failures.entry(from).or_insert((now_ms, 0));
        if now_ms - *since_ms >= 60_000 {
            (*since_ms, *count) = (now_ms, 0);
        }
        *count += 1;
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &str = "127.0.0.1:8022";

    fn names() -> Names {
        Names::new(8022, &["mux.example.net".to_owned()], None, false).unwrap()
    }

    fn admits(names: &Names, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        names
            .admit(&headers, &Uri::from_static("/"), LOCAL.parse().unwrap())
            .is_some()
    }

    fn trusts(names: &Names, origin: &str, host: &str) -> bool {
        Origin::parse(origin).is_some_and(|origin| {
            names.trusts(
                &origin,
                &Authority::parse(host).unwrap(),
                LOCAL.parse().unwrap(),
            )
        })
    }

    #[test]
    fn s02_only_our_own_names_are_admitted() {
        let names = names();
        for host in [
            "127.0.0.1:8022",
            "localhost:8022",
            "LOCALHOST:8022",
            "[::1]:8022",
            "mux.example.net",
            "mux.example.net:443",
        ] {
            assert!(admits(&names, host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8022",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.2:8022",
            "localhost.evil.example:8022",
            "localhost.:8022",
            "mux.example.net:9999",
            "127.0.0.1:8022@evil.example",
            "[::1",
            "",
        ] {
            assert!(!admits(&names, host), "{host}");
        }
    }

    #[test]
    fn s02_two_hosts_or_an_authority_of_its_own_in_the_request_line_are_refused() {
        let names = names();
        let local = LOCAL.parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, LOCAL.parse().unwrap());
        let inline = Uri::from_static("http://evil.example:8022/");
        assert!(names.admit(&headers, &inline, local).is_none());
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert!(
            names
                .admit(&headers, &Uri::from_static("/"), local)
                .is_none()
        );
        assert!(
            names
                .admit(&HeaderMap::new(), &Uri::from_static("/"), local)
                .is_none()
        );
    }

    #[test]
    fn s01_an_origin_is_scheme_host_and_port() {
        let names = names();
        assert!(trusts(&names, "http://127.0.0.1:8022", LOCAL));
        assert!(trusts(&names, "http://localhost:8022", "localhost:8022"));
        assert!(trusts(&names, "https://mux.example.net", "mux.example.net"));
        for (origin, host) in [
            ("null", LOCAL),
            ("http://127.0.0.1:3000", LOCAL),
            ("http://127.0.0.1", LOCAL),
            ("https://127.0.0.1:8022", LOCAL),
            ("http://localhost:8022", LOCAL),
            ("http://evil.example:8022", LOCAL),
            ("http://mux.example.net", "mux.example.net"),
            ("https://mux.example.net:8443", "mux.example.net"),
            ("https://mux.example.net.evil.example", "mux.example.net"),
            ("file://", LOCAL),
        ] {
            assert!(!trusts(&names, origin, host), "{origin} at {host}");
        }
    }

    #[test]
    fn the_near_end_of_a_tunnel_is_trusted_when_it_is_named() {
        assert!(!admits(&names(), "127.0.0.1:9000"));
        let tunnel = Names::new(8022, &["127.0.0.1:9000".to_owned()], None, false).unwrap();
        assert!(admits(&tunnel, "127.0.0.1:9000"));
        assert!(trusts(&tunnel, "http://127.0.0.1:9000", "127.0.0.1:9000"));
        assert!(!trusts(&tunnel, "http://127.0.0.1:9001", "127.0.0.1:9000"));
    }

    #[test]
    fn a_public_url_is_trusted_behind_a_proxy_that_rewrites_the_host() {
        let names = Names::new(8022, &[], Some("https://mux.example.net/"), false).unwrap();
        assert!(trusts(&names, "https://mux.example.net", LOCAL));
        assert!(admits(&names, "mux.example.net"));
        assert!(!trusts(&names, "http://mux.example.net", LOCAL));
        assert!(Names::new(8022, &[], Some("mux.example.net"), false).is_err());
        assert!(Names::new(8022, &["a b".to_owned()], None, false).is_err());
    }

    async fn auth() -> (tempfile::TempDir, Auth) {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::store::open(&dir.path().join("db")).unwrap();
        let auth = Auth::open(store, "01234567", "token").await.unwrap();
        (dir, auth)
    }

    fn with_cookie(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let cookie = format!("other=1; pmux_01234567={value}");
        headers.insert(header::COOKIE, cookie.parse().unwrap());
        headers
    }

    #[tokio::test]
    async fn s01_cookie_and_secret_are_both_needed_and_hold_at_one_authority() {
        let (_dir, auth) = auth().await;
        let from = "127.0.0.1".parse().unwrap();
        let (code, _) = auth.mint_code(0).await.unwrap();
        assert_eq!(code.len(), 32);
        let granted = auth
            .sign_in(&code, LOCAL, "", from, 1)
            .await
            .unwrap()
            .unwrap();
        let headers = with_cookie(&granted.cookie);
        assert_eq!(auth.by_cookie(&headers, LOCAL), Some(granted.login.clone()));
        assert_eq!(auth.by_cookie(&headers, "localhost:8022"), None);
        assert_eq!(auth.by_cookie(&with_cookie("x.y"), LOCAL), None);
        let forged = format!("{}.{}", granted.login, "0".repeat(64));
        assert_eq!(auth.by_cookie(&with_cookie(&forged), LOCAL), None);
        assert!(auth.proves(&granted.login, &granted.secret));
        assert!(!auth.proves(&granted.login, &granted.cookie));
        let cookie = auth.set_cookie(Some(&granted), false);
        assert!(
            cookie.contains("HttpOnly; SameSite=Strict; Path=/"),
            "{cookie}"
        );
        auth.sign_out(&granted.login).await.unwrap();
        assert_eq!(auth.by_cookie(&headers, LOCAL), None);
    }

    #[tokio::test]
    async fn a_code_is_traded_once_and_within_ten_minutes() {
        let (_dir, auth) = auth().await;
        let from = "127.0.0.1".parse().unwrap();
        let (code, expires_ms) = auth.mint_code(0).await.unwrap();
        assert_eq!(expires_ms, 600_000);
        auth.sign_in(&code, LOCAL, "", from, 0)
            .await
            .unwrap()
            .unwrap();
        let again = auth.sign_in(&code, LOCAL, "", from, 0).await.unwrap();
        assert_eq!(again.unwrap_err(), Denied::Code);
        let (late, _) = auth.mint_code(0).await.unwrap();
        let late = auth.sign_in(&late, LOCAL, "", from, 600_000).await.unwrap();
        assert_eq!(late.unwrap_err(), Denied::Code);
    }

    #[tokio::test]
    async fn an_address_that_guesses_waits_and_another_does_not() {
        let (_dir, auth) = auth().await;
        let (guesser, owner) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        for _ in 0..FAILURES_PER_MINUTE {
            let refused = auth.sign_in("guess", LOCAL, "", guesser, 0).await.unwrap();
            assert_eq!(refused.unwrap_err(), Denied::Code);
        }
        let slowed = auth.sign_in("guess", LOCAL, "", guesser, 0).await.unwrap();
        assert_eq!(slowed.unwrap_err(), Denied::TooMany);
        let other = auth.sign_in("guess", LOCAL, "", owner, 0).await.unwrap();
        assert_eq!(other.unwrap_err(), Denied::Code);
        // Whoever has a code did not guess, wherever they are behind the same address.
        let (code, _) = auth.mint_code(0).await.unwrap();
        auth.sign_in(&code, LOCAL, "", guesser, 0)
            .await
            .unwrap()
            .unwrap();
        let later = auth
            .sign_in("guess", LOCAL, "", guesser, 60_000)
            .await
            .unwrap();
        assert_eq!(later.unwrap_err(), Denied::Code);
    }
}
