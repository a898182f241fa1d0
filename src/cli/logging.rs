//! Where events go: a daily file in the data folder, and standard error with `-v`.
//!
//! Never standard output, which is a session's. Writing is done by a thread of its
//! own, so that a slow disk holds up nobody; what it cannot take is dropped.

use std::path::Path;

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::exit::Refusal;
use crate::config::Log;
use crate::folders;

/// Lines that may wait for the disk. Their places are all made at the start: the
/// crate's own 128,000 take 4 MB of an idle daemon.
const WAITING: usize = 4_096;

/// Writes out what is left when it is dropped.
#[must_use = "dropping it ends the log"]
#[derive(Debug)]
pub(crate) struct Logging {
    _file: Option<WorkerGuard>,
}

/// Begins to log: into `folder` where there is one, and to standard error as
/// often as `-v` was given.
pub(crate) fn begin(folder: Option<&Path>, log: &Log, verbose: u8) -> Result<Logging, Refusal> {
    let filter = EnvFilter::try_new(&log.filter).map_err(|error| {
        Refusal::usage(format!("log.filter: `{}` is no filter: {error}", log.filter))
    })?;
    let (file, guard) = match folder.map(|folder| appender(folder, log)).transpose()? {
        Some(appender) => {
            let builder = NonBlockingBuilder::default().buffered_lines_limit(WAITING);
            let (writer, guard) = builder.finish(appender);
            let layer = fmt::layer().with_ansi(false).with_writer(writer).with_filter(filter);
            (Some(layer), Some(guard))
        }
        None => (None, None),
    };
    let stderr = match verbose {
        0 => None,
        1 => Some("info"),
        2 => Some("debug"),
        _ => Some("trace"),
    };
    let stderr = stderr.map(|level| {
        let filter = EnvFilter::new(format!("warn,hostler={level},hostler_actors={level}"));
        fmt::layer().with_writer(std::io::stderr).with_filter(filter)
    });
    let begun = tracing_subscriber::registry().with(file).with(stderr).try_init();
    begun.map_err(Refusal::failed)?;
    Ok(Logging { _file: guard })
}

fn appender(folder: &Path, log: &Log) -> Result<RollingFileAppender, Refusal> {
    folders::make_private(folder).map_err(Refusal::failed)?;
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_suffix("log")
        .max_log_files(log.days.max(1))
        .build(folder)
        .map_err(Refusal::failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_filter_that_is_none_is_refused_and_files_come_and_go_by_the_day() {
        let bad = Log { filter: "hostler=loud".to_owned(), days: 7 };
        let refusal = begin(None, &bad, 0).unwrap_err().to_string();
        assert!(refusal.starts_with("log.filter: `hostler=loud` is no filter"), "{refusal}");
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        drop(appender(&logs, &Log { filter: String::new(), days: 0 }).unwrap());
        assert_eq!(std::fs::read_dir(logs).unwrap().count(), 1);
    }
}
