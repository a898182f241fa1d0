//! The part in which a run finds why a Python program prints a wrong result.
//!
//! It sets a breakpoint before anything runs, launches, looks at what changes from stop
//! to stop, evaluates what ought to be there instead, and mends the line that it found.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Stage;
use super::projects::{DEBUGGED, lay_out, text_of};
use super::python::line_of;
use super::remote::{Answer, Broken, Remote};
use super::show::Show;

/// The file in which it goes wrong, its wrong line, and the right one.
const FILE: &str = "tally/sales.py";
const WRONG: &str = "amount = each * count";
const RIGHT: &str = "amount += each * count";
/// What the program ought to print.
const EXPECTED: &str = "total: 2700";

/// Plays the part.
pub(super) async fn part(stage: &Stage, show: Arc<Show>) -> Result<(), Broken> {
    let project = stage.folder.join("tally");
    lay_out(DEBUGGED, &project)?;
    let remote = Remote::open(&stage.client, &stage.open(&project, &stage.env)).await?;
    let mut run = Run { remote, show };
    find(&mut run).await?;
    mend(&mut run).await?;
    run.remote.end().await.map(drop)
}

struct Run {
    remote: Remote,
    show: Arc<Show>,
}

impl Run {
    /// Calls an operation, shows what it brought, and checks that.
    async fn debug(
        &mut self,
        operation: &str,
        mut arguments: Value,
        expected: &str,
    ) -> Result<Answer, Broken> {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("operation".to_owned(), operation.into());
        }
        let shown = arguments.to_string();
        let answer = self.remote.call("debug", arguments).await?;
        self.show.say(&format!("debug {shown}"));
        for line in answer.text.lines() {
            self.show.say(&format!("    {line}"));
        }
        answer.expect(answer.text.contains(expected), operation, expected)?;
        Ok(answer)
    }
}

async fn find(run: &mut Run) -> Result<(), Broken> {
    let text = text_of(DEBUGGED, FILE);
    let line = line_of(text, WRONG);
    run.show
        .say(&format!("it should print `{EXPECTED}`; a breakpoint in the loop, before it runs:"));
    run.debug("breakpoints", json!({ "file": FILE, "lines": [line] }), "pending").await?;
    run.debug("launch", json!({ "program": "main.py" }), "amount=0").await?;
    let evaluated = json!({ "expression": "amount + each * count" });
    run.debug("evaluate", evaluated.clone(), "= 900").await?;
    run.debug("continue", json!({}), "amount=900").await?;
    run.debug("evaluate", evaluated, "= 1800").await?;
    run.debug("continue", json!({}), "amount=900").await?;
    run.show.say(&format!(
        "the sum is 900 again where 1800 was due: line {line} replaces what it should add to"
    ));
    run.debug("terminate", json!({}), "every process of it is gone").await.map(drop)
}

async fn mend(run: &mut Run) -> Result<(), Broken> {
    let edit = json!({ "path": FILE, "old_text": WRONG, "new_text": RIGHT });
    run.remote.call("edit", edit).await?;
    run.show.say(&format!("mended: `{RIGHT}`; without the breakpoint it runs to its end:"));
    run.debug("breakpoints", json!({ "file": FILE, "lines": [] }), "no breakpoints").await?;
    let ended = run.debug("launch", json!({ "program": "main.py" }), "exited with code 0").await?;
    ended.expect(ended.text.contains(EXPECTED), "launch", EXPECTED)
}
