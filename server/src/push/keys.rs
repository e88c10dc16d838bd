//! The key pair by which push services know this server (VAPID, RFC 8292): made on first use, kept in the home
//! with mode 0600. It must never leave the machine; its public half is no secret.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use web_push_native::jwt_simple::algorithms::{ECDSAP256PublicKeyLike as _, ES256KeyPair};

use super::base64;
use crate::home::write_atomic;

/// The file's name in the home.
const FILE: &str = "vapid.key";

/// Reads the key, or makes it.
///
/// # Errors
/// The file can't be read or written, or holds something else. It is not made anew then: every device would
/// have to sign up again.
pub fn open(home: &Path) -> Result<ES256KeyPair> {
    let path = home.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => base64::decode(text.trim())
            .and_then(|bytes| ES256KeyPair::from_bytes(&bytes).map_err(|why| anyhow!("{why}")))
            .with_context(|| {
                format!(
                    "{} is damaged; put it back from a backup, or remove it and switch notifications on again on every device",
                    path.display()
                )
            }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = ES256KeyPair::generate();
            let text = format!("{}\n", base64::encode(&key.to_bytes()));
            write_atomic(&path, text.as_bytes(), 0o600)?;
            Ok(key)
        }
        Err(error) => Err(error).with_context(|| format!("Can't read {}", path.display())),
    }
}

/// The public half as browsers take it: 65 bytes, uncompressed, in base64url.
#[must_use]
pub fn public(key: &ES256KeyPair) -> String {
    base64::encode(&key.public_key().public_key().to_bytes_uncompressed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_key_is_made_once_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let key = public(&open(home.path()).unwrap());
        assert_eq!(key, public(&open(home.path()).unwrap()));
        assert_eq!(base64::decode(&key).unwrap().len(), 65);
        let mode = fs::metadata(home.path().join(FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_key_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "rubbish").unwrap();
        let why = format!("{:#}", open(home.path()).unwrap_err());
        assert!(why.contains("is damaged"), "{why}");
        assert_eq!(
            fs::read_to_string(home.path().join(FILE)).unwrap(),
            "rubbish"
        );
    }
}
