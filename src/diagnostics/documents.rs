//! Files as language servers get them: whole, UTF-8, with hash and time of reading.
//!
//! The time is taken *before* the reading: of two readings the later one counts at
//! the server, and a text that was read while somebody wrote must lose.

use std::path::Path;
use std::sync::Arc;

use hostler_actors::host::language_server::documents::{Document, TextHash};
use tokio::time::Instant;

use crate::folder::{Folder, FolderError, Inside};

/// Larger files are not given to a server: it would hold each several times over.
const LARGEST: u64 = 8 * 1024 * 1024;

/// Why a file cannot be given to a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    /// It cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It is no text.
    #[error("{path}: byte {at} is not UTF-8: language servers take only UTF-8 text")]
    NotText { path: String, at: usize },
    /// The thread that read it is gone.
    #[error("{path}: was not read: the host is shutting down")]
    Gone { path: String },
}

impl DocumentError {
    /// Says whether there simply is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Folder(FolderError::Missing { .. }))
    }
}

/// Reads a file of the folder, away from the threads that serve everybody else.
pub(crate) async fn read(
    folder: &Folder,
    file: &Inside,
    language_id: &Arc<str>,
) -> Result<Document, DocumentError> {
    let (folder, inside, language_id) = (folder.clone(), file.clone(), Arc::clone(language_id));
    let reading = tokio::task::spawn_blocking(move || read_now(&folder, &inside, &language_id));
    reading.await.unwrap_or_else(|_| Err(DocumentError::Gone { path: file.name() }))
}

/// The same, for callers that are on such a thread already.
pub(crate) fn read_now(
    folder: &Folder,
    file: &Inside,
    language_id: &Arc<str>,
) -> Result<Document, DocumentError> {
    let read_at = Instant::now();
    let bytes = folder.read(file, LARGEST)?;
    let hash = TextHash(*blake3::hash(&bytes).as_bytes());
    let text = String::from_utf8(bytes).map_err(|error| DocumentError::NotText {
        path: file.name(),
        at: error.utf8_error().valid_up_to(),
    })?;
    Ok(Document {
        path: file.absolute().into(),
        language_id: Arc::clone(language_id),
        text: text.into(),
        hash,
        read_at,
    })
}

/// Returns how a path is shown: relative to the folder where it is inside.
pub(crate) fn shown(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}
