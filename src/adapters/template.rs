//! Fills the templates of a definition's `launch` and `attach`. Pure.
//!
//! A text that is nothing but `{name}` becomes the value of that name, of whatever
//! kind; within a longer text it becomes part of it. What has no value is left out, in
//! objects and in lists, so that one template serves with and without it.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values by name.
pub(crate) type Values = BTreeMap<&'static str, Value>;

/// Fills a template.
pub(crate) fn fill(template: &Value, values: &Values) -> Option<Value> {
    match template {
        Value::String(text) => filled(text, values),
        Value::Array(items) => {
            Some(Value::Array(items.iter().filter_map(|item| fill(item, values)).collect()))
        }
        Value::Object(members) => {
            let filled =
                members.iter().filter_map(|(name, of)| Some((name.clone(), fill(of, values)?)));
            Some(Value::Object(filled.collect()))
        }
        other => Some(other.clone()),
    }
}

fn filled(text: &str, values: &Values) -> Option<Value> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = placeholder(rest) {
        let value = values.get(name);
        if before.is_empty() && after.is_empty() && whole.is_empty() {
            return value.cloned();
        }
        whole.push_str(before);
        match value? {
            Value::String(text) => whole.push_str(text),
            other => whole.push_str(&other.to_string()),
        }
        rest = after;
    }
    whole.push_str(rest);
    Some(Value::String(whole))
}

fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_no_value_is_left_out() {
        let template = json!({
            "program": "{program}", "args": "{args}", "python": ["{python}"], "stop": "{stop}",
            "commands": ["set x", "load {etc}/a.py", "at {program}:{line}"], "flag": true,
        });
        let values = Values::from([
            ("program", json!("/p")),
            ("args", json!(["a", "b"])),
            ("line", json!(3)),
        ]);
        assert_eq!(
            fill(&template, &values).unwrap(),
            json!({"program": "/p", "args": ["a", "b"], "python": [], "flag": true,
                "commands": ["set x", "at /p:3"]})
        );
        assert_eq!(fill(&json!("{nothing}"), &values), None);
        assert_eq!(fill(&json!("a { b"), &values), Some(json!("a { b")));
    }
}
