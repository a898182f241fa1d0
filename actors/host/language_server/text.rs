//! Positions in a text, in each encoding that a server may choose. Pure.
//!
//! The tricky thing: servers and clients that disagree on what a column counts, or
//! on what ends a line, corrupt files. Lines end at `\n`, `\r\n` and `\r` and
//! nothing else; a column past the end is the end of the line, before its
//! terminator; one inside a character is that character's start.

use std::ops::Range as Span;

use serde::{Deserialize, Serialize};

/// What a column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// Bytes.
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-16 code units: what the protocol means where a server says nothing.
    #[default]
    #[serde(rename = "utf-16")]
    Utf16,
    /// Characters.
    #[serde(rename = "utf-32")]
    Utf32,
}

impl Encoding {
    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// A place as the protocol names it, both counted from zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in units of the negotiated [`Encoding`].
    pub character: u32,
}

/// A stretch of text as the protocol names it; the end is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// Its first place.
    pub start: Position,
    /// The place after its last.
    pub end: Position,
}

/// A text with its lines found.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Finds the lines.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Counts the lines; a text that ends in a line end has an empty one after it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns a line without its terminator, counted from zero.
    #[must_use]
    pub fn line(&self, line: usize) -> Option<&'a str> {
        self.text.get(self.span(line)?)
    }

    fn span(&self, line: usize) -> Option<Span<usize>> {
        let start = *self.starts.get(line)?;
        let next = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let whole = self.text.get(start..next)?;
        let end = start + whole.trim_end_matches(['\r', '\n']).len();
        Some(start..end)
    }

    /// Returns the byte that a position means. Past the last line it is the end of
    /// the text.
    #[must_use]
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(span) = self.span(line) else { return self.text.len() };
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        let mut column = 0;
        for (at, character) in self.text.get(span.clone()).unwrap_or_default().char_indices() {
            column += encoding.width(character);
            if column > wanted {
                return span.start + at;
            }
        }
        span.end
    }

    /// Returns the position of a byte. One inside a character or a line end is the
    /// start of it.
    #[must_use]
    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let span = self.span(line).unwrap_or_default();
        let end = floor_boundary(self.text, offset.min(span.end));
        let before = self.text.get(span.start..end).unwrap_or_default();
        let column: usize = before.chars().map(|character| encoding.width(character)).sum();
        Position { line: saturated(line), character: saturated(column) }
    }

    /// Returns the range of a span of bytes.
    #[must_use]
    pub fn range(&self, span: Span<usize>, encoding: Encoding) -> Range {
        Range { start: self.position(span.start, encoding), end: self.position(span.end, encoding) }
    }
}

fn saturated(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the smallest single replacement that makes `new` of `old`, if they
/// differ: the bytes of `old` that go, and what comes in their place.
///
/// One *ranged* replacement, since there is a server that derives the range of a
/// whole-text change from the new text and keeps the old one's tail for ever.
#[must_use]
pub fn replacement<'a>(old: &str, new: &'a str) -> Option<(Span<usize>, &'a str)> {
    if old == new {
        return None;
    }
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let mut start = same;
    while splits(old, start) || splits(new, start) {
        start -= 1;
    }
    let most = old.len().min(new.len()) - start;
    let mut tail =
        old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
    while splits(old, old.len() - tail) || splits(new, new.len() - tail) {
        tail -= 1;
    }
    Some((start..old.len() - tail, new.get(start..new.len() - tail).unwrap_or_default()))
}

/// Does this place lie inside a character or a `\r\n`?
fn splits(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let within_line_end =
        at > 0 && bytes.get(at) == Some(&b'\n') && bytes.get(at - 1) == Some(&b'\r');
    within_line_end || !text.is_char_boundary(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEXT: &str = "a😀b\r\n\t日本 x\rz\n\u{2028}end";

    #[test]
    fn lines_end_only_where_the_protocol_says() {
        let lines = Lines::new(TEXT);
        let found: Vec<_> = (0..lines.count()).map(|line| lines.line(line).unwrap()).collect();
        assert_eq!(found, ["a😀b", "\t日本 x", "z", "\u{2028}end"]);
        assert_eq!(Lines::new("").count(), 1);
        assert_eq!(Lines::new("a\n").line(1), Some(""));
        assert_eq!(Lines::new("a\n").line(2), None);
    }

    #[test]
    fn columns_count_what_the_encoding_says() {
        let lines = Lines::new(TEXT);
        let (b, x) = (TEXT.find('b').unwrap(), TEXT.find('x').unwrap());
        for (encoding, of_b, of_x) in
            [(Encoding::Utf8, 5, 8), (Encoding::Utf16, 3, 4), (Encoding::Utf32, 2, 4)]
        {
            let (b_at, x_at) =
                (Position { line: 0, character: of_b }, Position { line: 1, character: of_x });
            assert_eq!(lines.position(b, encoding), b_at);
            assert_eq!(lines.position(x, encoding), x_at);
            assert_eq!(lines.offset(b_at, encoding), b);
            assert_eq!(lines.offset(x_at, encoding), x);
        }
    }

    #[test]
    fn odd_places_are_clamped() {
        let lines = Lines::new(TEXT);
        let at = |line, character| lines.offset(Position { line, character }, Encoding::Utf16);
        assert_eq!(at(0, 99), TEXT.find('\r').unwrap(), "before the line end");
        assert_eq!(at(0, 2), 1, "not between surrogates");
        assert_eq!(at(9, 0), TEXT.len());
        assert_eq!(lines.offset(Position { line: 1, character: 2 }, Encoding::Utf8), 9);
        let newline = TEXT.find('\n').unwrap();
        let end = Position { line: 0, character: 4 };
        assert_eq!(lines.position(newline, Encoding::Utf16), end, "not between \\r and \\n");
        assert_eq!(lines.position(2, Encoding::Utf16), Position { line: 0, character: 1 });
        assert_eq!(lines.position(999, Encoding::Utf8), Position { line: 3, character: 6 });
    }

    #[test]
    fn a_replacement_makes_the_new_text_and_splits_nothing() {
        let texts = [
            "",
            "a",
            "a\n",
            "a\r\n",
            "a\r\nb\r\n",
            "a\nb\n",
            "aa",
            "aaa",
            "é",
            "è",
            "x😀y",
            "x😁y",
            "日本",
            "日木",
            "a\r\r\nb",
            "a\r\n\nb",
            "\r",
            "\r\n",
            "\n",
        ];
        for old in texts {
            for new in texts {
                let Some((span, text)) = replacement(old, new) else {
                    assert_eq!(old, new);
                    continue;
                };
                let mut made = old.to_owned();
                made.replace_range(span.clone(), text);
                assert_eq!(made, new);
                for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                    let lines = Lines::new(old);
                    let range = lines.range(span.clone(), encoding);
                    assert_eq!(lines.offset(range.start, encoding), span.start, "{old:?} {new:?}");
                    assert_eq!(lines.offset(range.end, encoding), span.end, "{old:?} {new:?}");
                }
            }
        }
    }

    #[test]
    fn a_replacement_is_small() {
        assert_eq!(replacement("one two three", "one 2 three"), Some((4..7, "2")));
        assert_eq!(replacement("aaa", "aa"), Some((2..3, "")));
        assert_eq!(replacement("x\r\ny", "x\ny"), Some((1..3, "\n")));
    }
}
