//! Slots with real actors and fake processes, under a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use ractor::{Actor, ActorProcessingErr};
use tokio::time::timeout;

use super::handle::Unavailable;
use super::slot::{Restart, Then};
use super::*;
use crate::ports::{BoxFuture, Ended, InnerProcess, ProcessTree};
use crate::status::{NodeKind, StatusTable};

const BOUND: Duration = Duration::from_secs(600);

/// A process tree that is empty when the test says so.
#[derive(Debug)]
struct FakeTree {
    ended: watch::Sender<Option<Ended>>,
    emptied: watch::Sender<bool>,
    kills: AtomicUsize,
}

impl ProcessTree for FakeTree {
    fn pid(&self) -> u32 {
        42
    }
    fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.ended.subscribe()
    }
    fn emptied(&self) -> watch::Receiver<bool> {
        self.emptied.subscribe()
    }
    fn terminate(&self) {}
    fn interrupt(&self) {}
    fn kill(&self) {
        self.kills.fetch_add(1, Ordering::SeqCst);
    }
    fn ring_tail(&self, _: usize) -> String {
        String::new()
    }

    fn inner(&self, _: &str) -> BoxFuture<'static, Vec<Arc<dyn InnerProcess>>> {
        Box::pin(async { Vec::new() })
    }
}

#[derive(Clone)]
struct Fake {
    started: Arc<AtomicUsize>,
    comes_up: bool,
    restart: Restart,
    tree: Option<Arc<FakeTree>>,
}

enum Do {
    Die,
    Panic,
    Goodbye,
}

struct FakeActor;

impl Actor for FakeActor {
    type Msg = Do;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Do>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<Do>,
        message: Do,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Do::Die => Err(Box::new(Exit::ProcessDied {
                ended: Ended::Signal(9),
                tail: "last words".into(),
            })),
            Do::Panic => panic!("as told"),
            Do::Goodbye => {
                myself.stop(None);
                Ok(())
            }
        }
    }
}

impl Resource for Fake {
    type Msg = Do;
    type Facts = ();

    fn policy(&self) -> Policy {
        Policy { restart: self.restart, ..Policy::DEFAULT }
    }

    fn spawn(
        &self,
        report: Report<()>,
        supervisor: ActorCell,
    ) -> BoxFuture<'_, Result<ActorRef<Do>, SpawnErr>> {
        Box::pin(async move {
            self.started.fetch_add(1, Ordering::SeqCst);
            let (actor, _) = Actor::spawn_linked(None, FakeActor, (), supervisor).await?;
            if let Some(tree) = &self.tree {
                report.launched(&(Arc::clone(tree) as Arc<dyn ProcessTree>));
            }
            if self.comes_up {
                report.ready(());
            } else {
                let _ = actor.cast(Do::Die);
            }
            Ok(actor)
        })
    }

    fn goodbye(&self, actor: &ActorRef<Do>) {
        let _ = actor.cast(Do::Goodbye);
    }
}

struct Keeper(StatusTable);

enum KeeperMsg {
    Open(Fake, ractor::RpcReplyPort<SlotHandle<Do, ()>>),
    Slot(SlotEvent),
}

impl Actor for Keeper {
    type Msg = KeeperMsg;
    type State = Slots<u8, Fake>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<KeeperMsg>,
        (): (),
    ) -> Result<Slots<u8, Fake>, ActorProcessingErr> {
        struct Longest;
        impl Jitter for Longest {
            fn up_to(&self, most: Duration) -> Duration {
                most
            }
        }
        Ok(Slots::new(Arc::new(Longest)))
    }

    async fn handle(
        &self,
        myself: ActorRef<KeeperMsg>,
        message: KeeperMsg,
        slots: &mut Slots<u8, Fake>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            KeeperMsg::Open(fake, reply) => {
                let row = self.0.enter(None, NodeKind::LanguageServer, "fake");
                let keeper = myself.clone();
                let post = Arc::new(move |event| drop(keeper.cast(KeeperMsg::Slot(event))));
                let _ = reply.send(slots.open(0, fake, row, post));
            }
            KeeperMsg::Slot(event) => slots.on(&0, event, &myself.get_cell()).await?,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<KeeperMsg>,
        event: SupervisionEvent,
        slots: &mut Slots<u8, Fake>,
    ) -> Result<(), ActorProcessingErr> {
        slots.on_supervision(event, &myself.get_cell()).await?;
        Ok(())
    }
}

struct Test {
    keeper: ActorRef<KeeperMsg>,
    slot: SlotHandle<Do, ()>,
    started: Arc<AtomicUsize>,
    status: StatusTable,
}

