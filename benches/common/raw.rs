//! The floor: a server on its own pipes, from blocking code, with no more than the
//! protocol needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use crate::server::{HOVER, Server, TEXT, question};

/// A server that was started and has the file open.
pub(crate) struct Raw {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
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
        let mut command = Command::new(&server.program);
        command.args(&server.args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut raw = Self { child, to, from, path, last: 0, version: 1, _folder: folder };
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
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "id": id, "jsonrpc": "2.0", "method": method, "params": params }));
        loop {
            let mut message = self.read();
            if message.get("method").is_none() && message["id"] == json!(id) {
                break message["result"].take();
            }
        }
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.to.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the server died");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
