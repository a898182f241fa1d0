//! The envelope of a message, read and written. Pure.
//!
//! Only the envelope is decoded here: a body is decoded by who wants it, field by
//! field. An id says nothing about direction: what has a method is the server's
//! request, whatever id it chose, so it cannot be taken for an answer to ours.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::frame::framed;

/// A message from a server.
#[derive(Debug)]
pub(super) enum Message {
    /// It answers a request of ours.
    Answer { id: i64, reply: Reply },
    /// It asks us, under an id that is given back as it came.
    Request { id: Box<RawValue>, method: String, params: Value },
    /// It tells us.
    Notification { method: String, params: Value },
}

/// What a request came to: the result, not yet decoded, or the server's refusal.
pub(super) type Reply = Result<Option<Box<RawValue>>, Refusal>;

/// A server's error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The protocol's code, or the server's own.
    pub(super) code: i64,
    /// Its words.
    pub(super) message: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Value>,
}

/// Reads a body; `None` where it is no message.
pub(super) fn read(body: &[u8]) -> Option<Message> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let params =
        || envelope.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    Some(match (envelope.id, envelope.method) {
        (Some(id), Some(method)) => {
            Message::Request { id: id.to_owned(), method, params: params() }
        }
        (None, Some(method)) => Message::Notification { method, params: params() },
        (Some(id), None) => Message::Answer {
            id: id.get().trim_matches('"').parse().ok()?,
            reply: match envelope.error {
                Some(error) => Err(refusal(&error)),
                None => Ok(envelope.result.map(RawValue::to_owned)),
            },
        },
        (None, None) => return None,
    })
}

fn refusal(error: &Value) -> Refusal {
    let words = error.get("message").and_then(Value::as_str);
    Refusal {
        code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
        message: words.map_or_else(|| error.to_string(), str::to_owned),
    }
}

#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    params: Value,
}

/// Writes a request or (without `id`) a notification, framed. `params` that are
/// null are left out, since there is a server that refuses `shutdown` over them.
pub(super) fn outgoing(id: Option<i64>, method: &str, mut params: Value) -> Vec<u8> {
    drop_nulls(&mut params);
    written(&Outgoing { jsonrpc: "2.0", id, method, params })
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Result(Value),
    Error { code: i64, message: String },
}

/// Writes an answer to a server's request, framed.
pub(super) fn answer(id: &RawValue, answer: Result<Value, Refusal>) -> Vec<u8> {
    let outcome = match answer {
        Ok(result) => Outcome::Result(result),
        Err(Refusal { code, message }) => Outcome::Error { code, message },
    };
    written(&Answer { jsonrpc: "2.0", id, outcome })
}

fn written(message: &impl Serialize) -> Vec<u8> {
    // Values and strings always serialise; an empty body would be skipped.
    framed(&serde_json::to_vec(message).unwrap_or_default())
}

/// Members that the protocol wants present, null or not.
const NULLABLE: [&str; 3] = ["processId", "rootUri", "rootPath"];
/// Members whose content is the server's or the user's own: not ours to change.
const OPAQUE: [&str; 5] = ["initializationOptions", "settings", "arguments", "data", "diagnostics"];

/// Drops optional members that are null: a strict server refuses
/// `"identifier": null` where it may be absent. Elements of arrays stay.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| !member.is_null() || NULLABLE.contains(&name.as_str()));
            for (name, member) in members.iter_mut() {
                if !OPAQUE.contains(&name.as_str()) {
                    drop_nulls(member);
                }
            }
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
    use serde_json::json;

    fn check_read(body: &str, expected: &Expect) {
        expected.assert_eq(&match read(body.as_bytes()) {
            Some(message) => format!("{message:?}"),
            None => "nothing".to_owned(),
        });
    }

    #[test]
    fn messages_are_told_apart_by_their_method_not_their_id() {
        check_read(
            r#"{"jsonrpc":"2.0","id":1,"method":"window/x"}"#,
            &expect![[r#"Request { id: RawValue(1), method: "window/x", params: Null }"#]],
        );
        check_read(
            r#"{"id":"-7","method":"x","params":{"a":null}}"#,
            &expect![[
                r#"Request { id: RawValue("-7"), method: "x", params: Object {"a": Null} }"#
            ]],
        );
        check_read(
            r#"{"id":1,"result":{"b":[1]}}"#,
            &expect![[r#"Answer { id: 1, reply: Ok(Some(RawValue({"b":[1]}))) }"#]],
        );
        check_read(r#"{"id":1,"result":null}"#, &expect!["Answer { id: 1, reply: Ok(None) }"]);
        check_read(
            r#"{"id":-2,"error":{"code":-32601,"message":"no"}}"#,
            &expect![[r#"Answer { id: -2, reply: Err(Refusal { code: -32601, message: "no" }) }"#]],
        );
        check_read(
            r#"{"id":2,"error":"odd"}"#,
            &expect![[r#"Answer { id: 2, reply: Err(Refusal { code: 0, message: "\"odd\"" }) }"#]],
        );
        check_read(
            r#"{"method":"$/x","params":[1],"unknown":0}"#,
            &expect![[r#"Notification { method: "$/x", params: Array [Number(1)] }"#]],
        );
    }

    #[test]
    fn what_is_no_message_is_dropped() {
        for body in ["", "{}", "[]", "null", "{\"id\":", "log line", r#"{"id":"x","result":1}"#] {
            check_read(body, &expect!["nothing"]);
        }
    }

    fn body(frame: Vec<u8>) -> String {
        String::from_utf8(frame).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    #[test]
    fn nulls_go_where_they_may_be_absent_and_only_there() {
        let params = json!({
            "processId": null, "rootUri": null, "identifier": null, "list": [null, {"a": null}],
            "initializationOptions": {"keep": null}, "deep": {"b": null, "c": 1},
        });
        expect![[r#"{"jsonrpc":"2.0","id":3,"method":"m","params":{"deep":{"c":1},"initializationOptions":{"keep":null},"list":[null,{}],"processId":null,"rootUri":null}}"#]]
            .assert_eq(&body(outgoing(Some(3), "m", params)));
        expect![[r#"{"jsonrpc":"2.0","method":"exit"}"#]].assert_eq(&body(outgoing(
            None,
            "exit",
            Value::Null,
        )));
    }

    #[test]
    fn answers_keep_their_id_and_their_nulls() {
        let id = RawValue::from_string("\"a-1\"".to_owned()).unwrap();
        expect![[r#"{"jsonrpc":"2.0","id":"a-1","result":null}"#]]
            .assert_eq(&body(answer(&id, Ok(Value::Null))));
        let refusal = Refusal { code: -32601, message: "no".to_owned() };
        expect![[r#"{"jsonrpc":"2.0","id":"a-1","error":{"code":-32601,"message":"no"}}"#]]
            .assert_eq(&body(answer(&id, Err(refusal))));
    }
}
