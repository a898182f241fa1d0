//! Which adapter a program wants: it follows from the program, never from what happens
//! to be installed. One that is missing is an error, and no other takes its place.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use globset::Glob;

use crate::adapters::{elf, targets};
use crate::config::adapters::AdapterDefinition;
use crate::seat::Seat;
use crate::tools::Failure;

/// A program, and who debugs it.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// The adapter's name.
    pub(crate) adapter: &'a str,
    /// Its definition.
    pub(crate) definition: &'a AdapterDefinition,
    /// The file or package, absolute.
    pub(crate) path: PathBuf,
    /// From where its root is looked for.
    pub(crate) folder: PathBuf,
    /// What is built of it, where that is the adapter's to know.
    pub(crate) mode: &'static str,
    /// What its user should know.
    pub(crate) notes: Vec<String>,
}

/// Finds what a call means by its program.
pub(crate) async fn resolve<'a>(
    seat: &'a Seat,
    given: &str,
    args: &[String],
    adapter: Option<&str>,
) -> Result<Program<'a>, Failure> {
    let path = seat.folder.root().join(given);
    let named = adapter.map(|name| by_name(seat, name)).transpose()?;
    let (adapter, definition) = match named {
        Some(named) => named,
        None if path.exists() => by_program(seat, &path, given)?,
        None => {
            if let Some((_, definition)) = by_pattern(seat, &path) {
                let kind = &definition.about;
                return Err(Failure::new(format!("debug: {given}: no such {kind} program")));
            }
            compiled(seat, given)?
        }
    };
    let mut notes = Vec::new();
    let path = if definition.executables && !elf::is_elf(&path) {
        let built = targets::find(seat.folder.root(), &definition.root_markers, given).await?;
        notes.extend(built.notes);
        built.path
    } else if definition.executables {
        notes.extend(targets::warnings(seat.folder.root(), &definition.root_markers, &path).await);
        path
    } else {
        path
    };
    if !path.exists() {
        return Err(Failure::new(format!("debug: {given}: no such file")));
    }
    let mode = go_mode(&path, args);
    // A Go program is its package: one file of several would not build.
    let package = definition.packages.is_some() && path.is_file() && !elf::is_elf(&path);
    let folder = if path.is_dir() { &*path } else { path.parent().unwrap_or(&path) }.to_owned();
    let path = if package { folder.clone() } else { path };
    Ok(Program { adapter, definition, path, folder, mode, notes })
}

/// Finds an adapter by its name.
pub(crate) fn by_name<'a>(
    seat: &'a Seat,
    name: &str,
) -> Result<(&'a str, &'a AdapterDefinition), Failure> {
    let adapters = &seat.languages.config.adapters;
    adapters.get_key_value(name).map(|(name, definition)| (name.as_str(), definition)).ok_or_else(
        || {
            let names: Vec<_> = adapters.keys().map(String::as_str).collect();
            let names = names.join(", ");
            Failure::new(format!("debug: there is no adapter `{name}`; there are: {names}"))
        },
    )
}

type Chosen<'a> = (&'a str, &'a AdapterDefinition);

fn each(seat: &Seat) -> impl Iterator<Item = Chosen<'_>> {
    seat.languages.config.adapters.iter().map(|(name, definition)| (name.as_str(), definition))
}

fn by_pattern<'a>(seat: &'a Seat, path: &Path) -> Option<Chosen<'a>> {
    let name = path.file_name()?;
    each(seat).find(|(_, definition)| definition.programs.iter().any(|pattern| fits(pattern, name)))
}

fn fits(pattern: &str, name: &std::ffi::OsStr) -> bool {
    Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

fn compiled<'a>(seat: &'a Seat, given: &str) -> Result<Chosen<'a>, Failure> {
    let found = each(seat).find(|(_, definition)| definition.executables);
    found.ok_or_else(|| Failure::new(format!("debug: {given}: no such file")))
}

fn by_program<'a>(seat: &'a Seat, path: &Path, given: &str) -> Result<Chosen<'a>, Failure> {
    if path.is_dir() {
        let holds = |definition: &AdapterDefinition| {
            let names = || std::fs::read_dir(path).into_iter().flatten().flatten();
            let pattern = definition.packages.as_deref();
            pattern.is_some_and(|pattern| names().any(|entry| fits(pattern, &entry.file_name())))
        };
        return each(seat).find(|(_, definition)| holds(definition)).ok_or_else(|| {
            Failure::new(format!(
                "debug: {given} is a folder, and no package that an adapter could build: name \
                 the program's file, or a target such as one of `cargo build`"
            ))
        });
    }
    if let Some(chosen) = by_pattern(seat, path) {
        return Ok(chosen);
    }
    if elf::is_elf(path) {
        return compiled(seat, given);
    }
    let first = first_line(path);
    let script = |definition: &AdapterDefinition| {
        let word = definition.interpreter.as_deref();
        word.is_some_and(|word| first.starts_with("#!") && first.contains(word))
    };
    if let Some(chosen) = each(seat).find(|(_, definition)| script(definition)) {
        return Ok(chosen);
    }
    let compiler = ["rs", "c", "cc", "cpp", "cxx"].map(std::ffi::OsStr::new);
    if path.extension().is_some_and(|extension| compiler.contains(&extension)) {
        return Err(Failure::new(format!(
            "debug: {given} is source that must be built first: give the program that the build \
             makes, or the name of its target"
        )));
    }
    let takes: Vec<_> = each(seat)
        .filter(|(_, definition)| !definition.programs.is_empty())
        .map(|(name, definition)| format!("{name} takes {}", definition.programs.join(", ")))
        .collect();
    Err(Failure::new(format!(
        "debug: {given}: no adapter takes this kind of program; {}, lldb takes compiled programs",
        takes.join(", ")
    )))
}

fn first_line(path: &Path) -> String {
    let mut line = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = BufReader::new(file.take(256)).read_until(b'\n', &mut line);
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// Returns delve's word for what is to be built.
fn go_mode(path: &Path, args: &[String]) -> &'static str {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with("_test.go") || args.iter().any(|arg| arg.starts_with("-test.")) {
        "test"
    } else if elf::is_elf(path) {
        "exec"
    } else {
        "debug"
    }
}
