//! The methods `_vault/…` with their parameters and results as one JSON schema, from which clients generate their types.
//! `vault-agent acp --schema` prints it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::approval::Approval;
use super::community_plugins::{DownloadPluginsRequest, PluginList, PluginsRequest, PluginsResult};
use super::embedding_models::{AddModelRequest, DownloadDescription, EmbeddingModelsResult, NamedModelRequest};
use super::host_messages::{
    HostCapability, HostCommands, HostCommandsRequest, HostEditRequest, HostEdited, HostFiles, HostFilesRequest,
    HostOpenRequest, HostOpened, HostRan, HostRunRequest, HostState, HostStateRequest,
};
use super::macros::{MacrosResult, NamedMacro, SaveMacroRequest};
use super::messages::{
    ApplyRequest, ApplyResult, IndexStateResult, MentionsRequest, MentionsResult, PrepareRequest, PrepareResult,
    RelatedRequest, RelatedResult, SearchRequest, SearchResult, TransactionRequest, TransactionResult,
    TransactionsRequest, TransactionsResult, VaultRequest, VocabularyResult,
};
use super::model::{ModelStateResult, ModelsRequest, ModelsResult, SetModelRequest, TestModelResult};

/// The version of the methods. It grows when a client that knows the version before could no longer work.
pub(super) const VERSION: u32 = 1;

/// The key under which the methods are announced in `agentCapabilities._meta`.
pub(in crate::acp) const ANNOUNCED_AS: &str = "vault";

pub(super) const SEARCH: &str = "_vault/search";
pub(super) const RELATED: &str = "_vault/related";
pub(super) const MENTIONS: &str = "_vault/mentions";
pub(super) const VOCABULARY: &str = "_vault/vocabulary";
pub(super) const TRANSACTIONS: &str = "_vault/transactions";
pub(super) const TRANSACTION: &str = "_vault/transaction";
pub(super) const PREPARE: &str = "_vault/prepare";
pub(super) const APPLY: &str = "_vault/apply";
pub(super) const INDEX_STATE: &str = "_vault/index_state";
pub(super) const MACROS: &str = "_vault/macros";
pub(super) const SAVE_MACRO: &str = "_vault/save_macro";
pub(super) const MODEL_STATE: &str = "_vault/model_state";
pub(super) const MODELS: &str = "_vault/models";
pub(super) const SET_MODEL: &str = "_vault/set_model";
pub(super) const TEST_MODEL: &str = "_vault/test_model";
pub(super) const EMBEDDING_MODELS: &str = "_vault/embedding_models";
pub(super) const DESCRIBE_DOWNLOAD: &str = "_vault/describe_download";
pub(super) const ADD_EMBEDDING_MODEL: &str = "_vault/add_embedding_model";
pub(super) const USE_EMBEDDING_MODEL: &str = "_vault/use_embedding_model";
pub(super) const PLUGINS: &str = "_vault/plugins";
pub(super) const DOWNLOAD_PLUGINS: &str = "_vault/download_plugins";

/// The requests of the program to a client that is a live host.
pub(super) mod host {
    /// Their version. It grows when a client that knows the version before could no longer answer.
    pub(in crate::acp) const HOST_VERSION: u32 = 1;

    pub(in crate::acp) const STATE: &str = "_vault/host/state";
    pub(in crate::acp) const OPEN_FILES: &str = "_vault/host/open_files";
    pub(in crate::acp) const OPEN: &str = "_vault/host/open";
    pub(in crate::acp) const COMMANDS: &str = "_vault/host/commands";
    pub(in crate::acp) const RUN_COMMAND: &str = "_vault/host/run_command";
    pub(in crate::acp) const EDIT: &str = "_vault/host/edit";
}

const HOST_METHODS: [Method; 6] = [
    (host::STATE, of::<HostStateRequest, HostState>),
    (host::OPEN_FILES, of::<HostFilesRequest, HostFiles>),
    (host::OPEN, of::<HostOpenRequest, HostOpened>),
    (host::COMMANDS, of::<HostCommandsRequest, HostCommands>),
    (host::RUN_COMMAND, of::<HostRunRequest, HostRan>),
    (host::EDIT, of::<HostEditRequest, HostEdited>),
];

