//! Lines from an untrusted peer, each bounded.
//!
//! A line that is too long is skipped to its end and told, so that the stream
//! goes on; only the end of the stream ends it.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line taken: `spec/session.md`, 32 MiB.
pub(crate) const LONGEST: usize = 32 * 1024 * 1024;

/// One line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes, without the end of line.
    Text(Vec<u8>),
    /// It had more than so many bytes and was skipped.
    TooLong(usize),
}

/// Reads lines and counts them.
pub(crate) struct Lines<R> {
    from: R,
    longest: usize,
    number: u64,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads lines of at most `longest` bytes.
    pub(crate) fn new(from: R, longest: usize) -> Self {
        Self { from, longest, number: 0 }
    }

    /// Returns the next line and its number from 1; `None` at the end. Losing the
    /// future loses part of a line: keep it until it is done.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<(u64, Line)>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                if line.is_empty() && !too_long {
                    return Ok(None);
                }
                break;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if line.len() + taken > self.longest {
                too_long = true;
                line = Vec::new();
            }
            if !too_long {
                line.extend_from_slice(chunk.get(..taken).unwrap_or_default());
            }
            self.from.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        let line = if too_long { Line::TooLong(self.longest) } else { Line::Text(line) };
        Ok(Some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_skipped_and_the_next_is_read() {
        let text: &[u8] = b"one\ntoo long by far\n\nlast";
        let mut lines = Lines::new(text, 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        let text = |line: &str| Line::Text(line.as_bytes().to_vec());
        assert_eq!(
            read,
            [(1, text("one")), (2, Line::TooLong(5)), (3, text("")), (4, text("last"))]
        );
    }
}
