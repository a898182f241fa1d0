//! The patch format that models write: `*** Begin Patch` to `*** End Patch`.
//!
//! Read leniently where nothing is in doubt (white space around markers, a shell's
//! here-document around the whole, an empty line for an empty context line, numbers
//! after `@@`), and refused with the line's number elsewhere.

pub(crate) mod apply;

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new file with these lines.
    Add { path: String, lines: Vec<String> },
    /// No file any more.
    Delete { path: String },
    /// Other lines, perhaps under another name.
    Update { path: String, to: Option<String>, chunks: Vec<Chunk> },
}

/// One place of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Lines behind `@@`, each of which stands before the place, in order.
    pub(crate) after: Vec<String>,
    /// The lines.
    pub(crate) lines: Vec<Line>,
    /// Does it end with the file.
    pub(crate) at_end: bool,
}

/// One line of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Keep(String),
    Remove(String),
    Insert(String),
}

/// Why a patch cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPatch {
    #[error("`patch` begins with `{0}` and not with `*** Begin Patch`")]
    NoBegin(String),
    #[error("`patch` does not end with `*** End Patch`: is it cut off?")]
    NoEnd,
    #[error(
        "`patch` changes no file: give at least one `*** Add File:`, `*** Update File:` or `*** Delete File:`"
    )]
    Empty,
    #[error("line {line} of the patch, `{text}`: {why}")]
    Line { line: usize, text: String, why: &'static str },
    #[error(
        "the update of {0} has no chunk: give lines with `+`, `-` or a leading space, or `*** Move to:`"
    )]
    NoChunk(String),
}

/// Reads a patch.
pub(crate) fn read(source: &str) -> Result<Vec<Change>, BadPatch> {
    let lines = unwrapped(source);
    let mut lines = lines.as_slice();
    match lines.first() {
        Some((_, first)) if first.trim() == "*** Begin Patch" => {
            lines = lines.get(1..).unwrap_or_default();
        }
        first => {
            let first = first.map_or("", |(_, first)| first);
            return Err(BadPatch::NoBegin(first.chars().take(60).collect()));
        }
    }
    match lines.split_last() {
        Some(((_, last), before)) if last.trim() == "*** End Patch" => lines = before,
        _ => return Err(BadPatch::NoEnd),
    }
    let mut changes = Vec::new();
    while let Some(((number, head), rest)) = lines.split_first() {
        lines = rest;
        let head = head.trim();
        if let Some(path) = after(head, "*** Add File:") {
            changes.push(added(path, &mut lines)?);
        } else if let Some(path) = after(head, "*** Delete File:") {
            changes.push(Change::Delete { path });
        } else if let Some(path) = after(head, "*** Update File:") {
            changes.push(updated(path, &mut lines)?);
        } else if !head.is_empty() {
            let why =
                "a file begins with `*** Add File: `, `*** Update File: ` or `*** Delete File: `";
            return Err(bad(*number, head, why));
        }
    }
    if changes.is_empty() { Err(BadPatch::Empty) } else { Ok(changes) }
}

/// Returns the paths that a patch names, as far as it can be read.
pub(crate) fn paths(source: &str) -> Vec<String> {
    let heads = ["*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"];
    let named = |line: &str| heads.iter().find_map(|head| after(line.trim(), head));
    source.lines().filter_map(named).collect()
}

fn after(line: &str, head: &str) -> Option<String> {
    let path = line.strip_prefix(head)?.trim();
    (!path.is_empty()).then(|| path.to_owned())
}

fn bad(line: usize, text: &str, why: &'static str) -> BadPatch {
    BadPatch::Line { line, text: text.chars().take(60).collect(), why }
}

type Numbered<'a> = (usize, &'a str);

