//! Puts the chunks of an update into a text.
//!
//! A chunk's old lines must stand at one place only, at the first of these degrees at
//! which they stand anywhere: exactly; but for white space at the ends of lines; but for
//! one indentation of all lines; but for typographic punctuation. What was ignored is
//! told. Lines that stay are the file's own, and so are line ends, byte order mark and
//! a missing final newline.

mod nearest;

use self::nearest::nearest;
use super::{Chunk, Line};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Places that an error lists.
const PLACES: usize = 10;

/// What a place was found without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    TrailingSpace,
    /// What the file's lines have more, or the patch's.
    Indent(Shift),
    Punctuation,
}

/// How a patch's indentation becomes the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Add(Vec<u8>),
    Remove(Vec<u8>),
}

impl std::fmt::Display for Ignored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TrailingSpace => "white space at the ends of lines",
            Self::Indent(_) => "the indentation of all its lines, which was adapted",
            Self::Punctuation => "typographic quotes, dashes and spaces",
        })
    }
}

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Patched {
    /// The new text.
    pub(crate) content: Vec<u8>,
    /// Where each chunk begins in it (from 1), and what was ignored to find its place.
    pub(crate) places: Vec<(usize, Option<Ignored>)>,
    /// Lines that came and went.
    pub(crate) inserted: usize,
    /// Lines that went.
    pub(crate) removed: usize,
}

/// Why a chunk has no place. Chunks count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlace {
    #[error(
        "chunk {chunk}: its lines stand {count} times, at lines {lines}: add lines around it, or `@@` with a line before it"
    )]
    Ambiguous { chunk: usize, count: usize, lines: String },
    #[error("chunk {chunk}: no line is `{context}`, which its `@@` names{behind}")]
    NoContext { chunk: usize, context: String, behind: &'static str },
    #[error("chunk {chunk}: its lines stand nowhere{behind}; {nearest}")]
    Nowhere { chunk: usize, behind: &'static str, nearest: String },
    #[error(
        "chunk {chunk}: its lines stand at line {line}, before the place of the chunk before it: put the chunks in the order of the file"
    )]
    Before { chunk: usize, line: usize },
    #[error(
        "chunk {chunk}: its lines stand at line {line}, and not at the end of the file as `*** End of File` says"
    )]
    NotAtEnd { chunk: usize, line: usize },
}

struct Text<'a> {
    /// The lines without their ends.
    lines: Vec<&'a [u8]>,
    ends: Vec<&'a [u8]>,
}

impl<'a> Text<'a> {
    fn of(content: &'a [u8]) -> Self {
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let end: &[u8] = match line {
                [.., b'\r', b'\n'] => b"\r\n",
                [.., b'\n'] => b"\n",
                _ => b"",
            };
            lines.push(line.get(..line.len() - end.len()).unwrap_or_default());
            ends.push(end);
        }
        Self { lines, ends }
    }
}

/// Applies chunks in order.
pub(crate) fn apply(content: &[u8], chunks: &[Chunk]) -> Result<Patched, NoPlace> {
    let (bom, body) = match content.strip_prefix(BOM) {
        Some(body) => (BOM, body),
        None => (&b""[..], content),
    };
    let text = Text::of(body);
    let usual: &[u8] = text.ends.iter().copied().find(|end| !end.is_empty()).unwrap_or(b"\n");
    let final_newline = text.ends.last().is_none_or(|end| !end.is_empty());
    let mut out: Vec<(Vec<u8>, &[u8])> = Vec::new();
    let (mut cursor, mut inserted, mut removed) = (0, 0, 0);
    let mut places = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let place = find(&text, chunk, index + 1, cursor)?;
        let untouched = text.lines.iter().zip(&text.ends).take(place.at).skip(cursor);
        out.extend(untouched.map(|(line, end)| (line.to_vec(), *end)));
        places.push((out.len() + 1, place.ignored.clone()));
        let mut at = place.at;
        for line in chunk.lines.iter().take(place.used) {
            match line {
                Line::Keep(_) => {
                    let kept = text.lines.get(at).zip(text.ends.get(at));
                    out.extend(kept.map(|(line, end)| (line.to_vec(), *end)));
                    at += 1;
                }
                Line::Remove(_) => {
                    at += 1;
                    removed += 1;
                }
                Line::Insert(new) => {
                    let end = text.ends.get(at.min(text.ends.len().saturating_sub(1)));
                    let end = end.copied().filter(|end| !end.is_empty()).unwrap_or(usual);
                    out.push((shifted(new.as_bytes(), place.ignored.as_ref()), end));
                    inserted += 1;
                }
            }
        }
        cursor = at;
    }
    let rest = text.lines.iter().zip(&text.ends).skip(cursor);
    out.extend(rest.map(|(line, end)| (line.to_vec(), *end)));
    let mut content = bom.to_vec();
    let last = out.len();
    for (at, (line, end)) in out.into_iter().enumerate() {
        content.extend(line);
        let is_last = at + 1 == last;
        content.extend(match (is_last, end.is_empty()) {
            (true, _) if !final_newline => b"",
            (_, true) => usual,
            (_, false) => end,
        });
    }
    Ok(Patched { content, places, inserted, removed })
}

