//! What an adapter is told before the program runs, and again when it changes:
//! breakpoints and exception filters.

use std::sync::PoisonError;

use dap_types::SetExceptionBreakpointsArguments;
use serde_json::{Value, json};

use super::bodies;
use super::book::ROOT;
use super::breakpoints::{self, SourceFile, Wish};
use super::link::Unanswered;
use super::session::{AskError, Session, filters};

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
        let wishes = session.means.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        wishes.files().map(|(file, wishes)| (file.clone(), wishes.to_vec())).collect()
    };
    for (file, wishes) in files {
        // A file that is refused says so in its marks, and keeps no other from binding.
        if let Err(error @ AskError::NotNow(_)) = place(session, limb, &file, &wishes).await {
            return Err(error);
        }
    }
    if limb == ROOT && session.spec.stop_on_entry {
        stop_on_entry(session).await?;
    }
    set_exceptions(session, limb).await?;
    if can(session, limb, "supportsConfigurationDoneRequest") {
        session.ask(limb, "configurationDone", json!({})).await?;
    }
    Ok(())
}

/// Has the debuggee stop before its first line.
async fn stop_on_entry(session: &Session) -> Result<(), AskError> {
    session.change(|book| {
        if let Some(root) = book.limbs.get_mut(&ROOT) {
            root.entering = true;
        }
    });
    if let Some(function) = &session.spec.entry_function {
        let wanted = json!({ "breakpoints": [{ "name": function }] });
        session.ask(ROOT, "setFunctionBreakpoints", wanted).await?;
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
        let wishes = session.means.wishes.lock().unwrap_or_else(PoisonError::into_inner);
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
    if limb != ROOT {
        return;
    }
    let able = |capability: &str| can(session, limb, capability);
    let unable = [
        (!able("supportsConditionalBreakpoints"), "no conditions: it stops always"),
        (!able("supportsHitConditionalBreakpoints"), "no hit counts: it stops always"),
        (!able("supportsLogPoints"), "no log messages: it stops instead"),
    ];
    let placed = wishes.iter().zip(placed).map(|(wish, mut placed)| {
        let asked = [&wish.condition, &wish.hit_count, &wish.log_message];
        for (asked, (unable, why)) in asked.iter().zip(&unable) {
            if asked.is_some() && *unable {
                placed.message = Some(format!("{} does {why}", session.spec.adapter));
            }
        }
        placed
    });
    let placed = placed.collect();
    session.change(|book| book.marks.take(file, wishes, placed));
}
