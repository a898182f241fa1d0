//! Questions to actors from outside the tree.

use ractor::{ActorRef, RpcReplyPort};

/// Asks an actor; `None` if it is gone. The message is sent before the first await,
/// so that questions keep their order. The wait is the caller's to bound.
pub(crate) fn ask<M, T, Q>(
    actor: &ActorRef<M>,
    question: Q,
) -> impl Future<Output = Option<T>> + use<M, T, Q>
where
    M: ractor::Message,
    T: Send + 'static,
    Q: FnOnce(RpcReplyPort<T>) -> M,
{
    let (reply, answer) = ractor::concurrency::oneshot();
    let sent = actor.cast(question(reply.into())).is_ok();
    async move { if sent { answer.await.ok() } else { None } }
}
