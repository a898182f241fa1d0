//! Patches as models write them, and what becomes of texts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::apply::apply;
use super::*;

fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch\n")
}

/// Applies chunks to a text and returns it with what was ignored.
fn patched(text: &str, chunks: &str) -> Result<(String, Vec<String>), String> {
    let read = read(&patch(&format!("*** Update File: f\n{chunks}")))
        .map_err(|error| error.to_string())?;
    let [Change::Update { chunks, .. }] = read.as_slice() else { panic!("{read:?}") };
    let done = apply(text.as_bytes(), chunks).map_err(|error| error.to_string())?;
    let ignored = done.places.iter().filter_map(|(_, ignored)| ignored.as_ref());
    Ok((String::from_utf8(done.content).unwrap(), ignored.map(ToString::to_string).collect()))
}

fn becomes(text: &str, chunks: &str, expected: &str) {
    assert_eq!(patched(text, chunks), Ok((expected.to_owned(), vec![])), "{chunks}");
}

fn refused(text: &str, chunks: &str) -> String {
    patched(text, chunks).unwrap_err()
}

#[test]
fn a_patch_is_read_with_its_leniencies() {
    let plain = patch(
        "*** Add File: a\n+x\n+\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n@@ fn f\n k\n-o\n+n",
    );
    let changes = read(&plain).unwrap();
    assert_eq!(
        changes,
        [
            Change::Add { path: "a".into(), lines: vec!["x".into(), String::new()] },
            Change::Delete { path: "b".into() },
            Change::Update {
                path: "c".into(),
                to: Some("d".into()),
                chunks: vec![Chunk {
                    after: vec!["fn f".into()],
                    lines: vec![
                        Line::Keep("k".into()),
                        Line::Remove("o".into()),
                        Line::Insert("n".into())
                    ],
                    at_end: false,
                }],
            },
        ]
    );
    for wrapped in [
        format!("<<'EOF'\n{plain}EOF\n"),
        format!("apply_patch <<EOF\n{plain}EOF"),
        format!("\n  {}\n\n", plain.trim()),
    ] {
        assert_eq!(read(&wrapped).unwrap(), changes, "{wrapped}");
    }
    assert_eq!(paths(&plain), ["a", "b", "c", "d"]);
}

#[test]
fn what_cannot_be_read_names_its_line() {
    for (source, word) in [
        ("", "begins with ``"),
        ("*** Begin Patch\n*** Delete File: a", "cut off"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        (&patch("*** Update File: a"), "update of a has no chunk"),
        (&patch("*** Add File: a\nx"), "line 3 of the patch, `x`: every line of a new file"),
        (&patch("*** Update File: a\n@@\n-b\nxx"), "line 5 of the patch, `xx`"),
        (&patch("--- a\n+++ b"), "line 2 of the patch"),
    ] {
        let error = read(source).unwrap_err().to_string();
        assert!(error.contains(word), "{source}: {error}");
    }
}

#[test]
fn chunks_go_where_their_lines_stand() {
    becomes("a\nb\nc\n", "@@\n a\n-b\n+B\n+BB\n c", "a\nB\nBB\nc\n");
    becomes("a\nb\nc\nd\ne\n", " a\n-b\n@@\n d\n+x", "a\nc\nd\nx\ne\n");
    becomes("a\n", "@@\n+b", "a\nb\n");
    becomes("", "@@\n+b", "b\n");
    becomes("f\n x\ng\n x\n", "@@ g\n- x\n+ y", "f\n x\ng\n y\n");
    becomes(
        "class A\n f\n  x\nclass B\n f\n  x\n",
        "@@ class B\n@@ f\n-  x\n+  y",
        "class A\n f\n  x\nclass B\n f\n  y\n",
    );
    becomes("x\na\nx\n", "@@\n-x\n+y\n*** End of File", "x\na\ny\n");
    becomes("f\ng\n", "@@ f\n+new", "f\nnew\ng\n");
    becomes("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c", "a\nc\n");
    becomes("a\nb\n", "@@\n a\n-b\n+c\n\n", "a\nc\n");
}

#[test]
fn more_than_one_place_is_an_error_that_lists_them() {
    assert_eq!(
        refused("x\na\nx\n", "@@\n-x\n+y"),
        "chunk 1: its lines stand 2 times, at lines 1, 3: add lines around it, or `@@` with a line before it"
    );
    // Also where the place is only found with less exactness.
    assert!(refused("x \na\nx \n", "@@\n-x\n+y").contains("2 times, at lines 1, 3"));
    // One exact place is the one, whatever is nearly so.
    becomes("x \nx\n", "@@\n-x\n+y", "x \ny\n");
}

#[test]
fn what_is_ignored_is_told_and_nothing_else_is() {
    let with = |text: &str, chunks: &str, expected: &str, word: &str| {
        let (new, ignored) = patched(text, chunks).unwrap();
        assert_eq!(new, expected);
        assert!(ignored.len() == 1 && ignored[0].contains(word), "{ignored:?}");
    };
    with("a  \nb\n", "@@\n a\n-b\n+c", "a  \nc\n", "ends of lines");
    with(
        "    if x:\n        y\n",
        "@@\n if x:\n-    y\n+    z",
        "    if x:\n        z\n",
        "indentation",
    );
    with("if x:\n\ty\n", "@@\n-\tif x:\n-\t\ty\n+\tif z:\n+\t\tw", "if z:\n\tw\n", "indentation");
    with(
        "say(\u{201c}a\u{201d})\nb\n",
        "@@\n say(\"a\")\n-b\n+c",
        "say(\u{201c}a\u{201d})\nc\n",
        "typographic",
    );
    // Neither other words nor an indentation that is not that of all lines.
    assert!(refused("  a\n   b\n", "@@\n-a\n-b\n+c").contains("its lines stand nowhere"));
    assert!(refused("foo(a)\n", "@@\n-foo(b)\n+c").contains("stand nowhere"));
}

#[test]
fn what_is_not_found_shows_the_nearest_place() {
    assert_eq!(
        refused("def f():\n\treturn 1\n", "@@\n def f():\n-    return 2\n+    return 3"),
        "chunk 1: its lines stand nowhere; the nearest place is line 1; at line 2 the file has `→return 1` and the patch `····return 2`"
    );
    assert!(refused("a\nb\n", "@@\n b\n@@\n a").contains("before the place of the chunk before"));
    assert!(refused("a\n", "@@ nowhere\n-a").contains("no line is `nowhere`"));
    assert!(refused("a\nb\n", "@@\n-a\n*** End of File").contains("at line 1, and not at the end"));
}

#[test]
fn line_ends_mark_and_a_missing_newline_are_the_files() {
    becomes("a\nb", "@@\n-a\n+A", "A\nb");
    becomes("a\nb", "@@\n-b\n+B", "a\nB");
    becomes("a\nb", "@@\n b\n+c", "a\nb\nc");
    becomes("a\r\nb\r\n", "@@\n-a\n+A\n+AA", "A\r\nAA\r\nb\r\n");
    becomes("a\r\nb\nc\n", "@@\n-b\n+B", "a\r\nB\nc\n");
    becomes("\u{feff}a\nb\n", "@@\n-a\n+A", "\u{feff}A\nb\n");
    // In another encoding what is not touched keeps its bytes.
    let read = read(&patch("*** Update File: f\n@@\n-b\n+B")).unwrap();
    let [Change::Update { chunks, .. }] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(apply(b"caf\xe9\nb\n", chunks).unwrap().content, b"caf\xe9\nB\n");
}