#[expect(clippy::disallowed_methods, reason = "the root of a test's tree")]
async fn test(comes_up: bool, restart: Restart, tree: Option<Arc<FakeTree>>) -> Test {
    let status = StatusTable::default();
    let (keeper, _) = Actor::spawn(None, Keeper(status.clone()), ()).await.unwrap();
    let started = Arc::<AtomicUsize>::default();
    let fake = Fake { started: Arc::clone(&started), comes_up, restart, tree };
    let (reply, slot) = ractor::concurrency::oneshot();
    keeper.cast(KeeperMsg::Open(fake, reply.into())).unwrap();
    Test { keeper, slot: slot.await.unwrap(), started, status }
}

impl Test {
    async fn live(&self) -> Result<Live<Do, ()>, Unavailable> {
        self.slot.live(Instant::now() + Duration::from_secs(20)).await
    }

    async fn phase(&self, wanted: impl Fn(Phase) -> bool) {
        let mut view = self.slot.view.clone();
        let found = timeout(BOUND, view.wait_for(|view| wanted(view.phase))).await;
        found.expect("the phase in time").expect("a keeper");
    }

    fn starts(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn many_first_calls_make_one_start() {
    let test = test(true, Restart::AtOnce, None).await;
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let slot = test.slot.clone();
            tokio::spawn(async move { slot.live(Instant::now() + BOUND).await.is_ok() })
        })
        .collect();
    for caller in callers {
        assert!(caller.await.unwrap());
    }
    assert_eq!(test.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_death_is_followed_by_a_start_and_counted() {
    let test = test(true, Restart::AtOnce, None).await;
    let first = test.live().await.unwrap();
    first.actor.cast(Do::Die).unwrap();
    let until = Instant::now() + BOUND;
    let second = test.slot.live_after(first.incarnation, until).await.unwrap();
    assert_eq!((first.incarnation.0, second.incarnation.0), (1, 2));
    let row = &test.status.snapshot()[0];
    assert_eq!((row.restarts, row.phase.as_str()), (1, "up"));
    assert_eq!(
        row.last_error.as_deref(),
        Some("the process was killed by SIGKILL; it last wrote: last words")
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_at_every_start_is_answered_at_once_and_started_five_times() {
    let test = test(false, Restart::AtOnce, None).await;
    let _ = test.live().await;
    test.phase(|phase| matches!(phase, Phase::BackingOff { .. })).await;
    let began = Instant::now();
    let error = test.live().await.err().unwrap().to_string();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(error.starts_with("restarting, attempt 2, next try in 0.2 s, last error:"), "{error}");
    test.phase(|phase| matches!(phase, Phase::Failed { .. })).await;
    for _ in 0..50 {
        assert!(matches!(test.live().await, Err(Unavailable::Failed { .. })));
    }
    assert_eq!(test.starts(), 5);
    test.slot.renew();
    test.phase(|phase| matches!(phase, Phase::BackingOff { .. })).await;
    assert_eq!(test.starts(), 7, "renewed, and started again at once after the first death");
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_kept_until_it_is_renewed() {
    let test = test(true, Restart::AtOnce, None).await;
    test.live().await.unwrap();
    test.slot.stop();
    test.phase(|phase| phase == Phase::Stopped).await;
    assert!(matches!(test.live().await, Err(Unavailable::Stopped)));
    test.slot.renew();
    test.phase(|phase| phase == Phase::Up).await;
    assert_eq!(test.starts(), 2);
    assert_eq!(test.status.snapshot()[0].restarts, 0, "nothing died");
}

#[tokio::test(start_paused = true)]
async fn the_next_start_waits_until_the_old_tree_is_empty() {
    let tree = Arc::new(FakeTree {
        ended: watch::Sender::new(None),
        emptied: watch::Sender::new(false),
        kills: AtomicUsize::new(0),
    });
    let test = test(true, Restart::AtOnce, Some(Arc::clone(&tree))).await;
    test.live().await.unwrap().actor.cast(Do::Die).unwrap();
    test.phase(|phase| phase == Phase::Emptying(Then::Start)).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!((test.starts(), tree.kills.load(Ordering::SeqCst)), (1, 1));
    let note = test.status.snapshot()[0].note.clone();
    assert_eq!(note.as_deref(), Some("process 42 was killed and is not gone yet"));
    tree.emptied.send_replace(true);
    test.phase(|phase| phase == Phase::Up).await;
    assert_eq!(test.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_third_bug_of_ours_takes_the_supervisor_along() {
    let test = test(true, Restart::OnUse, None).await;
    for bug in 1..=3 {
        test.live().await.unwrap().actor.cast(Do::Panic).unwrap();
        if bug < 3 {
            test.phase(|phase| phase == Phase::Idle).await;
        }
    }
    test.keeper.wait(Some(BOUND)).await.unwrap();
    assert!(matches!(test.live().await, Err(Unavailable::Gone)));
}

#[tokio::test(start_paused = true)]
async fn the_weather_never_takes_the_supervisor_along() {
    let test = test(true, Restart::OnUse, None).await;
    for _ in 0..4 {
        test.live().await.unwrap().actor.cast(Do::Die).unwrap();
        test.phase(|phase| phase == Phase::Idle).await;
    }
    assert!(test.live().await.is_ok());
}
