//! A pattern as a tree of its own: what is dropped from it, and what it needs.

use ast_grep_core::matcher::PatternNode;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::source::SgNode;
use ast_grep_core::tree_sitter::TSLanguage;
use ast_grep_language::SupportLang;

use super::Word;
use crate::code::tree::{Parsed, grammar};

/// Turns a statement that is only `$$$B;` into the list itself.
pub(super) fn lift(node: &mut PatternNode) -> bool {
    let PatternNode::Internal { children, .. } = node else { return false };
    if let [
        PatternNode::MetaVar { meta_var: MetaVariable::MultiCapture(_) | MetaVariable::Multiple },
        PatternNode::Terminal { text, is_named: false, .. },
    ] = children.as_slice()
        && text == ";"
    {
        *node = children.swap_remove(0);
        return true;
    }
    children.iter_mut().fold(false, |lifted, child| lift(child) | lifted)
}

/// Drops the commas beside a list: there are none where the list is empty.
pub(super) fn loosen(node: &mut PatternNode) {
    let PatternNode::Internal { children, .. } = node else { return };
    children.iter_mut().for_each(loosen);
    let list = |node: Option<&PatternNode>| {
        matches!(
            node,
            Some(PatternNode::MetaVar {
                meta_var: MetaVariable::MultiCapture(_) | MetaVariable::Multiple
            })
        )
    };
    let comma = |node: &PatternNode| matches!(node, PatternNode::Terminal { text, is_named: false, .. } if text == ",");
    let mut at = 0;
    while at < children.len() {
        // One after a list is passed over by the matcher itself.
        let before_list = list(children.get(at + 1));
        if before_list && children.get(at).is_some_and(comma) {
            children.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Returns the name of the kind of a pattern's root.
pub(super) fn kind_of(node: &PatternNode, parsed: &Parsed) -> String {
    let id = match node {
        PatternNode::MetaVar { .. } => return "any node".to_owned(),
        PatternNode::Terminal { kind_id, .. } | PatternNode::Internal { kind_id, .. } => *kind_id,
    };
    let node = parsed.root().walk().find(|node| node.kind_id() == id);
    node.map_or_else(|| "ERROR".to_owned(), |node| node.kind_name().to_owned())
}

/// What a pattern holds that a text must hold as well, and the names that it binds.
pub(super) struct Needs<'p> {
    pub(super) words: Vec<Word>,
    pub(super) names: Vec<&'p str>,
    grammar: TSLanguage,
    /// Keywords are written in capitals or not, as one likes.
    any_case: bool,
    /// The matcher passes over unnamed tokens right behind a list.
    after_list: bool,
}

impl<'p> Needs<'p> {
    /// Looks through a pattern.
    pub(super) fn of(node: &'p PatternNode, language: SupportLang) -> Self {
        let mut needs = Self {
            words: Vec::new(),
            names: Vec::new(),
            grammar: grammar(language),
            any_case: language == SupportLang::Php,
            after_list: false,
        };
        needs.collect(node);
        needs
    }

    fn collect(&mut self, node: &'p PatternNode) {
        match node {
            PatternNode::Terminal { text, is_named, kind_id } => {
                let kind = self.grammar.node_kind_for_id(*kind_id).unwrap_or_default();
                let word = match is_named {
                    true => Some(named(text, kind)),
                    false if self.after_list || self.any_case => None,
                    false => token(text, kind),
                };
                self.after_list &= !is_named;
                self.words.extend(
                    word.filter(|word| !word.text.is_empty() && !self.words.contains(word)),
                );
            }
            PatternNode::Internal { children, .. } => {
                self.after_list = false;
                children.iter().for_each(|child| self.collect(child));
                self.after_list = false;
            }
            PatternNode::MetaVar { meta_var } => {
                use MetaVariable::{Capture, MultiCapture, Multiple};
                if let Capture(name, _) | MultiCapture(name) = meta_var {
                    self.names.push(name);
                }
                self.after_list = matches!(meta_var, Multiple | MultiCapture(_));
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Named leaves are compared by text. An identifier stands by itself wherever it stands;
/// other texts need not: that of a string may follow an escape.
fn named(text: &str, kind: &str) -> Word {
    Word { text: text.to_owned(), whole: is_word(text) && kind.ends_with("identifier") }
}

/// Unnamed tokens go by kind alone. Only of keywords and operators is it sure that the
/// kind is the text: `# define` is of the kind `#define`.
fn token(text: &str, kind: &str) -> Option<Word> {
    let operator = |byte: u8| b"=<>!+-*/%&|^~?:.".contains(&byte);
    let sure = text == kind && text.len() > 1 && (is_word(text) || text.bytes().all(operator));
    sure.then(|| Word { text: text.to_owned(), whole: is_word(text) })
}

/// Tells readings apart: kinds and texts, in order.
pub(super) fn shape(node: &PatternNode) -> String {
    match node {
        PatternNode::MetaVar { meta_var } => format!("{meta_var:?}"),
        PatternNode::Terminal { text, kind_id, .. } => format!("{kind_id}:{text}"),
        PatternNode::Internal { kind_id, children } => {
            let children: Vec<_> = children.iter().map(shape).collect();
            format!("{kind_id}({})", children.join(" "))
        }
    }
}
