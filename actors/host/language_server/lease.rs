//! stub
use crate::ids::RunId;
use crate::supervise::SlotHandle;
use std::sync::Arc;
pub struct Lease {
    drop: Option<Box<dyn FnOnce() + Send + Sync>>,
}
impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lease")
    }
}
impl Lease {
    pub fn new(
        _: SlotHandle<(), ()>,
        _: Arc<super::spec::ServerSpec>,
        _: RunId,
        _: Option<()>,
        d: Box<dyn FnOnce() + Send + Sync>,
    ) -> Self {
        Self { drop: Some(d) }
    }
}
impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(d) = self.drop.take() {
            d()
        }
    }
}