/// The lines with their numbers, without a here-document around them.
fn unwrapped(source: &str) -> Vec<Numbered<'_>> {
    let mut lines: Vec<_> = source.lines().enumerate().map(|(at, line)| (at + 1, line)).collect();
    let blank = |line: Option<&Numbered<'_>>| line.is_some_and(|(_, line)| line.trim().is_empty());
    while blank(lines.last()) {
        lines.pop();
    }
    let skip = lines.iter().take_while(|line| blank(Some(line))).count();
    lines.drain(..skip);
    let opening = lines.first().and_then(|(_, first)| first.trim().rsplit_once("<<"));
    if let Some((command, word)) = opening.map(|(command, word)| (command.trim(), word.trim()))
        && matches!(command, "" | "apply_patch" | "cat")
    {
        let word = word.trim_start_matches('-').trim_matches(['\'', '"']).to_owned();
        if !word.is_empty() && lines.last().is_some_and(|(_, last)| last.trim() == word) {
            lines.pop();
            lines.remove(0);
        }
    }
    lines
}

fn added(path: String, lines: &mut &[Numbered<'_>]) -> Result<Change, BadPatch> {
    let mut content = Vec::new();
    while let Some(((number, line), rest)) = lines.split_first() {
        if line.starts_with("*** ") {
            break;
        }
        match line.strip_prefix('+') {
            Some(text) => content.push(text.to_owned()),
            None if line.trim().is_empty()
                && rest.first().is_none_or(|(_, next)| next.starts_with("*** ")) => {}
            None => return Err(bad(*number, line, "every line of a new file begins with `+`")),
        }
        *lines = rest;
    }
    Ok(Change::Add { path, lines: content })
}

fn updated(path: String, lines: &mut &[Numbered<'_>]) -> Result<Change, BadPatch> {
    let mut to = None;
    if let Some(((_, line), rest)) = lines.split_first()
        && let Some(target) = after(line.trim(), "*** Move to:")
    {
        to = Some(target);
        *lines = rest;
    }
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut chunk = Chunk::default();
    while let Some(((number, line), rest)) = lines.split_first() {
        let line = *line;
        if line.trim_end() == "*** End of File" {
            chunk.at_end = true;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(head) = line.strip_prefix("@@") {
            if !chunk.lines.is_empty() || chunk.at_end {
                chunks.push(std::mem::take(&mut chunk));
            }
            chunk.after.extend(context(head));
        } else {
            chunk.lines.push(match (line.chars().next(), line.get(1..)) {
                (Some(' '), Some(text)) => Line::Keep(text.to_owned()),
                (Some('-'), Some(text)) => Line::Remove(text.to_owned()),
                (Some('+'), Some(text)) => Line::Insert(text.to_owned()),
                (None, _) => Line::Keep(String::new()),
                _ => {
                    let why = "a line of a chunk begins with `+`, `-` or a space";
                    return Err(bad(*number, line, why));
                }
            });
        }
        *lines = rest;
    }
    if !chunk.lines.is_empty() {
        chunks.push(chunk);
    }
    // Blank lines before the next file are no context.
    if let Some(last) = chunks.last_mut() {
        let written = last.lines.iter().rposition(|line| *line != Line::Keep(String::new()));
        last.lines.truncate(written.map_or(0, |at| at + 1));
    }
    chunks.retain(|chunk| !chunk.lines.is_empty());
    if chunks.is_empty() && to.is_none() {
        return Err(BadPatch::NoChunk(path));
    }
    Ok(Change::Update { path, to, chunks })
}

/// What stands behind `@@`; numbers of lines, as other tools write them, say nothing
/// about a file that may have changed.
fn context(head: &str) -> Option<String> {
    let head = head.strip_prefix(' ').unwrap_or(head);
    let numbers = head.trim_start().strip_prefix('-').and_then(|rest| rest.split_once("@@"));
    let text = match numbers {
        Some((numbers, rest))
            if numbers.chars().all(|c| c.is_ascii_digit() || ",+ ".contains(c)) =>
        {
            rest
        }
        _ => head.trim_end().strip_suffix("@@").unwrap_or(head),
    };
    (!text.trim().is_empty()).then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
