//! `hostler call`: one session with one call. Text to standard output, images to
//! files that the text names.

use std::path::PathBuf;

use base64::Engine;
use hostler_actors::ports::{Block, ToolResult};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::args::CallArgs;
use super::attach::{Place, attach, open};
use super::exit::{Done, Exit, Refusal};
use super::session::{END_OF_INPUT, check_folder, gone};
use super::{Ground, out, signals};
use crate::serve::session::{AtEnd, speak};

/// Bytes that may lie between the two ends of an in-process session.
const PIPE: usize = 64 * 1024;

/// Makes one call.
pub(crate) async fn call(ground: &Ground, args: &CallArgs) -> Done {
    let arguments: Value = serde_json::from_str(&args.json)
        .map_err(|error| Refusal::usage(format!("the arguments are not JSON: {error}")))?;
    let wanted = open(ground, &args.opening)?;
    check_folder(&wanted.dir)?;
    let line = format!("{}\n", json!({"id": 1, "call": args.tool, "arguments": arguments}));
    match attach(ground, &args.opening).await? {
        Place::Joined(client) => {
            let stream = client.session(&wanted).await.map_err(Refusal::no_daemon)?;
            let (reader, writer) = tokio::io::split(stream);
            let stop = signals::stop();
            tokio::select! {
                // Leaving drops the stream, and with it the run.
                () = stop.cancelled() => Err(Refusal::failed("interrupted")),
                done = exchange(BufReader::new(reader), writer, &line) => done,
            }
        }
        Place::Hosted(hosted) => {
            signals::stop_on_signal(hosted.daemon.stop_requested());
            let outcome = match hosted.daemon.open(wanted).await {
                Ok(engagement) => {
                    let (ours, theirs) = tokio::io::duplex(PIPE);
                    let (reader, writer) = tokio::io::split(theirs);
                    let stop = hosted.daemon.stop_requested().clone();
                    let reader = BufReader::new(reader);
                    let session =
                        tokio::spawn(speak(engagement, reader, writer, AtEnd::HangUp, stop));
                    let (reader, writer) = tokio::io::split(ours);
                    let done = exchange(BufReader::new(reader), writer, &line).await;
                    let _ = session.await;
                    done
                }
                Err(error) => Err(Refusal::usage(error)),
            };
            let left = hosted.end(false).await;
            gone(left).and(outcome)
        }
    }
}

/// Sends the call and reads until the session has ended.
async fn exchange<R, W>(mut reader: R, mut writer: W, line: &str) -> Done
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let broken = |error: std::io::Error| Refusal::no_daemon(format!("the session broke: {error}"));
    let lines = [line.as_bytes(), END_OF_INPUT].concat();
    // A session that was refused is closed already; what was said then is read below.
    let sent = writer.write_all(&lines).await;
    let _ = writer.flush().await;
    let mut outcome = None;
    let mut text = Vec::new();
    loop {
        text.clear();
        match reader.read_until(b'\n', &mut text).await {
            Ok(0) => break,
            // Who refuses closes without having read our lines, which resets the stream.
            Err(_) if outcome.is_some() => break,
            read => read.map_err(broken)?,
        };
        let line: Value = serde_json::from_slice(&text).unwrap_or_default();
        if let Some(message) = line.pointer("/error/message").and_then(Value::as_str) {
            outcome = Some(Err(Refusal::usage(message)));
        } else if let Some(result) = line.get("result") {
            let result = serde_json::from_value(result.clone()).map_err(Refusal::failed)?;
            outcome = Some(show(result));
        }
    }
    match outcome {
        Some(outcome) => outcome,
        None => {
            sent.map_err(broken)?;
            Err(Refusal::failed("the session ended without a result"))
        }
    }
}

fn show(result: ToolResult) -> Done {
    for block in result.content {
        match block {
            Block::Text { text } => out::say(text),
            Block::Image { mime_type, data } => match keep_image(&mime_type, &data) {
                Ok(path) => out::say(format_args!("image ({mime_type}): {}", path.display())),
                Err(error) => return Err(Refusal::failed(format!("an image is lost: {error}"))),
            },
        }
    }
    Ok(if result.is_error { Exit::Failed } else { Exit::Done })
}

fn keep_image(mime_type: &str, data: &str) -> std::io::Result<PathBuf> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?;
    let extension = mime_type.rsplit('/').next().unwrap_or("bin");
    let file =
        tempfile::Builder::new().prefix("hostler-").suffix(&format!(".{extension}")).tempfile()?;
    std::fs::write(file.path(), bytes)?;
    Ok(file.into_temp_path().keep()?)
}
