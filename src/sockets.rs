//! Connections over the loopback interface, for debug adapters.
//!
//! No name is resolved and no other interface is bound: what dials us, or is dialled,
//! is on this machine.

use std::io;
use std::net::Ipv4Addr;

use hostler_actors::ports::{BoxFuture, Duplex, Listening, Sockets};
use tokio::net::{TcpListener, TcpStream};

/// The loopback interface.
pub(crate) struct Loopback;

impl Sockets for Loopback {
    fn connect(&self, port: u16) -> BoxFuture<'_, io::Result<Duplex>> {
        Box::pin(async move { halves(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?) })
    }

    fn listen(&self) -> BoxFuture<'_, io::Result<Box<dyn Listening>>> {
        Box::pin(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let port = listener.local_addr()?.port();
            Ok(Box::new(Listener { listener, port }) as Box<dyn Listening>)
        })
    }
}

struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listening for Listener {
    fn port(&self) -> u16 {
        self.port
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Duplex>> {
        Box::pin(async move { halves(self.listener.accept().await?.0) })
    }
}

fn halves(stream: TcpStream) -> io::Result<Duplex> {
    // Small requests would else wait for the other side's acknowledgement.
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    Ok(Duplex { read: Box::new(read), write: Box::new(write) })
}
