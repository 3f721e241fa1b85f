//! An open session: a conversation and its state in the editor. It runs one turn at a time; a turn ends when the model
//! has answered, when it is cancelled, or at a limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_loop::{Effect, ErrorKind as LoopErrorKind, Limit, RunOutcome, StopReason as LoopStopReason, UserMessage};
use tokio_util::sync::CancellationToken;
use vault_tools::Error as ToolsError;

use super::commands::{self, Command};
use super::mcp_servers::ClientServers;
use super::options::{Mode, modes, options};
use super::permission_requests::Questioner;
use super::prompt::{self, Prompt};
use super::rpc::Client;
use super::turn_state::TurnState;
use super::updates::Updates;
use super::wire::{
    ContentBlock, Error, ErrorCode, NoticeSeverity, SessionConfigOption, SessionId, SessionInfoUpdate,
    SessionModeState, SessionUpdate, StopReason, error,
};
use crate::conversation::{Conversation, NoteTools, Offer, Turn, with_attached};
use crate::model::{ChosenModel, Destination};
use crate::settings::Settings;

/// A session that a client has open.
pub(super) struct Session {
    pub id: SessionId,
    client: Client,
    has_forms: bool,
    has_approvals: bool,
    settings: Settings,
    turn: Mutex<Option<CancellationToken>>,
    choices: Mutex<SessionChoices>,
    state: tokio::sync::Mutex<TurnState>,
    servers: ClientServers,
}

/// The options that a person chose.
struct SessionChoices {
    mode: Mode,
    /// The name of the model for the next turn.
    model: String,
    /// The model for the next turn, if it differs from the conversation's.
    next: Option<ChosenModel>,
    /// The tools of the conversation, so that a change of the mode takes effect during a turn.
    tools: NoteTools,
}

/// A running turn. When it is dropped, the session is ready for the next one.
pub(super) struct RunningTurn {
    session: Arc<Session>,
    pub cancel: CancellationToken,
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        *lock(&self.session.turn) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parts of a new session.
pub(super) struct SessionParts {
    pub client: Client,
    pub has_forms: bool,
    pub has_approvals: bool,
    pub settings: Settings,
    pub conversation: Conversation,
    pub updates: Updates,
    pub servers: ClientServers,
}

impl Session {
    pub fn new(id: SessionId, parts: SessionParts) -> Self {
        let SessionParts { client, has_forms, has_approvals, settings, conversation, mut updates, servers } = parts;
        updates.set_context_length(conversation.model().context_length);
        let (model, tools) = (conversation.model().name.clone(), conversation.tools().clone());
        let choices = SessionChoices { mode: Mode::default(), model, next: None, tools };
        Self {
            id,
            client,
            has_forms,
            has_approvals,
            settings,
            turn: Mutex::default(),
            choices: Mutex::new(choices),
            state: tokio::sync::Mutex::new(TurnState::new(conversation, updates)),
            servers,
        }
    }

    /// Starts a turn, which can be cancelled from then on.
    ///
    /// # Errors
    /// Invalid request while another turn is running.
    pub fn begin_turn(self: &Arc<Self>) -> Result<RunningTurn, Error> {
        let mut turn = lock(&self.turn);
        if turn.is_some() {
            return Err(error(ErrorCode::InvalidRequest, "a turn of this session is running; cancel it first"));
        }
        let cancel = CancellationToken::new();
        *turn = Some(cancel.clone());
        drop(turn);
        Ok(RunningTurn { session: Arc::clone(self), cancel })
    }

    /// Cancels the running turn, if there is one.
    pub fn cancel(&self) {
        if let Some(cancel) = &*lock(&self.turn) {
            cancel.cancel();
        }
    }

    /// Returns where the data that the model reads is sent.
    pub async fn destination(&self) -> Destination {
        self.state.lock().await.conversation.model().destination.clone()
    }

    /// Shows a notice to the person.
    pub async fn notice(&self, severity: NoticeSeverity, text: &str) {
        self.state.lock().await.updates.notice(severity, text);
    }

    /// Sends the whole conversation to the editor.
    pub async fn replay(&self) {
        let TurnState { conversation, updates, .. } = &mut *self.state.lock().await;
        let messages = conversation.run().into_iter().flat_map(|run| run.history().messages().iter());
        updates.replay(messages.map(|message| &**message));
    }

