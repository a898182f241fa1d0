//! How a pattern is read.
//!
//! First as it stands, which is how ast-grep's own command reads it. A piece of code
//! often means something only where it belongs (a match arm, a member, a named
//! argument), so it is also read in the places of `contexts`. A reading counts if
//! nothing in it failed to parse and no metavariable got lost. `$$$NAME` is zero or
//! more also where a comma stands beside it, and `$$$NAME;` is a list of statements.

mod contexts;
mod pattern;

use std::ops::Range;
use std::sync::Arc;

use ast_grep_core::language::Language;
use ast_grep_core::matcher::PatternNode;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::source::SgNode;
use ast_grep_core::{Pattern, PatternError};
use ast_grep_language::SupportLang;

use self::contexts::{Context, contexts};
use self::pattern::{Needs, kind_of, lift, loosen, shape};
use super::parse::{ParseError, parse};
use super::tree::{Parsed, Tree, TreeNode};
use super::{explain, matching, template};

/// Bytes of a pattern: a person writes a few lines.
const LONGEST: usize = 20_000;

/// A way to read a pattern.
#[derive(Clone)]
pub(crate) struct Reading {
    /// What the matcher gets.
    pub(crate) pattern: Pattern,
    /// The name of the kind of node that it is read as.
    pub(crate) kind: String,
    /// Where it was read; none for the plain reading.
    pub(crate) place: Option<&'static str>,
    /// Did all of it parse.
    pub(crate) clean: bool,
    /// Is it the head of something whose body it leaves open.
    pub(crate) head: bool,
    /// What a file must hold to match.
    pub(crate) literals: Vec<Word>,
    /// Does a metavariable stand in it more than once.
    pub(crate) repeats: bool,
}

/// A text that a file must hold to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text.
    pub(crate) text: String,
    /// Does it stand by itself, as identifiers do.
    pub(crate) whole: bool,
}

impl Word {
    /// Says whether a text holds it.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let letter = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let bytes = text.as_bytes();
        memchr::memmem::find_iter(bytes, self.text.as_bytes()).any(|at| {
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            !self.whole || !(letter(before) || letter(bytes.get(at + self.text.len())))
        })
    }
}

/// The ways to read a pattern.
pub(crate) struct Readings {
    /// As it stands.
    pub(crate) plain: Option<Reading>,
    /// In the places where it could stand.
    pub(crate) others: Vec<Reading>,
    /// What is wrong with the plain one.
    pub(crate) fault: Option<String>,
}

impl Readings {
    /// Returns all of them, the plain one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Reading> {
        self.plain.iter().chain(&self.others)
    }

    /// Chooses those that count, by how many matches each of `all` has: the plain one
    /// if it finds anything, else whichever do.
    pub(crate) fn chosen(&self, matches: &[usize], to_edit: bool) -> Vec<usize> {
        let usable = |reading: &Reading| !to_edit || reading.rewritable();
        let found = |index: usize| matches.get(index).is_some_and(|found| *found > 0);
        let plain = self.plain.as_ref();
        if plain.is_some_and(|plain| usable(plain) && (plain.clean || self.others.is_empty()))
            && found(0)
        {
            return vec![0];
        }
        let all = self.all().enumerate();
        let mut chosen: Vec<_> = all
            .filter(|(index, reading)| found(*index) && usable(reading) && reading.clean)
            .map(|(index, _)| index)
            .collect();
        if chosen.is_empty() && !to_edit {
            chosen.extend((plain.is_some() && found(0)).then_some(0));
        }
        chosen
    }
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPattern {
    /// Nothing in it.
    #[error("`pattern` is empty: write the code to look for, with $NAME for what may differ")]
    Empty,
    /// Too much in it.
    #[error("`pattern` has {0} bytes, over the limit of {LONGEST}: look for the shortest piece")]
    TooLong(usize),
    /// Only a list.
    #[error(
        "`{0}` alone matches no one thing: use $NAME for any single node, or put it where a list \
         stands, as in f({0})"
    )]
    OnlyList(String),
    /// Several pieces.
    #[error(
        "`pattern` holds {count} pieces side by side, the second being `{second}`: look for one \
         of them, or put them in what holds them, as in {{ … }}"
    )]
    Several { count: usize, second: String },
    /// It is no code of this language.
    #[error("`pattern` does not parse as {language}: {at}{hint}")]
    NoParse { language: String, at: String, hint: String },
    /// Its nesting.
    #[error("`pattern`: {0}")]
    Parse(ParseError),
}

