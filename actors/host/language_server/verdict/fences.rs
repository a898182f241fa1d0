//! Since when a server owes an answer about a file of which it says that it is done.
//!
//! Callers come and go with their own bounds, so no single one would ever see that
//! the server hangs: what is unanswered is counted over all who asked one after the
//! other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long it may owe one. clangd's files were seen to wait for each other for ever;
/// what it answered at all in this state came within 0.4 s.
pub(super) const HANGS: Duration = Duration::from_secs(10);
/// How long each question waits at least, whatever was before.
const LEAST: Duration = Duration::from_secs(2);
/// After such a pause since the last question, counting begins anew.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct Owed {
    /// How much had been said of the file.
    mark: u64,
    since: Instant,
    /// When the last question was given up.
    asked: Instant,
}

/// What a server owes.
#[derive(Debug, Default)]
pub(in crate::host::language_server) struct Fences(Mutex<HashMap<PathBuf, Owed>>);

impl Fences {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Owed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a question about a file, of which so much was said before.
    pub(super) fn ask<'a>(&'a self, path: &'a Path, mark: u64) -> Asking<'a> {
        let now = Instant::now();
        let mut all = self.lock();
        let owed = all.get(path).filter(|owed| owed.mark == mark && now < owed.asked + PAUSE);
        let since = owed.map_or(now, |owed| owed.since);
        all.insert(path.to_owned(), Owed { mark, since, asked: now });
        Asking { fences: self, path, since }
    }
}

/// A question that is not answered yet.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    fences: &'a Fences,
    path: &'a Path,
    since: Instant,
}

impl Asking<'_> {
    /// Returns how long the server still has.
    pub(super) fn left(&self) -> Duration {
        HANGS.saturating_sub(self.since.elapsed()).max(LEAST)
    }

    /// Takes its answer.
    pub(super) fn answered(self) {
        self.fences.lock().remove(self.path);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(owed) = self.fences.lock().get_mut(self.path) {
            owed.asked = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_owed_is_counted_over_all_who_ask() {
        let (fences, path) = (Fences::default(), Path::new("/a.c"));
        let ask = |mark| fences.ask(path, mark).left();
        let first = fences.ask(path, 1);
        advance(3 * S).await;
        drop(first);
        advance(S).await;
        assert_eq!(ask(1), 6 * S, "one after the other");
        assert_eq!(ask(2), 10 * S, "more was said meanwhile");
        advance(6 * S).await;
        assert_eq!(ask(2), 10 * S, "nobody had asked for a while");
        let second = fences.ask(path, 2);
        advance(9 * S).await;
        assert_eq!(second.left(), 2 * S, "each has its least");
        second.answered();
        assert_eq!(ask(2), 10 * S, "it has answered");
    }
}
