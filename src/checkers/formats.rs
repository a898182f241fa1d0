//! What checkers print, read into findings. Pure; one file per form.
//!
//! Nothing is taken for clean here: the exit code is judged by whoever ran it.

mod cargo;
mod dart;
mod lines;
mod pyright;
mod ruff;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Finding, Severity,
};

use crate::config::definitions::Format;

/// What a checker's output says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// What it found.
    pub(super) findings: Vec<Finding>,
    /// How many files it has looked at, where it says so.
    pub(super) files: Option<u64>,
    /// What it could not judge, and why.
    pub(super) gaps: Vec<String>,
    /// What it was not asked to judge.
    pub(super) aside: Vec<String>,
}

/// Reads what the checker of this name printed; relative paths are meant from `base`.
pub(super) fn read(
    format: Format,
    name: &str,
    printed: &str,
    base: &Path,
) -> Result<Report, String> {
    let mut taken = Taken::new(name, base);
    let mut report = match format {
        Format::CargoJson => cargo::read(&mut taken, printed),
        Format::PyrightJson => pyright::read(&mut taken, printed),
        Format::RuffJson => ruff::read(&mut taken, printed),
        Format::DartMachine => dart::read(&mut taken, printed),
        Format::Tsc => Ok(lines::tsc(&mut taken, printed)),
        Format::Gnu => Ok(lines::gnu(&mut taken, printed)),
        Format::Go => Ok(lines::go(&mut taken, printed)),
    }?;
    report.findings = taken.findings;
    Ok(report)
}

/// Says whether what counts comes on standard error.
pub(super) fn is_on_stderr(format: Format) -> bool {
    matches!(format, Format::Gnu | Format::Go)
}

/// Says whether an exit code for findings is explained by an error only.
pub(super) fn fails_by_errors(format: Format) -> bool {
    !matches!(format, Format::DartMachine | Format::RuffJson)
}

/// The findings so far, with paths that are shared.
struct Taken<'a> {
    server: Arc<str>,
    base: &'a Path,
    paths: HashMap<String, Arc<Path>>,
    findings: Vec<Finding>,
}

/// One finding, as a form gives it.
struct Item<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    severity: Severity,
    code: Option<&'a str>,
    message: &'a str,
}

impl<'a> Taken<'a> {
    fn new(name: &str, base: &'a Path) -> Self {
        Self { server: name.into(), base, paths: HashMap::new(), findings: Vec::new() }
    }

    fn add(&mut self, item: &Item<'_>) {
        let path = match self.paths.get(item.file) {
            Some(path) => Arc::clone(path),
            None => {
                let path: Arc<Path> = plain(&self.base.join(item.file)).into();
                self.paths.insert(item.file.to_owned(), Arc::clone(&path));
                path
            }
        };
        self.findings.push(Finding {
            server: Arc::clone(&self.server),
            path,
            line: item.line.max(1),
            column: item.column.max(1),
            severity: item.severity,
            code: item.code.map(Into::into),
            message: item.message.into(),
        });
    }
}

/// Resolves `.` and `..` by name, as the places of one file must compare as one.
pub(super) fn plain(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
