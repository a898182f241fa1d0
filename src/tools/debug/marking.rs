//! `breakpoints`: what is wanted, and what became of it.

use std::ffi::OsStr;
use std::io::BufRead;
use std::path::{Component, Path, PathBuf};
use std::sync::PoisonError;

use hostler_actors::host::workspace::space::conversation::debug_session::breakpoints::{
    Mark, SourceFile, Wish,
};
use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::host::workspace::space::conversation::debug_session::session::{
    Session, Standing,
};
use serde_json::{Value, json};

use super::arguments::{Args, needed};
use super::lines::clipped;
use crate::seat::Seat;
use crate::tools::{Failure, Outcome, Output};

/// Sets a file's breakpoints or the exception filters, or lists what is set.
pub(super) async fn breakpoints(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let live = desk
        .latest()
        .filter(|session| matches!(session.standing(), Standing::Running | Standing::Stopped(_)));
    if args.file.is_none() && args.lines.is_some() {
        return Err(Failure::new("debug: breakpoints needs `file` beside `lines`"));
    }
    if let Some(filters) = &args.exceptions {
        set_exceptions(desk, live.as_deref(), filters).await?;
    }
    let Some(given) = &args.file else { return Ok(listing(desk, live.as_deref())) };
    let file = source_file(seat, given)?;
    if args.lines.is_none() && args.exceptions.is_some() {
        return Ok(listing(desk, live.as_deref()));
    }
    let lines = needed(args.lines.as_ref(), "breakpoints", "lines")?;
    let wishes: Vec<Wish> =
        lines.iter().map(super::arguments::Line::wish).collect::<Result<_, _>>()?;
    check_lines(&file, &wishes)?;
    let name = file.shown.clone();
    let wishes = {
        let mut all = desk.wishes().lock().unwrap_or_else(PoisonError::into_inner);
        all.set(file.clone(), wishes)?;
        all.of(&name).to_vec()
    };
    let mut late = None;
    if let Some(session) = &live
        && let Err(error) = session.place(&file, &wishes).await
    {
        late = Some(error.to_string());
    }
    let marks = live.map(|session| session.marks_of(&name)).unwrap_or_default();
    let lines: Vec<_> = wishes.iter().map(|wish| line_of(wish, mark_of(&marks, wish))).collect();
    let mut text = if wishes.is_empty() {
        format!("{name}: no breakpoints")
    } else {
        format!("{name}:\n{}", lines.join("\n"))
    };
    if let Some(late) = late {
        text.push_str(&format!("\nthe running program was not told: {late}"));
    }
    let each: Vec<_> = wishes.iter().map(|wish| details(wish, mark_of(&marks, wish))).collect();
    Ok(Output::text(text, json!({ "file": name, "breakpoints": each })))
}

async fn set_exceptions(
    desk: &Desk,
    live: Option<&Session>,
    filters: &[String],
) -> Result<(), Failure> {
    if let Some(session) = live {
        let known = session.exception_filters();
        let is_known = |name: &&String| known.iter().any(|(known, _)| known == *name);
        if let Some(unknown) = filters.iter().find(|name| !is_known(name)) {
            let names: Vec<_> = known.into_iter().map(|(name, _)| name).collect();
            return Err(Failure::new(format!(
                "debug: {} has no exception filter `{unknown}`; it has: {}",
                session.spec.adapter,
                names.join(", ")
            )));
        }
    }
    let chosen = Some(filters.to_vec());
    desk.wishes().lock().unwrap_or_else(PoisonError::into_inner).set_exceptions(chosen);
    if let Some(session) = live {
        session.place_exceptions().await?;
    }
    Ok(())
}

fn listing(desk: &Desk, live: Option<&Session>) -> Output {
    let wishes = desk.wishes().lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut lines = Vec::new();
    let mut files = Vec::new();
    for (file, wishes) in wishes.files() {
        let marks = live.map(|session| session.marks_of(&file.shown)).unwrap_or_default();
        lines.push(format!("{}:", file.shown));
        lines.extend(wishes.iter().map(|wish| line_of(wish, mark_of(&marks, wish))));
        let each: Vec<_> = wishes.iter().map(|wish| details(wish, mark_of(&marks, wish))).collect();
        files.push(json!({ "file": file.shown, "breakpoints": each }));
    }
    if lines.is_empty() {
        lines.push("no breakpoints".to_owned());
    }
    let chosen = wishes.exceptions().map(<[String]>::to_vec);
    lines.push(match &chosen {
        Some(filters) if filters.is_empty() => "exceptions: none is stopped at".to_owned(),
        Some(filters) => format!("exceptions: {}", filters.join(", ")),
        None => "exceptions: the adapter's own choice".to_owned(),
    });
    let known = live.map(Session::exception_filters).unwrap_or_default();
    if !known.is_empty() {
        let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
        lines.push(format!("exception filters: {}", names.join(", ")));
    }
    Output::text(lines.join("\n"), json!({ "files": files, "exceptions": chosen }))
}

