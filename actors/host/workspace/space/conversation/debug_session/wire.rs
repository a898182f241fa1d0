//! The envelope of a message to or from a debug adapter. Pure.
//!
//! Read leniently, since real adapters send less than the schema and more: a `seq`
//! that is always 0 (lldb-dap 19, delve 1.20), no body where one is required, events
//! that nobody defined (`debugpySockets`), a `terminated` with kilobytes of
//! statistics. Only bodies that somebody reads are decoded. Ids are signed: delve's
//! thread of a running program is -1.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::frame::framed;

/// A message from an adapter.
#[derive(Debug)]
pub(super) enum Message {
    /// It answers a request of ours.
    Answer { to: i64, reply: Reply },
    /// Something happened.
    Event { event: String, body: Value },
    /// It asks us for something, and may wait for the answer for ever.
    Request { seq: i64, command: String, arguments: Value },
}

/// What a request came to.
pub(super) type Reply = Result<Value, Fault>;

/// An adapter's refusal, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    text: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    seq: i64,
    #[serde(default)]
    request_seq: i64,
    command: Option<String>,
    event: Option<String>,
    success: Option<bool>,
    message: Option<Value>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The events whose body says something that we use.
const USED: [&str; 7] =
    ["stopped", "continued", "output", "exited", "breakpoint", "capabilities", "thread"];

/// Reads a body; `None` where it is no message.
pub(super) fn read(body: &[u8]) -> Option<Message> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let decoded = |raw: Option<&RawValue>| {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null)
    };
    Some(match envelope.kind.as_str() {
        "response" => {
            let body = decoded(envelope.body);
            let reply = if envelope.success.unwrap_or(false) {
                Ok(body)
            } else {
                let command = envelope.command.as_deref().unwrap_or("the request");
                Err(Fault::read(command, envelope.message.as_ref(), &body))
            };
            Message::Answer { to: envelope.request_seq, reply }
        }
        "event" => {
            let event = envelope.event?;
            let body =
                if USED.contains(&event.as_str()) { decoded(envelope.body) } else { Value::Null };
            Message::Event { event, body }
        }
        "request" => Message::Request {
            seq: envelope.seq,
            command: envelope.command?,
            arguments: decoded(envelope.arguments),
        },
        _ => return None,
    })
}

impl Fault {
    /// Reads the places in which adapters put their words: debugpy in `message`,
    /// lldb-dap 22 in `body.error.format`, delve a general word in the first and the
    /// useful one in the second, dart a template with its variables.
    fn read(command: &str, message: Option<&Value>, body: &Value) -> Self {
        let short = message.and_then(Value::as_str).unwrap_or_default().trim();
        let error = body.get("error").unwrap_or(&Value::Null);
        let format = error.get("format").and_then(Value::as_str).unwrap_or_default();
        let long = expanded(format, error.get("variables").unwrap_or(&Value::Null));
        let long = long.trim();
        let text = match (short, long) {
            ("", "") => format!("it refused `{command}` without a word"),
            (short, "") => short.to_owned(),
            ("", long) => long.to_owned(),
            (short, long) if long.contains(short) => long.to_owned(),
            (short, long) if short.contains(long) => short.to_owned(),
            (short, long) => format!("{short}: {long}"),
        };
        Self { text }
    }
}

fn expanded(format: &str, variables: &Value) -> String {
    let mut text = format.to_owned();
    for (name, value) in variables.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    text
}

/// Writes a request, framed. Optional arguments that are null are left out.
pub(super) fn request(seq: i64, command: &str, mut arguments: Value) -> Vec<u8> {
    let mut message = json!({ "seq": seq, "type": "request", "command": command });
    drop_nulls(&mut arguments);
    if let (Some(message), false) = (message.as_object_mut(), arguments.is_null()) {
        message.insert("arguments".to_owned(), arguments);
    }
    framed(message.to_string().as_bytes())
}

