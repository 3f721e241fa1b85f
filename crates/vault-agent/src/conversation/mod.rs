//! A conversation about notes: a run of the agent over the vaults, saved after every step. The terminal, the editor and
//! the command `ask` use it.

mod line_numbers;
mod note_tools;
mod other_tools;
mod attachments;
mod prompt;
mod citations;
mod cited_notes;
mod mentions;
mod session;
mod panel;
#[cfg(test)]
mod approval_tests;
#[cfg(all(test, feature = "local"))]
mod real_model_tests;

use std::fs::File;
use std::sync::Arc;

use agent_loop::mcp::McpTools;
use agent_loop::{
    Agent, AtLimit, Budget, Decision, Durability, Effect, Event, ModelSettings, Observer, Pause, Question,
    QuestionSubject, Run, RunId, RunOptions, RunOutcome, ToolCall, ToolSpec, Transcript, UserMessage,
};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use vault_tools::{Editor, Error, ErrorKind, Result};

use crate::loop_error::of_loop;
use crate::model::ChosenModel;
use crate::settings::Settings;
use crate::workspace::Workspace;

pub(crate) use attachments::{Attachment, with_attached, without_attached};
pub(crate) use citations::{CitationCheck, ON_SCREEN, Source};
pub(crate) use cited_notes::{citation_check, named_note};
pub(crate) use mentions::{ComposedMessage, attach};
pub(crate) use note_tools::{NoteTools, Offer};
pub(crate) use panel::{OpenedQuestion, Panel, declined};
pub(crate) use prompt::system_message;
pub(crate) use session::{SessionInfo, Sessions};

use cited_notes::{marked, notes_of_turn};
use other_tools::{OtherToolsPolicy, ReadOnlyTools};
use session::title_of;

/// The share of a model's context above which the conversation is compacted.
const COMPACT_AT: f64 = 0.8;

const NOTHING_SAID: &str = "this conversation has no messages yet";

/// A conversation.
pub(crate) struct Conversation {
    agent: Agent,
    run: Option<Run>,
    transcript: Option<Transcript>,
    tools: NoteTools,
    model: ChosenModel,
    settings: Settings,
    info: SessionInfo,
    sessions: Sessions,
    /// Whether the conversation is compacted before the next message.
    compacts_next: bool,
    /// The lock that keeps other programs from writing the transcript.
    held: Option<File>,
    /// The tools of other programs.
    servers: Option<McpTools>,
}

/// The state after driving a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The model has answered, or the turn has ended for another reason.
    Done(RunOutcome),
    /// A person has to decide; then [`Conversation::go_on`] continues.
    Waiting(Vec<Question>),
}

impl Conversation {
    /// Starts a conversation. Nothing is written before the first message.
    ///
    /// # Errors
    /// When the system names no folder for saved conversations; two tools with the same name.
    pub fn begin(
        workspace: Arc<Workspace>,
        model: ChosenModel,
        settings: Settings,
        editor: Editor,
        offer: Offer,
    ) -> Result<Self> {
        let sessions = Sessions::of_user()?;
        let id = format!("{:012x}", fastrand::u64(..) >> 16);
        let now = Timestamp::now();
        let info = SessionInfo {
            id,
            title: String::new(),
            vaults: workspace.vaults().iter().map(|open| open.vault.path().to_owned()).collect(),
            provider: model.provider.clone(),
            model: model.name.clone(),
            created: now,
            updated: now,
            sources: Vec::new(),
            removed: Vec::new(),
            waits: false,
        };
        Self::with(NoteTools::new(workspace, &settings, offer), model, settings, editor, sessions, info)
    }

