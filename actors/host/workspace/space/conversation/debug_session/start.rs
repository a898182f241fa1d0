//! From the order to the debuggee that runs: connect, shake hands, launch, configure.
//!
//! The tricky thing: never wait for one thing. After `launch` is sent, adapters differ
//! in what comes next: `initialized` before or after the answer, a failed answer with
//! no `initialized` at all, or one after everything was configured; the program may be
//! over by then. So whatever comes first decides, and the end of the session and the
//! deadline are always among it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dap_types::{
    DisconnectArguments, InitializeRequestArguments, SetExceptionBreakpointsArguments,
};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use super::DebugSessionMsg;
use super::bodies;
use super::book::{End, ROOT};
use super::breakpoints::{self, SourceFile, Wish};
use super::link::{Call, Link, Unanswered};
use super::session::{AskError, Session, filters};
use super::spec::{ADDRESS, AdapterProcess, Reach};
use crate::ports::{
    Duplex, LaunchOrder, Leftovers, Listening, Owner, PipeReader, Posture, ProcessTree, Wire,
};

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
    let mut listening = None;
    let mut attempt = 0;
    loop {
        attempt += 1;
        step(session, "connecting to the adapter");
        let duplex = reach(session, &mut listening).await?;
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
    listening: &mut Option<Box<dyn Listening>>,
) -> Result<Duplex, String> {
    match &session.spec.reach {
        Reach::Listens(port) => {
            let connected = session.means.sockets.connect(*port).await;
            connected.map_err(|error| {
                format!("port {port} of this machine cannot be reached: {error}; is the program started there, and listening?")
            })
        }
        Reach::Stdio(process) => {
            let wires = [(0, Wire::ToProcess), (1, Wire::FromProcess), (2, Wire::Ring)];
            let (_, mut to, mut from) = launch(session, process, &wires, "").await?;
            match (to.remove(&0), from.remove(&1)) {
                (Some(write), Some(read)) => Ok(Duplex { read, write }),
                _ => Err("internal error: the launcher gave no pipes".to_owned()),
            }
        }
        Reach::DialsUs(process) => {
            let mut ended = None;
            let listener = match listening {
                Some(listener) => listener,
                None => {
                    let made = session.means.sockets.listen().await;
                    let listener = listening.insert(
                        made.map_err(|error| format!("no port can be listened on: {error}"))?,
                    );
                    // Its stdin is the debuggee's too, and so are its other pipes.
                    let wires = [(0, Wire::Null), (1, Wire::FromProcess), (2, Wire::FromProcess)];
                    let address = format!("127.0.0.1:{}", listener.port());
                    let (tree, _, from) = launch(session, process, &wires, &address).await?;
                    for pipe in from.into_values() {
                        session.pipes.fetch_add(1, Ordering::Relaxed);
                        tokio::spawn(pump(Arc::clone(session), pipe));
                    }
                    ended = Some(tree.ended());
                    listener
                }
            };
            // If it dies instead of dialling, the session ends and this wait with it.
            drop(ended);
            listener.accept().await.map_err(|error| format!("no connection came in: {error}"))
        }
    }
}

type Ends =
    (Arc<dyn ProcessTree>, BTreeMap<i32, crate::ports::PipeWriter>, BTreeMap<i32, PipeReader>);

