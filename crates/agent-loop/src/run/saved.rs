//! Saved runs as JSON. Older versions load; newer ones are rejected.
//!
//! ```text
//! { "format": "agent-loop run", "version": 1,
//!   "id": "run_…", "options": {…},      what the run is like
//!   "state": {…},                        where it stands; small
//!   "messages": [ {"role": "user", …}, … ] }
//! ```
//!
//! Fields that are missing have their defaults, so that a version only changes when a field changes its meaning.
//! `testdata/runs` holds states of every version and kind; they are loaded by a test.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::RunId;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{History, Message, Messages, Repair};

use super::{Phase, Run, RunOptions, State, StopReason};

const FORMAT: &str = "agent-loop run";

/// A run without its messages: what changes from step to step. Its JSON form is the format above without `messages`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedRun {
    format: String,
    version: u32,
    id: RunId,
    #[serde(default)]
    options: RunOptions,
    #[serde(default)]
    state: State,
}

#[derive(Serialize, Deserialize)]
struct FullRun {
    #[serde(flatten)]
    run: SavedRun,
    messages: Messages,
}

/// What is read first, since nothing else of a newer version may be understood.
#[derive(Deserialize)]
struct FormatHeader {
    format: String,
    version: u32,
}

impl Run {
    /// The version of the format in which runs are saved. A newer one is not read.
    pub const VERSION: u32 = 1;

    /// Everything but the messages. Costs as much as the open calls are large, whatever the length of the conversation.
    pub(crate) fn saved(&self) -> SavedRun {
        SavedRun {
            format: FORMAT.into(),
            version: Self::VERSION,
            id: self.id.clone(),
            options: self.options.clone(),
            state: self.state.clone(),
        }
    }

    /// Where it stands, alone, as JSON: the part that changes from step to step.
    pub(crate) fn state_json(&self) -> String {
        serde_json::to_string(&self.state).expect("a state has nothing in it that JSON cannot say")
    }

    /// All of it as JSON text. Linear in the conversation; a [transcript](crate::Transcript) writes each message once.
    pub fn to_json(&self) -> String {
        let whole = FullRun { run: self.saved(), messages: self.history.messages().clone() };
        serde_json::to_string(&whole).expect("a run has nothing in it that JSON cannot say")
    }

    /// A run from its JSON text, with what had to be repaired.
    ///
    /// Reads that were running will run again; writes get a result that says that they may or may not have
    /// taken effect.
    ///
    /// # Errors
    /// `Newer` when a newer version wrote it, `Damaged` when it is not a saved run.
    pub fn from_json(json: &str) -> Result<(Self, Vec<Repair>)> {
        serde_json::from_str::<FormatHeader>(json).map_err(damaged)?.check()?;
        let whole: FullRun = serde_json::from_str(json).map_err(damaged)?;
        Ok(Self::restore(whole.run, whole.messages.iter().map(|message| Message::clone(message))))
    }

    /// A run from its parts: whatever they are, the run has a valid history and can go on.
    pub(crate) fn restore(saved: SavedRun, messages: impl IntoIterator<Item = Message>) -> (Self, Vec<Repair>) {
        let SavedRun { id, options, mut state, .. } = saved;
        let mut messages: Vec<Message> = messages.into_iter().collect();
        let open = match (&mut state.phase, messages.last()) {
            (Phase::Calls { calls }, Some(last)) if calls.are(&last.calls().collect::<Vec<_>>()) => {
                calls.interrupted();
                messages.pop()
            }
            _ => None,
        };
        let (mut history, mut repairs) = History::repaired(messages);
        if let Some(open) = open
            && history.push(open.clone()).is_err()
        {
            // Its ids are used before it: the calls are ambiguous and are dropped.
            let all = history.messages().iter().map(|message| Message::clone(message)).chain([open]);
            let (mended, more) = History::repaired(all.collect::<Vec<_>>());
            history = mended;
            repairs.extend(more);
        }
        for repair in &repairs {
            log::warn!("{id}: {repair}");
        }
        state.phase = fitting_phase(state.phase, &history);
        (Self { id, options, history, state, untold: Vec::new() }, repairs)
    }
}

impl SavedRun {
    pub(crate) fn from_value(value: Value) -> Result<Self> {
        FormatHeader::deserialize(&value).map_err(damaged)?.check()?;
        serde_json::from_value(value).map_err(damaged)
    }

    pub(crate) fn set_state(&mut self, state: Value) -> Result<()> {
        self.state = serde_json::from_value(state).map_err(damaged)?;
        Ok(())
    }
}

impl FormatHeader {
    fn check(self) -> Result<()> {
        let Self { format, version } = self;
        if format != FORMAT {
            return Err(Error::new(ErrorKind::Damaged, format!("this is {format:?}, not a saved run")));
        }
        if version > Run::VERSION {
            let what =
                format!("it was saved in version {version} of the format; this program reads up to {}", Run::VERSION);
            return Err(Error::new(ErrorKind::Newer, what).with_remedy("use the newer program"));
        }
        Ok(())
    }
}

fn damaged(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Damaged, "this is not a saved run").with_source(error)
}

/// The phase, or where its messages say something else, the one that they allow.
fn fitting_phase(phase: Phase, history: &History) -> Phase {
    let has_open = history.open_calls().next().is_some();
    let model_is_next = matches!(
        history.messages().last().map(|message| &**message),
        Some(Message::User { .. } | Message::Note { .. } | Message::Results { .. })
    );
    match phase {
        Phase::Calls { calls } if has_open => Phase::Calls { calls },
        Phase::Ready | Phase::Calls { .. } if model_is_next => Phase::Ready,
        // The model spoke last, or nobody has spoken: there is nothing to reply to.
        Phase::Ready | Phase::Calls { .. } => Phase::Done { stop: StopReason::Answered, answer: None },
        done @ Phase::Done { .. } => done,
    }
}
