//! What `dart analyze --format=machine` prints: fields between bars, in which a bar
//! or a backslash is escaped by a backslash.
//!
//! `SEVERITY|TYPE|CODE|FILE|LINE|COLUMN|LENGTH|MESSAGE`

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;

use super::{Item, Report, Taken};

/// Reads it.
pub(super) fn read(taken: &mut Taken<'_>, output: &str) -> Result<Report, String> {
    for line in output.lines() {
        let fields = fields(line);
        let [severity, _, code, file, row, column, _, message] = fields.as_slice() else {
            continue;
        };
        let severity = match severity.as_str() {
            "ERROR" => Severity::Error,
            "WARNING" => Severity::Warning,
            _ => continue,
        };
        let (Ok(row), Ok(column)) = (row.parse(), column.parse()) else {
            return Err(format!("its output cannot be read: `{line}`"));
        };
        let code = code.to_lowercase();
        let code = Some(code.as_str());
        taken.add(&Item { file, line: row, column, severity, code, message });
    }
    Ok(Report::default())
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '|' => {
                fields.push(String::new());
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            c => c,
        };
        if let Some(field) = fields.last_mut() {
            field.push(c);
        }
    }
    fields
}
