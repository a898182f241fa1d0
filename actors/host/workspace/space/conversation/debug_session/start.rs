//! From the order to the debuggee that runs: connect, shake hands, launch, configure.
//!
//! The tricky thing: never wait for one thing. After `launch` is sent, adapters differ
//! in what comes next: `initialized` before or after the answer, a failed answer with
//! no `initialized` at all, or one after everything was configured; the program may be
//! over by then. So whatever comes first decides, and the end of the session and the
//! deadline are always among it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dap_types::InitializeRequestArguments;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use super::DebugSessionMsg;
use super::adapter::{self, Started};
use super::book::ROOT;
use super::configure::configure;
use super::link::{Call, Link, Unanswered};
use super::refusal::End;
use super::session::Session;
use super::spec::Reach;
use crate::ports::{Duplex, Listening, PipeReader};

/// How often a peer that takes a connection and drops it is tried again.
const ATTEMPTS: usize = 3;
/// How long between two of them.
const BETWEEN: Duration = Duration::from_millis(100);
/// How long the failed answer to `launch` may come after what it caused.
const LATE_ANSWER: Duration = Duration::from_millis(1500);

/// Starts a session; how it ends up is seen in its book.
pub(super) async fn start(session: Arc<Session>) {
    let bound = session.spec.bounds.start;
    let outcome = tokio::select! {
        biased;
        () = session.owner.cancelled() => return,
        _ = session.until_over() => return,
        outcome = timeout(bound, begin(&session)) => outcome,
    };
    match outcome {
        Ok(Ok(())) => {
            let finished = session.change(|book| {
                book.starting = None;
                book.limbs.get(&ROOT).is_some_and(|root| root.terminated)
            });
            if finished {
                session.end(End::Finished);
            }
        }
        Ok(Err(why)) => session.end(End::NotStarted(why)),
        Err(_) => {
            let step = session.look(|book| book.starting).unwrap_or_default();
            session.end(End::NotStarted(format!("it did not start within {bound:?}: {step}")));
        }
    }
}

fn step(session: &Session, step: &'static str) {
    session.change(|book| book.starting = Some(step));
}

async fn begin(session: &Arc<Session>) -> Result<(), String> {
    let link = shake_hands(session).await?;
    step(
        session,
        if session.spec.builds {
            "building and loading the program"
        } else {
            "loading the program"
        },
    );
    let request = session.spec.kind.request();
    let mut call = link.call(request, session.spec.arguments.clone());
    let mut answered = await_initialized(session, ROOT, &mut call).await?;
    let over = |session: &Session| {
        session.look(|book| book.limbs.get(&ROOT).is_none_or(|root| root.terminated))
    };
    if !over(session) {
        step(session, "setting breakpoints");
        let configured = configure(session, ROOT).await;
        step(session, "running the program");
        if let Err(error) = configured {
            // What is wrong with the launch says more than what that led to.
            let launch = timeout(LATE_ANSWER, outcome(session, &mut call, &mut answered)).await;
            return Err(match launch {
                Ok(Err(why)) => why,
                _ => error.to_string(),
            });
        }
    }
    if answered {
        return Ok(());
    }
    let begun = session.until(|book| {
        let root = book.limbs.get(&ROOT);
        root.is_none_or(|root| root.terminated || root.halt.is_some()).then_some(())
    });
    tokio::select! {
        biased;
        outcome = outcome(session, &mut call, &mut answered) => return outcome,
        () = begun => {}
    }
    // It runs or has run; only a refusal that is on its way can say otherwise.
    match timeout(LATE_ANSWER, outcome(session, &mut call, &mut answered)).await {
        Ok(outcome) => outcome,
        Err(_) => Ok(()),
    }
}

/// Waits for the answer to `launch` or `attach`.
async fn outcome(session: &Session, call: &mut Call, answered: &mut bool) -> Result<(), String> {
    if *answered {
        return Ok(());
    }
    match call.answer().await {
        Ok(_) => {
            *answered = true;
            Ok(())
        }
        Err(error) => Err(lost_or(session, error).await),
    }
}

/// Gives the end of the process time to be told, which says more.
async fn lost_or(session: &Session, error: Unanswered) -> String {
    if matches!(error, Unanswered::Closed(_)) && session.spec.process().is_some() {
        // The end of the session, which follows, ends this wait from outside.
        sleep(LATE_ANSWER).await;
    }
    error.to_string()
}

/// Waits until the adapter wants its configuration, or the program is over already.
/// Returns whether the request was answered meanwhile.
async fn await_initialized(
    session: &Session,
    limb: usize,
    call: &mut Call,
) -> Result<bool, String> {
    let ready = session.until(|book| {
        let of = book.limbs.get(&limb);
        of.is_none_or(|of| of.initialized || of.terminated).then_some(())
    });
    tokio::pin!(ready);
    let mut answered = false;
    loop {
        tokio::select! {
            biased;
            answer = call.answer(), if !answered => match answer {
                Ok(_) => answered = true,
                Err(error) => return Err(lost_or(session, error).await),
            },
            () = &mut ready => return Ok(answered),
        }
    }
}

