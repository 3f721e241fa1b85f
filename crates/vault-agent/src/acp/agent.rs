//! The agent's methods of the protocol.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::task::{AbortHandle, block_in_place};
use vault_search::Failure;
use vault_search::VaultArgs;
use vault_tools::Editor;

use super::mcp_servers::ClientServers;
use super::options::{MODE, MODEL, Mode, models};
use super::rpc::{Client, read};
use super::session::{Session, SessionParts, of_tools};
use super::updates::Updates;
use super::wire::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal, AuthenticateRequest, AuthenticateResponse,
    AvailableCommandsUpdate, CLIENT_METHODS, CancelNotification, CancelRequestNotification, ClientCapabilities,
    CloseSessionRequest, CloseSessionResponse, ConfigOptionUpdate, CurrentModeUpdate, DeleteSessionRequest,
    DeleteSessionResponse, Error, ErrorCode, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, METHODS, McpServer, Meta,
    NewSessionRequest, NewSessionResponse, NoticeSeverity, PROTOCOL_METHODS, PromptCapabilities, PromptRequest,
    PromptResponse, ProtocolVersion, RequestId, ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionId, SessionInfo, SessionListCapabilities,
    SessionNotification, SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse, error, has_approvals, has_forms,
};
use super::{commands, folder, live_host, vault_methods};
use crate::conversation::{Conversation, Offer, SessionInfo as SavedSession, Sessions};
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::model::{self, ChosenModel, Destination};
use crate::settings::{SettingArgs, Settings};
use crate::workspace::{AppHost, Workspace};

/// How many sessions are on a page of the list.
const PAGE: usize = 50;

/// The id of the authentication method that looks at the settings again.
const SETTINGS: &str = "settings";

/// The id of the authentication method that the client starts in a terminal.
const TERMINAL: &str = "terminal";

/// The state of the agent of one client.
pub(super) struct AcpAgent {
    client: Client,
    vault_args: VaultArgs,
    setting_args: SettingArgs,
    /// The capabilities of the client; `None` before `initialize`.
    capabilities: Mutex<Option<Arc<ClientCapabilities>>>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// The workspaces by their folders; sessions of one vault share its workspace.
    workspaces: Mutex<BTreeMap<Vec<PathBuf>, WatchedWorkspace>>,
    /// The running prompts by their requests: the session, and the handle that aborts the task.
    prompts: Mutex<HashMap<RequestId, (Arc<Session>, AbortHandle)>>,
    /// The hosts that the person has been told of, because notes are sent there.
    told: Mutex<Vec<String>>,
    /// The workspaces for requests without a session, by the folder that they name; each is opened once.
    shown: Mutex<HashMap<Option<PathBuf>, Arc<Workspace>>>,
    requests: vault_methods::Requests,
}

/// A workspace, with the watcher that keeps its indexes up to date.
type WatchedWorkspace = (Arc<Workspace>, IndexWatcher);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type RpcResult = Result<Value, Error>;

fn answer(result: impl Serialize) -> RpcResult {
    serde_json::to_value(result).map_err(|fault| error(ErrorCode::InternalError, fault.to_string()))
}

impl AcpAgent {
    pub fn new(client: Client, vault_args: VaultArgs, setting_args: SettingArgs) -> Self {
        Self {
            client,
            vault_args,
            setting_args,
            capabilities: Mutex::default(),
            sessions: Mutex::default(),
            workspaces: Mutex::default(),
            prompts: Mutex::default(),
            told: Mutex::default(),
            shown: Mutex::default(),
            requests: vault_methods::Requests::default(),
        }
    }

    /// Handles a notification. Unknown ones are ignored, as JSON-RPC requires.
    pub fn notified(&self, method: &str, params: Value) {
        if method == METHODS.session_cancel {
            let cancelled = read::<CancelNotification>(params).ok();
            if let Some(session) = cancelled.and_then(|cancelled| self.session(&cancelled.session_id).ok()) {
                session.cancel();
            }
        } else if method == PROTOCOL_METHODS.cancel_request {
            let Ok(cancelled) = read::<CancelRequestNotification>(params) else { return };
            let session = lock(&self.prompts).get(&cancelled.request_id).map(|(session, _)| Arc::clone(session));
            session.into_iter().for_each(|session| session.cancel());
            self.requests.cancel(&cancelled.request_id);
        }
    }

