//! The arguments of `lsp`: flat for the model, checked per action here. Pure.
//!
//! A model fills a flat object well and a tagged union badly, so the schema is
//! flat; what an action needs, and that it was given nothing that it would
//! silently ignore, is said by [`Query::read`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Errors and warnings of one file, or with `file: "*"` of the whole project.
    Diagnostics,
    /// Where a symbol is declared.
    Definition,
    /// Where a symbol's type is declared.
    TypeDefinition,
    /// The concrete implementations of a symbol.
    Implementation,
    /// Every use of a symbol.
    References,
    /// Signature and doc comment of a symbol.
    Hover,
    /// The symbols of a `file`, or those of the project that match `query`.
    Symbols,
    /// The quick fixes that the server offers for a symbol.
    CodeActions,
    /// Which servers run and which cannot, and why.
    Status,
    /// Restarts the servers of this folder.
    Reload,
}

/// The arguments as they come.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// What to ask.
    pub(crate) action: Action,
    /// The file, relative to the work folder. `*` with `diagnostics`: the whole project.
    pub(crate) file: Option<String>,
    /// The line of the symbol, counted from 1.
    pub(crate) line: Option<usize>,
    /// The symbol, or a piece of the line that names it.
    pub(crate) symbol: Option<String>,
    /// Which one, counted from 1, where the symbol stands more than once on the line.
    pub(crate) occurrence: Option<usize>,
    /// With `symbols`: what to look for in the whole project.
    pub(crate) query: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file, as given.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The piece of the line.
    pub(crate) symbol: String,
    /// Which one.
    pub(crate) occurrence: Option<usize>,
}

/// A question about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Its declaration.
    Definition,
    /// The declaration of its type.
    TypeDefinition,
    /// Its implementations.
    Implementation,
    /// Its uses.
    References,
    /// Its signature and documentation.
    Hover,
    /// The quick fixes there.
    CodeActions,
}

/// A call that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// The verdict on one file.
    FileDiagnostics(String),
    /// The verdict on the project.
    ProjectDiagnostics,
    /// A question about a place.
    At(Question, Place),
    /// The symbols of one file.
    FileSymbols(String),
    /// The symbols of the project that match.
    ProjectSymbols(String),
    /// Which servers run.
    Status,
    /// A restart.
    Reload,
}

/// Why a call makes no sense: names the field, what came and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadArguments {
    /// A field is missing.
    #[error("lsp {action}: `{field}` is missing: expected {expected}")]
    Missing {
        /// The action.
        action: &'static str,
        /// The field.
        field: &'static str,
        /// What it should hold.
        expected: &'static str,
    },
    /// A field holds something impossible.
    #[error("lsp {action}: `{field}` is {came}: expected {expected}")]
    Wrong {
        /// The action.
        action: &'static str,
        /// The field.
        field: &'static str,
        /// What it holds.
        came: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A field would be ignored.
    #[error("lsp {action}: `{field}` came with {came}: this action takes {takes}")]
    Unused {
        /// The action.
        action: &'static str,
        /// The field.
        field: &'static str,
        /// What it holds.
        came: String,
        /// What the action takes.
        takes: &'static str,
    },
}

impl Action {
    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Diagnostics => "diagnostics",
            Self::Definition => "definition",
            Self::TypeDefinition => "type_definition",
            Self::Implementation => "implementation",
            Self::References => "references",
            Self::Hover => "hover",
            Self::Symbols => "symbols",
            Self::CodeActions => "code_actions",
            Self::Status => "status",
            Self::Reload => "reload",
        }
    }

    fn takes(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Diagnostics => (&["file"], "`file`"),
            Self::Symbols => (&["file", "query"], "`file` or `query`"),
            Self::Status | Self::Reload => (&[], "nothing else"),
            _ => (
                &["file", "line", "symbol", "occurrence"],
                "`file`, `line`, `symbol` and `occurrence`",
            ),
        }
    }
}

impl Query {
    /// Reads a call.
    pub(crate) fn read(given: Arguments) -> Result<Self, BadArguments> {
        let action = given.action;
        given.refuse_unused()?;
        let question = match action {
            Action::Diagnostics => {
                return Ok(match given.file()? {
                    file if file == "*" => Self::ProjectDiagnostics,
                    file => Self::FileDiagnostics(file),
                });
            }
            Action::Symbols => return given.symbols(),
            Action::Status => return Ok(Self::Status),
            Action::Reload => return Ok(Self::Reload),
            Action::Definition => Question::Definition,
            Action::TypeDefinition => Question::TypeDefinition,
            Action::Implementation => Question::Implementation,
            Action::References => Question::References,
            Action::Hover => Question::Hover,
            Action::CodeActions => Question::CodeActions,
        };
        Ok(Self::At(question, given.place()?))
    }
}

impl Arguments {
    fn refuse_unused(&self) -> Result<(), BadArguments> {
        let (taken, takes) = self.action.takes();
        let quoted = |text: &String| format!("`{text}`");
        let given = [
            ("file", self.file.as_ref().map(quoted)),
            ("line", self.line.map(|line| line.to_string())),
            ("symbol", self.symbol.as_ref().map(quoted)),
            ("occurrence", self.occurrence.map(|at| at.to_string())),
            ("query", self.query.as_ref().map(quoted)),
        ];
        for (field, came) in given {
            if let (Some(came), false) = (came, taken.contains(&field)) {
                return Err(BadArguments::Unused {
                    action: self.action.name(),
                    field,
                    came,
                    takes,
                });
            }
        }
        Ok(())
    }

