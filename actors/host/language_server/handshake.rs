//! What we say in `initialize`, and what we read from its answer. Pure.

use std::fmt;
use std::sync::Arc;

use lsp_types as lsp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::folder;
use super::connection::Connection;
use super::inner::Inner;
use super::observed::Watch;
use super::spec::{Recipe, ServerSpec};
use super::sync_options::SyncOptions;
use super::text::Encoding;
use super::uri;
use super::verdict::fences::Fences;

/// What callers learn of an incarnation once it is ready.
pub struct ServerFacts {
    /// How columns count.
    pub encoding: Encoding,
    /// What the server says it can do, as it came.
    pub capabilities: Value,
    /// Its name and version, as it gave them.
    pub server_info: Option<String>,
    /// When the handshake was over: one that has only just started may not have
    /// read its project yet.
    pub ready_at: Instant,
    pub(super) sync: SyncOptions,
    pub(super) connection: Arc<Connection>,
    pub(super) observed: Watch,
    pub(super) inner: Arc<Inner>,
    /// What it owes answers about.
    pub(super) fences: Fences,
}

impl fmt::Debug for ServerFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFacts")
            .field("encoding", &self.encoding)
            .field("server_info", &self.server_info)
            .finish_non_exhaustive()
    }
}

impl ServerFacts {
    /// Says whether the server has a capability, for example `hoverProvider`: both
    /// `true` and an object of options say yes.
    #[must_use]
    pub fn has(&self, capability: &str) -> bool {
        match self.capabilities.get(capability) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(has)) => *has,
            Some(_) => true,
        }
    }

    /// Reads the answer to `initialize`.
    pub(super) fn read(
        answer: &Value,
        connection: Arc<Connection>,
        observed: Watch,
        inner: Arc<Inner>,
    ) -> Self {
        let capabilities = answer.get("capabilities").cloned().unwrap_or_default();
        // The second is clangd's, from before the protocol had the first.
        let encoding = capabilities.get("positionEncoding").or(answer.get("offsetEncoding"));
        let info = answer.get("serverInfo");
        let part = |name: &str| info.and_then(|info| info.get(name)?.as_str());
        Self {
            // What the server does not say, or says oddly, is UTF-16.
            encoding: encoding
                .and_then(|name| serde_json::from_value(name.clone()).ok())
                .unwrap_or_default(),
            sync: SyncOptions::read(&capabilities),
            server_info: part("name").map(|name| match part("version") {
                Some(version) => format!("{name} {version}"),
                None => name.to_owned(),
            }),
            ready_at: Instant::now(),
            capabilities,
            connection,
            observed,
            inner,
            fences: Fences::default(),
        }
    }
}

/// Returns the params of `initialize`.
pub(super) fn initialize_params(spec: &ServerSpec) -> Value {
    let mut capabilities = serde_json::to_value(capabilities(spec.recipe)).unwrap_or_default();
    if let Some(members) = capabilities.as_object_mut() {
        // clangd reads only this one up to version 14.
        members.insert("offsetEncoding".to_owned(), json!(["utf-8", "utf-16"]));
    }
    json!({
        // A server in a PID namespace would look up ours and find it dead.
        "processId": null,
        "clientInfo": { "name": "hostler", "version": env!("CARGO_PKG_VERSION") },
        "rootUri": uri::of_path(&spec.root),
        "rootPath": spec.root,
        "workspaceFolders": [folder(spec)],
        "capabilities": capabilities,
        "initializationOptions": spec.initialization_options,
    })
}

