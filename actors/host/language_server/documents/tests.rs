//! What a server is told of its documents, step by step.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::host::language_server::registrations::Registrations;
use crate::host::language_server::sync_options::SyncOptions;
use crate::host::language_server::text::Encoding;
use crate::ports::FileChangeKind;
use expect_test::{Expect, expect};
use serde_json::json;

fn document(path: &str, text: &str) -> Document {
    Document {
        path: Path::new(path).into(),
        language_id: "x".into(),
        text: text.into(),
        hash: TextHash([text.len() as u8; 32]),
        read_at: Instant::now(),
    }
}

fn terms(options: SyncOptions, registrations: &Registrations) -> Terms<'_> {
    Terms { encoding: Encoding::Utf16, options, registrations }
}

struct Bench {
    documents: Documents,
    options: SyncOptions,
    registrations: Registrations,
}

fn bench(sync: &serde_json::Value) -> Bench {
    let options = SyncOptions::read(&json!({ "textDocumentSync": sync }));
    let documents = Documents::new(Instant::now(), AfterChange::Nothing);
    Bench { documents, options, registrations: Registrations::default() }
}

impl Bench {
    fn sync(&mut self, run: u64, document: &Document, saved: bool) -> String {
        let one = std::slice::from_ref(document);
        let terms = terms(self.options, &self.registrations);
        let purpose = Purpose { run: RunId(run), written: saved };
        shown(&self.documents.sync(Instant::now(), purpose, one, &terms).out)
    }
}

fn shown(out: &[Outgoing]) -> String {
    out.iter().map(|(method, params)| format!("{method} {params}\n")).collect()
}

fn check(sync: &serde_json::Value, expected: &Expect) {
    let mut bench = bench(sync);
    let mut told = String::new();
    for text in ["a\n", "ab\n", "ab\n"] {
        told += &bench.sync(1, &document("/r/a", text), true);
    }
    told += &shown(&bench.documents.release(RunId(1), None));
    expected.assert_eq(&told);
}