/// Reads a pattern in every way that makes sense.
pub(crate) fn read(source: &str, language: SupportLang) -> Result<Readings, BadPattern> {
    let source = source.trim();
    if source.is_empty() {
        return Err(BadPattern::Empty);
    }
    if source.len() > LONGEST {
        return Err(BadPattern::TooLong(source.len()));
    }
    if matches!(variable(source), Some(MetaVariable::Multiple | MetaVariable::MultiCapture(_))) {
        return Err(BadPattern::OnlyList(source.to_owned()));
    }
    let code = language.pre_process_pattern(source);
    let wanted = variables(source);
    let bare = parse(&code, language).map_err(BadPattern::Parse)?;
    let (plain, error) = match plain(source, &bare, language) {
        Ok(plain) => (Some(plain), None),
        Err(error) => (None, Some(error)),
    };
    let fault = fault_of(&bare, language);
    let mut plain = plain.filter(|plain| !plain.pattern.has_error() && has_all(plain, &wanted));
    let single = plain
        .as_ref()
        .is_some_and(|plain| matches!(plain.pattern.node, PatternNode::MetaVar { .. }));
    let mut others = Vec::new();
    if !single {
        let lists = plain.as_ref().and_then(|plain| with_lists(&plain.pattern, &bare, language));
        let placed = contexts(language).iter().map(|place| in_context(&code, language, place));
        let mut known = Vec::new();
        for read in std::iter::once(lists).chain(placed).flatten() {
            let shape = shape(&read.pattern.node);
            if !has_all(&read, &wanted) || known.contains(&shape) {
                continue;
            }
            // Read the same where it does parse: a piece need not parse as a whole file.
            match plain.as_mut().filter(|plain| pattern::shape(&plain.pattern.node) == shape) {
                Some(plain) => plain.clean = true,
                None => others.push(read),
            }
            known.push(shape);
        }
    }
    if plain.as_ref().is_none_or(|plain| !plain.clean) && others.is_empty() {
        return Err(refusal(source, language, &bare, error, fault));
    }
    Ok(Readings { plain, others, fault })
}

fn refusal(
    source: &str,
    language: SupportLang,
    bare: &Parsed,
    error: Option<PatternError>,
    fault: Option<String>,
) -> BadPattern {
    let roots: Vec<_> = bare.root().kids().collect();
    if let (Some(PatternError::MultipleNode(_)), [_, second, ..], None) =
        (error, roots.as_slice(), &fault)
    {
        let second = second.source().lines().next().unwrap_or_default();
        let second = shown(second, language);
        return BadPattern::Several { count: roots.len(), second };
    }
    let hint = explain::habits(source).map_or_else(String::new, |hint| format!("; {hint}"));
    let at = fault.unwrap_or_else(|| "it is no piece that could stand anywhere".to_owned());
    BadPattern::NoParse { language: super::language::id(language), at, hint }
}

/// Gives a text of a pattern its dollars back.
pub(crate) fn shown(text: &str, language: SupportLang) -> String {
    match language.expando_char() {
        '$' | '_' => text.to_owned(),
        expando => text.replace(expando, "$"),
    }
}

/// Says where a pattern did not parse, if anywhere.
fn fault_of(bare: &Parsed, language: SupportLang) -> Option<String> {
    let broken = bare.root().walk().find(|node| node.failed() && !is_variable(node, language))?;
    let (start, text) = (broken.span().start, broken.source());
    let before = bare.text().get(..start).unwrap_or_default();
    let line = before.lines().count().max(1);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let text: String = text.chars().take(40).collect();
    Some(format!("line {line}, column {column}, at `{}`", shown(&text, language)))
}

fn is_variable(node: &TreeNode<'_>, language: SupportLang) -> bool {
    language.extract_meta_var(node.source()).is_some()
}

fn plain(source: &str, bare: &Parsed, language: SupportLang) -> Result<Reading, PatternError> {
    let mut pattern = Pattern::try_new(source, language)?;
    let clean = !bare.root().walk().any(|node| node.failed() && !is_variable(&node, language));
    loosen(&mut pattern.node);
    let kind = kind_of(&pattern.node, bare);
    Ok(Reading::new(pattern, kind, None, clean, language))
}