async fn shake_hands(session: &Arc<Session>) -> Result<Arc<Link>, String> {
    let mut listener = None;
    let mut attempt = 0;
    loop {
        attempt += 1;
        step(session, "connecting to the adapter");
        let duplex = reach(session, &mut listener).await?;
        let link = session.serve(ROOT, duplex);
        step(session, "waiting for the adapter's handshake");
        match initialize(session, ROOT).await {
            Ok(()) => return Ok(link),
            // Taken and dropped without a word: not yet ready, or not meant for us.
            Err(Unanswered::Closed(_))
                if !link.was_heard() && attempt < ATTEMPTS && may_retry(session) =>
            {
                sleep(BETWEEN).await;
            }
            Err(Unanswered::Closed(_)) if !link.was_heard() && session.spec.process().is_none() => {
                return Err(format!(
                    "{} took the connection and closed it without a word, {attempt} times: what \
                     listens there is no debug adapter",
                    session.spec.what
                ));
            }
            Err(Unanswered::Late { bound, .. }) => {
                return Err(format!(
                    "no answer to `initialize` within {bound:?}: {}",
                    if session.spec.process().is_some() {
                        "the adapter hangs".to_owned()
                    } else {
                        format!("what listens on {} is no debug adapter", session.spec.what)
                    }
                ));
            }
            Err(error) => return Err(lost_or(session, error).await),
        }
    }
}

fn may_retry(session: &Session) -> bool {
    !matches!(session.spec.reach, Reach::Stdio(_))
}

/// Gets a connection to the adapter, which is started on the first attempt.
async fn reach(
    session: &Arc<Session>,
    listener: &mut Option<Box<dyn Listening>>,
) -> Result<Duplex, String> {
    if let Reach::Listens(port) = session.spec.reach {
        let connected = session.means.sockets.connect(port).await;
        return connected.map_err(|error| {
            format!(
                "port {port} of this machine cannot be reached: {error}; is the program started \
                 there, and listening?"
            )
        });
    }
    if listener.is_none() {
        let started = own(session).await?;
        if let Some(duplex) = started.duplex {
            return Ok(duplex);
        }
        *listener = started.listener;
    }
    let Some(listener) = listener else {
        return Err("internal error: the launcher gave no pipes".to_owned());
    };
    // If it dies instead of dialling, the session ends and this wait with it.
    listener.accept().await.map_err(|error| format!("no connection came in: {error}"))
}

/// Starts the adapter's process, or takes the one that is ready.
async fn own(session: &Arc<Session>) -> Result<Started, String> {
    let ready = session.means.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut started = match ready {
        Some(ready) => ready,
        None => {
            let (launch, sockets) = (&*session.means.launch, &*session.means.sockets);
            adapter::start(launch, sockets, &session.spec).await?
        }
    };
    let owned = DebugSessionMsg::Launched(session.number, Arc::clone(&started.tree));
    // Without an owner it is dropped here, and with it the process. The owner has it
    // before it can be told that it ended.
    session.means.actor.cast(owned).map_err(|_| "the conversation is over".to_owned())?;
    session.launched(&started.tree);
    for pipe in started.pipes.drain(..) {
        session.pipes.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(pump(Arc::clone(session), pipe));
    }
    Ok(started)
}

/// Takes what an adapter's process writes beside the protocol.
async fn pump(session: Arc<Session>, mut pipe: PipeReader) {
    let mut buffer = vec![0; 8 * 1024];
    loop {
        let read = tokio::select! {
            read = pipe.read(&mut buffer) => read,
            () = session.owner.cancelled() => return,
        };
        match read {
            Ok(0) | Err(_) => {
                session.pipes.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            Ok(read) => {
                session.wrote(&String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()));
            }
        }
    }
}

/// Shakes hands, and keeps what the adapter says it can.
pub(super) async fn initialize(session: &Session, limb: usize) -> Result<(), Unanswered> {
    let arguments = InitializeRequestArguments {
        client_id: Some("hostler".to_owned()),
        client_name: Some("hostler".to_owned()),
        adapter_id: session.spec.adapter_id.clone(),
        locale: Some("en-US".to_owned()),
        lines_start_at1: Some(true),
        columns_start_at1: Some(true),
        path_format: None,
        supports_variable_type: Some(true),
        supports_variable_paging: Some(true),
        // Asked for, it could be refused only after the debuggee waits for it.
        supports_run_in_terminal_request: Some(false),
        supports_memory_references: Some(false),
        supports_progress_reporting: Some(false),
        supports_invalidated_event: Some(false),
        supports_memory_event: Some(false),
        supports_args_can_be_interpreted_by_shell: Some(false),
        // Without it, a child of a Python program blocks for ever.
        supports_start_debugging_request: Some(true),
    };
    let mut arguments = serde_json::to_value(arguments).unwrap_or_default();
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.insert("pathFormat".to_owned(), json!("path"));
    }
    let Some(link) = session.link(limb) else {
        return Err(Unanswered::Closed("initialize".to_owned()));
    };
    let body = link.ask("initialize", arguments, session.spec.bounds.initialize).await?;
    session.change(|book| {
        if let (Some(of), Value::Object(capabilities)) = (book.limbs.get_mut(&limb), body) {
            of.capabilities.extend(capabilities);
        }
    });
    Ok(())
}