    /// Saves the id of a conversation without messages, so that it can be opened again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self) -> Result<()> {
        self.sessions.write(&self.info)
    }

    /// Opens a saved conversation. If it waits for a decision, [`Self::go_on`] asks again.
    ///
    /// # Errors
    /// A transcript that cannot be read.
    pub fn resume(
        info: SessionInfo,
        workspace: Arc<Workspace>,
        model: ChosenModel,
        settings: Settings,
        editor: Editor,
        offer: Offer,
    ) -> Result<Self> {
        let sessions = Sessions::of_user()?;
        let path = sessions.transcript(&info);
        let is_empty = info.is_empty();
        let mut conversation =
            Self::with(NoteTools::new(workspace, &settings, offer), model, settings, editor, sessions, info)?;
        if is_empty {
            return Ok(conversation);
        }
        conversation.held = Some(conversation.sessions.hold(&conversation.info)?);
        let (transcript, mut run, _) = Transcript::open(path, Durability::Machine).map_err(of_loop)?;
        // They were granted under other settings, and maybe for other programs of the same name.
        run.revoke_grants();
        (conversation.transcript, conversation.run) = (Some(transcript), Some(run));
        conversation.info.model.clone_from(&conversation.model.name);
        conversation.info.provider.clone_from(&conversation.model.provider);
        Ok(conversation)
    }

    fn with(
        tools: NoteTools,
        model: ChosenModel,
        settings: Settings,
        editor: Editor,
        sessions: Sessions,
        info: SessionInfo,
    ) -> Result<Self> {
        tools.set_editor(editor);
        let agent = agent(&model, &tools, None)?;
        Ok(Self {
            agent,
            run: None,
            transcript: None,
            tools,
            model,
            settings,
            info,
            sessions,
            compacts_next: false,
            held: None,
            servers: None,
        })
    }

    /// Returns the metadata of the conversation.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// Returns the run, once there is a message.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Returns the model.
    pub fn model(&self) -> &ChosenModel {
        &self.model
    }

    /// Returns the tools of the vaults.
    pub fn tools(&self) -> &NoteTools {
        &self.tools
    }

    /// Returns all offered tools, including those of other programs.
    pub fn tool_specs(&self) -> &[ToolSpec] {
        self.agent.context().tools.specs()
    }

    /// Changes the model.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub fn set_model(&mut self, model: ChosenModel) -> Result<()> {
        self.agent = agent(&model, &self.tools, self.servers.as_ref())?;
        self.info.model.clone_from(&model.name);
        self.info.provider.clone_from(&model.provider);
        self.model = model;
        Ok(())
    }

    /// Changes the offered tools from the next turn on.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub fn set_offer(&mut self, offer: Offer) -> Result<()> {
        let tools = NoteTools::new(Arc::clone(self.tools.workspace()), &self.settings, offer);
        tools.set_editor(self.tools.editor());
        self.agent = agent(&self.model, &tools, self.servers.as_ref())?;
        self.tools = tools;
        Ok(())
    }

    /// Adds the tools of other programs.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub fn set_servers(&mut self, servers: McpTools) -> Result<()> {
        self.agent = agent(&self.model, &self.tools, Some(&servers))?;
        self.servers = Some(servers);
        Ok(())
    }

    /// Sends a message, and drives the conversation until it is answered or a person has to decide.
    ///
    /// # Errors
    /// The session cannot be saved. Errors of the model are part of the outcome.
    pub async fn say(
        &mut self,
        message: impl Into<UserMessage>,
        on_event: &mut (dyn FnMut(Event) + Send),
        cancel: &CancellationToken,
    ) -> Result<Turn> {
        let message = message.into();
        let options = self.options();
        match &mut self.run {
            Some(run) => {
                run.say(message).map_err(of_loop)?;
                // The date, the note in the editor, the model and the settings may have changed.
                run.set_options(options);
                if std::mem::take(&mut self.compacts_next) {
                    run.compact_next();
                }
            }
            None => {
                self.info.title = title_of(&message.text);
                let run = Run::new(RunId::random(), options, message);
                self.sessions.write(&self.info)?;
                self.held = Some(self.sessions.hold(&self.info)?);
                let path = self.sessions.transcript(&self.info);
                self.transcript = Some(Transcript::create(path, &run, Durability::Machine).map_err(of_loop)?);
                self.run = Some(run);
            }
        }
        self.go_on(on_event, cancel).await
    }

    /// Drives the conversation on, after decisions or from where a saved one stopped.
    ///
    /// # Errors
    /// Those of [`Self::say`]; a conversation without messages.
    pub async fn go_on(
        &mut self,
        on_event: &mut (dyn FnMut(Event) + Send),
        cancel: &CancellationToken,
    ) -> Result<Turn> {
        let (Some(run), Some(transcript)) = (&mut self.run, &mut self.transcript) else {
            return Err(Error::new(ErrorKind::InvalidArguments, NOTHING_SAID));
        };
        let mut saving = SavingObserver { on_event, transcript, tools: &self.tools };
        let ended = self.agent.drive(run, &mut saving, cancel).await.map_err(of_loop)?;
        self.info.updated = Timestamp::now();
        self.info.waits = matches!(ended, Pause::Waiting(_));
        self.sessions.write(&self.info)?;
        Ok(match ended {
            Pause::Done(outcome) => Turn::Done(outcome),
            Pause::Waiting(questions) => Turn::Waiting(questions),
        })
    }

    fn is_asked_once(&self, call: &ToolCall) -> bool {
        let spec = self.agent.context().tools.get(&call.name);
        !self.tools.has(&call.name) && spec.is_some_and(|spec| spec.effect == Effect::Read)
    }

    /// Applies a person's decision about a question.
    ///
    /// # Errors
    /// A decision that does not fit the question, which stays open.
    pub fn decide(&mut self, question: &Question, decision: Decision) -> Result<()> {
        // A tool of another program that only reads is approved only once per conversation.
        let decision = match decision {
            Decision::Allow if self.is_asked_once(&question.call) => Decision::AllowForSession,
            other => other,
        };
        let Some(run) = &mut self.run else { return Ok(()) };
        let refused = match &decision {
            Decision::Deny { reason } if matches!(question.about, QuestionSubject::Running { .. }) => {
                Some(reason.clone().unwrap_or_else(|| "not approved".to_owned()))
            }
            _ => None,
        };
        let agrees =
            matches!(question.about, QuestionSubject::Running { .. }) && !matches!(decision, Decision::Deny { .. });
        run.decide(self.agent.context(), [question.decide(decision)])
            .map_err(|rejections| Error::new(ErrorKind::InvalidArguments, rejections.to_string()))?;
        if agrees {
            self.tools.agree(&question.call);
        }
        if let Some(reason) = refused {
            self.tools.refuse(&question.call, &reason);
        }
        Ok(())
    }

    /// Requests that the conversation is compacted before the next message.
    pub fn compact_next(&mut self) {
        self.compacts_next = true;
    }

    /// Exports the conversation as Markdown, with its sources.
    ///
    /// # Errors
    /// A conversation without messages; a transcript that cannot be read.
    pub fn export(&self) -> Result<String> {
        match self.run {
            Some(_) => self.sessions.export(&self.info, false),
            None => Err(Error::new(ErrorKind::InvalidArguments, NOTHING_SAID)),
        }
    }

    /// Marks the places whose notes were not read in this conversation.
    pub fn marked(&self, sources: &[Source]) -> Vec<Source> {
        self.run.as_ref().map_or_else(|| sources.to_vec(), |run| marked(run, sources))
    }

    /// Returns the notes that were read since the person's last message, or else the notes that were found.
    pub fn notes_of_turn(&self) -> Vec<String> {
        self.run.as_ref().map(notes_of_turn).unwrap_or_default()
    }

    /// Records the places that an answer cited, and the citations that were removed from it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_sources(&mut self, sources: &[Source], removed: &[String]) -> Result<()> {
        self.info.removed.extend_from_slice(removed);
        for source in sources {
            if !self.info.sources.contains(source) {
                self.info.sources.push(source.clone());
            }
        }
        self.sessions.write(&self.info)
    }

    fn options(&self) -> RunOptions {
        let settings = &self.settings;
        let limit = self.model.context_length.map(|length| (length as f64 * COMPACT_AT) as u64);
        RunOptions::default()
            .system(Some(system_message(&self.tools, settings.system.as_deref(), &self.tools.editor())))
            .budget(budget_of(settings).at_limit(AtLimit::SumUp))
            .compact_above(limit)
            .max_output_tokens(settings.max_tokens)
            .temperature(settings.temperature)
            .settings(sampling_of(settings))
    }
}

