//! Yes and No on a notification: on which it stands, and what proves that a press is of a notification that was sent.
//!
//! A service worker has no secret to show (that lies where only pages reach), so each notification carries a seal over
//! exactly what its buttons answer, for exactly this login. It allows no more than these two answers to this one dialog;
//! everything else is the gate's to check, as for any answer ([`crate::answer`]).

use hmac::{Hmac, Mac as _};
use purplemux_wire::browser::{AskKind, CardOption, Item};
use purplemux_wire::push::Buttons;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::base64;
use super::devices::{Choices, Shows};
use super::message::Content;

/// Tools whose notification does not show what they would change.
const UNSEEN: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// What the buttons of one notification answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialog {
    /// The row.
    pub item: String,
    /// The ask.
    pub ask: u64,
    /// The card's reading.
    pub reading: String,
    /// Place of "Yes" among the card's options.
    pub yes: u32,
    /// Place of "No".
    pub no: u32,
}

/// Makes the seals of one run of the server.
pub struct Sealer([u8; 32]);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

impl Sealer {
    /// One with a key of its own.
    #[must_use]
    pub fn fresh() -> Self {
        Self(rand::random())
    }

    /// Over what is said of this login's dialog.
    fn mac(&self, login: &str, dialog: &Dialog) -> Hmac<Sha256> {
        let said = serde_json::json!([login, dialog]).to_string();
        let mac = Hmac::new_from_slice(&self.0).expect("it takes keys of every length");
        mac.chain_update(said)
    }

    fn seal(&self, login: &str, dialog: &Dialog) -> String {
        base64::encode(&self.mac(login, dialog).finalize().into_bytes())
    }

    /// The buttons of a notification to this login, if it is to have any.
    #[must_use]
    pub fn buttons(
        &self,
        login: &str,
        item: &Item,
        content: &Content,
        choices: &Choices,
    ) -> Option<Buttons> {
        let dialog = offered(item, content, choices)?;
        let seal = self.seal(login, &dialog);
        let Dialog {
            ask,
            reading,
            yes,
            no,
            item: _,
        } = dialog;
        Some(Buttons {
            ask,
            reading,
            yes,
            no,
            seal,
        })
    }

    /// Whether this is what was sent to this login.
    #[must_use]
    pub fn holds(&self, login: &str, dialog: &Dialog, seal: &str) -> bool {
        let mac = self.mac(login, dialog);
        base64::decode(seal).is_ok_and(|seal| mac.verify_slice(&seal).is_ok())
    }
}

/// Only where the notification shows all that is allowed, and the dialog asks for nothing but yes or no: whatever allows
/// more than this once is never a button.
fn offered(item: &Item, content: &Content, choices: &Choices) -> Option<Dialog> {
    if !choices.buttons || choices.shows != Shows::Everything {
        return None;
    }
    let ask = item.detail.ask.as_ref()?;
    let card = ask.card.as_ref()?;
    let whole = !content.text.is_empty() && content.whole;
    let plain = ask.kind == AskKind::Permission
        && card.cannot.is_none()
        && card.part.is_none()
        && !card.submit
        && !UNSEEN.contains(&content.tool.as_str());
    if !plain || !whole {
        return None;
    }
    let place = |label: &str| {
        let is = |option: &CardOption| option.label == label && option.checked.is_none();
        let at = card.options.iter().position(is)?;
        u32::try_from(at).ok()
    };
    Some(Dialog {
        item: item.id.clone(),
        ask: ask.id,
        reading: card.reading.clone(),
        yes: place("Yes")?,
        no: place("No")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog() -> Dialog {
        Dialog {
            item: "t-1".to_owned(),
            ask: 7,
            reading: "r".to_owned(),
            yes: 0,
            no: 2,
        }
    }

    #[test]
    fn a02_a_seal_is_of_one_dialog_for_one_login() {
        let sealer = Sealer::fresh();
        let seal = sealer.seal("me", &dialog());
        assert!(sealer.holds("me", &dialog(), &seal));
        assert!(!sealer.holds("you", &dialog(), &seal));
        let others = [
            Dialog { yes: 1, ..dialog() },
            Dialog { ask: 8, ..dialog() },
            Dialog {
                reading: "s".to_owned(),
                ..dialog()
            },
        ];
        for other in others {
            assert!(!sealer.holds("me", &other, &seal), "{other:?}");
        }
        assert!(!sealer.holds("me", &dialog(), ""));
        assert!(!Sealer::fresh().holds("me", &dialog(), &seal));
    }
}
