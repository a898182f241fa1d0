//! Shows replacements as a diff, as much as there is room for.

use std::fmt::Write;

use super::rewrite::Replacement;

/// Characters of a line that are shown.
const LINE: usize = 200;

/// Room for the lines of a preview.
#[derive(Debug)]
pub(crate) struct Preview {
    text: String,
    lines: usize,
    /// Replacements that found no room.
    pub(crate) unshown: usize,
}

impl Preview {
    /// Begins with room for so many lines.
    pub(crate) fn new(lines: usize) -> Self {
        Self { text: String::new(), lines, unshown: 0 }
    }

    /// Returns what there is to show.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds the replacements in a file, the lines that they touch and none around them.
    pub(crate) fn file(&mut self, name: &str, old: &str, replacements: &[Replacement]) {
        let mut rest = replacements;
        let mut head = false;
        let (mut line, mut counted) = (1, 0);
        while let Some(first) = rest.first() {
            let start = line_start(old, first.range.start);
            let mut end = line_end(old, first.range.end.max(first.range.start));
            let mut together = 1;
            while let Some(next) = rest.get(together).filter(|next| next.range.start < end) {
                end = line_end(old, next.range.end);
                together += 1;
            }
            let (these, others) = rest.split_at(together);
            rest = others;
            line += newlines(old.get(counted..start).unwrap_or_default());
            counted = start;
            let before = old.get(start..end).unwrap_or_default();
            let after = changed(old, start, end, these);
            let height = before.lines().count() + after.lines().count() + 1;
            if self.lines < height + usize::from(!head) {
                self.unshown += together;
                continue;
            }
            if !head {
                let _ = writeln!(self.text, "--- {name}");
                self.lines -= 1;
                head = true;
            }
            self.lines -= height;
            let _ = writeln!(self.text, "@@ line {line} @@");
            for (sign, text) in [('-', before), ('+', after.as_str())] {
                for shown in text.lines() {
                    let _ = writeln!(self.text, "{sign}{}", clipped(shown));
                }
            }
        }
    }
}

fn changed(old: &str, start: usize, end: usize, replacements: &[Replacement]) -> String {
    let (mut text, mut at) = (String::new(), start);
    for replacement in replacements {
        text.push_str(old.get(at..replacement.range.start).unwrap_or_default());
        text.push_str(&replacement.text);
        at = replacement.range.end;
    }
    text.push_str(old.get(at..end).unwrap_or_default());
    text
}

/// Cuts a line that is too long, between characters.
pub(crate) fn clipped(line: &str) -> String {
    match line.char_indices().nth(LINE) {
        Some((at, _)) => {
            let more = line.get(at..).unwrap_or_default().chars().count();
            format!("{}… ({more} more characters)", line.get(..at).unwrap_or_default())
        }
        None => line.to_owned(),
    }
}

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    // A range that ends with its line end has no part in the next line.
    if at > 0 && text.as_bytes().get(at - 1) == Some(&b'\n') {
        return at;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.find('\n').map_or(rest.len(), |newline| newline + 1)
}
