//! What servers answer, read leniently. Pure.
//!
//! Each answer has several shapes: a location may be a link, a hover a list of
//! marked strings, a symbol nested or flat, a code action a bare command. One odd
//! item loses itself and not the rest.

use std::fmt;
use std::path::PathBuf;

use hostler_actors::host::language_server::text::{Position, Range};
use hostler_actors::host::language_server::uri;
use serde::Serialize;
use serde_json::Value;

/// A place in some file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// The file.
    pub(super) path: PathBuf,
    /// Where in it, in the server's encoding.
    pub(super) start: Position,
}

/// Reads `Location | Location[] | LocationLink[] | null`, without doublets. What
/// names no file (a library inside an archive) is counted and left out.
pub(super) fn locations(answer: &Value) -> (Vec<Location>, usize) {
    let items = match answer {
        Value::Array(items) => items.as_slice(),
        Value::Object(_) => std::slice::from_ref(answer),
        _ => &[],
    };
    let (mut found, mut elsewhere) = (Vec::new(), 0);
    for item in items {
        match location(item) {
            Some(location) if !found.contains(&location) => found.push(location),
            Some(_) => {}
            None => elsewhere += 1,
        }
    }
    (found, elsewhere)
}

fn location(item: &Value) -> Option<Location> {
    let uri = item.get("targetUri").or_else(|| item.get("uri"))?;
    let range = ["targetSelectionRange", "targetRange", "range"];
    let range = range.iter().find_map(|name| item.get(*name));
    let path = uri::to_path(uri.as_str()?)?;
    Some(Location { path, start: range.map(range_of).unwrap_or_default().start })
}

fn range_of(range: &Value) -> Range {
    serde_json::from_value(range.clone()).unwrap_or_default()
}

/// Reads a hover as plain text.
pub(super) fn hover(answer: &Value) -> Option<String> {
    let mut parts = Vec::new();
    gather(answer.get("contents")?, &mut parts);
    let text = parts.join("\n\n");
    let unfenced: Vec<_> =
        text.lines().filter(|line| !line.trim_start().starts_with("```")).collect();
    let text = unfenced.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn gather(contents: &Value, parts: &mut Vec<String>) {
    match contents {
        Value::String(text) => parts.push(text.trim().to_owned()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, parts)),
        Value::Object(object) => {
            if let Some(text) = object.get("value").and_then(Value::as_str) {
                parts.push(text.trim().to_owned());
            }
        }
        _ => {}
    }
}

/// A declared symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Its name.
    pub(super) name: String,
    /// For example `class`.
    pub(super) kind: &'static str,
    /// The symbol that holds it.
    pub(super) container: Option<String>,
    /// How deep it stands.
    pub(super) depth: usize,
    /// The file, where the answer says so.
    pub(super) path: Option<PathBuf>,
    /// Where it stands.
    pub(super) start: Position,
}

/// Reads document symbols, nested or flat, or workspace symbols, in their order.
pub(super) fn symbols(answer: &Value) -> Vec<Symbol> {
    let mut found = Vec::new();
    for item in answer.as_array().into_iter().flatten() {
        symbol(item, None, 0, &mut found);
    }
    found
}

/// Nesting that no code has. A server that sends more is not followed deeper.
const DEEPEST: usize = 32;

fn symbol(item: &Value, container: Option<&str>, depth: usize, found: &mut Vec<Symbol>) {
    let Some(name) = item.get("name").and_then(Value::as_str) else { return };
    let location = item.get("location");
    let place = item
        .get("selectionRange")
        .or_else(|| item.get("range"))
        .or_else(|| location.and_then(|location| location.get("range")));
    let uri = location.and_then(|location| location.get("uri")).and_then(Value::as_str);
    let stated = item.get("containerName").and_then(Value::as_str);
    found.push(Symbol {
        name: name.to_owned(),
        kind: kind(item.get("kind").and_then(Value::as_u64).unwrap_or_default()),
        container: container.or(stated).filter(|name| !name.is_empty()).map(str::to_owned),
        depth,
        path: uri.and_then(uri::to_path),
        start: place.map(range_of).unwrap_or_default().start,
    });
    if depth < DEEPEST {
        for child in item.get("children").and_then(Value::as_array).into_iter().flatten() {
            symbol(child, Some(name), depth + 1, found);
        }
    }
}

fn kind(number: u64) -> &'static str {
    const KINDS: [&str; 26] = [
        "file", "module", "namespace", "package", "class", "method", "property", "field",
        "constructor", "enum", "interface", "function", "variable", "constant", "string", "number",
        "boolean", "array", "object", "key", "null", "enum member", "struct", "event", "operator",
        "type parameter",
    ];
    let at = usize::try_from(number).unwrap_or_default().checked_sub(1);
    at.and_then(|at| KINDS.get(at)).copied().unwrap_or("symbol")
}