fn shifted(line: &[u8], ignored: Option<&Ignored>) -> Vec<u8> {
    match ignored {
        Some(Ignored::Indent(_)) if line.trim_ascii().is_empty() => line.to_vec(),
        Some(Ignored::Indent(Shift::Add(more))) => [more.as_slice(), line].concat(),
        Some(Ignored::Indent(Shift::Remove(less))) => {
            line.strip_prefix(less.as_slice()).unwrap_or(line).to_vec()
        }
        _ => line.to_vec(),
    }
}

struct Place {
    at: usize,
    ignored: Option<Ignored>,
    /// How many of the chunk's lines count: a blank one at its end may not.
    used: usize,
}

fn old_lines(lines: &[Line]) -> Vec<&[u8]> {
    let old = lines.iter().filter_map(|line| match line {
        Line::Keep(text) | Line::Remove(text) => Some(text.as_bytes()),
        Line::Insert(_) => None,
    });
    old.collect()
}

fn find(text: &Text<'_>, chunk: &Chunk, number: usize, cursor: usize) -> Result<Place, NoPlace> {
    let starts = starts(text, chunk, number, cursor)?;
    let old = old_lines(&chunk.lines);
    if old.is_empty() {
        // Lines to insert, and no lines around them: behind the `@@` line, or at the end.
        let at = match (chunk.after.is_empty(), starts.as_slice()) {
            (true, _) => text.lines.len(),
            (false, [one]) => *one,
            (false, many) => return Err(ambiguous(number, many)),
        };
        return Ok(Place { at, ignored: None, used: chunk.lines.len() });
    }
    let whole = place(text, chunk, &old, &starts, number, chunk.lines.len())?;
    if let Some(place) = whole {
        return Ok(place);
    }
    if let (Some(Line::Keep(last)), true) = (chunk.lines.last(), old.len() > 1)
        && last.is_empty()
    {
        let shorter = old.get(..old.len() - 1).unwrap_or_default();
        let found = place(text, chunk, shorter, &starts, number, chunk.lines.len() - 1)?;
        if let Some(place) = found {
            return Ok(place);
        }
    }
    if let [before] = matches_at(text, &old, 0, &exact).as_slice()
        && *before < cursor
    {
        return Err(NoPlace::Before { chunk: number, line: before + 1 });
    }
    let behind = if chunk.after.is_empty() { "" } else { " behind its `@@` line" };
    Err(NoPlace::Nowhere { chunk: number, behind, nearest: nearest(&text.lines, &old) })
}

/// Where the search for a chunk may begin: behind each line that its `@@` names.
fn starts(
    text: &Text<'_>,
    chunk: &Chunk,
    number: usize,
    cursor: usize,
) -> Result<Vec<usize>, NoPlace> {
    let mut starts = vec![cursor];
    for context in &chunk.after {
        let wanted = context.as_bytes().trim_ascii();
        let from = starts.iter().min().copied().unwrap_or(cursor);
        let named = |exactly: bool| -> Vec<usize> {
            let lines = text.lines.iter().enumerate().skip(from);
            let hits = lines.filter(|(_, line)| match exactly {
                true => **line == context.as_bytes(),
                false => line.trim_ascii() == wanted,
            });
            hits.map(|(at, _)| at + 1).collect()
        };
        starts = named(true);
        if starts.is_empty() {
            starts = named(false);
        }
        if starts.is_empty() {
            let behind = if cursor > 0 { " behind the chunk before it" } else { "" };
            return Err(NoPlace::NoContext { chunk: number, context: context.clone(), behind });
        }
    }
    Ok(starts)
}

type Test<'t> = &'t dyn Fn(&[u8], &[u8]) -> bool;

fn exact(line: &[u8], wanted: &[u8]) -> bool {
    line == wanted
}

fn but_trailing(line: &[u8], wanted: &[u8]) -> bool {
    line.trim_ascii_end() == wanted.trim_ascii_end()
}

fn but_punctuation(line: &[u8], wanted: &[u8]) -> bool {
    plain(line) == plain(wanted)
}

