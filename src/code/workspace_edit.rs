//! A workspace edit as servers send it, and its text edits put into a text.
//!
//! `documentChanges` win over `changes` where both came. Edits of one place keep the
//! order in which they came, an insertion stands before a replacement, the same
//! replacement twice counts once, and edits that overlap are refused: applied in any
//! order they would make something that nobody meant.

use std::path::PathBuf;

use hostler_actors::host::language_server::text::{Encoding, Lines, Range};
use hostler_actors::host::language_server::uri;
use serde_json::Value;

/// One thing that an edit does, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Edit { path: PathBuf, edits: Vec<TextEdit> },
    Create { path: PathBuf, overwrite: bool, ignore_if_exists: bool },
    Rename { from: PathBuf, to: PathBuf, overwrite: bool, ignore_if_exists: bool },
    Delete { path: PathBuf, ignore_if_missing: bool },
}

/// A piece of text for a range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) text: String,
}

/// A whole edit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkspaceEdit {
    pub(crate) ops: Vec<Op>,
    /// What the server wants somebody to look at before.
    pub(crate) to_confirm: Vec<String>,
}

/// Why an edit cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadEdit {
    #[error("it has an edit in `{0}`, which is no file of the disk")]
    NoFile(String),
    #[error("it has something that is neither an edit nor a create, rename or delete: `{0}`")]
    Unknown(String),
    #[error("it has an edit with placeholders to be filled in by an editor")]
    Snippet,
    #[error("it has edits that overlap, at lines {first} and {second}")]
    Overlap { first: u32, second: u32 },
    #[error("it has an edit at line {line} of a text with {lines}: the server knows another text")]
    BeyondEnd { line: u32, lines: usize },
}

/// Reads an edit.
pub(crate) fn read(edit: &Value) -> Result<WorkspaceEdit, BadEdit> {
    let mut read = WorkspaceEdit::default();
    let annotations = edit.get("changeAnnotations");
    if let Some(changes) = edit.get("documentChanges").and_then(Value::as_array) {
        for change in changes {
            read.ops.push(op(change)?);
            confirmations(change, annotations, &mut read.to_confirm);
        }
    } else if let Some(changes) = edit.get("changes").and_then(Value::as_object) {
        for (file, edits) in changes {
            read.ops.push(Op::Edit { path: path(Some(file))?, edits: text_edits(edits)? });
            confirmations(edits, annotations, &mut read.to_confirm);
        }
    }
    Ok(read)
}

fn path(uri: Option<&str>) -> Result<PathBuf, BadEdit> {
    let uri = uri.unwrap_or_default();
    uri::to_path(uri).ok_or_else(|| BadEdit::NoFile(uri.to_owned()))
}

fn op(change: &Value) -> Result<Op, BadEdit> {
    let text = |name: &str| change.get(name).and_then(Value::as_str);
    let option = |name: &str| {
        let option = change.get("options").and_then(|options| options.get(name));
        option.and_then(Value::as_bool).unwrap_or_default()
    };
    Ok(match text("kind") {
        None => {
            let document = change.get("textDocument");
            let uri = document.and_then(|document| document.get("uri")).and_then(Value::as_str);
            Op::Edit {
                path: path(uri)?,
                edits: text_edits(change.get("edits").unwrap_or(&Value::Null))?,
            }
        }
        Some("create") => Op::Create {
            path: path(text("uri"))?,
            overwrite: option("overwrite"),
            ignore_if_exists: option("ignoreIfExists"),
        },
        Some("rename") => Op::Rename {
            from: path(text("oldUri"))?,
            to: path(text("newUri"))?,
            overwrite: option("overwrite"),
            ignore_if_exists: option("ignoreIfExists"),
        },
        Some("delete") => {
            Op::Delete { path: path(text("uri"))?, ignore_if_missing: option("ignoreIfNotExists") }
        }
        Some(other) => return Err(BadEdit::Unknown(other.to_owned())),
    })
}

fn text_edits(edits: &Value) -> Result<Vec<TextEdit>, BadEdit> {
    let mut read = Vec::new();
    for edit in edits.as_array().into_iter().flatten() {
        let snippet = edit.get("snippet").is_some()
            || edit.get("insertTextFormat").and_then(Value::as_u64) == Some(2);
        if snippet {
            return Err(BadEdit::Snippet);
        }
        let range = edit.get("range").and_then(|range| serde_json::from_value(range.clone()).ok());
        let text = edit.get("newText").and_then(Value::as_str);
        let (Some(range), Some(text)) = (range, text) else {
            return Err(BadEdit::Unknown(edit.to_string().chars().take(80).collect()));
        };
        read.push(TextEdit { range, text: text.to_owned() });
    }
    Ok(read)
}

