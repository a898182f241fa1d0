//! One launch from the order to the running tree.
//!
//! The order waits in the socket before the launcher is even started, so that
//! neither waits for the other. A caller that gives up drops our end of the
//! socket, and with the lifeline the launcher goes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_actors::ports::{
    LaunchError, LaunchOrder, Launched, Leftovers, PipeReader, PipeWriter, ProcessTree,
};
use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::pipe2;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, watch};

use super::account::Place;
use super::order::{Order, Pipe, Plan, Source, Walls, plan};
use super::ring::Ring;
use super::socket::{self, Refusal, Report, Told};
use super::spawner::Spawner;
use super::sweep::MARK;
use super::tree::{Core, Tree, Watch};
use super::{LaunchConfig, Shared};

/// A launcher that has not started its target after this is given up.
const DEADLINE: Duration = Duration::from_secs(10);

/// Our ends of the pipes of an order.
#[derive(Default)]
struct Ends {
    to: BTreeMap<i32, PipeWriter>,
    from: BTreeMap<i32, PipeReader>,
    ring: Option<pipe::Receiver>,
}

/// Starts what `asked` orders behind `walls`.
pub(super) async fn start(
    shared: &Shared,
    asked: LaunchOrder,
    walls: Walls,
    place: Place,
) -> Result<Launched, LaunchError> {
    let failed = |step: &str, error: &dyn std::fmt::Display| LaunchError::Failed {
        label: asked.label.clone(),
        reason: format!("{step}: {error}"),
    };
    let Plan { pipes, wires } =
        plan(&asked.wires).map_err(|error| failed("descriptors", &error))?;
    let mark = format!("{}.{}.", shared.marks, place.number);
    let order = order(&shared.config, &asked, walls, wires, &mark);
    let (ends, theirs) =
        connect(&pipes, &asked.leftovers).map_err(|error| failed("pipes", &error))?;
    let (ours, launchers) =
        hand_over(&order, &theirs).map_err(|error| failed("the order", &error))?;
    drop(theirs);
    let child = shared.spawner.spawn(launchers, (MARK, mark.clone())).await;
    let child = child.map_err(|error| failed("the launcher", &error))?;
    let launcher = child.id().ok_or_else(|| failed("the launcher", &"it ended at once"))?;
    let (pid, init) = match tokio::time::timeout(DEADLINE, running(&ours)).await {
        Ok(Ok(Ok(started))) => started,
        Ok(Ok(Err((kind, reason)))) => return Err(refused(asked, kind, reason)),
        Ok(Err(error)) => return Err(failed("the launcher", &error)),
        Err(_) => return Err(failed("the launcher", &format!("no answer within {DEADLINE:?}"))),
    };
    let core = Arc::new(Core {
        pid,
        launcher,
        socket: ours,
        ring: Mutex::new(Ring::default()),
        ended: watch::Sender::new(None),
        emptied: watch::Sender::new(false),
        kill_asked: Notify::new(),
        _spawner: Spawner::clone(&shared.spawner),
    });
    place.fill(&core);
    let tree: Arc<dyn ProcessTree> = Arc::new(Tree(Arc::clone(&core)));
    let mark = format!("{MARK}={mark}");
    tokio::spawn(Watch { core, child, ring: ends.ring, init, mark, place }.run());
    Ok(Launched { tree, to_process: ends.to, from_process: ends.from })
}

fn order(
    config: &LaunchConfig,
    asked: &LaunchOrder,
    walls: Walls,
    wires: Vec<(i32, Source)>,
    mark: &str,
) -> Order {
    let pair = |name: &OsString, value: &OsString| {
        let mut pair = OsString::with_capacity(name.len() + value.len() + 1);
        pair.push(name);
        pair.push("=");
        pair.push(value);
        pair
    };
    // A daemon that runs inside a tree of another must not hand on its mark.
    let given = asked.env.iter().filter(|(name, _)| name != MARK);
    let mut env: Vec<_> = given.map(|(name, value)| pair(name, value)).collect();
    env.push(pair(&MARK.into(), &mark.into()));
    Order {
        walls,
        leftovers: asked.leftovers.clone(),
        program: asked.program.clone(),
        args: asked.args.clone(),
        cwd: asked.cwd.clone(),
        env,
        posture: asked.posture.clone(),
        hide: config.hide.clone(),
        keep: config.keep.clone(),
        wires,
    }
}

