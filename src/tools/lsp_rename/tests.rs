//! Renames against the server in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

use std::sync::Arc;

use hostler_actors::host::language_server::documents::{OpenDocument, TextHash};
use hostler_actors::host::language_server::lease::ServerError;
use hostler_actors::host::language_server::text::Encoding;
use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use super::TOOL;
use crate::code::workspace_edit;
use crate::seat::testing::{Bench, NoLaunch};
use crate::server_edits::plan;
use crate::tools::resolve;

fn bench() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("pyproject.toml", "");
    bench.program("bin/fake", "");
    bench.put("a.py", "def area(r):\n    return r\n");
    bench.put("b.py", "from a import area\r\narea(1)\r\n");
    bench
}

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}})
}

fn edit(line: u32, from: u32, to: u32) -> Value {
    json!({"range": range(line, from, to), "newText": "size"})
}

fn document(bench: &Bench, name: &str, edits: Value) -> Value {
    json!({"textDocument": {"uri": uri::of_path(&bench.path(name)), "version": null}, "edits": edits})
}

fn asked() -> Value {
    json!({"file": "a.py", "line": 1, "symbol": "area", "new_name": "size"})
}

fn prepared(bench: &Bench, answer: Value) {
    bench.server.answer("textDocument/prepareRename", Ok(range(0, 4, 8)));
    bench.server.answer("textDocument/rename", Ok(answer));
}

#[tokio::test]
async fn every_file_is_changed_and_counted() {
    let bench = bench();
    let twice = json!([edit(0, 14, 18), edit(1, 0, 4), edit(1, 0, 4)]);
    let changes = json!([
        document(&bench, "a.py", json!([edit(0, 4, 8)])),
        document(&bench, "b.py", twice),
        {"kind": "rename", "oldUri": uri::of_path(&bench.path("b.py")),
         "newUri": uri::of_path(&bench.path("sub/c.py"))},
    ]);
    prepared(&bench, json!({"documentChanges": changes, "changes": {"file:///etc/passwd": []}}));
    let (text, details) = bench.call(&TOOL, asked()).await.unwrap();
    assert!(
        text.starts_with("`area` is now `size`: 4 edits in 3 files\nM a.py (1)\nM sub/c.py (3)\nR b.py -> sub/c.py"),
        "{text}"
    );
    assert_eq!(details["new_name"], "size");
    assert_eq!(bench.content("a.py"), "def size(r):\n    return r\n");
    assert_eq!(bench.content("sub/c.py"), "from a import size\r\nsize(1)\r\n");
    assert!(!bench.path("b.py").exists());
    assert!(!bench.server.changes().is_empty(), "the server is told");
}

#[tokio::test]
async fn what_is_outside_or_of_others_refuses_all() {
    let bench = bench();
    std::fs::write(bench.beside("lib.py"), "area\n").unwrap();
    bench.put("node_modules/x.py", "area\n");
    for (path, word) in [
        (bench.beside("lib.py"), "outside the work folder"),
        (bench.path("node_modules/x.py"), "not the project's own"),
    ] {
        let mut theirs = document(&bench, "a.py", json!([edit(0, 0, 4)]));
        theirs["textDocument"]["uri"] = json!(uri::of_path(&path));
        let ours = document(&bench, "a.py", json!([edit(0, 4, 8)]));
        prepared(&bench, json!({"documentChanges": [ours, theirs]}));
        let text = bench.fails(&TOOL, asked()).await;
        assert!(text.contains("refused, and nothing was written") && text.contains(word), "{text}");
    }
    assert_eq!(bench.content("a.py"), "def area(r):\n    return r\n");
}

#[tokio::test]
async fn edits_that_overlap_or_would_clobber_are_refused() {
    let bench = bench();
    let overlap = json!([edit(0, 4, 8), edit(0, 6, 9)]);
    prepared(&bench, json!({"documentChanges": [document(&bench, "a.py", overlap)]}));
    assert!(bench.fails(&TOOL, asked()).await.contains("edits that overlap, at lines 1 and 1"));
    let clobber = json!([{"kind": "rename", "oldUri": uri::of_path(&bench.path("b.py")),
                          "newUri": uri::of_path(&bench.path("a.py"))}]);
    prepared(&bench, json!({"documentChanges": clobber}));
    assert!(bench.fails(&TOOL, asked()).await.contains("would put a file over a.py"));
}

#[tokio::test]
async fn a_symbol_that_cannot_be_renamed_says_why() {
    let bench = bench();
    bench.server.answer("textDocument/prepareRename", Ok(Value::Null));
    assert!(bench.fails(&TOOL, asked()).await.contains("`area` cannot be renamed"));
    bench.server.answer("textDocument/prepareRename", Ok(range(0, 9, 10)));
    assert!(bench.fails(&TOOL, asked()).await.contains("would rename another symbol"));
    let refusal = ServerError::Refused {
        server: "pyright".to_owned(),
        method: "textDocument/rename",
        code: -32602,
        message: "not here".to_owned(),
    };
    bench.server.answer("textDocument/prepareRename", Ok(range(0, 4, 8)));
    bench.server.answer("textDocument/rename", Err(refusal));
    assert!(bench.fails(&TOOL, asked()).await.contains("not here"));
    prepared(&bench, Value::Null);
    assert!(bench.fails(&TOOL, asked()).await.contains("has no edit"));
    for (name, word) in [
        ("1bad", "is no name in python"),
        ("class", "is no name in python"),
        ("a b", "give one word"),
        ("area", "is the name that it has"),
    ] {
        let mut asked = asked();
        asked["new_name"] = json!(name);
        assert!(bench.fails(&TOOL, asked).await.contains(word), "{name}");
    }
}

#[tokio::test]
async fn what_is_to_be_confirmed_is_staged() {
    let bench = bench();
    let mut change = edit(0, 4, 8);
    change["annotationId"] = json!("c");
    prepared(
        &bench,
        json!({
            "documentChanges": [document(&bench, "a.py", json!([change]))],
            "changeAnnotations": {"c": {"label": "in comments", "needsConfirmation": true}},
        }),
    );
    let (text, details) = bench.call(&TOOL, asked()).await.unwrap();
    assert!(text.contains("the server asks to look at it first: in comments"), "{text}");
    assert_eq!(bench.content("a.py"), "def area(r):\n    return r\n");
    bench.done(&resolve::TOOL, json!({"edit_id": details["edit_id"], "action": "accept"})).await;
    assert_eq!(bench.content("a.py"), "def size(r):\n    return r\n");
}

#[test]
fn a_text_that_changed_while_the_server_answered_is_refused() {
    let bench = bench();
    let path = bench.path("a.py");
    let given = json!({"documentChanges": [document(&bench, "a.py", json!([edit(0, 4, 8)]))]});
    let edit = workspace_edit::read(&given).unwrap();
    let plan = |hash: TextHash| {
        let open = OpenDocument { path: path.as_path().into(), language_id: "python".into(), hash };
        plan(&bench.seat.folder, &edit, Encoding::Utf16, &[open]).map_err(|error| error.message)
    };
    let now = blake3::hash(&std::fs::read(&path).unwrap());
    assert_eq!(plan(TextHash(*now.as_bytes())).unwrap().steps.len(), 1);
    assert!(
        plan(TextHash([0; 32])).unwrap_err().contains("a.py changed while the server answered")
    );
}
