//! `hostler demo [PART…]`: the product at work, watched by a person.
//!
//! Each part hosts a tree on folders of its own, drives it over its socket as any
//! harness would, checks what it is told, and ends by itself: the demo is the
//! product, and a wrong answer fails it. On a terminal it is drawn, elsewhere it
//! is plain lines.

mod debug;
mod edit;
mod eval;
mod languages;
mod projects;
mod python;
mod remote;
mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Mode;
use hostler_actors::status::{NodeKind, NodeView};

use super::args::DemoArgs;
use super::attach::{Hosted, start};
use super::exit::{Done, Exit, Refusal};
use super::{Ground, out};
use crate::daemon::DataFolder;
use crate::serve::client::Client;
use crate::serve::http::StatusReport;
use crate::serve::protocol::Open;
use remote::Broken;
use show::Show;

/// A part being played.
type Played<'a> = BoxFuture<'a, Result<(), Broken>>;

/// One part of the demo.
struct Part {
    name: &'static str,
    about: &'static str,
    /// The language servers that it is about: no other is asked, whatever the host has.
    servers: &'static [&'static str],
    /// How long it may take on a box that has other work too.
    bound: Duration,
    run: for<'a> fn(&'a Stage, Arc<Show>) -> Played<'a>,
}

const PARTS: &[Part] = &[
    Part {
        name: "python",
        about: "8 runs on one Python project share one pyright, which is killed half-way",
        servers: &["pyright"],
        bound: Duration::from_secs(20),
        run: |stage, show| Box::pin(python::part(stage, show)),
    },
    Part {
        name: "languages",
        about: "12 runs on a Python, a TypeScript and a C project share three servers, one of \
                them installed on the spot",
        servers: &["pyright", "typescript-native", "clangd"],
        // Its own 20 s, and what the network takes.
        bound: Duration::from_secs(40),
        run: |stage, show| Box::pin(languages::part(stage, show)),
    },
    Part {
        name: "debug",
        about: "a run finds the line that makes a Python program print a wrong result",
        servers: &["pyright"],
        bound: Duration::from_secs(30),
        run: |stage, show| Box::pin(debug::part(stage, show)),
    },
    Part {
        name: "edit",
        about: "a rewrite over hundreds of files, which another run gets in the way of",
        servers: &["pyright"],
        bound: Duration::from_secs(30),
        run: |stage, show| Box::pin(edit::part(stage, show)),
    },
    Part {
        name: "eval",
        about: "a run loads a table, plots it, calls its tools from a cell, and survives a crash",
        servers: &["pyright"],
        // Its own 10 s, and what the network takes.
        bound: Duration::from_secs(200),
        run: |stage, show| Box::pin(eval::part(stage, show)),
    },
];

/// What a part plays on.
struct Stage {
    ground: Ground,
    hosted: Hosted,
    client: Client,
    /// A folder that is gone with the part.
    folder: PathBuf,
    /// The environment that runs get.
    env: Vec<(String, String)>,
}

impl Stage {
    /// Says how a run on a folder is opened.
    fn open(&self, dir: &Path, env: &[(String, String)]) -> Open {
        Open {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            dir: dir.to_owned(),
            mode: Mode::Chat,
            space: None,
            run: None,
            env: env.to_owned(),
        }
    }

    /// Asks for the status, with the figures of this moment.
    async fn report(&self) -> Result<StatusReport, Broken> {
        self.hosted.daemon.launcher().sample().await;
        Ok(self.client.get("/v1/status").await?)
    }
}

fn servers(report: &StatusReport) -> Vec<&NodeView> {
    report.nodes.iter().filter(|node| node.kind == NodeKind::LanguageServer).collect()
}

fn mib(bytes: u64) -> u64 {
    bytes / (1 << 20)
}

/// Shows the parts that were named, or all.
pub(crate) async fn demo(ground: &Ground, args: &DemoArgs) -> Done {
    let chosen = choose(&args.parts)?;
    // One log for all parts, and no file: their data folders are gone with them.
    let _logging = ground.log_to(None)?;
    for part in chosen {
        out::say(format_args!("{}: {}", part.name, part.about));
        play(ground, part).await?;
    }
    Ok(Exit::Done)
}

fn choose(names: &[String]) -> Result<Vec<&'static Part>, Refusal> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let find = |name: &String| {
        PARTS.iter().find(|part| part.name == name).ok_or_else(|| {
            let known: Vec<_> = PARTS.iter().map(|part| part.name).collect();
            Refusal::usage(format!("there is no part `{name}`; there are: {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

async fn play(ground: &Ground, part: &Part) -> Result<(), Refusal> {
    let folder = tempfile::Builder::new().prefix("hostler-demo-").tempdir();
    let folder = folder.map_err(Refusal::failed)?;
    let mut ground = ground.clone();
    ground.loaded.config.servers.retain(|name, _| part.servers.contains(&name.as_str()));
    let private = ground.folders(None)?.private().map_err(Refusal::usage)?;
    let hosted = start(&ground, DataFolder::Private(private), true).await?;
    let client = Client::new(hosted.daemon.folders().socket());
    let pairs = ground.sources.environment.texts();
    let env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let stage = Stage { ground, hosted, client, folder: folder.path().to_owned(), env };
    let show = Arc::new(Show::begin());
    let played = tokio::time::timeout(part.bound, (part.run)(&stage, Arc::clone(&show))).await;
    drop(show);
    let left = stage.hosted.end(false).await;
    out::say(format_args!("processes left: {left}"));
    match played {
        Ok(Ok(())) if left == 0 => Ok(()),
        Ok(Ok(())) => Err(Refusal::failed(format!("{left} processes are left"))),
        Ok(Err(broken)) => Err(Refusal::failed(broken)),
        Err(_) => Err(Refusal::timed_out(format!("{}: not over in {:?}", part.name, part.bound))),
    }
}