fn in_context(code: &str, language: SupportLang, context: &Context) -> Option<Reading> {
    let code = statements(code, language);
    let whole = format!("{}{code}{}", context.before, context.after);
    let parsed = Arc::new(parse(&whole, language).ok()?);
    let at = context.before.len();
    let range = at..at + code.len();
    let (node, head) = match exactly(&parsed, &range) {
        Some(node) => (node, false),
        None if context.head => (beginning(&parsed, &range)?, true),
        None => return None,
    };
    let broken = node.walk().any(|part| {
        part.failed() && part.span().start < range.end && !is_variable(&part, language)
    });
    if broken || is_variable(&node, language) {
        return None;
    }
    let kind = node.kind_name().to_owned();
    let mut pattern = matching::pattern_of(Tree::of(&parsed), node.index());
    if head && let PatternNode::Internal { children, .. } = &mut pattern.node {
        children.truncate(node.kids().take_while(|child| child.span().end <= range.end).count());
    }
    lift(&mut pattern.node);
    loosen(&mut pattern.node);
    Some(Reading { head, ..Reading::new(pattern, kind, Some(context.place), true, language) })
}

/// The deepest named node that covers exactly these bytes.
fn exactly<'p>(parsed: &'p Parsed, range: &Range<usize>) -> Option<TreeNode<'p>> {
    let nodes = parsed.root().walk().skip(1);
    nodes.filter(|node| node.span() == *range && node.is_named()).last()
}

/// The outermost node that begins with these bytes and whose children end with them.
fn beginning<'p>(parsed: &'p Parsed, range: &Range<usize>) -> Option<TreeNode<'p>> {
    parsed.root().walk().skip(1).find(|node| {
        node.span().start == range.start
            && node.is_named()
            && node.span().end > range.end
            && node.kids().any(|child| child.span().end == range.end)
            && node.kids().count() > 1
    })
}

/// In Dart a lone `$$$B` in a block is no statement without its semicolon.
fn statements(code: &str, language: SupportLang) -> String {
    if language != SupportLang::Dart {
        return code.to_owned();
    }
    let mut out = String::with_capacity(code.len() + 4);
    let mut rest = code;
    while let Some(at) = rest.find("$$$") {
        let name = rest.get(at + 3..).unwrap_or_default();
        let length = name.bytes().take_while(|byte| is_name(*byte)).count();
        let (before, after) = (rest.get(..at).unwrap_or_default(), name.get(length..));
        let after = after.unwrap_or_default();
        out.push_str(rest.get(..at + 3 + length).unwrap_or_default());
        let opens = before.trim_end().ends_with(['{', '}', ';']);
        let closes =
            after.trim_start().starts_with('}') || after.trim_start_matches(' ').starts_with('\n');
        if opens && closes {
            out.push(';');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit()
}

fn with_lists(pattern: &Pattern, bare: &Parsed, language: SupportLang) -> Option<Reading> {
    let mut pattern = pattern.clone();
    lift(&mut pattern.node).then(|| {
        let kind = kind_of(&pattern.node, bare);
        Reading::new(pattern, kind, Some("with `$$$NAME;` as a list of statements"), true, language)
    })
}

impl Reading {
    fn new(
        pattern: Pattern,
        kind: String,
        place: Option<&'static str>,
        clean: bool,
        language: SupportLang,
    ) -> Self {
        let needs = Needs::of(&pattern.node, language);
        let repeats = needs.names.len() > pattern.defined_vars().len();
        let literals = needs.words;
        Self { pattern, kind, place, clean, head: false, literals, repeats }
    }

    /// May matches of it be replaced. Not those of a lone keyword, which stands in
    /// more than what was written, nor those of a pattern that is any node.
    pub(crate) fn rewritable(&self) -> bool {
        self.clean
            && !matches!(
                self.pattern.node,
                PatternNode::MetaVar { .. } | PatternNode::Terminal { is_named: false, .. }
            )
    }

    /// Says in words how the pattern was read.
    pub(crate) fn words(&self) -> String {
        match self.place {
            Some(place) => format!("{} ({place})", self.kind),
            None => self.kind.clone(),
        }
    }
}

fn variable(text: &str) -> Option<MetaVariable> {
    // A language that keeps the dollar reads it as it stands.
    SupportLang::JavaScript.extract_meta_var(text)
}

/// Returns the names that a pattern binds, as they are written.
pub(crate) fn variables(source: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, name) in template::mentions(source) {
        if !name.starts_with('_') && !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn has_all(reading: &Reading, wanted: &[String]) -> bool {
    let bound = reading.pattern.defined_vars();
    wanted.iter().all(|name| bound.contains(name.as_str()))
}

#[cfg(test)]
mod tests;
