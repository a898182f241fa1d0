//! What can go wrong with a path, in words that name it and the way out.

use std::io;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// The path is no path.
    #[error("`{given}` is not a path: give one relative to the work folder")]
    BadName { given: String },
    /// The path ends up elsewhere.
    #[error(
        "`{given}` leads to {leads_to}, outside the work folder {root}: use a path inside it",
        leads_to = .leads_to.display(), root = .root.display()
    )]
    Outside { given: String, leads_to: PathBuf, root: PathBuf },
    /// There is nothing.
    #[error("{path}: no such file or folder: look for it with glob")]
    Missing { path: String },
    /// Symbolic links go round.
    #[error(
        "{path}: its symbolic links lead round in a circle, or a folder on the way was just \
         replaced by one: name the file itself"
    )]
    Loop { path: String },
    /// It is a folder, a pipe, a device.
    #[error("{path} is {}", kind_and_way_out(*.kind))]
    NotAFile { path: String, kind: FileType },
    /// Something on the way is a file.
    #[error("{path}: a name on the way is a file and not a folder")]
    NotAFolder { path: String },
    /// The system does not let us.
    #[error("{path}: cannot be {doing}: permission denied: ask for its permissions to be changed")]
    Denied { path: String, doing: &'static str },
    /// Its owner said that it must not be written.
    #[error("{path}: is write-protected (mode {mode:04o}): allow it first, with chmod u+w")]
    Protected { path: String, mode: u32 },
    /// It is not what the caller took it for.
    #[error("{path}: changed meanwhile, and nothing was written: read it again")]
    Changed { path: String },
    /// It was to be new.
    #[error("{path}: appeared meanwhile, and nothing was written: read it first")]
    Appeared { path: String },
    /// It is over a limit.
    #[error("{path}: is larger than the limit of {limit} bytes: use bash for it")]
    TooBig { path: String, limit: u64 },
    /// The disk is full.
    #[error("{path}: cannot be {doing}: no space left, and nothing was changed: free some space")]
    Full { path: String, doing: &'static str },
    /// The kernel cannot confine paths.
    #[error("{path}: this kernel lacks openat2, which confines file tools: use Linux 5.6 or later")]
    NoOpenat2 { path: String },
    /// Anything else.
    #[error("{path}: cannot be {doing}: {source}")]
    Io { path: String, doing: &'static str, source: io::Error },
}

impl FolderError {
    /// Names what the system said of a path.
    pub(crate) fn of(path: &str, doing: &'static str, error: impl Into<io::Error>) -> Self {
        let source = error.into();
        let path = path.to_owned();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::Missing { path },
            Some(Errno::LOOP | Errno::XDEV) => Self::Loop { path },
            Some(Errno::NOTDIR) => Self::NotAFolder { path },
            Some(Errno::ACCESS | Errno::PERM) => Self::Denied { path, doing },
            Some(Errno::NOSPC | Errno::DQUOT) => Self::Full { path, doing },
            _ => Self::Io { path, doing, source },
        }
    }
}

fn kind_and_way_out(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder: list it with glob, or name a file in it",
        FileType::Symlink => "a symbolic link: name the file itself",
        FileType::Fifo => "a named pipe and not a regular file: use bash for it",
        FileType::Socket => "a socket and not a regular file: use bash for it",
        FileType::CharacterDevice | FileType::BlockDevice => {
            "a device and not a regular file: use bash for it"
        }
        _ => "not a regular file: use bash for it",
    }
}
