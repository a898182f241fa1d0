//! What the debuggee and its adapter wrote, bounded, with a cursor. Pure.
//!
//! A debuggee that prints without end costs a fixed piece of memory; what was let
//! go is counted. Positions are bytes since the session began, so a cursor stays
//! true whatever was dropped before it.

use std::collections::VecDeque;

/// Bytes that are kept: the last screens of a noisy program, not its whole log.
pub const KEPT: usize = 256 * 1024;

/// A piece of output, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Bytes that were asked for and are no longer kept.
    pub dropped: u64,
    /// Bytes that were left out to keep the piece short.
    pub skipped: u64,
    /// Where the next piece begins.
    pub cursor: u64,
}

/// The ring.
#[derive(Debug, Default)]
pub(super) struct Output {
    kept: VecDeque<u8>,
    /// Where the first kept byte stands.
    begin: u64,
    /// Up to where reports have shown it.
    told: u64,
    /// Escape sequences are stripped, also one that comes in two pieces.
    escape: Escape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    Inside,
}

impl Output {
    /// Appends, without carriage returns (lldb's debuggee writes to a terminal) and
    /// without colours.
    pub(super) fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            self.escape = match (self.escape, byte) {
                (Escape::None, 0x1b) => Escape::Begun,
                (Escape::Begun, b'[') => Escape::Inside,
                (Escape::Inside, 0x20..=0x3f) => Escape::Inside,
                (Escape::Begun | Escape::Inside, _) => Escape::None,
                (Escape::None, b'\r') => Escape::None,
                (Escape::None, byte) => {
                    self.kept.push_back(byte);
                    Escape::None
                }
            };
        }
        let over = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..over);
        self.begin += over as u64;
    }

    fn end(&self) -> u64 {
        self.begin + self.kept.len() as u64
    }

    /// Returns what stands from `cursor` on, at most `most` bytes.
    pub(super) fn from(&self, cursor: u64, most: usize) -> Piece {
        let at = cursor.clamp(self.begin, self.end());
        let skip = usize::try_from(at - self.begin).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.kept.iter().skip(skip).take(most).copied().collect();
        let whole = at + bytes.len() as u64 == self.end();
        let bytes = if whole { &bytes[..] } else { whole_characters(&bytes) };
        Piece {
            text: String::from_utf8_lossy(bytes).into_owned(),
            dropped: at - cursor.min(at),
            skipped: 0,
            cursor: at + bytes.len() as u64,
        }
    }

    /// Returns the end of what stands from `cursor` on, at most `most` bytes.
    pub(super) fn tail(&self, cursor: u64, most: usize) -> Piece {
        let from = self.end().saturating_sub(most as u64).max(cursor.min(self.end()));
        let piece = self.from(from, most);
        let at = from.max(self.begin);
        Piece {
            dropped: self.begin - cursor.min(self.begin),
            skipped: at - cursor.clamp(self.begin, at),
            ..piece
        }
    }

    /// Returns what no report has shown yet, and counts it as shown.
    pub(super) fn untold(&mut self, most: usize) -> Piece {
        let piece = self.tail(self.told, most);
        self.told = self.end();
        piece
    }

    /// Returns the last `lines` lines.
    pub(super) fn last_lines(&self, lines: usize) -> String {
        let text = self.tail(0, 16 * 1024).text;
        let all: Vec<&str> = text.trim_end().lines().collect();
        all.split_at(all.len().saturating_sub(lines)).1.join("\n")
    }
}

/// Leaves a character that is cut at the end for the next piece.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.split_at(error.valid_up_to()).0,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_on_and_knows_what_is_gone() {
        let mut output = Output::default();
        output.push("one\r\ntwo\n");
        let piece = output.from(0, 4);
        assert_eq!((piece.text.as_str(), piece.cursor), ("one\n", 4));
        assert_eq!(output.from(piece.cursor, 99).text, "two\n");
        output.push(&"x".repeat(KEPT));
        let piece = output.from(4, 3);
        assert_eq!((piece.text.as_str(), piece.dropped, piece.cursor), ("xxx", 4, 11));
        assert_eq!(output.from(1 << 40, 9), Piece { cursor: 8 + KEPT as u64, ..Piece::default() });
    }

    #[test]
    fn a_tail_says_what_it_leaves_out() {
        let mut output = Output::default();
        output.push("abcdefgh");
        let piece = output.tail(2, 3);
        assert_eq!((piece.text.as_str(), piece.skipped, piece.dropped), ("fgh", 3, 0));
        assert_eq!(output.untold(2).text, "gh");
        assert_eq!(output.untold(9).text, "");
        output.push("i");
        assert_eq!(output.untold(9).text, "i");
    }

    #[test]
    fn colours_and_cut_characters_do_no_harm() {
        let mut output = Output::default();
        output.push("\u{1b}[3");
        output.push("1mred\u{1b}[0m é");
        assert_eq!(output.from(0, 99).text, "red é");
        let piece = output.from(0, 5);
        assert_eq!((piece.text.as_str(), piece.cursor), ("red ", 4));
        assert_eq!(output.last_lines(1), "red é");
    }
}