fn capabilities(recipe: Recipe) -> lsp::ClientCapabilities {
    lsp::ClientCapabilities {
        workspace: Some(workspace(recipe)),
        text_document: Some(text_document(recipe)),
        window: Some(lsp::WindowClientCapabilities {
            work_done_progress: Some(true),
            ..Default::default()
        }),
        general: Some(lsp::GeneralClientCapabilities {
            position_encodings: Some(vec![
                lsp::PositionEncodingKind::UTF8,
                lsp::PositionEncodingKind::UTF16,
                lsp::PositionEncodingKind::UTF32,
            ]),
            stale_request_support: Some(lsp::StaleRequestSupportClientCapabilities {
                cancel: true,
                retry_on_content_modified: Vec::new(),
            }),
            ..Default::default()
        }),
        // rust-analyzer tells then whether it has read its workspace.
        experimental: (recipe == Recipe::Flycheck)
            .then(|| json!({ "serverStatusNotification": true })),
        ..Default::default()
    }
}

fn workspace(recipe: Recipe) -> lsp::WorkspaceClientCapabilities {
    lsp::WorkspaceClientCapabilities {
        workspace_edit: Some(lsp::WorkspaceEditClientCapabilities {
            document_changes: Some(true),
            resource_operations: Some(vec![
                lsp::ResourceOperationKind::Create,
                lsp::ResourceOperationKind::Rename,
                lsp::ResourceOperationKind::Delete,
            ]),
            normalizes_line_endings: Some(false),
            ..Default::default()
        }),
        did_change_configuration: Some(dynamic()),
        did_change_watched_files: Some(lsp::DidChangeWatchedFilesClientCapabilities {
            dynamic_registration: Some(true),
            relative_pattern_support: Some(true),
        }),
        workspace_folders: Some(true),
        configuration: Some(true),
        diagnostic: recipe
            .pulls()
            .then_some(lsp::DiagnosticWorkspaceClientCapabilities { refresh_support: Some(true) }),
        ..Default::default()
    }
}

fn text_document(recipe: Recipe) -> lsp::TextDocumentClientCapabilities {
    let links = lsp::GotoCapability { link_support: Some(true), ..Default::default() };
    lsp::TextDocumentClientCapabilities {
        synchronization: Some(lsp::TextDocumentSyncClientCapabilities {
            dynamic_registration: Some(true),
            did_save: Some(true),
            ..Default::default()
        }),
        hover: Some(lsp::HoverClientCapabilities {
            content_format: Some(vec![lsp::MarkupKind::Markdown, lsp::MarkupKind::PlainText]),
            ..Default::default()
        }),
        declaration: Some(links),
        definition: Some(links),
        type_definition: Some(links),
        implementation: Some(links),
        document_symbol: Some(lsp::DocumentSymbolClientCapabilities {
            hierarchical_document_symbol_support: Some(true),
            ..Default::default()
        }),
        code_action: Some(code_action()),
        rename: Some(lsp::RenameClientCapabilities {
            prepare_support: Some(true),
            ..Default::default()
        }),
        publish_diagnostics: Some(lsp::PublishDiagnosticsClientCapabilities {
            related_information: Some(true),
            version_support: Some(true),
            data_support: Some(true),
            ..Default::default()
        }),
        // Some servers stop publishing when they see this, so only who pulls says it.
        diagnostic: recipe.pulls().then_some(lsp::DiagnosticClientCapabilities {
            dynamic_registration: Some(true),
            related_document_support: Some(true),
        }),
        ..Default::default()
    }
}

fn code_action() -> lsp::CodeActionClientCapabilities {
    let kinds = ["", "quickfix", "refactor", "source"].map(str::to_owned).to_vec();
    lsp::CodeActionClientCapabilities {
        code_action_literal_support: Some(lsp::CodeActionLiteralSupport {
            code_action_kind: lsp::CodeActionKindLiteralSupport { value_set: kinds },
        }),
        is_preferred_support: Some(true),
        disabled_support: Some(true),
        data_support: Some(true),
        resolve_support: Some(lsp::CodeActionCapabilityResolveSupport {
            properties: vec!["edit".to_owned()],
        }),
        ..Default::default()
    }
}

fn dynamic() -> lsp::DynamicRegistrationClientCapabilities {
    lsp::DynamicRegistrationClientCapabilities { dynamic_registration: Some(true) }
}
