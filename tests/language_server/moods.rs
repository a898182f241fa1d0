//! The scripted server, well and badly behaved.

use super::*;

#[tokio::test]
async fn questions_are_answered_in_every_encoding() {
    for mood in ["utf-16", "utf-8", "utf-32"] {
        let bench = scripted(&[mood]).await;
        let lease = bench.lease(1);
        let text = "😀日本 = 1\r\n\tprint(😀日本, other)\r\n";
        let file = bench.write("[a] ü.py", text);
        assert_eq!(hover(&lease, &file, "other").await.unwrap(), "other", "{mood}");
        let uses = ask(&lease, "textDocument/references", &file, "other").await.unwrap();
        let range = &uses.value[0]["range"];
        let lines = Lines::new(text);
        let offsets =
            ["start", "end"].map(|end| lines.offset(position(&range[end]), uses.facts.encoding));
        assert_eq!(&text[offsets[0]..offsets[1]], "other", "{mood}");
        // One ranged replacement behind wide characters, and the server's text is ours.
        let file = bench.write("[a] ü.py", &text.replace("other", "ERROR 😀"));
        let found = verdict(&lease, &file, LONG).await;
        assert_eq!(messages(&found), ["print(😀日本, ERROR 😀)"], "{mood}");
        bench.end().await;
    }
}

#[tokio::test]
async fn verdicts_follow_each_write_by_pull_and_by_push() {
    let moods: &[&[&str]] =
        &[&[], &["late-registration"], &["push"], &["push", "unversioned"], &["junk"], &["flood"]];
    for moods in moods {
        let bench = scripted(moods).await;
        let lease = bench.lease(1);
        for text in ["fine", "ERROR 1\nfine", "fine\nERROR 1\nERROR 2", "fine"] {
            let file = bench.write("a.py", text);
            let expected: Vec<_> = text.lines().filter(|line| line.contains("ERROR")).collect();
            let found = verdict(&lease, &file, LONG).await;
            assert_eq!(messages(&found), expected, "{moods:?}");
        }
        bench.end().await;
    }
}

#[tokio::test]
async fn a_lie_about_versions_is_never_believed() {
    let bench = scripted(&["lie"]).await;
    let lease = bench.lease(1);
    verdict(&lease, &bench.write("a.py", "ERROR"), Duration::from_secs(2)).await;
    // It now publishes what was true before the change, as of a version to come.
    let file = bench.write("a.py", "fine");
    let began = Instant::now();
    let found = verdict(&lease, &file, Duration::from_millis(240)).await;
    assert!(matches!(found, Verdict::StillAnalysing { .. }), "{found:?}");
    assert!(began.elapsed() < Duration::from_secs(1));
    bench.end().await;
}

#[tokio::test]
async fn it_may_ask_us_under_the_id_of_our_own_request() {
    let bench = scripted(&["ask"]).await;
    let file = bench.write("a.py", "word");
    assert_eq!(hover(&bench.lease(1), &file, "word").await.unwrap(), "word");
    bench.end().await;
}

#[tokio::test]
async fn a_death_in_mid_request_is_mended_within_the_request() {
    let mark = tempfile::NamedTempFile::new().unwrap();
    let mood = format!("die-once:{}", mark.path().display());
    let bench = scripted(&[&mood]).await;
    let lease = bench.lease(1);
    let file = bench.write("a.py", "word");
    assert_eq!(hover(&lease, &file, "word").await.unwrap(), "word");
    let row = bench.row();
    assert_eq!((row.phase.as_str(), row.restarts, row.incarnation), ("up", 1, 2));
    assert!(row.last_error.unwrap().contains("SIGABRT"));
    bench.end().await;
}

#[tokio::test]
async fn one_that_always_dies_of_a_request_is_asked_twice() {
    let bench = scripted(&["die:textDocument/hover"]).await;
    let file = bench.write("a.py", "word");
    let error = hover(&bench.lease(1), &file, "word").await.unwrap_err().to_string();
    assert!(error.contains("scripted: dying of textDocument/hover"), "{error}");
    bench.end().await;
}

