//! Tests of long results: what is shown, kept, dropped and removed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::Read;

use super::capture::{Capture, clip};
use super::*;

const INLINE: usize = 32 * 1024;
const LIMITS: Limits = Limits::showing(INLINE);

fn shelf(limits: Limits) -> (tempfile::TempDir, OutputHandles) {
    let data = tempfile::tempdir().unwrap();
    let handles = OutputHandles::new(RunId(0x1f), data.path(), limits);
    (data, handles)
}

fn whole(handles: &OutputHandles, handle: Handle) -> String {
    let mut text = String::new();
    handles.open(&handle.to_string()).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn short_text_is_shown_whole_and_touches_no_disk() {
    let (data, handles) = shelf(LIMITS);
    let text = "x".repeat(INLINE);
    let clipped = clip(&handles, text.clone());
    assert_eq!(clipped, Clipped { text, handle: None, bytes: INLINE as u64 });
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}

#[test]
fn long_text_is_cut_at_lines_and_all_of_it_is_kept() {
    let (data, handles) = shelf(LIMITS);
    let text: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
    let clipped = clip(&handles, text.clone());
    let handle = clipped.handle.unwrap();
    assert_eq!(handle.to_string(), "hostler://r1f/1");
    assert!(clipped.text.len() < INLINE + 200, "{}", clipped.text.len());
    assert!(clipped.text.starts_with("line 0\n") && clipped.text.ends_with("line 9999\n"));
    let note = clipped.text.lines().find(|line| line.starts_with("[...")).unwrap();
    assert!(note.contains(&format!("all {} bytes: read hostler://r1f/1", text.len())), "{note}");
    let (head, tail) = clipped.text.split_once(note).unwrap();
    let left_out: usize = note.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(head.len() + left_out + tail.len() - 1, text.len());
    assert_eq!(whole(&handles, handle), text);
    drop(handles);
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}

#[test]
fn pieces_of_every_size_end_up_the_same() {
    let (_data, handles) = shelf(LIMITS);
    let text: String = (0..9_000).map(|line| format!("zeile {line} äöü\n")).collect();
    let expected = clip(&handles, text.clone()).text.replace("/1 ", "/N ");
    for size in [1, 7, 4096, 65_536] {
        let mut capture = Capture::new(&handles);
        text.as_bytes().chunks(size).for_each(|piece| capture.push(piece));
        let clipped = capture.clipped();
        let own = format!("/{} ", clipped.handle.unwrap().number);
        assert_eq!(clipped.text.replace(&own, "/N "), expected, "in pieces of {size}");
    }
}

#[test]
fn one_long_line_of_wide_characters_is_cut_between_them() {
    let (_data, handles) = shelf(LIMITS);
    let clipped = clip(&handles, "漢".repeat(INLINE));
    assert!(!clipped.text.contains('\u{FFFD}'));
    assert!(clipped.text.starts_with('漢') && clipped.text.ends_with('漢'));
}

#[test]
fn what_is_over_a_limit_is_said() {
    let (_data, handles) = shelf(Limits { handles: 2, bytes: 200_000, each: 100_000, ..LIMITS });
    let clipped = clip(&handles, "word ".repeat(40_000));
    assert!(clipped.text.contains("the first 100000 of 200000 bytes, which is the limit"));
    let first = clipped.handle.unwrap();
    clip(&handles, "a ".repeat(INLINE));
    assert_eq!(whole(&handles, first).len(), 100_000);
    clip(&handles, "b ".repeat(INLINE));
    let gone = handles.open(&first.to_string()).unwrap_err();
    assert!(matches!(gone, HandleError::Gone { .. }), "{gone}");
}

#[test]
fn bytes_of_all_are_bounded_while_one_grows() {
    let (data, handles) = shelf(Limits { handles: 9, bytes: 150_000, each: 100_000, ..LIMITS });
    let mut spills: Vec<_> = (0..3).map(|_| handles.begin().unwrap()).collect();
    for spill in &mut spills {
        assert_eq!(spill.append(&vec![b'x'; 70_000]).unwrap(), 70_000);
    }
    assert_eq!(spills[0].append(b"more").unwrap(), 0, "its file made room for the others");
    let folder = data.path().join("r1f");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 2);
}

#[test]
fn handles_that_lead_nowhere_say_so() {
    let (_data, handles) = shelf(LIMITS);
    clip(&handles, "x\n".repeat(INLINE));
    for (given, message) in [
        ("hostler://r1f/2", "has no such result"),
        ("hostler://r1f/0", "has no such result"),
        ("hostler://r2/1", "belongs to another run"),
        ("hostler://r1f/../1", "is not a handle"),
        ("hostler://x/1", "is not a handle"),
    ] {
        let error = handles.open(given).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("r"), "{given}: {error}");
    }
}

#[test]
fn without_a_disk_the_text_says_what_is_lost() {
    let handles = OutputHandles::new(RunId(1), Path::new("/proc/nowhere"), LIMITS);
    let clipped = clip(&handles, "x\n".repeat(INLINE));
    assert_eq!(clipped.handle, None);
    assert!(clipped.text.contains("they could not be kept: "), "{}", clipped.text);
}

use super::capture::Clipped;
