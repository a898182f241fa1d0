//! Transcripts: one append-only file of JSON lines per run.
//!
//! A thread of its own writes them, so that no actor ever waits for the disk. A
//! file is opened with its first line and closed with its run: thousands of idle
//! runs hold no descriptor. A failure is kept for `status`.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use hostler_actors::ids::RunId;
use hostler_actors::ports::Transcripts;
use serde_json::Value;

/// Lines that may wait for the disk; more are dropped and counted, so that a disk
/// that hangs cannot fill the memory. The places are made at the start, so they are
/// small as well.
const QUEUE: usize = 4_096;

/// Files held open at once.
const OPEN: usize = 64;

enum Entry {
    Line(RunId, Box<(u128, Value)>),
    Close(RunId),
    Flushed(SyncSender<()>),
}

/// Writes transcripts below one folder.
#[derive(Debug)]
pub(crate) struct TranscriptFiles {
    entries: SyncSender<Entry>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl TranscriptFiles {
    /// Starts the writer. The folder is made with the first line.
    pub(crate) fn new(folder: &Path) -> std::io::Result<Self> {
        let (entries, inbox) = sync_channel(QUEUE);
        let trouble = Arc::default();
        let writer = Writer {
            folder: folder.to_owned(),
            files: HashMap::new(),
            trouble: Arc::clone(&trouble),
        };
        std::thread::Builder::new()
            .name("transcripts".to_owned())
            .spawn(move || writer.write(&inbox))?;
        Ok(Self { entries, trouble })
    }

    /// Returns what last went wrong.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until everything said so far is in its file.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.entries.send(Entry::Flushed(done)).is_ok() {
            let _ = wait.recv();
        }
    }

    fn enter(&self, entry: Entry) {
        if self.entries.try_send(entry).is_err() {
            set(&self.trouble, format!("more than {QUEUE} lines wait for the disk; some are lost"));
        }
    }
}

fn set(trouble: &Mutex<Option<String>>, text: String) {
    tracing::error!("transcripts: {text}");
    *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
}

impl Transcripts for TranscriptFiles {
    fn append(&self, run: RunId, line: Value) {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
        self.enter(Entry::Line(run, Box::new((now, line))));
    }

    fn close(&self, run: RunId) {
        self.enter(Entry::Close(run));
    }
}

struct Writer {
    folder: PathBuf,
    files: HashMap<RunId, File>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Writer {
    fn write(mut self, inbox: &Receiver<Entry>) {
        while let Ok(entry) = inbox.recv() {
            match entry {
                Entry::Line(run, said) => {
                    let (at, line) = *said;
                    if let Err(error) = self.append(run, at, line) {
                        let folder = self.folder.display();
                        set(&self.trouble, format!("{folder}: {run}: a line is lost: {error}"));
                    }
                }
                Entry::Close(run) => {
                    self.files.remove(&run);
                }
                Entry::Flushed(done) => {
                    let _ = done.send(());
                }
            }
        }
    }

    fn append(&mut self, run: RunId, at: u128, mut line: Value) -> std::io::Result<()> {
        if let Some(fields) = line.as_object_mut() {
            fields.insert("at_ms".to_owned(), Value::from(u64::try_from(at).unwrap_or(u64::MAX)));
        }
        let mut text = line.to_string();
        text.push('\n');
        self.file(run)?.write_all(text.as_bytes())
    }

    fn file(&mut self, run: RunId) -> std::io::Result<&mut File> {
        if self.files.len() >= OPEN && !self.files.contains_key(&run) {
            self.files.clear();
        }
        Ok(match self.files.entry(run) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                let path = self.folder.join(format!("{run}.jsonl"));
                free.insert(OpenOptions::new().append(true).create(true).mode(0o600).open(path)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_appended_in_order_also_after_a_close() {
        let folder = tempfile::tempdir().unwrap();
        let files = TranscriptFiles::new(folder.path()).unwrap();
        let run = RunId(0xa);
        files.append(run, json!({"n": 1}));
        files.close(run);
        files.append(run, json!({"n": 2}));
        files.flush();
        let text = std::fs::read_to_string(folder.path().join("ra.jsonl")).unwrap();
        let numbers: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["n"].clone())
            .collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(files.trouble(), None);
    }

    #[test]
    fn a_disk_that_refuses_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        std::fs::write(&taken, "a file").unwrap();
        let files = TranscriptFiles::new(&taken).unwrap();
        files.append(RunId(1), json!({}));
        files.flush();
        let trouble = files.trouble().unwrap();
        assert!(trouble.contains("r1: a line is lost"), "{trouble}");
    }
}