    /// Handles a request. Effects that later messages rely on happen before this returns; a task does the rest.
    pub fn requested(self: &Arc<Self>, id: RequestId, method: String, params: Value) {
        if method == METHODS.initialize {
            return self.client.answer(&id, self.initialize(params));
        }
        if lock(&self.capabilities).is_none() {
            let fault = error(ErrorCode::InvalidRequest, "the first request must be initialize");
            return self.client.answer(&id, Err(fault));
        }
        if method == METHODS.session_prompt {
            return self.prompt(id, params);
        }
        let agent = Arc::clone(self);
        if vault_methods::is_ours(&method) {
            let cancel = self.requests.begin(&id);
            tokio::spawn(async move {
                let answer = match agent.vault_of(vault_methods::folder_in(&params)).await {
                    Ok(workspace) => {
                        vault_methods::answer(&method, params, workspace, &agent.setting_args, &cancel).await
                    }
                    Err(error) => Err(error),
                };
                agent.requests.end(&id);
                agent.client.answer(&id, answer);
            });
            return;
        }
        tokio::spawn(async move {
            let (answer, opened) = agent.called(&method, params).await;
            agent.client.answer(&id, answer);
            // Updates of a session must follow the response that names it.
            if let Some(session) = opened {
                agent.opened(&session).await;
            }
        });
    }

    async fn called(&self, method: &str, params: Value) -> (RpcResult, Option<Arc<Session>>) {
        let opened = if method == METHODS.session_new {
            self.new_session(params).await
        } else if method == METHODS.session_load {
            self.load(params).await
        } else if method == METHODS.session_resume {
            self.resume(params).await
        } else {
            return (self.answered(method, params).await, None);
        };
        match opened {
            Ok((answer, session)) => (Ok(answer), Some(session)),
            Err(error) => (Err(error), None),
        }
    }

    async fn answered(&self, method: &str, params: Value) -> RpcResult {
        if method == METHODS.session_list {
            self.list(params)
        } else if method == METHODS.session_delete {
            self.delete(params).await
        } else if method == METHODS.session_close {
            self.close(params).await
        } else if method == METHODS.session_set_mode {
            self.set_mode(params)
        } else if method == METHODS.session_set_config_option {
            self.set_option(params)
        } else if method == METHODS.authenticate {
            self.authenticate(params)
        } else {
            Err(error(ErrorCode::MethodNotFound, format!("there is no method {method:?}")))
        }
    }

