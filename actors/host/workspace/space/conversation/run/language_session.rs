//! What one run has to do with language servers: its leases, its ledger of
//! diagnostics, and the verdicts that came late.
//!
//! Supervised by the run, spawned on first use. Never speaks to a server by
//! itself: callers do that with a lease, and bring back what they found. The
//! tricky thing is a verdict that outlasts its write: the wait goes on as a task of
//! this actor, a later write of the same file takes its baseline over, and what
//! comes of it is handed to the run's next result. So nothing is lost and nothing
//! is told twice.

pub mod ledger;
pub mod servers;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wait;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, ActorStatus, RpcReplyPort, rpc};
use tokio::task::AbortHandle;

use super::RunMsg;
use crate::host::language_server::lease::ServerError;
use crate::host::language_server::spec::{ServerKey, ServerSpec};
use crate::ids::RunId;
use crate::ports::BoxFuture;
use crate::status::StatusEntry;
use ledger::{Change, Finding, Introduced, Ledger};
use servers::{LeasedServer, Servers};
use wait::{Baseline, Late, Settled, Target, Wait};

/// How long the actor may take to answer. It only does sums, so that a longer
/// silence means that it or the whole host is stuck.
const ANSWER: Duration = Duration::from_secs(5);

/// What a language session is told.
pub enum LanguageSessionMsg {
    /// Answers with the lease on a server, which is taken where the run has none.
    Lease(Arc<ServerSpec>, RpcReplyPort<Result<Held, ServerError>>),
    /// Brings the host's answer to a wish for a lease.
    Leased(ServerKey, Result<Held, ServerError>),
    /// Answers with every lease of the run.
    Leases(RpcReplyPort<Vec<Held>>),
    /// Takes the verdicts on a write into account, answers with what is new.
    Account(Vec<Change>, RpcReplyPort<Vec<Introduced>>),
    /// Says that the run was told of all that is in a file now.
    Told(Target, Vec<Finding>),
    /// Ends the waits that still go on for these files, answers with their baselines.
    Reclaim(Vec<Target>, RpcReplyPort<Vec<Baseline>>),
    /// Lets a wait for verdicts go on in the background.
    GoOn(Wait),
    /// Brings what came of such a wait; nothing where it ran into its bound.
    WaitEnded(u64, Option<Vec<Settled>>),
    /// Hands over what came late.
    TakeLate(RpcReplyPort<Vec<Late>>),
    /// Answers whether a cause is mentioned for the first time.
    FirstMention(String, RpcReplyPort<bool>),
}

/// A lease and what it is on.
#[derive(Clone)]
pub struct Held {
    /// What the server was started from.
    pub spec: Arc<ServerSpec>,
    /// The server.
    pub server: Arc<dyn LeasedServer>,
}

enum Lease {
    Asked(Vec<RpcReplyPort<Result<Held, ServerError>>>),
    Held(Held),
}

struct Waiting {
    of: Arc<str>,
    baselines: Vec<Baseline>,
    task: AbortHandle,
    within: Duration,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a language session holds.
pub struct State {
    run: RunId,
    servers: Arc<dyn Servers>,
    leases: HashMap<ServerKey, Lease>,
    ledger: Ledger,
    waits: HashMap<u64, Waiting>,
    last_wait: u64,
    late: Vec<Late>,
    mentioned: HashSet<String>,
    status: StatusEntry,
}

/// What a language session is made of.
pub struct Args {
    /// The run.
    pub run: RunId,
    /// Who hands out leases.
    pub servers: Arc<dyn Servers>,
    /// Its row.
    pub status: StatusEntry,
}

/// The actor.
#[derive(Debug)]
pub struct LanguageSession;

impl Actor for LanguageSession {
    type Msg = LanguageSessionMsg;
    type State = State;
    type Arguments = Args;