    /// Waits until no turn is running.
    pub async fn ended(&self) {
        drop(self.state.lock().await);
    }

    pub fn modes(&self) -> SessionModeState {
        modes(lock(&self.choices).mode)
    }

    pub fn options(&self) -> Vec<SessionConfigOption> {
        let choices = lock(&self.choices);
        options(choices.mode, &self.settings, &choices.model)
    }

    /// The settings at the start of the session.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name of the model for the next turn.
    pub fn model_name(&self) -> String {
        lock(&self.choices).model.clone()
    }

    /// Sets the mode, which takes effect immediately.
    pub fn set_mode(&self, mode: Mode) {
        let mut choices = lock(&self.choices);
        choices.mode = mode;
        choices.tools.close(mode == Mode::Read);
    }

    /// Sets the model for the next turn.
    pub fn set_model(&self, model: ChosenModel) {
        let mut choices = lock(&self.choices);
        choices.model.clone_from(&model.name);
        choices.next = Some(model);
    }

    /// Reports failed MCP servers of the client to the person.
    pub async fn say_what_failed(&self) {
        for failure in &self.servers.failures {
            self.notice(NoticeSeverity::Warning, failure).await;
        }
    }

    /// Ends the MCP servers of the client.
    pub async fn end_servers(&self) {
        if let Some(tools) = &self.servers.tools {
            tools.close().await;
        }
    }

    /// Tells a person who opens a saved conversation that it waits for a decision.
    pub async fn say_what_waits(&self) {
        let mut state = self.state.lock().await;
        if state.conversation.info().waits {
            let text = "This conversation waits for your decision. `/continue`, or any message, asks you again.";
            state.updates.notice(NoticeSeverity::Info, text);
        }
    }

    /// Runs a turn with the person's message, or a command.
    ///
    /// # Errors
    /// An invalid prompt; a session that cannot be saved; a model that failed.
    pub async fn turn(&self, running: &RunningTurn, blocks: Vec<ContentBlock>) -> Result<StopReason, Error> {
        let mut state = self.state.lock().await;
        let state = &mut *state;
        self.apply_choices(state)?;
        let workspace = Arc::clone(state.conversation.tools().workspace());
        let Prompt { said, attached, images, editor, notices } =
            tokio::task::block_in_place(|| prompt::read(blocks, &workspace))?;
        notices.iter().for_each(|notice| state.updates.notice(NoticeSeverity::Warning, notice));
        if let Some(editor) = editor {
            state.conversation.tools().set_editor(editor);
        }
        if said.trim().is_empty() && attached.is_empty() && images.is_empty() {
            // All of it was denied.
            return Ok(StopReason::EndTurn);
        }
        let ended = match Command::parse(&said) {
            Some(Command::Continue) => self.converse(state, running, None).await,
            Some(command) => commands::run(command, state, &self.questioner(running), &self.settings).await,
            None => {
                self.converse(state, running, {
                    let message = UserMessage::from(with_attached(&said, &attached));
                    Some(images.into_iter().fold(message, UserMessage::image))
                })
                .await
            }
        };
        self.tell_title(state);
        ended
    }

    fn apply_choices(&self, state: &mut TurnState) -> Result<(), Error> {
        let (mode, next) = {
            let mut choices = lock(&self.choices);
            (choices.mode, choices.next.take())
        };
        if let Some(model) = next {
            state.updates.set_context_length(model.context_length);
            state.conversation.set_model(model).map_err(of_tools)?;
        }
        if mode != state.mode {
            let offer = if mode == Mode::Read { Offer::Reading } else { Offer::All };
            state.conversation.set_offer(offer).map_err(of_tools)?;
            state.updates.set_tools(state.conversation.tools().clone());
            state.mode = mode;
            let mut choices = lock(&self.choices);
            choices.tools = state.conversation.tools().clone();
            choices.tools.close(choices.mode == Mode::Read);
        }
        Ok(())
    }

    fn questioner<'a>(&'a self, running: &'a RunningTurn) -> Questioner<'a> {
        Questioner {
            client: &self.client,
            session: &self.id,
            has_forms: self.has_forms,
            has_approvals: self.has_approvals,
            cancel: &running.cancel,
        }
    }

