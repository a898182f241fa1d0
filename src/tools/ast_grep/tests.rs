//! What is found, and what is said where nothing is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use serde_json::json;

use super::TOOL;
use crate::seat::testing::{Bench, NoLaunch};

fn bench() -> Bench {
    Bench::new(Arc::new(NoLaunch))
}

#[tokio::test]
async fn a_repeated_metavariable_is_the_same_code() {
    let bench = bench();
    bench.put(
        "a.dart",
        "void f() {\n  if (a != null) a.dispose();\n  if (a != null) b.dispose();\n}\n",
    );
    let asked = json!({"pattern": "if ($X != null) $X.dispose()", "language": "dart"});
    let (text, details) = bench.call(&TOOL, asked).await.unwrap();
    assert!(text.starts_with("1 match in 1 file (read as if_statement"), "{text}");
    assert!(text.contains("a.dart:2:   if (a != null) a.dispose();"), "{text}");
    assert_eq!(details["matches"][0]["captures"]["X"], "a");
    assert_eq!((&details["total"], &details["complete"]), (&json!(1), &json!(true)));
}

#[tokio::test]
async fn the_same_code_ignores_white_space_and_comments() {
    let bench = bench();
    bench.put("a.js", "f(a + b, a+b);\nf(g(1, /* c */ 2), g(1,2));\nf(a, b);\n");
    let (_, details) =
        bench.call(&TOOL, json!({"pattern": "f($A, $A)", "path": "a.js"})).await.unwrap();
    assert_eq!(details["total"], 2);
}

#[tokio::test]
async fn a_list_that_is_cut_gives_the_true_total() {
    let bench = bench();
    for file in 0..7 {
        bench.put(&format!("{file}.py"), "print(1)\n".repeat(20));
    }
    let asked = json!({"pattern": "print($A)", "language": "py", "max_results": 50});
    let (text, details) = bench.call(&TOOL, asked).await.unwrap();
    assert!(text.starts_with("140 matches in 7 files (read as call), the first 50:"), "{text}");
    assert_eq!(details["matches"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn nothing_found_is_explained() {
    let bench = bench();
    bench.put("src/a.js", "import a from 'c';\nfoo(1, 2);\n");
    bench.put("b.py", "x = 1\n");
    bench.put(".gitignore", "hidden.py\n");
    let asked = async |arguments| bench.done(&TOOL, arguments).await;
    let text =
        asked(json!({"pattern": "import $A from \"c\"", "path": "src", "language": "js"})).await;
    assert!(
        text.starts_with("no match of `import $A from \"c\"` in src: searched 1 javascript file"),
        "{text}"
    );
    assert!(
        text.contains("left aside it would match 1, the first: src/a.js:1: import a"),
        "{text}"
    );
    let text = asked(json!({"pattern": "zfree($A)", "language": "python"})).await;
    assert!(text.contains("in no file there is `zfree`"), "{text}");
    let text = asked(json!({"pattern": "foo($A)", "language": "rust"})).await;
    assert!(text.contains("there is no rust file: 2 other files"), "{text}");
    let text = asked(json!({"pattern": "foo($a)", "path": "src/a.js"})).await;
    assert!(text.contains("metavariables are written in capitals"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_an_error_and_no_empty_answer() {
    let bench = bench();
    bench.put("a.py", "x = 1\n");
    let fails = async |arguments| bench.fails(&TOOL, arguments).await;
    let missing = fails(json!({"pattern": "$X"})).await;
    assert!(
        missing.contains("`language` is missing") && missing.contains("python (1)"),
        "{missing}"
    );
    let unknown = fails(json!({"pattern": "$X", "language": "pyton"})).await;
    assert!(unknown.contains("did you mean `python`?"), "{unknown}");
    let nowhere = fails(json!({"pattern": "$X", "language": "python", "path": "nowhere"})).await;
    assert!(nowhere.contains("no such file or folder"), "{nowhere}");
    for (pattern, word) in [
        ("", "`pattern` is empty"),
        ("$$$X", "alone matches no one thing"),
        ("a = 1\nb = 2", "2 pieces side by side"),
        ("def (((", "does not parse as python: line 1, column"),
    ] {
        let text = fails(json!({"pattern": pattern, "language": "python"})).await;
        assert!(text.contains(word), "{pattern}: {text}");
    }
    assert!(
        fails(json!({"pattern": "x", "path": "../x.py"})).await.contains("outside the work folder")
    );
}

#[tokio::test]
async fn what_was_not_searched_is_said() {
    let bench = bench();
    bench.put("a.c", "void f() { g(1); }\n");
    bench.put("b.c", b"\0\0");
    bench.put("c.c", b"// caf\xe9\n");
    bench.put("d.c", format!("void h() {{ {} }}\n", "g(1);".repeat(1000)));
    bench.put("deep.c", format!("int x = {}g(1){};\n", "(".repeat(3000), ")".repeat(3000)));
    bench.put("e.c", vec![b' '; 5 << 20]);
    let (text, details) =
        bench.call(&TOOL, json!({"pattern": "g($A)", "language": "c"})).await.unwrap();
    assert!(text.starts_with("1001 matches in 2 files (read as call_expression"), "{text}");
    for note in [
        "(not searched: b.c: binary)",
        "(not searched: c.c: byte 6 is not UTF-8)",
        "(not searched: deep.c: nested more than 2000 levels deep)",
        "(not searched: e.c: 5242880 bytes, over the limit of 4194304)",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
    assert_eq!(details["complete"], false);
    // A minified line is cut, between characters.
    assert!(text.lines().all(|line| line.chars().count() < 300), "{text}");
}

#[tokio::test]
async fn another_reading_that_finds_more_is_told() {
    let bench = bench();
    bench.put("a.dart", "final a = 1;\nvoid f() { final b = 2; final c = 3; }\n");
    let text = bench.done(&TOOL, json!({"pattern": "final $X = $Y;", "path": "a.dart"})).await;
    assert!(text.contains("it would match 2 more)"), "{text}");
}
