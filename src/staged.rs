//! Changes that were proposed and wait for a word: a run's own, gone with it.
//!
//! An edit is taken out to be applied, so that it is applied once; what became of it is
//! remembered by its number. Each has a row in `status` below the run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hostler_actors::status::{Anchor, NodeKind, StatusEntry};

use crate::folder::commit::Step;

/// Bytes of new contents that wait in one run.
const BYTES: usize = 64 * 1024 * 1024;
/// Edits that wait in one run.
const EDITS: usize = 16;
/// Ends that are remembered.
const ENDED: usize = 1_000;

/// One proposed change.
#[derive(Debug)]
pub(crate) struct Edit {
    /// Its number.
    number: u32,
    /// What it is, in words.
    pub(crate) what: String,
    /// The steps.
    pub(crate) steps: Vec<Step>,
    bytes: usize,
    _row: StatusEntry,
}

/// What became of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Accepted,
    Discarded,
    Refused,
}

/// Why an edit is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoEdit {
    /// There never was one.
    #[error("there is no staged edit `{given}`{waiting}")]
    Unknown { given: String, waiting: String },
    /// It is over.
    #[error("{id} {end}: stage it again if it is still wanted")]
    Over { id: String, end: &'static str },
    /// No room for another.
    #[error(
        "{count} edits with {bytes} bytes are staged, and the limit is {EDITS} with {BYTES}: \
         accept or discard some, or narrow this one{waiting}"
    )]
    Full { count: usize, bytes: usize, waiting: String },
}

#[derive(Debug, Default)]
struct Edits {
    last: u32,
    waiting: BTreeMap<u32, Edit>,
    ended: BTreeMap<u32, End>,
}

/// The staged edits of a run.
#[derive(Debug)]
pub(crate) struct Staged {
    run: Anchor,
    edits: Mutex<Edits>,
}

impl Edit {
    /// Returns the name under which it is resolved.
    pub(crate) fn id(&self) -> String {
        name(self.number)
    }
}

impl Staged {
    /// Begins with none, to be shown below a run's row.
    pub(crate) fn new(run: Anchor) -> Self {
        Self { run, edits: Mutex::default() }
    }

    fn edits(&self) -> std::sync::MutexGuard<'_, Edits> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stages an edit and returns its id.
    pub(crate) fn stage(&self, what: &str, steps: Vec<Step>) -> Result<String, NoEdit> {
        let bytes = steps
            .iter()
            .map(|step| match step {
                Step::Replace { content, .. } | Step::Create { content, .. } => content.len(),
                Step::Delete { .. } => 0,
            })
            .sum();
        let mut edits = self.edits();
        let waiting: usize = edits.waiting.values().map(|edit| edit.bytes).sum();
        if edits.waiting.len() >= EDITS || waiting + bytes > BYTES {
            return Err(NoEdit::Full {
                count: edits.waiting.len() + 1,
                bytes: waiting + bytes,
                waiting: edits.listed(),
            });
        }
        edits.last += 1;
        let number = edits.last;
        let row = self.run.child(NodeKind::StagedEdit, name(number));
        row.update(|state| {
            state.phase = "staged";
            state.note = Some(what.into());
        });
        let edit = Edit { number, what: what.to_owned(), steps, bytes, _row: row };
        edits.waiting.insert(number, edit);
        Ok(name(number))
    }

    /// Takes an edit out, to be applied or dropped.
    pub(crate) fn take(&self, id: &str) -> Result<Edit, NoEdit> {
        let mut edits = self.edits();
        let number = id.trim().strip_prefix("edit_").unwrap_or(id.trim()).parse().ok();
        if let Some(edit) = number.and_then(|number| edits.waiting.remove(&number)) {
            return Ok(edit);
        }
        match number.and_then(|number: u32| edits.ended.get(&number)) {
            Some(end) => Err(NoEdit::Over { id: id.trim().to_owned(), end: end.words() }),
            None => Err(NoEdit::Unknown { given: id.to_owned(), waiting: edits.listed() }),
        }
    }

    /// Puts back one that was not tried after all.
    pub(crate) fn put_back(&self, edit: Edit) {
        self.edits().waiting.insert(edit.number, edit);
    }

    /// Notes what became of one that was taken.
    pub(crate) fn ended(&self, edit: &Edit, end: End) {
        let mut edits = self.edits();
        edits.ended.insert(edit.number, end);
        if edits.ended.len() > ENDED {
            edits.ended.pop_first();
        }
    }
}

impl Edits {
    fn listed(&self) -> String {
        if self.waiting.is_empty() {
            return ": none is staged".to_owned();
        }
        let listed: Vec<_> =
            self.waiting.values().map(|edit| format!("{} ({})", edit.id(), edit.what)).collect();
        format!("; staged: {}", listed.join(", "))
    }
}

impl End {
    fn words(self) -> &'static str {
        match self {
            Self::Accepted => "was accepted already, and is written",
            Self::Discarded => "was discarded",
            Self::Refused => "was refused and dropped",
        }
    }
}

fn name(number: u32) -> String {
    format!("edit_{number}")
}
