//! The lines of `hostler session`, as types. Protocol 1.
//!
//! What a line may say is fixed by `session`'s documentation; an id is whatever
//! scalar the caller chose, and comes back as it was.

use hostler_actors::ids::RunId;
use hostler_actors::profile::Mode;
use hostler_actors::status::NodeView;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version that the first line out names.
pub(crate) const PROTOCOL: u32 = 1;

/// What a session is opened with. Travels to the daemon as the first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    /// The version of the program that opens it.
    pub(crate) version: String,
    /// The work folder.
    pub(crate) dir: std::path::PathBuf,
    /// The mode of the space.
    pub(crate) mode: Mode,
    /// Keeps or joins a space of this name.
    pub(crate) space: Option<String>,
    /// Joins a run that lives.
    pub(crate) run: Option<RunId>,
    /// The environment that the run's processes get.
    pub(crate) env: Vec<(String, String)>,
}

/// A line in.
#[derive(Debug)]
pub(crate) enum Request {
    /// Makes a tool call.
    Call { tool: String, arguments: Value },
    /// Does something to the session.
    Control(Control),
}

/// Something done to the session, by its operator.
#[derive(Debug, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Control {
    /// Changes the mode from the next turn on.
    SetMode { mode: Mode },
    /// Ends the turn, when its calls have ended, and begins the next.
    NewTurn,
    /// Ends the turn, when its calls have ended.
    EndTurn,
    /// Says that nothing more comes, though the stream stays open. What
    /// `hostler session` sends to a daemon at the end of its own input, so that a
    /// stream that just ends means a peer that is gone.
    EndOfInput,
    /// Tells what goes on.
    Status,
    /// Cancels a call.
    Cancel { target: Value },
    /// Answers a card.
    Answer {
        #[expect(dead_code, reason = "no card can be open before cards exist")]
        card: u64,
        #[serde(default)]
        #[expect(dead_code, reason = "no card can be open before cards exist")]
        choice: Vec<String>,
        #[serde(default)]
        #[expect(dead_code, reason = "no card can be open before cards exist")]
        text: Option<String>,
    },
    /// Declines a card.
    Decline {
        #[expect(dead_code, reason = "no card can be open before cards exist")]
        card: u64,
        #[serde(default)]
        #[expect(dead_code, reason = "no card can be open before cards exist")]
        text: Option<String>,
    },
    /// Decides an approval.
    Decide {
        approval: String,
        #[expect(dead_code, reason = "no approval can be open before approvals exist")]
        decision: String,
        #[serde(default)]
        #[expect(dead_code, reason = "no approval can be open before approvals exist")]
        comment: Option<String>,
    },
}

/// Why a line could not be taken.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    /// Not JSON, or too long.
    BadLine,
    /// JSON, and not a request.
    BadRequest,
    /// The id is in use.
    DuplicateId,
    /// What it speaks of is not there.
    UnknownTarget,
    /// The caller may not.
    NotAllowed,
    /// Something of ours went wrong.
    Internal,
}

/// A line that could not be taken.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) id: Value,
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The number of the line, where it has no id.
    pub(crate) line: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(id: Value, code: Code, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into(), line: None }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(line), Some(object)) = (self.line, error.as_object_mut()) {
            object.insert("line".to_owned(), line.into());
        }
        json!({"id": self.id, "error": error})
    }
}

