//! The checks that are under way on this host, one at a time for each key.
//!
//! A check lives for as long as somebody holds it: a call that waits, or the seat of a
//! run that was promised its result. When the last one lets go it is cancelled, which
//! kills its processes; with the runs it so ends with the daemon.
//!
//! The tricky thing is who may share one. A verdict must be about the files as they
//! are when it is asked for, so a later asker joins a check only where nothing changed
//! below its root since it began. Otherwise a fresh one waits for the end of the old
//! one, and whoever asks before it begins joins that: however often runs ask and write,
//! each check finishes, and at most one waits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use hostler_actors::ports::Launch;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::formats::Report;
use super::plan::{Key, Plan};
use super::run::{self, Progress};
use crate::watch::log::{Moment, NAMED};
use crate::watch::{RootWatch, Watches};

/// How many checks run at once on a host of few cores; otherwise half of them.
const AT_ONCE: usize = 2;

/// How often progress is told to those who look.
const TELL: Duration = Duration::from_millis(100);

/// What came of a check.
pub(super) type Verdict = Arc<Result<Report, String>>;

/// How a check stands.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// It waits for its turn.
    Queued,
    /// It runs, since when and how far.
    Running(Instant, Progress),
    /// It is over, and how long it took.
    Done(Verdict, Duration),
}

/// What changed below the root since a check began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// Nothing.
    Nothing,
    /// These files, and perhaps more.
    Files(Vec<Arc<Path>>),
    /// Not all of the root is watched.
    Unknown,
}

/// The state of the disk when a check began.
struct Begun {
    watch: Option<Arc<RootWatch>>,
    moment: Option<Moment>,
}

/// One check.
pub(super) struct Check {
    pub(super) plan: Arc<Plan>,
    standing: watch::Receiver<Standing>,
    begun: Arc<OnceLock<Begun>>,
    task: AbortHandle,
}

impl Drop for Check {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Check {
    /// Follows how it stands.
    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Returns how it stands now.
    pub(super) fn stands(&self) -> Standing {
        let standing = self.standing.borrow().clone();
        match standing {
            Standing::Done(..) => standing,
            // Its task ended without a word.
            _ if self.task.is_finished() => failed(),
            standing => standing,
        }
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) {
        let mut standing = self.standing();
        // An error says that its task is gone, which is an end as well.
        let _ = standing.wait_for(|now| matches!(now, Standing::Done(..))).await;
    }

    /// Says what changed since it began.
    pub(super) fn changed(&self) -> Changed {
        let Some(begun) = self.begun.get() else { return Changed::Nothing };
        match (&begun.watch, begun.moment) {
            (Some(watch), Some(moment)) if watch.moment().is_some() => match watch.after(moment) {
                None => Changed::Nothing,
                Some(files) => self.changes_of_others(files),
            },
            _ => Changed::Unknown,
        }
    }

    /// Leaves out what the checker itself writes.
    fn changes_of_others(&self, files: Vec<Arc<Path>>) -> Changed {
        let own = |file: &Arc<Path>| {
            let name = file.file_name();
            name.is_some_and(|name| self.plan.writes.iter().any(|own| name == own.as_str()))
        };
        // What is named is the latest: others may have changed before.
        let all_named = !files.is_empty() && files.len() < NAMED;
        if all_named && files.iter().all(own) { Changed::Nothing } else { Changed::Files(files) }
    }

    /// Says whether what it finds is about the files as they are now.
    pub(super) fn is_current(&self) -> bool {
        self.changed() == Changed::Nothing
    }
}

fn failed() -> Standing {
    let why = Err("internal error: the check ended without a word".to_owned());
    Standing::Done(Arc::new(why), Duration::ZERO)
}

/// What all checks of a host share.
struct Shared {
    launch: Arc<dyn Launch>,
    watches: Watches,
    cache: PathBuf,
    turns: Arc<Semaphore>,
    latest: Mutex<HashMap<Key, Weak<Check>>>,
}

/// The checks of a host. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Checks(Arc<Shared>);

impl Checks {
    /// Starts with none. What checkers keep between runs goes into `cache`.
    pub(crate) fn new(launch: Arc<dyn Launch>, watches: Watches, cache: PathBuf) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let turns = Arc::new(Semaphore::new(AT_ONCE.max(cores / 2)));
        Self(Arc::new(Shared { launch, watches, cache, turns, latest: Mutex::default() }))
    }

    /// Returns the folder of what checkers keep.
    pub(super) fn cache(&self) -> &Path {
        &self.0.cache
    }

    /// Joins the check that is under way, where its verdict will be about the files as
    /// they are now, or begins one. `turns` are those of the call that asks.
    pub(super) fn check(&self, plan: Plan, turns: &Arc<Semaphore>) -> Arc<Check> {
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.retain(|_, check| check.strong_count() > 0);
        let before = latest.get(&plan.key).and_then(Weak::upgrade);
        let running = before.filter(|check| !matches!(check.stands(), Standing::Done(..)));
        if let Some(check) = running.as_ref().filter(|check| check.is_current()) {
            return Arc::clone(check);
        }
        let before = running.map(|check| check.standing());
        let check = self.begin(plan, before, Arc::clone(turns));
        latest.insert(check.plan.key.clone(), Arc::downgrade(&check));
        check
    }

    fn begin(
        &self,
        plan: Plan,
        before: Option<watch::Receiver<Standing>>,
        turns: Arc<Semaphore>,
    ) -> Arc<Check> {
        let (tell, standing) = watch::channel(Standing::Queued);
        let (plan, begun) = (Arc::new(plan), Arc::<OnceLock<Begun>>::default());
        let (shared, of, noted) = (Arc::clone(&self.0), Arc::clone(&plan), Arc::clone(&begun));
        let task = tokio::spawn(async move {
            if let Some(mut before) = before {
                // Gone without an end is an end: whoever wanted it let go.
                let _ = before.wait_for(|now| matches!(now, Standing::Done(..))).await;
            }
            // Never closed.
            let (_ours, _all) = (turns.acquire().await, shared.turns.acquire().await);
            let root = of.key.root.clone();
            let watches = shared.watches.clone();
            let watch = tokio::task::spawn_blocking(move || watches.of(&root)).await;
            let watch = watch.ok().and_then(Result::ok);
            let moment = watch.as_ref().and_then(|watch| watch.moment());
            let _ = noted.set(Begun { watch, moment });
            shared.run(&of, &tell).await;
        });
        Arc::new(Check { plan, standing, begun, task: task.abort_handle() })
    }
}

impl Shared {
    async fn run(&self, plan: &Plan, tell: &watch::Sender<Standing>) {
        let since = Instant::now();
        tell.send_replace(Standing::Running(since, Progress { done: 0, of: None }));
        let told = Mutex::new(since);
        let progress = |now| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.elapsed() >= TELL {
                *told = Instant::now();
                tell.send_replace(Standing::Running(since, now));
            }
        };
        let report = run::run(&*self.launch, plan, &progress).await;
        tell.send_replace(Standing::Done(Arc::new(report), since.elapsed()));
    }
}
