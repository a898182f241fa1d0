//! What `ruff check --output-format json` prints.
//!
//! Ruff calls each finding an error, a matter of style as well. Only what keeps the
//! file from being read, or a name from being found, is one here.

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;
use serde::Deserialize;

use super::{Item, Report, Taken};

#[derive(Deserialize)]
struct Diagnostic {
    code: Option<String>,
    filename: String,
    location: Location,
    message: String,
}

#[derive(Deserialize)]
struct Location {
    row: u32,
    column: u32,
}

/// Reads it.
pub(super) fn read(taken: &mut Taken<'_>, output: &str) -> Result<Report, String> {
    let output: Vec<Diagnostic> = serde_json::from_str(output)
        .map_err(|error| format!("its output cannot be read: {error}"))?;
    for item in output {
        let severity = match item.code.as_deref() {
            // Ruff before 0.5 gave syntax errors no code.
            None => Severity::Error,
            Some(code) if code == "invalid-syntax" || code.starts_with("E9") => Severity::Error,
            Some("F821" | "F822" | "F823") => Severity::Error,
            Some(_) => Severity::Warning,
        };
        taken.add(&Item {
            file: &item.filename,
            line: item.location.row,
            column: item.location.column,
            severity,
            code: item.code.as_deref(),
            message: &item.message,
        });
    }
    Ok(Report::default())
}
