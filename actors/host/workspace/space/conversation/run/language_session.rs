//! stub
use crate::host::HostMsg;
use crate::ids::*;
use crate::status::StatusEntry;
use ractor::*;
#[derive(Debug)]
pub struct Args {
    pub run: RunId,
    pub host: ActorRef<HostMsg>,
    pub status: StatusEntry,
}
#[derive(Debug)]
pub enum LanguageSessionMsg {
    A,
}
#[derive(Debug)]
pub struct LanguageSession;
impl Actor for LanguageSession {
    type Msg = LanguageSessionMsg;
    type State = Args;
    type Arguments = Args;
    async fn pre_start(
        &self,
        _: ActorRef<LanguageSessionMsg>,
        a: Args,
    ) -> Result<Args, ActorProcessingErr> {
        Ok(a)
    }
}
