//! Verdicts: when they are fresh, and when they are not.

use super::*;

const CAP: Duration = Duration::from_secs(3);

#[tokio::test(start_paused = true)]
async fn a_pull_is_final_and_kept_until_something_moves_on() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let file = document("/r/a.py", "x");
    let judged = judge(&lease, &file, CAP);
    server.take("textDocument/didOpen").await;
    server.take("textDocument/didSave").await;
    let pull = server.take("textDocument/diagnostic").await;
    assert_eq!(pull["params"], json!({ "textDocument": { "uri": "file:///r/a.py" } }));
    let report = json!({ "kind": "full", "items": items(&["bad"]) });
    server.answer(&pull, report.clone()).await;
    assert_eq!(words(&judged.await.unwrap()), ["bad"]);
    assert!(lease.last_verdict(&file.path).is_some());

    server.ask(json!(1), "workspace/diagnostic/refresh", Value::Null).await;
    assert!(lease.last_verdict(&file.path).is_none(), "the server took it back");
    let judged = judge(&lease, &file, CAP);
    let pull = server.take("textDocument/diagnostic").await;
    server.answer(&pull, report.clone()).await;
    judged.await.unwrap();
    assert!(lease.last_verdict(&file.path).is_some());
    lease.changed(Vec::new());
    assert!(lease.last_verdict(&file.path).is_none(), "another file changed");
}

#[tokio::test(start_paused = true)]
async fn a_late_registration_is_used_and_all_identifiers_are_merged() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up_with(&lease, json!({ "textDocumentSync": 1 })).await;
    let judged = judge(&lease, &document("/r/a.py", "x"), CAP);
    server.take("textDocument/didOpen").await;
    server.take("textDocument/didSave").await;
    assert!(!server.has_more().await);
    let register = |id: &str| {
        json!({ "id": id, "method": "textDocument/diagnostic",
        "registerOptions": { "identifier": id } })
    };
    let both = json!({ "registrations": [register("one"), register("two")] });
    server.ask(json!("r"), "client/registerCapability", both).await;
    for identifier in ["one", "two"] {
        let pull = server.take("textDocument/diagnostic").await;
        assert_eq!(pull["params"]["identifier"], json!(identifier));
        server.answer(&pull, json!({ "kind": "full", "items": items(&[identifier]) })).await;
    }
    assert_eq!(words(&judged.await.unwrap()), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_pull_over_a_change_is_made_again() {
    let mut bench = bench(|_| {}).await;
    let (one, two) = (bench.lease(1), bench.lease(2));
    let mut server = bench.up(&one).await;
    let judged = judge(&one, &document("/r/a.py", "x"), CAP);
    server.take("textDocument/didOpen").await;
    server.take("textDocument/didSave").await;
    let pull = server.take("textDocument/diagnostic").await;
    two.changed(Vec::new());
    server.answer(&pull, json!({ "items": items(&["stale"]) })).await;
    let pull = server.take("textDocument/diagnostic").await;
    server.answer(&pull, json!({ "items": items(&["right"]) })).await;
    assert_eq!(words(&judged.await.unwrap()), ["right"]);
}

#[tokio::test(start_paused = true)]
async fn no_answer_no_report_and_no_server_are_never_clean() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let file = document("/r/a.py", "x");
    let judged = judge(&lease, &file, CAP);
    server.take("textDocument/didOpen").await;
    server.take("textDocument/didSave").await;
    let pull = server.take("textDocument/diagnostic").await;
    server.answer(&pull, json!({ "kind": "unchanged", "resultId": "1" })).await;
    let verdict = judged.await.unwrap();
    assert!(matches!(verdict, Verdict::StillAnalysing { .. }), "{verdict:?}");
    let ping = server.take("hostler/ping").await;
    server.refuse(&ping, -32601, "").await;

    let judged = judge(&lease, &file, CAP);
    let pull = server.take("textDocument/diagnostic").await;
    server.refuse(&pull, -32603, "internal").await;
    let verdict = judged.await.unwrap();
    assert!(
        matches!(&verdict, Verdict::Unknown { reason, about: Some(_) } if reason == "internal"),
        "{verdict:?}"
    );

    lease.slot.stop();
    server.take("shutdown").await;
    let verdict = judge(&lease, &file, CAP).await.unwrap();
    assert!(matches!(verdict, Verdict::NoServer { .. }), "{verdict:?}");
}

