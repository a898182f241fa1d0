//! A compilation database, `compile_commands.json`, as runs of a compiler that only
//! looks.
//!
//! The file stands in a worktree and names programs, so that its word counts for
//! little: what is run has the name of a compiler and lies outside the worktree, and
//! options that would load code or write files are taken out.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::formats::plain;
use super::plan::Plan;
use super::run::{Shot, Shots};
use crate::shims::executable;

/// How many commands are run. At some 0.4 s each that is what fits into the deadline.
const COMMANDS: usize = 1_000;

/// Programs that stand before a compiler and cache or spread its work.
const WRAPPERS: [&str; 4] = ["ccache", "sccache", "distcc", "icecc"];

#[derive(Deserialize)]
struct Entry {
    directory: PathBuf,
    file: PathBuf,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

/// Lists what is to be run.
pub(super) fn shots(plan: &Plan) -> Result<Shots, String> {
    let root = &plan.key.root;
    let found = plan.markers.iter().map(|marker| root.join(marker)).find(|path| path.exists());
    let path = found.ok_or_else(|| format!("no {} any more", plan.markers.join(" or ")))?;
    let content = std::fs::read_to_string(&path);
    let content = content.map_err(|error| format!("{}: {error}", path.display()))?;
    let entries: Vec<Entry> = serde_json::from_str(&content)
        .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(root);
    let (mut seen, mut result) = (HashSet::new(), Shots::default());
    let (mut all, mut named) = (0, HashSet::new());
    for entry in entries {
        let file = plain(&folder.join(&entry.directory).join(&entry.file));
        if file.starts_with(root) && file.exists() {
            named.insert(file);
        }
        let shot = shot(plan, folder, &entry);
        if !seen.insert((shot.cwd.clone(), shot.args.clone())) {
            continue;
        }
        all += 1;
        if all <= COMMANDS {
            result.shots.push(shot);
        }
    }
    let others = plan.seen.saturating_sub(named.len());
    if others > 0 {
        let path = path.display();
        result.aside.push(format!("{others} of {} files stand in no command of {path}", plan.seen));
    }
    if all > COMMANDS {
        let cut = format!("only {COMMANDS} of {all} commands in {} were run", path.display());
        result.gaps.push(cut);
    }
    Ok(result)
}

fn shot(plan: &Plan, folder: &Path, entry: &Entry) -> Shot {
    let words = match (&entry.arguments, &entry.command) {
        (Some(arguments), _) => arguments.clone(),
        (None, Some(command)) => words(command),
        (None, None) => Vec::new(),
    };
    let name = |word: &String| Path::new(word).file_name().map(OsStr::to_os_string);
    let wraps = |word: &&String| {
        name(word).is_some_and(|name| WRAPPERS.iter().any(|wrapper| name == *wrapper))
    };
    let wrappers = words.iter().take_while(wraps).count();
    let mut words = words.into_iter().skip(wrappers);
    let program = words.next().and_then(|word| compiler(plan, &word));
    let mut args = plan.key.args.clone();
    args.extend(looking(words).into_iter().map(Into::into));
    let cwd = folder.join(&entry.directory);
    Shot {
        of: entry.file.display().to_string(),
        program: program.unwrap_or_else(|| plan.key.program.clone()),
        args,
        base: cwd.clone(),
        cwd,
    }
}

/// Finds the compiler that an entry names, if it is one and is there.
fn compiler(plan: &Plan, word: &str) -> Option<PathBuf> {
    let path = Path::new(word);
    let name = path.file_name()?.to_str()?;
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let kind = kind.rsplit_once('-').map_or(kind, |(_, kind)| kind);
    if !["cc", "c++", "gcc", "g++", "clang", "clang++"].contains(&kind) {
        return None;
    }
    let usable = |path: &Path| executable(path).unwrap_or(false);
    if path.is_absolute() && !path.starts_with(&plan.key.root) && usable(path) {
        return Some(path.to_owned());
    }
    let (_, folders) = plan.key.env.iter().find(|(name, _)| name == "PATH")?;
    let folders = std::env::split_paths(folders).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| usable(path))
}

/// Leaves of a compiler's arguments what shapes its view of the code.
fn looking(words: impl Iterator<Item = String>) -> Vec<String> {
    const ALONE: [&str; 8] = ["-c", "-S", "-E", "-MD", "-MMD", "-MP", "-MG", "-pipe"];
    const WITH_NEXT: [&str; 8] = ["-o", "-MF", "-MT", "-MQ", "-MJ", "-wrapper", "-B", "-load"];
    const BEGINNINGS: [&str; 8] =
        ["-o", "-MF", "-save-temps", "-fplugin", "-specs", "--specs", "-B", "-fpass-plugin"];
    let mut left = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let word_is = |known: &[&str]| known.contains(&word.as_str());
        if word_is(&WITH_NEXT) {
            words.next();
        } else if word == "-Xclang" {
            // What it hands on is clang's own affair, such as the loading of a plugin.
            words.next();
        } else if !word_is(&ALONE) && !BEGINNINGS.iter().any(|begin| word.starts_with(begin)) {
            left.push(word);
        }
    }
    left
}

/// Splits a command as a shell would, without anything that a shell would do.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        let split = words(r#"gcc -DX=\"a\ b\" '-I x' "-Dq='y'" -D"Z"=1  ''"#);
        assert_eq!(split, ["gcc", "-DX=\"a b\"", "-I x", "-Dq='y'", "-DZ=1", ""]);
    }

    #[test]
    fn what_writes_or_loads_is_left_out() {
        let given = "-I. -c a.c -o a.o -MD -MF a.d -O2 -fplugin=./x.so -Xclang -load -Xclang x \
                     -B./bin -Wall -ob -std=c11";
        let left = looking(given.split_whitespace().map(str::to_owned));
        assert_eq!(left, ["-I.", "a.c", "-O2", "-Wall", "-std=c11"]);
    }
}
