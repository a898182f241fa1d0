//! A pattern as a tree of its own: what is dropped from it, and what it needs.

use ast_grep_core::matcher::PatternNode;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::source::SgNode;

use crate::code::tree::Parsed;

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

/// Only named leaves are compared by text; what has no name goes by kind alone, and
/// `# define` is of the kind `#define`.
pub(super) fn collect<'p>(
    node: &'p PatternNode,
    literals: &mut Vec<String>,
    names: &mut Vec<&'p str>,
) {
    match node {
        PatternNode::Terminal { text, is_named: true, .. } => {
            if !text.is_empty() && !literals.contains(text) {
                literals.push(text.clone());
            }
        }
        PatternNode::Internal { children, .. } => {
            children.iter().for_each(|child| collect(child, literals, names));
        }
        PatternNode::MetaVar {
            meta_var: MetaVariable::Capture(name, _) | MetaVariable::MultiCapture(name),
        } => names.push(name),
        PatternNode::Terminal { .. } | PatternNode::MetaVar { .. } => {}
    }
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
