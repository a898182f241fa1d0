//! What of a match the pattern accounts for.
//!
//! The matcher passes over comments and unnamed tokens between the pieces of a pattern,
//! and over everything after the last one, also inside. So every leaf of the match is
//! held against the metavariables and, in order, against the pattern's own leaves.

use std::ops::Range;

use ast_grep_core::matcher::PatternNode;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::source::SgNode;

use super::Left;
use crate::code::matching::Found;
use crate::code::reading::Reading;
use crate::code::tree::{Parsed, TreeNode};

/// What a pattern accounts for.
pub(super) enum Cover {
    /// All of the match, up to this byte. What follows stays where it is.
    Whole(usize),
    /// Not all of it.
    Leaves(Left),
}

/// Gives every wildcard a name, so that what it stands for is known.
pub(super) fn with_names(reading: &Reading) -> Reading {
    let mut named = reading.clone();
    let mut next = 0;
    name(&mut named.pattern.node, &mut next);
    named
}

fn name(node: &mut PatternNode, next: &mut usize) {
    match node {
        PatternNode::MetaVar { meta_var } => {
            *next += 1;
            // No name in a pattern begins with a digit.
            match meta_var {
                MetaVariable::Dropped(named) => {
                    *meta_var = MetaVariable::Capture(next.to_string(), *named);
                }
                MetaVariable::Multiple => *meta_var = MetaVariable::MultiCapture(next.to_string()),
                MetaVariable::Capture(..) | MetaVariable::MultiCapture(_) => {}
            }
        }
        PatternNode::Internal { children, .. } => {
            children.iter_mut().for_each(|child| name(child, next));
        }
        PatternNode::Terminal { .. } => {}
    }
}

struct Wanted<'p> {
    kind: u16,
    /// Named leaves are compared by text as well.
    text: Option<&'p str>,
    /// The matcher passes over unnamed tokens right behind a list.
    optional: bool,
}

impl Wanted<'_> {
    fn is(&self, node: &TreeNode<'_>) -> bool {
        self.kind == node.kind_id() && self.text.is_none_or(|text| text == node.source())
    }
}

fn leaves<'p>(node: &'p PatternNode, after_list: &mut bool, out: &mut Vec<Wanted<'p>>) {
    match node {
        PatternNode::Terminal { text, is_named, kind_id } => {
            *after_list &= !is_named;
            let text = is_named.then_some(text.as_str());
            out.push(Wanted { kind: *kind_id, text, optional: *after_list });
        }
        PatternNode::Internal { children, .. } => {
            *after_list = false;
            children.iter().for_each(|child| leaves(child, after_list, out));
            *after_list = false;
        }
        PatternNode::MetaVar { meta_var } => {
            *after_list = matches!(meta_var, MetaVariable::MultiCapture(_));
        }
    }
}

/// Says what a pattern accounts for in a match. The pattern's wildcards must have names.
pub(super) fn cover(parsed: &Parsed, reading: &Reading, found: &Found) -> Cover {
    let mut wanted = Vec::new();
    leaves(&reading.pattern.node, &mut false, &mut wanted);
    let mut wanted = wanted.as_slice();
    let captured: Vec<_> =
        found.captured.iter().filter_map(|captured| captured.range.clone()).collect();
    let root = parsed.node(found.node);
    let (mut at, last) = (root.index(), root.index() + root.size());
    let (mut loose, mut end) = (Vec::new(), found.range.start);
    while at < last {
        let node = parsed.node(at);
        let skipped = wanted.iter().take_while(|wanted| wanted.optional && !wanted.is(&node));
        let skipped = skipped.count();
        if within(&node.span(), &captured) {
            end = end.max(node.span().end);
            at += node.size();
        } else if wanted.get(skipped).is_some_and(|wanted| wanted.is(&node)) {
            wanted = wanted.get(skipped + 1..).unwrap_or_default();
            end = end.max(node.span().end);
            at += node.size();
        } else if node.is_extra() || node.is_leaf() {
            loose.push(node);
            at += node.size();
        } else {
            at += 1;
        }
    }
    // The matcher cannot tell where a match with an empty list ends.
    let end = found.matched_to.unwrap_or(end);
    match loose.into_iter().filter_map(|node| unaccounted(node, end, reading.head)).min() {
        Some(left) => Cover::Leaves(left),
        None => Cover::Whole(end),
    }
}

fn within(span: &Range<usize>, captured: &[Range<usize>]) -> bool {
    captured.iter().any(|range| range.start <= span.start && span.end <= range.end)
}

/// Says what is lost with a leaf that nothing accounts for.
fn unaccounted(node: TreeNode<'_>, end: usize, head: bool) -> Option<Left> {
    let after = node.span().start >= end;
    let text = node.source().trim();
    if text.is_empty() || (!node.is_named() && matches!(text, "," | ";")) {
        None
    } else if node.is_extra() {
        // Behind the end it stays where it is.
        (!after).then_some(Left::Comment)
    } else if after && head {
        None
    } else {
        Some(Left::Code)
    }
}
