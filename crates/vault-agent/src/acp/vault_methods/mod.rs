//! Methods beside those of the protocol, named `_vault/…`, for clients that show a vault without a model: search, related
//! notes, missing links, the journal, macros, and changes that a person approves by the digest of what was shown; for
//! their settings the model of conversations and those of the search by meaning; and community plugins of Obsidian that
//! fit an instruction.
//!
//! They need no session, no model and no key. Only those about the model of conversations connect to it, only the
//! download of a model and its description connect to the hub, and only that of the list of plugins to its address.
//! `$/cancel_request` cancels them.

mod messages;
mod host_messages;
mod approval;
mod model;
mod embedding_models;
mod macros;
mod community_plugins;
mod schema;
mod excerpt;
mod find;
mod past;
mod change;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_search::{CliResult, VaultArgs};
use vault_tools::{Cancel, Error as ToolsError, ErrorKind, Result as ToolsResult};

use super::rpc::read;
use super::wire::{Error, ErrorCode, RequestId, error};
use crate::changes::blocking;
use crate::settings::SettingArgs;
use crate::workspace::{OpenVault, PolicyOverrides, Workspace};

pub(super) use approval::{Approval, ApprovalPart, ApprovalPlan, ApprovalStep};
use community_plugins::{DownloadPluginsRequest, PluginsRequest};
use embedding_models::{AddModelRequest, NamedModelRequest};
use macros::SaveMacroRequest;
pub(super) use macros::save_macro;
use messages::{
    ApplyRequest, MentionsRequest, PrepareRequest, RelatedRequest, SearchRequest, TransactionRequest,
    TransactionsRequest, VaultRequest,
};
use model::{ModelsRequest, SetModelRequest};
pub(super) use past::shown;
pub(crate) use schema::schema;

/// The requests to a client that is a live host.
pub(super) mod host {
    pub(in crate::acp) use super::host_messages::*;
    pub(in crate::acp) use super::schema::host::*;
}

pub(super) use schema::{ANNOUNCED_AS, announcement};

/// Whether a method is one of these.
pub(super) fn is_ours(method: &str) -> bool {
    method.starts_with("_vault/")
}

/// The requests under way.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<HashMap<RequestId, CancellationToken>>);

impl Requests {
    /// Notes a request, so that it can be cancelled.
    pub fn begin(&self, id: &RequestId) -> CancellationToken {
        let token = CancellationToken::new();
        self.lock().insert(id.clone(), token.clone());
        token
    }

