//! The servers that are measured, and the same two lines of Python that all are asked about.

use std::path::{Path, PathBuf};

use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

#[path = "../../tests/language_server/installed.rs"]
mod installed;

/// What is asked of a warm server.
pub(crate) const HOVER: &str = "textDocument/hover";
/// The file.
pub(crate) const TEXT: &str = "value = 1\nprint(value)\n";
/// The same file with something wrong in it, for each server.
pub(crate) const BROKEN: &str = "value = ERROR\nprint(value)\n";

/// One server to measure.
#[derive(Clone)]
pub(crate) struct Server {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Its program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// How often it is asked.
    pub(crate) times: usize,
}

/// Returns the native server that is built from the fixtures.
pub(crate) fn scripted() -> Server {
    let here = std::env::current_exe().unwrap();
    let program = here.ancestors().nth(2).unwrap().join("examples/scripted_server");
    assert!(program.exists(), "{}: build the examples first", program.display());
    Server { name: "scripted", program, args: Vec::new(), times: 5000 }
}

/// Returns pyright, or says where it was looked for in vain.
pub(crate) fn pyright() -> Option<Server> {
    let Some((node, entry)) = installed::pyright() else {
        let folder = std::env::var("HOSTLER_TOOLS").unwrap_or_default();
        println!(
            "skipped, the rows of pyright: no pyright-langserver below HOSTLER_TOOLS={folder:?}, \
             or no node in PATH (`make setup` installs it)\n"
        );
        return None;
    };
    let args = vec![entry.display().to_string(), "--stdio".to_owned()];
    Some(Server { name: "pyright", program: node, args, times: 1000 })
}

/// Returns the question about the word in the second line.
pub(crate) fn question(path: &Path) -> Value {
    let position = json!({ "line": 1, "character": 8 });
    json!({ "textDocument": { "uri": uri::of_path(path) }, "position": position })
}
