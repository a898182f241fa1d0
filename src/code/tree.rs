//! A syntax tree that is small enough to be kept: arrays in the order of a walk.
//!
//! 15 bytes a node, where the parser's own tree takes 24 to 36 times the source. It
//! implements what ast-grep's matcher asks of a tree, so that the answers are the
//! matcher's. The tricky thing: a node's children are found by skipping subtrees, and
//! its parent by descending from the root, as nothing else is kept.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ast_grep_core::source::{Edit, SgNode};
use ast_grep_core::tree_sitter::{LanguageExt, TSLanguage};
use ast_grep_core::{Doc, Position};
use ast_grep_language::SupportLang;

/// The kind of nodes that stand for what did not parse.
pub(crate) const ERROR: u16 = u16::MAX;

pub(super) const NAMED: u8 = 1;
pub(super) const EXTRA: u8 = 2;
pub(super) const MISSING: u8 = 4;

/// One parsed text.
pub(crate) struct Parsed {
    pub(super) text: Arc<String>,
    pub(super) language: SupportLang,
    pub(super) grammar: TSLanguage,
    pub(super) kinds: Box<[u16]>,
    pub(super) flags: Box<[u8]>,
    pub(super) starts: Box<[u32]>,
    pub(super) ends: Box<[u32]>,
    /// How many nodes a subtree has, its root counted.
    pub(super) sizes: Box<[u32]>,
    /// Nodes that did not parse, or that are missing.
    pub(super) faults: usize,
}

impl Parsed {
    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns how many places did not parse.
    pub(crate) fn faults(&self) -> usize {
        self.faults
    }

    /// Returns where the first of them is.
    pub(crate) fn first_fault(&self) -> Option<usize> {
        let fault = self.root().walk().find(|node| node.failed() || node.flag(MISSING));
        fault.map(|node| node.span().start)
    }

    /// Returns the first node of the walk.
    pub(crate) fn root(&self) -> TreeNode<'_> {
        self.node(0)
    }

    /// Returns a node by its place in the walk.
    pub(super) fn node(&self, at: usize) -> TreeNode<'_> {
        TreeNode { tree: self, at: u32::try_from(at).unwrap_or(u32::MAX), blind: false }
    }

    /// Returns every kind, in the order of the walk.
    pub(super) fn kinds(&self) -> &[u16] {
        &self.kinds
    }

    /// Returns the comments and the like, by their places in the walk.
    pub(super) fn extras(&self) -> Vec<usize> {
        let flags = self.flags.iter().enumerate();
        flags.filter(|(_, flags)| *flags & EXTRA != 0).map(|(at, _)| at).collect()
    }

    /// Returns the bytes that it holds in memory, its text not counted.
    pub(crate) fn bytes(&self) -> usize {
        const NODE: usize = 2 + 1 + 4 + 4 + 4;
        self.kinds.len() * NODE
    }

    /// Returns the line (from 1) of a byte.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + memchr::memchr_iter(b'\n', before).count()
    }
}

/// A tree as ast-grep's matcher takes it.
#[derive(Clone)]
pub(crate) struct Tree {
    parsed: Arc<Parsed>,
    /// Are comments passed over as if they were not there.
    blind: bool,
}

impl Tree {
    /// Makes the matcher's view of a parsed text.
    pub(crate) fn of(parsed: &Arc<Parsed>) -> Self {
        Self { parsed: Arc::clone(parsed), blind: false }
    }

    /// The same without its comments.
    pub(crate) fn without_comments(parsed: &Arc<Parsed>) -> Self {
        Self { parsed: Arc::clone(parsed), blind: true }
    }

    /// Returns a node by its place in the walk.
    pub(super) fn node(&self, at: usize) -> TreeNode<'_> {
        TreeNode { blind: self.blind, ..self.parsed.node(at) }
    }
}

/// One node.
#[derive(Clone, Copy)]
pub(crate) struct TreeNode<'r> {
    tree: &'r Parsed,
    at: u32,
    blind: bool,
}

impl<'r> TreeNode<'r> {
    /// Returns the place in the walk.
    pub(crate) fn index(self) -> usize {
        self.at as usize
    }

    fn flag(self, flag: u8) -> bool {
        self.tree.flags.get(self.index()).is_some_and(|flags| flags & flag != 0)
    }

    /// Returns how many nodes are in the subtree.
    pub(crate) fn size(self) -> usize {
        self.tree.sizes.get(self.index()).map_or(1, |size| *size as usize)
    }

    /// Returns the bytes that it covers.
    pub(crate) fn span(self) -> Range<usize> {
        let place = |ends: &[u32]| ends.get(self.index()).map_or(0, |at| *at as usize);
        place(&self.tree.starts)..place(&self.tree.ends)
    }

