//! The text of a cell as it comes, and where in it its displays belong.

use std::sync::{Mutex, PoisonError};

use hostler_actors::host::workspace::space::conversation::run::interpreter::text::Sink;

use crate::handles::OutputHandles;
use crate::handles::capture::{Capture, Clipped};

struct Collected {
    capture: Capture,
    bytes: usize,
    /// How many bytes of text stand before each display.
    places: Vec<(u64, usize)>,
}

/// Takes the text of a cell.
pub(super) struct Collect(Mutex<Collected>);

/// A piece of what a cell showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text.
    Text(String),
    /// A display, by its number.
    Display(u64),
}

impl Collect {
    pub(super) fn new(handles: &OutputHandles) -> Self {
        let capture = Capture::new(handles);
        Self(Mutex::new(Collected { capture, bytes: 0, places: Vec::new() }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was shown, in its order, and how much text there was. Displays of a
    /// text that is too long to be shown whole stand behind it.
    pub(super) fn pieces(&self) -> (Vec<Piece>, Clipped) {
        let collected = self.lock();
        let clipped = collected.capture.clipped();
        let places = &collected.places;
        let whole = clipped.text.as_bytes();
        if clipped.handle.is_some() || whole.len() != collected.bytes {
            let displays = places.iter().map(|(seq, _)| Piece::Display(*seq));
            let text = Piece::Text(clipped.text.clone());
            return (std::iter::once(text).chain(displays).collect(), clipped);
        }
        let mut pieces = Vec::new();
        let mut from = 0;
        for (seq, at) in places {
            pieces.push(Piece::Text(text(whole, from, *at)));
            pieces.push(Piece::Display(*seq));
            from = *at;
        }
        pieces.push(Piece::Text(text(whole, from, whole.len())));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        (pieces, clipped)
    }
}

fn text(whole: &[u8], from: usize, to: usize) -> String {
    String::from_utf8_lossy(whole.get(from..to).unwrap_or_default()).into_owned()
}

impl Sink for Collect {
    fn text(&self, bytes: &[u8]) {
        let mut collected = self.lock();
        collected.bytes += bytes.len();
        collected.capture.push(bytes);
    }

    fn display(&self, seq: u64) {
        let mut collected = self.lock();
        let at = collected.bytes;
        collected.places.push((seq, at));
    }
}
