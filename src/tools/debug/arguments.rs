//! The arguments of `debug`, read as models write them.

use std::borrow::Cow;

use hostler_actors::host::workspace::space::conversation::debug_session::breakpoints::Wish;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::tools::Failure;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Operation {
    Adapters,
    Status,
    Breakpoints,
    Launch,
    Attach,
    Continue,
    Pause,
    StepOver,
    StepIn,
    StepOut,
    Threads,
    Stack,
    Scopes,
    Variables,
    Evaluate,
    Output,
    Terminate,
}

/// Says whether a call only looks, or ends what others wait for: it must also work while
/// something hangs.
pub(super) fn overtakes(given: &Value) -> bool {
    let operation = given.get("operation").and_then(Value::as_str);
    matches!(operation, Some("adapters" | "status" | "output" | "pause" | "terminate"))
}

impl Operation {
    /// Says whether it asks about a stop, and moves nothing.
    pub(super) fn only_looks(self) -> bool {
        use Operation::{Evaluate, Scopes, Stack, Threads, Variables};
        matches!(self, Threads | Stack | Scopes | Variables | Evaluate)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What to do. Needs: breakpoints: file, lines (empty clears the file; both left out
    /// lists all); launch: program; attach: port; scopes: frame_id; variables: reference;
    /// evaluate: expression. The others need nothing.
    pub(super) operation: Operation,
    /// The source file of breakpoints.
    #[serde(default)]
    pub(super) file: Option<String>,
    /// All breakpoints of the file: lines, or objects with `line` and `condition`,
    /// `hit_count` or `log_message`.
    #[serde(default)]
    pub(super) lines: Option<Vec<Line>>,
    /// For breakpoints: names of exception filters to stop at, instead of the adapter's
    /// own choice, which an empty list turns off.
    #[serde(default)]
    pub(super) exceptions: Option<Vec<String>>,
    /// The program: a script, a Go package folder, a compiled program, or the name of a
    /// build target.
    #[serde(default)]
    pub(super) program: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Its working directory; the project's root if left out.
    #[serde(default)]
    pub(super) cwd: Option<String>,
    /// Stop before its first line.
    #[serde(default)]
    pub(super) stop_on_entry: bool,
    /// The port of this machine to attach to.
    #[serde(default)]
    pub(super) port: Option<Whole>,
    /// Which adapter, where it does not follow from the program or the folder.
    #[serde(default)]
    pub(super) adapter: Option<String>,
    /// Which thread; the one that stopped if left out.
    #[serde(default)]
    pub(super) thread_id: Option<Whole>,
    /// A frame, from the last stop or `stack`.
    #[serde(default)]
    pub(super) frame_id: Option<Whole>,
    /// A scope or variable with children.
    #[serde(default)]
    pub(super) reference: Option<Whole>,
    /// For variables: how many children to skip.
    #[serde(default)]
    pub(super) start: Option<Whole>,
    /// What to evaluate.
    #[serde(default)]
    pub(super) expression: Option<String>,
    /// For output: where to read on, as the last answer said.
    #[serde(default)]
    pub(super) cursor: Option<Whole>,
    /// How long to wait for a stop; 10 if left out and at most 300.
    #[serde(default)]
    pub(super) wait_seconds: Option<Whole>,
}

/// A whole number, also in quotes, as models write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole(pub(super) i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a whole number")]
        enum Given {
            Number(i64),
            Text(String),
        }
        match Given::deserialize(from)? {
            Given::Number(number) => Ok(Self(number)),
            Given::Text(text) => {
                text.trim().parse().map(Self).map_err(|_| {
                    serde::de::Error::custom(format!("`{text}` is not a whole number"))
                })
            }
        }
    }
}

impl JsonSchema for Whole {
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(of: &mut SchemaGenerator) -> Schema {
        i64::json_schema(of)
    }
}

/// A line with a breakpoint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a line number, or an object with `line`")]
#[schemars(inline)]
pub(super) enum Line {
    Plain(Whole),
    With(Conditional),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct Conditional {
    line: Whole,
    /// Stops only where this expression holds.
    #[serde(default)]
    condition: Option<String>,
    /// Stops only at this hit, for example `3` or `>= 3`.
    #[serde(default)]
    hit_count: Option<Text>,
    /// Prints this instead of stopping; expressions in braces.
    #[serde(default)]
    log_message: Option<String>,
}

/// A text, also given as a number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Text {
    Text(String),
    Number(i64),
}

impl Line {
    /// Returns what it asks for, if it is a line at all.
    pub(super) fn wish(&self) -> Result<Wish, Failure> {
        let line = |Whole(line): Whole| match u32::try_from(line) {
            Ok(line) if line > 0 => Ok(line),
            _ => Err(Failure::new(format!("debug: {line} is no line: lines count from 1"))),
        };
        Ok(match self {
            Self::Plain(number) => Wish { line: line(*number)?, ..Wish::default() },
            Self::With(with) => Wish {
                line: line(with.line)?,
                condition: with.condition.clone(),
                hit_count: with.hit_count.as_ref().map(|count| match count {
                    Text::Text(text) => text.clone(),
                    Text::Number(number) => number.to_string(),
                }),
                log_message: with.log_message.clone(),
            },
        })
    }
}

/// Returns an argument that an operation cannot do without.
pub(super) fn needed<T>(given: Option<T>, operation: &str, name: &str) -> Result<T, Failure> {
    given.ok_or_else(|| Failure::new(format!("debug: {operation} needs `{name}`")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_lines_are_read_as_models_write_them() {
        let args: Args = serde_json::from_value(json!({
            "operation": "step_over", "thread_id": "7", "port": 5678,
            "lines": [3, "4", {"line": 5, "condition": "x", "hit_count": 2}],
        }))
        .unwrap();
        assert_eq!((args.thread_id, args.port), (Some(Whole(7)), Some(Whole(5678))));
        let wishes: Vec<_> = args.lines.unwrap().iter().map(|line| line.wish().unwrap()).collect();
        assert_eq!(wishes.iter().map(|wish| wish.line).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(wishes[2].hit_count.as_deref(), Some("2"));
        for bad in [json!(1.5), json!("x"), json!(null), json!({"lime": 3})] {
            let args = json!({"operation": "breakpoints", "lines": [bad]});
            assert!(serde_json::from_value::<Args>(args).is_err(), "{bad}");
        }
        assert!(Line::Plain(Whole(0)).wish().is_err() && Line::Plain(Whole(-1)).wish().is_err());
    }
}
