//! Finds a pattern in a parsed text.
//!
//! ast-grep's matcher decides; what is ours is to ask it only at nodes of the right
//! kind. "The same text" of a metavariable that stands twice ignores white space and
//! comments: where it could be for a comment that two pieces differ, they are compared
//! a second time without them.

use std::ops::Range;
use std::sync::Arc;

use ast_grep_core::matcher::{NodeMatch, PatternNode};
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::source::SgNode;
use ast_grep_core::{Matcher, Node, Pattern, matcher::MatcherExt};

use super::reading::Reading;
use super::tree::{ERROR, Parsed, Tree};

type Root = ast_grep_core::AstGrep<Tree>;

/// What a metavariable stands for in a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Its name, without dollars.
    pub(crate) name: String,
    /// Is it a list.
    pub(crate) many: bool,
    /// Its bytes; none for an empty list.
    pub(crate) range: Option<Range<usize>>,
}

/// One match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The node, by its place in the walk.
    pub(crate) node: usize,
    /// The bytes of the node.
    pub(crate) range: Range<usize>,
    /// Where the last thing ends that the pattern matched, where that can be told.
    pub(crate) matched_to: Option<usize>,
    /// What the metavariables stand for, by name.
    pub(crate) captured: Vec<Captured>,
}

/// Makes a pattern of a node.
pub(super) fn pattern_of(tree: Tree, at: usize) -> Pattern {
    let root = Root::doc(tree);
    Pattern::from(adopt(&root, at))
}

fn adopt(root: &Root, at: usize) -> Node<'_, Tree> {
    root.adopt(root.root().get_doc().node(at))
}

/// Visits every match, in the order of the text, nested ones as well.
pub(crate) fn each(parsed: &Arc<Parsed>, reading: &Reading, mut visit: impl FnMut(Match<'_, '_>)) {
    let wanted = match &reading.pattern.node {
        PatternNode::MetaVar { .. } => None,
        PatternNode::Terminal { kind_id, .. } | PatternNode::Internal { kind_id, .. } => {
            (*kind_id != ERROR).then_some(*kind_id)
        }
    };
    let seeing = Root::doc(Tree::of(parsed));
    let blind = reading.repeats.then(|| Root::doc(Tree::without_comments(parsed)));
    for (at, kind) in parsed.kinds().iter().enumerate() {
        if wanted.is_some_and(|wanted| wanted != *kind) {
            continue;
        }
        let found = reading.pattern.match_node(adopt(&seeing, at)).or_else(|| {
            let blind = blind.as_ref()?;
            let commented = parsed.node(at).walk().any(|node| node.is_extra());
            commented.then(|| reading.pattern.match_node(adopt(blind, at))).flatten()
        });
        if let Some(found) = found {
            visit(Match { at, found, pattern: &reading.pattern });
        }
    }
}

/// A match while the tree is being looked at.
pub(crate) struct Match<'t, 'p> {
    at: usize,
    found: NodeMatch<'t, Tree>,
    pattern: &'p Pattern,
}

impl Match<'_, '_> {
    /// Returns the node's place in the walk.
    pub(crate) fn node(&self) -> usize {
        self.at
    }

    /// Takes it out of the tree.
    pub(crate) fn found(&self) -> Found {
        let env = self.found.get_env();
        let mut captured: Vec<_> = env
            .get_matched_variables()
            .filter_map(|variable| match variable {
                MetaVariable::Capture(name, _) => {
                    let range = env.get_match(&name).map(Node::range);
                    Some(Captured { name, many: false, range })
                }
                MetaVariable::MultiCapture(name) => {
                    let nodes = env.get_multiple_matches(&name);
                    let ends = nodes.first().zip(nodes.last());
                    let range = ends.map(|(first, last)| first.range().start..last.range().end);
                    Some(Captured { name, many: true, range })
                }
                MetaVariable::Dropped(_) | MetaVariable::Multiple => None,
            })
            .collect();
        captured.sort_by(|a, b| a.name.cmp(&b.name));
        let node = self.found.get_node();
        let range = node.range();
        let matched_to =
            self.pattern.get_match_len(node.clone()).map(|length| range.start + length);
        Found { node: self.at, range, matched_to, captured }
    }
}

/// Returns all matches of a reading.
pub(crate) fn all(parsed: &Arc<Parsed>, reading: &Reading) -> Vec<Found> {
    let mut all = Vec::new();
    each(parsed, reading, |found| all.push(found.found()));
    all
}

/// Says whether a text holds all that a reading needs.
pub(crate) fn may_match(text: &str, reading: &Reading) -> bool {
    let holds = |literal: &String| memchr::memmem::find(text.as_bytes(), literal.as_bytes());
    reading.literals.iter().all(|literal| holds(literal).is_some())
}