#[test]
fn each_server_is_told_as_it_wants_to_be() {
    check(
        &json!({ "openClose": true, "change": 2 }),
        &expect![[r#"
        textDocument/didOpen {"textDocument":{"languageId":"x","text":"a\n","uri":"file:///r/a","version":1}}
        textDocument/didChange {"contentChanges":[{"range":{"end":{"character":1,"line":0},"start":{"character":1,"line":0}},"text":"b"}],"textDocument":{"uri":"file:///r/a","version":2}}
        textDocument/didClose {"textDocument":{"uri":"file:///r/a"}}
    "#]],
    );
    check(
        &json!({ "openClose": true, "change": 1, "save": { "includeText": true } }),
        &expect![[r#"
        textDocument/didOpen {"textDocument":{"languageId":"x","text":"a\n","uri":"file:///r/a","version":1}}
        textDocument/didSave {"text":"a\n","textDocument":{"uri":"file:///r/a"}}
        textDocument/didChange {"contentChanges":[{"text":"ab\n"}],"textDocument":{"uri":"file:///r/a","version":2}}
        textDocument/didSave {"text":"ab\n","textDocument":{"uri":"file:///r/a"}}
        textDocument/didClose {"textDocument":{"uri":"file:///r/a"}}
    "#]],
    );
    check(
        &json!({ "openClose": true, "change": 0, "save": true }),
        &expect![[r#"
        textDocument/didOpen {"textDocument":{"languageId":"x","text":"a\n","uri":"file:///r/a","version":1}}
        textDocument/didSave {"text":null,"textDocument":{"uri":"file:///r/a"}}
        textDocument/didClose {"textDocument":{"uri":"file:///r/a"}}
        textDocument/didOpen {"textDocument":{"languageId":"x","text":"ab\n","uri":"file:///r/a","version":2}}
        textDocument/didSave {"text":null,"textDocument":{"uri":"file:///r/a"}}
        textDocument/didClose {"textDocument":{"uri":"file:///r/a"}}
    "#]],
    );
    check(&json!(null), &expect![[""]]);
}

#[test]
fn at_most_so_many_are_open_and_the_least_used_goes() {
    let mut bench = bench(&json!(2));
    for at in 0..MOST_OPEN {
        bench.sync(1, &document(&format!("/r/{at}"), "x"), false);
    }
    bench.sync(1, &document("/r/0", "x"), false);
    let told = bench.sync(1, &document("/r/new", "x"), false);
    assert!(told.contains(r#"didClose {"textDocument":{"uri":"file:///r/1"}}"#), "{told}");
    assert_eq!(bench.documents.list().len(), MOST_OPEN);
}

#[test]
fn a_new_incarnation_gets_what_is_leased_but_nothing_suspect() {
    let mut bench = bench(&json!(2));
    for path in ["/r/kept", "/r/gone", "/r/suspect"] {
        bench.sync(1, &document(path, "x"), false);
    }
    bench.documents.release(RunId(1), Some(Path::new("/r/gone")));
    let changed =
        FileChange { path: Path::new("/r/suspect").into(), kind: FileChangeKind::Changed };
    bench.documents.changed(Instant::now(), vec![changed]);
    let terms = terms(bench.options, &bench.registrations);
    let told = shown(&bench.documents.reopen(Instant::now(), Incarnation(2), &terms));
    expect![[r#"
        textDocument/didOpen {"textDocument":{"languageId":"x","text":"x","uri":"file:///r/kept","version":4}}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_verdict_holds_only_for_what_it_was_about() {
    let mut bench = bench(&json!(2));
    let path = Path::new("/r/a");
    bench.sync(1, &document("/r/a", "x"), false);
    let About { proof, .. } = bench.documents.about(path).unwrap();
    let findings = Arc::new(Findings {
        items: Vec::new(),
        related: Vec::new(),
        encoding: Encoding::Utf16,
        proof,
    });
    assert!(bench.documents.keep(path, &findings));
    assert!(bench.documents.kept(path).is_some());
    bench.sync(1, &document("/r/b", "x"), false);
    assert!(bench.documents.kept(path).is_some(), "another file opened changes nothing");
    bench.sync(1, &document("/r/b", "xy"), false);
    assert!(bench.documents.kept(path).is_none(), "another file's text does");
    assert!(!bench.documents.keep(path, &findings));
}

#[test]
fn what_changed_unseen_is_trusted_again_by_a_later_reading_or_by_its_writer() {
    let mut bench = bench(&json!(2));
    let old = document("/r/a", "x");
    bench.sync(1, &old, false);
    let unseen = |bench: &mut Bench| {
        let change = FileChange { path: Arc::clone(&old.path), kind: FileChangeKind::Changed };
        assert!(bench.documents.changed(Instant::now(), vec![change]));
    };
    unseen(&mut bench);
    assert_eq!(bench.sync(1, &document("/r/a", "x"), false), "");
    unseen(&mut bench);
    // Who has just written it brings what is there, also if it was read before.
    assert!(bench.sync(1, &old, true).starts_with("textDocument/didSave"));
    unseen(&mut bench);
    let one = std::slice::from_ref(&old);
    let terms = terms(bench.options, &bench.registrations);
    let purpose = Purpose { run: RunId(1), written: false };
    let steps = bench.documents.sync(Instant::now(), purpose, one, &terms);
    assert!(steps.superseded, "anybody else's older reading may be of anything");
    assert!(shown(&steps.out).starts_with("textDocument/didClose"));
    // Nor is it opened with such a reading, once it was closed for its change.
    assert!(bench.sync(1, &old, false).is_empty());
    assert!(bench.documents.list().is_empty());
    assert!(bench.sync(1, &document("/r/a", "x"), false).starts_with("textDocument/didOpen"));
}
