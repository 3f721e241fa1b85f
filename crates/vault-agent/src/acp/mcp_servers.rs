//! MCP servers that a client names for a session: the model gets their tools, too. Because the client vouches for none
//! of them, each call asks.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use agent_loop::BoxFuture;
use agent_loop::mcp::{Asker, McpOptions, McpServer as Server, McpTools, QuestionAnswer, QuestionKind, ServerQuestion};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_search::sanitize_line;

use super::rpc::Client;
use super::wire::{
    CLIENT_METHODS, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, Error, ErrorCode, McpCapabilities, McpServer, SessionId, error,
};

/// The servers of a session. They end with it.
pub(super) struct ClientServers {
    /// `None` if the client named no servers.
    pub tools: Option<McpTools>,
    /// The errors of servers that failed, for the person.
    pub failures: Vec<String>,
    session: Arc<OnceLock<SessionId>>,
}

impl ClientServers {
    /// The transports besides standard input and output.
    pub fn capabilities() -> McpCapabilities {
        McpCapabilities::new().http(true)
    }

    /// Starts the servers and lists their tools. Failed servers are left out and reported in `failures`.
    ///
    /// # Errors
    /// Invalid params for a server with an unsupported transport.
    pub async fn start(servers: Vec<McpServer>, cwd: &Path, client: &Client, has_forms: bool) -> Result<Self, Error> {
        let session = Arc::default();
        if servers.is_empty() {
            return Ok(Self { tools: None, failures: Vec::new(), session });
        }
        let servers = servers.into_iter().map(|server| described(server, cwd)).collect::<Result<Vec<_>, _>>()?;
        let forms = FormAsker { client: client.clone(), session: Arc::clone(&session) };
        let asker = has_forms.then(|| Arc::new(forms) as Arc<dyn Asker>);
        let connected = McpTools::connect(servers, McpOptions::default().asker(asker)).await;
        let (tools, failures) =
            connected.map_err(|fault| error(ErrorCode::InternalError, format!("the MCP servers: {fault}")))?;
        let failures = failures.iter().map(|failure| format!("An MCP server: {}", sanitize_line(&failure.to_string())));
        Ok(Self { tools: Some(tools), failures: failures.collect(), session })
    }

    /// Sets the session in which the questions of the servers are asked.
    pub fn belong_to(&self, session: &SessionId) {
        let _ = self.session.set(session.clone());
    }
}

fn described(server: McpServer, cwd: &Path) -> Result<Server, Error> {
    Ok(match server {
        McpServer::Stdio(stdio) => {
            let server = Server::stdio(stdio.name, stdio.command).args(stdio.args).dir(cwd);
            stdio.env.into_iter().fold(server, |server, variable| server.env(variable.name, variable.value))
        }
        McpServer::Http(http) => {
            let server = Server::http(http.name, http.url);
            http.headers.into_iter().fold(server, |server, header| server.header(header.name, header.value))
        }
        _ => {
            let message = "MCP servers must use standard input and output or streamable HTTP";
            return Err(error(ErrorCode::InvalidParams, message));
        }
    })
}

/// Shows questions of the servers as forms of the client.
struct FormAsker {
    client: Client,
    session: Arc<OnceLock<SessionId>>,
}

impl Asker for FormAsker {
    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, QuestionAnswer> {
        Box::pin(async move {
            let form = match question.kind {
                QuestionKind::Form { schema } => serde_json::from_value::<ElicitationSchema>(schema).ok(),
                // Pages are declined: they would open outside of the client, where the person could not see which
                // server asks.
                _ => None,
            };
            let (Some(form), Some(session)) = (form, self.session.get()) else { return QuestionAnswer::Decline };
            let scope = ElicitationSessionScope::new(session.clone());
            // The name of the server is stated in our own words; the rest of the message is the server's.
            let message = format!("The MCP server {} asks: {}", sanitize_line(&question.server), question.message);
            let request = CreateElicitationRequest::new(ElicitationFormMode::new(scope, form), message);
            let method = CLIENT_METHODS.elicitation_create;
            let never = CancellationToken::new();
            match self.client.request::<CreateElicitationResponse>(method, &request, &never).await {
                Ok(CreateElicitationResponse { action: ElicitationAction::Accept(accepted), .. }) => {
                    QuestionAnswer::Accept(
                        serde_json::to_value(accepted.content.unwrap_or_default()).unwrap_or(Value::Null),
                    )
                }
                Ok(CreateElicitationResponse { action: ElicitationAction::Decline, .. }) => QuestionAnswer::Decline,
                _ => QuestionAnswer::Cancel,
            }
        })
    }
}