    /// Returns its text.
    pub(crate) fn source(self) -> &'r str {
        self.tree.text.get(self.span()).unwrap_or_default()
    }

    /// Returns the name that the grammar gives its kind.
    pub(crate) fn kind_name(self) -> &'r str {
        self.tree.grammar.node_kind_for_id(self.kind_id()).unwrap_or("ERROR")
    }

    /// Says whether it stands for something that did not parse.
    pub(crate) fn failed(self) -> bool {
        self.kind_id() == ERROR
    }

    /// Returns the children.
    pub(crate) fn kids(self) -> Children<'r> {
        let next = self.at + 1;
        Children { tree: self.tree, next, end: self.at + self.size() as u32, blind: self.blind }
    }

    /// Returns the nodes that hold this one, the outermost first.
    pub(crate) fn holders(self) -> Vec<Self> {
        let mut holders = Vec::new();
        let mut here = Self { at: 0, ..self };
        while here.at != self.at {
            holders.push(here);
            let below = here.kids().find(|child| self.index() < child.index() + child.size());
            let Some(below) = below else { break };
            here = below;
        }
        holders
    }

    /// Returns every node of the subtree, this one first.
    pub(crate) fn walk(self) -> impl Iterator<Item = Self> {
        (self.at..self.at + self.size() as u32).map(move |at| Self { at, ..self })
    }
}

/// The children of a node.
#[derive(Clone)]
pub(crate) struct Children<'r> {
    tree: &'r Parsed,
    next: u32,
    end: u32,
    blind: bool,
}

impl<'r> Iterator for Children<'r> {
    type Item = TreeNode<'r>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            let node = TreeNode { tree: self.tree, at: self.next, blind: self.blind };
            self.next += node.size() as u32;
            if !(self.blind && node.flag(EXTRA)) {
                return Some(node);
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.clone().fold(0, |count, _| count + 1);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Children<'_> {}

impl<'r> SgNode<'r> for TreeNode<'r> {
    fn parent(&self) -> Option<Self> {
        self.holders().pop()
    }

    fn children(&self) -> impl ExactSizeIterator<Item = Self> {
        self.kids()
    }

    fn kind(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.kind_name())
    }

    fn kind_id(&self) -> u16 {
        self.tree.kinds.get(self.index()).copied().unwrap_or(ERROR)
    }

    fn node_id(&self) -> usize {
        self.index()
    }

    fn range(&self) -> Range<usize> {
        self.span()
    }

    fn start_pos(&self) -> Position {
        position(self.tree, self.span().start)
    }

    fn end_pos(&self) -> Position {
        position(self.tree, self.span().end)
    }

    fn is_named(&self) -> bool {
        self.flag(NAMED)
    }

    fn is_named_leaf(&self) -> bool {
        !self.kids().any(|child| child.is_named())
    }

    fn is_leaf(&self) -> bool {
        self.kids().next().is_none()
    }

    fn is_missing(&self) -> bool {
        self.flag(MISSING)
    }

    fn is_error(&self) -> bool {
        self.failed()
    }

    fn is_extra(&self) -> bool {
        self.flag(EXTRA)
    }

    // Patterns name no fields, so none are kept.
    fn field(&self, _: &str) -> Option<Self> {
        None
    }

    fn field_children(&self, _: Option<u16>) -> impl Iterator<Item = Self> {
        std::iter::empty()
    }

    fn child_by_field_id(&self, _: u16) -> Option<Self> {
        None
    }
}

fn position(tree: &Parsed, at: usize) -> Position {
    let before = tree.text.as_bytes().get(..at).unwrap_or_default();
    let line = memchr::memchr_iter(b'\n', before).count();
    let column = at - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    Position::new(line, column, at)
}

impl Doc for Tree {
    type Source = String;
    type Lang = SupportLang;
    type Node<'r> = TreeNode<'r>;

    fn get_lang(&self) -> &SupportLang {
        &self.parsed.language
    }

    fn get_source(&self) -> &String {
        &self.parsed.text
    }

    fn do_edit(&mut self, _: &Edit<String>) -> Result<(), String> {
        Err("this tree is for reading".to_owned())
    }

    fn root_node(&self) -> TreeNode<'_> {
        self.node(0)
    }

    fn get_node_text<'a>(&'a self, node: &TreeNode<'a>) -> Cow<'a, str> {
        Cow::Borrowed(node.source())
    }
}

/// Returns the grammar of a language.
pub(super) fn grammar(language: SupportLang) -> TSLanguage {
    language.get_ts_language()
}
