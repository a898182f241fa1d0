//! What `pyright --outputjson` prints. Pure.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Finding, Severity,
};
use serde::Deserialize;

use super::Report;

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
pub(super) fn read(output: &str) -> Result<Report, String> {
    let output: Output = serde_json::from_str(output)
        .map_err(|error| format!("its output cannot be read: {error}"))?;
    let server: Arc<str> = "pyright".into();
    let mut paths: HashMap<String, Arc<Path>> = HashMap::new();
    let findings = output.general_diagnostics.into_iter().filter_map(|item| {
        let severity = match item.severity.as_str() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => return None,
        };
        let path = paths.entry(item.file);
        let path = path.or_insert_with_key(|file| Path::new(file).into());
        Some(Finding {
            server: Arc::clone(&server),
            path: Arc::clone(path),
            line: item.range.start.line.saturating_add(1),
            column: item.range.start.character.saturating_add(1),
            severity,
            code: item.rule.map(Into::into),
            message: item.message.into(),
        })
    });
    Ok(Report { findings: findings.collect(), files: Some(output.summary.files_analyzed) })
}
