//! Content-Length framing, shared by language servers and debug adapters.
//!
//! [`Decoder`] is pure; [`FrameReader`] feeds it from a pipe. What real servers
//! print is worse than the protocol says, so before a header anything is skipped:
//! blank lines, log lines, a banner without a line end; names are read in any case
//! and lines may end in `\n` alone. A body is not looked into here: one that is
//! not JSON costs its reader a message, never the connection.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that may come before a body. Real headers have some 30; the rest is for
/// banners and log lines.
pub const HEADER_CAP: usize = 16 * 1024;
/// Bytes in one body. The largest answers seen, full workspace symbols, have 20 MB.
pub const BODY_CAP: usize = 64 * 1024 * 1024;

const LENGTH: &[u8] = b"content-length:";
/// What a buffer keeps after a big body has gone through it.
const KEEP: usize = 256 * 1024;

/// Why a stream of frames cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// No header came where one was due.
    #[error("wrote {HEADER_CAP} bytes to its stdout without a `Content-Length` header")]
    NoHeader,
    /// A body over the cap was announced.
    #[error("announced a message of {0} bytes; at most {BODY_CAP} are read")]
    BodyTooLong(u64),
    /// The pipe broke.
    #[error("its stdout cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Finds the frames in what was read so far.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// How much of `buffer` is done with.
    done: usize,
    /// Header bytes since the last frame.
    skipped: usize,
    length: Option<u64>,
    in_body: bool,
}

impl Decoder {
    /// Returns the buffer to append to, with room.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.done == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEEP);
        } else if self.done > 0 {
            self.buffer.drain(..self.done);
        }
        self.done = 0;
        self.buffer.reserve(8 * 1024);
        &mut self.buffer
    }

    /// Takes the next whole body, if it is there.
    pub fn next_body(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        while !self.in_body {
            let rest = self.buffer.get(self.done..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                return if self.skipped + rest.len() > HEADER_CAP {
                    Err(FrameError::NoHeader)
                } else {
                    Ok(None)
                };
            };
            let line = rest.get(..end).unwrap_or_default().trim_ascii();
            if line.is_empty() {
                self.in_body = self.length.is_some();
            } else if let Some(length) = announced_length(line) {
                self.length = Some(length);
            }
            self.done += end + 1;
            self.skipped += end + 1;
            if self.skipped > HEADER_CAP {
                return Err(FrameError::NoHeader);
            }
        }
        self.take_body()
    }

    fn take_body(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let announced = self.length.unwrap_or_default();
        let length = usize::try_from(announced)
            .ok()
            .filter(|length| *length <= BODY_CAP)
            .ok_or(FrameError::BodyTooLong(announced))?;
        let Some(body) = self.buffer.get(self.done..self.done + length) else { return Ok(None) };
        let body = body.to_vec();
        self.done += length;
        (self.skipped, self.length, self.in_body) = (0, None, false);
        Ok(Some(body))
    }
}

/// Reads the header's number, also behind a banner that has no line end.
fn announced_length(line: &[u8]) -> Option<u64> {
    let at = line.windows(LENGTH.len()).rposition(|name| name.eq_ignore_ascii_case(LENGTH))?;
    let digits = line.get(at + LENGTH.len()..)?.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Only a number too large for its type fails now, and that is over the cap.
    Some(std::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX))
}

/// Reads frames from a pipe.
#[derive(Debug)]
pub struct FrameReader<R> {
    from: R,
    decoder: Decoder,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Starts at the next header.
    pub fn new(from: R) -> Self {
        Self { from, decoder: Decoder::default() }
    }

    /// Returns the next body, or `None` at the end, also if that cuts a frame.
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        loop {
            if let Some(body) = self.decoder.next_body()? {
                return Ok(Some(body));
            }
            if self.from.read_buf(self.decoder.room()).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Puts the header before a body.
#[must_use]
pub fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bodies(stream: &[u8], step: usize) -> Result<Vec<String>, FrameError> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for piece in stream.chunks(step) {
            decoder.room().extend_from_slice(piece);
            while let Some(body) = decoder.next_body()? {
                found.push(String::from_utf8(body).unwrap());
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_are_found_in_whatever_pieces_and_dress_they_come() {
        let streams: &[&str] = &[
            "Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]",
            "content-length:2\n\n{}CONTENT-LENGTH:   3  \n\n[1]",
            "Content-Type: x; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}\r\n\r\nContent-Length: 3\r\nContent-Type: y\r\n\r\n[1]",
            "Welcome!\nlog: ready\n\nContent-Length: 2\r\n\r\n{}warn: Content-Length: no\nContent-Length: 3\r\n\r\n[1]",
            "no line endContent-Length: 2\r\n\r\n{}Content-Length: -7\r\nContent-Length: 3\r\n\r\n[1]",
        ];
        for stream in streams {
            for step in [1, 2, 7, 1000] {
                assert_eq!(bodies(stream.as_bytes(), step).unwrap(), ["{}", "[1]"], "{stream:?}");
            }
        }
    }

    #[test]
    fn an_empty_body_is_a_frame() {
        assert_eq!(
            bodies(b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", 5).unwrap(),
            ["", "1"]
        );
    }

    #[test]
    fn endless_junk_and_huge_bodies_are_refused() {
        let junk = vec![b'x'; HEADER_CAP + 1];
        assert!(matches!(bodies(&junk, 999), Err(FrameError::NoHeader)));
        let lines = "log\n".repeat(HEADER_CAP);
        assert!(matches!(bodies(lines.as_bytes(), 999), Err(FrameError::NoHeader)));
        for length in ["67108865", "99999999999999999999999999"] {
            let stream = format!("Content-Length: {length}\r\n\r\n");
            assert!(matches!(bodies(stream.as_bytes(), 9), Err(FrameError::BodyTooLong(_))));
        }
    }

    #[tokio::test]
    async fn a_reader_ends_with_its_pipe_also_within_a_frame() {
        let stream: &[u8] = b"Content-Length: 2\r\n\r\n{}Content-Length: 9\r\n\r\n{";
        let mut reader = FrameReader::new(stream);
        assert_eq!(reader.next().await.unwrap().unwrap(), b"{}");
        assert!(reader.next().await.unwrap().is_none());
    }

    #[test]
    fn what_is_framed_is_found_again() {
        let stream = [framed(b"{\"a\":1}"), framed("\"é\"".as_bytes())].concat();
        assert_eq!(bodies(&stream, 3).unwrap(), ["{\"a\":1}", "\"é\""]);
    }
}
