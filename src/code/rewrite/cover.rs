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
}

fn leaves<'p>(node: &'p PatternNode, out: &mut Vec<Wanted<'p>>) {
    match node {
        PatternNode::Terminal { text, is_named, kind_id } => {
            out.push(Wanted { kind: *kind_id, text: is_named.then_some(text) });
        }
        PatternNode::Internal { children, .. } => {
            children.iter().for_each(|child| leaves(child, out));
        }
        PatternNode::MetaVar { .. } => {}
    }
}

/// Says what a pattern accounts for in a match. The pattern's wildcards must have names.
pub(super) fn cover(parsed: &Parsed, reading: &Reading, found: &Found) -> Cover {
    let mut wanted = Vec::new();
    leaves(&reading.pattern.node, &mut wanted);
    let mut wanted = wanted.into_iter().peekable();
    let captured: Vec<_> =
        found.captured.iter().filter_map(|captured| captured.range.clone()).collect();
    let end = found.matched_to.unwrap_or(found.range.end);
    let root = parsed.node(found.node);
    let (mut at, last) = (root.index(), root.index() + root.size());
    let mut worst = None;
    while at < last {
        let node = parsed.node(at);
        if within(&node.span(), &captured) {
            at += node.size();
            continue;
        }
        let matched = wanted.peek().is_some_and(|wanted| {
            wanted.kind == node.kind_id() && wanted.text.is_none_or(|text| text == node.source())
        });
        if matched {
            wanted.next();
            at += node.size();
            continue;
        }
        if node.is_extra() || node.is_leaf() {
            let left = unaccounted(node, end, reading.head);
            worst = worst.max(left.map(std::cmp::Reverse));
            at += node.size();
        } else {
            at += 1;
        }
    }
    match worst {
        Some(std::cmp::Reverse(left)) => Cover::Leaves(left),
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
