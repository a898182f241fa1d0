//! Parsing, with an end: it can be stopped, and what is too much is refused.

use std::ops::ControlFlow;
use std::sync::Arc;

use ast_grep_core::tree_sitter::TSLanguage;
use ast_grep_language::SupportLang;
use tree_sitter::{ParseOptions, Parser, Tree as ParserTree};

use super::tree::{ERROR, EXTRA, MISSING, NAMED, Parsed, grammar};

/// Nodes inside each other. The matcher compares subtrees by recursion, which takes
/// some hundred bytes of stack each.
const DEEPEST: usize = 2_000;

/// Why a text has no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// The caller wanted it to stop.
    #[error("stopped before it was parsed")]
    Stopped,
    /// It is nested too deeply.
    #[error("nested more than {DEEPEST} levels deep")]
    TooDeep,
    /// The grammar and the parser do not go together.
    #[error("the parser refuses this language's grammar")]
    Grammar,
}

/// A parser of one language. Parsers are cheap to make and dear to keep: each holds the
/// memory of the largest text that it has seen.
pub(crate) struct TextParser {
    language: SupportLang,
    grammar: TSLanguage,
    /// Which kinds have a name: asked of every node, a table is cheaper than the parser.
    named: Vec<bool>,
    parser: Parser,
}

impl TextParser {
    /// Makes a parser.
    pub(crate) fn new(language: SupportLang) -> Result<Self, ParseError> {
        let (mut parser, grammar) = (Parser::new(), grammar(language));
        parser.set_language(&grammar).map_err(|_| ParseError::Grammar)?;
        let kinds = u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let named = (0..kinds).map(|kind| grammar.node_kind_is_named(kind)).collect();
        Ok(Self { language, grammar, named, parser })
    }

    /// Parses a text, unless it is told to stop.
    pub(crate) fn parse(
        &mut self,
        text: &Arc<String>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Parsed, ParseError> {
        let bytes = text.as_bytes();
        let mut watch = |_: &tree_sitter::ParseState| match stop() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
        let tree = self.parser.parse_with_options(&mut read, None, Some(options));
        // A parse that was stopped would otherwise be gone on with.
        self.parser.reset();
        self.compact(&tree.ok_or(ParseError::Stopped)?, text)
    }
}

/// Parses one text of which nobody awaits that it takes long.
pub(crate) fn parse(text: &str, language: SupportLang) -> Result<Parsed, ParseError> {
    TextParser::new(language)?.parse(&Arc::new(text.to_owned()), &|| false)
}

impl TextParser {
    /// Takes over what the parser found, node by node.
    fn compact(&self, tree: &ParserTree, text: &Arc<String>) -> Result<Parsed, ParseError> {
        let root = tree.root_node();
        let (count, flawed) = (root.descendant_count(), root.has_error());
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut kinds = Vec::with_capacity(count);
        let mut flags = Vec::with_capacity(count);
        let (mut starts, mut ends) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut sizes = Vec::with_capacity(count);
        let (mut open, mut faults) = (Vec::new(), 0);
        let mut cursor = tree.walk();
        'nodes: loop {
            let (node, at) = (cursor.node(), sizes.len());
            let kind = node.kind_id();
            let named = self.named.get(usize::from(kind)).copied().unwrap_or(true);
            let missing = flawed && node.is_missing();
            faults += usize::from(missing || kind == ERROR);
            let flag = |set: bool, flag: u8| if set { flag } else { 0 };
            kinds.push(kind);
            flags.push(flag(named, NAMED) | flag(node.is_extra(), EXTRA) | flag(missing, MISSING));
            starts.push(number(node.start_byte()));
            ends.push(number(node.end_byte()));
            sizes.push(1);
            if cursor.goto_first_child() {
                open.push(at);
                if open.len() > DEEPEST {
                    return Err(ParseError::TooDeep);
                }
                continue;
            }
            while !cursor.goto_next_sibling() {
                let Some(parent) = open.pop() else { break 'nodes };
                cursor.goto_parent();
                let nodes = number(sizes.len() - parent);
                if let Some(size) = sizes.get_mut(parent) {
                    *size = nodes;
                }
            }
        }
        Ok(Parsed {
            text: Arc::clone(text),
            language: self.language,
            grammar: self.grammar.clone(),
            kinds: kinds.into(),
            flags: flags.into(),
            starts: starts.into(),
            ends: ends.into(),
            sizes: sizes.into(),
            faults,
        })
    }
}
