//! A cell of JavaScript or TypeScript, made into a script whose names outlive it.
//!
//! What a cell declares at its top must be there in the next cell, must be declarable
//! again, and must be there also if the cell throws half-way. So every top-level name
//! becomes a script-level `var`. A cell that awaits runs inside async functions, with
//! the `var`s outside of them and assignments where the declarations stood: the
//! bindings are live, nothing is copied out at the end. Functions stay where they are,
//! between those async functions, so that they hoist as always.
//!
//! The edits never add a line, and most keep the columns: where an error is said to be
//! is where it is in the cell.

use ast_grep_core::source::SgNode as _;
use ast_grep_language::SupportLang;

use super::parse::{ParseError, parse};
use super::tree::{Parsed, TreeNode};

mod edits;
mod imports;
mod names;
#[cfg(test)]
mod tests;
mod types;

use edits::Edits;

/// What the runner must define: it is given the value of the last expression.
pub(crate) const ECHO: &str = "__cell_echo";
/// What the runner must define: it is given the async parts of a cell, to be run in
/// their order once the script has ended.
pub(crate) const PART: &str = "__cell_part";
/// What the runner must define: it is given a module and the names that were imported
/// from it, throws if one is not there, and returns the module.
pub(crate) const NAMED: &str = "__cell_named";

/// What a cell is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// JavaScript, with JSX refused by the engine.
    JavaScript,
    /// TypeScript, of which the types are blanked and never checked.
    TypeScript,
}

/// What the runner runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// The text.
    pub(crate) code: String,
    /// By how much the first line was moved to the right.
    pub(crate) shift: usize,
    /// Whether it has async parts.
    pub(crate) awaits: bool,
}

/// Why a cell is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It does not parse.
    #[error("SyntaxError: does not parse from line {line}, column {column} on\n{shown}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The line with a caret below it.
        shown: String,
    },
    /// It is TypeScript that is more than types, or has no meaning in a cell.
    #[error("line {line}: {what}")]
    Unsupported {
        /// The line, from 1.
        line: usize,
        /// What it is, and what to write instead.
        what: &'static str,
    },
    /// It was not parsed.
    #[error(transparent)]
    Unparsed(#[from] ParseError),
}

/// Makes a cell into a script.
pub(crate) fn script(source: &str, dialect: Dialect) -> Result<Script, Refusal> {
    let language = match dialect {
        Dialect::JavaScript => SupportLang::JavaScript,
        Dialect::TypeScript => SupportLang::TypeScript,
    };
    let parsed = parse(source, language)?;
    if let Some(at) = parsed.first_fault() {
        return Err(fault(source, at));
    }
    let mut cell = Cell {
        parsed: &parsed,
        dialect,
        awaits: names::awaits(parsed.root()),
        edits: Edits::new(source),
        names: Vec::new(),
    };
    if dialect == Dialect::TypeScript {
        types::blank(&parsed, &mut cell.edits)?;
    }
    cell.rewrite()
}

/// Shows where a text stops being one of its language. That is where the piece begins
/// that the grammar can make nothing of, at or before the token that an engine would name.
fn fault(source: &str, at: usize) -> Refusal {
    let before = source.get(..at).unwrap_or(source);
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = source.get(start..at).unwrap_or_default().chars().count();
    let text = source.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    let shown = format!("{text}\n{}^", " ".repeat(column));
    Refusal::Syntax { line, column: column + 1, shown }
}

/// Refuses something for what it is.
fn unsupported(parsed: &Parsed, node: TreeNode<'_>, what: &'static str) -> Refusal {
    Refusal::Unsupported { line: parsed.line_of(node.span().start), what }
}

/// One cell while it is rewritten.
struct Cell<'c> {
    parsed: &'c Parsed,
    dialect: Dialect,
    awaits: bool,
    edits: Edits<'c>,
    /// What it declares, where the declarations become assignments.
    names: Vec<String>,
}

impl<'c> Cell<'c> {
    fn rewrite(mut self) -> Result<Script, Refusal> {
        let statements: Vec<_> = self.parsed.root().kids().filter(does_something).collect();
        for (at, statement) in statements.iter().enumerate() {
            self.statement(*statement, at + 1 == statements.len())?;
        }
        if !self.awaits {
            return Ok(Script { code: self.edits.applied(), shift: 0, awaits: false });
        }
        self.names.sort();
        self.names.dedup();
        let vars = match self.names.as_slice() {
            [] => String::new(),
            names => format!("var {};", names.join(",")),
        };
        let head = format!("{vars}{PART}(async()=>{{");
        // On a line of its own: the cell may end in a comment.
        let code = format!("{head}{}\n}});", self.edits.applied());
        Ok(Script { code, shift: head.len(), awaits: true })
    }

    fn statement(&mut self, statement: TreeNode<'c>, last: bool) -> Result<(), Refusal> {
        match statement.kind_name() {
            "import_statement" => self.import(statement),
            "export_statement" => self.export(statement, last),
            "expression_statement" if last => {
                self.echo(statement);
                Ok(())
            }
            _ => {
                self.declaration(statement);
                Ok(())
            }
        }
    }

