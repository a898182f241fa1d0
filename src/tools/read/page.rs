//! One page of a text: taken from a stream, with what must be said about it.
//!
//! Lines before and after the page are counted and not kept. The whole is hashed if it
//! is read to its end, which is given up only for a file too large to go through for
//! the sake of a number.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use crate::folder::Hash;
use crate::folder::disk::{Cut, Leash};
use crate::tools::write::BOM;

/// Bytes of a page. Beyond it `next_offset` leads on, so no handle is needed.
const PAGE_BYTES: usize = 64 * 1024;
/// Bytes of the longest character of UTF-8.
const WIDEST: usize = 4;
/// A file up to this size is read to its end to count its lines.
const COUNTED: u64 = 256 * 1024 * 1024;
/// Lines with bad bytes that are named.
const NAMED: usize = 5;

/// What is asked for.
pub(super) struct Wanted {
    /// The first line, 0-based.
    pub(super) first: u64,
    /// How many.
    pub(super) lines: u64,
    /// The size of the whole.
    pub(super) bytes: u64,
    /// How many characters of a line.
    pub(super) line_chars: usize,
}

/// A page, and what was learnt about the whole.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The lines shown, 0-based.
    pub(super) shown: Range<u64>,
    /// How many lines there are, if they were counted.
    pub(super) total: Option<u64>,
    /// The hash of the whole, if it was read.
    pub(super) hash: Option<Hash>,
    text: Vec<String>,
    size: usize,
    mark: bool,
    crlf: bool,
    open_end: bool,
    bad: Vec<u64>,
    bad_lines: usize,
    full: bool,
}

impl Page {
    /// Reads a page.
    pub(super) fn of(file: impl Read, wanted: &Wanted, leash: &Leash) -> io::Result<Self> {
        let mut page = Self { shown: wanted.first..wanted.first, ..Self::default() };
        let end = wanted.first.saturating_add(wanted.lines);
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let mut hasher = blake3::Hasher::new();
        let mut line = Line::new(0, wanted.line_chars);
        loop {
            let chunk = reader.fill_buf()?;
            let length = chunk.len();
            if length == 0 {
                break;
            }
            match leash.cut() {
                Some(Cut::Cancelled) => return Err(io::ErrorKind::Interrupted.into()),
                Some(Cut::TimedOut) => return Ok(page),
                None => {}
            }
            hasher.update(chunk);
            let done = page.full || line.number >= end;
            if done && wanted.bytes > COUNTED {
                return Ok(page);
            }
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                line.take(piece, !page.full && (wanted.first..end).contains(&line.number));
                if piece.ends_with(b"\n") {
                    page.line(&mut line);
                }
            }
            reader.consume(length);
        }
        page.open_end = line.length > 0;
        if page.open_end {
            page.line(&mut line);
        }
        page.total = Some(line.number);
        page.hash = Some(Hash::finished(&hasher));
        Ok(page)
    }

    /// Takes over a line that is complete.
    fn line(&mut self, line: &mut Line) {
        let number = line.number;
        if number == 0 && line.kept.starts_with(BOM) {
            self.mark = true;
            line.kept.drain(..BOM.len());
        }
        if line.wanted && !self.full {
            let text = show(&line.kept, line.length, line.chars);
            self.full = !self.text.is_empty() && self.size + text.text.len() > PAGE_BYTES;
            if !self.full {
                self.crlf |= line.kept.ends_with(b"\r\n");
                if text.bad {
                    self.bad_lines += 1;
                    self.bad.extend((self.bad.len() < NAMED).then_some(number + 1));
                }
                self.size += text.text.len();
                self.text.push(format!("{:>6}\t{}", number + 1, text.text));
                self.shown.end = number + 1;
            }
        }
        *line = Line::new(number + 1, line.chars);
    }

    /// Returns the offset with which to go on, if anything is left.
    pub(super) fn next_offset(&self) -> Option<u64> {
        self.total.is_none_or(|total| self.shown.end < total).then_some(self.shown.end + 1)
    }

    /// Returns the page as it is shown.
    pub(super) fn render(&self, name: &str) -> String {
        if self.total == Some(0) {
            return format!("{name} is empty");
        }
        let mut notes = Vec::new();
        if let Some(next) = self.next_offset() {
            let of =
                self.total.map_or("; how many there are was not counted".to_owned(), |total| {
                    format!(" of {total}")
                });
            notes.push(format!(
                "lines {} to {}{of}; go on with offset {next}",
                self.shown.start + 1,
                self.shown.end
            ));
        } else if self.shown.start > 0 {
            notes.push(format!("the file ends here, with line {}", self.shown.end));
        }
        if self.crlf {
            notes.push("CRLF line endings".to_owned());
        }
        if self.mark {
            notes.push("begins with a byte order mark".to_owned());
        }
        if self.open_end && self.next_offset().is_none() {
            notes.push("no newline at the end".to_owned());
        }
        if !self.bad.is_empty() {
            let more = if self.bad_lines > NAMED { ", ..." } else { "" };
            let lines: Vec<_> = self.bad.iter().map(u64::to_string).collect();
            notes.push(format!(
                "not UTF-8 on lines {}{more}: what cannot be read is shown as \u{FFFD}",
                lines.join(", ")
            ));
        }
        let mut text = self.text.join("\n");
        for note in notes {
            text.push_str(&format!("\n({note})"));
        }
        text
    }
}

/// A line that is being put together.
struct Line {
    number: u64,
    chars: usize,
    wanted: bool,
    kept: Vec<u8>,
    length: u64,
}

impl Line {
    fn new(number: u64, chars: usize) -> Self {
        Self { number, chars, wanted: false, kept: Vec::new(), length: 0 }
    }

    fn take(&mut self, piece: &[u8], wanted: bool) {
        self.wanted = wanted;
        self.length += piece.len() as u64;
        // The first bytes of a file may be a mark that must be seen.
        let room = match (wanted, self.number) {
            (true, _) => self.chars.saturating_mul(WIDEST).max(BOM.len()),
            (false, 0) => BOM.len(),
            (false, _) => 0,
        };
        let fits = piece.len().min(room.saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(piece.get(..fits).unwrap_or_default());
    }
}

struct Shown {
    text: String,
    bad: bool,
}

/// Makes a line fit to be shown, in so many characters. `length` is that of the whole line.
fn show(kept: &[u8], length: u64, chars: usize) -> Shown {
    let bare = kept.strip_suffix(b"\n").unwrap_or(kept);
    let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
    let text = String::from_utf8_lossy(bare);
    match text.char_indices().nth(chars) {
        Some((end, _)) => {
            let head = text.get(..end).unwrap_or(&text);
            Shown {
                bad: head.contains('\u{FFFD}'),
                text: format!("{head} [... cut: the line has {length} bytes]"),
            }
        }
        None => Shown { bad: matches!(text, std::borrow::Cow::Owned(_)), text: text.into_owned() },
    }
}

/// Numbers one line as a page does.
pub(crate) fn numbered(number: u64, line: &[u8], chars: usize) -> String {
    let kept = line.get(..line.len().min(chars.saturating_mul(WIDEST))).unwrap_or_default();
    format!("{number:>6}\t{}", show(kept, line.len() as u64, chars).text)
}
