//! The requests that this side answers for a server: questions for the person, and progress. All others are rejected.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, Implementation, ProgressNotificationParam, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::{broadcast, watch};

use super::question::{Asker, ServerQuestion};

/// How many progress messages are buffered for a call; older ones are lost.
const WAITING: usize = 64;

/// The client side of a connection.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    server: String,
    asker: Option<Arc<dyn Asker>>,
    /// How many questions a person is being asked.
    open_questions: watch::Sender<usize>,
    progress: broadcast::Sender<ProgressNotificationParam>,
}

/// Counts a question while it exists.
struct OpenQuestion<'a>(&'a watch::Sender<usize>);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Handler {
    pub(super) fn new(server: &str, asker: Option<Arc<dyn Asker>>) -> Self {
        let (open_questions, progress) = (watch::Sender::new(0), broadcast::Sender::new(WAITING));
        Self { server: server.to_string(), asker, open_questions, progress }
    }

    pub(super) fn open_questions(&self) -> watch::Receiver<usize> {
        self.open_questions.subscribe()
    }

    pub(super) fn progress(&self) -> broadcast::Receiver<ProgressNotificationParam> {
        self.progress.subscribe()
    }

    /// Asks the person. Without an asker the answer is no.
    pub(super) async fn ask(&self, request: ElicitRequestParams) -> ElicitResult {
        let question = self.asker.as_ref().zip(ServerQuestion::of(&self.server, request));
        let Some((asker, question)) = question else { return ElicitResult::new(ElicitationAction::Decline) };
        self.open_questions.send_modify(|open| *open += 1);
        let _open = OpenQuestion(&self.open_questions);
        let kind = question.kind.clone();
        asker.ask(question).await.into_result(&kind)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        // The capability is declared only if a person can be asked, because otherwise servers have other ways.
        if self.asker.is_some() {
            let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(forms.with_url(UrlElicitationCapability::default()));
        }
        ClientConfig::new(capabilities, Implementation::new("agent-loop", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(tokio::select! {
            answer = self.ask(request) => answer,
            () = context.ct.cancelled() => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // An error means that no call is in progress.
        let _ = self.progress.send(progress);
    }
}