/// A line with typographic signs as they are typed.
fn plain(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let typed = |letter: char| match letter {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        '\u{00A0}' | '\u{2002}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    };
    Some(text.trim_end().chars().map(typed).collect())
}

fn matches_at(text: &Text<'_>, old: &[&[u8]], from: usize, test: Test<'_>) -> Vec<usize> {
    let places = from..(text.lines.len() + 1).saturating_sub(old.len());
    let all = |at: &usize| {
        let lines = text.lines.iter().skip(*at);
        lines.zip(old).all(|(line, wanted)| test(line, wanted))
    };
    places.filter(all).collect()
}

fn place(
    text: &Text<'_>,
    chunk: &Chunk,
    old: &[&[u8]],
    starts: &[usize],
    number: usize,
    used: usize,
) -> Result<Option<Place>, NoPlace> {
    let degrees: [(Test<'_>, Option<Ignored>); 4] = [
        (&exact, None),
        (&but_trailing, Some(Ignored::TrailingSpace)),
        (&|_, _| false, None),
        (&but_punctuation, Some(Ignored::Punctuation)),
    ];
    for (degree, (test, ignored)) in degrees.into_iter().enumerate() {
        let from = starts.iter().min().copied().unwrap_or_default();
        let all = match degree {
            2 => indented(text, old, from),
            _ => matches_at(text, old, from, test)
                .into_iter()
                .map(|at| (at, ignored.clone()))
                .collect(),
        };
        let end = text.lines.len().saturating_sub(old.len());
        let found: Vec<_> = if chunk.at_end {
            all.iter().filter(|(at, _)| *at == end).cloned().collect()
        } else if chunk.after.is_empty() {
            all.clone()
        } else {
            // The first behind each line that was named.
            let firsts = starts.iter().filter_map(|start| all.iter().find(|(at, _)| at >= start));
            let mut firsts: Vec<_> = firsts.cloned().collect();
            firsts.dedup_by_key(|(at, _)| *at);
            firsts
        };
        match found.as_slice() {
            [] => {}
            [(at, ignored)] => return Ok(Some(Place { at: *at, ignored: ignored.clone(), used })),
            many => {
                let places: Vec<_> = many.iter().map(|(at, _)| *at).collect();
                return Err(ambiguous(number, &places));
            }
        }
        if let (true, Some((at, _))) = (chunk.at_end, all.first()) {
            return Err(NoPlace::NotAtEnd { chunk: number, line: at + 1 });
        }
    }
    Ok(None)
}

fn ambiguous(chunk: usize, places: &[usize]) -> NoPlace {
    let mut lines: Vec<_> =
        places.iter().take(PLACES).map(|place| (place + 1).to_string()).collect();
    if places.len() > PLACES {
        lines.push("…".to_owned());
    }
    NoPlace::Ambiguous { chunk, count: places.len(), lines: lines.join(", ") }
}

/// Places where every line has the same white space more, or less, at its beginning.
fn indented(text: &Text<'_>, old: &[&[u8]], from: usize) -> Vec<(usize, Option<Ignored>)> {
    let Some(first) = old.iter().position(|line| !line.trim_ascii().is_empty()) else {
        return Vec::new();
    };
    let wanted = old.get(first).copied().unwrap_or_default();
    let mut found = Vec::new();
    for at in from..(text.lines.len() + 1).saturating_sub(old.len()) {
        let line = text.lines.get(at + first).copied().unwrap_or_default();
        if line.trim_ascii() != wanted.trim_ascii() {
            continue;
        }
        let (deep, flat) = (indent(line), indent(wanted));
        let shift = if let Some(more) = deep.strip_suffix(flat) {
            Shift::Add(more.to_vec())
        } else if let Some(less) = flat.strip_suffix(deep) {
            Shift::Remove(less.to_vec())
        } else {
            continue;
        };
        let fits = |line: &[u8], wanted: &[u8]| {
            if wanted.trim_ascii().is_empty() {
                return line.trim_ascii().is_empty();
            }
            let (line, wanted) = (line.trim_ascii_end(), wanted.trim_ascii_end());
            match &shift {
                Shift::Add(more) => line.strip_prefix(more.as_slice()) == Some(wanted),
                Shift::Remove(less) => wanted.strip_prefix(less.as_slice()) == Some(line),
            }
        };
        let lines = text.lines.iter().skip(at).zip(old);
        if lines.clone().all(|(line, wanted)| fits(line, wanted)) {
            found.push((at, Some(Ignored::Indent(shift))));
        }
    }
    found
}

fn indent(line: &[u8]) -> &[u8] {
    let length = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    line.get(..length).unwrap_or_default()
}
