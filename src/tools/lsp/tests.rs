//! Every action against the server in memory, and every error that a model may meet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::language_server::lease::ServerError;
use hostler_actors::host::language_server::uri;
use hostler_actors::host::workspace::space::conversation::run::language_session::testing::Pace;
use hostler_actors::supervise::slot::Phase;
use serde_json::{Value, json};

use super::TOOL;
use crate::diagnostics::late;
use crate::seat::testing::{Bench, NoLaunch};

fn bench() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("pyproject.toml", "");
    bench.program("bin/fake", "");
    bench.put("a.py", "class Circle:\n    def area(self, r): return r * r\n😀 = Circle()\n");
    bench
}

fn at(bench: &Bench, name: &str, line: u32, character: u32) -> Value {
    let end = json!({ "line": line, "character": character + 3 });
    json!({ "uri": uri::of_path(&bench.path(name)),
            "range": { "start": { "line": line, "character": character }, "end": end } })
}

fn place(action: &str, line: usize, symbol: &str) -> Value {
    json!({ "action": action, "file": "a.py", "line": line, "symbol": symbol })
}

#[tokio::test]
async fn navigation_shows_file_line_and_source() {
    let bench = bench();
    bench.server.answer("textDocument/definition", Ok(json!([at(&bench, "a.py", 0, 6)])));
    let (text, details) = bench.call(&TOOL, place("definition", 3, "Circle")).await.unwrap();
    assert_eq!(text, "1 definition of `Circle` (a.py:3):\na.py:1:7  class Circle:");
    let spot = json!({ "path": "a.py", "line": 1, "column": 7, "text": "class Circle:" });
    assert_eq!(details["locations"], json!([spot]));
    let asked = bench.server.asked();
    assert_eq!(asked[0].1["position"], json!({ "line": 2, "character": 5 }), "in UTF-16");
    bench.server.answer("textDocument/implementation", Ok(Value::Null));
    let text = bench.done(&TOOL, place("implementation", 2, "area")).await;
    assert_eq!(text, "no implementation of `area` (a.py:2) was found");
}

#[tokio::test]
async fn of_two_servers_the_first_that_knows_is_enough() {
    let bench = bench().with_second();
    bench.server.answer("textDocument/hover", Ok(json!({ "contents": "of pyright" })));
    assert_eq!(bench.done(&TOOL, place("hover", 1, "Circle")).await, "of pyright");
    bench.server.answer("textDocument/hover", Ok(Value::Null));
    bench.second.answer("textDocument/hover", Ok(json!({ "contents": "of ruff" })));
    assert_eq!(bench.done(&TOOL, place("hover", 1, "Circle")).await, "of ruff");
    // Quick fixes are of both.
    for (server, title) in [(&bench.server, "import it"), (&bench.second, "remove it")] {
        server.answer("textDocument/codeAction", Ok(json!([{ "title": title }])));
    }
    let text = bench.done(&TOOL, place("code_actions", 1, "Circle")).await;
    assert!(text.contains("- import it") && text.contains("- remove it"), "{text}");
    // That a linter has no uses to tell is not worth a word.
    bench.server.answer("textDocument/references", Ok(json!([at(&bench, "a.py", 0, 6)])));
    let unknown = ServerError::Refused {
        server: "ruff".into(),
        method: "textDocument/references",
        code: -32601,
        message: "unknown method".into(),
    };
    bench.second.answer("textDocument/references", Err(unknown));
    let text = bench.done(&TOOL, place("references", 1, "Circle")).await;
    assert_eq!(text, "1 use of `Circle` (a.py:1):\na.py:1:7  class Circle:");
}

#[tokio::test]
async fn status_names_those_that_a_better_one_stands_in_for() {
    let mut bench = bench();
    let mut config = (*bench.seat.languages.config).clone();
    for name in ["worse", "worst"] {
        let mut rival = config.servers["pyright"].clone();
        rival.rank = 99;
        config.servers.insert(name.to_owned(), rival);
    }
    bench.seat.languages.config = Arc::new(config);
    let (text, details) = bench.call(&TOOL, json!({ "action": "status" })).await.unwrap();
    let expected = "passed over, as pyright does the same (`language_servers.prefer` puts one \
                    before it): worse, worst";
    assert!(text.starts_with("pyright: ") && text.ends_with(expected), "{text}");
    assert_eq!(details["servers"][1]["state"], "passed over");
    assert_eq!(details["servers"][1]["passed_over_for"], "pyright");
}

#[tokio::test(start_paused = true)]
async fn the_verdicts_of_two_servers_stand_side_by_side() {
    let bench = bench().with_second();
    bench.put("b.py", "error x\n");
    bench.second.set_pace(Pace::After(Duration::from_secs(60)));
    let (text, details) =
        bench.call(&TOOL, json!({ "action": "diagnostics", "file": "b.py" })).await.unwrap();
    assert_eq!(
        text,
        "b.py: still analysing (ruff: it reads the project); what comes of it is added to a \
         later result\n\
         b.py: fresh by pyright only, not by ruff: 1 error\n\
         b.py:1:1 error x (c) [pyright]"
    );
    assert_eq!(details["freshness"], "still analysing");
    assert_eq!(details["servers"][0]["name"], "pyright");
    assert_eq!(details["servers"][1]["freshness"], "still analysing");
}