/// Gathers the labels of what is to be looked at before it is applied.
fn confirmations(change: &Value, annotations: Option<&Value>, labels: &mut Vec<String>) {
    let edits = change.get("edits").unwrap_or(change).as_array();
    let items = std::iter::once(change).chain(edits.into_iter().flatten());
    for id in items.filter_map(|item| item.get("annotationId")?.as_str()) {
        let Some(annotation) = annotations.and_then(|all| all.get(id)) else { continue };
        if annotation.get("needsConfirmation").and_then(Value::as_bool) == Some(true) {
            let label = annotation.get("label").and_then(Value::as_str).unwrap_or(id).to_owned();
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
}

/// Puts edits into a text. Their line ends become the text's.
pub(crate) fn applied(
    text: &str,
    edits: &[TextEdit],
    encoding: Encoding,
) -> Result<String, BadEdit> {
    let lines = Lines::new(text);
    let crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let mut places = Vec::new();
    for edit in edits {
        let (start, end) = (edit.range.start, edit.range.end);
        // The line after the last is where an edit may end that takes the last one.
        if let Some(beyond) = [start, end].into_iter().find(|at| at.line as usize > lines.count()) {
            return Err(BadEdit::BeyondEnd { line: beyond.line + 1, lines: lines.count() });
        }
        let range = lines.offset(start, encoding)
            ..lines.offset(end, encoding).max(lines.offset(start, encoding));
        let new = edit.text.replace("\r\n", "\n");
        let new = if crlf { new.replace('\n', "\r\n") } else { new };
        places.push((range, new, start.line + 1));
    }
    // Stable: of several at one place the first one stays the first.
    places.sort_by_key(|(range, _, _)| (range.start, !range.is_empty()));
    places.dedup_by(|next, kept| next.0 == kept.0 && !next.0.is_empty() && next.1 == kept.1);
    let (mut new, mut at, mut last_line) = (String::with_capacity(text.len()), 0, 0);
    for (range, put, line) in places {
        if range.start < at {
            return Err(BadEdit::Overlap { first: last_line, second: line });
        }
        new.push_str(text.get(at..range.start).unwrap_or_default());
        new.push_str(&put);
        (at, last_line) = (range.end, line);
    }
    new.push_str(text.get(at..).unwrap_or_default());
    Ok(new)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

    use serde_json::json;

    use super::*;

    fn range(from: (u32, u32), to: (u32, u32)) -> Value {
        json!({"start": {"line": from.0, "character": from.1},
               "end": {"line": to.0, "character": to.1}})
    }

    fn edit(from: (u32, u32), to: (u32, u32), text: &str) -> Value {
        json!({"range": range(from, to), "newText": text})
    }

    #[expect(clippy::needless_pass_by_value, reason = "written where it is passed")]
    fn put(text: &str, edits: Value) -> Result<String, BadEdit> {
        applied(text, &text_edits(&edits)?, Encoding::Utf16)
    }

    #[test]
    fn text_edits_keep_their_order_and_overlaps_are_refused() {
        let ok = |text: &str, edits: Value, expected: &str| {
            assert_eq!(put(text, edits).unwrap(), expected);
        };
        ok("abc", json!([edit((0, 1), (0, 1), "1"), edit((0, 1), (0, 1), "2")]), "a12bc");
        ok("abc", json!([edit((0, 1), (0, 2), "B"), edit((0, 1), (0, 1), "x")]), "axBc");
        ok("abc", json!([edit((0, 1), (0, 2), "B"), edit((0, 1), (0, 2), "B")]), "aBc");
        ok("abc", json!([edit((0, 0), (0, 1), "A"), edit((0, 1), (0, 2), "B")]), "ABc");
        ok("\u{1f600}a\r\nb", json!([edit((0, 2), (0, 3), "x\ny")]), "\u{1f600}x\r\ny\r\nb");
        ok("a\n", json!([edit((0, 0), (1, 0), "")]), "");
        assert_eq!(
            put("abc", json!([edit((0, 0), (0, 2), "x"), edit((0, 1), (0, 3), "y")])),
            Err(BadEdit::Overlap { first: 1, second: 1 })
        );
        assert!(matches!(
            put("a", json!([edit((7, 0), (7, 1), "x")])),
            Err(BadEdit::BeyondEnd { .. })
        ));
        let mut snippet = edit((0, 0), (0, 0), "${1:x}");
        snippet["insertTextFormat"] = json!(2);
        assert_eq!(put("a", json!([snippet])), Err(BadEdit::Snippet));
    }

    #[test]
    fn edits_come_in_both_forms_with_their_operations() {
        let both = json!({
            "changes": {"file:///x.py": [edit((0, 0), (0, 1), "no")]},
            "documentChanges": [
                {"textDocument": {"uri": "file:///a%20b.py", "version": null},
                 "edits": [{"range": range((0, 0), (0, 1)), "newText": "b", "annotationId": "1"}]},
                {"kind": "rename", "oldUri": "file:///a.py", "newUri": "file:///b.py",
                 "options": {"overwrite": true}},
                {"kind": "create", "uri": "file:///c.py"},
                {"kind": "delete", "uri": "file:///d.py", "options": {"ignoreIfNotExists": true}},
            ],
            "changeAnnotations": {"1": {"label": "Comments", "needsConfirmation": true}},
        });
        let read_both = read(&both).unwrap();
        assert_eq!(read_both.ops.len(), 4);
        assert!(matches!(&read_both.ops[0], Op::Edit { path, .. } if path.ends_with("a b.py")));
        assert!(matches!(&read_both.ops[1], Op::Rename { overwrite: true, .. }));
        assert!(matches!(&read_both.ops[3], Op::Delete { ignore_if_missing: true, .. }));
        assert_eq!(read_both.to_confirm, ["Comments"]);
        let odd = json!({"documentChanges": [{"kind": "shred", "uri": "file:///a"}]});
        assert_eq!(read(&odd), Err(BadEdit::Unknown("shred".to_owned())));
        let jar = json!({"changes": {"jar:///a.java": []}});
        assert_eq!(read(&jar), Err(BadEdit::NoFile("jar:///a.java".to_owned())));
        assert_eq!(read(&Value::Null).unwrap(), WorkspaceEdit::default());
    }
}
