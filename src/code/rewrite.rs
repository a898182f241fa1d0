//! Puts a template in the place of matches, and loses nothing on the way.
//!
//! A match is left out, and counted with its reason, if it holds code or a comment that
//! neither a metavariable covers nor the pattern spells out: the matcher passes over
//! such things, a rewrite would drop them. Matches inside what a metavariable covers
//! are rewritten as well. How lines are put in is `layout`'s.

mod cover;
mod deletion;
mod layout;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use self::cover::{Cover, cover};
use self::deletion::widened;
use self::layout::{Layout, Rendered};
use super::matching::{self, Found};
use super::reading::Reading;
use super::template::{Piece, Template};
use super::tree::Parsed;

/// Matches inside each other that are rewritten; deeper ones are left as they are.
const DEEPEST: usize = 100;
/// Bytes that the rewriting of one file may come to.
const LARGEST: usize = 16 * 1024 * 1024;

/// Why a match is not rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// It holds code that the pattern does not name.
    Code,
    /// It holds a comment that the rewrite would drop.
    Comment,
    /// It is the only statement of a block that must have one.
    LastStatement,
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Code => "holds code that the pattern does not name and the rewrite would drop",
            Self::Comment => "holds a comment that the rewrite would drop",
            Self::LastStatement => "is the only statement of its block, which would be empty",
        })
    }
}

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The bytes of the old text.
    pub(crate) range: Range<usize>,
    /// What comes in their place.
    pub(crate) text: String,
}

/// What became of one text.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    /// The replacements, in order, none touching another.
    pub(crate) replacements: Vec<Replacement>,
    /// How many matches they rewrite: more than there are replacements where matches
    /// stand inside each other.
    pub(crate) matches: usize,
    /// Matches that were left as they are: their line, and why.
    pub(crate) left: Vec<(usize, Left)>,
    /// Matches inside others that could not be rewritten along with them.
    pub(crate) nested_left: usize,
}

/// A text would grow beyond all measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the rewrite comes to more than {LARGEST} bytes, as it puts a metavariable into itself more \
     than once: rewrite a part with `path`"
)]
pub(crate) struct TooMuch;

/// Rewrites every match of the readings in a text.
pub(crate) fn rewrite(
    parsed: &Arc<Parsed>,
    readings: &[&Reading],
    template: &Template,
) -> Result<Rewritten, TooMuch> {
    let mut done = Rewritten::default();
    let mut matches: Vec<Found> = Vec::new();
    let mut known = BTreeSet::new();
    for reading in readings {
        let named = cover::with_names(reading);
        for found in matching::all(parsed, &named) {
            if !known.insert(found.node) {
                continue;
            }
            match cover(parsed, &named, &found) {
                Cover::Whole(to) => {
                    let range = found.range.start..to;
                    matches.push(Found { range, ..found });
                }
                Cover::Leaves(left) => done.left.push((parsed.line_of(found.range.start), left)),
            }
        }
    }
    // Of two that begin together the longer one holds the other.
    matches
        .sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end), found.node));
    let rewriter = Rewriter {
        parsed,
        template,
        matches: &matches,
        layout: Layout::of(parsed),
        rewritten: Cell::new(0),
        budget: Cell::new(LARGEST),
    };
    rewriter.outermost(&mut done)?;
    done.nested_left = matches.len() - rewriter.rewritten.get().min(matches.len());
    done.nested_left -= done.left.iter().filter(|(_, why)| *why == Left::LastStatement).count();
    done.matches = rewriter.rewritten.get();
    done.left.sort_unstable();
    Ok(done)
}

/// Returns a text with its replacements made.
pub(crate) fn applied(text: &str, replacements: &[Replacement]) -> String {
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for replacement in replacements {
        new.push_str(text.get(at..replacement.range.start).unwrap_or_default());
        new.push_str(&replacement.text);
        at = replacement.range.end;
    }
    new.push_str(text.get(at..).unwrap_or_default());
    new
}

