//! The Model Context Protocol server: all five revisions of the protocol, on standard input and output or over HTTP.
//!
//! ```text
//! client ──> handler (here) ──> calls ──> ChangeRequest: prepared ──> consent, settled ──> carried out ──> answer
//!                          └──> resources, prompts, completion, subscriptions
//! ```
//!
//! The handler keeps no state of its own: vaults, previews and used states are shared by all clients of a server.

mod results;
mod app;
mod macros;
mod catalog;
mod consent;
mod page_calls;
mod calls;
mod uri;
mod resources;
mod prompts;
mod completion;
mod subscriptions;
mod messages;
mod http;

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use vault_tools::{Error, ErrorKind, Result, Toolset, Vaults};

use calls::CallHandler;
pub(crate) use catalog::CatalogOptions;
pub(crate) use http::{Access, PATH, listen};
use messages::Lines;
pub(crate) use resources::SKILL;
use subscriptions::Subscriptions;

use crate::workspace::Workspace;

/// The revisions over HTTP. The oldest one is missing, because it had another HTTP transport.
const OVER_HTTP: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The instructions that clients load first; some cut them at 2,048 characters.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

type RpcResult<T> = std::result::Result<T, ErrorData>;

/// The handler of one client, or over HTTP of one request. All handlers share the same calls.
#[derive(Clone)]
pub(crate) struct Server {
    calls: Arc<CallHandler>,
    instructions: Arc<str>,
    subscriptions: Arc<Subscriptions>,
    is_http: bool,
}

impl Server {
    /// Creates a server of these vaults.
    ///
    /// # Errors
    /// When the system has no random numbers, or no folder for pending changes.
    pub fn new(workspace: Workspace, options: CatalogOptions) -> Result<Self> {
        let several = workspace.with(|vaults| vaults.instructions());
        let instructions = format!("{}{several}", INSTRUCTIONS).trim_end().into();
        let (calls, subscriptions) = (Arc::new(CallHandler::new(workspace, options)?), Arc::default());
        Ok(Self { calls, instructions, subscriptions, is_http: false })
    }

    /// The vaults of the server.
    pub fn workspace(&self) -> &Workspace {
        &self.calls.workspace
    }

    /// Returns a handler for another client.
    fn for_client(&self) -> Self {
        Self { subscriptions: Arc::default(), ..self.clone() }
    }

    /// Reads from the vaults on a thread that may block.
    async fn blocking<T: Send + 'static>(&self, act: impl FnOnce(&mut Vaults) -> T + Send + 'static) -> RpcResult<T> {
        let calls = Arc::clone(&self.calls);
        let read = tokio::task::spawn_blocking(move || calls.workspace.with(act)).await;
        read.map_err(|_| ErrorData::internal_error("internal error: the request panicked", None))
    }

    /// Serves one client on standard input and output, until its input ends.
    ///
    /// # Errors
    /// When the first message of the client is not the initialization.
    pub async fn on_stdio(self) -> Result<()> {
        let failed = |error: String| Error::new(ErrorKind::Io, error).at("standard input");
        let (input, output) = rmcp::transport::io::stdio_pipes();
        let running = self.serve(Lines::new(input, output)).await;
        match running {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| failed(error.to_string())),
            // A client that disconnects before its first message is no error.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe();
        let mut capabilities = capabilities.enable_prompts().enable_completions().build();
        capabilities.extensions = self.calls.options.approval_page.then(app::extension);
        let mut program = Implementation::new("vault-agent", env!("CARGO_PKG_VERSION"));
        program.title = Some("Notes".to_owned());
        ServerConfig::new(capabilities).with_server_info(program).with_instructions(&*self.instructions)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        if self.is_http { Cow::Borrowed(OVER_HTTP) } else { Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS) }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(self.calls.tools_for(&context)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.calls.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<CallToolResponse> {
        self.calls.call(params, context).await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<ListResourcesResult> {
        let cursor = params.and_then(|params| params.cursor);
        let is_first = cursor.is_none();
        let page = self.blocking(move |vaults| resources::list(vaults, cursor.as_deref())).await?;
        let mut page = page.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        if is_first && self.calls.has_page(&context) {
            page.resources.push(app::resource());
        }
        Ok(page)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<ListResourceTemplatesResult> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> RpcResult<ReadResourceResponse> {
        if params.uri == app::URI && self.calls.has_page(&context) {
            let page = ReadResourceResult::new(vec![app::contents()]);
            return Ok(page.with_ttl_ms(0).with_cache_scope(CacheScope::Private).into());
        }
        self.blocking(move |vaults| resources::read(vaults, &params.uri)).await?.map(ReadResourceResponse::from)
    }

    async fn subscribe(&self, params: SubscribeRequestParams, context: RequestContext<RoleServer>) -> RpcResult<()> {
        self.subscriptions.add(params.uri, &self.calls, context.peer).await
    }

    async fn unsubscribe(&self, params: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> RpcResult<()> {
        self.subscriptions.remove(&params.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> RpcResult<()> {
        subscriptions::listen(context, &self.calls).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<ListPromptsResult> {
        let mut prompts = prompts::list();
        if self.calls.options.toolsets.contains(&Toolset::Library) {
            let of_macros = self.blocking(|vaults| macros::prompts(vaults.toolbox(0))).await?;
            prompts.prompts.extend(of_macros.into_iter().filter(|prompt| !prompts::is_named(&prompt.name)));
        }
        Ok(prompts)
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<GetPromptResponse> {
        if self.calls.options.toolsets.contains(&Toolset::Library) && !prompts::is_named(&params.name) {
            let (name, args) = (params.name.clone(), params.arguments.clone());
            let of_macro = move |vaults: &mut Vaults| macros::prompt(vaults.toolbox(0), &name, args.as_ref());
            if let Some(prompt) = self.blocking(of_macro).await? {
                return Ok(prompt.into());
            }
        }
        prompts::get(&params.name, params.arguments.as_ref()).map(GetPromptResponse::from)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> RpcResult<CompleteResult> {
        let found = self.blocking(move |vaults| completion::complete(vaults, &params)).await?;
        // A note that cannot be read has no completions.
        Ok(CompleteResult::new(found.unwrap_or_default()))
    }
}
