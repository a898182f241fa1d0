//! stub
pub mod lease;
pub mod spec;
use crate::ports::*;
use crate::supervise::slot::Policy;
use crate::supervise::{Report, Resource};
use ractor::*;
use std::sync::Arc;
#[derive(Debug)]
pub struct ServerResource;
#[derive(Debug)]
pub struct LsMsg;
impl ServerResource {
    pub fn new(_: Arc<spec::ServerSpec>, _: Arc<dyn Launch>) -> Self {
        Self
    }
    pub fn documents(&self) -> () {}
}
impl Resource for ServerResource {
    type Msg = ();
    type Facts = ();
    fn policy(&self) -> Policy {
        Policy::DEFAULT
    }
    fn spawn(&self, _: Report<()>, _: ActorCell) -> BoxFuture<'_, Result<ActorRef<()>, SpawnErr>> {
        Box::pin(async { Err(SpawnErr::ActorAlreadyStarted) })
    }
    fn goodbye(&self, _: &ActorRef<()>) {}
}