    fn declaration(&mut self, statement: TreeNode<'c>) {
        let span = statement.span();
        match statement.kind_name() {
            "lexical_declaration" | "variable_declaration" => self.variables(statement),
            "class_declaration" | "abstract_class_declaration" => {
                let Some(name) = names::declared(statement) else { return };
                let var = if self.awaits { "" } else { "var " };
                self.edits.insert(span.start, format!("{var}{name}="));
                self.edits.insert_after(span.end, ";".into());
                self.names.push(name);
            }
            "function_declaration" | "generator_function_declaration" if self.awaits => {
                self.edits.insert(span.start, "});".into());
                self.edits.insert_after(span.end, format!(";{PART}(async()=>{{"));
            }
            _ if self.awaits => names::nested_vars(statement, &mut |node| self.nested(node)),
            _ => {}
        }
    }

    /// `const`, `let` and `var` at the top.
    fn variables(&mut self, statement: TreeNode<'c>) {
        let Some(word) = statement.kids().next() else { return };
        let keyword = word.source();
        if !matches!(keyword, "const" | "let" | "var") {
            return;
        }
        for declarator in statement.kids().filter(|kid| kid.kind_name() == "variable_declarator") {
            names::bound(declarator, &mut self.names);
            // Run again, such a cell starts with nothing, as the first time.
            let valued = declarator.kids().any(|kid| kid.kind_name() == "=");
            if keyword == "let" && !valued {
                self.edits.insert_after(declarator.span().end, "=void 0".into());
            }
        }
        self.keyword(word);
        self.closed(statement);
    }

    /// A `var` inside a block or in the head of a loop: it belongs to the whole cell.
    fn nested(&mut self, node: TreeNode<'c>) {
        if node.kind_name() == "for_in_statement" {
            let word = node.kids().find(|kid| kid.source() == "var");
            let Some(word) = word else { return };
            self.edits.replace(word.span(), "   ".into());
            if let Some(left) = node.kids().skip_while(|kid| kid.index() != word.index()).nth(1) {
                names::pattern(left, &mut self.names);
            }
            return;
        }
        for declarator in node.kids().filter(|kid| kid.kind_name() == "variable_declarator") {
            names::bound(declarator, &mut self.names);
        }
        if let Some(word) = node.kids().next() {
            self.keyword(word);
        }
        self.closed(node);
    }

    /// Replaces the word that declares. `0,` makes what follows an expression, also a
    /// pattern that would otherwise open a block or go on with the line before.
    fn keyword(&mut self, word: TreeNode<'c>) {
        let new = if self.awaits { "0," } else { "var" };
        let width = word.span().len();
        self.edits.replace(word.span(), format!("{new:width$}"));
    }

    /// Ends a statement that relies on the end of its line.
    fn closed(&mut self, statement: TreeNode<'c>) {
        if !statement.source().ends_with(';') {
            self.edits.insert_after(statement.span().end, ";".into());
        }
    }

    /// Hands the value of an expression to the runner.
    fn echo(&mut self, statement: TreeNode<'c>) {
        let Some(value) = statement.kids().find(|kid| kid.is_named() && !kid.is_extra()) else {
            return;
        };
        // Two parentheses: it may be a sequence.
        self.edits.insert(value.span().start, format!("{ECHO}(("));
        self.edits.insert_after(value.span().end, "))".into());
        self.closed(statement);
    }

    /// Nobody imports from a cell: what it exports, it declares.
    fn export(&mut self, statement: TreeNode<'c>, last: bool) -> Result<(), Refusal> {
        let kids: Vec<_> = statement.kids().collect();
        let has = |word: &str| kids.iter().any(|kid| kid.kind_name() == word);
        if has("from") {
            let what = "a cell has nobody to re-export to: import the names instead";
            return Err(unsupported(self.parsed, statement, what));
        }
        if has("export_clause") || has("type") {
            self.edits.blank(statement.span());
            return Ok(());
        }
        let words = |kid: &&TreeNode<'c>| matches!(kid.kind_name(), "export" | "default");
        for word in kids.iter().filter(words) {
            self.edits.blank(word.span());
        }
        let rest = kids.iter().find(|kid| kid.is_named() && !kid.is_extra());
        let Some(rest) = rest else { return Ok(()) };
        match has("default") && names::declared(*rest).is_none() {
            // An expression, though it may look like a declaration.
            true => {
                self.edits.insert(rest.span().start, "0,".into());
                self.closed(statement);
                Ok(())
            }
            false => self.statement(*rest, last),
        }
    }
}

/// Says whether a statement is more than a comment or a semicolon.
fn does_something(statement: &TreeNode<'_>) -> bool {
    let idle = matches!(statement.kind_name(), "empty_statement" | "comment" | ";");
    statement.is_named() && !idle
}
