//! Where an `old_text` that does not occur was probably meant to be: pure.
//!
//! Never replaced on the strength of a guess; only shown, so that the next call is
//! exact. Bounded: the search for a similar line looks at the first lines only.

use std::fmt;

/// Lines that are looked at for a similar one, and their bytes.
const LINES: usize = 5_000;
const LINE_BYTES: usize = 300;
/// Lines shown of a place.
const SHOWN: usize = 12;
/// How alike two lines must be to be worth showing, from 0 to 1.
const ALIKE: f64 = 0.7;

/// The likely place.
#[derive(Debug, PartialEq)]
pub(super) enum Nearest {
    /// Nothing resembles it.
    Nowhere,
    /// It was copied together with the numbers that `read` shows.
    Numbered,
    /// It differs in white space or in the kind of quotes and dashes.
    ButForSpace { line: usize, stands: String },
    /// One line resembles its first one.
    Similar { line: usize, stands: String },
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str(", and nothing resembles it: read the file"),
            Self::Numbered => {
                f.write_str(": leave out the line numbers and the tab that read puts before lines")
            }
            Self::ButForSpace { line, stands } => write!(
                f,
                " exactly: only white space, quotes or dashes differ from line {line} on, where \
                 it stands as (tabs shown as →)\n{stands}"
            ),
            Self::Similar { line, stands } => {
                write!(f, ": the most similar line is {line} (tabs shown as →)\n{stands}")
            }
        }
    }
}

/// Looks for the place.
pub(super) fn nearest(text: &[u8], old: &[u8]) -> Nearest {
    let (text, old) = (String::from_utf8_lossy(text), String::from_utf8_lossy(old));
    if old.lines().all(|line| bare(line).is_some()) {
        return Nearest::Numbered;
    }
    let lines: Vec<&str> = text.lines().collect();
    but_for_space(&lines, &old).or_else(|| similar(&lines, &old)).unwrap_or(Nearest::Nowhere)
}

fn bare(line: &str) -> Option<&str> {
    let (number, rest) = line.trim_start().split_once('\t')?;
    number.parse::<u64>().ok().map(|_| rest)
}

fn but_for_space(lines: &[&str], old: &str) -> Option<Nearest> {
    let wanted: Vec<String> = old.lines().map(squash).filter(|line| !line.is_empty()).collect();
    let first = wanted.first()?;
    let squashed: Vec<(usize, String)> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| (index, squash(line)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let found = squashed.windows(wanted.len()).find(|window| {
        // A piece may begin and end inside a line.
        let last = window.len() - 1;
        window.iter().zip(&wanted).enumerate().all(|(at, ((_, line), wanted))| match at {
            0 if last == 0 => line.contains(first.as_str()),
            0 => line.ends_with(wanted.as_str()),
            at if at == last => line.starts_with(wanted.as_str()),
            _ => line == wanted,
        })
    })?;
    let (from, to) = (found.first()?.0, found.last()?.0);
    Some(Nearest::ButForSpace { line: from + 1, stands: show(lines.get(from..=to)?) })
}

fn squash(line: &str) -> String {
    line.chars()
        .filter(|character| !character.is_whitespace())
        .map(|character| match character {
            '‘' | '’' => '\'',
            '“' | '”' => '"',
            '‐'..='―' => '-',
            other => other,
        })
        .collect()
}

fn similar(lines: &[&str], old: &str) -> Option<Nearest> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    let (index, likeness) = lines
        .iter()
        .enumerate()
        .take(LINES)
        .filter(|(_, line)| line.len().max(wanted.len()) <= LINE_BYTES)
        .map(|(index, line)| (index, strsim::normalized_levenshtein(line.trim(), wanted)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let to = lines.len().min(index + old.lines().count());
    (likeness >= ALIKE)
        .then(|| Some(Nearest::Similar { line: index + 1, stands: show(lines.get(index..to)?) }))?
}

fn show(lines: &[&str]) -> String {
    let mut shown: Vec<_> =
        lines.iter().take(SHOWN).map(|line| cut(line).replace('\t', "→")).collect();
    if lines.len() > SHOWN {
        shown.push(format!("({} more lines)", lines.len() - SHOWN));
    }
    shown.join("\n")
}

fn cut(line: &str) -> String {
    line.chars().take(LINE_BYTES).collect()
}
