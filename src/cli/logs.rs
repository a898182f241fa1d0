//! `hostler logs`: the end of the daemon's newest log file, and what follows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::cli::Ground;
use crate::cli::args::LogsArgs;
use crate::cli::exit::{Done, Exit, Refusal};
use crate::cli::out;

/// How often is looked for more.
const POLL: Duration = Duration::from_millis(250);

/// How much of a file's end is looked at for lines.
const TAIL_BYTES: u64 = 1024 * 1024;

pub(crate) async fn run(ground: &Ground, args: &LogsArgs) -> Done {
    let folder = ground.folders(args.data.data.as_deref())?.logs();
    let none = || Refusal::failed(format!("{}: no log yet: nothing served here", folder.display()));
    let path = newest(&folder).map_err(Refusal::failed)?.ok_or_else(none)?;
    let failed = |error: io::Error| Refusal::failed(format!("{}: {error}", path.display()));
    let mut file = tokio::fs::File::open(&path).await.map_err(failed)?;
    let length = file.metadata().await.map_err(failed)?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).await.map_err(failed)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).await.map_err(failed)?;
    out::raw(last_lines(&text, args.lines));
    if !args.follow {
        return Ok(Exit::Done);
    }
    loop {
        tokio::time::sleep(POLL).await;
        text.clear();
        file.read_to_end(&mut text).await.map_err(failed)?;
        out::raw(&text);
    }
}

/// Returns the file that was written last.
fn newest(folder: &Path) -> io::Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let dated = entries.flatten().filter_map(|entry| {
        let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((meta.modified().ok()?, entry.path()))
    });
    Ok(dated.max().map(|(_, path)| path))
}

fn last_lines(text: &[u8], count: usize) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut breaks = (0..body.len()).rev().filter(|&at| body.get(at) == Some(&b'\n'));
    match count.checked_sub(1) {
        None => &[],
        Some(before) => breaks.nth(before).map_or(text, |at| text.split_at(at + 1).1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_cut_off_the_end() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(last_lines(b"a\nb\nc", 1), b"c");
        assert_eq!(last_lines(b"a\n", 5), b"a\n");
        assert_eq!(last_lines(b"a\n", 0), b"");
        assert_eq!(last_lines(b"", 3), b"");
    }
}
