//! The floor: a server on its own pipes, from blocking code, with no more than the
//! protocol needs.

use std::path::PathBuf;
use std::process::Command;

use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use crate::framed::Framed;
use crate::server::{HOVER, Server, TEXT, question};

/// A server that was started and has the file open.
pub(crate) struct Raw {
    wire: Framed,
    path: PathBuf,
    last: usize,
    version: usize,
    _folder: tempfile::TempDir,
}

impl Raw {
    /// Starts it and shakes hands.
    pub(crate) fn start(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a.py");
        std::fs::write(&path, TEXT).unwrap();
        let wire = Framed::start(Command::new(&server.program).args(&server.args));
        let mut raw = Self { wire, path, last: 0, version: 1, _folder: folder };
        let root = uri::of_path(raw.path.parent().unwrap());
        raw.ask(
            "initialize",
            &json!({ "processId": null, "rootUri": root, "capabilities": {},
                "workspaceFolders": [{ "uri": root, "name": "bench" }] }),
        );
        raw.say("initialized", &json!({}));
        let document = json!({ "uri": raw.uri(), "languageId": "python", "version": 1,
            "text": TEXT });
        raw.say("textDocument/didOpen", &json!({ "textDocument": document }));
        raw
    }

    fn uri(&self) -> String {
        uri::of_path(&self.path)
    }

    /// Asks the one question.
    pub(crate) fn hover(&mut self) {
        let question = question(&self.path);
        assert!(self.ask(HOVER, &question)["contents"].is_object());
    }

    /// Gives the file a new text and returns how many errors it has then.
    pub(crate) fn verdict(&mut self, text: &str) -> usize {
        std::fs::write(&self.path, text).unwrap();
        self.version += 1;
        let document = json!({ "uri": self.uri(), "version": self.version });
        let changes = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.say("textDocument/didChange", &changes);
        let report =
            self.ask("textDocument/diagnostic", &json!({ "textDocument": { "uri": self.uri() } }));
        report["items"].as_array().unwrap().len()
    }

    fn say(&mut self, method: &str, params: &Value) {
        self.wire.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.wire.send(&json!({ "id": id, "jsonrpc": "2.0", "method": method, "params": params }));
        loop {
            let mut message = self.wire.read();
            if message.get("method").is_none() && message["id"] == json!(id) {
                break message["result"].take();
            }
        }
    }
}
