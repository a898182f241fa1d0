//! What an incarnation tells its supervisor: its process tree, and that it is ready.

use std::fmt;
use std::sync::Arc;

use super::slot::Event;
use super::{Facts, Post, SlotEvent, Tree, lock};
use crate::ids::Incarnation;
use crate::ports::ProcessTree;
use crate::status::StatusEntry;

/// What an incarnation reports to its supervisor.
pub struct Report<F> {
    pub(super) incarnation: Incarnation,
    pub(super) post: Post,
    pub(super) facts: Facts<F>,
    pub(super) tree: Tree,
    pub(super) status: Arc<StatusEntry>,
}

impl<F> fmt::Debug for Report<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Report({})", self.incarnation)
    }
}

impl<F> Report<F> {
    /// Returns the incarnation that reports.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns the slot's row in the status table.
    #[must_use]
    pub fn status(&self) -> &StatusEntry {
        &self.status
    }

    /// Says which process tree this incarnation lives in. The supervisor keeps
    /// it until it is empty, also if the actor dies.
    pub fn launched(&self, tree: &Arc<dyn ProcessTree>) {
        self.status.update(|row| row.pid = Some(tree.pid()));
        *lock(&self.tree) = Some(Arc::clone(tree));
    }

    /// Says that it is ready to be used.
    pub fn ready(&self, facts: F) {
        *lock(&self.facts) = Some((self.incarnation, Arc::new(facts)));
        (self.post)(SlotEvent(Event::Ready(self.incarnation)));
    }
}
