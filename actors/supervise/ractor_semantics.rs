//! What ractor 0.16.5 really does, where our supervision depends on it.
//!
//! A test that fails here after an upgrade names the code that must change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::exit::Exit;

const BOUND: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Marks {
    post_stops: AtomicUsize,
    drops: AtomicUsize,
    handled: AtomicUsize,
}

struct Child(Arc<Marks>);

struct ChildState(Arc<Marks>);

impl Drop for ChildState {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Ordering::SeqCst);
    }
}

enum Do {
    Count,
    Fail,
    Panic,
    Hang,
}

impl Actor for Child {
    type Msg = Do;
    type State = ChildState;
    type Arguments = bool;

    async fn pre_start(
        &self,
        _: ActorRef<Do>,
        refuse: bool,
    ) -> Result<ChildState, ActorProcessingErr> {
        if refuse {
            return Err("refused".into());
        }
        Ok(ChildState(Arc::clone(&self.0)))
    }

    async fn handle(
        &self,
        _: ActorRef<Do>,
        message: Do,
        _: &mut ChildState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Do::Count => {
                tokio::task::yield_now().await;
                self.0.handled.fetch_add(1, Ordering::SeqCst);
            }
            Do::Fail => return Err(Box::new(Exit::Requested)),
            Do::Panic => panic!("as told"),
            Do::Hang => std::future::pending().await,
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Do>,
        _: &mut ChildState,
    ) -> Result<(), ActorProcessingErr> {
        self.0.post_stops.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Reports the supervision events that it gets, and survives them.
struct Parent(mpsc::UnboundedSender<String>);

impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let word = match event {
            SupervisionEvent::ActorTerminated(_, _, reason) => format!("terminated {reason:?}"),
            SupervisionEvent::ActorFailed(_, error) if error.downcast_ref::<Exit>().is_some() => {
                "failed, typed".to_owned()
            }
            SupervisionEvent::ActorFailed(..) => "failed, untyped".to_owned(),
            _ => return Ok(()),
        };
        let _ = self.0.send(word);
        Ok(())
    }
}

struct Family {
    parent: ActorRef<()>,
    child: ActorRef<Do>,
    marks: Arc<Marks>,
    events: mpsc::UnboundedReceiver<String>,
}

#[expect(clippy::disallowed_methods, reason = "a root of its own, ended by each test")]
async fn family() -> Family {
    let (send, events) = mpsc::unbounded_channel();
    let (parent, _) = Actor::spawn(None, Parent(send), ()).await.unwrap();
    let marks = Arc::<Marks>::default();
    let child = Child(Arc::clone(&marks));
    let (child, _) = Actor::spawn_linked(None, child, false, parent.get_cell()).await.unwrap();
    Family { parent, child, marks, events }
}

impl Family {
    async fn event(&mut self) -> String {
        timeout(BOUND, self.events.recv()).await.expect("an event in time").expect("a parent")
    }
}

#[tokio::test]
async fn a_stopping_parent_kills_its_children_and_their_post_stop_never_runs() {
    let family = family().await;
    family.parent.stop_and_wait(None, Some(BOUND)).await.unwrap();
    family.child.wait(Some(BOUND)).await.unwrap();
    assert_eq!(family.marks.post_stops.load(Ordering::SeqCst), 0);
    assert_eq!(family.marks.drops.load(Ordering::SeqCst), 1, "the state is dropped all the same");
}

#[tokio::test]
async fn stop_then_stop_and_wait_does_not_wait() {
    let family = family().await;
    family.child.cast(Do::Hang).unwrap();
    family.child.stop(None);
    let second = timeout(BOUND, family.child.stop_and_wait(None, None)).await;
    assert!(second.expect("no wait").is_err(), "so wait() must be used after stop()");
    family.child.kill();
    family.parent.stop_and_wait(None, Some(BOUND)).await.unwrap();
}

#[tokio::test]
async fn a_kill_is_reported_as_terminated() {
    let mut family = family().await;
    family.child.cast(Do::Hang).unwrap();
    family.child.kill();
    assert_eq!(family.event().await, r#"terminated Some("killed")"#);
    family.parent.stop_and_wait(None, Some(BOUND)).await.unwrap();
}

#[tokio::test]
async fn an_error_keeps_its_type_and_a_panic_has_none() {
    for (what, word) in [(Do::Fail, "failed, typed"), (Do::Panic, "failed, untyped")] {
        let mut family = family().await;
        family.child.cast(what).unwrap();
        assert_eq!(family.event().await, word);
        family.parent.stop_and_wait(None, Some(BOUND)).await.unwrap();
    }
}

#[tokio::test]
async fn a_failing_pre_start_raises_no_event() {
    let mut family = family().await;
    let child = Child(Arc::default());
    let refused = Actor::spawn_linked(None, child, true, family.parent.get_cell()).await;
    assert!(refused.is_err());
    family.child.stop(None);
    assert_eq!(family.event().await, "terminated None", "the first event is the other child's");
    family.parent.stop_and_wait(None, Some(BOUND)).await.unwrap();
}

#[tokio::test]
async fn stop_drops_what_is_queued_and_drain_handles_it() {
    for (drain, handled) in [(false, 0), (true, 100)] {
        let family = family().await;
        for _ in 0..100 {
            family.child.cast(Do::Count).unwrap();
        }
        if drain {
            family.child.drain().unwrap();
        } else {
            family.child.stop(None);
        }
        family.child.wait(Some(BOUND)).await.unwrap();
        assert_eq!(family.marks.handled.load(Ordering::SeqCst), handled);
        family.parent.stop_and_wait(None, Some(BOUND)).await.unwrap();
    }
}
