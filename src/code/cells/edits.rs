//! Edits of one text, collected in any order and made at once.

use std::ops::Range;

/// Edits of one text. None overlaps another, but inside what is blanked all are lost.
pub(super) struct Edits<'t> {
    text: &'t str,
    /// Where, whether it comes after what else is put at that place, and what.
    edits: Vec<(Range<usize>, Side, String)>,
}

/// Of several edits that begin at one place: what ends there comes before what begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Ends,
    Begins,
    Replaces,
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Puts a text before what begins at a place.
    pub(super) fn insert(&mut self, at: usize, text: String) {
        self.edits.push((at..at, Side::Begins, text));
    }

    /// Puts a text after what ends at a place.
    pub(super) fn insert_after(&mut self, at: usize, text: String) {
        self.edits.push((at..at, Side::Ends, text));
    }

    /// Replaces a text.
    pub(super) fn replace(&mut self, span: Range<usize>, text: String) {
        self.edits.push((span, Side::Replaces, text));
    }

    /// Replaces a text by blanks, its lines kept.
    pub(super) fn blank(&mut self, span: Range<usize>) {
        let old = self.text.get(span.clone()).unwrap_or_default();
        let blanks = old.chars().map(|char| if char == '\n' { '\n' } else { ' ' }).collect();
        self.replace(span, blanks);
    }

    /// Makes them.
    pub(super) fn applied(mut self) -> String {
        // Stable: what was put at one place stays in its order. Of two that replace from
        // one place, the longer holds the other.
        self.edits.sort_by_key(|(span, side, _)| (span.start, *side, std::cmp::Reverse(span.end)));
        let mut made = String::with_capacity(self.text.len() + 64);
        let mut done = 0;
        for (span, _, text) in &self.edits {
            if span.start < done {
                continue;
            }
            made.push_str(self.text.get(done..span.start).unwrap_or_default());
            made.push_str(text);
            done = span.end;
        }
        made.push_str(self.text.get(done..).unwrap_or_default());
        made
    }
}
