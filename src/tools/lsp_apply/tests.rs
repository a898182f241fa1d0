//! Code actions against the server in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use super::TOOL;
use crate::seat::testing::{Bench, NoLaunch};
use crate::tools::resolve;

fn bench() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("pyproject.toml", "");
    bench.program("bin/fake", "");
    bench.put("a.py", "error e\n");
    bench
}

fn asked(title: &str) -> Value {
    json!({"file": "a.py", "line": 1, "symbol": "error", "title": title})
}

fn edit(bench: &Bench) -> Value {
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
    json!({"changes": {uri::of_path(&bench.path("a.py")): [{"range": range, "newText": ""}]}})
}

#[tokio::test]
async fn an_action_is_staged_and_applied_by_resolve() {
    let bench = bench();
    let action = json!({"title": "Remove it", "kind": "quickfix", "edit": edit(&bench)});
    bench.server.answer("textDocument/codeAction", Ok(json!([action])));
    let (text, details) = bench.call(&TOOL, asked("Remove it")).await.unwrap();
    assert!(text.starts_with("(proposed) 1 edit in 1 file; nothing is written yet"), "{text}");
    assert_eq!((&details["edit_id"], &details["title"]), (&json!("edit_1"), &json!("Remove it")));
    assert_eq!(bench.content("a.py"), "error e\n");
    bench.done(&resolve::TOOL, json!({"edit_id": "edit_1", "action": "accept"})).await;
    assert_eq!(bench.content("a.py"), "");
}

#[tokio::test]
async fn an_edit_that_comes_only_when_asked_for_is_asked_for() {
    let bench = bench();
    let action = json!({"title": "Remove it", "data": 7});
    bench.server.answer("textDocument/codeAction", Ok(json!([action])));
    let resolved = json!({"title": "Remove it", "data": 7, "edit": edit(&bench)});
    bench.server.answer("codeAction/resolve", Ok(resolved));
    bench.done(&TOOL, asked("Remove it")).await;
    let methods: Vec<_> = bench.server.asked().into_iter().map(|(method, _)| method).collect();
    assert_eq!(methods, ["textDocument/codeAction", "codeAction/resolve"]);
}

#[tokio::test]
async fn what_cannot_be_staged_says_why() {
    let bench = bench();
    let offers = json!([{"title": "Do it", "command": "do.it"},
                        {"title": "Not now", "disabled": {"reason": "busy"}}]);
    for (title, word) in [
        ("Do it", "command of the server's own"),
        ("Not now", "not possible now: busy"),
        ("Other", "there is no action `Other`: offered are `Do it`, `Not now`"),
    ] {
        bench.server.answer("textDocument/codeAction", Ok(offers.clone()));
        let text = bench.fails(&TOOL, asked(title)).await;
        assert!(text.contains(word), "{text}");
    }
    bench.server.answer("textDocument/codeAction", Ok(Value::Null));
    assert!(bench.fails(&TOOL, asked("x")).await.contains("none is offered there"));
}
