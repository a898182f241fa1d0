//! Connections whose other side is the test itself.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::process::PATIENCE;
use crate::ports::{BoxFuture, Duplex, Listening, Sockets};

/// As much as a socket takes before anybody reads.
const BUFFER: usize = 64 * 1024;
/// The port that every listener says it has.
pub const PORT: u16 = 4711;

/// Makes connections that the test plays.
#[derive(Debug)]
pub struct FakeSockets {
    made: mpsc::UnboundedSender<(u16, DuplexStream)>,
    closed: Mutex<Vec<u16>>,
}

/// The connections that were made and not yet taken.
#[derive(Debug)]
pub struct FakePeers(mpsc::UnboundedReceiver<(u16, DuplexStream)>);

impl FakeSockets {
    /// Makes them, and the place where the other sides come out.
    #[must_use]
    pub fn new() -> (Arc<Self>, FakePeers) {
        let (made, peers) = mpsc::unbounded_channel();
        (Arc::new(Self { made, closed: Mutex::default() }), FakePeers(peers))
    }

    /// Lets nobody listen on a port.
    pub fn close(&self, port: u16) {
        self.closed.lock().expect("no panic under the lock").push(port);
    }
}

fn joined(made: &mpsc::UnboundedSender<(u16, DuplexStream)>, port: u16) -> Duplex {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    // A test that ended takes no more connections.
    let _ = made.send((port, theirs));
    let (read, write) = tokio::io::split(ours);
    Duplex { read: Box::new(read), write: Box::new(write) }
}

impl Sockets for FakeSockets {
    fn connect(&self, port: u16) -> BoxFuture<'_, io::Result<Duplex>> {
        let closed = self.closed.lock().expect("no panic under the lock").contains(&port);
        let connected = if closed {
            Err(io::ErrorKind::ConnectionRefused.into())
        } else {
            Ok(joined(&self.made, port))
        };
        Box::pin(async move { connected })
    }

    fn listen(&self) -> BoxFuture<'_, io::Result<Box<dyn Listening>>> {
        let listener = FakeListener(self.made.clone());
        Box::pin(async move { Ok(Box::new(listener) as Box<dyn Listening>) })
    }
}

/// Everybody dials it at once.
struct FakeListener(mpsc::UnboundedSender<(u16, DuplexStream)>);

impl Listening for FakeListener {
    fn port(&self) -> u16 {
        PORT
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Duplex>> {
        let duplex = joined(&self.0, PORT);
        Box::pin(async move { Ok(duplex) })
    }
}

impl FakePeers {
    /// Waits for the next connection.
    pub async fn next(&mut self) -> (u16, DuplexStream) {
        let made = timeout(PATIENCE, self.0.recv()).await;
        made.expect("a connection is made").expect("the sockets live")
    }
}
