//! How incarnations end: by goodbye, by death, by misbehaviour.

use super::*;
use crate::ports::{Ended, LaunchError};
use crate::supervise::handle::Unavailable;

#[tokio::test(start_paused = true)]
async fn a_death_under_a_question_is_mended_once() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut first = bench.up(&lease).await;
    let asked = hover(&lease, &[document("/r/a.py", "x")]);
    first.take("textDocument/didOpen").await;
    first.take("textDocument/hover").await;
    first.process.tree.write_ring("out of memory\n");
    first.die(Ended::Signal(9));

    let mut second = bench.server().await;
    second.shake_hands(capabilities()).await;
    let opened = second.take("textDocument/didOpen").await;
    assert_eq!(opened["params"]["textDocument"]["text"], json!("x"));
    let question = second.take("textDocument/hover").await;
    second.answer(&question, json!("again")).await;
    let answer = asked.await.unwrap().unwrap();
    assert_eq!((answer.value, answer.incarnation.0), (json!("again"), 2));
    let row = bench.row();
    assert_eq!((row.phase.as_str(), row.restarts), ("up", 1));
    assert_eq!(
        row.last_error.as_deref(),
        Some("the process was killed by SIGKILL; it last wrote: out of memory")
    );

    let asked = hover(&lease, &[]);
    second.take("textDocument/hover").await;
    second.die(Ended::Code(1));
    let mut third = bench.server().await;
    third.shake_hands(capabilities()).await;
    third.take("textDocument/didOpen").await;
    third.take("textDocument/hover").await;
    third.process.tree.write_ring("no luck\n");
    third.die(Ended::Code(7));
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(error, ServerError::Died { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_at_every_start_fails_fast_and_says_why() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let asked: Vec<_> = (0..4).map(|_| hover(&lease, &[])).collect();
    for _ in 0..5 {
        let process = bench.processes.next().await;
        process.tree.write_ring("cannot find module\n");
        process.tree.end(Ended::Code(1));
    }
    for asked in asked {
        asked.await.unwrap().unwrap_err();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let error = hover(&lease, &[]).await.unwrap().unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let text = error.to_string();
    assert!(text.contains("exited with code 1; it last wrote: cannot find module"), "{text}");
    assert!(bench.processes.try_next().is_none(), "five starts are enough");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_launched_says_so() {
    let bench = bench(|_| {}).await;
    for _ in 0..5 {
        bench.launch.refuse(LaunchError::NotFound { program: "/bin/scripted".into() });
    }
    let error = loop {
        let error = hover(&bench.lease(1), &[]).await.unwrap().unwrap_err();
        if matches!(error, ServerError::Unavailable { why: Unavailable::Failed { .. }, .. }) {
            break error;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(error.to_string().contains("/bin/scripted: no such program"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn hanging_in_initialize_is_bounded_and_told_with_its_stderr() {
    let mut bench = bench(|spec| spec.start_deadline = Duration::from_secs(5)).await;
    let asked = hover(&bench.lease(1), &[]);
    let server = bench.server().await;
    server.process.tree.write_ring("waiting for a licence\n");
    // The next start goes well, within the caller's bound.
    let mut second = bench.server().await;
    assert_eq!(
        bench.row().last_error.as_deref(),
        Some(
            "did not come up: it did not answer `initialize` within 5s; \
             it last wrote: waiting for a licence"
        )
    );
    second.shake_hands(capabilities()).await;
    let question = second.take("textDocument/hover").await;
    second.answer(&question, json!(1)).await;
    assert_eq!(asked.await.unwrap().unwrap().value, json!(1));
}

#[tokio::test(start_paused = true)]
async fn a_refused_handshake_is_told() {
    let mut bench = bench(|_| {}).await;
    let asked = hover(&bench.lease(1), &[]);
    for _ in 0..2 {
        let mut server = bench.server().await;
        let greeting = server.take("initialize").await;
        server.refuse(&greeting, -32603, "no workspace").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let error = bench.row().last_error.unwrap();
        assert_eq!(error, "did not come up: it refused `initialize`: no workspace");
    }
    asked.abort();
}

#[tokio::test(start_paused = true)]
async fn a_hang_is_found_out_by_a_ping_and_replaced() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    let asked = ask(&lease, &[], Duration::from_secs(2), &CancellationToken::new());
    server.take("textDocument/hover").await;
    asked.await.unwrap().unwrap_err();
    server.take("$/cancelRequest").await;
    server.take("hostler/ping").await;
    let mut second = bench.server().await;
    let error = bench.row().last_error.unwrap();
    assert_eq!(error, "was replaced: hangs: it answered nothing for 10s, not even a ping");
    second.shake_hands(capabilities()).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_blocks_nobody_and_is_replaced() {
    let mut bench = bench(|_| {}).await;
    let (one, two) = (bench.lease(1), bench.lease(2));
    let _deaf = bench.up(&one).await;
    let big = "x".repeat(1_000_000);
    let began = Instant::now();
    let verdict = judge(&one, &document("/r/big.py", &big), Duration::from_secs(3)).await.unwrap();
    assert!(matches!(verdict, Verdict::StillAnalysing { .. }), "{verdict:?}");
    assert_eq!(began.elapsed(), Duration::from_secs(3));
    let short = Duration::from_secs(1);
    ask(&two, &[], short, &CancellationToken::new()).await.unwrap().unwrap_err();
    let mut second = bench.server().await;
    assert!(began.elapsed() < Duration::from_secs(21));
    assert!(bench.row().last_error.unwrap().starts_with("was replaced: "));
    second.shake_hands(capabilities()).await;
    second.take("textDocument/didOpen").await;
}

#[tokio::test(start_paused = true)]
async fn floods_and_broken_framing_are_bounded() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    for at in 0..20_000 {
        server.say("$/progress", json!({ "token": at, "value": { "kind": "begin" } })).await;
    }
    let asked = hover(&lease, &[]);
    let question = server.take("textDocument/hover").await;
    server.answer(&question, json!(1)).await;
    asked.await.unwrap().unwrap();
    server.write(b"Content-Length: 99999999999\r\n\r\n").await;
    let mut second = bench.server().await;
    let error = bench.row().last_error.unwrap();
    assert!(error.contains("announced a message of 99999999999 bytes"), "{error}");
    second.shake_hands(capabilities()).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_stdout_is_no_life() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    server.close_stdout();
    let mut second = bench.server().await;
    assert_eq!(bench.row().last_error.as_deref(), Some("was replaced: closed its stdout"));
    second.shake_hands(capabilities()).await;
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_goes_by_the_protocol() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    bench.keeper.rest();
    let shutdown = server.take("shutdown").await;
    assert!(shutdown.get("params").is_none());
    // It is still answered on its way out.
    server.ask(json!(1), "workspace/configuration", json!({ "items": [] })).await;
    server.answer(&shutdown, Value::Null).await;
    let exit = server.take("exit").await;
    assert!(exit.get("params").is_none());
    assert!(server.next().await.is_none(), "its stdin is closed");
    server.die(Ended::Code(0));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let row = bench.row();
    assert_eq!((row.phase.as_str(), row.restarts, row.last_error), ("idle", 0, None));
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_that_is_ignored_ends_by_the_deadlines() {
    let mut bench = bench(|_| {}).await;
    let lease = bench.lease(1);
    let mut server = bench.up(&lease).await;
    server.process.tree.ignore_term();
    let began = Instant::now();
    lease.slot.stop();
    server.take("shutdown").await;
    let mut emptied = crate::ports::ProcessTree::emptied(&*server.process.tree);
    emptied.wait_for(|empty| *empty).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(4));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(bench.row().phase, "stopped");
    server.take("exit").await;
    let error = hover(&lease, &[]).await.unwrap().unwrap_err();
    assert!(matches!(error, ServerError::Unavailable { why: Unavailable::Stopped, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_reload_by_one_run_is_felt_by_no_other() {
    let mut bench = bench(|_| {}).await;
    let (one, two) = (bench.lease(1), bench.lease(2));
    let mut first = bench.up(&one).await;
    let asked = hover(&two, &[]);
    first.take("textDocument/hover").await;
    one.reload();
    let shutdown = first.take("shutdown").await;
    first.answer(&shutdown, Value::Null).await;
    first.take("exit").await;
    first.die(Ended::Code(0));
    let mut second = bench.server().await;
    second.shake_hands(capabilities()).await;
    let question = second.take("textDocument/hover").await;
    second.answer(&question, json!("same question")).await;
    assert_eq!(asked.await.unwrap().unwrap().value, json!("same question"));
    assert_eq!(bench.row().restarts, 0, "nothing died by itself");
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_the_inner_process_is_none_and_the_server_is_replaced() {
    let mut bench = bench(|spec| spec.inner_process = Some("engine".to_owned())).await;
    let lease = bench.lease(1);
    let warm = hover(&lease, &[document("/r/a.py", "x")]);
    let process = bench.processes.next().await;
    let inner = process.tree.start_inner("node engine.js");
    let mut server = FakeServer::new(process);
    server.shake_hands(capabilities()).await;
    server.take("textDocument/didOpen").await;
    let asked = server.take("textDocument/hover").await;
    server.answer(&asked, json!({ "contents": "here" })).await;
    assert_eq!(warm.await.unwrap().unwrap().value["contents"], "here");

    // The outer one has noticed before we have, and goes on.
    let question = hover(&lease, &[document("/r/a.py", "x")]);
    let asked = server.take("textDocument/hover").await;
    inner.end();
    server.answer(&asked, Value::Null).await;
    let mut next = bench.server().await;
    next.shake_hands(capabilities()).await;
    next.take("textDocument/didOpen").await;
    let asked = next.take("textDocument/hover").await;
    next.answer(&asked, json!({ "contents": "again" })).await;
    assert_eq!(question.await.unwrap().unwrap().value["contents"], "again");
    let exit = lease.view().last_exit.unwrap().to_string();
    assert!(exit.contains("its inner process `engine` (pid 4294967295) ended"), "{exit}");
}
