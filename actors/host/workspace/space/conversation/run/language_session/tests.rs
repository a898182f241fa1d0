//! What the actor does with leases, waits and late verdicts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use serde_json::Value;

use super::ledger::Severity;
use super::testing::FakeServers;
use super::wait::{Baseline, Settled, Target, Wait};
use std::path::Path;

use super::*;
use crate::host::language_server::spec::{AfterChange, Recipe};
use crate::ports::Posture;
use crate::status::{NodeKind, StatusTable};

fn spec(name: &str) -> Arc<ServerSpec> {
    Arc::new(ServerSpec {
        name: name.to_owned(),
        root: "/r".into(),
        program: "/bin/x".into(),
        args: Vec::new(),
        env: Vec::new(),
        posture: Posture::Writable,
        initialization_options: Value::Null,
        settings: Value::Null,
        recipe: Recipe::Pull,
        after_change: AfterChange::Nothing,
        inner_process: None,
        ready_log: None,
        reread: None,
        start_deadline: Duration::from_secs(30),
        linger: Duration::from_secs(60),
        private_to: None,
    })
}

struct Bench {
    session: LanguageSessionHandle,
    servers: FakeServers,
    actor: ActorRef<LanguageSessionMsg>,
    table: StatusTable,
}

async fn bench() -> Bench {
    let (servers, table) = (FakeServers::default(), StatusTable::default());
    let arguments = Args {
        run: RunId(1),
        servers: Arc::new(servers.clone()),
        status: table.enter(None, NodeKind::LanguageSession, "test"),
    };
    #[expect(clippy::disallowed_methods, reason = "a test has no run that could supervise it")]
    let spawned = Actor::spawn(None, LanguageSession, arguments).await;
    let (actor, _) = spawned.unwrap();
    let opened = actor.clone();
    let open: Open = Arc::new(move || {
        let actor = opened.clone();
        Box::pin(async move { Ok(actor) })
    });
    Bench { session: LanguageSessionHandle::new(open), servers, actor, table }
}

fn target(path: &str) -> Target {
    Target { server: "s".into(), path: Path::new(path).into() }
}

fn finding(path: &str, message: &str) -> Finding {
    Finding {
        server: "s".into(),
        path: Path::new(path).into(),
        line: 1,
        column: 1,
        severity: Severity::Error,
        code: None,
        message: message.into(),
    }
}

fn wait(path: &str, takes: Duration, after: Result<Vec<Finding>, String>) -> Wait {
    let of_path = target(path);
    Wait {
        of: format!("write {path}").into(),
        baselines: vec![Baseline { target: target(path), before: Some(Vec::new()), lines: None }],
        verdicts: Box::pin(async move {
            tokio::time::sleep(takes).await;
            vec![Settled { target: of_path, after, theirs: false }]
        }),
        within: Duration::from_secs(9),
    }
}

