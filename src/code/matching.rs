//! Finds a pattern in a parsed text.
//!
//! ast-grep's matcher decides; what is ours is to ask it only at nodes of the right
//! kind. "The same text" of a metavariable that stands twice ignores white space and
//! comments: where it could be for a comment that two pieces differ, they are compared
//! a second time without them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use ast_grep_core::matcher::{NodeMatch, PatternNode};
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::{Matcher, Node, Pattern, matcher::MatcherExt};

use super::reading::{Reading, Word};
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

/// Visits every match of every reading, in the order of the text, nested ones as well.
/// What is visited comes with the place of its reading.
pub(crate) fn each(
    parsed: &Arc<Parsed>,
    readings: &[&Reading],
    mut visit: impl FnMut(usize, Match<'_, '_>),
) {
    let seeing = Root::doc(Tree::of(parsed));
    let repeats = readings.iter().any(|reading| reading.repeats);
    let blind = repeats.then(|| (Root::doc(Tree::without_comments(parsed)), parsed.extras()));
    let wanted = Wanted::of(readings);
    for (at, kind) in parsed.kinds().iter().enumerate() {
        for index in wanted.readings(*kind) {
            let Some(reading) = readings.get(*index) else { continue };
            let found = reading.pattern.match_node(adopt(&seeing, at)).or_else(|| {
                let (blind, extras) = blind.as_ref().filter(|_| reading.repeats)?;
                let end = at + parsed.node(at).size();
                let next = extras.get(extras.partition_point(|extra| *extra <= at));
                let commented = next.is_some_and(|extra| *extra < end);
                commented.then(|| reading.pattern.match_node(adopt(blind, at))).flatten()
            });
            if let Some(found) = found {
                visit(*index, Match { at, found, pattern: &reading.pattern });
            }
        }
    }
}

/// Which readings a node is worth trying with.
struct Wanted {
    by_kind: HashMap<u16, Vec<usize>>,
    /// The kinds of the table, small ones as bits: most nodes are none of them.
    seen: Vec<bool>,
    /// Those that any node may match.
    any: Vec<usize>,
}

impl Wanted {
    fn of(readings: &[&Reading]) -> Self {
        let (mut by_kind, mut any) = (HashMap::<u16, Vec<usize>>::new(), Vec::new());
        for (index, reading) in readings.iter().enumerate() {
            match &reading.pattern.node {
                PatternNode::Terminal { kind_id, .. } | PatternNode::Internal { kind_id, .. }
                    if *kind_id != ERROR =>
                {
                    by_kind.entry(*kind_id).or_default().push(index);
                }
                _ => any.push(index),
            }
        }
        let mut seen = vec![false; usize::from(by_kind.keys().max().copied().unwrap_or(0)) + 1];
        for (kind, indexes) in &mut by_kind {
            indexes.extend(&any);
            indexes.sort_unstable();
            if let Some(seen) = seen.get_mut(usize::from(*kind)) {
                *seen = true;
            }
        }
        Self { by_kind, seen, any }
    }

    fn readings(&self, kind: u16) -> &[usize] {
        match self.seen.get(usize::from(kind)) {
            Some(true) => self.by_kind.get(&kind).map_or(&self.any, Vec::as_slice),
            _ => &self.any,
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
    each(parsed, &[reading], |_, found| all.push(found.found()));
    all
}

/// Returns which of the readings a text may match: those whose every word it holds.
pub(crate) fn possible(text: &str, readings: &[&Reading]) -> Vec<bool> {
    // Readings of one pattern have most of their words in common.
    let mut known: Vec<(&Word, bool)> = Vec::new();
    let mut possible = Vec::with_capacity(readings.len());
    for reading in readings {
        let mut all = true;
        for word in &reading.literals {
            let asked = known.iter().find(|(asked, _)| *asked == word).map(|(_, holds)| *holds);
            let holds = asked.unwrap_or_else(|| word.is_in(text));
            if asked.is_none() {
                known.push((word, holds));
            }
            if !holds {
                all = false;
                break;
            }
        }
        possible.push(all);
    }
    possible
}
