//! What is proposed, what is left out, and what is written once it is accepted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::TOOL;
use crate::seat::testing::{Bench, NoLaunch};
use crate::tools::resolve;

fn bench() -> Bench {
    Bench::new(Arc::new(NoLaunch))
}

fn edit(pattern: &str, rewrite: &str, language: &str) -> Value {
    json!({"pattern": pattern, "rewrite": rewrite, "language": language})
}

#[tokio::test]
async fn a_rewrite_is_proposed_and_nothing_is_written() {
    let bench = bench();
    for file in 0..4 {
        bench.put(
            &format!("{file}.dart"),
            "void f() {\n  dispose(a);\n  dispose(b);\n  dispose(c);\n}\n",
        );
    }
    let (text, details) =
        bench.call(&TOOL, edit("dispose($X)", "$X.dispose()", "dart")).await.unwrap();
    assert!(text.starts_with("(proposed) 12 replacements in 4 files, read as "), "{text}");
    assert!(
        text.contains("nothing is written yet: call resolve with edit_id \"edit_1\""),
        "{text}"
    );
    assert!(text.contains("--- 0.dart\n@@ line 2 @@\n-  dispose(a);\n+  a.dispose();\n"), "{text}");
    assert_eq!(
        (&details["edit_id"], &details["files"], &details["replacements"]),
        (&json!("edit_1"), &json!(4), &json!(12))
    );
    assert!(bench.content("0.dart").contains("dispose(a)"));
    let rows = bench.table.snapshot();
    let row = rows.iter().find(|row| row.name == "edit_1").expect("a row in status");
    assert_eq!(row.note.as_deref(), Some("12 replacements in 4 files"));
    let accept = json!({"edit_id": "edit_1", "action": "accept"});
    let text = bench.done(&resolve::TOOL, accept).await;
    assert!(text.starts_with("applied edit_1: 12 replacements in 4 files\nM 0.dart\n"), "{text}");
    assert_eq!(
        bench.content("3.dart"),
        "void f() {\n  a.dispose();\n  b.dispose();\n  c.dispose();\n}\n"
    );
    assert!(!bench.table.snapshot().iter().any(|row| row.name == "edit_1"));
}

#[tokio::test]
async fn a_long_preview_is_cut_and_the_edit_is_not() {
    let bench = bench();
    let block = |name: &str| format!("{{\n{}}}\n", format!("  {name}(1);\n").repeat(100));
    bench.put("a.js", block("foo").repeat(100));
    let text = bench.done(&TOOL, edit("foo($A)", "bar($A)", "js")).await;
    assert!(text.starts_with("(proposed) 10000 replacements in 1 file"), "{text}");
    assert!(text.lines().count() < 130, "{} lines", text.lines().count());
    let shown = text.matches("\n@@ line").count();
    assert!(text.contains(&format!("(and {} replacements that are not shown)", 10_000 - shown)));
    bench.done(&resolve::TOOL, json!({"edit_id": "edit_1", "action": "accept"})).await;
    assert_eq!(bench.content("a.js"), block("bar").repeat(100));
}

#[tokio::test]
async fn what_would_be_lost_is_left_out_and_told() {
    let bench = bench();
    bench.put("a.js", "foo(1, /* keep */ 2);\nfoo(1, 2);\n");
    bench.put("b.js", "x = foo(1, 2) + 1;\n");
    let (text, details) =
        bench.call(&TOOL, edit("foo($A, $B)", "bar($B, $A)", "js")).await.unwrap();
    assert!(text.starts_with("(proposed) 2 replacements in 2 files"), "{text}");
    assert!(
        text.contains("left out, 1: a.js:1: holds a comment that the rewrite would drop"),
        "{text}"
    );
    assert_eq!(details["left_out_total"], 1);
    let refused = bench.fails(&TOOL, edit("foo($A, $B)", "bar(", "js")).await;
    assert!(
        refused.contains("nothing was staged") && refused.contains("would no longer parse"),
        "{refused}"
    );
    let refused = bench.fails(&TOOL, edit("foo($A)", "bar($C)", "js")).await;
    assert!(refused.contains("uses $C"), "{refused}");
    let refused = bench.fails(&TOOL, edit("nowhere($A)", "bar($A)", "js")).await;
    assert!(refused.contains("no match of `nowhere($A)`"), "{refused}");
    let refused = bench.fails(&TOOL, edit("$A", "$A", "js")).await;
    assert!(refused.contains("replacing would break"), "{refused}");
}

#[tokio::test]
async fn a_rewrite_that_deletes_everything_is_left_out() {
    let bench = bench();
    bench.put("a.py", "import os\n");
    let refused = bench.fails(&TOOL, edit("import os", "", "python")).await;
    assert!(refused.contains("would be left empty: delete it with apply_patch"), "{refused}");
    assert_eq!(bench.content("a.py"), "import os\n");
}

#[tokio::test]
async fn bytes_that_were_not_asked_for_stay_as_they_are() {
    let bench = bench();
    bench.put("a.py", "\u{feff}foo(1)\r\nx = '\u{e9}'\r\nfoo(2)");
    bench.done(&TOOL, edit("foo($A)", "bar(\n    $A,\n)", "python")).await;
    bench.done(&resolve::TOOL, json!({"edit_id": "edit_1", "action": "accept"})).await;
    assert_eq!(
        bench.content("a.py"),
        "\u{feff}bar(\r\n    1,\r\n)\r\nx = '\u{e9}'\r\nbar(\r\n    2,\r\n)"
    );
}
