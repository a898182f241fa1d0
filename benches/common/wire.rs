//! The floor of a verdict: a server on its own pipes, from blocking code, asked by the
//! sign by which the host takes its verdict for final, and by nothing more.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use crate::framed::Framed;

/// By which sign a verdict is final.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sign {
    Pull,
    TsserverSync,
    FileStatus,
    VersionedPush,
}

/// A server that was started and has one file open.
pub(crate) struct Wire {
    wire: Framed,
    file: PathBuf,
    text: String,
    sign: Sign,
    ranged: bool,
    last: u64,
    version: i64,
    /// The version last published, and how many errors and warnings it had.
    published: (i64, usize),
    idle: bool,
}

impl Wire {
    /// Starts it, shakes hands and opens the file.
    pub(crate) fn start(
        program: &Path,
        args: &[&str],
        options: &Value,
        sign: Sign,
        (root, file, language): (&Path, &str, &str),
    ) -> Self {
        let mut command = Command::new(program);
        command.args(args).current_dir(root).stderr(Stdio::null());
        let file = root.join(file);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut wire = Self {
            wire: Framed::start(&mut command),
            file,
            text,
            sign,
            ranged: false,
            last: 0,
            version: 1,
            published: (0, 0),
            idle: false,
        };
        let root = uri::of_path(root);
        let capabilities = json!({
            "textDocument": {
                "diagnostic": {},
                "publishDiagnostics": { "versionSupport": true },
                "documentSymbol": {},
            },
            "workspace": { "configuration": true },
        });
        let answer = wire.ask(
            "initialize",
            &json!({ "processId": null, "rootUri": root, "capabilities": capabilities,
                "workspaceFolders": [{ "uri": root, "name": "bench" }],
                "initializationOptions": options }),
        );
        let sync = &answer["capabilities"]["textDocumentSync"];
        wire.ranged = *sync == 2 || sync["change"] == 2;
        wire.say("initialized", &json!({}));
        let document =
            json!({ "uri": wire.uri(), "languageId": language, "version": 1, "text": wire.text });
        wire.say("textDocument/didOpen", &json!({ "textDocument": document }));
        wire.judged();
        wire
    }

    fn uri(&self) -> String {
        uri::of_path(&self.file)
    }

    /// Gives the file a new text and returns how many errors and warnings it has then.
    pub(crate) fn verdict(&mut self, text: &str) -> usize {
        std::fs::write(&self.file, text).unwrap();
        self.version += 1;
        let mut change = json!({ "text": text });
        if self.ranged {
            let end = json!({ "line": self.text.lines().count(), "character": 0 });
            change["range"] = json!({ "start": { "line": 0, "character": 0 }, "end": end });
        }
        self.text = text.to_owned();
        let document = json!({ "uri": self.uri(), "version": self.version });
        let changes = json!({ "textDocument": document, "contentChanges": [change] });
        self.idle = false;
        self.say("textDocument/didChange", &changes);
        self.judged()
    }

    fn judged(&mut self) -> usize {
        let document = json!({ "textDocument": { "uri": self.uri() } });
        match self.sign {
            Sign::Pull => count(&self.ask("textDocument/diagnostic", &document)["items"]),
            Sign::TsserverSync => {
                let commands = ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"];
                let file = json!({ "file": self.file });
                let ask = |command| {
                    let arguments = json!([command, file]);
                    let params =
                        json!({ "command": "typescript.tsserverRequest", "arguments": arguments });
                    let answer = self.ask("workspace/executeCommand", &params);
                    answer["body"].as_array().map_or(0, Vec::len)
                };
                commands.map(ask).into_iter().sum()
            }
            Sign::FileStatus => loop {
                self.ask("textDocument/documentSymbol", &document);
                if self.idle && self.published.0 == self.version {
                    return self.published.1;
                }
                self.next();
            },
            Sign::VersionedPush => {
                while self.published.0 != self.version {
                    self.next();
                }
                self.published.1
            }
        }
    }

    fn say(&mut self, method: &str, params: &Value) {
        self.wire.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.wire.send(&json!({ "id": id, "jsonrpc": "2.0", "method": method, "params": params }));
        loop {
            let mut message = self.next();
            if message.get("method").is_none() && message["id"] == id {
                return message["result"].take();
            }
        }
    }

    /// Reads one message, and answers it where the server asks.
    fn next(&mut self) -> Value {
        let message = self.wire.read();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("textDocument/publishDiagnostics") if params["uri"] == self.uri() => {
                let version = params["version"].as_i64().unwrap_or(0);
                self.published = (version, count(&params["diagnostics"]));
            }
            Some("textDocument/clangd.fileStatus") if params["uri"] == self.uri() => {
                self.idle = params["state"] == "idle";
            }
            Some(method) if !message["id"].is_null() => {
                let result = match method {
                    "workspace/configuration" => {
                        json!(vec![Value::Null; params["items"].as_array().map_or(0, Vec::len)])
                    }
                    _ => Value::Null,
                };
                self.wire.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            }
            _ => {}
        }
        message
    }
}

/// Errors and warnings.
fn count(items: &Value) -> usize {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter(|item| item["severity"].as_u64().is_none_or(|severity| severity <= 2))
        .count()
}