struct Rewriter<'a> {
    parsed: &'a Parsed,
    template: &'a Template,
    matches: &'a [Found],
    layout: Layout<'a>,
    rewritten: Cell<usize>,
    budget: Cell<usize>,
}

impl Rewriter<'_> {
    fn outermost(&self, done: &mut Rewritten) -> Result<(), TooMuch> {
        let deletes = self
            .template
            .0
            .iter()
            .all(|piece| matches!(piece, Piece::Text(text) if text.trim().is_empty()));
        let mut end = 0;
        for (at, found) in self.matches.iter().enumerate() {
            if found.range.start < end {
                continue;
            }
            let range = match deletes.then(|| widened(self.parsed, found)) {
                None => found.range.clone(),
                Some(Ok(range)) if range.start >= end => range,
                Some(Ok(_)) => found.range.clone(),
                Some(Err(left)) => {
                    done.left.push((self.parsed.line_of(found.range.start), left));
                    continue;
                }
            };
            end = range.end;
            let text = if deletes {
                self.rewritten.set(self.rewritten.get() + 1);
                String::new()
            } else {
                self.render(at, 0)?.text
            };
            done.replacements.push(Replacement { range, text });
        }
        Ok(())
    }

    fn render(&self, at: usize, depth: usize) -> Result<Rendered, TooMuch> {
        let Some(found) = self.matches.get(at) else { return Ok(Rendered::default()) };
        self.rewritten.set(self.rewritten.get() + 1);
        let base = self.layout.indent_at(found.range.start);
        let mut out = layout::Writer::new(&self.layout, base, self.template);
        for (index, piece) in self.template.0.iter().enumerate() {
            match piece {
                Piece::Text(text) => out.text(text),
                Piece::Variable { name, many } => {
                    let captured = found.captured.iter().find(|captured| captured.name == *name);
                    let range = captured.and_then(|captured| captured.range.clone());
                    let range = range.map(|range| self.without_separators(range, *many, index));
                    match range.filter(|range| !range.is_empty()) {
                        Some(range) => out.paste(self.captured(range, at, depth)?),
                        None => out.nothing(self.template.0.get(index + 1)),
                    }
                }
            }
        }
        let rendered = out.finish();
        let left = self.budget.get().checked_sub(rendered.text.len()).ok_or(TooMuch)?;
        self.budget.set(left);
        Ok(rendered)
    }

    /// A list may begin with the comma before it, or end with one where the template
    /// brings its own.
    fn without_separators(&self, range: Range<usize>, many: bool, index: usize) -> Range<usize> {
        let text = self.parsed.text().get(range.clone()).unwrap_or_default();
        if !many {
            return range;
        }
        let front = text.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
        let start = if text.starts_with(',') { range.end - front.len() } else { range.start };
        let own = matches!(
            self.template.0.get(index + 1),
            Some(Piece::Text(next)) if next.trim_start().starts_with([',', ';'])
        );
        let text = self.parsed.text().get(start..range.end).unwrap_or_default();
        let back = text.trim_end();
        let end = match own.then(|| back.strip_suffix([',', ';'])).flatten() {
            Some(back) => start + back.trim_end().len(),
            None => range.end,
        };
        start..end
    }

    /// Returns what a metavariable covers, with the matches inside it rewritten.
    fn captured(&self, range: Range<usize>, of: usize, depth: usize) -> Result<Rendered, TooMuch> {
        let mut out = Rendered::from(self.layout.indent_at(range.start));
        let mut at = range.start;
        if depth < DEEPEST {
            let first = self.matches.partition_point(|found| found.range.start < range.start);
            for (index, found) in self.matches.iter().enumerate().skip(first) {
                if found.range.start >= range.end {
                    break;
                }
                if index == of || found.range.start < at || found.range.end > range.end {
                    continue;
                }
                self.layout.raw(at..found.range.start, &mut out);
                out.append(self.render(index, depth + 1)?);
                at = found.range.end;
            }
        }
        self.layout.raw(at..range.end, &mut out);
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