fn mark_of<'a>(marks: &'a [Mark], wish: &Wish) -> Option<&'a Mark> {
    marks.iter().find(|mark| mark.wish == *wish)
}

fn line_of(wish: &Wish, mark: Option<&Mark>) -> String {
    let mut line = format!("  {}", wish.line);
    for (word, text) in
        [("if", &wish.condition), ("at hit", &wish.hit_count), ("logs", &wish.log_message)]
    {
        if let Some(text) = text {
            line.push_str(&format!(" {word} `{}`", clipped(text, 120)));
        }
    }
    let moved = |mark: &Mark| match mark.line {
        Some(line) if line != i64::from(wish.line) => format!(", moved to line {line}"),
        _ => String::new(),
    };
    line.push_str(&match mark {
        None => ": pending, set when a program is launched".to_owned(),
        Some(mark) if mark.bound => {
            let word = mark.message.as_deref().map(|word| format!(" ({})", clipped(word, 200)));
            format!(": bound{}{}", moved(mark), word.unwrap_or_default())
        }
        Some(Mark { message: Some(why), .. }) => format!(": not bound: {}", clipped(why, 200)),
        Some(_) => ": not bound: no code there that the debugger knows".to_owned(),
    });
    line
}

fn details(wish: &Wish, mark: Option<&Mark>) -> Value {
    json!({
        "line": wish.line, "condition": wish.condition, "hit_count": wish.hit_count,
        "log_message": wish.log_message, "verified": mark.map(|mark| mark.bound),
        "actual_line": mark.filter(|mark| mark.bound).map(Mark::actual),
        "message": mark.and_then(|mark| mark.message.clone()),
    })
}

/// Names a file as debug information may know it: as given, as its links resolve, and
/// below the name by which the session's shell knows the folder.
fn source_file(seat: &Seat, given: &str) -> Result<SourceFile, Failure> {
    let top = seat.folder.root();
    let path = plain(&top.join(given));
    let real = path.canonicalize().ok().filter(|real| real.is_file());
    let real = real.ok_or_else(|| Failure::new(format!("debug: {given}: no such file")))?;
    let inside = path.strip_prefix(top).ok();
    let shown = inside.unwrap_or(&path).display().to_string();
    let mut paths = vec![path.clone()];
    if let (Some(alias), Some(inside)) = (alias(seat), inside) {
        paths.push(alias.join(inside));
    }
    if !paths.contains(&real) {
        paths.push(real);
    }
    Ok(SourceFile { shown, paths })
}

/// Returns another name of the work folder: the shell's, if it came over a link.
fn alias(seat: &Seat) -> Option<PathBuf> {
    let (_, shell) = seat.env.iter().find(|(name, _)| name == OsStr::new("PWD"))?;
    let shell = PathBuf::from(shell);
    let top = seat.folder.root();
    (shell != top && shell.canonicalize().is_ok_and(|real| real == top)).then_some(shell)
}

/// Takes `.` and `..` out of a path by its words alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// Refuses lines past the end: some adapters move them to the last one, silently.
fn check_lines(file: &SourceFile, wishes: &[Wish]) -> Result<(), Failure> {
    let Some(last) = wishes.iter().map(|wish| wish.line).max() else { return Ok(()) };
    let Some(path) = file.paths.first() else { return Ok(()) };
    let count = std::fs::File::open(path)
        .map(|file| std::io::BufReader::new(file).split(b'\n').take(last as usize).count())
        .map_err(|error| Failure::new(format!("debug: {}: {error}", file.shown)))?;
    if count < last as usize {
        return Err(Failure::new(format!(
            "debug: {} has {count} lines, so there is no line {last}; no breakpoint was changed",
            file.shown
        )));
    }
    Ok(())
}
