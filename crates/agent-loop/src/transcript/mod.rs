//! Conversations on disk: append-only JSON Lines, written after every step, each message once.
//!
//! ```text
//! {"entry":"run", "run":{…}}                 the first line: a saved run without messages
//! {"entry":"message", "message":{…}}         one more message
//! {"entry":"history", "messages":[…]}        all messages anew: the conversation was made shorter
//! {"entry":"state", "state":{…}}             where the run stands now; the last one counts
//! ```
//!
//! A line is written in one piece and ends with a line feed. A last line without one was cut by a crash: it is dropped
//! on loading, and everything before it counts. Lines of an unknown entry are skipped.

mod markdown;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Observer;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Message, Repair};
use crate::run::{Run, SavedRun};

pub use markdown::to_markdown;

/// A transcript that is being written. Give it to [`Agent::drive`](crate::Agent::drive) as (a part of) the observer.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    durability: Durability,
    written: usize,
    /// Tells whether what was written is still the beginning of the history.
    last: Option<Arc<Message>>,
    state: String,
}

/// What a written step survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    #[default]
    Process,
    /// The end of the machine: each step waits for the disk.
    Machine,
}

#[derive(Serialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Entry<'a> {
    Run { run: &'a SavedRun },
    Message { message: &'a Message },
    History { messages: &'a crate::message::Messages },
}

#[derive(Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Line {
    Run {
        run: Value,
    },
    Message {
        message: Message,
    },
    History {
        messages: Vec<Message>,
    },
    State {
        state: Value,
    },
    #[serde(other)]
    Unknown,
}

impl Transcript {
    /// A new file, readable by its owner alone where the system knows owners.
    ///
    /// # Errors
    /// `Io` when it cannot be made; a file that is there is never overwritten.
    pub fn create(path: impl AsRef<Path>, run: &Run, durability: Durability) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| io(&path, error))?;
        let mut transcript = Self { file, path, durability, written: 0, last: None, state: String::new() };
        let mut lines = Vec::new();
        add_line(&mut lines, &Entry::Run { run: &run.saved() });
        transcript.write(&lines)?;
        transcript.append(run)?;
        Ok(transcript)
    }

    /// Goes on with a file: the run as it stood, what had to be repaired, and the transcript to write on.
    ///
    /// A half-written last line is cut off the file.
    ///
    /// # Errors
    /// `Io`; `Newer` and `Damaged` as for [`load`].
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<(Self, Run, Vec<Repair>)> {
        let path = path.as_ref().to_path_buf();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(|error| io(&path, error))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| io(&path, error))?;
        let (run, repairs) = read(&bytes).map_err(|error| error.at(path.display().to_string()))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(|error| io(&path, error))?;
        file.seek(SeekFrom::End(0)).map_err(|error| io(&path, error))?;
        let mut transcript = Self { file, path, durability, written: 0, last: None, state: String::new() };
        // What was repaired is written anew, so that the file says what the run now holds.
        if repairs.is_empty() {
            transcript.written = run.history().messages().len();
            transcript.last = run.history().messages().last().cloned();
        } else {
            transcript.rewrite(&run)?;
        }
        transcript.append(&run)?;
        Ok((transcript, run, repairs))
    }

    /// Writes what is new in the run. Costs as much as is new, and the size of the calls that are open.
    ///
    /// # Errors
    /// `Io`.
    pub fn append(&mut self, run: &Run) -> Result<()> {
        let messages = run.history().messages();
        let goes_on = match &self.last {
            None => self.written == 0,
            Some(last) => messages.get(self.written - 1).is_some_and(|message| Arc::ptr_eq(message, last)),
        };
        if !goes_on {
            self.rewrite(run)?;
        }
        let mut lines = Vec::new();
        for message in &messages[self.written..] {
            add_line(&mut lines, &Entry::Message { message });
        }
        let state = run.saved().state_json();
        if state != self.state {
            lines.extend_from_slice(format!("{{\"entry\":\"state\",\"state\":{state}}}\n").as_bytes());
        }
        self.write(&lines)?;
        self.written = messages.len();
        self.last = messages.last().cloned();
        self.state = state;
        Ok(())
    }

    fn rewrite(&mut self, run: &Run) -> Result<()> {
        let messages = run.history().messages();
        let mut lines = Vec::new();
        add_line(&mut lines, &Entry::History { messages });
        self.write(&lines)?;
        self.written = messages.len();
        self.last = messages.last().cloned();
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(lines).and_then(|()| match self.durability {
            Durability::Process => Ok(()),
            Durability::Machine => self.file.sync_data(),
        });
        written.map_err(|error| io(&self.path, error))
    }
}

impl Observer for Transcript {
    fn save(&mut self, run: &Run) -> Result<()> {
        self.append(run)
    }
}

/// The run of a transcript, and what had to be repaired. The file is not changed.
///
/// # Errors
/// `Io` when it cannot be read; `Newer` when a newer version wrote it; `Damaged` when the first line is no run or a
/// line before the last one is no JSON.
pub fn load(path: impl AsRef<Path>) -> Result<(Run, Vec<Repair>)> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|error| io(path, error))?;
    read(&bytes).map_err(|error| error.at(path.display().to_string()))
}

fn read(bytes: &[u8]) -> Result<(Run, Vec<Repair>)> {
    let damaged = |number: usize, what: String| {
        Error::new(ErrorKind::Damaged, format!("line {number} cannot be read: {what}"))
            .remedy("delete the damaged lines at its end; what stands before them can be loaded")
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let (mut saved, mut messages): (Option<SavedRun>, Vec<Message>) = (None, Vec::new());
    for (index, line) in bytes[..end].split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let line: Line = serde_json::from_slice(line).map_err(|error| damaged(number, error.to_string()))?;
        match (line, &mut saved) {
            (Line::Run { run }, saved) => *saved = Some(SavedRun::from_json(&run.to_string())?),
            (_, None) => return Err(damaged(number, "a transcript begins with a run".into())),
            (Line::Message { message }, _) => messages.push(message),
            (Line::History { messages: all }, _) => messages = all,
            (Line::State { state }, Some(saved)) => saved.set_state(state)?,
            (Line::Unknown, _) => {}
        }
    }
    let saved = saved.ok_or_else(|| damaged(1, "there is no whole line".into()))?;
    Ok(Run::restore(saved, messages))
}

fn add_line(lines: &mut Vec<u8>, entry: &Entry<'_>) {
    serde_json::to_writer(&mut *lines, entry).expect("an entry has nothing in it that JSON cannot say");
    lines.push(b'\n');
}

fn io(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "it cannot be read or written").at(path.display().to_string()).because(error)
}
