//! What is read from bodies, field by field. Pure.
//!
//! Own structs where the vocabulary crate is wrong for real traffic: its ids are
//! unsigned (delve sends -1), and a field that is absent, empty or of another kind
//! fails a whole body there (`breakMode: ""` of delve). Here it costs that field.

use serde_json::Value;

/// A thread, or goroutine, or isolate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its id, as callers name it.
    pub id: i64,
    /// Its name.
    pub name: String,
}

/// A frame as the adapter sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawFrame {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) line: i64,
}

/// A scope as the adapter sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawScope {
    pub(super) name: String,
    pub(super) reference: i64,
    pub(super) expensive: bool,
}

/// A variable as the adapter sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawVariable {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) kind: String,
    pub(super) reference: i64,
}

/// What the adapter says of one breakpoint. delve gives none of it but `verified`
/// for one that it refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) id: Option<i64>,
    pub(super) verified: bool,
    pub(super) line: Option<i64>,
    pub(super) message: Option<String>,
}

/// A `stopped` event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) reason: String,
    pub(super) description: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thread: Option<i64>,
    pub(super) hit: Vec<i64>,
}

/// Reads a whole number, also one in quotes.
pub(super) fn int(of: &Value, key: &str) -> Option<i64> {
    match of.get(key)? {
        Value::Number(number) => number.as_i64(),
        Value::String(digits) => digits.trim().parse().ok(),
        _ => None,
    }
}

/// Reads a text that is not empty.
pub(super) fn text(of: &Value, key: &str) -> Option<String> {
    of.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Reads a yes or no; anything else is a no.
pub(super) fn truth(of: &Value, key: &str) -> bool {
    of.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Reads a list; one that is absent has nothing in it.
pub(super) fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Reads the answer to `threads`.
pub(super) fn threads(body: &Value) -> Vec<Thread> {
    let read = |of: &Value| {
        Some(Thread { id: int(of, "id")?, name: text(of, "name").unwrap_or_default() })
    };
    list(body, "threads").filter_map(read).collect()
}

/// Reads the answer to `stackTrace`.
pub(super) fn frames(body: &Value) -> Vec<RawFrame> {
    let read = |of: &Value| {
        Some(RawFrame {
            id: int(of, "id")?,
            name: text(of, "name").unwrap_or_else(|| "?".to_owned()),
            path: of.get("source").and_then(|source| text(source, "path")),
            line: int(of, "line").unwrap_or_default(),
        })
    };
    list(body, "stackFrames").filter_map(read).collect()
}

/// Reads the answer to `scopes`.
pub(super) fn scopes(body: &Value) -> Vec<RawScope> {
    let read = |of: &Value| {
        Some(RawScope {
            name: text(of, "name").unwrap_or_else(|| "?".to_owned()),
            reference: int(of, "variablesReference")?,
            expensive: truth(of, "expensive"),
        })
    };
    list(body, "scopes").filter_map(read).collect()
}

/// Reads the answer to `variables`.
pub(super) fn variables(body: &Value) -> Vec<RawVariable> {
    list(body, "variables").map(variable).collect()
}

fn variable(of: &Value) -> RawVariable {
    RawVariable {
        name: text(of, "name").unwrap_or_default(),
        value: text(of, "value").unwrap_or_default(),
        kind: text(of, "type").unwrap_or_default(),
        reference: int(of, "variablesReference").unwrap_or_default(),
    }
}

/// Reads the answer to `evaluate`.
pub(super) fn evaluated(expression: &str, body: &Value) -> RawVariable {
    RawVariable {
        name: expression.to_owned(),
        value: text(body, "result").unwrap_or_default(),
        ..variable(body)
    }
}

/// Reads the answer to `setBreakpoints`, in the order of the request: what was
/// refused may have no id to find it by.
pub(super) fn all_placed(body: &Value) -> Vec<Placed> {
    list(body, "breakpoints").map(placed).collect()
}

/// Reads one breakpoint.
pub(super) fn placed(of: &Value) -> Placed {
    Placed {
        id: int(of, "id"),
        verified: truth(of, "verified"),
        line: int(of, "line").filter(|line| *line > 0),
        message: text(of, "message"),
    }
}

/// Reads a `stopped` event.
pub(super) fn stopped(body: &Value) -> Stopped {
    Stopped {
        reason: text(body, "reason").unwrap_or_else(|| "unknown".to_owned()),
        description: text(body, "description"),
        text: text(body, "text"),
        thread: int(body, "threadId"),
        hit: list(body, "hitBreakpointIds").filter_map(Value::as_i64).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn odd_fields_cost_themselves_only() {
        let body =
            json!({"threads": [{"id": -1, "name": "Current"}, {"name": "no id"}, {"id": "7"}, 3]});
        let found: Vec<_> = threads(&body).into_iter().map(|thread| thread.id).collect();
        assert_eq!(found, [-1, 7]);
        let body = json!({"stackFrames": [
            {"id": 2, "name": "f", "line": 3, "source": {"path": "/a.py"}},
            {"id": 3, "source": null, "line": null},
        ]});
        let found = frames(&body);
        assert_eq!(found[0].path.as_deref(), Some("/a.py"));
        assert_eq!((found[1].name.as_str(), found[1].line), ("?", 0));
        assert!(frames(&json!(null)).is_empty() && scopes(&json!({"scopes": 4})).is_empty());
        let body = json!({"reason": "breakpoint", "hitBreakpointIds": [-1, "x"], "threadId": null});
        let found = stopped(&body);
        assert_eq!((found.thread, found.hit), (None, vec![-1]));
    }

    #[test]
    fn refused_breakpoints_keep_their_place() {
        let body = json!({"breakpoints": [
            {"verified": false, "message": "no code"}, {"id": 4, "verified": true, "line": 8},
        ]});
        let found = all_placed(&body);
        assert_eq!(found[0].message.as_deref(), Some("no code"));
        assert_eq!((found[1].id, found[1].line), (Some(4), Some(8)));
    }
}
