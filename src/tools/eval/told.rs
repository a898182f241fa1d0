//! What is told of a cell: what it printed and showed, what it came to, what it did to
//! the variables, and what became of them where it did not end by itself.

use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::run::interpreter::cell::{
    CellEnd, CellReport, State, Why,
};
use hostler_actors::host::workspace::space::conversation::run::interpreter::protocol::{
    Bundle, Done, Status, Variables,
};
use hostler_actors::host::workspace::space::conversation::run::interpreter::spec::{
    InterpreterSpec, Language,
};
use hostler_actors::ports::Block;
use serde_json::{Map, Value, json};

use super::collect::{Collect, Piece};
use crate::config::Eval;
use crate::tools::{Failure, Outcome, Output, text_of};

/// Characters of one form of a value that are shown.
const FORM: usize = 20_000;
/// Variables that are told in a line.
const NAMED: usize = 12;
/// Forms of a value, the ones that say most to a model first.
const TEXTS: [&str; 4] = ["text/markdown", "text/plain", "text/latex", "application/json"];

/// What is told, block by block.
#[derive(Default)]
pub(super) struct Told {
    content: Vec<Block>,
    details: Map<String, Value>,
    images: usize,
}

impl Told {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        self.text(line);
    }

    /// Ends what was told without a cell.
    pub(super) fn output(self) -> Output {
        Output { content: self.content, details: Value::Object(self.details) }
    }

    fn text(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return;
        }
        if let Some(Block::Text { text: last }) = self.content.last_mut() {
            last.push('\n');
            last.push_str(text);
        } else {
            self.content.push(Block::Text { text: text.to_owned() });
        }
    }

    fn bundle(&mut self, bundle: &Bundle) {
        for (mime_type, data) in bundle {
            if let (true, Some(data)) = (is_image(mime_type), data.as_str()) {
                self.images += 1;
                let (mime_type, data) = (mime_type.clone(), data.to_owned());
                return self.content.push(Block::Image { mime_type, data });
            }
        }
        let form = TEXTS.iter().find_map(|form| bundle.get(*form));
        let text = match form {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => format!("<{}>", bundle.keys().cloned().collect::<Vec<_>>().join(", ")),
        };
        self.text(&clipped(text));
    }

    /// Tells of a cell.
    pub(super) fn cell(
        mut self,
        report: &CellReport,
        sink: &Collect,
        config: &Eval,
        spec: &InterpreterSpec,
    ) -> Outcome {
        self.what_was_before(report, config, spec);
        let (pieces, text) = sink.pieces();
        let died = matches!(report.end, CellEnd::Died(_) | CellEnd::Stopped(_, None));
        for piece in &pieces {
            match piece {
                Piece::Text(text) if died => self.text(&without_runner(text)),
                Piece::Text(text) => self.text(text),
                Piece::Display(seq) => match report.displays.get(seq) {
                    Some(bundle) => self.bundle(bundle),
                    None => self.text("[a display beyond the cap of 200]"),
                },
            }
        }
        let done = match &report.end {
            CellEnd::Done(done) | CellEnd::Stopped(_, Some(done)) => Some(done),
            _ => None,
        };
        if let Some(done) = done {
            self.done(done);
        }
        if !report.calls.is_empty() {
            let calls = report.calls.iter().map(|(name, count)| format!("{name} x{count}"));
            self.text(&format!("[tools called: {}]", calls.collect::<Vec<_>>().join(", ")));
        }
        self.facts(report, done.map(|done| &**done), spec);
        self.details.insert("output_bytes".into(), text.bytes.into());
        self.details.insert("handle".into(), json!(text.handle.map(|handle| handle.to_string())));
        match failure(report) {
            None => Ok(self.output()),
            Some(how) => {
                self.text(&format!("{how} {}", state(&report.state)));
                let shown = text_of(&self.content);
                let details = Value::Object(self.details);
                Err(Failure { message: format!("eval: {shown}"), details })
            }
        }
    }

    fn what_was_before(&mut self, report: &CellReport, config: &Eval, spec: &InterpreterSpec) {
        if let Some(before) = &report.before {
            self.text(&format!("[{before}]"));
        }
        if let Some(ready) = &report.started {
            self.text(&format!(
                "[{} {} of {}; may hold {} MiB]",
                match spec.language {
                    Language::Python => "Python",
                    Language::JavaScript => "Node",
                },
                ready.version,
                ready.executable,
                config.memory_bytes >> 20
            ));
        }
        let late = &report.late;
        if !late.bytes.is_empty() {
            let dropped = match late.dropped {
                0 => String::new(),
                dropped => format!(", {dropped} bytes before it dropped"),
            };
            let text = String::from_utf8_lossy(&late.bytes);
            self.text(&format!("[written since the last cell{dropped}:]"));
            self.text(&text);
            self.text("[end of that]");
        }
    }

    fn done(&mut self, done: &Done) {
        if let Some(value) = &done.value {
            self.bundle(value);
        }
        if let Some(error) = &done.error {
            self.text(error);
        }
        for note in &done.notes {
            self.text(&format!("[{note}]"));
        }
        let Variables { new, changed, gone } = &done.variables;
        let named = |what: &str, all: &[(String, String)]| {
            let shown = all.iter().take(NAMED).map(|(name, kind)| format!("{name}: {kind}"));
            let more = all.len().saturating_sub(NAMED);
            let more = if more > 0 { format!("; {more} more") } else { String::new() };
            let shown = shown.collect::<Vec<_>>().join("; ");
            (!all.is_empty()).then(|| format!("{what} {shown}{more}"))
        };
        let gone = (!gone.is_empty()).then(|| format!("gone {}", gone.join(", ")));
        let lines = [named("new", new), named("changed", changed), gone];
        let lines: Vec<_> = lines.into_iter().flatten().collect();
        if !lines.is_empty() {
            self.text(&format!("[variables: {}]", lines.join(" | ")));
        }
    }

    fn facts(&mut self, report: &CellReport, done: Option<&Done>, spec: &InterpreterSpec) {
        let status = done.map(|done| match done.status {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::Interrupted => "interrupted",
            Status::Exit => "exit",
        });
        let state = match report.state {
            State::Kept => "kept",
            State::Restored(_) => "restored",
            State::Lost(_) => "lost",
        };
        let started = report.started.as_ref();
        let facts = json!({
            "cell": report.cell,
            "status": status,
            "interpreter": {
                "program": spec.program,
                "started": started.is_some(),
                "version": started.map(|ready| &ready.version),
            },
            "state": state,
            "variables": done.map(|done| &done.variables),
            "calls": report.calls,
            "duration_ms": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
            "images": self.images,
        });
        if let Value::Object(facts) = facts {
            self.details.extend(facts);
        }
    }
}