#[tokio::test]
async fn a_place_outside_is_absolute_and_may_be_read_from_then_on() {
    let bench = bench();
    let outside = bench.beside("lib.py");
    std::fs::write(&outside, "def sqrt(x): ...\n").unwrap();
    assert!(bench.seat.folder.allowed_file(&outside).is_none());
    let mut found = at(&bench, "a.py", 0, 4);
    found["uri"] = json!(uri::of_path(&outside));
    bench.server.answer("textDocument/typeDefinition", Ok(found));
    let text = bench.done(&TOOL, place("type_definition", 3, "Circle")).await;
    assert!(text.ends_with(&format!("{}:1:5  def sqrt(x): ...", outside.display())), "{text}");
    assert!(bench.seat.folder.allowed_file(&outside).is_some());
}

#[tokio::test]
async fn a_cap_says_how_many_there_were() {
    let bench = bench();
    let all: Vec<_> = (0..214).map(|line| at(&bench, "a.py", line, 0)).collect();
    bench.server.answer("textDocument/references", Ok(json!(all)));
    let (text, details) = bench.call(&TOOL, place("references", 1, "Circle")).await.unwrap();
    assert!(text.starts_with("214 uses of `Circle` (a.py:1), the first 50:\na.py:1:1"), "{text}");
    assert_eq!(text.lines().count(), 51);
    assert_eq!((&details["shown"], &details["total"]), (&json!(50), &json!(214)));
    let symbols: Vec<_> = (0..300)
        .map(|at| {
            json!({ "name": format!("s{at}"), "kind": 12, "selectionRange": {
            "start": { "line": at, "character": 0 }, "end": { "line": at, "character": 1 } } })
        })
        .collect();
    bench.server.answer("textDocument/documentSymbol", Ok(json!(symbols)));
    let text = bench.done(&TOOL, json!({ "action": "symbols", "file": "a.py" })).await;
    assert!(text.starts_with("300 symbols in a.py, the first 200:"), "{text}");
}

#[tokio::test]
async fn hover_is_plain_and_bounded() {
    let bench = bench();
    let contents = json!({ "kind": "markdown", "value": "```python\nclass Circle\n```\nRound." });
    bench.server.answer("textDocument/hover", Ok(json!({ "contents": contents })));
    assert_eq!(bench.done(&TOOL, place("hover", 1, "Circle")).await, "class Circle\nRound.");
    bench.server.answer("textDocument/hover", Ok(json!({ "contents": "é".repeat(9_000) })));
    let text = bench.done(&TOOL, place("hover", 1, "Circle")).await;
    assert!(text.ends_with("(the first 4000 of 9000 characters)"));
}

#[tokio::test]
async fn a_busy_server_is_said_to_be_busy() {
    let bench = bench();
    bench.server.set_doing("indexing 3/9");
    bench.server.answer("textDocument/references", Ok(json!([])));
    let text = bench.done(&TOOL, place("references", 1, "Circle")).await;
    assert_eq!(
        text,
        "no use of `Circle` (a.py:1) was found\n(pyright is still busy (indexing 3/9): this \
         answer may be incomplete, ask again)"
    );
}

#[tokio::test]
async fn symbols_and_quick_fixes_are_listed() {
    let bench = bench();
    let symbol = json!({ "name": "Circle", "kind": 5, "location": at(&bench, "a.py", 0, 6) });
    bench.server.answer("workspace/symbol", Ok(json!([symbol])));
    let text = bench.done(&TOOL, json!({ "action": "symbols", "query": "Cir" })).await;
    assert_eq!(text, "1 symbol matching `Cir`:\na.py:1 class Circle");
    bench.put("b.py", "error e\n");
    let fix = json!({ "title": "Remove it", "kind": "quickfix", "isPreferred": true });
    bench.server.answer("textDocument/codeAction", Ok(json!([fix])));
    let asked = json!({ "action": "code_actions", "file": "b.py", "line": 1, "symbol": "error" });
    let text = bench.done(&TOOL, asked).await;
    assert_eq!(text, "1 quick fix for `error` (b.py:1):\n- Remove it (quickfix), recommended");
    let sent = &bench.server.asked()[1].1;
    assert_eq!(sent["context"]["diagnostics"][0]["message"], "e");
}

