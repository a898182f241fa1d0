//! Finds the runner's marks in the text pipe, pure.
//!
//! A mark is `RS nonce:cell:what RS`, written at once by the runner and so never torn
//! by other writers; a read may end inside one all the same. What merely looks like the
//! begin of a mark is text.

/// Opens and closes a mark.
const RS: u8 = 0x1e;
/// The longest that stands between the two: nonce, numbers and colons.
const LONGEST: usize = 120;

/// What is found in the text, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Text.
    Text(&'a [u8]),
    /// The text of a cell begins.
    Begin(u64),
    /// A display of a cell belongs here.
    Display(u64, u64),
    /// All text of a cell has come.
    End(u64),
}

/// Takes a stream apart, read by read.
#[derive(Debug)]
pub(super) struct Splitter {
    nonce: String,
    held: Vec<u8>,
}

impl Splitter {
    pub(super) fn new(nonce: String) -> Self {
        Self { nonce, held: Vec::new() }
    }

    /// Takes what was read, and hands on what it is.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Piece<'_>)) {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            joined.as_slice()
        };
        while let Some(at) = rest.iter().position(|byte| *byte == RS) {
            let (text, from) = rest.split_at(at);
            emit(text, &mut take);
            let inside = from.get(1..).unwrap_or_default();
            match inside.iter().take(LONGEST).position(|byte| *byte == RS) {
                Some(end) => match self.read(inside.get(..end).unwrap_or_default()) {
                    Some(piece) => {
                        take(piece);
                        rest = inside.get(end + 1..).unwrap_or_default();
                    }
                    // The second may be the first of a true one.
                    None => {
                        let (text, more) = from.split_at(end + 1);
                        emit(text, &mut take);
                        rest = more;
                    }
                },
                None if inside.len() < LONGEST => {
                    self.held = from.to_vec();
                    return;
                }
                None => {
                    let (text, more) = from.split_at(1);
                    emit(text, &mut take);
                    rest = more;
                }
            }
        }
        emit(rest, &mut take);
    }

    /// Hands on what was held back, as nothing more comes.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Piece<'_>)) {
        emit(&std::mem::take(&mut self.held), &mut take);
    }

    fn read(&self, inside: &[u8]) -> Option<Piece<'static>> {
        let text = std::str::from_utf8(inside).ok()?;
        let (cell, what) =
            text.strip_prefix(self.nonce.as_str())?.strip_prefix(':')?.split_once(':')?;
        let cell = cell.parse().ok()?;
        match what {
            "begin" => Some(Piece::Begin(cell)),
            "end" => Some(Piece::End(cell)),
            seq => Some(Piece::Display(cell, seq.parse().ok()?)),
        }
    }
}

fn emit(text: &[u8], take: &mut impl FnMut(Piece<'_>)) {
    if !text.is_empty() {
        take(Piece::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` ends a read, `^` is the separator, `N` the nonce.
    fn split(script: &str) -> String {
        let mut splitter = Splitter::new("N".to_owned());
        let mut said = String::new();
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Text(text) => said.push_str(&String::from_utf8_lossy(text).replace('\x1e', "^")),
            Piece::Begin(cell) => said.push_str(&format!("<{cell}")),
            Piece::Display(cell, seq) => said.push_str(&format!("[{cell}.{seq}]")),
            Piece::End(cell) => said.push_str(&format!("{cell}>")),
        };
        for read in script.replace('^', "\x1e").split('|') {
            splitter.push(read.as_bytes(), &mut take);
        }
        splitter.finish(&mut take);
        said
    }

    #[test]
    fn marks_are_found_wherever_reads_end() {
        let whole = "^N:7:begin^one^N:7:1^two^N:7:end^late";
        let expected = "<7one[7.1]two7>late";
        assert_eq!(split(whole), expected);
        for at in 1..whole.len() {
            let (head, tail) = whole.split_at(at);
            assert_eq!(split(&format!("{head}|{tail}")), expected, "cut at {at}");
        }
    }

    #[test]
    fn what_only_looks_like_a_mark_is_text() {
        assert_eq!(split("a^b"), "a^b");
        assert_eq!(split("a^M:7:end^N:7:end^b"), "a^M:7:end7>b");
        assert_eq!(split("^^N:7:end^"), "^7>");
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(split(&format!("^{long}^N:7:end^")), format!("^{long}7>"));
        assert_eq!(split("end^"), "end^");
    }
}