/// Something that a server offers to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CodeAction {
    /// What it is called.
    pub(super) title: String,
    /// For example `quickfix`.
    pub(super) kind: Option<String>,
    /// Does the server recommend it.
    pub(super) preferred: bool,
    /// Why it cannot be done now.
    pub(super) disabled: Option<String>,
}

impl fmt::Display for CodeAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        if let Some(kind) = &self.kind {
            write!(f, " ({kind})")?;
        }
        if self.preferred {
            f.write_str(", recommended")?;
        }
        match &self.disabled {
            Some(reason) => write!(f, ", not possible now: {reason}"),
            None => Ok(()),
        }
    }
}

/// Reads `(Command | CodeAction)[]`.
pub(super) fn code_actions(answer: &Value) -> Vec<CodeAction> {
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let read = |item: &Value| {
        Some(CodeAction {
            title: text(item, "title")?,
            kind: text(item, "kind"),
            preferred: item.get("isPreferred").and_then(Value::as_bool).unwrap_or_default(),
            disabled: item.get("disabled").and_then(|disabled| text(disabled, "reason")),
        })
    };
    answer.as_array().into_iter().flatten().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use serde_json::json;

    use super::*;

    fn range(line: u32, character: u32) -> Value {
        json!({ "start": { "line": line, "character": character },
                "end": { "line": line, "character": character + 1 } })
    }

    #[test]
    fn locations_come_in_every_shape() {
        let at = |path: &str, line| Location {
            path: path.into(),
            start: Position { line, character: 2 },
        };
        let one = json!({ "uri": "file:///a.py", "range": range(3, 2) });
        assert_eq!(locations(&one), (vec![at("/a.py", 3)], 0));
        let link = json!({ "targetUri": "file:///b%20c.py", "targetRange": range(1, 0),
                           "targetSelectionRange": range(4, 2) });
        let odd = json!({ "uri": "jdt://x", "range": range(1, 1) });
        let many = json!([one, link, one, odd, 7]);
        assert_eq!(locations(&many), (vec![at("/a.py", 3), at("/b c.py", 4)], 2));
        assert_eq!(locations(&Value::Null), (vec![], 0));
    }

    #[test]
    fn hovers_come_in_every_shape() {
        let cases = [
            (json!({ "contents": { "kind": "plaintext", "value": "def f()\n" } }), Some("def f()")),
            (
                json!({ "contents": { "kind": "markdown", "value": "```python\ndef f()\n```\n---\nDoc." } }),
                Some("def f()\n---\nDoc."),
            ),
            (
                json!({ "contents": ["text", { "language": "c", "value": "int f()" }] }),
                Some("text\n\nint f()"),
            ),
            (json!({ "contents": "" }), None),
            (json!({ "contents": [] }), None),
            (Value::Null, None),
        ];
        for (answer, expected) in cases {
            assert_eq!(hover(&answer).as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn symbols_are_flattened_in_order() {
        let nested = json!([{ "name": "A", "kind": 5, "range": range(0, 0), "selectionRange": range(0, 6),
            "children": [{ "name": "f", "kind": 6, "range": range(1, 0), "selectionRange": range(1, 8) }] },
            { "kind": 5 }]);
        let found = symbols(&nested);
        let seen: Vec<_> =
            found.iter().map(|s| (s.kind, &*s.name, s.depth, s.container.as_deref())).collect();
        assert_eq!(seen, [("class", "A", 0, None), ("method", "f", 1, Some("A"))]);
        assert_eq!(found[1].start, Position { line: 1, character: 8 });
        let flat = json!([{ "name": "g", "kind": 99, "containerName": "m",
                            "location": { "uri": "file:///m.py", "range": range(7, 4) } }]);
        let found = symbols(&flat);
        assert_eq!((found[0].kind, found[0].container.as_deref()), ("symbol", Some("m")));
        assert_eq!(found[0].path, Some("/m.py".into()));
        assert_eq!(symbols(&Value::Null), []);
    }

    #[test]
    fn code_actions_and_commands_are_read_alike() {
        let found = code_actions(&json!([
            { "title": "Import x", "kind": "quickfix", "isPreferred": true },
            { "title": "Extract", "disabled": { "reason": "nothing selected" } },
            { "title": "Run", "command": "x.run" },
            { "command": "no title" },
        ]));
        assert_eq!(found.len(), 3);
        assert!(found[0].preferred && found[0].kind.as_deref() == Some("quickfix"));
        assert_eq!(found[1].disabled.as_deref(), Some("nothing selected"));
    }
}
