//! Tests of `glob`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::*;
use crate::seat::testing::{Bench, NoLaunch};

fn bench() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.py", ".github/ci.yml", "target/e.rs"] {
        bench.put(name, "");
    }
    bench.put(".gitignore", "target/\n");
    bench.put("copy/.git", "gitdir: /elsewhere/.git/worktrees/copy\n");
    bench.put("copy/f.rs", "");
    bench.put("module/.git", "gitdir: ../.git/modules/module\n");
    bench.put("module/g.rs", "");
    std::fs::create_dir(bench.beside("out")).unwrap();
    std::fs::write(bench.beside("out/h.rs"), "").unwrap();
    symlink(bench.beside("out"), bench.path("link")).unwrap();
    symlink("a.rs", bench.path("z.rs")).unwrap();
    bench
}

#[tokio::test]
async fn patterns_find_paths() {
    let bench = bench();
    for (pattern, path, expected) in [
        ("*.rs", None, vec!["a.rs", "module/g.rs", "src/b.rs", "src/deep/c.rs"]),
        ("./src/*.rs", None, vec!["src/b.rs"]),
        ("src/**/*.{rs,py}", None, vec!["src/b.rs", "src/d.py", "src/deep/c.rs"]),
        ("*.rs", Some("src"), vec!["src/b.rs", "src/deep/c.rs"]),
        ("deep/*", Some("src"), vec!["src/deep/c.rs"]),
        (".github/*", None, vec![".github/ci.yml"]),
        ("*.yml", None, vec![]),
        ("*", Some("target"), vec!["target/e.rs"]),
    ] {
        let (_, details) =
            bench.call(&TOOL, json!({ "pattern": pattern, "path": path })).await.unwrap();
        assert_eq!(details["paths"], json!(expected), "{pattern} in {path:?}");
        assert_eq!(details["complete"], true);
    }
    let text = bench.done(&TOOL, json!({ "pattern": "*.rs" })).await;
    assert!(text.ends_with("\n(other git worktrees left out: 1)"), "{text}");
    let text = bench.done(&TOOL, json!({ "pattern": "*.none" })).await;
    assert!(text.starts_with("no file matches `*.none` in .;"), "{text}");
}

#[tokio::test]
async fn the_true_total_is_told() {
    let bench = bench();
    for number in 0..250 {
        bench.put(&format!("many/{number:03}"), "");
    }
    let (text, details) = bench.call(&TOOL, json!({ "pattern": "many/*" })).await.unwrap();
    assert_eq!((&details["total"], details["paths"].as_array().unwrap().len()), (&json!(250), 200));
    assert!(text.contains("\n(200 of 250; give max_results or narrow it)"), "{text}");
}

#[tokio::test]
async fn bad_calls_say_what_is_wrong() {
    let bench = bench();
    for (call, message) in [
        (json!({ "pattern": "a{b" }), "is not a pattern"),
        (json!({ "pattern": "../*" }), "is relative to `path`"),
        (json!({ "pattern": "/etc/*" }), "is relative to `path`"),
        (json!({ "pattern": "*", "path": "nowhere" }), "nowhere: no such file or folder"),
        (json!({ "pattern": "*", "path": "a.rs" }), "a.rs: a name on the way is a file"),
        (json!({ "pattern": "*", "path": "link" }), "outside the work folder"),
        (json!({ "pattern": "*", "max_results": 0 }), "give 1 to 10000"),
    ] {
        let text = bench.fails(&TOOL, call).await;
        assert!(text.contains(message), "{text}");
    }
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let (bench, cancel) = (bench(), Cancel::new());
    cancel.cancel();
    let failure = (TOOL.call)(&bench.seat, json!({ "pattern": "*" }), cancel).await.unwrap_err();
    assert_eq!(failure.details["cancelled"], true);
}
