//! Vendors' JSON read field by field: one field of a new shape loses that field, never the whole object.
//!
//! Nested values stay raw until asked for, so that depth and size of what nobody reads cost a scan and no
//! memory. Must never fail for what a field holds; only for what is no JSON object at all.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// One JSON object, its values unread.
#[derive(Default)]
pub(crate) struct Object<'a>(BTreeMap<Text, &'a RawValue>);

impl<'a> Object<'a> {
    /// Reads one whole object; of a key that comes twice the last value counts.
    pub(crate) fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json).map(Self)
    }

    /// The value as it was written.
    pub(crate) fn raw(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(|value| value.get())
    }

    /// A string. A lone surrogate in it becomes the replacement character.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        text(self.raw(key)?)
    }

    /// A number or boolean.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_str(self.raw(key)?).ok()
    }

    /// `true`, and nothing else.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.raw(key) == Some("true")
    }

    /// An object inside.
    pub(crate) fn object(&self, key: &str) -> Option<Object<'a>> {
        Object::parse(self.raw(key)?).ok()
    }

    /// The values of a list inside, unread.
    pub(crate) fn list(&self, key: &str) -> Option<Vec<&'a str>> {
        let values: Vec<&'a RawValue> = serde_json::from_str(self.raw(key)?).ok()?;
        Some(values.into_iter().map(RawValue::get).collect())
    }
}

/// A JSON string's text, or nothing if the value is no string.
pub(crate) fn text(json: &str) -> Option<String> {
    serde_json::from_str::<Text>(json).ok().map(|text| text.0)
}

/// Bytes as text; what is no UTF-8 becomes the replacement character.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A string that forgives lone surrogates: JavaScript writes them as `\ud83d`, and Rust's `String` refuses.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Text(String);

impl std::borrow::Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_field_loses_itself_alone() {
        let object = Object::parse(r#"{"a":"x","b":7,"c":{"d":true},"e":[1,"two"],"f":"\ud83d!"}"#)
            .expect("an object");
        assert_eq!(object.text("a").as_deref(), Some("x"));
        assert_eq!(object.text("b"), None);
        assert_eq!(object.get::<u32>("b"), Some(7));
        assert_eq!(object.get::<u32>("a"), None);
        assert!(object.object("c").expect("inside").flag("d"));
        assert!(!object.flag("d"));
        assert_eq!(object.list("e"), Some(vec!["1", "\"two\""]));
        let surrogate = object.text("f").expect("text");
        assert!(surrogate.starts_with('\u{fffd}') && surrogate.ends_with('!'));
    }

    #[test]
    fn a_lone_surrogate_in_a_key_is_no_reason_to_lose_the_rest() {
        let object = Object::parse(r#"{"\ud83d":1,"a":2}"#).expect("an object");
        assert_eq!(object.get::<u8>("a"), Some(2));
    }

    #[test]
    fn depth_that_nobody_reads_does_no_harm() {
        let deep = format!(
            r#"{{"deep":{}{},"event":"Stop"}}"#,
            "[".repeat(200_000),
            "]".repeat(200_000)
        );
        let object = Object::parse(&deep).expect("an object");
        assert_eq!(object.text("event").as_deref(), Some("Stop"));
        assert!(object.get::<serde_json::Value>("deep").is_none());
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for json in ["", "null", "[]", "\"x\"", "{", "{\"a\":}", "{} {}"] {
            assert!(Object::parse(json).is_err(), "{json}");
        }
    }
}