/// Makes the pipes; the ends that the target gets come in the order of `pipes`, and
/// behind them the end over which the init says farewell.
fn connect(pipes: &[Pipe], leftovers: &Leftovers) -> io::Result<(Ends, Vec<OwnedFd>)> {
    let mut ends = Ends::default();
    let mut theirs = Vec::with_capacity(pipes.len() + 1);
    let mut farewell = None;
    for pipe in pipes {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        match pipe {
            Pipe::To(fd) => {
                if *fd == 0 && matches!(leftovers, Leftovers::Release(_)) {
                    farewell = Some(write.try_clone()?);
                }
                ends.to.insert(*fd, Box::new(pipe::Sender::from_owned_fd(unblocked(write)?)?));
                theirs.push(read);
            }
            Pipe::From(fd) => {
                ends.from.insert(*fd, Box::new(pipe::Receiver::from_owned_fd(unblocked(read)?)?));
                theirs.push(write);
            }
            Pipe::Ring => {
                ends.ring = Some(pipe::Receiver::from_owned_fd(unblocked(read)?)?);
                theirs.push(write);
            }
        }
    }
    theirs.extend(farewell);
    Ok((ends, theirs))
}

fn unblocked(fd: OwnedFd) -> io::Result<OwnedFd> {
    nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(fd)
}

/// Puts the order into a socket pair and returns our end and the launcher's.
fn hand_over(order: &Order, theirs: &[OwnedFd]) -> io::Result<(AsyncFd<OwnedFd>, OwnedFd)> {
    let mut memfd = std::fs::File::from(memfd_create(c"order", MFdFlags::MFD_CLOEXEC)?);
    memfd.write_all(&order.encode())?;
    io::Seek::rewind(&mut memfd)?;
    let (ours, launchers) = socket::pair()?;
    socket::send_order(ours.as_fd(), memfd.as_fd(), theirs)?;
    Ok((socket::readable(ours)?, launchers))
}

type Started = (u32, Option<OwnedFd>);

/// Waits until the target runs, or until it is known why it does not.
async fn running(socket: &AsyncFd<OwnedFd>) -> io::Result<Result<Started, (Refusal, String)>> {
    let (mut pid, mut init) = (None, None);
    loop {
        let told = socket
            .async_io(Interest::READABLE, |socket| socket::receive_report(socket.as_fd()))
            .await?;
        let lost = || io::Error::other("it ended before it could start the program");
        let Told { report, sender, fd } = told.ok_or_else(lost)?;
        match report {
            Report::Init => init = fd,
            Report::Target => pid = sender,
            Report::Running => {
                let unseen = || io::Error::other("the program's process id is not visible here");
                return Ok(Ok((pid.ok_or_else(unseen)?, init)));
            }
            Report::Refused(kind, reason) => return Ok(Err((kind, reason))),
            Report::Exited(_) | Report::Signalled(_) => {}
        }
    }
}

fn refused(asked: LaunchOrder, kind: Refusal, reason: String) -> LaunchError {
    let LaunchOrder { label, program, cwd, .. } = asked;
    match kind {
        Refusal::NotFound => LaunchError::NotFound { program },
        Refusal::NotExecutable => LaunchError::NotExecutable { program, reason },
        Refusal::BadCwd => LaunchError::BadCwd { cwd, reason },
        Refusal::Other => LaunchError::Failed { label, reason },
    }
}