#[tokio::test(start_paused = true)]
async fn one_lease_per_server_however_many_ask() {
    let bench = bench().await;
    let ask = |name: &str| {
        let session = bench.session.clone();
        let spec = spec(name);
        tokio::spawn(async move { session.lease(spec).await.unwrap().unwrap() })
    };
    for asked in [ask("a"), ask("a"), ask("b"), ask("a")] {
        asked.await.unwrap();
    }
    assert_eq!(bench.servers.leases.lock().unwrap().len(), 2);
    let held = bench.session.leases().await.unwrap();
    assert_eq!(held.iter().map(|held| held.spec.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(bench.table.snapshot()[0].leases, Some(2));
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_is_handed_over_once() {
    let bench = bench().await;
    assert!(bench.session.take_late().await.unwrap().is_empty(), "nothing is opened for this");
    let found = vec![finding("/a", "bad")];
    let two = Duration::from_secs(2);
    bench.session.go_on(wait("/a", two, Ok(found.clone()))).await.unwrap();
    assert!(bench.session.take_late().await.unwrap().is_empty());
    tokio::time::sleep(two + two).await;
    let late = bench.session.take_late().await.unwrap();
    assert_eq!(late.len(), 1);
    assert_eq!(&*late[0].of, "write /a");
    assert_eq!(late[0].introduced[0].finding, found[0]);
    assert_eq!(late[0].verified, [target("/a")]);
    assert!(bench.session.take_late().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_runs_out_is_told_as_not_verified() {
    let bench = bench().await;
    bench.session.go_on(wait("/a", Duration::from_secs(3600), Ok(Vec::new()))).await.unwrap();
    let refused = Err("it died".to_owned());
    bench.session.go_on(wait("/b", Duration::ZERO, refused)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let late = bench.session.take_late().await.unwrap();
    let unverified: Vec<_> = late.iter().flat_map(|late| &late.unverified).cloned().collect();
    assert_eq!(
        unverified,
        [(target("/b"), "it died".to_owned()), (target("/a"), "no verdict within 9s".to_owned())]
    );
    assert!(late.iter().all(|late| late.verified.is_empty()), "never shown as clean");
}

#[tokio::test(start_paused = true)]
async fn a_later_write_takes_the_baseline_over() {
    let bench = bench().await;
    let two = Duration::from_secs(2);
    bench.session.go_on(wait("/a", two, Ok(vec![finding("/a", "bad")]))).await.unwrap();
    bench.session.go_on(wait("/b", two, Ok(Vec::new()))).await.unwrap();
    let reclaimed = bench.session.reclaim(vec![target("/a")]).await.unwrap();
    assert_eq!(reclaimed.len(), 1);
    assert_eq!(reclaimed[0].target, target("/a"));
    tokio::time::sleep(two + two).await;
    let late = bench.session.take_late().await.unwrap();
    assert_eq!(late.iter().map(|late| &*late.of).collect::<Vec<_>>(), ["write /b"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_meanwhile_is_not_told_again() {
    let bench = bench().await;
    let found = vec![finding("/a", "bad")];
    let two = Duration::from_secs(2);
    bench.session.go_on(wait("/a", two, Ok(found.clone()))).await.unwrap();
    bench.session.told(target("/a"), found).await.unwrap();
    tokio::time::sleep(two + two).await;
    assert!(bench.session.take_late().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cause_is_new_once() {
    let bench = bench().await;
    assert!(bench.session.first_mention("no binary".to_owned()).await.unwrap());
    assert!(!bench.session.first_mention("no binary".to_owned()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_run_ends_its_waits() {
    struct Dropped(Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let bench = bench().await;
    let gone = Arc::<std::sync::atomic::AtomicBool>::default();
    let held = Dropped(Arc::clone(&gone));
    let mut endless = wait("/a", Duration::ZERO, Ok(Vec::new()));
    endless.verdicts = Box::pin(async move {
        let _held = held;
        std::future::pending().await
    });
    bench.session.go_on(endless).await.unwrap();
    assert!(bench.session.first_mention("it runs".to_owned()).await.unwrap());
    bench.actor.stop_and_wait(None, None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(gone.load(std::sync::atomic::Ordering::SeqCst));
    assert!(bench.table.snapshot().is_empty());
    let error = bench.session.first_mention("x".to_owned()).await.unwrap_err();
    assert!(error.to_string().contains("language session is gone"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_may_be_somebody_elses_is_told_late_and_nobody_is_charged() {
    let bench = bench().await;
    let (on_line_1, path) = (finding("/r/a", "mine"), target("/r/a"));
    let elsewhere = Finding { line: 7, ..finding("/r/a", "theirs") };
    let after = Ok(vec![on_line_1.clone(), elsewhere.clone()]);
    let baseline = Baseline { target: path.clone(), before: Some(Vec::new()), lines: Some(1..=1) };
    let wait = Wait {
        of: "write a".into(),
        baselines: vec![baseline],
        verdicts: Box::pin(async move { vec![Settled { target: path, after, theirs: true }] }),
        within: Duration::from_secs(9),
    };
    bench.session.go_on(wait).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let late = bench.session.take_late().await.unwrap().remove(0);
    let charged: Vec<_> = late.introduced.into_iter().map(|new| new.finding).collect();
    assert_eq!((charged, late.doubtful), (vec![on_line_1], vec![elsewhere]));
}
