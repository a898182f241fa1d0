//! One-shots against real shells.

#![allow(clippy::unwrap_used)]

use super::*;

async fn sh(script: &str, bound: Duration) -> (Result<Finished, OneShotError>, Vec<String>) {
    let args = ["-c".into(), script.into()];
    let env = [("PATH".into(), "/usr/bin:/bin".into())];
    let shot = OneShot {
        label: "script",
        program: Path::new("/bin/sh"),
        args: &args,
        cwd: Path::new("/"),
        env: &env,
        bound,
    };
    let mut lines = Vec::new();
    let outcome = run(&direct::Direct, shot, &mut |line| lines.push(line.to_owned())).await;
    (outcome, lines)
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn it_tells_lines_as_they_come_and_how_it_ended() {
    let (outcome, lines) = sh("echo one; echo two; printf three", LONG).await;
    let finished = outcome.unwrap();
    assert!(finished.is_success());
    assert_eq!((finished.stdout.as_str(), lines.join(" ")), ("one\ntwo\nthree", "one two".into()));
}

#[tokio::test]
async fn a_failure_shows_its_last_words() {
    let (outcome, _) = sh("echo out; exit 3", LONG).await;
    assert_eq!(outcome.unwrap().to_string(), "exited with code 3: out");
    let (outcome, _) = sh("kill -9 $$", LONG).await;
    assert_eq!(outcome.unwrap().to_string(), "was killed by SIGKILL and printed nothing");
}

#[tokio::test]
async fn it_is_killed_at_its_bound() {
    let (outcome, _) = sh("sleep 600", Duration::from_millis(50)).await;
    let error = outcome.unwrap_err().to_string();
    assert_eq!(error, "script: killed, as it was not done within 50ms");
}

#[tokio::test]
async fn something_left_behind_does_not_keep_it() {
    let (outcome, _) = sh("sleep 600 & echo done", LONG).await;
    assert_eq!(outcome.unwrap().stdout, "done\n");
}

#[tokio::test]
async fn endless_output_is_cut() {
    let (outcome, _) = sh("head -c 300000 /dev/zero", LONG).await;
    assert_eq!(outcome.unwrap().stdout.len(), KEPT_BYTES);
}
