//! Saved runs as JSON. Older versions load; newer ones are rejected.
//!
//! ```text
//! { "format": "agent-loop run", "version": 1,
//!   "id": "run_…", "options": {…},      what the run is like
//!   "state": {…},                        its progress; small
//!   "messages": [ {"role": "user", …}, … ] }
//! ```
//!
//! Missing fields have their defaults, so that the version changes only when a field changes its meaning.
//! `testdata/runs` has states of every version and kind; a test loads them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::RunId;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{History, Message, Messages, Repair};

use super::{Phase, Run, RunOptions, State, StopReason};

const FORMAT: &str = "agent-loop run";

/// A run without its messages: the part that changes from step to step. Its JSON form is the format above without
/// `messages`.
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

/// The part that is read first, because the rest of a newer version may not be understood.
#[derive(Deserialize)]
struct FormatHeader {
    format: String,
    version: u32,
}

impl Run {
    /// The version of the format in which runs are saved. A newer one is rejected.
    pub const VERSION: u32 = 1;

    /// Returns everything except the messages. The cost depends on the size of the open calls, not on the length of the
    /// conversation.
    pub(crate) fn saved(&self) -> SavedRun {
        SavedRun {
            format: FORMAT.into(),
            version: Self::VERSION,
            id: self.id.clone(),
            options: self.options.clone(),
            state: self.state.clone(),
        }
    }

    /// Returns only the state as JSON: the part that changes from step to step.
    pub(crate) fn state_json(&self) -> String {
        serde_json::to_string(&self.state).expect("every state has a JSON form")
    }

    /// Returns the whole run as JSON text. The cost is linear in the conversation; a [transcript](crate::Transcript)
    /// writes each message once.
    pub fn to_json(&self) -> String {
        let whole = FullRun { run: self.saved(), messages: self.history.messages().clone() };
        serde_json::to_string(&whole).expect("every run has a JSON form")
    }

    /// Loads a run from its JSON text, and returns the repairs that were necessary.
    ///
    /// Reads that were running will run again. Writes get a result that warns that they may or may not have taken
    /// effect.
    ///
    /// # Errors
    /// `Newer` if a newer version wrote it, `Damaged` if it is not a saved run.
    pub fn from_json(json: &str) -> Result<(Self, Vec<Repair>)> {
        serde_json::from_str::<FormatHeader>(json).map_err(damaged)?.check()?;
        let whole: FullRun = serde_json::from_str(json).map_err(damaged)?;
        Ok(Self::restore(whole.run, whole.messages.iter().map(|message| Message::clone(message))))
    }

    /// Builds a run from its parts. Whatever they are, the run has a valid history and can continue.
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

/// Returns the phase, or, if its messages contradict it, the phase that they allow.
fn fitting_phase(phase: Phase, history: &History) -> Phase {
    let has_open = history.open_calls().next().is_some();
    let model_is_next = matches!(
        history.messages().last().map(|message| &**message),
        Some(Message::User { .. } | Message::Note { .. } | Message::Results { .. })
    );
    match phase {
        Phase::Calls { calls } if has_open => Phase::Calls { calls },
        Phase::Ready | Phase::Calls { .. } if model_is_next => Phase::Ready,
        // The model's message is the last one, or there is no message: there is nothing to reply to.
        Phase::Ready | Phase::Calls { .. } => Phase::Done { stop: StopReason::Answered, answer: None },
        done @ Phase::Done { .. } => done,
    }
}
