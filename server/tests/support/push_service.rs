//! A push service of the tests' own (RFC 8030): takes messages, checks who signed them (RFC 8292), decrypts
//! them as the browser would (RFC 8291), and answers as the endpoint's path says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use web_push_native::jwt_simple::prelude::{
    ECDSAP256PublicKeyLike as _, ES256PublicKey, NoCustomClaims, VerificationOptions,
};
use web_push_native::p256::SecretKey;
use web_push_native::p256::elliptic_curve::rand_core::{OsRng, RngCore as _};
use web_push_native::p256::elliptic_curve::sec1::ToEncodedPoint as _;

use super::standin::wait;

/// One message as its device would see it.
#[derive(Clone, Debug)]
pub struct Pushed {
    /// The device's name: the last part of its endpoint.
    pub device: String,
    /// When its last byte came.
    pub at: Instant,
    /// Names as they came, lower case.
    pub headers: Vec<(String, String)>,
    /// What was in it.
    pub message: Value,
}

impl Pushed {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The service; its threads end with the test's process.
pub struct PushEndpoint {
    port: u16,
    secret: SecretKey,
    auth: [u8; 16],
    taken: Arc<Mutex<Vec<Pushed>>>,
}

impl PushEndpoint {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut auth = [0; 16];
        OsRng.fill_bytes(&mut auth);
        let service = Self {
            port,
            secret: SecretKey::random(&mut OsRng),
            auth,
            taken: Arc::default(),
        };
        let (secret, taken) = (service.secret.clone(), Arc::clone(&service.taken));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (secret, taken) = (secret.clone(), Arc::clone(&taken));
                let stream = stream.unwrap();
                std::thread::spawn(move || serve(stream, port, &secret, auth, &taken));
            }
        });
        service
    }

    /// What a browser would send to subscribe. `way`: how the service answers for this device: `ok`, `gone`,
    /// `hang`, `refuse`, or a list such as `500,429,201`, one answer a message, the last one for ever.
    pub fn subscription(&self, device: &str, way: &str, choices: &Value) -> Value {
        let public = self.secret.public_key().to_encoded_point(false);
        json!({
            "endpoint": format!("http://127.0.0.1:{}/{way}/{device}", self.port),
            "keys": {
                "p256dh": URL_SAFE_NO_PAD.encode(public.as_bytes()),
                "auth": URL_SAFE_NO_PAD.encode(self.auth),
            },
            "choices": choices,
        })
    }

    /// Everything that a device was sent, whatever the answer was.
    pub fn taken(&self, device: &str) -> Vec<Pushed> {
        let taken = self.taken.lock().unwrap();
        taken
            .iter()
            .filter(|pushed| pushed.device == device)
            .cloned()
            .collect()
    }

    /// Waits until a device was sent so many messages; the last of them.
    pub fn until(&self, device: &str, count: usize) -> Pushed {
        wait(&format!("{device} never had {count} messages"), || {
            let taken = self.taken(device);
            (taken.len() >= count).then(|| taken[count - 1].clone())
        })
    }
}

fn serve(
    stream: TcpStream,
    port: u16,
    secret: &SecretKey,
    auth: [u8; 16],
    taken: &Mutex<Vec<Pushed>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap().to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let mut body = vec![0; header("content-length").parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let at = Instant::now();
        verify(&header("authorization"), port);
        assert_eq!(header("content-encoding"), "aes128gcm");
        assert!(body.len() <= 4096, "{} bytes", body.len());
        let auth = web_push_native::Auth::clone_from_slice(&auth);
        let plain = web_push_native::decrypt(body, secret, &auth).expect("it is for this device");
        let mut parts = path.split('/').skip(1);
        let (way, device) = (parts.next().unwrap(), parts.next().unwrap());
        let before = {
            let mut taken = taken.lock().unwrap();
            let before = taken.iter().filter(|p| p.device == device).count();
            taken.push(Pushed {
                device: device.to_owned(),
                at,
                headers: headers.clone(),
                message: serde_json::from_slice(&plain).unwrap(),
            });
            before
        };
        let answers: Vec<&str> = match way {
            "ok" => vec!["201"],
            "gone" => vec!["410"],
            "refuse" => vec!["403"],
            // Silent until the other end gives up.
            "hang" => {
                drop(reader.read_line(&mut String::new()));
                return;
            }
            list => list.split(',').collect(),
        };
        let status = answers[before.min(answers.len() - 1)];
        let answer =
            format!("HTTP/1.1 {status} as told\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The signature is by the key it names, for this service, and not for longer than a day (RFC 8292 §2).
fn verify(authorization: &str, port: u16) {
    let fields = authorization.strip_prefix("vapid ").expect("vapid");
    let field = |name: &str| {
        fields
            .split(',')
            .find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_else(|| panic!("no {name} in {authorization}"))
    };
    let key = ES256PublicKey::from_bytes(&URL_SAFE_NO_PAD.decode(field("k")).unwrap()).unwrap();
    let audience = format!("http://127.0.0.1:{port}");
    let options = VerificationOptions {
        allowed_audiences: Some([audience].into_iter().collect()),
        ..VerificationOptions::default()
    };
    let claims = key
        .verify_token::<NoCustomClaims>(field("t"), Some(options))
        .expect("signed by the key it names");
    let (until, subject) = (claims.expires_at.unwrap(), claims.subject.unwrap());
    assert!(until.as_secs() <= claims.issued_at.unwrap_or(until).as_secs() + 24 * 3600);
    assert!(
        subject.starts_with("mailto:") || subject.starts_with("https:"),
        "{subject}"
    );
}
