//! How a server wants to be told of texts. Pure.

use lsp_types::notification::{DidChangeTextDocument, DidOpenTextDocument, Notification};
use serde_json::Value;

use super::registrations::Registrations;

/// How a changed text is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Change {
    /// Not at all; a document is closed and opened again instead.
    #[default]
    Nothing,
    /// Whole.
    Full,
    /// The replaced range.
    Incremental,
}

impl Change {
    fn read(kind: Option<&Value>) -> Self {
        match kind.and_then(Value::as_u64) {
            Some(1) => Self::Full,
            Some(2) => Self::Incremental,
            _ => Self::Nothing,
        }
    }
}

/// What `textDocumentSync` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SyncOptions {
    open_close: bool,
    change: Change,
    /// Does it want to hear of saves, and with the text.
    pub(super) save: Option<bool>,
}

impl SyncOptions {
    /// Reads a server's capabilities. A bare number is the old form, which means
    /// everything that there was then.
    pub(super) fn read(capabilities: &Value) -> Self {
        let Some(sync) = capabilities.get("textDocumentSync") else { return Self::default() };
        if sync.is_number() {
            let change = Change::read(Some(sync));
            let wanted = change != Change::Nothing;
            return Self { open_close: wanted, change, save: wanted.then_some(false) };
        }
        let save = match sync.get("save") {
            Some(Value::Bool(true)) => Some(false),
            Some(Value::Object(save)) => {
                Some(save.get("includeText").and_then(Value::as_bool).unwrap_or_default())
            }
            _ => None,
        };
        Self {
            open_close: sync.get("openClose").and_then(Value::as_bool).unwrap_or_default(),
            change: Change::read(sync.get("change")),
            save,
        }
    }

    /// Says whether it wants to hear of opened and closed documents.
    pub(super) fn open_close(self, registrations: &Registrations) -> bool {
        self.open_close || registrations.newest(DidOpenTextDocument::METHOD).is_some()
    }

    /// Returns how a change is sent.
    pub(super) fn change(self, registrations: &Registrations) -> Change {
        match (self.change, registrations.newest(DidChangeTextDocument::METHOD)) {
            (Change::Nothing, Some(options)) => Change::read(options.get("syncKind")),
            (known, _) => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_are_read() {
        let cases = [
            (json!(null), (false, Change::Nothing, None)),
            (json!(0), (false, Change::Nothing, None)),
            (json!(1), (true, Change::Full, Some(false))),
            (json!(2), (true, Change::Incremental, Some(false))),
            (json!({ "openClose": true, "change": 2 }), (true, Change::Incremental, None)),
            (json!({ "change": 1, "save": true }), (false, Change::Full, Some(false))),
            (json!({ "save": { "includeText": true } }), (false, Change::Nothing, Some(true))),
            (json!({ "openClose": "odd", "save": {} }), (false, Change::Nothing, Some(false))),
        ];
        for (sync, (open_close, change, save)) in cases {
            let read = SyncOptions::read(&json!({ "textDocumentSync": sync }));
            assert_eq!(read, SyncOptions { open_close, change, save }, "{sync}");
        }
        assert_eq!(SyncOptions::read(&json!({})), SyncOptions::default());
    }

    #[test]
    fn what_was_left_open_can_be_registered_later() {
        let mut registrations = Registrations::default();
        let options = SyncOptions::default();
        assert_eq!(options.change(&registrations), Change::Nothing);
        registrations.register(&json!({ "registrations": [
            { "id": "o", "method": "textDocument/didOpen" },
            { "id": "c", "method": "textDocument/didChange", "registerOptions": { "syncKind": 2 } },
        ] }));
        assert!(options.open_close(&registrations));
        assert_eq!(options.change(&registrations), Change::Incremental);
    }
}
