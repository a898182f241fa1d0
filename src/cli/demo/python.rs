//! The first part: 8 runs on one Python project share one pyright.
//!
//! Each asks about its own module, breaks it, is told exactly what it broke, and
//! mends it. Half-way everybody stops for a moment, the server is killed, and the
//! questions go on: they are answered by its replacement.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostler_actors::profile::Mode;
use hostler_actors::status::{NodeKind, NodeView};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::Stage;
use super::remote::{Broken, Remote};
use super::show::{Line, Show};
use crate::cli::status::{self, Paint};
use crate::serve::http::StatusReport;
use crate::serve::protocol::Open;

/// Rounds before the server is killed, and as many after it.
const ROUNDS: usize = 2;
/// Calls of a round: three questions, a break and a mend.
const STEPS: usize = 5;
/// How long the server may take to be back: its first restart is at once.
const BACK_BOUND: Duration = Duration::from_secs(10);

macro_rules! project {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../tests/fixtures/projects/python/", $path)))),*]
    };
}

/// The project, as it is kept for the tests.
const PROJECT: &[(&str, &str)] = project![
    "pyproject.toml",
    "depot/__init__.py",
    "depot/__main__.py",
    "depot/items.py",
    "depot/money.py",
    "depot/orders.py",
    "depot/pricing.py",
    "depot/report.py",
    "depot/stock.py",
];

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
    lay_out(&project)?;
    let began = Instant::now();
    let (pause, go_on) = (Arc::new(Barrier::new(9)), Arc::new(Barrier::new(9)));
    let mut runs = tokio::task::JoinSet::new();
    for (file, line, symbol) in SUBJECTS {
        let open = Open {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            dir: project.clone(),
            mode: Mode::Chat,
            space: None,
            run: None,
            env: stage.env.clone(),
        };
        let remote = Remote::open(&stage.client, &open).await?;
        let text = text_of(file);
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

fn lay_out(project: &Path) -> std::io::Result<()> {
    for (path, text) in PROJECT {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(project))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn text_of(file: &str) -> &'static str {
    PROJECT.iter().find(|(path, _)| *path == file).map_or("", |(_, text)| text)
}

fn line_of(text: &str, needle: &str) -> usize {
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
    let one = answer.details.get("total") == Some(&Value::from(1))
        && answer.text.contains("shelf_count") | answer.text.contains("\"int\"")
        && answer.freshness() == "fresh";
    answer.expect(one, "write with a mistake", "its one error, and no other")?;
    shown.step("broken, and told so");
    let answer = remote.call("write", json!({"path": file, "content": text})).await?;
    let none =
        answer.details.get("total") == Some(&Value::from(0)) && answer.freshness() == "fresh";
    answer.expect(none, "write without it", "a fresh verdict with nothing new")?;
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

fn servers(report: &StatusReport) -> Vec<&NodeView> {
    report.nodes.iter().filter(|node| node.kind == NodeKind::LanguageServer).collect()
}

async fn kill_and_wait(stage: &Stage, show: &Show) -> Result<Peak, Broken> {
    // A fresh sample, so that the figures are those of this moment.
    stage.hosted.daemon.launcher().sample().await;
    let report: StatusReport = stage.client.get("/v1/status").await?;
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
    let pid = server.and_then(|pid| i32::try_from(pid).ok()).ok_or_else(|| Broken::Unexpected {
        what: "status".to_owned(),
        expected: "a language server that is up".to_owned(),
        text: format!("{} servers", peak.servers),
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
            return Err(Broken::Silent { what });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn tell(show: &Show, mut times: Vec<Duration>, peak: &Peak, took: Duration) {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len().saturating_sub(1) as f64 * share).round() as usize;
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    let mib = |bytes: u64| bytes / (1 << 20);
    show.say(&format!("calls: {}, p50 {:.1} ms, p99 {:.1} ms", times.len(), at(0.5), at(0.99)));
    show.say(&format!(
        "language servers: {} for {} runs, {} MiB; hostler itself {} MiB",
        peak.servers,
        peak.leases,
        mib(peak.server_bytes),
        mib(peak.daemon_bytes),
    ));
    show.say(&format!("took {:.1} s", took.as_secs_f64()));
}
