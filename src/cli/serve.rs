//! `hostler serve`, and what is asked of one that serves: stop, reload, status.

use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{DataArgs, StatusArgs};
use super::attach::host;
use super::exit::{Done, Exit, Refusal};
use super::{Ground, out, signals, status};
use crate::cli::session::gone;
use crate::daemon::DataFolder;
use crate::folders::FolderError;
use crate::footprint;
use crate::serve::client::{Client, ClientError};
use crate::serve::http::StatusReport;

/// How often `status --watch` looks.
const GLANCE: Duration = Duration::from_millis(500);

/// How long `stop` waits: the daemon's 15 s and a little.
const STOP_BOUND: Duration = Duration::from_secs(17);

/// Hosts until it is told to stop.
pub(crate) async fn serve(ground: &Ground, args: &DataArgs) -> Done {
    let folders = ground.folders(args.data.as_deref())?;
    let owned = folders.own().map_err(|error| match error {
        FolderError::Owned { .. } => Refusal::failed(error),
        other => Refusal::usage(other),
    })?;
    let socket = folders.socket();
    if let Some(note) = &folders.note {
        out::aside(note);
    }
    let hosted = host(ground, DataFolder::Owned(folders, owned), true).await?;
    let stop = hosted.daemon.stop_requested().clone();
    signals::stop_on(&[SignalKind::terminate(), SignalKind::interrupt()], &stop);
    if let Ok(mut hangups) = signal(SignalKind::hangup()) {
        let daemon = std::sync::Arc::clone(&hosted.daemon);
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                match daemon.reload() {
                    Ok(()) => tracing::info!("configuration read again"),
                    Err(error) => tracing::error!("the old configuration stays: {error}"),
                }
            }
        });
    }
    out::aside(format!("process {} serves {}", std::process::id(), socket.display()));
    footprint::let_code_go();
    stop.cancelled().await;
    gone(hosted.end(false).await)
}

fn client(ground: &Ground, data: &DataArgs) -> Result<Client, Refusal> {
    Ok(Client::new(ground.folders(data.data.as_deref())?.socket()))
}

fn unanswered(error: ClientError) -> Refusal {
    match error {
        ClientError::TimedOut { .. } => Refusal::timed_out(error),
        ClientError::Refused { .. } => Refusal::failed(error),
        ClientError::NoDaemon { .. } | ClientError::Broken { .. } => Refusal::no_daemon(error),
    }
}

/// Stops the daemon that serves, and waits until it is gone.
pub(crate) async fn stop(ground: &Ground, args: &DataArgs) -> Done {
    let folders = ground.folders(args.data.as_deref())?;
    let client = Client::new(folders.socket());
    let answer: Value = client.post("/v1/stop").await.map_err(unanswered)?;
    let pid = answer.pointer("/ok/pid").and_then(Value::as_u64).unwrap_or_default();
    let until = tokio::time::Instant::now() + STOP_BOUND;
    // Its lock goes with its process, whatever becomes of its socket.
    while folders.owner().is_some() {
        if tokio::time::Instant::now() > until {
            let why = format!("process {pid} is still there after {STOP_BOUND:?}");
            return Err(Refusal::timed_out(why));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    out::say(format_args!("process {pid} has stopped"));
    Ok(Exit::Done)
}

/// Makes the daemon read its configuration again.
pub(crate) async fn reload(ground: &Ground, args: &DataArgs) -> Done {
    let _: Value = client(ground, args)?.post("/v1/reload").await.map_err(unanswered)?;
    out::say("the configuration was read again");
    Ok(Exit::Done)
}

/// Shows everything that lives.
pub(crate) async fn show_status(ground: &Ground, args: &StatusArgs) -> Done {
    let client = client(ground, &args.data)?;
    if args.json {
        let report: Value = client.get("/v1/status").await.map_err(unanswered)?;
        out::say(format_args!("{report:#}"));
        return Ok(Exit::Done);
    }
    if !args.watch {
        let report: StatusReport = client.get("/v1/status").await.map_err(unanswered)?;
        out::say(text(&report));
        return Ok(Exit::Done);
    }
    let stop = signals::stop();
    loop {
        let report: StatusReport = client.get("/v1/status").await.map_err(unanswered)?;
        // Home, the text, then clear what an earlier, longer one left: no flicker.
        let lines = text(&report).replace('\n', "\x1b[K\n");
        out::raw(format!("\x1b[H{lines}\x1b[K\n\x1b[J").as_bytes());
        tokio::select! {
            () = stop.cancelled() => return Ok(Exit::Done),
            () = tokio::time::sleep(GLANCE) => {}
        }
    }
}

/// Draws a report.
pub(crate) fn text(report: &StatusReport) -> String {
    let mib = report.resident_bytes / (1024 * 1024);
    let mut text = format!(
        "hostler {}, process {}, up {}, {mib} MiB, data {}\ncontainment: {}\n",
        report.version,
        report.pid,
        status::span(report.uptime_ms),
        report.data.display(),
        report.containment,
    );
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    text + &status::tree(&report.nodes, status::Paint::for_stdout())
}