    async fn pre_start(
        &self,
        _: ActorRef<LanguageSessionMsg>,
        given: Args,
    ) -> Result<State, ActorProcessingErr> {
        given.status.update(|row| row.phase = "up");
        Ok(State {
            run: given.run,
            servers: given.servers,
            leases: HashMap::new(),
            ledger: Ledger::default(),
            waits: HashMap::new(),
            last_wait: 0,
            late: Vec::new(),
            mentioned: HashSet::new(),
            status: given.status,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<LanguageSessionMsg>,
        message: LanguageSessionMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LanguageSessionMsg::Lease(spec, port) => state.lease(&myself, spec, port),
            LanguageSessionMsg::Leased(key, answer) => state.leased(key, &answer),
            LanguageSessionMsg::Leases(port) => reply(port, state.held()),
            LanguageSessionMsg::Account(changes, port) => {
                reply(
                    port,
                    changes.iter().flat_map(|change| state.ledger.account(change)).collect(),
                );
            }
            LanguageSessionMsg::Told(target, now) => state.told(&target, &now),
            LanguageSessionMsg::Reclaim(targets, port) => reply(port, state.reclaim(&targets)),
            LanguageSessionMsg::GoOn(wait) => state.go_on(&myself, wait),
            LanguageSessionMsg::WaitEnded(id, settled) => state.wait_ended(id, settled),
            LanguageSessionMsg::TakeLate(port) => reply(port, std::mem::take(&mut state.late)),
            LanguageSessionMsg::FirstMention(cause, port) => {
                reply(port, state.mentioned.insert(cause));
            }
        }
        state.show();
        Ok(())
    }
}

/// A caller that has given up is no error.
fn reply<T: Send + 'static>(port: RpcReplyPort<T>, answer: T) {
    drop(port.send(answer));
}

impl State {
    fn lease(
        &mut self,
        myself: &ActorRef<LanguageSessionMsg>,
        spec: Arc<ServerSpec>,
        port: RpcReplyPort<Result<Held, ServerError>>,
    ) {
        let key = spec.key();
        match self.leases.get_mut(&key) {
            Some(Lease::Held(held)) => return reply(port, Ok(held.clone())),
            Some(Lease::Asked(ports)) => return ports.push(port),
            None => self.leases.insert(key.clone(), Lease::Asked(vec![port])),
        };
        let asked = self.servers.lease(Arc::clone(&spec), self.run);
        let myself = myself.clone();
        tokio::spawn(async move {
            let answer = asked.await.map(|server| Held { spec, server });
            // Fails only when the run has ended, and then the lease goes with it.
            drop(myself.send_message(LanguageSessionMsg::Leased(key, answer)));
        });
    }

    fn leased(&mut self, key: ServerKey, answer: &Result<Held, ServerError>) {
        let asked = match answer {
            Ok(held) => self.leases.insert(key, Lease::Held(held.clone())),
            Err(_) => self.leases.remove(&key),
        };
        if let Some(Lease::Asked(ports)) = asked {
            for port in ports {
                reply(port, answer.clone());
            }
        }
    }

    fn held(&self) -> Vec<Held> {
        let held = |lease: &Lease| match lease {
            Lease::Held(held) => Some(held.clone()),
            Lease::Asked(_) => None,
        };
        let mut held: Vec<_> = self.leases.values().filter_map(held).collect();
        held.sort_by(|a, b| (&a.spec.name, &a.spec.root).cmp(&(&b.spec.name, &b.spec.root)));
        held
    }

    fn told(&mut self, target: &Target, now: &[Finding]) {
        self.ledger.told_all(&target.server, &target.path, now);
        // Whatever a write is still waiting for here has been said by this.
        for wait in self.waits.values_mut() {
            wait.baselines.retain(|baseline| baseline.target != *target);
        }
        self.waits.retain(|_, wait| !wait.baselines.is_empty());
    }

    fn reclaim(&mut self, targets: &[Target]) -> Vec<Baseline> {
        let mut reclaimed = Vec::new();
        self.waits.retain(|_, wait| {
            let meant = |baseline: &Baseline| targets.contains(&baseline.target);
            if !wait.baselines.iter().any(meant) {
                return true;
            }
            reclaimed.append(&mut wait.baselines);
            false
        });
        reclaimed
    }

    fn go_on(&mut self, myself: &ActorRef<LanguageSessionMsg>, wait: Wait) {
        self.last_wait += 1;
        let id = self.last_wait;
        let verdicts = tokio::spawn(tokio::time::timeout(wait.within, wait.verdicts));
        let task = verdicts.abort_handle();
        let myself = myself.clone();
        tokio::spawn(async move {
            let settled = verdicts.await.ok().and_then(Result::ok);
            drop(myself.send_message(LanguageSessionMsg::WaitEnded(id, settled)));
        });
        let Wait { of, baselines, within, .. } = wait;
        self.waits.insert(id, Waiting { of, baselines, task, within });
    }

    fn wait_ended(&mut self, id: u64, settled: Option<Vec<Settled>>) {
        let Some(mut wait) = self.waits.remove(&id) else { return };
        let baselines = std::mem::take(&mut wait.baselines);
        let settled = settled.unwrap_or_else(|| {
            let after = Err(format!("no verdict within {:?}", wait.within));
            let targets = baselines.iter().map(|baseline| baseline.target.clone());
            let settled =
                targets.map(|target| Settled { target, after: after.clone(), theirs: true });
            settled.collect()
        });
        let mut settled: HashMap<_, _> = settled
            .into_iter()
            .map(|settled| (settled.target, (settled.after, settled.theirs)))
            .collect();
        let mut late = Late { of: Arc::clone(&wait.of), ..Late::default() };
        for baseline in baselines {
            let target = baseline.target.clone();
            match settled.remove(&target) {
                Some((Ok(after), theirs)) => {
                    let new = self.ledger.account(&baseline.clone().change(after));
                    let (ours, doubtful): (Vec<_>, Vec<_>) = new
                        .into_iter()
                        .partition(|new| !theirs || baseline.touches(new.finding.line));
                    late.introduced.extend(ours);
                    late.doubtful.extend(doubtful.into_iter().map(|new| new.finding));
                    late.verified.push(target);
                }
                Some((Err(reason), _)) => late.unverified.push((target, reason)),
                // Somebody else has changed it since: not this run's to be told of.
                None => {}
            }
        }
        self.late.push(late);
    }

