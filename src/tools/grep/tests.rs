//! Tests of `grep`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::*;
use crate::seat::testing::{Bench, NoLaunch};

fn bench() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("a.txt", "one\ntwo\nthree\nfour\ntwo\n");
    bench.put("src/b.rs", "fn two() {}\r\n");
    bench.put("target/c.txt", "two\n");
    bench.put(".hidden", "two\n");
    bench.put(".gitignore", "target/\n");
    bench.put("data.bin", b"two\n\0two\n");
    bench.put("latin.txt", b"caf\xE9 zwei\n");
    std::fs::write(bench.beside("secret"), "two\n").unwrap();
    symlink(bench.beside("secret"), bench.path("link")).unwrap();
    bench
}

#[tokio::test]
async fn lines_are_found_with_their_places() {
    let bench = bench();
    let all = "a.txt:2:two\na.txt:5:two\nsrc/b.rs:1:fn two() {}\n(binary files skipped: 1)";
    for (call, expected) in [
        (json!({ "pattern": "two" }), all),
        (json!({ "pattern": "(?i)TWO", "glob": "*.rs" }), "src/b.rs:1:fn two() {}"),
        (json!({ "pattern": "\\}$", "path": "src" }), "src/b.rs:1:fn two() {}"),
        (json!({ "pattern": "two", "path": ".hidden" }), ".hidden:1:two"),
        (json!({ "pattern": "two", "path": "target" }), "target/c.txt:1:two"),
        (json!({ "pattern": "zwei" }), "latin.txt:1:caf\u{FFFD} zwei\n(binary files skipped: 1)"),
        (
            json!({ "pattern": "two", "path": "data.bin" }),
            "no line matches `two` in data.bin\n(files searched: 0; what git ignores and hidden \
             files were not)\n(binary files skipped: 1)",
        ),
        (
            json!({ "pattern": "two", "path": "a.txt", "context": 1 }),
            "a.txt-1-one\na.txt:2:two\na.txt-3-three\na.txt-4-four\na.txt:5:two",
        ),
        (
            json!({ "pattern": "one|four", "path": "a.txt", "context": 0, "max_results": 1 }),
            "a.txt:1:one\n(1 of 2 matching lines; files that match: 1; narrow it or give max_results)",
        ),
        (
            json!({ "pattern": "two", "path": "a.txt", "context": 1, "max_results": 1 }),
            "a.txt-1-one\na.txt:2:two\na.txt-3-three\n(1 of 2 matching lines; files that match: 1; narrow \
             it or give max_results)",
        ),
    ] {
        let text = bench.done(&TOOL, call.clone()).await;
        assert_eq!(text, expected, "{call}");
    }
}

#[tokio::test]
async fn the_total_is_true_over_files_and_bounded() {
    let bench = bench();
    bench.put("m/1", "hit\n".repeat(150));
    bench.put("m/2", "hit\n".repeat(150));
    let (text, details) = bench.call(&TOOL, json!({ "pattern": "hit" })).await.unwrap();
    assert!(text.contains("\n(200 of 300 matching lines; files that match: 2;"), "{text}");
    assert_eq!(details["total"], 300);
    assert_eq!(details["matches"].as_array().unwrap().len(), 200);
    bench.put("m/1", "hit\n".repeat(100_001));
    let (text, details) = bench.call(&TOOL, json!({ "pattern": "hit" })).await.unwrap();
    assert!(text.contains("(200 of at least 100001 matching lines"), "{text}");
    assert_eq!(details["complete"], false);
}

#[tokio::test]
async fn a_long_line_is_shown_around_its_match() {
    let bench = bench();
    bench.put("min.js", format!("{}needle{}\n", "ä".repeat(5_000), "b".repeat(5_000)));
    let text = bench.done(&TOOL, json!({ "pattern": "needle", "path": "min.js" })).await;
    let expected = format!(
        "min.js:1:[...] {}needle{} [... cut: the line has 15006 bytes]",
        "ä".repeat(100),
        "b".repeat(394)
    );
    assert_eq!(text, expected);
}

#[tokio::test]
async fn what_cannot_be_read_is_counted() {
    let bench = bench();
    let fifo = bench.path("pipe");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let text = bench.fails(&TOOL, json!({ "pattern": "x", "path": "pipe" })).await;
    assert!(text.contains("pipe is a named pipe"), "{text}");
    bench.done(&TOOL, json!({ "pattern": "two" })).await;
}

#[tokio::test]
async fn bad_calls_say_what_is_wrong() {
    let bench = bench();
    for (call, message) in [
        (json!({ "pattern": "a(" }), "`pattern` is not a regular expression"),
        (json!({ "pattern": "a", "glob": "{" }), "grep: `glob` `{`: is not a pattern"),
        (json!({ "pattern": "a", "path": "nowhere" }), "nowhere: no such file or folder"),
        (json!({ "pattern": "a", "path": "link" }), "outside the work folder"),
        (json!({ "pattern": "a", "context": 51 }), "over the limit of 50"),
        (json!({ "pattern": "a", "max_results": 10_001 }), "give 1 to 10000"),
    ] {
        let text = bench.fails(&TOOL, call).await;
        assert!(text.contains(message), "{text}");
    }
}