async fn launch(
    session: &Arc<Session>,
    process: &AdapterProcess,
    wires: &[(i32, Wire)],
    address: &str,
) -> Result<Ends, String> {
    let filled = |arg: &std::ffi::OsString| match arg.to_str() {
        Some(text) if text.contains(ADDRESS) => text.replace(ADDRESS, address).into(),
        _ => arg.clone(),
    };
    let order = LaunchOrder {
        label: session.spec.adapter.clone(),
        program: process.program.clone(),
        args: process.args.iter().map(filled).collect(),
        cwd: process.cwd.clone(),
        env: process.env.clone(),
        wires: wires.iter().copied().collect(),
        // A conversation outlives its runs, and so does its debug session.
        owner: Owner::Host,
        posture: Posture::Writable,
        leftovers: Leftovers::Kill,
    };
    let launched = session.means.launch.launch(order).await.map_err(|error| error.to_string())?;
    let tree = Arc::clone(&launched.tree);
    let owned = DebugSessionMsg::Launched(session.number, launched.tree);
    // Without an owner it is dropped here, and with it the process. The owner has it
    // before it can be told that it ended.
    session.means.actor.cast(owned).map_err(|_| "the conversation is over".to_owned())?;
    session.launched(&tree);
    Ok((tree, launched.to_process, launched.from_process))
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

/// Says whether an adapter can do something, and is believed.
pub(super) fn can(session: &Session, limb: usize, capability: &str) -> bool {
    !session.spec.distrust.iter().any(|name| name == capability)
        && session.look(|book| {
            let of = book.limbs.get(&limb).and_then(|of| of.capabilities.get(capability));
            of.and_then(Value::as_bool).unwrap_or(false)
        })
}

/// Sends breakpoints and exception filters, and says that that was all.
pub(super) async fn configure(session: &Session, limb: usize) -> Result<(), AskError> {
    let files: Vec<(SourceFile, Vec<Wish>)> = {
        let wishes = session.means.wishes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wishes.files().map(|(file, wishes)| (file.clone(), wishes.to_vec())).collect()
    };
    for (file, wishes) in files {
        // A file that is refused says so in its marks, and keeps no other from binding.
        if let Err(error @ AskError::NotNow(_)) = place(session, limb, &file, &wishes).await {
            return Err(error);
        }
    }
    set_exceptions(session, limb).await?;
    if can(session, limb, "supportsConfigurationDoneRequest") {
        session.ask(limb, "configurationDone", json!({})).await?;
    }
    Ok(())
}

/// Sends the exception filters that were chosen, else the adapter's own choice: an
/// empty list would turn off what it stops at by itself.
pub(super) async fn set_exceptions(session: &Session, limb: usize) -> Result<(), AskError> {
    let capabilities = session.look(|book| {
        let of = book.limbs.get(&limb).map(|limb| limb.capabilities.clone());
        Value::Object(of.unwrap_or_default())
    });
    let known = filters(&capabilities);
    let chosen = {
        let wishes = session.means.wishes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wishes.exceptions().map(<[String]>::to_vec)
    };
    let on = |name: &String, default: bool| match &chosen {
        Some(chosen) => chosen.contains(name),
        None => default,
    };
    let filters: Vec<_> =
        known.iter().filter(|(name, by)| on(name, *by)).map(|(name, _)| name.clone()).collect();
    if known.is_empty() && limb != ROOT {
        return Ok(());
    }
    let arguments =
        SetExceptionBreakpointsArguments { filters, filter_options: None, exception_options: None };
    let arguments = serde_json::to_value(arguments).unwrap_or_default();
    match session.ask(limb, "setExceptionBreakpoints", arguments).await {
        // One that has none may refuse them.
        Err(AskError::Unanswered(Unanswered::Refused(_))) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Puts a file's breakpoints where the adapter knows the file: under its given path,
/// else as its symbolic links resolve, since debug information may hold either.
pub(super) async fn place(
    session: &Session,
    limb: usize,
    file: &SourceFile,
    wishes: &[Wish],
) -> Result<(), AskError> {
    let mut first = None;
    for path in &file.paths {
        let asked = session.ask(limb, "setBreakpoints", breakpoints::arguments(path, wishes)).await;
        let placed = match asked {
            Ok(body) => bodies::all_placed(&body),
            Err(AskError::Unanswered(Unanswered::Refused(fault))) => {
                let refused = || bodies::Placed {
                    message: Some(fault.to_string()),
                    ..bodies::Placed::default()
                };
                wishes.iter().map(|_| refused()).collect()
            }
            Err(error) => return Err(error),
        };
        let bound = wishes.is_empty() || placed.iter().any(|placed| placed.verified);
        if bound || file.paths.len() == 1 {
            enter(session, limb, file, wishes, placed);
            if !wishes.is_empty() {
                return Ok(());
            }
        } else {
            session.ask(limb, "setBreakpoints", breakpoints::arguments(path, &[])).await?;
            first.get_or_insert(placed);
        }
    }
    if let (Some(placed), Some(path)) = (first, file.paths.first()) {
        // A library that is loaded later may bind it yet.
        session.ask(limb, "setBreakpoints", breakpoints::arguments(path, wishes)).await?;
        enter(session, limb, file, wishes, placed);
    }
    Ok(())
}

fn enter(
    session: &Session,
    limb: usize,
    file: &SourceFile,
    wishes: &[Wish],
    placed: Vec<bodies::Placed>,
) {
    if limb == ROOT {
        session.change(|book| book.marks.take(file, wishes, placed));
    }
}

/// Returns the arguments of `disconnect`. Whether the debuggee goes is always said:
/// what is left out, every adapter decides for itself.
pub(super) fn disconnect(terminate_debuggee: bool) -> Value {
    let arguments = DisconnectArguments {
        restart: Some(false),
        terminate_debuggee: Some(terminate_debuggee),
        suspend_debuggee: None,
    };
    serde_json::to_value(arguments).unwrap_or_default()
}
