//! A backend in the test's hand: every request is handed over, and is answered delta by delta.

use agent_loop::{BoxFuture, Delta, EndReason, Error, Model, ReplyStream, Request, ToolSupport, error::Result};
use futures_util::stream;
use tokio::sync::{mpsc, oneshot, watch};

use super::within;

pub struct Backend {
    asked: mpsc::UnboundedSender<BackendRequest>,
    live: watch::Sender<usize>,
    tools: ToolSupport,
}

/// The test's end.
pub struct Hand {
    asked: mpsc::UnboundedReceiver<BackendRequest>,
    live: watch::Receiver<usize>,
}

/// A request that waits for an answer.
pub struct BackendRequest {
    pub request: Request,
    accept: oneshot::Sender<Result<()>>,
    deltas: mpsc::UnboundedSender<Result<Delta>>,
}

/// A reply that is under way.
pub struct BackendReply(mpsc::UnboundedSender<Result<Delta>>);

/// Counts one request or stream for as long as it lives.
struct LiveCount(watch::Sender<usize>);

impl Drop for LiveCount {
    fn drop(&mut self) {
        self.0.send_modify(|live| *live -= 1);
    }
}

impl Backend {
    pub fn new() -> (Self, Hand) {
        let (asked, hand) = mpsc::unbounded_channel();
        let (live, lives) = watch::channel(0);
        (Self { asked, live, tools: ToolSupport::Native }, Hand { asked: hand, live: lives })
    }

    pub fn of_text_alone(mut self) -> Self {
        self.tools = ToolSupport::None;
        self
    }
}

impl Model for Backend {
    fn name(&self) -> &str {
        "in hand"
    }

    fn tool_support(&self) -> ToolSupport {
        self.tools
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        self.live.send_modify(|live| *live += 1);
        let live = LiveCount(self.live.clone());
        Box::pin(async move {
            let (accept, accepted) = oneshot::channel();
            let (deltas, spoken) = mpsc::unbounded_channel();
            self.asked.send(BackendRequest { request, accept, deltas }).expect("the test listens");
            accepted.await.expect("the test answers")?;
            Ok(Box::pin(stream::unfold((spoken, live), |(mut spoken, live)| async move {
                Some((spoken.recv().await?, (spoken, live)))
            })) as ReplyStream<'_>)
        })
    }
}

impl Hand {
    pub async fn asked(&mut self) -> BackendRequest {
        within(self.asked.recv()).await.unwrap()
    }

    /// Waits until so many requests and streams are alive.
    pub async fn live(&mut self, wanted: usize) {
        within(self.live.wait_for(|live| *live == wanted)).await.unwrap();
    }
}

impl BackendRequest {
    pub fn accept(self) -> BackendReply {
        // Whoever asked may be gone already.
        let _ = self.accept.send(Ok(()));
        BackendReply(self.deltas)
    }

    pub fn refuse(self, error: Error) {
        let _ = self.accept.send(Err(error));
    }

    /// What the person said last.
    pub fn text(&self) -> String {
        self.request.messages.last().unwrap().text()
    }
}

impl BackendReply {
    /// Whether somebody still listens.
    pub fn say(&self, text: &str) -> bool {
        self.delta(Delta::Text { text: text.into() })
    }

    pub fn delta(&self, delta: Delta) -> bool {
        self.0.send(Ok(delta)).is_ok()
    }

    pub fn end(self) {
        self.delta(Delta::End(EndReason::Complete));
    }

    pub fn fail(self, error: Error) {
        let _ = self.0.send(Err(error));
    }

    /// Waits until nobody listens any more.
    pub async fn dropped(&self) {
        within(self.0.closed()).await;
    }
}
