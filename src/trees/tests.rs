//! What is kept, what is read again, and what goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::*;

fn place() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path()).unwrap();
    (place, folder)
}

#[test]
fn a_changed_file_is_read_again_and_the_same_content_is_kept_once() {
    let (place, folder) = place();
    let trees = Trees::default();
    let read = |name: &str| {
        let file = folder.locate(name).unwrap();
        trees.source(&folder, &file, SupportLang::Python).unwrap()
    };
    std::fs::write(place.path().join("a.py"), "x = 1\n").unwrap();
    std::fs::write(place.path().join("b.py"), "x = 1\n").unwrap();
    let (a, b) = (read("a.py"), read("b.py"));
    assert!(Arc::ptr_eq(&a, &b));
    assert_eq!(trees.bytes(), 6);
    let tree = trees.tree(&a, &mut None, &|| false).unwrap();
    assert!(Arc::ptr_eq(&tree, &trees.tree(&b, &mut None, &|| false).unwrap()));
    assert!(trees.bytes() > 6);
    // The same size within the same tick of the clock.
    std::fs::write(place.path().join("a.py"), "x = 2\n").unwrap();
    assert_eq!(read("a.py").text.as_str(), "x = 2\n");
    trees.clear();
    assert_eq!(trees.bytes(), 0);
}

#[test]
fn what_is_no_text_says_why() {
    let (place, folder) = place();
    let trees = Trees::default();
    let why = |name: &str, content: &[u8]| {
        std::fs::write(place.path().join(name), content).unwrap();
        let file = folder.locate(name).unwrap();
        match trees.source(&folder, &file, SupportLang::C) {
            Ok(_) => panic!("{name} was read"),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(why("a.c", b"\x7fELF\0"), "binary");
    assert_eq!(why("b.c", b"// caf\xe9\n"), "byte 6 is not UTF-8");
    let huge = vec![b' '; LARGEST as usize + 1];
    assert_eq!(why("c.c", &huge), "4194305 bytes, over the limit of 4194304");
}

#[test]
fn memory_is_bounded_and_the_longest_unused_goes() {
    let mut store = Store::default();
    let text = |number: usize| format!("{number:08}{}", " ".repeat(1 << 20));
    for number in 0..300 {
        let text = text(number);
        let hash = Hash::of(text.as_bytes());
        store.content(hash, text, SupportLang::C);
        assert!(store.bytes <= CAP);
    }
    let kept = |number: usize| {
        store.contents.contains_key(&(Hash::of(text(number).as_bytes()), SupportLang::C))
    };
    assert!(!kept(0) && kept(299));
}
