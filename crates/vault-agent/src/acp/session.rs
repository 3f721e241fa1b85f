//! One open session: a conversation, and what the editor knows of it. One turn at a time; a turn ends when the model has
//! answered, when it is cancelled, or at a limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_loop::{Effect, ErrorKind as LoopError, Limit, Outcome, StopReason as Stop, UserMessage};
use tokio_util::sync::CancellationToken;
use vault_tools::Error as ToolsError;

use super::commands::{self, Command};
use super::mcp_servers::ClientServers;
use super::options::{Mode, modes, options};
use super::prompt::{self, Prompt};
use super::questions::Asking;
use super::rpc::Client;
use super::state::State;
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
    chosen: Mutex<Chosen>,
    state: tokio::sync::Mutex<State>,
    servers: ClientServers,
}

/// What a person chose.
struct Chosen {
    mode: Mode,
    /// The name of the model that the next turn is with.
    model: String,
    /// That model, if it is another one than the conversation's.
    next: Option<ChosenModel>,
    /// The conversation's, so that a mode holds during a turn.
    tools: NoteTools,
}

/// A turn that is under way. Dropped, the session is ready for the next one.
pub(super) struct Running {
    session: Arc<Session>,
    pub cancel: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        *lock(&self.session.turn) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a session is made of.
pub(super) struct Parts {
    pub client: Client,
    pub has_forms: bool,
    pub has_approvals: bool,
    pub settings: Settings,
    pub conversation: Conversation,
    pub updates: Updates,
    pub servers: ClientServers,
}

impl Session {
    pub fn new(id: SessionId, parts: Parts) -> Self {
        let Parts { client, has_forms, has_approvals, settings, conversation, mut updates, servers } = parts;
        updates.set_context_length(conversation.model().context_length);
        let (model, tools) = (conversation.model().name.clone(), conversation.tools().clone());
        let chosen = Chosen { mode: Mode::default(), model, next: None, tools };
        Self {
            id,
            client,
            has_forms,
            has_approvals,
            settings,
            turn: Mutex::default(),
            chosen: Mutex::new(chosen),
            state: tokio::sync::Mutex::new(State::new(conversation, updates)),
            servers,
        }
    }

    /// Begins a turn, which can be cancelled from now on.
    ///
    /// # Errors
    /// Invalid request while another one is under way.
    pub fn begin_turn(self: &Arc<Self>) -> Result<Running, Error> {
        let mut turn = lock(&self.turn);
        if turn.is_some() {
            return Err(error(ErrorCode::InvalidRequest, "a turn of this session is under way; cancel it first"));
        }
        let cancel = CancellationToken::new();
        *turn = Some(cancel.clone());
        drop(turn);
        Ok(Running { session: Arc::clone(self), cancel })
    }

    /// Cancels the turn that is under way, if one is.
    pub fn cancel(&self) {
        if let Some(cancel) = &*lock(&self.turn) {
            cancel.cancel();
        }
    }

    /// Where what the model reads goes.
    pub async fn destination(&self) -> Destination {
        self.state.lock().await.conversation.model().destination.clone()
    }

    /// Tells the person something.
    pub async fn notice(&self, severity: NoticeSeverity, text: &str) {
        self.state.lock().await.updates.notice(severity, text);
    }

    /// Tells the editor the whole conversation.
    pub async fn replay(&self) {
        let State { conversation, updates, .. } = &mut *self.state.lock().await;
        let messages = conversation.run().into_iter().flat_map(|run| run.history().messages().iter());
        updates.replay(messages.map(|message| &**message));
    }

    /// Waits until no turn is under way.
    pub async fn ended(&self) {
        drop(self.state.lock().await);
    }

    pub fn modes(&self) -> SessionModeState {
        modes(lock(&self.chosen).mode)
    }

    pub fn options(&self) -> Vec<SessionConfigOption> {
        let chosen = lock(&self.chosen);
        options(chosen.mode, &self.settings, &chosen.model)
    }

    /// The settings that the session began with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name of the model of the next turn.
    pub fn model_name(&self) -> String {
        lock(&self.chosen).model.clone()
    }

    /// Chooses a mode, which holds at once.
    pub fn set_mode(&self, mode: Mode) {
        let mut chosen = lock(&self.chosen);
        chosen.mode = mode;
        chosen.tools.close(mode == Mode::Read);
    }

    /// Chooses the model of the next turn.
    pub fn set_model(&self, model: ChosenModel) {
        let mut chosen = lock(&self.chosen);
        chosen.model.clone_from(&model.name);
        chosen.next = Some(model);
    }

    /// What went wrong with the servers that the client named, said to the person.
    pub async fn say_what_failed(&self) {
        for failure in &self.servers.failures {
            self.notice(NoticeSeverity::Warning, failure).await;
        }
    }

