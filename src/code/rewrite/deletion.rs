//! Taking a match away altogether: its semicolon and its line go with it.

use std::ops::Range;

use ast_grep_core::source::SgNode;

use super::Left;
use crate::code::matching::Found;
use crate::code::tree::{Parsed, TreeNode};

/// Returns the bytes that go with a match that is deleted.
pub(super) fn widened(parsed: &Parsed, found: &Found) -> Result<Range<usize>, Left> {
    let node = parsed.node(found.node);
    let mut range = found.range.clone();
    let mut whole = node;
    // The statement that holds nothing else goes as a whole.
    for holder in node.holders().into_iter().rev() {
        let span = holder.span();
        let rest = parsed.text().get(range.end..span.end).unwrap_or_default().trim();
        if span.start != range.start
            || !matches!(rest, "" | ";")
            || !holder.kind_name().ends_with("statement")
        {
            break;
        }
        range = span;
        whole = holder;
    }
    if is_last_statement(whole) {
        return Err(Left::LastStatement);
    }
    Ok(whole_lines(parsed.text(), range))
}

/// Python has no empty block.
fn is_last_statement(node: TreeNode<'_>) -> bool {
    let Some(block) = node.holders().pop() else { return false };
    block.kind_name() == "block"
        && block.span() == node.span()
        && block.kids().filter(|child| child.is_named() && !child.is_extra()).count() == 1
        && !block.source().starts_with('{')
}

/// Takes the lines along that would be left without anything on them.
fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let rest = after.split_inclusive('\n').next().unwrap_or_default();
    let blank = |text: &str| text.chars().all(char::is_whitespace);
    match blank(text.get(start..range.start).unwrap_or_default()) && blank(rest) {
        true => start..range.end + rest.len(),
        false => range,
    }
}