#[tokio::test]
async fn one_that_exits_at_once_is_started_five_times_and_then_answered_for() {
    let bench = scripted(&["exit"]).await;
    let lease = bench.lease(1);
    let file = bench.write("a.py", "word");
    hover(&lease, &file, "word").await.unwrap_err();
    let row = bench.row_when("failed", |row| row.phase == "failed").await;
    assert_eq!(row.incarnation, 5);
    let began = Instant::now();
    let error = hover(&lease, &file, "word").await.unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_millis(100));
    assert!(error.contains("exited with code 3; it last wrote: scripted: cannot find"), "{error}");
    let found = verdict(&lease, &file, LONG).await;
    assert!(matches!(found, Verdict::NoServer { .. }), "{found:?}");
    bench.end().await;
}

#[tokio::test]
async fn hanging_in_initialize_is_bounded() {
    let deadline = Duration::from_millis(300);
    let bench = scripted_with(&["hang-initialize"], |spec| spec.start_deadline = deadline).await;
    let lease = bench.lease(1);
    let file = bench.write("a.py", "word");
    let found = verdict(&lease, &file, Duration::from_millis(100)).await;
    assert!(matches!(found, Verdict::StillAnalysing { .. }), "{found:?}");
    let error = hover(&lease, &file, "word").await.unwrap_err().to_string();
    assert!(error.contains("did not answer `initialize` within 300ms"), "{error}");
    bench.end().await;
}

#[tokio::test]
async fn a_body_over_the_cap_costs_the_incarnation_and_nothing_else() {
    let bench = scripted(&["huge"]).await;
    let lease = bench.lease(1);
    let file = bench.write("a.py", "word");
    let error = hover(&lease, &file, "word").await.unwrap_err().to_string();
    assert!(error.contains("announced a message of"), "{error}");
    bench.end().await;
}

#[tokio::test]
async fn one_that_does_not_read_holds_nobody_up() {
    let bench = scripted(&["deaf"]).await;
    let lease = bench.lease(1);
    let file = bench.write("a.py", &"x".repeat(2_000_000));
    for _ in 0..2 {
        let began = Instant::now();
        let found = verdict(&lease, &file, Duration::from_millis(300)).await;
        assert!(matches!(found, Verdict::StillAnalysing { .. }), "{found:?}");
        assert!(began.elapsed() < Duration::from_secs(2));
    }
    bench.end().await;
}

#[tokio::test]
async fn the_polite_end_at_once_and_the_immortal_are_ended() {
    for (moods, bound) in [(&[][..], 2), (&["immortal", "orphan"], 8)] {
        let bench = scripted(moods).await;
        let lease = bench.lease(1);
        let file = bench.write("a.py", "word");
        hover(&lease, &file, "word").await.unwrap();
        let began = Instant::now();
        bench.keeper.rest();
        bench.row_when("at rest", |row| row.phase == "idle").await;
        assert!(began.elapsed() < Duration::from_secs(bound), "{moods:?}: {:?}", began.elapsed());
        assert!(bench.launcher.trees().is_empty(), "{:?}", bench.launcher.trees());
        // And it comes back when it is next used.
        hover(&lease, &file, "word").await.unwrap();
        bench.end().await;
    }
}

#[tokio::test]
async fn a_stopped_process_is_found_out_and_replaced() {
    let bench = scripted(&[]).await;
    let lease = bench.lease(1);
    let file = bench.write("a.py", "word");
    hover(&lease, &file, "word").await.unwrap();
    let pid = i32::try_from(bench.row().pid.unwrap()).unwrap();
    let stop = nix::sys::signal::Signal::SIGSTOP;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), stop).unwrap();
    let found = verdict(&lease, &bench.write("a.py", "ERROR"), Duration::from_millis(200)).await;
    assert!(matches!(found, Verdict::StillAnalysing { .. }), "never clean: {found:?}");
    bench.row_when("replaced", |row| row.incarnation == 2 && row.phase == "up").await;
    let found = verdict(&lease, &bench.write("a.py", "ERROR"), LONG).await;
    assert_eq!(messages(&found), ["ERROR"]);
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_share_one_process_and_keep_their_answers_apart() {
    let bench = scripted(&[]).await;
    let files: Vec<_> =
        (0..8).map(|run| bench.write(&format!("{run}.py"), &format!("word{run}"))).collect();
    let asking = files.iter().enumerate().map(|(run, file)| {
        let (lease, file) = (bench.lease(run as u64), file.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                let word = format!("word{run}");
                assert_eq!(hover(&lease, &file, &word).await.unwrap(), word);
            }
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
    assert_eq!(bench.row().incarnation, 1);
    bench.end().await;
}
