//! Children of a debuggee that its adapter asks us to debug too.
//!
//! debugpy lets a child wait until somebody connects to the port that its request
//! names, so it is answered and followed: a connection of its own, the same
//! breakpoints, and stops that are told like the parent's. A request without a port
//! is refused, and the child then runs undebugged.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::bodies;
use super::configure::configure;
use super::link::Link;
use super::session::Session;
use super::start::initialize;

/// Takes a `startDebugging` request.
pub(super) fn follow(session: &Arc<Session>, link: &Arc<Link>, seq: i64, arguments: &Value) {
    let configuration = arguments.get("configuration").cloned().unwrap_or_default();
    let port = configuration.get("connect").and_then(|connect| bodies::int(connect, "port"));
    let port = port.and_then(|port| u16::try_from(port).ok());
    let Some(port) = port.filter(|port| *port > 0) else {
        let why = "only a child that names a port to connect to can be followed";
        link.answer(seq, "startDebugging", Err(why));
        return;
    };
    link.answer(seq, "startDebugging", Ok(Value::Null));
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let name = bodies::text(&configuration, "name").unwrap_or_else(|| "a child".to_owned());
        let limb = session.change(|book| book.add_limb(name.clone()));
        let bound = session.spec.bounds.start;
        let outcome = tokio::select! {
            outcome = timeout(bound, attach(&session, limb, port, configuration)) => outcome,
            _ = session.until_over() => return,
            () = session.owner.cancelled() => return,
        };
        let why = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(_) => format!("not within {bound:?}"),
        };
        session.change(|book| book.limbs.remove(&limb));
        session.drop_link(limb);
        session.wrote(&format!("({name} could not be debugged: {why})\n"));
    });
}

async fn attach(
    session: &Arc<Session>,
    limb: usize,
    port: u16,
    mut configuration: Value,
) -> Result<(), String> {
    // What it writes comes from where its parent's output goes; debugpy would send it twice.
    if let Some(redirect) = configuration.get_mut("redirectOutput") {
        *redirect = json!(false);
    }
    let duplex = session.means.sockets.connect(port).await.map_err(|error| error.to_string())?;
    let link = session.serve(limb, duplex);
    initialize(session, limb).await.map_err(|error| error.to_string())?;
    let mut call = link.call("attach", configuration);
    let ready = session.until(|book| {
        let of = book.limbs.get(&limb);
        of.is_none_or(|of| of.initialized || of.terminated).then_some(())
    });
    tokio::pin!(ready);
    let mut answered = false;
    loop {
        tokio::select! {
            biased;
            answer = call.answer(), if !answered => {
                answer.map_err(|error| error.to_string())?;
                answered = true;
            }
            () = &mut ready => break,
        }
    }
    if session.look(|book| !book.limbs.contains_key(&limb)) {
        // It ended before it could be stopped.
        return Ok(());
    }
    configure(session, limb).await.map_err(|error| error.to_string())?;
    if !answered {
        call.answer().await.map_err(|error| error.to_string())?;
    }
    // A child is one more that runs, which whoever waits for a stop must know.
    session.change(|_| json!(null));
    Ok(())
}