    fn initialize(&self, params: Value) -> RpcResult {
        let request: InitializeRequest = read(params)?;
        let has_terminal = request.client_capabilities.auth.terminal;
        *lock(&self.capabilities) = Some(Arc::new(request.client_capabilities));
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true).image(true))
            .mcp_capabilities(ClientServers::capabilities())
            .session_capabilities(sessions)
            .meta(Meta::from_iter([(vault_methods::ANNOUNCED_AS.to_owned(), vault_methods::announcement())]));
        let what = "In a terminal: `vault-agent config set provider NAME`, `vault-agent config set model NAME`, and \
                    `vault-agent login NAME` for a key. Then try again.";
        let settings = AuthMethodAgent::new(SETTINGS, "Choose a model").description(what.to_owned());
        let mut methods = vec![AuthMethod::Agent(settings)];
        if has_terminal {
            // The client starts this program in a terminal, with these arguments after its usual ones.
            let terminal = AuthMethodTerminal::new(TERMINAL, "Choose a model in a terminal")
                .args(vec!["--choose-model".to_owned()]);
            methods.push(AuthMethod::Terminal(terminal));
        }
        let program = Implementation::new("vault-agent", env!("CARGO_PKG_VERSION")).title("Notes".to_owned());
        // This is the only supported version, whichever the client requested. A client that does not support it
        // disconnects.
        answer(
            InitializeResponse::new(ProtocolVersion::V1)
                .agent_capabilities(capabilities)
                .auth_methods(methods)
                .agent_info(program),
        )
    }

    /// Checks that a model is configured by now. The key itself never passes through the client.
    fn authenticate(&self, params: Value) -> RpcResult {
        let request: AuthenticateRequest = read(params)?;
        if &*request.method_id.0 != SETTINGS {
            return Err(error(
                ErrorCode::InvalidParams,
                format!("there is no way to log in called {}", request.method_id),
            ));
        }
        block_in_place(|| self.model())?;
        answer(AuthenticateResponse::new())
    }

    /// Loads the current settings and opens the model that they configure.
    fn model(&self) -> Result<(Settings, ChosenModel), Error> {
        let no_model = |fault: vault_tools::Error| error(ErrorCode::AuthRequired, fault.one_line());
        let settings = Settings::load(&self.setting_args).map_err(no_model)?;
        let model = model::required(&settings).map_err(no_model)?;
        Ok((settings, model))
    }

    /// Returns the workspace for a request without a session. It stays open, so that the next request finds the index
    /// loaded.
    async fn vault_of(self: &Arc<Self>, folder: Option<PathBuf>) -> Result<Arc<Workspace>, Error> {
        let agent = Arc::clone(self);
        let opened = tokio::task::spawn_blocking(move || {
            // Hold the lock while opening, so that concurrent requests do not open a vault twice.
            let mut shown = lock(&agent.shown);
            if let Some(known) = shown.get(&folder) {
                // The user may have changed the settings since.
                known.reload_policies().map_err(|fault| vault_methods::of_tools(&fault))?;
                return Ok(Arc::clone(known));
            }
            let opened = vault_methods::open(folder.as_deref(), &agent.vault_args).map_err(of_failure)?;
            let opened = Arc::new(opened.with_app(agent.app()));
            agent.watch(&opened);
            shown.insert(folder, Arc::clone(&opened));
            Ok(opened)
        });
        opened.await.map_err(|fault| error(ErrorCode::InternalError, fault.to_string()))?
    }

    /// Returns the app around a vault, if the client is a live host.
    fn app(&self) -> Option<AppHost> {
        let capabilities = lock(&self.capabilities).clone()?;
        live_host::declared(&capabilities, &self.client)
    }

    /// Opens the workspace for a working directory.
    fn workspace(&self, cwd: &Path) -> Result<Arc<Workspace>, Error> {
        let opened = block_in_place(|| folder::open(cwd, &self.vault_args)).map_err(of_failure)?;
        let opened = Arc::new(opened.with_app(self.app()));
        self.watch(&opened);
        Ok(opened)
    }

    /// Keeps the indexes of the vaults up to date, with one watcher for each set of vaults.
    fn watch(&self, opened: &Arc<Workspace>) {
        let folders: Vec<PathBuf> = opened.vaults().iter().map(|open| open.vault.path().to_owned()).collect();
        let mut workspaces = lock(&self.workspaces);
        let known = workspaces
            .entry(folders)
            .or_insert_with(|| (Arc::clone(opened), IndexWatcher::start(opened.vaults(), WatchNotices::Log)));
        // Keep the newest workspace, which has the current settings.
        known.0 = Arc::clone(opened);
    }

    fn session(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        lock(&self.sessions).get(id).cloned().ok_or_else(|| not_found(id))
    }

    async fn new_session(&self, params: Value) -> Result<(Value, Arc<Session>), Error> {
        let request: NewSessionRequest = read(with_servers(params))?;
        let (settings, model) = block_in_place(|| self.model())?;
        let workspace = self.workspace(&request.cwd)?;
        let servers = self.servers(request.mcp_servers, &request.cwd).await?;
        let conversation =
            Conversation::begin(workspace, model, settings.clone(), Editor::default(), Offer::All).map_err(of_tools)?;
        block_in_place(|| conversation.keep()).map_err(of_tools)?;
        let session = self.open(settings, conversation, servers)?;
        let response = NewSessionResponse::new(session.id.clone());
        let response = response.modes(session.modes()).config_options(session.options());
        Ok((answer(response)?, session))
    }

    async fn load(&self, params: Value) -> Result<(Value, Arc<Session>), Error> {
        let request: LoadSessionRequest = read(with_servers(params))?;
        let session = self.saved(&request.session_id, &request.cwd, request.mcp_servers).await?;
        session.replay().await;
        let response = LoadSessionResponse::new().modes(session.modes()).config_options(session.options());
        Ok((answer(response)?, session))
    }

    async fn resume(&self, params: Value) -> Result<(Value, Arc<Session>), Error> {
        let request: ResumeSessionRequest = read(with_servers(params))?;
        let session = self.saved(&request.session_id, &request.cwd, request.mcp_servers).await?;
        let response = ResumeSessionResponse::new().modes(session.modes()).config_options(session.options());
        Ok((answer(response)?, session))
    }

    /// Opens a saved session.
    async fn saved(&self, id: &SessionId, cwd: &Path, servers: Vec<McpServer>) -> Result<Arc<Session>, Error> {
        let saved = block_in_place(|| find(id))?;
        let (settings, model) = block_in_place(|| self.model())?;
        let workspace = self.workspace(cwd)?;
        let is_vault = |folders: &[PathBuf]| {
            let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
            let open = workspace.vaults().iter().map(|open| real(&open.vault.path().to_owned()));
            open.eq(folders.iter().map(real))
        };
        if !is_vault(&saved.vaults) {
            let folders: Vec<String> = saved.vaults.iter().map(|folder| folder.display().to_string()).collect();
            let message = format!("this conversation is about another vault: open {}", folders.join(", "));
            return Err(error(ErrorCode::InvalidParams, message));
        }
        let servers = self.servers(servers, cwd).await?;
        self.drop_session(id).await;
        // This waits until a turn that has just ended releases the conversation.
        let resumed = block_in_place(|| {
            Conversation::resume(saved, workspace, model, settings.clone(), Editor::default(), Offer::All)
        });
        self.open(settings, resumed.map_err(of_tools)?, servers)
    }

    async fn servers(&self, servers: Vec<McpServer>, cwd: &Path) -> Result<ClientServers, Error> {
        let capabilities = lock(&self.capabilities).clone().unwrap_or_default();
        ClientServers::start(servers, cwd, &self.client, has_forms(&capabilities)).await
    }

    fn open(
        &self,
        settings: Settings,
        mut conversation: Conversation,
        servers: ClientServers,
    ) -> Result<Arc<Session>, Error> {
        if let Some(tools) = servers.tools.clone() {
            conversation.set_servers(tools).map_err(of_tools)?;
        }
        let id = SessionId::new(conversation.info().id.clone());
        let capabilities = lock(&self.capabilities).clone().unwrap_or_default();
        let tools = conversation.tools().clone();
        let updates = Updates::new(self.client.clone(), id.clone(), Arc::clone(&capabilities), tools);
        servers.belong_to(&id);
        let (has_forms, has_approvals) = (has_forms(&capabilities), has_approvals(&capabilities));
        let parts = SessionParts {
            client: self.client.clone(),
            has_forms,
            has_approvals,
            settings,
            conversation,
            updates,
            servers,
        };
        let session = Arc::new(Session::new(id.clone(), parts));
        lock(&self.sessions).insert(id, Arc::clone(&session));
        Ok(session)
    }

    /// Sends the updates that follow the opening of a session.
    async fn opened(&self, session: &Session) {
        let commands = AvailableCommandsUpdate::new(commands::available());
        self.tell(&session.id, SessionUpdate::AvailableCommandsUpdate(commands));
        session.say_what_failed().await;
        session.say_what_waits().await;
    }

    fn tell(&self, session: &SessionId, update: SessionUpdate) {
        self.client.notify(CLIENT_METHODS.session_update, &SessionNotification::new(session.clone(), update));
    }

    fn prompt(self: &Arc<Self>, id: RequestId, params: Value) {
        let begun = read::<PromptRequest>(params).and_then(|request| {
            let session = self.session(&request.session_id)?;
            let running = session.begin_turn()?;
            Ok((session, running, request.prompt))
        });
        let (session, running, blocks) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.client.answer(&id, Err(error)),
        };
        let (agent, of) = (Arc::clone(self), (id.clone(), Arc::clone(&session)));
        // Hold the lock while the task starts, so that its entry exists before the task removes it.
        let mut prompts = lock(&self.prompts);
        let task = tokio::spawn(async move {
            agent.say_where_notes_go(&session).await;
            let ended = session.turn(&running, blocks).await;
            lock(&agent.prompts).remove(&id);
            // Release the session first, because the client may start the next turn when it reads the response.
            drop(running);
            agent.client.answer(&id, ended.and_then(|reason| answer(PromptResponse::new(reason))));
        });
        prompts.insert(of.0, (of.1, task.abort_handle()));
    }

    /// Stops all turns so that they can be continued later, and ends the servers of the sessions.
    pub async fn end(&self) {
        lock(&self.prompts).drain().for_each(|(_, (_, task))| task.abort());
        let sessions: Vec<_> = lock(&self.sessions).drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.end_servers().await;
        }
    }

    /// Tells the person once for each host that notes are sent there, before they are sent.
    async fn say_where_notes_go(&self, session: &Session) {
        let Destination::Host(host) = session.destination().await else { return };
        if lock(&self.told).contains(&host) {
            return;
        }
        lock(&self.told).push(host.clone());
        let text =
            format!("Your messages, and the parts of your notes that are found and read for them, are sent to {host}.");
        session.notice(NoticeSeverity::Info, &text).await;
    }

    fn list(&self, params: Value) -> RpcResult {
        let request: ListSessionsRequest = read(params)?;
        let invalid = || error(ErrorCode::InvalidParams, "the cursor is not from this list");
        let from: usize = request.cursor.map_or(Ok(0), |cursor| cursor.parse().map_err(|_| invalid()))?;
        let folders = match &request.cwd {
            None => None,
            Some(cwd) => Some(folder::meant(cwd, &self.vault_args).map_err(of_failure)?),
        };
        let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let is_meant = |saved: &SavedSession| {
            let folders = folders.as_ref().map(|folders| folders.iter().map(real).collect::<Vec<_>>());
            folders.is_none_or(|folders| saved.vaults.iter().map(real).eq(folders))
        };
        let all = block_in_place(|| Sessions::of_user().and_then(|sessions| sessions.list())).map_err(of_tools)?;
        let all: Vec<SavedSession> = all.into_iter().filter(is_meant).collect();
        if from > all.len() {
            return Err(invalid());
        }
        let page = all[from..].iter().take(PAGE).filter_map(|saved| {
            let info = SessionInfo::new(saved.id.clone(), saved.vaults.first()?.clone());
            Some(info.title(saved.title.clone()).updated_at(saved.updated.to_string()))
        });
        let response = ListSessionsResponse::new(page.collect());
        answer(match from + PAGE < all.len() {
            true => response.next_cursor((from + PAGE).to_string()),
            false => response,
        })
    }

    async fn delete(&self, params: Value) -> RpcResult {
        let request: DeleteSessionRequest = read(params)?;
        self.drop_session(&request.session_id).await;
        // Deleting a session that does not exist succeeds.
        if let Ok(saved) = block_in_place(|| find(&request.session_id)) {
            block_in_place(|| Sessions::of_user().and_then(|sessions| sessions.delete(&saved))).map_err(of_tools)?;
        }
        answer(DeleteSessionResponse::new())
    }

    async fn close(&self, params: Value) -> RpcResult {
        let request: CloseSessionRequest = read(params)?;
        match self.drop_session(&request.session_id).await {
            true => answer(CloseSessionResponse::new()),
            false => Err(not_found(&request.session_id)),
        }
    }

    /// Ends an open session. Returns whether it was open.
    async fn drop_session(&self, id: &SessionId) -> bool {
        let open = lock(&self.sessions).remove(id);
        let Some(session) = open else { return false };
        session.cancel();
        session.ended().await;
        true
    }

    fn set_mode(&self, params: Value) -> RpcResult {
        let request: SetSessionModeRequest = read(params)?;
        let session = self.session(&request.session_id)?;
        session.set_mode(Mode::of(&request.mode_id.0)?);
        self.tell(&session.id, SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(session.options())));
        answer(SetSessionModeResponse::new())
    }

    fn set_option(&self, params: Value) -> RpcResult {
        let request: SetSessionConfigOptionRequest = read(params)?;
        let session = self.session(&request.session_id)?;
        let value = request.value.as_value_id().map(|value| value.0.to_string()).unwrap_or_default();
        match &*request.config_id.0 {
            MODE => {
                let mode = Mode::of(&value)?;
                session.set_mode(mode);
                let current = session.modes().current_mode_id;
                self.tell(&session.id, SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(current)));
            }
            MODEL => {
                let current = session.model_name();
                if !models(session.settings(), &current).contains(&&*value) {
                    return Err(error(ErrorCode::InvalidParams, "this model is not among those that can be chosen"));
                }
                let mut settings = session.settings().clone();
                settings.model = Some(value);
                let model = block_in_place(|| model::open(&settings)).map_err(of_tools)?;
                session.set_model(model.ok_or_else(|| error(ErrorCode::InternalError, "no model is configured"))?);
            }
            other => return Err(error(ErrorCode::InvalidParams, format!("there is no option {other:?}"))),
        }
        answer(SetSessionConfigOptionResponse::new(session.options()))
    }
}

/// Returns the saved session with exactly this id.
fn find(id: &SessionId) -> Result<SavedSession, Error> {
    let saved = Sessions::of_user().and_then(|sessions| sessions.get(&id.0)).map_err(of_tools)?;
    saved.ok_or_else(|| not_found(id))
}

fn not_found(id: &SessionId) -> Error {
    Error::session_not_found(id.clone())
}

fn of_failure(failure: Failure) -> Error {
    error(ErrorCode::InvalidParams, failure.to_string())
}

/// Adds the required field for MCP servers, because some editors leave it out if there are no servers.
fn with_servers(mut params: Value) -> Value {
    if let Some(fields) = params.as_object_mut() {
        fields.entry("mcpServers").or_insert_with(|| Value::Array(Vec::new()));
    }
    params
}
