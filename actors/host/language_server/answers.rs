//! Our answers to a server's requests. Pure.
//!
//! Each is answered, or servers wait for ever: one hung 53 minutes in a
//! registration that nobody confirmed, one crashed on a configuration with fewer
//! entries than it had asked for.

use serde_json::{Value, json};

use super::envelope::Refusal;
use super::spec::ServerSpec;
use super::uri;

/// The protocol's code for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;

/// Returns the answer to a request.
pub(super) fn answer(method: &str, params: &Value, spec: &ServerSpec) -> Result<Value, Refusal> {
    Ok(match method {
        "workspace/configuration" => configuration(params, &spec.settings),
        "workspace/workspaceFolders" => json!([folder(spec)]),
        // An edit changes files only through a tool of ours, never by the server.
        "workspace/applyEdit" => {
            json!({ "applied": false, "failureReason": "this client applies no edits by request" })
        }
        "window/showDocument" => json!({ "success": false }),
        "window/showMessageRequest"
        | "window/workDoneProgress/create"
        | "client/registerCapability"
        | "client/unregisterCapability" => Value::Null,
        _ if method.starts_with("workspace/") && method.ends_with("/refresh") => Value::Null,
        _ => {
            let message = format!("`{method}` is not known to this client");
            return Err(Refusal { code: METHOD_NOT_FOUND, message });
        }
    })
}

/// Returns the root as a workspace folder.
pub(super) fn folder(spec: &ServerSpec) -> Value {
    let name = spec.root.file_name().unwrap_or(spec.root.as_os_str()).to_string_lossy();
    json!({ "uri": uri::of_path(&spec.root), "name": name })
}

/// Answers with exactly one entry per item, null where nothing is known.
fn configuration(params: &Value, settings: &Value) -> Value {
    let items = params.get("items").and_then(Value::as_array).map(Vec::as_slice);
    let entry = |item: &Value| match item.get("section").and_then(Value::as_str) {
        None | Some("") => settings.clone(),
        Some(section) => lookup(settings, section).cloned().unwrap_or_default(),
    };
    items.unwrap_or_default().iter().map(entry).collect()
}

/// Finds a dotted section, whether the settings nest or have dots in their names.
fn lookup<'a>(settings: &'a Value, section: &str) -> Option<&'a Value> {
    settings.get(section).or_else(|| {
        section.match_indices('.').find_map(|(dot, _)| {
            let (head, rest) = (section.get(..dot)?, section.get(dot + 1..)?);
            lookup(settings.get(head)?, rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::language_server::spec::tests::spec;

    #[test]
    fn configuration_has_one_entry_per_item() {
        let settings = json!({
            "python": { "analysis": { "mode": "strict" }, "analysis.exclude": ["x"] },
            "a.b": { "c": 1 },
        });
        let ask = |items: Value| configuration(&json!({ "items": items }), &settings);
        assert_eq!(
            ask(json!([
                { "section": "python.analysis" },
                { "section": "unknown" },
                { "scopeUri": "file:///r", "section": "a.b.c" },
                { "section": "python.analysis.exclude" },
                { "section": "python.analysis.mode.x" },
            ])),
            json!([{ "mode": "strict" }, null, 1, ["x"], null])
        );
        assert_eq!(ask(json!([{}])), json!([settings]));
        assert_eq!(ask(json!([])), json!([]));
        assert_eq!(
            configuration(&json!({ "items": [{ "section": "x" }] }), &json!(null)),
            json!([null])
        );
        assert_eq!(configuration(&json!(null), &settings), json!([]));
    }

    #[test]
    fn every_request_is_answered() {
        let spec = spec();
        let cases = [
            ("client/registerCapability", Ok(json!(null))),
            ("window/workDoneProgress/create", Ok(json!(null))),
            ("window/showMessageRequest", Ok(json!(null))),
            ("window/showDocument", Ok(json!({ "success": false }))),
            ("workspace/diagnostic/refresh", Ok(json!(null))),
            ("workspace/semanticTokens/refresh", Ok(json!(null))),
            (
                "workspace/workspaceFolders",
                Ok(json!([{ "uri": "file:///r/a%20b", "name": "a b" }])),
            ),
            ("odd/request", Err(METHOD_NOT_FOUND)),
            ("$/odd", Err(METHOD_NOT_FOUND)),
        ];
        for (method, expected) in cases {
            let given = answer(method, &json!(null), &spec).map_err(|refusal| refusal.code);
            assert_eq!(given, expected, "{method}");
        }
        let edit = answer("workspace/applyEdit", &json!({ "edit": {} }), &spec);
        assert_eq!(edit.ok().and_then(|answer| answer.get("applied").cloned()), Some(json!(false)));
    }
}
