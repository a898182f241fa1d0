//! The bounded ring that holds the end of what a process wrote.
//!
//! Bytes, not lines: a process that never ends its line must not be able to fill
//! the memory or to block on a full pipe.

use std::collections::VecDeque;

/// How many bytes are kept.
pub(super) const RING: usize = 64 * 1024;

/// The last [`RING`] bytes.
#[derive(Debug, Default)]
pub(super) struct Ring(VecDeque<u8>);

impl Ring {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(RING)..).unwrap_or(bytes);
        let over = (self.0.len() + kept.len()).saturating_sub(RING);
        self.0.drain(..over);
        self.0.extend(kept);
    }

    /// The last `lines` lines; bytes that are not UTF-8 are replaced.
    pub(super) fn tail(&self, lines: usize) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let from = match lines {
            0 => text.len(),
            _ => text.rmatch_indices('\n').nth(lines - 1).map_or(0, |(at, _)| at + 1),
        };
        text.get(from..).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let mut ring = Ring::default();
        assert_eq!(ring.tail(3), "");
        ring.push(b"one\ntwo\nthree\n");
        assert_eq!(ring.tail(0), "");
        assert_eq!(ring.tail(1), "three");
        assert_eq!(ring.tail(2), "two\nthree");
        assert_eq!(ring.tail(9), "one\ntwo\nthree");
        ring.push(&vec![b'x'; RING - 3]);
        assert_eq!(ring.0.len(), RING);
        assert!(ring.tail(9).starts_with("ee\nxx"));
        ring.push(&vec![b'y'; RING * 3]);
        assert_eq!(ring.tail(9), "y".repeat(RING));
        ring.push("ä".as_bytes());
        assert!(ring.tail(1).ends_with('ä'));
    }
}
