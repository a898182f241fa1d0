//! Code as trees: parsed, searched by its shape, rewritten, patched.
//!
//! Pure: what comes in is text, what goes out is text or the reason why not. Reading
//! files is `trees`', writing them `folder::commit`'s. The matching itself is
//! ast-grep's; what stands here is how a pattern is read, what a rewrite may not
//! lose, and a tree that is small enough to be kept.

pub(crate) mod cells;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod language;
pub(crate) mod matching;
pub(crate) mod parse;
pub(crate) mod patch;
pub(crate) mod reading;
pub(crate) mod rewrite;
pub(crate) mod template;
pub(crate) mod tree;
pub(crate) mod workspace_edit;
