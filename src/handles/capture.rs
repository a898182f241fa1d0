//! Output as it comes in: head and tail for the model, all of it by handle.
//!
//! While it is short it stays in memory. Beyond that a handle is opened, and what is
//! shown is cut at whole lines where there are any. A disk that is full loses the
//! middle, never the call: the text then says what is missing and why.

use std::collections::VecDeque;

use super::{Handle, OutputHandles, Spill};

/// Output that is being taken in.
#[derive(Debug)]
pub(crate) struct Capture {
    handles: OutputHandles,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    kept: u64,
    spill: Place,
}

#[derive(Debug)]
enum Place {
    Memory,
    File(Spill),
    Lost(String),
}

/// A text as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clipped {
    /// What is shown.
    pub(crate) text: String,
    /// Where all of it is, if that is more.
    pub(crate) handle: Option<Handle>,
    /// How many bytes there were.
    pub(crate) bytes: u64,
}

impl Capture {
    /// Begins with nothing.
    pub(crate) fn new(handles: &OutputHandles) -> Self {
        Self {
            handles: handles.clone(),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            kept: 0,
            spill: Place::Memory,
        }
    }

    /// Says whether so many more bytes would touch no disk.
    pub(crate) fn stays_short(&self, more: usize) -> bool {
        matches!(self.spill, Place::Memory) && self.head.len() + more <= self.handles.shown()
    }

    /// Takes in a piece. Blocks on the disk where the whole is long.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if matches!(self.spill, Place::Memory) {
            self.head.extend_from_slice(bytes);
            if self.head.len() > self.handles.shown() {
                self.spill();
            }
            return;
        }
        self.keep(bytes);
        self.tail.extend(bytes);
        let half = self.handles.shown() / 2;
        self.tail.drain(..self.tail.len().saturating_sub(half));
    }

    /// Opens the handle now, for output that goes on after it was shown. Blocks.
    pub(crate) fn spill(&mut self) {
        if !matches!(self.spill, Place::Memory) {
            return;
        }
        self.spill = match self.handles.begin() {
            Ok(spill) => Place::File(spill),
            Err(error) => Place::Lost(error.to_string()),
        };
        let all = std::mem::take(&mut self.head);
        self.keep(&all);
        let half = self.handles.shown() / 2;
        let (head, tail) = all.split_at(all.len().min(half));
        self.head = head.to_vec();
        self.tail = tail.iter().skip(tail.len().saturating_sub(half)).copied().collect();
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Place::File(spill) = &mut self.spill {
            match spill.append(bytes) {
                Ok(kept) => self.kept += kept as u64,
                Err(error) => self.spill = Place::Lost(error.to_string()),
            }
        }
    }

    /// Returns where all of it is, once that is more than is shown.
    pub(crate) fn handle(&self) -> Option<Handle> {
        match &self.spill {
            Place::File(spill) => Some(spill.handle()),
            Place::Memory | Place::Lost(_) => None,
        }
    }

    /// Returns what is shown of what came in so far.
    pub(crate) fn clipped(&self) -> Clipped {
        let (handle, bytes) = (self.handle(), self.total);
        let shown = (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if bytes <= shown {
            let all = [self.head.as_slice(), &tail].concat();
            return Clipped { text: String::from_utf8_lossy(&all).into_owned(), handle, bytes };
        }
        let (head, tail) = (whole_lines_of_head(&self.head), whole_lines_of_tail(&tail));
        let text = format!(
            "{}{}[... {} bytes left out here; {} ...]\n{}",
            String::from_utf8_lossy(head),
            if head.ends_with(b"\n") { "" } else { "\n" },
            bytes - (head.len() + tail.len()) as u64,
            self.whereabouts(),
            String::from_utf8_lossy(tail)
        );
        Clipped { text, handle, bytes }
    }

    fn whereabouts(&self) -> String {
        match &self.spill {
            Place::File(spill) if self.kept == self.total => {
                format!("all {} bytes: read {}", self.total, spill.handle())
            }
            Place::File(spill) => format!(
                "the first {} of {} bytes, which is the limit: read {}",
                self.kept,
                self.total,
                spill.handle()
            ),
            Place::Lost(why) => format!("they could not be kept: {why}"),
            Place::Memory => String::new(),
        }
    }
}

/// Cuts a text down to what is shown. Blocks on the disk where it is long.
pub(crate) fn clip(handles: &OutputHandles, text: String) -> Clipped {
    if text.len() <= handles.shown() {
        let bytes = text.len() as u64;
        return Clipped { text, handle: None, bytes };
    }
    let mut capture = Capture::new(handles);
    capture.push(text.as_bytes());
    capture.clipped()
}

/// Drops the line that was cut, unless that is nearly everything.
fn whole_lines_of_head(head: &[u8]) -> &[u8] {
    let end = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = if end < head.len() / 2 { character_start(head, head.len()) } else { end };
    head.get(..end).unwrap_or(head)
}

fn whole_lines_of_tail(tail: &[u8]) -> &[u8] {
    let start = tail.iter().position(|byte| *byte == b'\n').map_or(tail.len(), |at| at + 1);
    let start = if start > tail.len() / 2 {
        tail.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(0)
    } else {
        start
    };
    tail.get(start..).unwrap_or(tail)
}

/// Moves an end back to where a character that may be cut begins.
fn character_start(bytes: &[u8], end: usize) -> usize {
    let cut = bytes.iter().rev().take(4).position(|byte| byte & 0xC0 != 0x80);
    cut.map_or(end, |back| end - back - 1)
}
