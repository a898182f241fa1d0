//! Diagnostics by tsserver's own commands, which a wrapping server passes on.
//!
//! tsserver takes requests in their order, so the answer is about the text that it
//! was last given. What the wrappers publish instead names no version, and comes not
//! at all where nothing was wrong before and after.

use std::path::Path;

use serde_json::{Value, json};

use crate::host::language_server::diagnostics::{Diagnostic, diagnostics};
use crate::host::language_server::lease::{LiveServer, Stopped, call};

/// The two kinds that tell errors and warnings; the third has only hints.
const COMMANDS: [&str; 2] = ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"];

/// Asks for a file's diagnostics. `None` where tsserver gave none, which is not the
/// same as an empty list.
pub(super) async fn ask(
    live: &LiveServer,
    path: &Path,
) -> Result<Option<Vec<Diagnostic>>, Stopped> {
    let ask = |command: &'static str| async move {
        let params = || {
            let arguments = json!([command, { "file": path }]);
            json!({ "command": "typescript.tsserverRequest", "arguments": arguments })
        };
        let raw = call(live, "workspace/executeCommand", params).await?;
        let answer: Option<Value> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        Ok(answer.as_ref().and_then(read))
    };
    let [syntactic, semantic] = COMMANDS;
    let (syntactic, semantic) = tokio::try_join!(ask(syntactic), ask(semantic))?;
    Ok(syntactic.zip(semantic).map(|(mut all, semantic)| {
        all.extend(semantic);
        all
    }))
}

/// Reads tsserver's answer, whose places count from 1, in UTF-16.
fn read(answer: &Value) -> Option<Vec<Diagnostic>> {
    let body = answer.get("body")?.as_array()?;
    let place = |item: &Value, end: &str| {
        let number = |name: &str| {
            let number = item.get(end).and_then(|end| end.get(name)).and_then(Value::as_u64);
            number.unwrap_or(1).saturating_sub(1)
        };
        json!({ "line": number("line"), "character": number("offset") })
    };
    let items: Value = body
        .iter()
        .map(|item| {
            let severity = match item.get("category").and_then(Value::as_str) {
                Some("error") | None => 1,
                Some("message") => 3,
                Some("suggestion") => 4,
                Some(_) => 2,
            };
            json!({
                "range": { "start": place(item, "start"), "end": place(item, "end") },
                "severity": severity,
                "code": item.get("code"),
                "source": item.get("source").and_then(Value::as_str).unwrap_or("typescript"),
                "message": item.get("text"),
            })
        })
        .collect();
    Some(diagnostics(&items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::language_server::diagnostics::Severity;
    use crate::host::language_server::text::Position;

    #[test]
    fn answers_are_read_and_nothing_is_not_an_empty_list() {
        let answer = json!({ "success": true, "body": [
            { "start": { "line": 2, "offset": 28 }, "end": { "line": 2, "offset": 31 },
              "text": "not assignable", "code": 2345, "category": "error" },
            { "text": "odd", "category": "warning" },
        ] });
        let read_items = read(&answer).unwrap_or_default();
        let seen: Vec<_> = read_items
            .iter()
            .map(|item| (item.range.start, item.severity, item.code.as_deref(), &*item.message))
            .collect();
        let at = Position { line: 1, character: 27 };
        assert_eq!(
            seen,
            [
                (at, Severity::Error, Some("2345"), "not assignable"),
                (Position::default(), Severity::Warning, None, "odd"),
            ]
        );
        assert_eq!(read(&json!({ "body": [] })), Some(Vec::new()));
        for nothing in [json!(null), json!({ "success": false }), json!({ "body": {} })] {
            assert_eq!(read(&nothing), None, "{nothing}");
        }
    }
}
