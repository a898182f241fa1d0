//! One open document, and the notifications that keep a server's copy of it. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument,
    Notification,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::diagnostics::Findings;
use super::documents::Document;
use super::registrations::{DID_SAVE, Registrations};
use super::sync_options::{Change, SyncOptions};
use super::text::{Encoding, Lines, replacement};
use super::uri;
use crate::ids::RunId;

/// A notification to send.
pub(super) type Outgoing = (&'static str, Value);

/// What shapes the notifications of one incarnation.
pub(super) struct Terms<'a> {
    pub(super) encoding: Encoding,
    pub(super) options: SyncOptions,
    pub(super) registrations: &'a Registrations,
}

impl Terms<'_> {
    pub(super) fn opens(&self) -> bool {
        self.options.open_close(self.registrations)
    }
}

/// A document that a server has open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) document: Document,
    pub(super) version: i32,
    pub(super) runs: BTreeSet<RunId>,
    pub(super) used: u64,
    /// Was the server told that it is open: some want to hear of nothing.
    pub(super) told: bool,
    /// Is there a text that no `didSave` was sent of.
    pub(super) unsaved: bool,
    /// The file changed and nobody has brought the new text.
    pub(super) suspect: Option<Instant>,
    /// When the server got this version.
    pub(super) changed_at: Instant,
    /// The state of all other files in which the server was last made to look at it.
    pub(super) seen: u64,
    pub(super) findings: Option<Arc<Findings>>,
    /// Held by whoever asks for a verdict, so that runs which want the same one
    /// share the answer.
    pub(super) asking: Arc<tokio::sync::Mutex<()>>,
}

impl Open {
    pub(super) fn opening(&self) -> Outgoing {
        let item = json!({
            "uri": uri::of_path(&self.document.path),
            "languageId": self.document.language_id,
            "version": self.version,
            "text": self.document.text,
        });
        (DidOpenTextDocument::METHOD, json!({ "textDocument": item }))
    }

    /// Returns how the server is told of its end, if it was of its beginning.
    pub(super) fn closing(&self) -> Option<Outgoing> {
        let uri = uri::of_path(&self.document.path);
        let params = json!({ "textDocument": { "uri": uri } });
        self.told.then_some((DidCloseTextDocument::METHOD, params))
    }

    /// Replaces the text; `reopen` says that the server is to read the file afresh.
    pub(super) fn replace(
        &mut self,
        document: &Document,
        version: i32,
        reopen: bool,
        terms: &Terms<'_>,
    ) -> Vec<Outgoing> {
        let old = std::mem::replace(&mut self.document, document.clone()).text;
        self.version = version;
        self.unsaved = true;
        let change = match terms.options.change(terms.registrations) {
            _ if !self.told => return Vec::new(),
            change if reopen || change == Change::Nothing => {
                return self.closing().into_iter().chain([self.opening()]).collect();
            }
            Change::Nothing | Change::Full => json!({ "text": document.text }),
            Change::Incremental => match replacement(&old, &document.text) {
                Some((span, text)) => {
                    let range = Lines::new(&old).range(span, terms.encoding);
                    json!({ "range": range, "text": text })
                }
                None => return Vec::new(),
            },
        };
        let identity = json!({ "uri": uri::of_path(&document.path), "version": version });
        let params = json!({ "textDocument": identity, "contentChanges": [change] });
        vec![(DidChangeTextDocument::METHOD, params)]
    }

    pub(super) fn save(&mut self, terms: &Terms<'_>) -> Option<Outgoing> {
        if !std::mem::take(&mut self.unsaved) || !self.told {
            return None;
        }
        let Document { path, language_id, text, .. } = &self.document;
        let registered = terms.registrations.covering(DID_SAVE, path, language_id).next();
        let with_text = terms.options.save.or_else(|| {
            Some(registered?.get("includeText").and_then(Value::as_bool).unwrap_or_default())
        })?;
        let identity = json!({ "uri": uri::of_path(path) });
        let params = json!({ "textDocument": identity, "text": with_text.then_some(text) });
        Some((DidSaveTextDocument::METHOD, params))
    }
}
