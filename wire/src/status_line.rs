//! What Claude Code tells its status line (measured, 2.1.332): model, context, cost, and the limits of the
//! person's plan. It comes by a route of its own, in the shape of a hook named [`EVENT`].
//!
//! Must never fail for a field that is missing or odd: that one is absent. Says nothing about any state.

use purplemux_core::witness::{Limit, StatusLine};
use serde_json::{Value, json};

use crate::json::Object;
use crate::text::{NAME_CHARS_MAX, line};

/// In the place of an event's name.
pub const EVENT: &str = "StatusLine";

/// Claude's names of the limits; a session with an API key has none. How much of one is used is in percent,
/// when it begins anew in unix seconds (both read from the program of 2.1.332).
const LIMITS: [&str; 2] = ["five_hour", "seven_day"];

/// A dollar in the unit of [`StatusLine::cost_micro_usd`].
const MICRO: f64 = 1e6;

pub(crate) fn read(payload: &Object<'_>) -> StatusLine {
    let context = payload.object("context_window").unwrap_or_default();
    let usage = context.object("current_usage");
    // As in the transcript: everything that went in, and the answer.
    let tokens = usage.map(|usage| {
        [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
            "output_tokens",
        ]
        .into_iter()
        .fold(0_u64, |sum, key| {
            sum.saturating_add(usage.get::<u64>(key).unwrap_or(0))
        })
    });
    let cost = payload
        .object("cost")
        .and_then(|cost| cost.get::<f64>("total_cost_usd"));
    let limits = payload.object("rate_limits").unwrap_or_default();
    StatusLine {
        model: payload
            .object("model")
            .and_then(|model| model.text("id"))
            .filter(|id| !id.is_empty())
            .map(|id| line(&id, NAME_CHARS_MAX)),
        context_tokens: tokens.filter(|tokens| *tokens > 0),
        context_window: context
            .get::<u64>("context_window_size")
            .filter(|size| *size > 0),
        cost_micro_usd: cost.and_then(whole),
        limits: LIMITS
            .into_iter()
            .filter_map(|name| {
                let limit = limits.object(name)?;
                let used = limit.get::<f64>("used_percentage")?;
                Some(Limit {
                    name: name.into(),
                    used_pct: (used.is_finite()).then_some(used.clamp(0.0, 100.0) as u8)?,
                    resets_at_ms: limit
                        .get::<i64>("resets_at")
                        .and_then(|seconds| seconds.checked_mul(1000)),
                })
            })
            .collect(),
    }
}

/// A sum of dollars that somebody may really have spent.
fn whole(usd: f64) -> Option<u64> {
    (usd.is_finite() && (0.0..1e9).contains(&usd)).then(|| (usd * MICRO).round() as u64)
}

/// The fields that say this, for an exported run.
pub(crate) fn fields(told: &StatusLine) -> Vec<(&'static str, Value)> {
    let mut context = json!({});
    if let Some(tokens) = told.context_tokens {
        context["current_usage"] = json!({ "input_tokens": tokens });
    }
    if let Some(window) = told.context_window {
        context["context_window_size"] = window.into();
    }
    let mut fields = vec![("context_window", context)];
    if let Some(model) = &told.model {
        fields.push(("model", json!({ "id": &**model })));
    }
    if let Some(cost) = told.cost_micro_usd {
        fields.push(("cost", json!({ "total_cost_usd": cost as f64 / MICRO })));
    }
    if !told.limits.is_empty() {
        let mut limits = json!({});
        for limit in &told.limits {
            limits[&*limit.name] = json!({
                "used_percentage": limit.used_pct,
                "resets_at": limit.resets_at_ms.map(|ms| ms.div_euclid(1000)),
            });
        }
        fields.push(("rate_limits", limits));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> StatusLine {
        read(&Object::parse(json).unwrap())
    }

    /// Recorded run s22, Claude Code 2.1.332.
    const RECORDED: &str = r#"{"session_id":"4beefc58-3298-4492-a2f3-23f623a66356","cwd":"/home/dev/proj","model":{"id":"claude-opus-5-5","display_name":"Opus 5.5"},"version":"2.1.332","cost":{"total_cost_usd":0.0561,"total_duration_ms":4907},"context_window":{"total_input_tokens":13925,"total_output_tokens":20,"context_window_size":1000000,"current_usage":{"input_tokens":13925,"output_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},"used_percentage":1,"remaining_percentage":99},"exceeds_200k_tokens":false}"#;

    #[test]
    fn what_was_recorded_is_understood() {
        let told = of(RECORDED);
        assert_eq!(told.model.as_deref(), Some("claude-opus-5-5"));
        assert_eq!(told.context_tokens, Some(13_945));
        assert_eq!(told.context_window, Some(1_000_000));
        assert_eq!(told.cost_micro_usd, Some(56_100));
        assert!(told.limits.is_empty());
    }

    #[test]
    fn limits_are_kept_and_survive_an_export() {
        let told = of(
            r#"{"model":{"id":"m"},"cost":{"total_cost_usd":1.5},"context_window":{"context_window_size":200000,"current_usage":{"input_tokens":7}},"rate_limits":{"five_hour":{"used_percentage":41.7,"resets_at":1796029168},"seven_day":{"used_percentage":300}}}"#,
        );
        let names: Vec<_> = told
            .limits
            .iter()
            .map(|limit| (&*limit.name, limit.used_pct, limit.resets_at_ms))
            .collect();
        assert_eq!(
            names,
            [
                ("five_hour", 41, Some(1_796_029_168_000)),
                ("seven_day", 100, None)
            ]
        );
        let fields: serde_json::Map<_, _> = fields(&told)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        assert_eq!(of(&Value::from(fields).to_string()), told);
    }

    #[test]
    fn what_is_odd_is_absent() {
        for odd in [
            "{}",
            r#"{"model":7,"cost":[],"context_window":"x","rate_limits":null}"#,
            r#"{"model":{"id":""},"cost":{"total_cost_usd":-1},"context_window":{"context_window_size":0,"current_usage":null},"rate_limits":{"five_hour":{}}}"#,
            r#"{"cost":{"total_cost_usd":1e300},"context_window":{"context_window_size":-5,"current_usage":{"input_tokens":"x"}}}"#,
        ] {
            assert_eq!(of(odd), StatusLine::default(), "{odd}");
        }
    }
}