    /// Ends the servers that the client named.
    pub async fn end_servers(&self) {
        if let Some(tools) = &self.servers.tools {
            tools.close().await;
        }
    }

    /// What is waiting, said to a person who opens a saved conversation.
    pub async fn say_what_waits(&self) {
        let mut state = self.state.lock().await;
        if state.conversation.info().waits {
            let text = "This conversation waits for your decision. `/continue`, or any message, asks you again.";
            state.updates.notice(NoticeSeverity::Info, text);
        }
    }

    /// A turn: what the person says, or a command.
    ///
    /// # Errors
    /// A prompt that cannot be taken; what could not be saved; a model that failed.
    pub async fn turn(&self, running: &Running, blocks: Vec<ContentBlock>) -> Result<StopReason, Error> {
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
            Some(command) => commands::run(command, state, &self.asking(running), &self.settings).await,
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

    fn apply_choices(&self, state: &mut State) -> Result<(), Error> {
        let (mode, next) = {
            let mut chosen = lock(&self.chosen);
            (chosen.mode, chosen.next.take())
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
            let mut chosen = lock(&self.chosen);
            chosen.tools = state.conversation.tools().clone();
            chosen.tools.close(chosen.mode == Mode::Read);
        }
        Ok(())
    }

    fn asking<'a>(&'a self, running: &'a Running) -> Asking<'a> {
        Asking {
            client: &self.client,
            session: &self.id,
            has_forms: self.has_forms,
            has_approvals: self.has_approvals,
            cancel: &running.cancel,
        }
    }

    /// Drives the conversation until it is answered. What a saved one waited for comes first.
    async fn converse(
        &self,
        state: &mut State,
        running: &Running,
        mut message: Option<UserMessage>,
    ) -> Result<StopReason, Error> {
        let State { conversation, updates, refused, .. } = state;
        let is_under_way = conversation.run().is_some_and(|run| !run.is_done());
        if !is_under_way && message.is_none() {
            updates.paragraph("Nothing is waiting.");
            return Ok(StopReason::EndTurn);
        }
        updates.begin_turn(message.as_ref().map_or("", |message| &message.text));
        let asking = self.asking(running);
        let mut to_say = if is_under_way { None } else { message.take() };
        let ended = loop {
            let mut on_event = |event| updates.event(event);
            let turn = match to_say.take() {
                Some(message) => conversation.say(message, &mut on_event, &running.cancel).await,
                None => conversation.go_on(&mut on_event, &running.cancel).await,
            };
            match turn.map_err(of_tools)? {
                Turn::Done(outcome) if message.is_none() || outcome.stop == Stop::Cancelled => break outcome,
                Turn::Done(_) => {
                    let (sources, removed) = updates.end_turn();
                    conversation.add_sources(&sources, &removed).map_err(of_tools)?;
                    updates.begin_turn(message.as_ref().map_or("", |message| &message.text));
                    to_say = message.take();
                }
                Turn::Waiting(questions) => {
                    // One after the other: what the first allows can change what the second would do.
                    let Some(question) = questions.first() else { continue };
                    let tools = conversation.tools().clone();
                    let is_closed = || question.effect == Effect::Write && tools.closed().is_some();
                    // In a conversation that is read only the policy denies it when the run is driven on.
                    if is_closed() {
                        continue;
                    }
                    let decision = asking.decide(conversation, updates, question, refused).await;
                    // Cancelled, the run ends when it is driven on.
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

    fn tell_title(&self, state: &mut State) {
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

/// Why a turn ended, as the protocol says it; what it has no word for is said to the person.
fn stopped(outcome: &Outcome, updates: &mut Updates) -> Result<StopReason, Error> {
    match &outcome.stop {
        Stop::Answered => return Ok(StopReason::EndTurn),
        Stop::Cancelled => return Ok(StopReason::Cancelled),
        Stop::Failed { failure } => {
            let code = match failure.kind {
                LoopError::Authentication => ErrorCode::AuthRequired,
                _ => ErrorCode::InternalError,
            };
            return Err(error(code, format!("{failure}; the conversation is kept")));
        }
        _ => updates.notice(NoticeSeverity::Warning, &outcome.stop.to_string()),
    }
    Ok(match &outcome.stop {
        Stop::Length | Stop::Limit { limit: Limit::Tokens } => StopReason::MaxTokens,
        Stop::Limit { .. } => StopReason::MaxTurnRequests,
        Stop::Filtered | Stop::Refused => StopReason::Refusal,
        _ => StopReason::EndTurn,
    })
}

/// An error of this program as one of the protocol.
pub(super) fn of_tools(fault: ToolsError) -> Error {
    error(ErrorCode::InternalError, fault.to_string())
}
