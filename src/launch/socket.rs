//! The socket pair between the daemon and one launcher: packets, descriptors,
//! and the sender's process id as the receiver's namespace sees it.
//!
//! It is also the lifeline: a launcher that reads the end of it takes its tree
//! down. SEQPACKET, so that a packet is whole or absent.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    UnixCredentials, recvmsg, sendmsg, setsockopt, socketpair, sockopt,
};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Longer texts in a refusal are cut.
const LONGEST: usize = 4096;

/// What a launcher is asked to do after its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Send this signal to the target's process group.
    Signal(i32),
}

/// Which step of a launch was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotFound,
    NotExecutable,
    BadCwd,
    Other,
}

/// What a launcher tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The init of the tree is there; its pidfd comes along.
    Init,
    /// The sender is about to become the target.
    Target,
    /// The target's program runs.
    Running,
    /// The target could not be started.
    Refused(Refusal, String),
    /// The target has exited with this code.
    Exited(i32),
    /// The target was killed by this signal.
    Signalled(i32),
}

impl Report {
    fn encode(&self) -> Vec<u8> {
        let number = |tag: u8, number: i32| [&[tag][..], &number.to_le_bytes()].concat();
        match self {
            Self::Init => vec![b'I'],
            Self::Target => vec![b'T'],
            Self::Running => vec![b'R'],
            Self::Refused(kind, text) => {
                let kind = match kind {
                    Refusal::NotFound => b'n',
                    Refusal::NotExecutable => b'x',
                    Refusal::BadCwd => b'c',
                    Refusal::Other => b'o',
                };
                [&[kind][..], text.as_bytes()].concat()
            }
            Self::Exited(code) => number(b'E', *code),
            Self::Signalled(signal) => number(b'S', *signal),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let number = || Some(i32::from_le_bytes(rest.try_into().ok()?));
        let refused = |kind| Self::Refused(kind, String::from_utf8_lossy(rest).into_owned());
        Some(match tag {
            b'I' => Self::Init,
            b'T' => Self::Target,
            b'R' => Self::Running,
            b'n' => refused(Refusal::NotFound),
            b'x' => refused(Refusal::NotExecutable),
            b'c' => refused(Refusal::BadCwd),
            b'o' => refused(Refusal::Other),
            b'E' => Self::Exited(number()?),
            b'S' => Self::Signalled(number()?),
            _ => return None,
        })
    }
}

/// Makes a pair: the daemon's end, which does not block and learns the sender of
/// each packet, and the launcher's.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    setsockopt(&ours, sockopt::PassCred, &true)?;
    nix::fcntl::fcntl(&ours, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
    Ok((ours, theirs))
}

/// Lets the runtime say when `fd` can be read.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watched(fd, Interest::READABLE)
}

/// Lets the runtime say when something of interest happens to `fd`.
pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is one open file for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let fds: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let control: &[ControlMessage<'_>] = if fds.is_empty() { &[] } else { &rights };
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, flags, None)?;
    Ok(())
}

/// Sends an order: the memfd that holds it, then the descriptors.
pub(super) fn send_order(
    socket: BorrowedFd<'_>,
    order: BorrowedFd<'_>,
    fds: &[OwnedFd],
) -> io::Result<()> {
    let all: Vec<_> = std::iter::once(order).chain(fds.iter().map(AsFd::as_fd)).collect();
    send(socket, b"O", &all)
}

/// Sends a command.
pub(super) fn send_command(socket: BorrowedFd<'_>, command: Command) -> io::Result<()> {
    let Command::Signal(signal) = command;
    send(socket, &signal.to_le_bytes(), &[])
}

/// Sends a report, with a descriptor or none.
pub(super) fn send_report(
    socket: BorrowedFd<'_>,
    report: &Report,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut bytes = report.encode();
    bytes.truncate(LONGEST);
    send(socket, &bytes, fd.as_slice())
}

/// One packet as it arrived; no bytes mean the end.
struct Packet {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
    sender: Option<i32>,
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<Packet> {
    let mut bytes = vec![0; LONGEST];
    let mut control = cmsg_space!([i32; 253], UnixCredentials);
    let (len, fds, sender) = loop {
        let mut into = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), flags) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(message) => {
                let (mut fds, mut sender) = (Vec::new(), None);
                for part in message.cmsgs()? {
                    match part {
                        // SAFETY: the kernel has just made these descriptors for us.
                        ControlMessageOwned::ScmRights(raw) => fds
                            .extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })),
                        ControlMessageOwned::ScmCredentials(from) => sender = Some(from.pid()),
                        _ => {}
                    }
                }
                break (message.bytes, fds, sender);
            }
        }
    };
    bytes.truncate(len);
    Ok(Packet { bytes, fds, sender })
}

/// Waits for the order. `None` when the daemon has gone.
pub(super) fn receive_order(socket: BorrowedFd<'_>) -> io::Result<Option<(OwnedFd, Vec<OwnedFd>)>> {
    let mut fds = receive(socket)?.fds.into_iter();
    Ok(fds.next().map(|order| (order, fds.collect())))
}

/// Reads the next command. `None` when the daemon has gone.
pub(super) fn receive_command(socket: BorrowedFd<'_>) -> io::Result<Option<Command>> {
    let bytes = receive(socket)?.bytes;
    Ok(bytes.try_into().ok().map(i32::from_le_bytes).map(Command::Signal))
}

/// A report with its sender's process id, as this process sees it, and the
/// descriptor that came along.
pub(super) struct Told {
    pub(super) report: Report,
    pub(super) sender: Option<u32>,
    pub(super) fd: Option<OwnedFd>,
}

/// Reads the next report. `None` when the launcher has gone.
pub(super) fn receive_report(socket: BorrowedFd<'_>) -> io::Result<Option<Told>> {
    let packet = receive(socket)?;
    if packet.bytes.is_empty() {
        return Ok(None);
    }
    let report = Report::decode(&packet.bytes)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unknown report"))?;
    let sender = packet.sender.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    Ok(Some(Told { report, sender, fd: packet.fds.into_iter().next() }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reports_arrive_with_their_sender() {
        let (ours, theirs) = pair().unwrap();
        let all = [
            Report::Init,
            Report::Target,
            Report::Running,
            Report::Refused(Refusal::BadCwd, "no".into()),
            Report::Refused(Refusal::NotFound, String::new()),
            Report::Exited(3),
            Report::Signalled(9),
        ];
        for report in &all {
            send_report(theirs.as_fd(), report, Some(theirs.as_fd())).unwrap();
            let told = receive_report(ours.as_fd()).unwrap().unwrap();
            assert_eq!(&told.report, report);
            assert_eq!(told.sender, Some(std::process::id()));
            assert!(told.fd.is_some());
        }
        drop(theirs);
        assert!(receive_report(ours.as_fd()).unwrap().is_none());
    }
}
