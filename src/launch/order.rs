//! What the daemon tells a launcher to start, and its bytes in the memfd.
//!
//! Pure. The daemon and the launcher are the same binary, so the format has no
//! versions; it is written by hand because paths, arguments and the environment
//! are bytes, which JSON would blow up to lists of numbers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use hostler_actors::ports::{Leftovers, Posture, Wire};

/// The kernel passes no more than 253 descriptors with one message; one is the order.
const MOST_WIRES: usize = 250;

/// Which of the kernel's walls are put up around a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walls {
    /// An own user namespace, with the own uid mapped to itself.
    pub(super) user: bool,
    /// An own PID namespace: its init's end is the proof that the tree is empty.
    pub(super) pid: bool,
    /// An own mount namespace: hidden folders, read-only binds.
    pub(super) mount: bool,
    /// A Landlock domain, for a read-only posture.
    pub(super) landlock: bool,
}

/// What a descriptor of the target is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// `/dev/null`.
    Null,
    /// The descriptor sent at this position.
    Sent(u32),
}

/// One order, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) walls: Walls,
    pub(super) leftovers: Leftovers,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: PathBuf,
    /// `NAME=value` each.
    pub(super) env: Vec<OsString>,
    pub(super) posture: Posture,
    /// Folders that the target must not see.
    pub(super) hide: Vec<PathBuf>,
    /// Folders below those that it sees all the same, read-only.
    pub(super) keep: Vec<PathBuf>,
    pub(super) wires: Vec<(i32, Source)>,
}

/// Says that the bytes are not an order, which only a bug can cause.
#[derive(Debug, thiserror::Error)]
#[error("the order cannot be read: it ends early or holds an unknown tag")]
pub(super) struct Garbled;

impl Order {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(4096);
        let Walls { user, pid, mount, landlock } = self.walls;
        to.extend([user, pid, mount, landlock].map(u8::from));
        match &self.leftovers {
            Leftovers::Kill => to.push(0),
            Leftovers::Keep => to.push(1),
            Leftovers::Release(farewell) => {
                to.push(2);
                put(&mut to, farewell);
            }
        }
        put(&mut to, self.program.as_os_str().as_bytes());
        put(&mut to, self.cwd.as_os_str().as_bytes());
        put_all(&mut to, self.args.iter().map(|arg| arg.as_bytes()));
        put_all(&mut to, self.env.iter().map(|pair| pair.as_bytes()));
        put_all(&mut to, self.hide.iter().map(|path| path.as_os_str().as_bytes()));
        put_all(&mut to, self.keep.iter().map(|path| path.as_os_str().as_bytes()));
        let folders = match &self.posture {
            Posture::Writable => Vec::new(),
            Posture::ReadOnly { worktree, scratch } => vec![worktree, scratch],
        };
        put_all(&mut to, folders.into_iter().map(|path| path.as_os_str().as_bytes()));
        put_len(&mut to, self.wires.len());
        for (fd, source) in &self.wires {
            to.extend(fd.to_le_bytes());
            let sent = match source {
                Source::Null => u32::MAX,
                Source::Sent(at) => *at,
            };
            to.extend(sent.to_le_bytes());
        }
        to
    }

    /// Returns how many pipes its wires are made from.
    pub(super) fn pipes(&self) -> usize {
        let sent = self.wires.iter().filter_map(|(_, source)| match source {
            Source::Sent(at) => usize::try_from(*at).ok(),
            Source::Null => None,
        });
        sent.max().map_or(0, |last| last + 1)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut from = bytes;
        let [user, pid, mount, landlock] = take::<4>(&mut from)?.map(|byte| byte == 1);
        let leftovers = match take(&mut from)? {
            [0] => Leftovers::Kill,
            [1] => Leftovers::Keep,
            [2] => Leftovers::Release(text(&mut from)?.into_vec()),
            _ => return Err(Garbled),
        };
        let program = PathBuf::from(text(&mut from)?);
        let cwd = PathBuf::from(text(&mut from)?);
        let args = texts(&mut from)?;
        let env = texts(&mut from)?;
        let hide = texts(&mut from)?.into_iter().map(PathBuf::from).collect();
        let keep = texts(&mut from)?.into_iter().map(PathBuf::from).collect();
        let posture = match <[OsString; 2]>::try_from(texts(&mut from)?) {
            Ok([worktree, scratch]) => {
                Posture::ReadOnly { worktree: worktree.into(), scratch: scratch.into() }
            }
            Err(none) if none.is_empty() => Posture::Writable,
            Err(_) => return Err(Garbled),
        };
        let mut wires = Vec::new();
        for _ in 0..len(&mut from)? {
            let fd = i32::from_le_bytes(take(&mut from)?);
            wires.push(match u32::from_le_bytes(take(&mut from)?) {
                u32::MAX => (fd, Source::Null),
                at => (fd, Source::Sent(at)),
            });
        }
        let walls = Walls { user, pid, mount, landlock };
        Ok(Self { walls, leftovers, program, args, cwd, env, posture, hide, keep, wires })
    }
}

fn put_len(to: &mut Vec<u8>, len: usize) {
    to.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    put_len(to, bytes.len());
    to.extend(bytes);
}

fn put_all<'a>(to: &mut Vec<u8>, all: impl ExactSizeIterator<Item = &'a [u8]>) {
    put_len(to, all.len());
    all.for_each(|bytes| put(to, bytes));
}

fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], Garbled> {
    let (head, rest) = from.split_first_chunk::<N>().ok_or(Garbled)?;
    *from = rest;
    Ok(*head)
}

fn len(from: &mut &[u8]) -> Result<usize, Garbled> {
    usize::try_from(u32::from_le_bytes(take(from)?)).map_err(|_| Garbled)
}

fn text(from: &mut &[u8]) -> Result<OsString, Garbled> {
    let len = len(from)?;
    let (head, rest) = from.split_at_checked(len).ok_or(Garbled)?;
    *from = rest;
    Ok(OsString::from_vec(head.to_vec()))
}

fn texts(from: &mut &[u8]) -> Result<Vec<OsString>, Garbled> {
    (0..len(from)?).map(|_| text(from)).collect()
}

/// One pipe that has to be made for an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipe {
    /// We write, and the target reads at this descriptor.
    To(i32),
    /// The target writes at this descriptor, and we read.
    From(i32),
    /// The one ring of the order.
    Ring,
}

/// How the wires of an order are made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The pipes to make; the target's ends are sent in this order.
    pub(super) pipes: Vec<Pipe>,
    /// What each descriptor is made from.
    pub(super) wires: Vec<(i32, Source)>,
}

/// Says why the wires of an order make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadWires {
    #[error("descriptor {0} is negative or above 65535")]
    Number(i32),
    #[error("descriptor {0} is to be the same as descriptor {1}, which is not one of the order")]
    Dangling(i32, i32),
    #[error("descriptor {0} is to be the same as itself, over others")]
    Circle(i32),
    #[error("{0} descriptors were ordered, the limit is {MOST_WIRES}")]
    TooMany(usize),
}

/// Decides which pipes to make and what goes where.
pub(super) fn plan(wires: &BTreeMap<i32, Wire>) -> Result<Plan, BadWires> {
    if wires.len() > MOST_WIRES {
        return Err(BadWires::TooMany(wires.len()));
    }
    let mut pipes = Vec::new();
    let mut made = Vec::with_capacity(wires.len());
    for fd in wires.keys() {
        if !(0..=0xffff).contains(fd) {
            return Err(BadWires::Number(*fd));
        }
        let (at, wire) = follow(wires, *fd)?;
        let pipe = match wire {
            Wire::ToProcess => Pipe::To(at),
            Wire::FromProcess => Pipe::From(at),
            Wire::Ring => Pipe::Ring,
            Wire::Null | Wire::SameAs(_) => {
                made.push((*fd, Source::Null));
                continue;
            }
        };
        let known = pipes.iter().position(|other| *other == pipe);
        let index = known.unwrap_or(pipes.len());
        if known.is_none() {
            pipes.push(pipe);
        }
        made.push((*fd, Source::Sent(u32::try_from(index).unwrap_or(u32::MAX))));
    }
    Ok(Plan { pipes, wires: made })
}

fn follow(wires: &BTreeMap<i32, Wire>, fd: i32) -> Result<(i32, Wire), BadWires> {
    let mut at = fd;
    for _ in 0..=wires.len() {
        match wires.get(&at) {
            Some(Wire::SameAs(next)) if wires.contains_key(next) => at = *next,
            Some(Wire::SameAs(next)) => return Err(BadWires::Dangling(at, *next)),
            Some(wire) => return Ok((at, *wire)),
            None => return Err(BadWires::Dangling(fd, at)),
        }
    }
    Err(BadWires::Circle(fd))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_order_survives_its_bytes() {
        let read_only = Posture::ReadOnly { worktree: "/w".into(), scratch: "/s".into() };
        for posture in [Posture::Writable, read_only] {
            let order = Order {
                walls: Walls { user: false, pid: true, mount: true, landlock: false },
                leftovers: Leftovers::Keep,
                program: "/bin/x".into(),
                args: vec![OsString::from_vec(vec![0xff, b'a']), OsString::new()],
                cwd: "/".into(),
                env: vec!["A=1".into()],
                posture,
                hide: vec!["/h".into()],
                keep: vec![],
                wires: vec![(0, Source::Null), (7, Source::Sent(3))],
            };
            let bytes = order.encode();
            assert_eq!(Order::decode(&bytes).unwrap(), order);
            for end in 0..bytes.len() {
                assert!(Order::decode(bytes.get(..end).unwrap()).is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn wires_become_pipes() {
        use Source::{Null, Sent};
        let plan = |wires: &[(i32, Wire)]| plan(&wires.iter().copied().collect());
        let planned = plan(&[
            (0, Wire::ToProcess),
            (1, Wire::SameAs(2)),
            (2, Wire::FromProcess),
            (3, Wire::Ring),
            (4, Wire::Null),
            (9, Wire::Ring),
        ])
        .unwrap();
        assert_eq!(planned.pipes, [Pipe::To(0), Pipe::From(2), Pipe::Ring]);
        assert_eq!(
            planned.wires,
            [(0, Sent(0)), (1, Sent(1)), (2, Sent(1)), (3, Sent(2)), (4, Null), (9, Sent(2))]
        );
        assert_eq!(plan(&[(-1, Wire::Null)]), Err(BadWires::Number(-1)));
        assert_eq!(plan(&[(1, Wire::SameAs(5))]), Err(BadWires::Dangling(1, 5)));
        assert_eq!(plan(&[(1, Wire::SameAs(2)), (2, Wire::SameAs(1))]), Err(BadWires::Circle(1)));
    }
}