/// A method with its parameters and its result.
type Method = (&'static str, fn(&mut SchemaGenerator) -> [Schema; 2]);

const METHODS: [Method; 21] = [
    (SEARCH, of::<SearchRequest, SearchResult>),
    (RELATED, of::<RelatedRequest, RelatedResult>),
    (MENTIONS, of::<MentionsRequest, MentionsResult>),
    (VOCABULARY, of::<VaultRequest, VocabularyResult>),
    (TRANSACTIONS, of::<TransactionsRequest, TransactionsResult>),
    (TRANSACTION, of::<TransactionRequest, TransactionResult>),
    (PREPARE, of::<PrepareRequest, PrepareResult>),
    (APPLY, of::<ApplyRequest, ApplyResult>),
    (INDEX_STATE, of::<VaultRequest, IndexStateResult>),
    (MACROS, of::<VaultRequest, MacrosResult>),
    (SAVE_MACRO, of::<SaveMacroRequest, NamedMacro>),
    (MODEL_STATE, of::<VaultRequest, ModelStateResult>),
    (MODELS, of::<ModelsRequest, ModelsResult>),
    (SET_MODEL, of::<SetModelRequest, ModelStateResult>),
    (TEST_MODEL, of::<VaultRequest, TestModelResult>),
    (EMBEDDING_MODELS, of::<VaultRequest, EmbeddingModelsResult>),
    (DESCRIBE_DOWNLOAD, of::<NamedModelRequest, DownloadDescription>),
    (ADD_EMBEDDING_MODEL, of::<AddModelRequest, EmbeddingModelsResult>),
    (USE_EMBEDDING_MODEL, of::<NamedModelRequest, EmbeddingModelsResult>),
    (PLUGINS, of::<PluginsRequest, PluginsResult>),
    (DOWNLOAD_PLUGINS, of::<DownloadPluginsRequest, PluginList>),
];

fn of<Params: JsonSchema, Returned: JsonSchema>(generator: &mut SchemaGenerator) -> [Schema; 2] {
    [generator.subschema_for::<Params>(), generator.subschema_for::<Returned>()]
}

/// The value that is announced in `agentCapabilities._meta`.
pub(in crate::acp) fn announcement() -> Value {
    json!({ "version": VERSION, "methods": METHODS.map(|(name, _)| name) })
}

/// The schema: each method as a property with `params` and `result`; those of a live host are in the definition
/// `HostMethods`.
pub(crate) fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let methods = properties(&METHODS, &mut generator);
    let host_methods = properties(&HOST_METHODS, &mut generator);
    generator.subschema_for::<Approval>();
    generator.subschema_for::<HostCapability>();
    let mut definitions = generator.take_definitions(true);
    let names: Vec<&str> = HOST_METHODS.iter().map(|(name, _)| *name).collect();
    let host_methods = json!({
        "description": "The requests of the program to a client that is a live host, with their parameters and results.",
        "type": "object",
        "properties": host_methods,
        "required": names,
    });
    definitions.insert("HostMethods".to_owned(), host_methods);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Methods of vault-agent beside those of the Agent Client Protocol",
        "description": "Extension methods of `vault-agent acp`. They need no session, no model and no key.",
        "version": VERSION,
        "hostVersion": host::HOST_VERSION,
        "type": "object",
        "properties": methods,
        "$defs": definitions,
    })
}

/// Returns each method as a property with `params` and `result`.
fn properties(methods: &[Method], generator: &mut SchemaGenerator) -> Map<String, Value> {
    let property = |(name, of): &Method| {
        let [params, result] = of(generator);
        let method = json!({
            "type": "object",
            "properties": { "params": params, "result": result },
            "required": ["params", "result"],
        });
        ((*name).to_owned(), method)
    };
    methods.iter().map(property).collect()
}
