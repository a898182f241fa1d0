//! What host and runner say to each other: a JSON object per line, on descriptors of
//! their own. Frames are read leniently: a field that is not there is empty.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ports::Block;

/// The longest line that is taken: a result of 32 MiB and what is around it.
pub const LONGEST_FRAME: usize = 40 << 20;
/// The longest arguments that a cell may give to a tool, in bytes of JSON.
pub const LONGEST_ARGUMENTS: usize = 8 << 20;
/// The longest result that a cell is given, in bytes of JSON.
pub const LONGEST_RESULT: usize = 32 << 20;

/// A display or a value: its forms by MIME type.
pub type Bundle = Map<String, Value>;

/// What a runner says.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Frame {
    /// It is up.
    Ready(Ready),
    /// Something to show, at its mark in the text.
    Display { cell: u64, seq: u64, data: Bundle },
    /// A cell calls a tool.
    Tool { cell: u64, id: u64, name: String, arguments: Value },
    /// A cell asks for another window of inactivity.
    Budget { cell: u64, seconds: f64 },
    /// A cell is over.
    Done(Done),
    /// It answers a probe.
    Alive { n: u64 },
    /// A snapshot stands, or why none does.
    Kept { skipped: Option<String> },
    /// A snapshot has taken over.
    Woken {
        pid: u32,
        cell: u64,
        #[serde(default)]
        variables: Vec<(String, String)>,
    },
    /// What was asked for cannot be done.
    Refused { why: String },
}

/// A runner that is up.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// Proves that it is ours.
    pub nonce: String,
    /// The interpreter's version.
    pub version: String,
    /// Its path, as it knows itself.
    pub executable: String,
}

/// How a cell ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// To its end.
    Ok,
    /// By an exception.
    Error,
    /// By an interrupt.
    Interrupted,
    /// By `exit()`.
    Exit,
}

/// A cell that is over.
#[derive(Clone, Debug, Deserialize)]
pub struct Done {
    /// Which one.
    pub cell: u64,
    /// How it ended.
    pub status: Status,
    /// What its last expression came to.
    #[serde(default)]
    pub value: Option<Bundle>,
    /// The traceback.
    #[serde(default)]
    pub error: Option<String>,
    /// What else is worth a line.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What it did to the variables.
    #[serde(default)]
    pub variables: Variables,
}

/// What a cell did to the variables: names, and what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Variables {
    /// Those that were not there before.
    pub new: Vec<(String, String)>,
    /// Those that hold something else now.
    pub changed: Vec<(String, String)>,
    /// Those that are not there any more.
    pub gone: Vec<String>,
}

/// What a bridged call came to.
#[derive(Clone, Debug)]
pub enum Bridged {
    /// A result.
    Ok {
        /// Its content.
        content: Vec<Block>,
        /// The same facts for programs.
        details: Value,
    },
    /// None.
    Error {
        /// `denied`, `failed` or `cancelled`.
        kind: &'static str,
        /// Why.
        text: String,
        /// The same facts for programs.
        details: Value,
    },
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

pub(super) fn run(cell: u64, code: &str, shift: usize) -> Vec<u8> {
    line(&json!({ "op": "run", "cell": cell, "code": code, "shift": shift }))
}

pub(super) fn probe(n: u64) -> Vec<u8> {
    line(&json!({ "op": "probe", "n": n }))
}

pub(super) fn undo() -> Vec<u8> {
    line(&json!({ "op": "undo" }))
}

pub(super) fn reply(id: u64, bridged: &Bridged) -> Vec<u8> {
    let whole = match bridged {
        Bridged::Ok { content, details } => {
            let mut text = Vec::new();
            let mut images = Vec::new();
            for block in content {
                match block {
                    Block::Text { text: piece } => text.push(piece.as_str()),
                    Block::Image { mime_type, data } => {
                        images.push(json!({ "mime_type": mime_type, "data": data }));
                    }
                }
            }
            let text = text.join("\n");
            json!({ "op": "reply", "id": id,
                "ok": { "text": text, "images": images, "details": details } })
        }
        Bridged::Error { kind, text, details } => {
            json!({ "op": "reply", "id": id,
                "error": { "kind": kind, "text": text, "details": details } })
        }
    };
    let whole = line(&whole);
    if whole.len() <= LONGEST_RESULT {
        return whole;
    }
    let text = format!(
        "the result is {} bytes, over the limit of {LONGEST_RESULT}: ask for less of it at once",
        whole.len()
    );
    line(&json!({ "op": "reply", "id": id,
        "error": { "kind": "failed", "text": text, "details": {} } }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn frames_are_read_leniently() {
        let done: Frame =
            serde_json::from_str(r#"{"kind":"done","cell":7,"status":"exit","more":1}"#).unwrap();
        let Frame::Done(done) = done else { panic!("{done:?}") };
        assert_eq!((done.cell, done.status), (7, Status::Exit));
        assert_eq!(done.variables, Variables::default());
    }

    #[test]
    fn a_result_over_the_limit_is_an_error_that_says_so() {
        let text = "x".repeat(LONGEST_RESULT);
        let bridged = Bridged::Ok { content: vec![Block::Text { text }], details: Value::Null };
        let line = reply(3, &bridged);
        let said: Value = serde_json::from_slice(&line).unwrap();
        assert!(said["error"]["text"].as_str().unwrap().contains("over the limit"), "{said}");
    }
}
