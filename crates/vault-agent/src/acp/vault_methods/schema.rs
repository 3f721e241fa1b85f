//! The methods `_vault/…` with their parameters and results as one JSON schema, from which clients generate their types.
//! `vault-agent acp --schema` prints it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::approval::Approval;
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

/// A method with its parameters and its result.
type Method = (&'static str, fn(&mut SchemaGenerator) -> [Schema; 2]);

const METHODS: [Method; 15] = [
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
];

fn of<Params: JsonSchema, Returned: JsonSchema>(generator: &mut SchemaGenerator) -> [Schema; 2] {
    [generator.subschema_for::<Params>(), generator.subschema_for::<Returned>()]
}

/// The value that is announced in `agentCapabilities._meta`.
pub(in crate::acp) fn announcement() -> Value {
    json!({ "version": VERSION, "methods": METHODS.map(|(name, _)| name) })
}

/// The schema: each method as a property with `params` and `result`.
pub(crate) fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut methods = Map::new();
    for (name, of) in METHODS {
        let [params, result] = of(&mut generator);
        let method = json!({
            "type": "object",
            "properties": { "params": params, "result": result },
            "required": ["params", "result"],
        });
        methods.insert(name.to_owned(), method);
    }
    generator.subschema_for::<Approval>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Methods of vault-agent beside those of the Agent Client Protocol",
        "description": "Extension methods of `vault-agent acp`. They need no session, no model and no key.",
        "version": VERSION,
        "type": "object",
        "properties": methods,
        "$defs": generator.take_definitions(true),
    })
}
