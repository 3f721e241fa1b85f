//! The Model Context Protocol server: all five revisions of the protocol, on standard input and output or over HTTP.
//!
//! ```text
//! client ──> handler (here) ──> calls ──> Request: prepared ──> consent ──> carried out ──> answer
//!                          └──> resources, prompts, completion, subscriptions
//! ```
//!
//! The handler knows nothing that outlives it: vaults, previews and used states are shared by all clients of a server.

mod answer;
mod app;
mod catalog;
mod consent;
mod page_calls;
mod calls;
mod http;

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use vault_tools::{Error, ErrorKind, Result};

use calls::Calls;
pub(crate) use catalog::Offered;
pub(crate) use http::{Access, PATH, listen};

use crate::workspace::Workspace;

/// Over HTTP these are spoken: the oldest revision knew another transport.
const OVER_HTTP: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// What clients load before anything else; some cut it at 2,048 characters.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

/// One for each client, or over HTTP for each request; all share the same calls.
#[derive(Clone)]
pub(crate) struct Server {
    calls: Arc<Calls>,
    instructions: Arc<str>,
    is_http: bool,
}

impl Server {
    /// A server of these vaults.
    ///
    /// # Errors
    /// When the system has no random numbers, or no folder for what waits.
    pub fn new(workspace: Workspace, offered: Offered) -> Result<Self> {
        let several = workspace.with(|vaults| vaults.instructions());
        let instructions = format!("{}{several}", INSTRUCTIONS).trim_end().into();
        Ok(Self { calls: Arc::new(Calls::new(workspace, offered)?), instructions, is_http: false })
    }

    /// The vaults that it serves.
    pub fn workspace(&self) -> &Workspace {
        &self.calls.workspace
    }

    /// Serves one client on standard input and output, until its input ends.
    ///
    /// # Errors
    /// When the client says something before it introduces itself that is no message.
    pub async fn on_stdio(self) -> Result<()> {
        let failed = |error: String| Error::new(ErrorKind::Io, error).at("standard input");
        let running = self.serve(rmcp::transport::io::stdio_pipes()).await;
        match running {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| failed(error.to_string())),
            // A client that leaves before it says anything is none.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        capabilities.extensions = self.calls.offered.approval_page.then(app::extension);
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
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.calls.tools_for(&context)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.calls.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        self.calls.call(params, context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourcesResult, ErrorData> {
        let pages = self.calls.has_page(&context).then(app::resource);
        Ok(ListResourcesResult::with_all_items(pages.into_iter().collect()))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ReadResourceResponse, ErrorData> {
        match params.uri == app::URI && self.calls.has_page(&context) {
            true => Ok(ReadResourceResult::new(vec![app::contents()]).into()),
            false => Err(ErrorData::resource_not_found(format!("there is no resource {}", params.uri), None)),
        }
    }
}