/// Leaves the runner's own frames out of the stack of an interpreter that died.
fn without_runner(text: &str) -> String {
    let own = |line: &&str| {
        line.starts_with("  File \"<hostler ")
            || line.starts_with("  File \"<string>\", line")
            // faulthandler lists all that is loaded.
            || line.starts_with("Extension modules: ")
    };
    let kept: Vec<_> = text.lines().filter(|line| !own(line)).collect();
    kept.join("\n")
}

fn is_image(mime_type: &str) -> bool {
    matches!(mime_type, "image/png" | "image/jpeg")
}

fn clipped(text: String) -> String {
    let count = text.chars().count();
    if count <= FORM {
        return text;
    }
    let head: String = text.chars().take(FORM / 2).collect();
    let tail: String = text.chars().skip(count - FORM / 2).collect();
    format!("{head}\n[... {} characters left out ...]\n{tail}", count - FORM)
}

/// Says how a cell failed to end by itself.
fn failure(report: &CellReport) -> Option<String> {
    Some(match &report.end {
        CellEnd::Done(_) => return None,
        CellEnd::Stopped(stopped, Some(done)) if done.status == Status::Interrupted => {
            format!("stopped: {}.", why(*stopped))
        }
        CellEnd::Stopped(stopped, Some(_)) => {
            format!("stopped, and the cell then came to its end: {}.", why(*stopped))
        }
        CellEnd::Stopped(stopped, None) => {
            format!("killed, as it answered no interrupt: {}.", why(*stopped))
        }
        CellEnd::Died(how) => format!("the interpreter {how} in this cell."),
        CellEnd::NotStarted(reason) => format!("no interpreter: {reason}."),
        CellEnd::NotBegun(stopped) => format!("not begun: {}.", why(*stopped)),
    })
}

/// Says why a cell was stopped, and the way out.
pub(super) fn why(stopped: Why) -> String {
    match stopped {
        Why::Cancelled => "the call was cancelled".to_owned(),
        Why::Reset => "another call has reset the interpreter".to_owned(),
        Why::RunEnds => "the run ends".to_owned(),
        Why::Quiet(quiet) => format!(
            "it showed no sign of activity for {}; budget(seconds) in the cell asks for more",
            span(quiet)
        ),
        Why::Longest(longest) => {
            format!("it took longer than {}, the most that a cell may", span(longest))
        }
        Why::Output(most) => format!("it wrote more than {most} bytes, the most that a cell may"),
    }
}

fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 120.0 { format!("{seconds} s") } else { format!("{:.0} min", seconds / 60.0) }
}

fn state(state: &State) -> String {
    match state {
        State::Kept => "The variables are kept.".to_owned(),
        State::Restored(cell) => format!(
            "A snapshot took over: the variables are those after cell {cell}; files and other \
             effects of this cell stay."
        ),
        State::Lost(0) => "There were no variables yet.".to_owned(),
        State::Lost(cells) => {
            format!("The variables of {cells} cells are gone; the next cell begins anew.")
        }
    }
}