    fn missing(&self, field: &'static str, expected: &'static str) -> BadArguments {
        BadArguments::Missing { action: self.action.name(), field, expected }
    }

    fn file(&self) -> Result<String, BadArguments> {
        let expected = match self.action {
            Action::Diagnostics => "a file of the work folder, or `*` for the whole project",
            _ => "a file of the work folder",
        };
        match self.file.as_deref() {
            Some("") | None => Err(self.missing("file", expected)),
            Some("*") if self.action != Action::Diagnostics => Err(BadArguments::Wrong {
                action: self.action.name(),
                field: "file",
                came: "`*`".to_owned(),
                expected: "one file of the work folder",
            }),
            Some(file) => Ok(file.to_owned()),
        }
    }

    fn place(self) -> Result<Place, BadArguments> {
        let file = self.file()?;
        let line = match self.line {
            None => return Err(self.missing("line", "the number of the line, counted from 1")),
            Some(0) => {
                return Err(BadArguments::Wrong {
                    action: self.action.name(),
                    field: "line",
                    came: "0".to_owned(),
                    expected: "the number of a line, counted from 1",
                });
            }
            Some(line) => line,
        };
        let Some(symbol) = self.symbol.filter(|symbol| !symbol.is_empty()) else {
            return Err(BadArguments::Missing {
                action: self.action.name(),
                field: "symbol",
                expected: "the symbol on that line, or a piece of the line that names it",
            });
        };
        Ok(Place { file, line, symbol, occurrence: self.occurrence })
    }

    fn symbols(self) -> Result<Query, BadArguments> {
        match (&self.file, &self.query) {
            (Some(_), Some(query)) => Err(BadArguments::Unused {
                action: "symbols",
                field: "query",
                came: format!("`{query}`"),
                takes: "`file` or `query`, not both",
            }),
            (Some(_), None) => Ok(Query::FileSymbols(self.file()?)),
            (None, Some(query)) if !query.is_empty() => Ok(Query::ProjectSymbols(query.clone())),
            _ => Err(self.missing(
                "query",
                "what to look for in the whole project, or `file` for the symbols of one file",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use serde_json::{Value, json};

    use super::*;
    use crate::tools::{arguments, schema_of};

    fn read(given: Value) -> Result<Query, String> {
        let given = arguments("lsp", given).map_err(|failure| failure.message)?;
        Query::read(given).map_err(|error| error.to_string())
    }

    #[test]
    fn every_action_reads_what_it_takes() {
        assert_eq!(
            read(json!({"action": "diagnostics", "file": "*"})),
            Ok(Query::ProjectDiagnostics)
        );
        assert_eq!(
            read(
                json!({"action": "hover", "file": "a.py", "line": 3, "symbol": "x", "occurrence": 2})
            ),
            Ok(Query::At(
                Question::Hover,
                Place { file: "a.py".into(), line: 3, symbol: "x".into(), occurrence: Some(2) }
            ))
        );
        assert_eq!(
            read(json!({"action": "symbols", "query": "Shape"})),
            Ok(Query::ProjectSymbols("Shape".into()))
        );
        assert_eq!(read(json!({"action": "status"})), Ok(Query::Status));
    }

    #[test]
    fn wrong_arguments_name_the_field_what_came_and_what_was_expected() {
        let cases = [
            (
                json!({"action": "hover", "file": "a.py", "line": 3}),
                "lsp hover: `symbol` is missing: expected the symbol on that line, or a piece of the line that names it",
            ),
            (
                json!({"action": "references", "file": "a.py", "symbol": "x"}),
                "lsp references: `line` is missing: expected the number of the line, counted from 1",
            ),
            (
                json!({"action": "definition", "file": "a.py", "symbol": "x", "line": 0}),
                "lsp definition: `line` is 0: expected the number of a line, counted from 1",
            ),
            (
                json!({"action": "diagnostics"}),
                "lsp diagnostics: `file` is missing: expected a file of the work folder, or `*` for the whole project",
            ),
            (
                json!({"action": "hover", "file": "*", "line": 1, "symbol": "x"}),
                "lsp hover: `file` is `*`: expected one file of the work folder",
            ),
            (
                json!({"action": "status", "line": 4}),
                "lsp status: `line` came with 4: this action takes nothing else",
            ),
            (
                json!({"action": "symbols"}),
                "lsp symbols: `query` is missing: expected what to look for in the whole project, or `file` for the symbols of one file",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(read(given), Err(expected.to_owned()));
        }
        for (given, field) in [
            (json!({"action": "hover", "file": "a.py", "line": "3", "symbol": "x"}), "`line`"),
            (json!({"action": "rename"}), "`action`"),
            (json!({"action": "hover", "column": 3}), "column"),
        ] {
            let error = read(given).unwrap_err();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn the_schema_is_one_flat_object() {
        let schema = schema_of::<Arguments>();
        assert_eq!(schema["type"], "object");
        assert!(schema.get("oneOf").is_none() && schema.get("anyOf").is_none(), "{schema}");
        assert_eq!(schema["properties"].as_object().map(serde_json::Map::len), Some(6));
        assert_eq!(schema["required"], json!(["action"]));
    }
}
