//! What a look costs: the status of 1,000 live slots, also while 100 of them hang.
//!
//! Floor: cloning the same rows out of a plain vector. Peer: asking every actor,
//! which never ends while one of them hangs; measured without the hanging ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, missing_docs)]
#![allow(clippy::print_stdout, dead_code, reason = "it is a bench, and shares more than it uses")]

use std::time::Instant;

use hostler_actors::status::{NodeKind, StatusTable};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use table::{Figure, milliseconds, print, quantile};

#[path = "common/table.rs"]
mod table;

const SLOTS: usize = 1_000;
const HANGING: usize = 100;
const LOOKS: usize = 200;

enum Ask {
    Phase(RpcReplyPort<String>),
    Hang,
}

struct Slot;

impl Actor for Slot {
    type Msg = Ask;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Ask>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Ask>,
        message: Ask,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Ask::Phase(reply) => drop(reply.send("up".to_owned())),
            Ask::Hang => std::future::pending().await,
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() {
    let table = StatusTable::default();
    let host = table.enter(None, NodeKind::Host, "host");
    let mut rows = Vec::new();
    let mut actors = Vec::new();
    for number in 0..SLOTS {
        let row =
            host.child(NodeKind::LanguageServer, format!("server {number} /project/{number}"));
        row.update(|row| {
            row.phase = "up";
            row.pid = Some(1000);
            row.last_error = Some("the process was killed by SIGKILL".into());
        });
        rows.push(row);
        actors.push(Actor::spawn(None, Slot, ()).await.expect("an actor").0);
    }

    let plain = table.snapshot();
    let mut floor = Vec::new();
    let mut asked = Vec::new();
    for _ in 0..LOOKS {
        let began = Instant::now();
        std::hint::black_box(plain.clone());
        floor.push(milliseconds(began.elapsed()));
        let began = Instant::now();
        for actor in &actors {
            let (reply, answer) = ractor::concurrency::oneshot();
            let _ = actor.cast(Ask::Phase(reply.into()));
            let _ = answer.await;
        }
        asked.push(milliseconds(began.elapsed()));
    }
    for actor in actors.iter().take(HANGING) {
        let _ = actor.cast(Ask::Hang);
    }
    let mut ours = Vec::new();
    for _ in 0..LOOKS {
        let began = Instant::now();
        assert_eq!(std::hint::black_box(table.snapshot()).len(), SLOTS + 1);
        ours.push(milliseconds(began.elapsed()));
    }
    let asked = quantile(&mut asked, 0.5);
    let mut row = |at: f64| {
        let what = format!("status of 1,000 slots, 100 hanging, p{:.0}", at * 100.0);
        Figure::new(what, "ms", quantile(&mut ours, at)).floor(quantile(&mut floor, at)).goal(1.0)
    };
    print(&[row(0.5).peer(asked, "asking each actor, none hanging"), row(0.99)]);
    drop(rows);
    for actor in actors {
        actor.kill();
    }
}
