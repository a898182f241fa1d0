//! Handshake, questions, what the server asks back, documents.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_question_starts_the_server_and_is_answered() {
    let mut bench = bench(|spec| spec.settings = json!({ "python": {} })).await;
    let lease = bench.lease(1);
    let file = document("/r/a.py", "x = 1\n");
    let asked = hover(&lease, std::slice::from_ref(&file));
    let mut server = bench.server().await;
    let capabilities = json!({ "positionEncoding": "utf-8", "textDocumentSync": 2 });
    let greeting = server.shake_hands(capabilities).await;
    assert_eq!(greeting["params"]["processId"], Value::Null);
    assert_eq!(
        greeting["params"]["capabilities"]["general"]["positionEncodings"],
        json!(["utf-8", "utf-16", "utf-32"])
    );
    assert!(greeting["params"].get("initializationOptions").is_none());
    server.take("workspace/didChangeConfiguration").await;
    let opened = server.take("textDocument/didOpen").await;
    assert_eq!(opened["params"]["textDocument"]["text"], json!("x = 1\n"));
    let question = server.take("textDocument/hover").await;
    assert_eq!(question["params"], json!({ "line": 1 }), "nulls are left out");
    server.answer(&question, json!({ "contents": "int" })).await;
    let answer = asked.await.unwrap().unwrap();
    assert_eq!(answer.value, json!({ "contents": "int" }));
    assert_eq!(answer.facts.encoding, crate::host::language_server::text::Encoding::Utf8);
    assert_eq!(bench.row().phase, "up");

    // The same text again: nothing is sent but the question.
    let asked = hover(&lease, &[file]);
    let question = server.take("textDocument/hover").await;
    server.answer(&question, Value::Null).await;
    assert_eq!(asked.await.unwrap().unwrap().value, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn every_request_of_the_server_is_answered_also_before_initialize_is() {
    let mut bench = bench(|spec| spec.settings = json!({ "a": { "b": 1 } })).await;
    let lease = bench.lease(1);
    let warm = hover(&lease, &[]);
    let mut server = bench.server().await;
    let greeting = server.take("initialize").await;
    // Its id is that of our own request.
    let id = greeting["id"].clone();
    let items = json!({ "items": [{ "section": "a.b" }, { "section": "x" }, {}] });
    let told = server.ask(id.clone(), "workspace/configuration", items).await;
    assert_eq!(told["result"], json!([1, null, { "a": { "b": 1 } }]));
    for (id, method, answer) in [
        (json!("s-1"), "window/workDoneProgress/create", Value::Null),
        (
            json!(-5),
            "workspace/workspaceFolders",
            json!([{ "uri": "file:///r/a%20b", "name": "a b" }]),
        ),
        (id.clone(), "window/showMessageRequest", Value::Null),
    ] {
        assert_eq!(server.ask(id, method, json!({})).await["result"], answer, "{method}");
    }
    let unknown = server.ask(json!(9), "odd/thing", Value::Null).await;
    assert_eq!(unknown["error"]["code"], json!(-32601));
    server.answer(&greeting, json!({ "capabilities": {} })).await;
    server.take("initialized").await;
    server.take("workspace/didChangeConfiguration").await;
    let asked = server.take("textDocument/hover").await;
    // A request of the server with the id of ours does not answer ours.
    server.ask(asked["id"].clone(), "client/registerCapability", json!({})).await;
    server.answer(&asked, json!(1)).await;
    assert_eq!(warm.await.unwrap().unwrap().value, json!(1));
}

#[tokio::test(start_paused = true)]
async fn junk_between_messages_costs_nothing() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let asked = hover(&lease, &[]);
    let question = server.take("textDocument/hover").await;
    server.write(b"warning: something\n\n\r\nContent-Length: 3\r\n\r\n{[}").await;
    server.send(&json!({ "jsonrpc": "2.0", "id": 4711, "result": "nobody asked" })).await;
    server.answer(&question, json!("fine")).await;
    assert_eq!(asked.await.unwrap().unwrap().value, json!("fine"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_text_goes_as_one_replacement_and_an_old_reading_not_at_all() {
    let mut bench = bench(|_| {}).await;
    let (one, two) = (bench.lease(1), bench.lease(2));
    let mut server = bench.up(&one).await;
    let stale = document("/r/a.py", "a😀 = 1\n");
    tokio::time::advance(Duration::from_millis(1)).await;

    let asked = hover(&one, &[document("/r/a.py", "a😀 = 1\n")]);
    server.take("textDocument/didOpen").await;
    let question = server.take("textDocument/hover").await;
    server.answer(&question, Value::Null).await;
    asked.await.unwrap().unwrap();

    let asked = hover(&two, &[document("/r/a.py", "a😀 = 22\n")]);
    let changed = server.take("textDocument/didChange").await;
    assert_eq!(
        changed["params"],
        json!({
            "textDocument": { "uri": "file:///r/a.py", "version": 2 },
            "contentChanges": [{
                "range": { "start": { "line": 0, "character": 6 },
                           "end": { "line": 0, "character": 7 } },
                "text": "22",
            }],
        })
    );
    let question = server.take("textDocument/hover").await;
    server.answer(&question, Value::Null).await;
    asked.await.unwrap().unwrap();

    let error = hover(&one, &[stale]).await.unwrap().unwrap_err();
    assert!(matches!(error, ServerError::Superseded { .. }), "{error}");
    assert!(!server.has_more().await);

    // The first run's end leaves the document to the second.
    drop(one);
    assert!(!server.has_more().await);
    drop(two);
    server.take("textDocument/didClose").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_is_cancelled_on_timeout_and_by_its_caller() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let cancel = CancellationToken::new();
    let asked = ask(&lease, &[], BOUND, &cancel);
    let question = server.take("textDocument/hover").await;
    cancel.cancel();
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(error, ServerError::Cancelled { .. }), "{error}");
    let cancelled = server.take("$/cancelRequest").await;
    assert_eq!(cancelled["params"]["id"], question["id"]);

    let asked = ask(&lease, &[], Duration::from_secs(3), &CancellationToken::new());
    let late = server.take("textDocument/hover").await;
    let error = asked.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "scripted: no answer to `textDocument/hover` within 3.0 s");
    server.take("$/cancelRequest").await;
    // It is pinged, lives, and its late answer harms nobody.
    let ping = server.take("hostler/ping").await;
    server.refuse(&ping, -32601, "no such method").await;
    server.answer(&late, json!("late")).await;
    let asked = hover(&lease, &[]);
    let question = server.take("textDocument/hover").await;
    server.answer(&question, json!("right")).await;
    assert_eq!(asked.await.unwrap().unwrap().value, json!("right"));
    assert_eq!(bench.row().restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn one_run_has_four_requests_under_way_and_starves_nobody() {
    let mut bench = bench(|_| {}).await;
    let (greedy, modest) = (bench.lease(1), bench.lease(2));
    let mut server = bench.up(&greedy).await;
    let all: Vec<_> = (0..10).map(|_| hover(&greedy, &[])).collect();
    let mut questions = Vec::new();
    for _ in 0..4 {
        questions.push(server.take("textDocument/hover").await);
    }
    assert!(!server.has_more().await);
    let asked = hover(&modest, &[]);
    let question = server.take("textDocument/hover").await;
    server.answer(&question, json!(2)).await;
    assert_eq!(asked.await.unwrap().unwrap().value, json!(2));
    for _ in 0..6 {
        server.answer(&questions.remove(0), json!(1)).await;
        questions.push(server.take("textDocument/hover").await);
    }
    for question in questions {
        server.answer(&question, json!(1)).await;
    }
    for asked in all {
        assert_eq!(asked.await.unwrap().unwrap().value, json!(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_repeated_while_the_server_is_not_ready() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let asked = hover(&lease, &[]);
    for code in [-32801, -32802] {
        let question = server.take("textDocument/hover").await;
        server.refuse(&question, code, "not yet").await;
    }
    let question = server.take("textDocument/hover").await;
    server.answer(&question, json!("now")).await;
    assert_eq!(asked.await.unwrap().unwrap().value, json!("now"));

    let asked = hover(&lease, &[]);
    let question = server.take("textDocument/hover").await;
    server.refuse(&question, -32602, "bad name").await;
    assert_eq!(
        asked.await.unwrap().unwrap_err().to_string(),
        "scripted: refused `textDocument/hover`: bad name (code -32602)"
    );
}

#[tokio::test(start_paused = true)]
async fn progress_is_shown_from_begin_to_end() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let begin = json!({ "token": "t", "value": { "kind": "begin", "title": "Indexing" } });
    server.say("$/progress", begin).await;
    let asked = hover(&lease, &[]);
    let question = server.take("textDocument/hover").await;
    server.answer(&question, Value::Null).await;
    let answer = asked.await.unwrap().unwrap();
    assert_eq!(answer.doing.as_deref(), Some("Indexing"));
    assert_eq!(bench.row().doing.as_deref(), Some("Indexing"));
    server.say("$/progress", json!({ "token": "t", "value": { "kind": "end" } })).await;
    assert!(!server.has_more().await);
    assert_eq!(bench.row().doing, None);
}

#[tokio::test(start_paused = true)]
async fn file_changes_are_told_as_registered_and_before_the_next_question() {
    use crate::ports::{FileChange, FileChangeKind};
    let change = |path: &str, kind| FileChange { path: Path::new(path).into(), kind };
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    // From before it says what it watches: told when it does.
    lease.changed(vec![change("/r/early.py", FileChangeKind::Created)]);
    assert!(!server.has_more().await);
    let watch = json!({ "registrations": [{
        "id": "w", "method": "workspace/didChangeWatchedFiles",
        "registerOptions": { "watchers": [{ "globPattern": "**/*.py" }] },
    }] });
    server.ask(json!(1), "client/registerCapability", watch).await;
    let told = server.take("workspace/didChangeWatchedFiles").await;
    assert_eq!(told["params"]["changes"], json!([{ "uri": "file:///r/early.py", "type": 1 }]));

    let open = document("/r/open.py", "x");
    let asked = hover(&lease, &[open]);
    server.take("textDocument/didOpen").await;
    let question = server.take("textDocument/hover").await;
    server.answer(&question, Value::Null).await;
    asked.await.unwrap().unwrap();

    lease.changed(vec![
        change("/r/b.py", FileChangeKind::Changed),
        change("/r/b.txt", FileChangeKind::Changed),
        change("/r/open.py", FileChangeKind::Changed),
    ]);
    let asked = hover(&lease, &[]);
    let told = server.take("workspace/didChangeWatchedFiles").await;
    assert_eq!(told["params"]["changes"].as_array().unwrap().len(), 2);
    // It changed unseen and nobody brought its text: the server reads it itself.
    server.take("textDocument/didClose").await;
    let question = server.take("textDocument/hover").await;
    server.answer(&question, Value::Null).await;
    asked.await.unwrap().unwrap();
    assert!(lease.open_documents().is_empty());
}
