//! Time spans as people write them: `"250ms"`, `"30s"`, `"5m"`, `"1h"`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// Reads a span.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let millis: u64 = match unit.trim() {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?))
}

/// For `#[serde(deserialize_with)]`.
pub(crate) fn required<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).ok_or_else(|| {
        de::Error::invalid_value(
            de::Unexpected::Str(&text),
            &"a time span such as \"250ms\", \"30s\" or \"5m\"",
        )
    })
}

/// The same for a span that may be missing.
pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    required(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        let millis = |text| parse(text).map(|span| span.as_millis());
        assert_eq!(millis("250ms"), Some(250));
        assert_eq!(millis("30s"), Some(30_000));
        assert_eq!(millis(" 5 m "), Some(300_000));
        assert_eq!(millis("1h"), Some(3_600_000));
        for bad in ["", "5", "s", "-1s", "1.5s", "5 days", "99999999999999999999h"] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
