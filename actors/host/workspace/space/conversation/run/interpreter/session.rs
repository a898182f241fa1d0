//! A run's hold on one of its interpreters: cells go through it, one after the other,
//! in the order in which they were issued.
//!
//! Past the actor: the caller's task drives the process, which lives as long as the
//! actor does. A caller that is dropped in mid-cell leaves a process that nobody knows,
//! so the next one does not trust it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cell::{CellEnd, CellOrder, CellReport, Drive, Drove, State, Why};
use super::process::{Process, Woken};
use super::protocol::{Ready, Variables};
use super::spec::Language;
use super::text::Late;
use crate::ports::{Launch, ProcessTree};
use crate::status::StatusEntry;

/// Names of variables that are kept for whoever looks.
const NAMES: usize = 1000;

/// What is known without asking anybody.
#[derive(Debug, Default)]
struct Standing {
    tree: Option<Arc<dyn ProcessTree>>,
    running: Option<(Arc<str>, Instant)>,
    variables: BTreeMap<String, String>,
    reset: CancellationToken,
}

/// The process, and what was made with it.
#[derive(Debug, Default)]
struct Bench {
    process: Option<Process>,
    /// A cell was begun and its end not seen.
    busy: bool,
    /// The last cell's number.
    cell: u64,
    /// Cells that have run on this process.
    cells: u64,
}

/// One interpreter of a run.
pub struct Session {
    language: Language,
    launch: Arc<dyn Launch>,
    status: Arc<StatusEntry>,
    owner: CancellationToken,
    bench: tokio::sync::Mutex<Bench>,
    standing: Mutex<Standing>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.language)
    }
}

/// Why nothing was undone, or what was.
pub type Undone = Result<u64, String>;

impl Session {
    pub(super) fn new(
        language: Language,
        launch: Arc<dyn Launch>,
        status: Arc<StatusEntry>,
        owner: CancellationToken,
    ) -> Arc<Self> {
        let (bench, standing) = Default::default();
        Arc::new(Self { language, launch, status, owner, bench, standing })
    }

    fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops what runs, lets nothing begin any more, and hands out the tree to be ended.
    pub(super) fn close(&self) -> Option<Arc<dyn ProcessTree>> {
        self.owner.cancel();
        self.tree()
    }

    /// Returns the tree of its process, for whoever ends it.
    pub(super) fn tree(&self) -> Option<Arc<dyn ProcessTree>> {
        self.standing().tree.clone()
    }

