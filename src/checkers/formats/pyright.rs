//! What `pyright --outputjson` and `basedpyright --outputjson` print.

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;
use serde::Deserialize;

use super::{Item, Report, Taken};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    general_diagnostics: Vec<Diagnostic>,
    summary: Summary,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    files_analyzed: u64,
}

/// A diagnostic about the configuration has no range.
#[derive(Deserialize)]
struct Diagnostic {
    file: String,
    severity: String,
    message: String,
    rule: Option<String>,
    #[serde(default)]
    range: Range,
}

#[derive(Default, Deserialize)]
struct Range {
    start: Start,
}

#[derive(Default, Deserialize)]
struct Start {
    line: u32,
    character: u32,
}

/// Reads it.
pub(super) fn read(taken: &mut Taken<'_>, output: &str) -> Result<Report, String> {
    let output: Output = serde_json::from_str(output)
        .map_err(|error| format!("its output cannot be read: {error}"))?;
    for item in output.general_diagnostics {
        let severity = match item.severity.as_str() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => continue,
        };
        taken.add(&Item {
            file: &item.file,
            line: item.range.start.line.saturating_add(1),
            column: item.range.start.character.saturating_add(1),
            severity,
            code: item.rule.as_deref(),
            message: &item.message,
        });
    }
    Ok(Report { files: Some(output.summary.files_analyzed), ..Report::default() })
}