/// Reads one line in.
pub(crate) fn parse(number: u64, line: &[u8]) -> Result<(Value, Request), Refusal> {
    let bad_line = |message: String| Refusal {
        id: Value::Null,
        code: Code::BadLine,
        message,
        line: Some(number),
    };
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| bad_line(format!("line {number} is not JSON: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(bad_line(format!("line {number} is not a JSON object")));
    };
    let id = fields.remove("id").unwrap_or_default();
    if !(id.is_number() || id.is_string()) {
        let message = format!("line {number}: `id` must be a number or a string, and came as {id}");
        let refusal = Refusal::new(Value::Null, Code::BadRequest, message);
        return Err(Refusal { line: Some(number), ..refusal });
    }
    let bad = |id: &Value, message: String| Refusal::new(id.clone(), Code::BadRequest, message);
    match (fields.remove("call"), fields.contains_key("control")) {
        (Some(Value::String(tool)), false) => {
            let arguments = fields.remove("arguments").unwrap_or_else(|| json!({}));
            match fields.keys().next() {
                Some(field) => Err(bad(&id, format!("a call has no field `{field}`"))),
                None => Ok((id, Request::Call { tool, arguments })),
            }
        }
        (Some(other), false) => {
            Err(bad(&id, format!("`call` must be the name of a tool, and came as {other}")))
        }
        (None, true) => match serde_json::from_value(Value::Object(fields)) {
            Ok(control) => Ok((id, Request::Control(control))),
            Err(error) => Err(bad(&id, format!("not a control: {error}"))),
        },
        (Some(_), true) => Err(bad(&id, "either `call` or `control`, not both".to_owned())),
        (None, false) => Err(bad(&id, "neither `call` nor `control`".to_owned())),
    }
}

/// What the control `status` answers.
#[derive(Debug, Serialize)]
pub(crate) struct StatusAnswer {
    pub(crate) mode: Option<Mode>,
    pub(crate) next_mode: Mode,
    pub(crate) turn: u64,
    pub(crate) calls: Vec<CallAnswer>,
    pub(crate) cards: [Value; 0],
    pub(crate) approvals: [Value; 0],
    pub(crate) resources: Vec<NodeView>,
}

/// One call under way.
#[derive(Debug, Serialize)]
pub(crate) struct CallAnswer {
    /// As the caller named it.
    pub(crate) id: Value,
    pub(crate) tool: String,
    pub(crate) state: &'static str,
    /// Seconds.
    pub(crate) age: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        parse(9, line.as_bytes()).expect_err("a refusal").to_json().to_string()
    }

    #[test]
    fn what_is_no_request_says_why() {
        for (line, expected) in [
            (
                "{",
                r#"{"error":{"code":"bad_line","line":9,"message":"line 9 is not JSON: EOF while parsing an object at line 1 column 1"},"id":null}"#,
            ),
            (
                "[]",
                r#"{"error":{"code":"bad_line","line":9,"message":"line 9 is not a JSON object"},"id":null}"#,
            ),
            (
                r#"{"call":"read"}"#,
                r#"{"error":{"code":"bad_request","line":9,"message":"line 9: `id` must be a number or a string, and came as null"},"id":null}"#,
            ),
            (
                r#"{"id":1}"#,
                r#"{"error":{"code":"bad_request","message":"neither `call` nor `control`"},"id":1}"#,
            ),
            (
                r#"{"id":1,"call":7}"#,
                r#"{"error":{"code":"bad_request","message":"`call` must be the name of a tool, and came as 7"},"id":1}"#,
            ),
            (
                r#"{"id":1,"call":"read","argument":{}}"#,
                r#"{"error":{"code":"bad_request","message":"a call has no field `argument`"},"id":1}"#,
            ),
        ] {
            assert_eq!(refused(line), expected, "{line}");
        }
        let unknown = refused(r#"{"id":1,"control":"explode"}"#);
        assert!(unknown.contains("unknown variant `explode`"), "{unknown}");
    }

    #[test]
    fn controls_and_calls_are_read() {
        for line in [
            r#"{"id":1,"call":"lsp","arguments":{"action":"status"}}"#,
            r#"{"id":"x","call":"lsp"}"#,
            r#"{"id":2,"control":"set_mode","mode":"plan"}"#,
            r#"{"id":3,"control":"new_turn"}"#,
            r#"{"id":5,"control":"cancel","target":1}"#,
            r#"{"id":6,"control":"answer","card":1,"choice":["yes"],"text":null}"#,
            r#"{"id":8,"control":"decide","approval":"a","decision":"approve","comment":null}"#,
        ] {
            assert!(parse(1, line.as_bytes()).is_ok(), "{line}");
        }
    }
}