/// Returns the sampling settings other than the temperature.
pub(crate) fn sampling_of(settings: &Settings) -> ModelSettings {
    ModelSettings::default().top_p(settings.top_p).seed(settings.seed.map(i64::from))
}

/// Returns the limits for one message.
pub(crate) fn budget_of(settings: &Settings) -> Budget {
    Budget::default()
        .turns(Some(settings.max_turns))
        .calls(settings.max_calls)
        .tokens(settings.max_total_tokens)
        .time(settings.max_seconds.map(std::time::Duration::from_secs))
}

fn agent(model: &ChosenModel, tools: &NoteTools, servers: Option<&McpTools>) -> Result<Agent> {
    let model = Arc::clone(&model.model);
    let agent = match servers {
        None => Agent::new(model, tools.clone()).map(|agent| agent.policy(tools.clone())),
        Some(servers) => {
            let policy = OtherToolsPolicy::new(tools.clone(), servers.clone());
            match tools.offers_changes() {
                true => Agent::new(model, (tools.clone(), servers.clone())),
                false => Agent::new(model, (tools.clone(), ReadOnlyTools(servers.clone()))),
            }
            .map(|agent| agent.policy(policy))
        }
    };
    agent.map_err(of_loop)
}

/// Forwards events, and saves the run after every step.
struct SavingObserver<'a> {
    on_event: &'a mut (dyn FnMut(Event) + Send),
    transcript: &'a mut Transcript,
    tools: &'a NoteTools,
}

impl Observer for SavingObserver<'_> {
    fn event(&mut self, event: Event) {
        (self.on_event)(event);
    }

    fn save(&mut self, run: &Run) -> agent_loop::error::Result<()> {
        self.tools.set_granted(run.grants());
        self.transcript.append(run)
    }
}