/// Writes an answer to an adapter's request, framed.
pub(super) fn answer(seq: i64, to: i64, command: &str, answer: Result<Value, &str>) -> Vec<u8> {
    let mut message = json!({
        "seq": seq, "type": "response", "request_seq": to, "command": command,
        "success": answer.is_ok(),
    });
    if let Some(message) = message.as_object_mut() {
        match answer {
            Ok(body) if body.is_null() => {}
            Ok(body) => drop(message.insert("body".to_owned(), body)),
            Err(why) => drop(message.insert("message".to_owned(), why.into())),
        }
    }
    framed(message.to_string().as_bytes())
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use expect_test::{Expect, expect};

    fn check(body: &Value, expected: &Expect) {
        expected.assert_eq(&match read(body.to_string().as_bytes()) {
            Some(message) => format!("{message:?}"),
            None => "nothing".to_owned(),
        });
    }

    #[test]
    fn messages_are_read_as_adapters_send_them() {
        check(
            &json!({"seq": 0, "type": "event", "event": "initialized", "body": {}}),
            &expect![[r#"Event { event: "initialized", body: Null }"#]],
        );
        check(
            &json!({"type": "event", "event": "terminated", "statistics": {"a": 1}, "body": {"x": "y"}}),
            &expect![[r#"Event { event: "terminated", body: Null }"#]],
        );
        check(
            &json!({"type": "event", "event": "debugpySockets", "body": [1, {"odd": null}]}),
            &expect![[r#"Event { event: "debugpySockets", body: Null }"#]],
        );
        check(
            &json!({"type": "response", "request_seq": 4, "success": true, "command": "next"}),
            &expect!["Answer { to: 4, reply: Ok(Null) }"],
        );
        check(
            &json!({"seq": 7, "type": "request", "command": "runInTerminal", "arguments": {"args": ["a"]}}),
            &expect![[
                r#"Request { seq: 7, command: "runInTerminal", arguments: Object {"args": Array [String("a")]} }"#
            ]],
        );
        for odd in [json!([]), json!({"type": "event"}), json!({"type": "gossip"}), json!(null)] {
            check(&odd, &expect!["nothing"]);
        }
    }

    fn fault(message: &Value, body: &Value) -> String {
        let response = json!({"type": "response", "request_seq": 1, "success": false,
            "command": "next", "message": message, "body": body});
        match read(response.to_string().as_bytes()).unwrap() {
            Message::Answer { reply: Err(fault), .. } => fault.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_adapters_words_are_found_in_every_place() {
        let error = |error: Value| json!({ "error": error });
        for (message, body, expected) in [
            (json!("No such file"), json!(null), "No such file"),
            (json!(null), error(json!({"format": "does not exist"})), "does not exist"),
            (
                json!("Failed to launch"),
                error(json!({"format": "Failed to launch: too old"})),
                "Failed to launch: too old",
            ),
            (
                json!("Unable to evaluate"),
                error(json!({"format": "no symbol x"})),
                "Unable to evaluate: no symbol x",
            ),
            (
                json!(null),
                error(
                    json!({"format": "{message} ({n})", "variables": {"message": "not paused", "n": 3}}),
                ),
                "not paused (3)",
            ),
            (json!(null), error(json!({})), "it refused `next` without a word"),
            (json!({"odd": 1}), json!([1]), "it refused `next` without a word"),
        ] {
            assert_eq!(fault(&message, &body), expected);
        }
    }

    fn body(frame: Vec<u8>) -> String {
        String::from_utf8(frame).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    #[test]
    fn what_is_optional_and_null_is_not_sent() {
        let arguments = json!({"a": null, "b": {"c": null, "d": false}, "e": [{"f": null}]});
        expect![[r#"{"arguments":{"b":{"d":false},"e":[{}]},"command":"launch","seq":3,"type":"request"}"#]]
            .assert_eq(&body(request(3, "launch", arguments)));
        expect![[r#"{"command":"threads","seq":4,"type":"request"}"#]].assert_eq(&body(request(
            4,
            "threads",
            Value::Null,
        )));
        expect![[r#"{"command":"x","message":"no","request_seq":9,"seq":5,"success":false,"type":"response"}"#]]
            .assert_eq(&body(answer(5, 9, "x", Err("no"))));
    }
}