#[tokio::test]
async fn places_that_are_none_are_errors() {
    let bench = bench();
    let cases = [
        (place("hover", 9, "x"), "lsp: a.py has 3 lines: there is no line 9"),
        (place("hover", 4, "x"), "lsp: a.py has 3 lines: there is no line 4"),
        (
            place("hover", 1, "Square"),
            "lsp: a.py: `Square` is not on line 1, which is `class Circle:`",
        ),
        (place("hover", 2, "r"), "lsp: a.py: `r` stands 3 times on line 2: 1 in"),
    ];
    for (given, expected) in cases {
        let error = bench.fails(&TOOL, given).await;
        assert!(error.starts_with(expected), "{error}");
    }
    bench.put("empty.py", "");
    bench.put("latin.py", [b'#', 0xe9]);
    let on = |file: &str| json!({ "action": "hover", "file": file, "line": 1, "symbol": "x" });
    let cases = [
        ("empty.py", "lsp: empty.py has 0 lines"),
        ("latin.py", "latin.py: byte 1 is not UTF-8"),
        ("none.py", "none.py: no such file or folder"),
        ("../out.py", "`../out.py` leads to"),
    ];
    for (file, expected) in cases {
        let error = bench.fails(&TOOL, on(file)).await;
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn a_missing_half_is_named_with_where_it_was_looked_for() {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("a.py", "class Circle:\n");
    bench.put("notes.txt", "class Circle:\n");
    let error = bench.fails(&TOOL, place("hover", 1, "Circle")).await;
    let root = bench.seat.folder.root().display();
    assert!(error.starts_with("lsp: no language server for a.py: pyright: no root: none of"));
    assert!(error.contains(&format!("in {root}; no program: `fake` was not found")), "{error}");
    bench.put("pyproject.toml", "");
    let status = bench.done(&TOOL, json!({ "action": "status" })).await;
    assert!(status.starts_with("pyright: no program: `fake` was not found: not in"), "{status}");
    assert!(status.contains(&format!("{root}/bin")) && status.contains("its root is"), "{status}");
    let text = json!({ "action": "hover", "file": "notes.txt", "line": 1, "symbol": "Circle" });
    let error = bench.fails(&TOOL, text).await;
    assert!(error.ends_with("notes.txt: no definition takes it"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_told_as_one() {
    let bench = bench();
    let refused = |code| ServerError::Refused {
        server: "pyright".to_owned(),
        method: "textDocument/implementation",
        code,
        message: "no".to_owned(),
    };
    bench.server.answer("textDocument/implementation", Err(refused(-32601)));
    let error = bench.fails(&TOOL, place("implementation", 1, "Circle")).await;
    assert_eq!(error, "lsp implementation: pyright does not offer implementation");
    bench.server.answer("textDocument/implementation", Err(refused(-32603)));
    let error = bench.fails(&TOOL, place("implementation", 1, "Circle")).await;
    assert!(error.contains("pyright: refused"), "{error}");
}

#[tokio::test]
async fn status_and_reload_speak_of_what_runs() {
    let bench = bench();
    let (text, details) = bench.call(&TOOL, json!({ "action": "status" })).await.unwrap();
    assert!(text.starts_with("pyright: up (first start), root "), "{text}");
    assert_eq!(details["servers"][0]["state"], "up");
    assert_eq!(details["servers"][0]["root"], ".");
    let before = bench.server.reloads();
    let text = bench.done(&TOOL, json!({ "action": "reload" })).await;
    assert!(text.starts_with("pyright: restarting for every run on "), "{text}");
    assert_eq!(bench.server.reloads(), before + 1);
}

#[tokio::test]
async fn only_a_server_that_ran_while_nobody_watched_starts_afresh_and_once() {
    for (phase, reloads) in [(Phase::Idle, 0), (Phase::Starting, 1), (Phase::Up, 1)] {
        let bench = bench();
        bench.server.set_view(|view| view.phase = phase);
        for _ in 0..2 {
            bench.done(&TOOL, json!({ "action": "status" })).await;
            assert_eq!(bench.server.reloads(), reloads, "{phase:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn diagnostics_are_fresh_or_say_why_not() {
    let bench = bench();
    bench.put("b.py", "warning w\nerror e\n");
    let ask = json!({ "action": "diagnostics", "file": "b.py" });
    let (text, details) = bench.call(&TOOL, ask.clone()).await.unwrap();
    assert_eq!(
        text,
        "b.py: fresh: 1 error and 1 warning\nb.py:2:1 error e (c) [pyright]\n\
         b.py:1:1 warning w (c) [pyright]"
    );
    assert_eq!((&details["freshness"], &details["total"]), (&json!("fresh"), &json!(2)));
    bench.server.set_pace(Pace::Absent("stopped"));
    let (text, details) = bench.call(&TOOL, ask.clone()).await.unwrap();
    assert_eq!(text, "b.py: no server: pyright: stopped");
    assert_eq!(details["freshness"], "no server");
    bench.server.set_pace(Pace::After(Duration::from_secs(25)));
    bench.put("b.py", "error later\n");
    let (text, details) = bench.call(&TOOL, ask).await.unwrap();
    assert!(text.starts_with("b.py: still analysing (pyright: it reads the project)"), "{text}");
    assert_eq!(details["freshness"], "still analysing");
    tokio::time::sleep(Duration::from_secs(13)).await;
    let (text, _) = late(&bench.seat).await.unwrap();
    assert!(text.contains("b.py:1:1 error later"), "{text}");
}