    /// Drives the conversation until the message is answered. A turn that a saved conversation left open is finished
    /// first.
    async fn converse(
        &self,
        state: &mut TurnState,
        running: &RunningTurn,
        mut message: Option<UserMessage>,
    ) -> Result<StopReason, Error> {
        let TurnState { conversation, updates, refused, .. } = state;
        let is_under_way = conversation.run().is_some_and(|run| !run.is_done());
        if !is_under_way && message.is_none() {
            updates.paragraph("Nothing is waiting.");
            return Ok(StopReason::EndTurn);
        }
        updates.begin_turn(message.as_ref().map_or("", |message| &message.text));
        let questioner = self.questioner(running);
        let mut to_say = if is_under_way { None } else { message.take() };
        let ended = loop {
            let mut on_event = |event| updates.event(event);
            let turn = match to_say.take() {
                Some(message) => conversation.say(message, &mut on_event, &running.cancel).await,
                None => conversation.go_on(&mut on_event, &running.cancel).await,
            };
            match turn.map_err(of_tools)? {
                Turn::Done(outcome) if message.is_none() || outcome.stop == LoopStopReason::Cancelled => break outcome,
                Turn::Done(_) => {
                    let (sources, removed) = updates.end_turn();
                    conversation.add_sources(&sources, &removed).map_err(of_tools)?;
                    updates.begin_turn(message.as_ref().map_or("", |message| &message.text));
                    to_say = message.take();
                }
                Turn::Waiting(questions) => {
                    // One after the other, because an approved change can affect the preview of the next.
                    let Some(question) = questions.first() else { continue };
                    let tools = conversation.tools().clone();
                    let is_closed = || question.effect == Effect::Write && tools.closed().is_some();
                    // In a read-only conversation, the policy denies the call when the run continues.
                    if is_closed() {
                        continue;
                    }
                    let decision = questioner.ask_person(conversation, updates, question, refused).await;
                    // After a cancellation, the run ends when it continues.
                    if let Some(decision) = decision.filter(|_| !is_closed()) {
                        conversation.decide(question, decision).map_err(of_tools)?;
                    }
                }
            }
        };
        let (sources, removed) = updates.end_turn();
        conversation.add_sources(&sources, &removed).map_err(of_tools)?;
        stopped(&ended, updates)
    }

    fn tell_title(&self, state: &mut TurnState) {
        let info = state.conversation.info();
        if info.title.is_empty() {
            return;
        }
        let update = SessionInfoUpdate::new().updated_at(info.updated.to_string());
        let update = if state.has_title { update } else { update.title(info.title.clone()) };
        state.has_title = true;
        state.updates.send(SessionUpdate::SessionInfoUpdate(update));
    }
}

/// Maps the reason for which a turn stopped to that of the protocol. Reasons that the protocol lacks are also shown to
/// the person.
fn stopped(outcome: &RunOutcome, updates: &mut Updates) -> Result<StopReason, Error> {
    match &outcome.stop {
        LoopStopReason::Answered => return Ok(StopReason::EndTurn),
        LoopStopReason::Cancelled => return Ok(StopReason::Cancelled),
        LoopStopReason::Failed { failure } => {
            let code = match failure.kind {
                LoopErrorKind::Authentication => ErrorCode::AuthRequired,
                _ => ErrorCode::InternalError,
            };
            return Err(error(code, format!("{failure}; the conversation is kept")));
        }
        _ => updates.notice(NoticeSeverity::Warning, &outcome.stop.to_string()),
    }
    Ok(match &outcome.stop {
        LoopStopReason::Length | LoopStopReason::Limit { limit: Limit::Tokens } => StopReason::MaxTokens,
        LoopStopReason::Limit { .. } => StopReason::MaxTurnRequests,
        LoopStopReason::Filtered | LoopStopReason::Refused => StopReason::Refusal,
        _ => StopReason::EndTurn,
    })
}

/// Converts an error of this program to one of the protocol.
pub(super) fn of_tools(fault: ToolsError) -> Error {
    error(ErrorCode::InternalError, fault.one_line())
}
