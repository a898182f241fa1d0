//! How lines are put in: with the file's own line ends and indentation.
//!
//! A template's further lines are indented from the line on which the match begins; what
//! a metavariable covers moves with the line on which it is put. Lines that begin inside
//! a string are never moved: there, white space is content.

use std::ops::Range;

use ast_grep_core::source::SgNode;

use crate::code::template::{Piece, Template};
use crate::code::tree::Parsed;

/// A piece of the result.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) text: String,
    /// For each line end in the text: must the line after it stay as it is.
    fixed: Vec<bool>,
    /// The indentation that its lines are counted from.
    pub(super) indent: String,
}

impl Rendered {
    /// Begins with nothing, for lines that are indented from here.
    pub(super) fn from(indent: String) -> Self {
        Self { indent, ..Self::default() }
    }

    /// Adds another piece whose lines are indented as they are to be.
    pub(super) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.fixed.extend(other.fixed);
    }
}

/// How one text is laid out.
pub(super) struct Layout<'a> {
    parsed: &'a Parsed,
    line_end: &'static str,
    tabs: bool,
    /// Spaces of one step, for templates that bring tabs.
    step: usize,
}

impl<'a> Layout<'a> {
    /// Looks at a text.
    pub(super) fn of(parsed: &'a Parsed) -> Self {
        let text = parsed.text();
        let crlf = text.matches("\r\n").count();
        let all = text.matches('\n').count();
        let (mut tabs, mut spaces, mut step) = (0, 0, usize::MAX);
        for line in text.lines() {
            let indent = line.len() - line.trim_start_matches(' ').len();
            tabs += usize::from(line.starts_with('\t'));
            if indent > 1 && indent < line.len() {
                spaces += 1;
                step = step.min(indent);
            }
        }
        let step = if (2..=8).contains(&step) { step } else { 4 };
        let line_end = if crlf * 2 > all { "\r\n" } else { "\n" };
        Self { parsed, line_end, tabs: tabs > spaces, step }
    }

    /// Returns the indentation of the line on which a byte stands.
    pub(super) fn indent_at(&self, at: usize) -> String {
        let before = self.parsed.text().get(..at).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.parsed.text().get(start..).unwrap_or_default();
        line.chars().take_while(|letter| matches!(letter, ' ' | '\t')).collect()
    }

    /// Adds a piece of the old text.
    pub(super) fn raw(&self, range: Range<usize>, out: &mut Rendered) {
        let text = self.parsed.text().get(range.clone()).unwrap_or_default();
        for newline in memchr::memchr_iter(b'\n', text.as_bytes()) {
            out.fixed.push(self.is_content(range.start + newline));
        }
        out.text.push_str(text);
    }

    /// Says whether a line end stands inside a string or the like.
    fn is_content(&self, newline: usize) -> bool {
        let mut node = self.parsed.root();
        loop {
            let inner = node
                .kids()
                .find(|child| child.span().start <= newline && newline + 1 < child.span().end);
            match inner {
                Some(inner) => node = inner,
                None => break,
            }
        }
        let kind = node.kind_name();
        let spelled = ["string", "template", "heredoc", "char", "text", "literal"];
        !node.is_extra()
            && ((node.is_leaf() && node.index() != 0 && !node.source().trim().is_empty())
                || spelled.iter().any(|word| kind.contains(word)))
    }

    /// Indents as the file does.
    fn indent(&self, given: &str, step: usize) -> String {
        let columns: usize =
            given.chars().map(|letter| if letter == '\t' { step } else { 1 }).sum();
        if self.tabs {
            format!("{}{}", "\t".repeat(columns / step), " ".repeat(columns % step))
        } else if given.contains('\t') {
            " ".repeat(given.chars().map(|c| if c == '\t' { self.step } else { 1 }).sum())
        } else {
            given.to_owned()
        }
    }
}

/// Writes one template out.
pub(super) struct Writer<'a> {
    layout: &'a Layout<'a>,
    out: Rendered,
    /// The indentation of the line that is being written.
    line: String,
    /// Columns of one step in the template.
    step: usize,
    /// A separator at the beginning of the next text belongs to a list that is empty.
    skip: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(layout: &'a Layout<'a>, base: String, template: &Template) -> Self {
        let lines = template.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.split('\n').skip(1)),
            Piece::Variable { .. } => None,
        });
        let indents = lines.flatten().filter_map(|line| {
            let indent = line.len() - line.trim_start_matches(' ').len();
            (indent > 0).then_some(indent)
        });
        let step = indents.min().filter(|step| *step > 1).unwrap_or(4);
        let out = Rendered::from(base.clone());
        Self { layout, out, line: base, step, skip: false }
    }

    /// Adds text of the template.
    pub(super) fn text(&mut self, text: &str) {
        let text = if std::mem::take(&mut self.skip) { after_separator(text) } else { text };
        for (index, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if index == 0 {
                self.out.text.push_str(line);
                continue;
            }
            self.out.text.push_str(self.layout.line_end);
            self.out.fixed.push(false);
            let code = line.trim_start_matches([' ', '\t']);
            let given = line.get(..line.len() - code.len()).unwrap_or_default();
            self.line = format!("{}{}", self.out.indent, self.layout.indent(given, self.step));
            // Also before a metavariable, which begins the line.
            self.out.text.push_str(&self.line);
            self.out.text.push_str(code);
        }
    }

    /// Adds what a metavariable covers.
    pub(super) fn paste(&mut self, piece: Rendered) {
        self.skip = false;
        let mut fixed = piece.fixed.iter();
        for (index, line) in piece.text.split_inclusive('\n').enumerate() {
            let stays = index == 0 || fixed.next().copied().unwrap_or(true);
            let moved = (!stays).then(|| line.strip_prefix(piece.indent.as_str())).flatten();
            match moved {
                Some(code) if !code.trim().is_empty() => {
                    self.out.text.push_str(&self.line);
                    self.out.text.push_str(code);
                }
                _ => self.out.text.push_str(line),
            }
        }
        self.out.fixed.extend(piece.fixed);
    }

    /// Notes that a metavariable covers nothing, and drops a separator beside it.
    pub(super) fn nothing(&mut self, next: Option<&Piece>) {
        if matches!(next, Some(Piece::Text(next)) if after_separator(next).len() < next.len()) {
            self.skip = true;
            return;
        }
        let text = self.out.text.trim_end_matches([' ', '\t']);
        if let Some(before) = text.strip_suffix(',') {
            let length = before.len();
            self.out.text.truncate(length);
        } else if text.ends_with('\n')
            && matches!(next, Some(Piece::Text(next)) if next.starts_with('\n'))
        {
            // Its line would be blank.
            let length = text.trim_end_matches(['\n', '\r']).len();
            self.out.text.truncate(length);
            self.out.fixed.pop();
        }
    }

    pub(super) fn finish(self) -> Rendered {
        self.out
    }
}

/// Returns what follows a separator and its white space, or the text.
fn after_separator(text: &str) -> &str {
    match text.trim_start().strip_prefix([',', ';']) {
        Some(rest) => rest.trim_start_matches([' ', '\t']),
        None => text,
    }
}
