//! The first part: 8 runs on one Python project share one pyright.
//!
//! Each asks about its own module, breaks it, is told exactly what it broke, and
//! mends it. Half-way everybody stops for a moment, the server is killed, and the
//! questions go on: they are answered by its replacement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hostler_actors::status::NodeView;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::sync::Barrier;

use super::projects::{PYTHON, lay_out, text_of};
use super::remote::{Broken, Remote, unexpected};
use super::show::{Line, Show};
use super::{Stage, mib, servers};
use crate::cli::status::{self, Paint};
use crate::serve::http::StatusReport;

/// Rounds before the server is killed, and as many after it.
const ROUNDS: usize = 2;
/// Calls of a round: three questions, a break and a mend.
const STEPS: usize = 5;
/// How long the server may take to be back: its first restart is at once.
const BACK_BOUND: Duration = Duration::from_secs(10);

/// What each run asks about: its file, a line of it, and a symbol on that line.
const SUBJECTS: [(&str, &str, &str); 8] = [
    ("depot/__init__.py", "from depot.items import", "Item"),
    ("depot/__main__.py", "def main(", "main"),
    ("depot/items.py", "class Tool(", "Tool"),
    ("depot/money.py", "def times(", "times"),
    ("depot/orders.py", "class Order:", "Order"),
    ("depot/pricing.py", "def price_of(", "price_of"),
    ("depot/report.py", "def inventory(", "inventory"),
    ("depot/stock.py", "def take(", "take"),
];

/// A line with one error, which no module of the project has.
const MISTAKE: &str = "\nshelf_count: int = \"seven\"\n";

/// Plays the part.
pub(super) async fn part(stage: &Stage, show: Arc<Show>) -> Result<(), Broken> {
    let project = stage.folder.join("depot");
    lay_out(PYTHON, &project)?;
    let began = Instant::now();
    let (pause, go_on) = (Arc::new(Barrier::new(9)), Arc::new(Barrier::new(9)));
    let mut runs = tokio::task::JoinSet::new();
    for (file, line, symbol) in SUBJECTS {
        let remote = Remote::open(&stage.client, &stage.open(&project, &stage.env)).await?;
        let text = text_of(PYTHON, file);
        let subject = Subject { file, line: line_of(text, line), symbol, text };
        let shown = show.line(file, (2 * ROUNDS * STEPS) as u64);
        runs.spawn(run(remote, subject, shown, [Arc::clone(&pause), Arc::clone(&go_on)]));
    }
    let halfway = async {
        pause.wait().await;
        let outcome = kill_and_wait(stage, &show).await;
        go_on.wait().await;
        outcome
    };
    let finished = async {
        let mut times = Vec::new();
        while let Some(run) = runs.join_next().await {
            times.extend(run.map_err(|error| Broken::Failed {
                what: "a run of the demo".to_owned(),
                text: error.to_string(),
            })??);
        }
        Ok::<_, Broken>(times)
    };
    let (peak, times) = tokio::try_join!(halfway, finished)?;
    tell(&show, times, &peak, began.elapsed());
    Ok(())
}

pub(super) fn line_of(text: &str, needle: &str) -> usize {
    text.lines().position(|line| line.contains(needle)).unwrap_or_default() + 1
}

/// What one run is about.
struct Subject {
    file: &'static str,
    line: usize,
    symbol: &'static str,
    text: &'static str,
}

async fn run(
    mut remote: Remote,
    subject: Subject,
    shown: Line,
    [pause, go_on]: [Arc<Barrier>; 2],
) -> Result<Vec<Duration>, Broken> {
    remote.call("read", json!({"path": subject.file})).await?;
    for _ in 0..ROUNDS {
        round(&mut remote, &subject, &shown).await?;
    }
    pause.wait().await;
    go_on.wait().await;
    for _ in 0..ROUNDS {
        round(&mut remote, &subject, &shown).await?;
    }
    remote.end().await
}

async fn round(remote: &mut Remote, subject: &Subject, shown: &Line) -> Result<(), Broken> {
    let Subject { file, line, symbol, text } = *subject;
    for action in ["hover", "definition", "references"] {
        let ask = json!({"action": action, "file": file, "line": line, "symbol": symbol});
        let answer = remote.call("lsp", ask).await?;
        answer.expect(answer.text.contains(symbol), action, symbol)?;
        shown.step(&format!("{action} of {symbol}"));
    }
    let broken = format!("{text}{MISTAKE}");
    let answer = remote.call("write", json!({"path": file, "content": broken})).await?;
    let named = answer.text.contains("shelf_count") | answer.text.contains("\"int\"");
    let one = named && answer.is_fresh(1);
    answer.expect(one, "write with a mistake", "its one error, and no other")?;
    shown.step("broken, and told so");
    let answer = remote.call("write", json!({"path": file, "content": text})).await?;
    answer.expect(answer.is_fresh(0), "write without it", "a fresh verdict with nothing new")?;
    shown.step("mended");
    Ok(())
}

/// What was seen of the servers while all runs lived.
struct Peak {
    servers: usize,
    leases: usize,
    server_bytes: u64,
    daemon_bytes: u64,
}

async fn kill_and_wait(stage: &Stage, show: &Show) -> Result<Peak, Broken> {
    let report = stage.report().await?;
    show.say("half-way:");
    show.say(&status::tree(&report.nodes, Paint::for_stdout()));
    let found = servers(&report);
    let peak = Peak {
        servers: found.len(),
        leases: found.iter().filter_map(|node| node.leases).sum(),
        server_bytes: found.iter().filter_map(|node| Some(node.usage?.resident_bytes)).sum(),
        daemon_bytes: report.resident_bytes,
    };
    let server = found.first().and_then(|node| node.pid);
    let pid = server.and_then(|pid| i32::try_from(pid).ok()).ok_or_else(|| {
        let found = format!("{} servers", peak.servers);
        unexpected("status", "a language server that is up", found)
    })?;
    show.say(&format!("SIGKILL to the language server, process {pid}"));
    let killed = Instant::now();
    kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(std::io::Error::from)?;
    let back = back_up(stage).await?;
    show.say(&format!(
        "back after {:.0} ms, restart counted:",
        killed.elapsed().as_secs_f64() * 1e3
    ));
    show.say(&status::tree(&back, Paint::for_stdout()));
    Ok(peak)
}

/// Waits until the killed server is up again, and returns its row.
async fn back_up(stage: &Stage) -> Result<Vec<NodeView>, Broken> {
    let until = tokio::time::Instant::now() + BACK_BOUND;
    loop {
        let report: StatusReport = stage.client.get("/v1/status").await?;
        let rows: Vec<_> = servers(&report).into_iter().cloned().collect();
        if rows.iter().any(|row| row.restarts == 1 && row.phase == "up") {
            return Ok(rows);
        }
        if tokio::time::Instant::now() > until {
            let what = "the killed server to be up again".to_owned();
            return Err(Broken::Silent { what, within: BACK_BOUND });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn tell(show: &Show, times: Vec<Duration>, peak: &Peak, took: Duration) {
    show.say(&format!(
        "language servers: {} for {} runs, {} MiB; hostler itself {} MiB",
        peak.servers,
        peak.leases,
        mib(peak.server_bytes),
        mib(peak.daemon_bytes),
    ));
    show.times(times, took);
}
