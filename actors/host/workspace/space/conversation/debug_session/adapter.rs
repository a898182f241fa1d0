//! An adapter's process, started and not yet spoken to.
//!
//! What dials us finds a listening port that was there before it: a connection that
//! comes early waits there. After an adapter was lost, the next one is kept ready in
//! this form, which needs no answer from it.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use super::goodbye::disconnect;
use super::spec::{ADDRESS, AdapterProcess, Kind, Reach, SessionSpec};
use super::wire;
use crate::ports::{
    Duplex, Launch, LaunchOrder, Leftovers, Listening, Owner, PipeReader, Posture, ProcessTree,
    Sockets, Wire,
};

/// A number for the last request of all, above those of any session.
const LAST: i64 = 1 << 30;

/// A started adapter.
pub struct Started {
    pub(super) tree: Arc<dyn ProcessTree>,
    /// What was started, to be compared with what is wanted.
    process: AdapterProcess,
    /// Its own pipes, if it speaks on them.
    pub(super) duplex: Option<Duplex>,
    /// Where it dials.
    pub(super) listener: Option<Box<dyn Listening>>,
    /// What it writes beside the protocol.
    pub(super) pipes: Vec<PipeReader>,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Started({})", self.tree.pid())
    }
}

impl Started {
    /// Says whether it is alive and what this session wants.
    pub(super) fn fits(&self, spec: &SessionSpec) -> bool {
        let dials = matches!(spec.reach, Reach::DialsUs(_));
        self.tree.ended().borrow().is_none()
            && dials == self.listener.is_some()
            && spec.process() == Some(&self.process)
    }
}

/// Starts the adapter of a session.
pub(super) async fn start(
    launch: &dyn Launch,
    sockets: &dyn Sockets,
    spec: &SessionSpec,
) -> Result<Started, String> {
    let Some(process) = spec.process() else {
        return Err("internal error: this adapter is not ours to start".to_owned());
    };
    let listener = match spec.reach {
        Reach::DialsUs(_) => {
            let made = sockets.listen().await;
            Some(made.map_err(|error| format!("no port can be listened on: {error}"))?)
        }
        _ => None,
    };
    let address = listener.as_ref().map(|listener| format!("127.0.0.1:{}", listener.port()));
    let order = order(spec, process, address.as_deref());
    let mut launched = launch.launch(order).await.map_err(|error| error.to_string())?;
    let duplex = launched
        .to_process
        .remove(&0)
        .and_then(|write| Some(Duplex { read: launched.from_process.remove(&1)?, write }));
    Ok(Started {
        tree: launched.tree,
        process: process.clone(),
        duplex,
        listener,
        pipes: launched.from_process.into_values().collect(),
    })
}

/// Returns what frees the target when the daemon can no longer say it: without that,
/// lldb-dap takes the target along when its pipes close.
fn farewell() -> Vec<u8> {
    wire::request(LAST, "disconnect", disconnect(false))
}

fn order(spec: &SessionSpec, process: &AdapterProcess, address: Option<&str>) -> LaunchOrder {
    let filled = |arg: &OsString| match (arg.to_str(), address) {
        (Some(text), Some(address)) if text.contains(ADDRESS) => {
            text.replace(ADDRESS, address).into()
        }
        _ => arg.clone(),
    };
    let wires = match address {
        // Its stdin is the debuggee's too, and so are its other pipes.
        Some(_) => [(0, Wire::Null), (1, Wire::FromProcess), (2, Wire::FromProcess)],
        None => [(0, Wire::ToProcess), (1, Wire::FromProcess), (2, Wire::Ring)],
    };
    LaunchOrder {
        label: spec.adapter.clone(),
        program: process.program.clone(),
        args: process.args.iter().map(filled).collect(),
        cwd: process.cwd.clone(),
        env: process.env.clone(),
        wires: wires.into(),
        // A conversation outlives its runs, and so does its debug session.
        owner: Owner::Host,
        posture: Posture::Writable,
        leftovers: match spec.kind {
            Kind::Launch => Leftovers::Kill,
            Kind::Attach => Leftovers::Release(farewell()),
        },
    }
}
