//! Tests of `edit`: a table of what is made, one of what is refused, and the tool.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::seat::testing::{Bench, NoLaunch};
use crate::tools::read;

#[test]
fn what_is_made() {
    for (content, old, new, expected) in [
        ("a b c", "b", "x", "a x c"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a\nb", "b", "x\ny", "a\nx\ny"),
        ("price $1", "$1", "$& $1 $$ \\n", "price $& $1 $$ \\n"),
        ("a\r\nb\r\nc", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc"),
        ("a\r\nb\r\n", "a\r\nb", "x", "x\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\r\nb\r\n", "\nb", "", "a\r\n"),
        ("a\r\nb\r\n", "a\n", "", "b\r\n"),
        // Each piece of a mixed file keeps its own endings.
        ("a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n"),
        ("a\nb\r\nc\r\n", "b\nc", "x\ny", "a\nx\r\ny\r\n"),
        ("a\r\nb", "b", "x\ny", "a\r\nx\r\ny"),
        ("lone\rcr\n", "cr", "x\ny", "lone\rx\ny\n"),
        ("\u{FEFF}a\n", "a", "x", "\u{FEFF}x\n"),
        ("\u{FEFF}a\n", "\u{FEFF}a", "x", "\u{FEFF}x\n"),
        ("\u{FEFF}a\n", "a\n", "", "\u{FEFF}"),
        ("漢字 äö", "字", "x", "漢x äö"),
    ] {
        let edited = apply(content.as_bytes(), old, new, false).unwrap();
        assert_eq!(String::from_utf8(edited.content).unwrap(), expected, "{content:?} {old:?}");
    }
    let edited = apply(b"aaa a\r\na", "a", "b\n", true).unwrap();
    assert_eq!(edited.content, b"b\r\nb\r\nb\r\n b\r\n\r\nb\r\n");
    assert_eq!(edited.count, 5);
    let latin = apply(b"caf\xE9 x\n", "x", "y", false).unwrap();
    assert_eq!(latin.content, b"caf\xE9 y\n");
}

/// An edit there and back leaves every byte, whatever the endings and the mark.
#[test]
fn there_and_back_is_where_it_was() {
    let mut state = 7_u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for round in 0..500 {
        let style = ["\n", "\r\n"][usize::try_from(next(2)).unwrap()];
        let mark = if next(2) == 0 { "\u{FEFF}" } else { "" };
        let lines: Vec<_> = (0..next(8) + 1).map(|line| format!("{line}:{}", next(3))).collect();
        let end = if next(2) == 0 { style } else { "" };
        let content = format!("{mark}{}{end}", lines.join(style));
        let from = usize::try_from(next(lines.len() as u64)).unwrap();
        let to = from + 1 + usize::try_from(next((lines.len() - from) as u64)).unwrap();
        let (old, new) = (lines[from..to].join("\n"), "fresh\nlines");
        // One line alone gives a new break no ending to copy.
        if !content.contains('\n') && style == "\r\n" {
            continue;
        }
        let there = apply(content.as_bytes(), &old, new, false).unwrap().content;
        let expected = content.replacen(&old.replace('\n', style), &new.replace('\n', style), 1);
        assert_eq!(String::from_utf8_lossy(&there), expected, "round {round}");
        let back = apply(&there, new, &old, false).unwrap().content;
        assert_eq!(String::from_utf8_lossy(&back), content, "round {round}");
    }
}

#[test]
fn what_is_refused() {
    let code = "fn main() {\n\tlet name = “x”;\n\tprint(name);\n}\n";
    for (content, old, new, message) in [
        ("a", "", "x", "old_text is empty"),
        ("a", "a", "a", "are the same"),
        ("a\r\nb", "a\r\nb", "a\nb", "are the same"),
        ("x\ny x\nx\n", "x", "z", "occurs 3 times, on lines 1, 2, 3:"),
        ("aaa", "aa", "z", "occurs 2 times, on lines 1, 1:"),
        (code, "  let name = “x”;\n  print(name);", "", "from line 2 on"),
        (code, "let name = \"x\";", "", "white space, quotes or dashes differ from line 2"),
        (code, "\tprint(nmae);", "", "the most similar line is 3 (tabs shown as →)\n→print(name);"),
        (code, "     2\tlet name", "", "leave out the line numbers"),
        (code, "nothing like it at all", "", "nothing resembles it"),
        ("", "x", "", "nothing resembles it"),
    ] {
        let error = apply(content.as_bytes(), old, new, false).unwrap_err().to_string();
        assert!(error.contains(message), "{old:?}: {error}");
    }
    let many = "x\n".repeat(1_000);
    let error = apply(many.as_bytes(), "x", "y", false).unwrap_err().to_string();
    assert!(error.contains("occurs 1000 times") && error.contains("20, ...:"), "{error}");
}

fn bench() -> Bench {
    Bench::new(Arc::new(NoLaunch))
}

#[tokio::test]
async fn the_result_shows_the_change_in_its_place() {
    let bench = bench();
    bench.put("f", (1..=9).map(|line| format!("line {line}\n")).collect::<String>());
    let call = json!({ "path": "f", "old_text": "line 5\n", "new_text": "five\nhalf\n" });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    let expected = "f: replaced 1 occurrence, now lines 5 to 6\n     2\tline 2\n     3\tline 3\n     \
        4\tline 4\n     5\tfive\n     6\thalf\n     7\tline 6\n     8\tline 7\n     9\tline 8";
    assert_eq!(text, expected);
    assert_eq!(details, json!({ "path": "f", "replacements": 1, "lines": [5], "lost": [] }));
    let all = json!({ "path": "f", "old_text": "line", "new_text": "row", "replace_all": true });
    let text = bench.done(&TOOL, all).await;
    assert!(text.starts_with("f: replaced 8 occurrences, now on lines 1, 2, 3, 4, 7, 8, 9, 10\n"));
}

#[tokio::test]
async fn a_stale_view_is_named_as_the_cause() {
    let bench = bench();
    bench.put("f", "one\n");
    bench.done(&read::TOOL, json!({ "path": "f" })).await;
    bench.put("f", "other\n");
    let call = json!({ "path": "f", "old_text": "one", "new_text": "two" });
    let text = bench.fails(&TOOL, call).await;
    assert!(text.ends_with("The file has changed since you last saw it: read it again."), "{text}");
}

#[tokio::test]
async fn edits_of_one_file_at_once_all_land_under_its_lock() {
    let bench = Arc::new(bench());
    bench.put("f", (0..6).map(|n| format!("<{n}>\n")).collect::<String>());
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..6 {
        let bench = Arc::clone(&bench);
        calls.spawn(async move {
            let _held = bench.seat.locks.lock_all([bench.path("f")]).await;
            let (old, new) = (format!("<{number}>"), format!("[{number}]"));
            bench.done(&TOOL, json!({ "path": "f", "old_text": old, "new_text": new })).await
        });
    }
    calls.join_all().await;
    assert_eq!(bench.content("f"), (0..6).map(|n| format!("[{n}]\n")).collect::<String>());
}

#[tokio::test]
async fn a_missing_file_and_a_large_one_are_said() {
    let bench = bench();
    let call = json!({ "path": "f", "old_text": "a", "new_text": "b" });
    assert!(bench.fails(&TOOL, call.clone()).await.contains("f: no such file"));
    let file = std::fs::File::create(bench.path("f")).unwrap();
    file.set_len(WHOLE_FILE + 1).unwrap();
    assert!(bench.fails(&TOOL, call).await.contains("larger than the limit of 67108864 bytes"));
}
