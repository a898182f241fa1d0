//! `hostler session`: JSON lines between a harness and a run.
//!
//! Hosted here, the lines go straight to the run. Joined to a daemon, this is a
//! pump, which says `end_of_input` for its own end of input: to the daemon a
//! stream that just ends means a harness that is gone.

use std::os::fd::AsFd;
use std::path::Path;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Interest,
};
use tokio_util::sync::CancellationToken;

use super::args::Opening;
use super::attach::{Place, attach, open};
use super::exit::{Done, Exit, Refusal};
use super::{Ground, out, signals};
use crate::launch::socket;
use crate::serve::session::{AtEnd, speak};

/// What the pump sends at the end of its input.
pub(crate) const END_OF_INPUT: &[u8] = b"{\"id\":\"end\",\"control\":\"end_of_input\"}\n";

/// Runs a session on standard input and output.
pub(crate) async fn session(ground: &Ground, opening: &Opening) -> Done {
    let wanted = open(ground, opening)?;
    check_folder(&wanted.dir)?;
    match attach(ground, opening).await? {
        Place::Joined(client) => {
            let stream = client.session(&wanted).await.map_err(Refusal::no_daemon)?;
            let (reader, writer) = tokio::io::split(stream);
            let stop = signals::stop();
            stop_when_unread(stop.clone());
            pump(BufReader::new(reader), writer, stop).await
        }
        Place::Hosted(hosted) => {
            signals::stop_on_signal(hosted.daemon.stop_requested());
            let opened = hosted.daemon.open(wanted).await;
            let outcome = match opened {
                Ok(engagement) => {
                    stop_when_unread(hosted.daemon.stop_requested().clone());
                    let stdin = BufReader::new(tokio::io::stdin());
                    let stop = hosted.daemon.stop_requested().clone();
                    speak(engagement, stdin, tokio::io::stdout(), AtEnd::Finish, stop).await;
                    Ok(Exit::Done)
                }
                Err(error) => Err(Refusal::usage(error)),
            };
            let left = hosted.end(outcome.is_ok()).await;
            gone(left).and(outcome)
        }
    }
}

/// Stops when nobody can read standard output any more: a harness that was killed
/// closes its input like one that has no more lines, and waits for no result.
fn stop_when_unread(stop: CancellationToken) {
    let out = std::io::stdout().as_fd().try_clone_to_owned();
    // A file has no reader to lose, and cannot be watched.
    let Ok(out) = out.and_then(|out| socket::watched(out, Interest::ERROR)) else { return };
    tokio::spawn(async move {
        if out.ready(Interest::ERROR).await.is_ok() {
            stop.cancel();
        }
    });
}

/// Says so if something outlived its owner, which only the kernel can bring about.
pub(crate) fn gone(left: usize) -> Done {
    match left {
        0 => Ok(Exit::Done),
        left => Err(Refusal::failed(format!(
            "{left} processes were killed and are not gone yet; the kernel holds them"
        ))),
    }
}

/// Looks at the folder before anything is started for it.
pub(crate) fn check_folder(dir: &Path) -> Result<(), Refusal> {
    if dir.is_dir() {
        return Ok(());
    }
    Err(Refusal::usage(format!("--dir {}: no such folder", dir.display())))
}

async fn pump<R, W>(mut down: R, up: W, stop: CancellationToken) -> Done
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut stdout = tokio::io::stdout();
    let mut first = Vec::new();
    let read = down.read_until(b'\n', &mut first).await;
    read.map_err(|error| Refusal::no_daemon(format!("the daemon went away: {error}")))?;
    if let Some(message) = refusal_in(&first) {
        return Err(Refusal::usage(message));
    }
    let written = async {
        stdout.write_all(&first).await?;
        stdout.flush().await
    };
    written.await.map_err(Refusal::failed)?;
    let sending = tokio::spawn(send_up(tokio::io::stdin(), up, stop));
    // Ends when the daemon has ended the run and closes the stream.
    let copied = tokio::io::copy_buf(&mut down, &mut stdout).await;
    sending.abort();
    copied.map(|_| Exit::Done).map_err(Refusal::failed)
}

fn refusal_in(line: &[u8]) -> Option<String> {
    if line.is_empty() {
        return Some("the daemon closed the stream before the session began".to_owned());
    }
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(line.pointer("/error/message")?.as_str()?.to_owned())
}

/// Sends lines until their end or a stop; dropping `up` then hangs up.
async fn send_up<R, W>(mut lines: R, mut up: W, stop: CancellationToken)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let sent = async {
        tokio::io::copy(&mut lines, &mut up).await?;
        // In case that the last line lacks its end.
        up.write_all(b"\n").await?;
        up.write_all(END_OF_INPUT).await?;
        up.flush().await
    };
    tokio::select! {
        () = stop.cancelled() => {
            let _ = up.shutdown().await;
            return;
        }
        sent = sent => if let Err(error) = sent {
            out::aside(format!("the daemon takes no more lines: {error}"));
        },
    }
    stop.cancelled().await;
    let _ = up.shutdown().await;
}
