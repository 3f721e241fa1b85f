//! A model that looks into the notes before it answers: the tools of the vaults run inside, out of its client's sight.
//!
//! ```text
//! request ──> run: the client's messages, its tools and those of the vaults ──> the model
//!                  ├─ a call of a vault's tool ──> runs here; the model goes on
//!                  ├─ a call of a client's tool ──> handed on; its result comes with the client's next request
//!                  └─ text ──> handed on
//! ```
//!
//! No person can be asked: tools that would have to ask are not offered, and a call that would ask is denied. The
//! client does not see the calls of the vaults' tools, so they are forgotten after a reply; a model that needs their
//! results again repeats the calls.

use std::fmt;
use std::sync::Arc;

use agent_loop::{
    Agent, AnswerShape, AtLimit, BoxFuture, Budget, CallPermission, CallPolicy, Delta, EndReason, Error, Event,
    History, ImageSupport, Limits, Model, Pause, Question, ReplyStream, Request, Retries, Review, Run, RunId,
    RunOptions, StopReason, ToolCall, ToolChoice, ToolError, ToolOutput, ToolSpec, Tools, Usage, error::Result,
};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use vault_tools::Editor;

use crate::conversation::{NoteTools, system_message};

/// A model with the tools of the vaults.
#[derive(Clone)]
pub(crate) struct NotesModel {
    pub model: Arc<dyn Model>,
    pub tools: NoteTools,
    pub budget: Budget,
}

impl fmt::Debug for NotesModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithNotes").field("model", &self.model.name()).finish_non_exhaustive()
    }
}

impl Model for NotesModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> Option<&str> {
        self.model.provider()
    }

    fn image_support(&self) -> ImageSupport {
        self.model.image_support()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        // If a client forces a call of its own or forbids all calls, the vaults' tools cannot be used.
        if request.tool_choice != ToolChoice::Auto {
            return self.model.reply(request);
        }
        Box::pin(async move {
            let mut deltas = self.clone().deltas(request)?;
            // An error before the first delta is an error of the request.
            let first = deltas.next().await.transpose()?;
            Ok(stream::iter(first.map(Ok)).chain(deltas).boxed())
        })
    }
}

impl NotesModel {
    fn deltas(self, request: Request) -> Result<ReplyStream<'static>> {
        let has_shape = request.answer_schema.is_some();
        let history = History::from_messages(request.messages.iter().map(|message| (**message).clone()))?;
        let system = system_message(&self.tools, request.system.as_deref(), &Editor::default());
        let mut options = RunOptions::default()
            .system(Some(system))
            .budget(self.budget.at_limit(AtLimit::SumUp))
            .parallel(request.parallel)
            .max_output_tokens(request.max_output_tokens)
            .temperature(request.temperature)
            .settings(request.settings);
        options.answer = request.answer_schema.map(|schema| AnswerShape::new((*schema).clone()));
        let mut run = Run::of_history(RunId::random(), options, history)?;
        let tools = AllTools { notes: self.tools, of_client: request.tools };
        let policy = tools.clone();
        // Clients retry themselves.
        let limits = Limits::default().retries(Retries::default().attempts(1));
        let agent = Agent::new(self.model, tools)?.policy(policy).limits(limits);
        let (send, receive) = unbounded_channel();
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        let drive = async move {
            let mut said = ReplyDeltas { deltas: send, has_shape, ..ReplyDeltas::new() };
            let paused = agent.drive(&mut run, &mut |event| said.event(event), &cancel).await;
            said.end(paused);
            drop(guard);
        };
        // The reader drives the run: a client that reads slowly slows the model down, and a client that disconnects
        // ends it.
        let received = stream::unfold(receive, |mut receive| async move { Some((receive.recv().await?, receive)) });
        let driven = stream::once(drive).filter_map(|()| async { None });
        Ok(stream::select(received, driven).boxed())
    }
}

/// The tools of the vaults and those of the client, which the client runs itself.
#[derive(Clone)]
struct AllTools {
    notes: NoteTools,
    of_client: Arc<[ToolSpec]>,
}

impl AllTools {
    fn is_of_client(&self, name: &str) -> bool {
        self.of_client.iter().any(|spec| spec.name == name)
    }
}

