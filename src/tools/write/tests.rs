//! Tests of `write`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::seat::testing::{Bench, NoLaunch};
use crate::tools::{edit, read};

fn bench() -> Bench {
    Bench::new(Arc::new(NoLaunch))
}

#[tokio::test]
async fn a_new_file_is_made_with_its_folders() {
    let bench = bench();
    let call = json!({ "path": "a/b/c.txt", "content": "one\ntwo" });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    assert_eq!(text, "created a/b/c.txt: 2 lines, 7 bytes");
    assert_eq!(details["created"], true);
    assert_eq!(bench.content("a/b/c.txt"), "one\ntwo");
    let again = json!({ "path": "a/b/c.txt", "content": "" });
    assert_eq!(bench.done(&TOOL, again).await, "replaced a/b/c.txt: 0 lines, 0 bytes");
}

#[tokio::test]
async fn an_existing_file_must_have_been_seen_as_it_is() {
    let bench = bench();
    let path = bench.put("f", "one\n");
    let call = json!({ "path": "f", "content": "two\n" });
    assert!(bench.fails(&TOOL, call.clone()).await.contains("f: exists, and you have not read it"));
    bench.done(&read::TOOL, json!({ "path": "f" })).await;
    std::fs::write(&path, "other\n").unwrap();
    assert!(bench.fails(&TOOL, call.clone()).await.contains("has changed since you last saw it"));
    assert_eq!(bench.content("f"), "other\n");
    bench.done(&read::TOOL, json!({ "path": "f" })).await;
    // Touched, not changed.
    std::fs::write(&path, "other\n").unwrap();
    assert_eq!(bench.done(&TOOL, call).await, "replaced f: 1 line, 4 bytes");
}

#[tokio::test]
async fn a_file_read_in_part_is_not_replaced() {
    let bench = bench();
    bench.put("f", "1\n2\n3\n4\n");
    let call = json!({ "path": "f", "content": "x" });
    bench.done(&read::TOOL, json!({ "path": "f", "limit": 2 })).await;
    let message = bench.fails(&TOOL, call.clone()).await;
    assert!(message.contains("a part of its 4 lines: read on from offset 3"), "{message}");
    bench.done(&read::TOOL, json!({ "path": "f", "offset": 3 })).await;
    bench.done(&TOOL, call).await;
}

#[tokio::test]
async fn an_edit_of_a_known_file_leaves_it_known() {
    let bench = bench();
    bench.put("f", "one\n");
    let edit_call = json!({ "path": "f", "old_text": "one", "new_text": "two" });
    bench.done(&read::TOOL, json!({ "path": "f" })).await;
    bench.done(&edit::TOOL, edit_call.clone()).await;
    bench.done(&TOOL, json!({ "path": "f", "content": "one\n" })).await;
    bench.seat.seen.forget(&bench.path("f"));
    bench.done(&edit::TOOL, edit_call).await;
    bench.fails(&TOOL, json!({ "path": "f", "content": "x" })).await;
}

#[tokio::test]
async fn what_read_hides_survives() {
    for (old, new, expected, kept) in [
        ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n", 1),
        ("\u{FEFF}a\r\n", "x\ny", "\u{FEFF}x\r\ny", 2),
        ("\u{FEFF}a\n", "\u{FEFF}x\n", "\u{FEFF}x\n", 0),
        ("a\r\nb\r\n", "x\r\ny\n", "x\r\ny\n", 0),
        ("a\r\nb\n", "x\n", "x\n", 0),
        ("a\n", "x\r\n", "x\r\n", 0),
    ] {
        let bench = bench();
        bench.put("f", old);
        bench.done(&read::TOOL, json!({ "path": "f" })).await;
        let call = json!({ "path": "f", "content": new });
        let (_, details) = bench.call(&TOOL, call).await.unwrap();
        assert_eq!(bench.content("f"), expected, "{old:?}");
        assert_eq!(details["kept"].as_array().unwrap().len(), kept, "{old:?}");
    }
}

#[tokio::test]
async fn bad_calls_say_what_is_wrong() {
    let bench = bench();
    bench.put("folder/f", "");
    for (call, message) in [
        (json!({ "path": "folder", "content": "" }), "folder is a folder"),
        (json!({ "path": "folder/f/x", "content": "" }), "a name on the way is a file"),
        (json!({ "path": "../x", "content": "" }), "outside the work folder"),
        (json!({ "path": "x" }), "missing field `content`"),
        (json!({ "path": "x", "content": "", "mode": 1 }), "unknown field `mode`"),
        (json!({ "path": "x", "content": 1 }), "`content`: invalid type"),
    ] {
        let text = bench.fails(&TOOL, call).await;
        assert!(text.contains(message), "{text}");
    }
}

#[tokio::test]
async fn a_cancelled_call_writes_nothing() {
    let bench = bench();
    let cancel = Cancel::new();
    cancel.cancel();
    let call = (TOOL.call)(&bench.seat, json!({ "path": "f", "content": "" }), cancel);
    assert_eq!(call.await.unwrap_err().message, "write: cancelled; nothing was written");
    assert!(!bench.path("f").exists());
}
