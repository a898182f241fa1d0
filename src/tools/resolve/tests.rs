//! Whole or not at all, once, and only on the files that it was made for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::TOOL;
use crate::seat::testing::{Bench, NoLaunch};
use crate::tools::ast_edit;

fn accept(id: &str) -> Value {
    json!({"edit_id": id, "action": "accept"})
}

async fn staged() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("a.js", "foo(1);\n");
    bench.put("b.js", "foo(2);\n");
    let edit = json!({"pattern": "foo($A)", "rewrite": "bar($A)", "language": "js"});
    bench.done(&ast_edit::TOOL, edit).await;
    bench
}

#[tokio::test]
async fn one_file_that_changed_refuses_all_and_drops_the_edit() {
    let bench = staged().await;
    bench.put("b.js", "foo(3);\n");
    let failure = bench.call(&TOOL, accept("edit_1")).await.unwrap_err();
    assert_eq!(
        failure.message,
        "resolve: edit_1 is refused and dropped: nothing was written: b.js has changed; look again \
         and stage it anew"
    );
    assert_eq!(failure.details["moved"], json!(["b.js has changed"]));
    assert_eq!(
        (bench.content("a.js"), bench.content("b.js")),
        ("foo(1);\n".into(), "foo(3);\n".into())
    );
    let again = bench.fails(&TOOL, accept("edit_1")).await;
    assert!(again.contains("edit_1 was refused and dropped"), "{again}");
}

#[tokio::test]
async fn a_file_that_went_refuses_as_well() {
    let bench = staged().await;
    std::fs::remove_file(bench.path("a.js")).unwrap();
    assert!(bench.fails(&TOOL, accept("edit_1")).await.contains("a.js is gone"));
    assert_eq!(bench.content("b.js"), "foo(2);\n");
}

#[tokio::test]
async fn a_touched_file_is_still_the_same() {
    let bench = staged().await;
    bench.put("b.js", "foo(2);\n");
    bench.done(&TOOL, accept("edit_1")).await;
    assert_eq!(bench.content("b.js"), "bar(2);\n");
}

#[tokio::test]
async fn an_edit_is_applied_once_and_what_became_of_it_is_known() {
    let bench = staged().await;
    bench.done(&TOOL, accept("edit_1")).await;
    assert!(bench.fails(&TOOL, accept("edit_1")).await.contains("was accepted already"));
    let unknown = bench.fails(&TOOL, accept("edit_7")).await;
    assert_eq!(unknown, "resolve: there is no staged edit `edit_7`: none is staged");
    bench.put("a.js", "foo(1);\n");
    let edit = json!({"pattern": "foo($A)", "rewrite": "bar($A)", "language": "js"});
    bench.done(&ast_edit::TOOL, edit).await;
    let unknown = bench.fails(&TOOL, accept("edit_1x")).await;
    assert!(unknown.contains("staged: edit_2 (1 replacement in 1 file)"), "{unknown}");
    bench.done(&TOOL, json!({"edit_id": "edit_2", "action": "discard"})).await;
    assert!(bench.fails(&TOOL, accept("edit_2")).await.contains("was discarded"));
    assert_eq!(bench.content("a.js"), "foo(1);\n");
}

#[tokio::test]
async fn a_write_protected_file_refuses_all() {
    let bench = staged().await;
    std::fs::set_permissions(bench.path("b.js"), PermissionsExt::from_mode(0o444)).unwrap();
    assert!(bench.fails(&TOOL, accept("edit_1")).await.contains("b.js: is write-protected"));
    assert_eq!(bench.content("a.js"), "foo(1);\n");
}

#[tokio::test]
async fn edits_that_wait_are_bounded() {
    let bench = staged().await;
    let edit = json!({"pattern": "foo($A)", "rewrite": "bar($A)", "language": "js"});
    for _ in 1..16 {
        bench.done(&ast_edit::TOOL, edit.clone()).await;
    }
    let full = bench.fails(&ast_edit::TOOL, edit).await;
    assert!(full.contains("accept or discard some") && full.contains("edit_16"), "{full}");
}

#[tokio::test]
async fn a_cancelled_accept_leaves_the_edit_staged() {
    let bench = staged().await;
    let _held = bench.seat.locks.lock_all([bench.path("a.js")]).await;
    let cancel = crate::tools::Cancel::new();
    cancel.cancel();
    let failure = (TOOL.call)(&bench.seat, accept("edit_1"), cancel).await.unwrap_err();
    assert!(failure.message.contains("edit_1 is still staged"), "{}", failure.message);
    drop(_held);
    bench.done(&TOOL, accept("edit_1")).await;
}