    fn show(&self) {
        let (leases, waits) = (self.leases.len(), self.waits.len());
        self.status.update(|row| {
            row.leases = Some(leases);
            row.note = (waits > 0).then(|| format!("{waits} verdicts still to come").into());
        });
    }
}

/// Says that a language session cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the run's language session is gone: {0}")]
pub struct Gone(pub String);

/// Returns a run's language session, spawning it where there is none.
pub type Open =
    Arc<dyn Fn() -> BoxFuture<'static, Result<ActorRef<LanguageSessionMsg>, Gone>> + Send + Sync>;

/// A tool's hold on its run's language session. Cloning shares it.
#[derive(Clone)]
pub struct LanguageSessionHandle {
    open: Open,
    actor: Arc<Mutex<Option<ActorRef<LanguageSessionMsg>>>>,
}

impl fmt::Debug for LanguageSessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.opened().is_some() {
            "LanguageSessionHandle"
        } else {
            "LanguageSessionHandle(unused)"
        })
    }
}

impl LanguageSessionHandle {
    /// Makes a hold that opens the session when it is first needed.
    #[must_use]
    pub fn new(open: Open) -> Self {
        Self { open, actor: Arc::default() }
    }

    /// Makes a hold on a run's session.
    #[must_use]
    pub fn of_run(run: ActorRef<RunMsg>) -> Self {
        Self::new(Arc::new(move || {
            let run = run.clone();
            Box::pin(async move {
                match run.call(RunMsg::LanguageSession, Some(ANSWER)).await {
                    Ok(rpc::CallResult::Success(session)) => Ok(session),
                    _ => Err(Gone("the run has ended".to_owned())),
                }
            })
        }))
    }

    fn opened(&self) -> Option<ActorRef<LanguageSessionMsg>> {
        let actor = self.actor.lock().unwrap_or_else(PoisonError::into_inner);
        actor.clone().filter(|actor| actor.get_status() < ActorStatus::Stopping)
    }

    async fn actor(&self) -> Result<ActorRef<LanguageSessionMsg>, Gone> {
        if let Some(actor) = self.opened() {
            return Ok(actor);
        }
        let actor = (self.open)().await?;
        *self.actor.lock().unwrap_or_else(PoisonError::into_inner) = Some(actor.clone());
        Ok(actor)
    }

    async fn ask<T: Send + 'static>(
        &self,
        message: impl FnOnce(RpcReplyPort<T>) -> LanguageSessionMsg,
    ) -> Result<T, Gone> {
        match self.actor().await?.call(message, Some(ANSWER)).await {
            Ok(rpc::CallResult::Success(answer)) => Ok(answer),
            Ok(rpc::CallResult::Timeout) => Err(Gone(format!("no answer within {ANSWER:?}"))),
            Ok(rpc::CallResult::SenderError) => Err(Gone("it ended meanwhile".to_owned())),
            Err(error) => Err(Gone(error.to_string())),
        }
    }

    async fn tell(&self, message: LanguageSessionMsg) -> Result<(), Gone> {
        self.actor().await?.send_message(message).map_err(|error| Gone(error.to_string()))
    }

    /// Returns the lease on a server, taking it where the run has none.
    pub async fn lease(&self, spec: Arc<ServerSpec>) -> Result<Result<Held, ServerError>, Gone> {
        self.ask(|port| LanguageSessionMsg::Lease(spec, port)).await
    }

    /// Returns every lease of the run.
    pub async fn leases(&self) -> Result<Vec<Held>, Gone> {
        self.ask(LanguageSessionMsg::Leases).await
    }

    /// Takes a write into account and returns what it has introduced.
    pub async fn account(&self, changes: Vec<Change>) -> Result<Vec<Introduced>, Gone> {
        self.ask(|port| LanguageSessionMsg::Account(changes, port)).await
    }

    /// Says that the run was told of everything that is in a file now.
    pub async fn told(&self, target: Target, now: Vec<Finding>) -> Result<(), Gone> {
        self.tell(LanguageSessionMsg::Told(target, now)).await
    }

    /// Takes over the baselines of waits that still go on for these files.
    pub async fn reclaim(&self, targets: Vec<Target>) -> Result<Vec<Baseline>, Gone> {
        self.ask(|port| LanguageSessionMsg::Reclaim(targets, port)).await
    }

    /// Lets a wait go on in the background.
    pub async fn go_on(&self, wait: Wait) -> Result<(), Gone> {
        self.tell(LanguageSessionMsg::GoOn(wait)).await
    }

    /// Takes what came late. Opens nothing: an unused session has nothing.
    pub async fn take_late(&self) -> Result<Vec<Late>, Gone> {
        match self.opened() {
            Some(_) => self.ask(LanguageSessionMsg::TakeLate).await,
            None => Ok(Vec::new()),
        }
    }

    /// Says whether a cause is mentioned to this run for the first time.
    pub async fn first_mention(&self, cause: String) -> Result<bool, Gone> {
        self.ask(|port| LanguageSessionMsg::FirstMention(cause, port)).await
    }
}

#[cfg(test)]
mod tests;