    /// Forgets a request that is answered.
    pub fn end(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    /// Cancels a request, if it is under way.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.lock().get(id) {
            token.cancel();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The vaults that a request means: one folder, or those of the command line.
///
/// # Errors
/// A folder that is not absolute or not there; settings that cannot be understood.
pub(super) fn open(folder: Option<&Path>, named: &VaultArgs) -> CliResult<Workspace> {
    let Some(folder) = folder else { return Workspace::open(named, PolicyOverrides::default()) };
    if !folder.is_absolute() {
        return Err(ToolsError::new(ErrorKind::InvalidArguments, "`vault` must be an absolute path").into());
    }
    // An index file that the command line names is for the vault that it names.
    let index = named.index.clone().filter(|_| named.vault == [folder]);
    Workspace::open(&VaultArgs { vault: vec![folder.to_owned()], index }, PolicyOverrides::default())
}

/// The folder that a request names.
pub(super) fn folder_in(params: &Value) -> Option<PathBuf> {
    params.get("vault").and_then(Value::as_str).map(PathBuf::from)
}

/// The error of a tool, with its kind for programs.
pub(super) fn of_tools(fault: &ToolsError) -> Error {
    let code = match fault.kind() {
        ErrorKind::InvalidArguments | ErrorKind::InvalidPath | ErrorKind::NotFound => ErrorCode::InvalidParams,
        ErrorKind::Cancelled => ErrorCode::RequestCancelled,
        _ => ErrorCode::InternalError,
    };
    error(code, fault.one_line()).data(serde_json::to_value(fault).ok())
}

/// Answers a request about the one vault of a workspace.
///
/// # Errors
/// Those of the tools; request cancelled; no such method.
pub(super) async fn answer(
    method: &str,
    params: Value,
    workspace: Arc<Workspace>,
    flags: &SettingArgs,
    cancel: &CancellationToken,
) -> Result<Value, Error> {
    if workspace.vaults().len() != 1 {
        let fault =
            ToolsError::new(ErrorKind::InvalidArguments, "there are several vaults").with_remedy("name one in `vault`");
        return Err(of_tools(&fault));
    }
    let (flags, stop) = (flags.clone(), cancel.clone());
    let call = VaultCall { params, workspace, cancel };
    match method {
        schema::MODEL_STATE => call.on_vault(move |open, _: VaultRequest, _| model::state(open, &flags)),
        schema::SET_MODEL => call.on_vault(move |open, request: SetModelRequest, _| model::set(open, &request, &flags)),
        schema::MODELS => call.on_vault(move |_, request: ModelsRequest, _| model::models(&request, &flags, &stop)),
        schema::TEST_MODEL => call.on_vault(move |_, _: VaultRequest, _| model::test(&flags, &stop)),
        schema::EMBEDDING_MODELS => call.on_vault(|open, _: VaultRequest, _| embedding_models::state(open)),
        schema::DESCRIBE_DOWNLOAD => {
            call.on_vault(|_, request: NamedModelRequest, _| embedding_models::describe_download(&request))
        }
        schema::ADD_EMBEDDING_MODEL => {
            call.on_vault(|open, request: AddModelRequest, cancel| embedding_models::add(open, &request, cancel))
        }
        schema::USE_EMBEDDING_MODEL => call
            .on_vault(|open, request: NamedModelRequest, cancel| embedding_models::use_model(open, &request, cancel)),
        schema::PLUGINS => call.on_vault(|_, request: PluginsRequest, _| community_plugins::plugins(&request)),
        schema::DOWNLOAD_PLUGINS => call.on_vault(move |_, request: DownloadPluginsRequest, cancel| {
            community_plugins::download(&request, &stop, cancel)
        }),
        schema::SEARCH => call.on_vault(|open, request: SearchRequest, cancel| find::search(open, &request, cancel)),
        schema::RELATED => call.on_vault(|open, request: RelatedRequest, cancel| find::related(open, &request, cancel)),
        schema::MENTIONS => {
            call.on_vault(|open, request: MentionsRequest, cancel| find::mentions(open, &request, cancel))
        }
        schema::VOCABULARY => call.on_vault(|open, _: VaultRequest, _| find::vocabulary(open)),
        schema::INDEX_STATE => call.on_vault(|open, _: VaultRequest, _| find::index_state(open)),
        schema::MACROS => call.on_vault(|open, _: VaultRequest, _| macros::macros(open)),
        schema::SAVE_MACRO => {
            call.on_workspace(|workspace, request: SaveMacroRequest, _| macros::save(workspace, &request))
        }
        schema::TRANSACTIONS => {
            call.on_vault(|open, request: TransactionsRequest, _| past::transactions(open, &request))
        }
        schema::TRANSACTION => call.on_vault(|open, request: TransactionRequest, _| past::transaction(open, &request)),
        schema::PREPARE => call.on_workspace(|workspace, request: PrepareRequest, cancel| {
            workspace.with(|vaults| change::prepare(vaults, 0, &request.change, cancel))
        }),
        schema::APPLY => call.on_workspace(|workspace, request: ApplyRequest, cancel| {
            workspace.with(|vaults| change::apply(vaults, 0, &request, cancel))
        }),
        _ => return Err(error(ErrorCode::MethodNotFound, format!("there is no method {method:?}"))),
    }
    .await
}

/// A request on its way to a thread that may block.
struct VaultCall<'c> {
    params: Value,
    workspace: Arc<Workspace>,
    cancel: &'c CancellationToken,
}

type ResponseFuture<'c> = std::pin::Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'c>>;

impl<'c> VaultCall<'c> {
    fn on_vault<Request, Returned>(
        self,
        act: impl FnOnce(&OpenVault, Request, Cancel<'_>) -> ToolsResult<Returned> + Send + 'static,
    ) -> ResponseFuture<'c>
    where
        Request: DeserializeOwned + Send + 'static,
        Returned: Serialize,
    {
        self.on_workspace(move |workspace, request, cancel| act(&workspace.vaults()[0], request, cancel))
    }

    fn on_workspace<Request, Returned>(
        self,
        act: impl FnOnce(&Workspace, Request, Cancel<'_>) -> ToolsResult<Returned> + Send + 'static,
    ) -> ResponseFuture<'c>
    where
        Request: DeserializeOwned + Send + 'static,
        Returned: Serialize,
    {
        Box::pin(async move {
            let request: Request = read(self.params)?;
            let workspace = self.workspace;
            let acted = blocking(self.cancel.cancelled(), move |cancel| {
                // A request that was cancelled while it waited for a thread costs nothing.
                cancel.check()?;
                let returned = act(&workspace, request, cancel)?;
                serde_json::to_value(returned)
                    .map_err(|fault| ToolsError::new(ErrorKind::Unsupported, fault.to_string()))
            });
            acted.await.map_err(|fault| of_tools(&fault))
        })
    }
}
