//! What a session hears: messages of its adapters, their ends, and their process.
//!
//! Everything is entered into the book in the order in which it came, by the task that
//! reads: a flood of output costs no mailbox, and no answer overtakes an event. Every
//! request of an adapter is answered, as it may wait for the answer for ever.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::bodies;
use super::book::{Effect, ROOT};
use super::children;
use super::link::Link;
use super::refusal::End;
use super::session::{Session, lock};
use super::spec::Reach;
use super::wire::Message;
use crate::ports::{Duplex, ProcessTree};

/// How long the end of a process may come after the end of its connection.
const END_BOUND: Duration = Duration::from_secs(1);
/// How long what a process wrote before its end may take to be read.
const READ_OUT: Duration = Duration::from_millis(200);

impl Session {
    /// Speaks to a limb's adapter over a connection.
    pub(super) fn serve(self: &Arc<Self>, limb: usize, duplex: Duplex) -> Arc<Link> {
        let (link, writing) = Link::new(duplex.write);
        tokio::spawn(writing);
        lock(&self.links).insert(limb, Arc::clone(&link));
        let (session, reader) = (Arc::clone(self), Arc::clone(&link));
        tokio::spawn(async move {
            let on = {
                let (session, link) = (Arc::clone(&session), Arc::clone(&reader));
                move |message| session.on_message(limb, &link, message)
            };
            tokio::select! {
                broken = Arc::clone(&reader).read_all(duplex.read, on) => {
                    session.connection_ended(limb, &reader, broken).await;
                }
                () = session.owner.cancelled() => reader.close(),
            }
        });
        link
    }

    fn on_message(self: &Arc<Self>, limb: usize, link: &Arc<Link>, message: Message) {
        match message {
            Message::Event { event, body } if event == "output" => self.on_output(&body),
            Message::Event { event, body } => {
                match self.change(|book| book.on_event(limb, &event, &body)) {
                    Some(Effect::Finished) => self.end(End::Finished),
                    Some(Effect::ChildGone(child)) => self.drop_link(child),
                    None => {}
                }
            }
            Message::Request { seq, command, arguments } if command == "startDebugging" => {
                children::follow(self, link, seq, &arguments);
            }
            // An adapter may wait for ever for an answer that does not come.
            Message::Request { seq, command, .. } => {
                let why = format!("this client does not serve `{command}`");
                link.answer(seq, &command, Err(&why));
            }
            Message::Answer { .. } => {}
        }
    }

    fn on_output(&self, body: &Value) {
        let Some(text) = bodies::text(body, "output") else { return };
        match body.get("category").and_then(Value::as_str).unwrap_or("console") {
            "telemetry" => {}
            // lldb-dap 19 tells at length how it crashes after its goodbye; only what the
            // adapter says of the exit code is still wanted.
            _ if self.look(|book| book.over.is_some()) => self.note_exit_code(&text),
            "stdout" | "stderr" => self.wrote(&text),
            _ => self.said(&text),
        }
    }

    fn note_exit_code(&self, text: &str) {
        if let Some(code) = self.spec.exit_line.as_deref().and_then(|line| code_after(line, text)) {
            self.change(|book| book.exit_code = book.exit_code.or(Some(code)));
        }
    }

    /// Takes what the adapter said. Once the program runs that is for its user too:
    /// lldb-dap prints log messages there.
    fn said(&self, text: &str) {
        self.note_exit_code(text);
        lock(&self.console).push(text);
        if self.look(|book| book.usable().is_ok()) {
            self.wrote(text);
        }
    }

    async fn connection_ended(&self, limb: usize, link: &Arc<Link>, broken: Option<String>) {
        if limb != ROOT {
            self.change(|book| book.limbs.remove(&limb));
            self.drop_link(limb);
            return;
        }
        // Whoever is still connecting tries again, or says why not.
        if !link.was_heard() && !matches!(self.spec.reach, Reach::Stdio(_)) {
            return;
        }
        if let Some(broken) = broken {
            return self.end(self.loss(format!("the adapter broke its connection: {broken}")));
        }
        // Its process says more of its end than its pipe does.
        let over = timeout(END_BOUND, self.until_over());
        if over.await.is_err() {
            self.end(self.loss("the adapter closed its connection".to_owned()));
        }
    }

    /// Returns how the session ends when its adapter has gone by itself.
    fn loss(&self, why: String) -> End {
        self.look(|book| {
            let finished = book.limbs.get(&ROOT).is_some_and(|root| root.terminated);
            if finished && book.starting.is_none() {
                End::Finished
            } else if book.starting.is_some() {
                End::NotStarted(why)
            } else {
                End::Lost(why)
            }
        })
    }

    fn is_read_out(&self) -> bool {
        self.pipes.load(Ordering::Relaxed) == 0
            && !self.link(ROOT).is_some_and(|link| link.is_open())
    }

    /// Takes the adapter's process.
    pub(super) fn launched(self: &Arc<Self>, tree: &Arc<dyn ProcessTree>) {
        *lock(&self.tree) = Some(Arc::downgrade(tree));
        self.means.status.update(|row| row.pid = Some(tree.pid()));
        let (session, mut ended) = (Arc::clone(self), tree.ended());
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = ended.wait_for(Option::is_some) => ended.ok().and_then(|ended| *ended),
                () = session.owner.cancelled() => return,
            };
            // What it sent before is read first.
            let _ = timeout(READ_OUT, async {
                while !session.is_read_out() {
                    sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            if let Some(ended) = ended {
                session.end(session.loss(format!("the adapter's process {ended}")));
            }
        });
    }
}

/// Reads the number that follows some words.
fn code_after(words: &str, text: &str) -> Option<i64> {
    let (_, rest) = text.split_once(words)?;
    let digits: String = rest
        .trim_start()
        .chars()
        .enumerate()
        .take_while(|(at, char)| char.is_ascii_digit() || *at == 0 && *char == '-')
        .map(|(_, char)| char)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_read_from_a_line() {
        let words = "has exited with status";
        assert_eq!(code_after(words, "Process 12 has exited with status 3\n"), Some(3));
        assert_eq!(code_after(words, "Process 12 has exited with status -1."), Some(-1));
        assert_eq!(code_after(words, "has exited with status x"), None);
        assert_eq!(code_after(words, "Detaching"), None);
    }
}
