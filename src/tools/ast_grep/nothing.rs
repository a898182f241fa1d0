//! Why nothing matches: what can be known of it, cheapest first.

use ast_grep_core::MatchStrictness;

use super::Told;
use crate::code::reading::Reading;
use crate::code::{diff, explain, language};
use crate::folder::disk::Leash;
use crate::trees::scan::Search;

/// Words of a pattern that are told of.
const WORDS: usize = 5;

/// Says that nothing matches, and everything that is known about why.
pub(super) fn explain(told: &Told<'_>, search: &Search<'_>, leash: &Leash) -> String {
    let name = language::id(told.scope.language);
    let files = told.scope.files.len();
    let mut lines = vec![format!(
        "no match of `{}` in {}: searched {} {name} {}",
        told.pattern.trim(),
        told.scope.start.name(),
        told.scanned.searched,
        super::plural(told.scanned.searched, "file", "files"),
    )];
    if files == 0 {
        lines.push(format!(
            "there is no {name} file: {} other files were passed by, and what git ignores and \
             hidden files are left out",
            told.scope.others
        ));
        return lines.join("\n");
    }
    let read_as: Vec<_> = search.readings.iter().map(|reading| reading.words()).collect();
    lines.push(format!("the pattern was read as {}", read_as.join("; as ")));
    if let Some(hint) = explain::habits(told.pattern) {
        lines.push(hint.to_owned());
    }
    if leash.cut().is_none() {
        let (found, all_there) = words(told, search);
        lines.extend(found);
        // Where a word is nowhere, that is the reason, and looking on would be dear.
        if all_there {
            lines.extend(nearest(told, search, leash));
        }
    }
    lines.join("\n")
}

/// Says which of the pattern's words occur, and where all of them do; and whether there
/// is none that occurs nowhere.
fn words(told: &Told<'_>, search: &Search<'_>) -> (Vec<String>, bool) {
    let Some(reading) = search.readings.first() else { return (Vec::new(), true) };
    let mut counts = vec![0_usize; reading.literals.len()];
    let (mut together, mut near) = (0, None);
    for file in &told.scope.files {
        let source = search.trees.source(search.folder, file, told.scope.language);
        let Ok(source) = source else { continue };
        let mut all = true;
        for (word, count) in reading.literals.iter().zip(&mut counts) {
            let there = word.is_in(&source.text);
            *count += usize::from(there);
            all &= there;
        }
        if all && !reading.literals.is_empty() {
            together += 1;
            near = near.or_else(|| line_with(&source.text, reading).map(|at| (file.name(), at)));
        }
    }
    let words = reading.literals.iter().zip(&counts).filter(|(_, count)| **count == 0);
    let absent: Vec<_> = words.map(|(word, _)| format!("`{}`", word.text)).take(WORDS).collect();
    let mut lines = Vec::new();
    if !absent.is_empty() {
        lines.push(format!("in no file there is {}", absent.join(", ")));
    } else if together > 0 {
        lines.push(format!(
            "{together} {} all of its words, though not in this shape",
            super::plural(together, "file holds", "files hold")
        ));
        lines
            .extend(near.map(|(name, (line, text))| format!("the nearest: {name}:{line}: {text}")));
    }
    (lines, absent.is_empty())
}

/// The line with the most of a pattern's words.
fn line_with(text: &str, reading: &Reading) -> Option<(usize, String)> {
    let words = |line: &str| reading.literals.iter().filter(|word| word.is_in(line)).count();
    let lines = text.lines().enumerate().map(|(at, line)| (words(line), at, line));
    // The first of equal ones.
    let best = lines.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (best.0 > 0).then(|| (best.1 + 1, diff::clipped(best.2.trim())))
}

/// Says what would match with quotes, commas and other tokens left aside.
fn nearest(told: &Told<'_>, search: &Search<'_>, leash: &Leash) -> Option<String> {
    let loose = |strictness: MatchStrictness| -> Vec<Reading> {
        let readings = search.readings.iter().filter(|reading| reading.clean);
        let loosened = readings.map(|reading| {
            let mut reading = (*reading).clone();
            reading.pattern.strictness = strictness.clone();
            reading
        });
        loosened.collect()
    };
    for (strictness, words) in [
        (MatchStrictness::Relaxed, "with quotes, commas and other tokens left aside"),
        (MatchStrictness::Signature, "with names and texts left aside"),
    ] {
        let mut readings = loose(strictness);
        if matches!(readings.first()?.pattern.strictness, MatchStrictness::Signature) {
            readings.iter_mut().for_each(|reading| reading.literals.clear());
        }
        let all: Vec<_> = readings.iter().collect();
        let search = Search { readings: &all, keep: 1, ..*search };
        let scanned = search.run(&told.scope, leash);
        let total: usize = scanned.counts(all.len()).into_iter().max().unwrap_or_default();
        let first = scanned.hits.first().and_then(|hits| {
            let (_, found) = hits.first.first()?;
            let text = hits.source.text.get(found.range.clone())?;
            let line = hits.parsed.line_of(found.range.start);
            Some(format!(
                "{}:{line}: {}",
                hits.file.name(),
                diff::clipped(text.lines().next().unwrap_or_default())
            ))
        });
        if let (Some(first), 1..) = (first, total) {
            return Some(format!("{words} it would match {total}, the first: {first}"));
        }
    }
    None
}