    /// Says whether the run that it belongs to goes on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.owner.is_cancelled()
    }

    /// Returns the variables as they were after the last cell, and what they hold.
    /// Asks nobody, so it answers while a cell hangs.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        self.standing().variables.clone()
    }

    /// Returns the cell that runs, and since when.
    #[must_use]
    pub fn running(&self) -> Option<(Arc<str>, Instant)> {
        self.standing().running.clone()
    }

    /// Runs a cell, after those that came before.
    pub async fn run(&self, order: CellOrder) -> CellReport {
        let mut bench = tokio::select! {
            biased;
            () = self.owner.cancelled() => return not_begun(Why::RunEnds),
            () = order.cancel.cancelled() => return not_begun(Why::Cancelled),
            bench = self.bench.lock() => bench,
        };
        let before = self.look_after(&mut bench, &order).await;
        let mut report = CellReport { before, ..not_begun(Why::RunEnds) };
        let (cells, began) = (bench.cells, Instant::now());
        let (owner, cancel) = (self.owner.clone(), order.cancel.clone());
        let started = tokio::select! {
            biased;
            () = owner.cancelled() => Err(CellEnd::NotBegun(Why::RunEnds)),
            () = cancel.cancelled() => Err(CellEnd::NotBegun(Why::Cancelled)),
            started = self.started(&mut bench, &order) => started.map_err(CellEnd::NotStarted),
        };
        match started {
            Ok(started) => report.started = started,
            Err(end) => {
                self.forget(&mut bench);
                return CellReport { end, state: State::Lost(cells), ..report };
            }
        }
        bench.cell += 1;
        report.cell = bench.cell;
        self.drive(&mut bench, &order, &mut report).await;
        report.took = began.elapsed();
        report
    }

    async fn drive(&self, bench: &mut Bench, order: &CellOrder, report: &mut CellReport) {
        let Some(process) = bench.process.as_mut() else { return };
        let reset = {
            let mut standing = self.standing();
            standing.running = Some((Arc::clone(&order.label), Instant::now()));
            standing.reset.clone()
        };
        self.status.update(|row| {
            row.phase = "running";
            row.doing = Some((Arc::clone(&order.label), Instant::now()));
        });
        bench.busy = true;
        let drive = Drive::new(order, report.cell, &self.owner, &reset);
        let Drove { end, displays, dropped, calls, alive } = drive.run(process).await;
        bench.busy = false;
        // Read by the runner's mark of the begin, which has come by now.
        report.late = process.text.late();
        report.state = if alive { State::Kept } else { self.after_death(bench).await };
        if report.state == State::Kept {
            bench.cells += 1;
        }
        if let CellEnd::Done(done) | CellEnd::Stopped(_, Some(done)) = &end {
            self.take_variables(&done.variables);
        }
        self.standing().running = None;
        self.show(bench);
        (report.end, report.displays) = (end, displays);
        (report.dropped, report.calls) = (dropped, calls);
    }

    /// Has a snapshot take over, or lets everything go.
    async fn after_death(&self, bench: &mut Bench) -> State {
        let cells = bench.cells;
        if let Some(process) = bench.process.as_mut()
            && let Some(woken) = process.woken().await
        {
            self.status.update(|row| row.restarts += 1);
            return State::Restored(self.take_woken(woken));
        }
        self.end_process(bench).await;
        State::Lost(cells)
    }

    /// Sees what became of the process since the last cell.
    async fn look_after(&self, bench: &mut Bench, order: &CellOrder) -> Option<String> {
        let process = bench.process.as_mut()?;
        let gone = if bench.busy {
            "the last call was given up in mid-cell".to_owned()
        } else if process.spec != order.spec {
            "another interpreter is wanted now".to_owned()
        } else if process.is_over() {
            let how = process.how().await;
            if let Some(woken) = process.woken().await {
                let cell = self.take_woken(woken);
                self.show(bench);
                return Some(format!(
                    "the interpreter {how} between two cells; a snapshot took over: the variables \
                     are those after cell {cell}"
                ));
            }
            format!("the interpreter {how} between two cells")
        } else {
            return None;
        };
        let cells = bench.cells;
        self.end_process(bench).await;
        Some(format!("{gone}: the variables of {cells} cells are gone"))
    }

    async fn started(&self, bench: &mut Bench, order: &CellOrder) -> Result<Option<Ready>, String> {
        if bench.process.is_some() {
            return Ok(None);
        }
        self.status.update(|row| {
            row.phase = "starting";
            row.incarnation = row.incarnation.next();
        });
        let process = Process::start(
            &*self.launch,
            Arc::clone(&order.spec),
            order.nonce.clone(),
            &order.limits,
            &order.sink,
            |tree| self.standing().tree = Some(Arc::clone(tree)),
        )
        .await;
        match process {
            Ok(process) => {
                let ready = process.ready.clone();
                (bench.process, bench.busy, bench.cells) = (Some(process), false, 0);
                Ok(Some(ready))
            }
            Err(why) => {
                let why = format!("{}: {why}", order.spec.program.display());
                self.status.update(|row| row.last_error = Some(why.as_str().into()));
                Err(why)
            }
        }
    }

    /// Ends the process, and the cell that runs on it. Returns how many cells had made
    /// the state that goes with it; `None` if there was no process.
    pub async fn reset(&self, cancel: &CancellationToken) -> Result<Option<u64>, Why> {
        self.standing().reset.cancel();
        let bench = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            bench = self.bench.lock() => Some(bench),
        };
        self.standing().reset = CancellationToken::new();
        let mut bench = bench.ok_or(Why::Cancelled)?;
        let cells = bench.process.is_some().then_some(bench.cells);
        self.end_process(&mut bench).await;
        self.standing().variables.clear();
        self.show(&bench);
        Ok(cells)
    }

    /// Goes back to the state before the last cell. Returns the cell after which that was.
    pub async fn undo(&self, cancel: &CancellationToken) -> Undone {
        let mut bench = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err("cancelled; nothing was undone".to_owned()),
            bench = self.bench.lock() => bench,
        };
        let busy = bench.busy;
        let Some(process) = bench.process.as_mut().filter(|_| !busy) else {
            return Err("there is no interpreter whose last cell could be undone".to_owned());
        };
        let woken = process.undo().await?;
        let cell = self.take_woken(woken);
        self.show(&bench);
        Ok(cell)
    }

    async fn end_process(&self, bench: &mut Bench) {
        if let Some(process) = bench.process.take()
            && !process.end().await
        {
            tracing::error!("{}: killed, and not proved to be gone", self.language);
        }
        self.forget(bench);
    }

    /// Takes note that there is no process.
    fn forget(&self, bench: &mut Bench) {
        (bench.process, bench.busy, bench.cells) = (None, false, 0);
        let mut standing = self.standing();
        standing.tree = None;
        standing.running = None;
        standing.variables.clear();
        drop(standing);
        self.show(bench);
    }

    fn take_woken(&self, Woken { cell, variables }: Woken) -> u64 {
        self.standing().variables = variables.into_iter().take(NAMES).collect();
        cell
    }

    fn take_variables(&self, variables: &Variables) {
        let mut standing = self.standing();
        for name in &variables.gone {
            standing.variables.remove(name);
        }
        for (name, what) in variables.new.iter().chain(&variables.changed) {
            if standing.variables.len() < NAMES || standing.variables.contains_key(name) {
                standing.variables.insert(name.clone(), what.clone());
            }
        }
    }

    fn show(&self, bench: &Bench) {
        let variables = self.standing().variables.len();
        let pid = bench.process.as_ref().map(|process| process.tree.pid());
        let (cells, snapshot) = (bench.cells, bench.process.as_ref().map(Process::is_kept));
        self.status.update(|row| {
            row.phase = if pid.is_some() { "idle" } else { "none" };
            row.pid = pid;
            row.doing = None;
            let kept = if snapshot == Some(true) { ", a snapshot" } else { "" };
            let note = || format!("{cells} cells, {variables} variables{kept}").into();
            row.note = pid.map(|_| note());
        });
    }
}

fn not_begun(why: Why) -> CellReport {
    CellReport {
        cell: 0,
        end: CellEnd::NotBegun(why),
        state: State::Kept,
        started: None,
        before: None,
        late: Late::default(),
        displays: BTreeMap::new(),
        dropped: 0,
        calls: BTreeMap::new(),
        took: std::time::Duration::ZERO,
    }
}