impl Tools for AllTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let notes = self.notes.specs().into_iter().filter(|spec| !self.is_of_client(&spec.name));
        notes.chain(self.of_client.iter().cloned()).collect()
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, std::result::Result<ToolOutput, ToolError>> {
        self.notes.call(call, cancel)
    }
}

impl CallPolicy for AllTools {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        if self.is_of_client(&call.name) {
            return CallPermission::Ask { why: "it is the client's".to_owned(), grant: call.name.clone() };
        }
        let nobody =
            || CallPermission::Deny { reason: "this needs a person's approval, and no person can be asked".to_owned() };
        match self.notes.permission(call, spec) {
            CallPermission::Ask { .. } => nobody(),
            CallPermission::Allow if self.notes.review(call, spec) == Review::Ask => nobody(),
            other => other,
        }
    }
}

/// Turns the events of a run into the deltas of one reply.
struct ReplyDeltas {
    deltas: UnboundedSender<Result<Delta>>,
    /// Whether the answer must match a schema. Then only the final answer is sent as text.
    has_shape: bool,
    has_text: bool,
    /// Whether calls have run since the last text.
    has_called: bool,
    /// The usage of the replies before this one, and of this one so far.
    before: Usage,
    now: Usage,
}

impl ReplyDeltas {
    fn new() -> Self {
        let (before, now) = (Usage::default(), Usage::default());
        Self { deltas: unbounded_channel().0, has_shape: false, has_text: false, has_called: false, before, now }
    }

    fn send(&self, delta: Delta) {
        // A client that has disconnected reads nothing more.
        let _ = self.deltas.send(Ok(delta));
    }

    fn text(&mut self, text: String) {
        if std::mem::take(&mut self.has_called) && self.has_text {
            self.send(Delta::Text { text: "\n\n".to_owned() });
        }
        self.has_text = true;
        self.send(Delta::Text { text });
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Text(text) | Event::Commentary(text) if !self.has_shape => self.text(text),
            Event::Reasoning(text) => self.send(Delta::Reasoning { text, opaque: None }),
            Event::Warning(text) => self.send(Delta::Warning { text }),
            Event::Usage(usage) => {
                self.now = usage;
                self.send(Delta::Usage(self.before.plus(usage)));
            }
            Event::ToolFinished { .. } => {
                self.has_called = true;
                self.before = self.before.plus(std::mem::take(&mut self.now));
                self.send(Delta::Progress);
            }
            // The end is sent when the run pauses.
            Event::Done(_) => {}
            _ => self.send(Delta::Progress),
        }
    }

    fn end(&mut self, paused: Result<Pause>) {
        let end = match paused {
            Ok(Pause::Waiting(questions)) => {
                self.calls(questions);
                EndReason::Complete
            }
            Ok(Pause::Done(outcome)) => {
                if self.has_shape && !outcome.text.is_empty() {
                    self.text(outcome.text);
                }
                match outcome.stop {
                    StopReason::Failed { failure } => {
                        let error = Error::new(failure.kind, failure.message);
                        let error = failure.retry_after.into_iter().fold(error, Error::with_retry_after);
                        let _ = self.deltas.send(Err(error));
                        return;
                    }
                    StopReason::Length => EndReason::Length,
                    StopReason::Filtered => EndReason::Filtered,
                    StopReason::Refused => EndReason::Refused,
                    StopReason::Answered => EndReason::Complete,
                    other => {
                        self.send(Delta::Warning { text: other.to_string() });
                        EndReason::Complete
                    }
                }
            }
            Err(error) => {
                let _ = self.deltas.send(Err(error));
                return;
            }
        };
        self.send(Delta::End(end));
    }

    /// Sends the calls of the client's tools.
    fn calls(&self, questions: Vec<Question>) {
        for (index, Question { call, .. }) in questions.into_iter().enumerate() {
            let text = call.arguments_text().into_owned();
            self.send(Delta::CallStart { index, id: call.id.0, name: call.name });
            self.send(Delta::CallArguments { index, text });
            self.send(Delta::CallEnd { index, opaque: call.opaque });
        }
    }
}
