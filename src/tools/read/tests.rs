//! Tests of `read`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::handles::capture::clip;
use crate::seat::testing::{Bench, NoLaunch};

fn bench() -> Bench {
    Bench::new(Arc::new(NoLaunch))
}

#[tokio::test]
async fn texts_are_shown_with_what_must_be_said_of_them() {
    let long = format!("{}\nend\n", "ä".repeat(2_001));
    let cut =
        format!("     1\t{} [... cut: the line has 4003 bytes]\n     2\tend", "ä".repeat(2_000));
    for (content, expected) in [
        (b"one\n\ttwo\n".as_slice(), "     1\tone\n     2\t\ttwo"),
        (b"", "f is empty"),
        (b"one", "     1\tone\n(no newline at the end)"),
        (b"a\r\nb\r\n", "     1\ta\n     2\tb\n(CRLF line endings)"),
        (b"\xEF\xBB\xBFa\n", "     1\ta\n(begins with a byte order mark)"),
        (
            b"ok\ncaf\xE9\n",
            "     1\tok\n     2\tcaf\u{FFFD}\n(not UTF-8 on lines 2: what cannot be read is shown as \
             \u{FFFD})",
        ),
        (long.as_bytes(), &cut),
        (b"\x7FELF\0\0", "f is a binary (ELF: a program or library) of 6 bytes and not shown"),
        (
            b"\xFF\xFEa\0",
            "f is a UTF-16 text (iconv -f UTF-16 makes it readable) of 4 bytes and not shown",
        ),
    ] {
        let bench = bench();
        bench.put("f", content);
        assert_eq!(bench.done(&TOOL, json!({ "path": "f" })).await, expected);
    }
}

#[tokio::test]
async fn pages_lead_on() {
    let bench = bench();
    bench.put("f", (1..=4_500).map(|n| format!("{n}\n")).collect::<String>());
    let (text, details) = bench.call(&TOOL, json!({ "path": "f" })).await.unwrap();
    assert!(text.ends_with("  2000\t2000\n(lines 1 to 2000 of 4500; go on with offset 2001)"));
    assert_eq!(details["next_offset"], 2_001);
    let call = json!({ "path": "f", "offset": 4_499, "limit": 10 });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    assert_eq!(text, "  4499\t4499\n  4500\t4500\n(the file ends here, with line 4500)");
    assert_eq!(details["next_offset"], Value::Null);
    assert_eq!(details["total_lines"], 4_500);
    for (offset, limit, message) in [
        (4_501, 1, "f: has 4500 lines, and offset 4501 is behind them"),
        (0, 1, "`offset` counts from 1"),
        (1, 0, "`limit` counts from 1"),
    ] {
        let call = json!({ "path": "f", "offset": offset, "limit": limit });
        let text = bench.fails(&TOOL, call).await;
        assert!(text.contains(message), "{text}");
    }
}

#[tokio::test]
async fn a_page_is_bounded_in_bytes_too_and_shows_at_least_a_line() {
    let bench = bench();
    bench.put("f", format!("{}\n", "x".repeat(1_900)).repeat(100));
    let (text, details) = bench.call(&TOOL, json!({ "path": "f" })).await.unwrap();
    assert!(text.len() < 70_000, "{}", text.len());
    assert_eq!(details["last_line"], 34);
    assert!(text.ends_with("(lines 1 to 34 of 100; go on with offset 35)"));
}

#[tokio::test]
async fn fifty_megabytes_are_paged_without_being_held() {
    let bench = bench();
    let line = format!("{}\n", "x".repeat(99));
    bench.put("f", line.repeat(500_000));
    let begun = Instant::now();
    let call = json!({ "path": "f", "offset": 400_000, "limit": 2 });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    assert!(text.starts_with(&format!("400000\t{line}400001\t{line}")), "{text}");
    assert_eq!(details["total_lines"], 500_000);
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn one_endless_line_is_cut_and_counted() {
    let bench = bench();
    bench.put("f", "x".repeat(10_000_000));
    let text = bench.done(&TOOL, json!({ "path": "f" })).await;
    assert!(text.contains("[... cut: the line has 10000000 bytes]"));
    assert!(text.len() < 3_000);
}

#[tokio::test]
async fn images_are_blocks_up_to_a_limit() {
    let bench = bench();
    let png = b"\x89PNG\r\n\x1a\nrest";
    bench.put("a.png", png);
    let output = (TOOL.call)(&bench.seat, json!({ "path": "a.png" }), Cancel::new()).await.unwrap();
    assert_eq!(
        output.content.last(),
        Some(&Block::Image { mime_type: "image/png".to_owned(), data: STANDARD.encode(png) })
    );
    for (head, mime_type) in [
        (b"\xFF\xD8\xFF\xE0".as_slice(), "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x01\x02\x03\x04WEBP", "image/webp"),
    ] {
        assert_eq!(image(head), Some(mime_type));
    }
    let large = [png.as_slice(), &vec![0; 5 * 1024 * 1024]].concat();
    bench.put("b.png", large);
    let text = bench.fails(&TOOL, json!({ "path": "b.png" })).await;
    assert!(text.contains("over the limit of 5242880"), "{text}");
}

#[tokio::test]
async fn handles_and_named_files_outside_can_be_read() {
    let bench = bench();
    let long: String = (1..=20_000).map(|n| format!("row {n}\n")).collect();
    let handle = clip(&bench.seat.handles, long).handle.unwrap().to_string();
    let text = bench.done(&TOOL, json!({ "path": handle, "offset": 15_000, "limit": 1 })).await;
    assert!(text.starts_with(" 15000\trow 15000\n"), "{text}");
    let outside = bench.beside("lib.pyi");
    std::fs::write(&outside, "def f(): ...\n").unwrap();
    let call = json!({ "path": outside.to_str().unwrap() });
    assert!(bench.fails(&TOOL, call.clone()).await.contains("outside the work folder"));
    bench.seat.folder.allow_outside(&outside);
    assert_eq!(bench.done(&TOOL, call).await, "     1\tdef f(): ...");
}

#[tokio::test]
async fn a_cancelled_call_says_so() {
    let bench = bench();
    bench.put("f", "x");
    let cancel = Cancel::new();
    cancel.cancel();
    let failure = (TOOL.call)(&bench.seat, json!({ "path": "f" }), cancel).await.unwrap_err();
    assert_eq!(failure.details["cancelled"], true);
}