/// Publishes for one file, each after so many milliseconds, and what becomes of it.
async fn check_push(
    publishes: &[(u64, Option<i64>, &[&str])],
    expected: Result<(&[&str], u64), &str>,
) {
    let mut bench = bench(|spec| spec.recipe = Recipe::Push).await;
    let lease = bench.lease(1);
    let mut server = bench.up_with(&lease, json!({ "textDocumentSync": 2 })).await;
    // What was known before: an error in the text's first version.
    let judged = judge(&lease, &document("/r/a.py", "one"), CAP);
    server.take("textDocument/didOpen").await;
    server.take("textDocument/didSave").await;
    server.say("textDocument/publishDiagnostics", publish(None, &["old"])).await;
    assert_eq!(words(&judged.await.unwrap()), ["old"]);

    let began = Instant::now();
    let judged = judge(&lease, &document("/r/a.py", "two"), CAP);
    assert_eq!(server.take("textDocument/didChange").await["params"]["textDocument"]["version"], 2);
    server.take("textDocument/didSave").await;
    for (at, version, said) in publishes {
        tokio::time::sleep_until(began + Duration::from_millis(*at)).await;
        server.say("textDocument/publishDiagnostics", publish(*version, said)).await;
    }
    let verdict = judged.await.unwrap();
    let took = u64::try_from(began.elapsed().as_millis()).unwrap();
    match expected {
        Ok((said, within)) => {
            assert_eq!(words(&verdict), said, "{publishes:?}");
            assert!((within..within + 10).contains(&took), "{took} ms, {publishes:?}");
        }
        Err(why) => {
            let Verdict::StillAnalysing { reason, waited, .. } = verdict else {
                panic!("{verdict:?} for {publishes:?}");
            };
            assert_eq!((reason.as_str(), waited), (why, CAP), "{publishes:?}");
            // Only one that was not heard of at all is pinged.
            if publishes.is_empty() {
                let ping = server.take("hostler/ping").await;
                server.refuse(&ping, -32601, "").await;
            }
        }
    }
}

fn publish(version: Option<i64>, said: &[&str]) -> Value {
    let mut params = json!({ "uri": "file:///r/a.py", "diagnostics": items(said) });
    if let Some(version) = version {
        params["version"] = json!(version);
    }
    params
}

#[tokio::test(start_paused = true)]
async fn pushes_count_by_version_and_quiet() {
    // Versioned, at once right.
    check_push(&[(50, Some(2), &["new"])], Ok((&["new"], 300))).await;
    // Two publishes of one version, the first without the errors.
    check_push(&[(50, Some(2), &[]), (200, Some(2), &["new"])], Ok((&["new"], 450))).await;
    // One that was under way about the earlier version.
    check_push(&[(20, Some(1), &["old"]), (400, Some(2), &[])], Ok((&[], 650))).await;
    // Without versions: the old set again says little, the new one more.
    check_push(&[(200, None, &["old"]), (600, None, &["new"])], Ok((&["new"], 850))).await;
    check_push(&[(200, None, &["old"])], Ok((&["old"], 1200))).await;
    // A version that was never given is a lie, however often it is repeated.
    let lie = "what it published is about a version that it was never given";
    check_push(&[(20, Some(99), &["old"]), (300, Some(99), &["new"])], Err(lie)).await;
    // Silence and old versions are not clean.
    check_push(&[], Err("it has published nothing since the last change")).await;
    check_push(&[(20, Some(1), &[])], Err("what it published is about an earlier version")).await;
}
