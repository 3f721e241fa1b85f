//! Transcripts: runs on disk as append-only JSON Lines, written after every step, each message once.
//!
//! ```text
//! {"entry":"run", "at":…, "run":{…}}           the first line: a saved run without messages
//! {"entry":"message", "at":…, "message":{…}}   one more message
//! {"entry":"history", "at":…, "messages":[…]}  all messages again, after compaction
//! {"entry":"state", "at":…, "state":{…}}       the state of the run; the last one counts
//! ```
//!
//! `at` is the time of writing, in milliseconds since 1970. The duration of a call is in its result.
//!
//! Each line is written with one write and ends with a line feed. A last line without one was cut by a crash: loading
//! drops it and keeps everything before it. A partial line of a failed write is truncated before the next write. Lines
//! of an unknown entry are skipped.

mod markdown;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Observer;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Message, Repair};
use crate::run::{Run, SavedRun};

pub use markdown::to_markdown;

/// A transcript that is being written. Pass it to [`Agent::drive`](crate::Agent::drive) as the observer or a part of
/// it.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    durability: Durability,
    /// The length of all whole lines in bytes.
    whole: u64,
    /// Whether a write failed and its partial line is still in the file.
    is_torn: bool,
    written: usize,
    /// The last message written, to check whether the written messages are still the beginning of the history.
    last: Option<Arc<Message>>,
    state: String,
}

/// The event that a written step survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    #[default]
    Process,
    /// A crash of the machine: each step waits for the disk, and a new file for its folder, if folders can be synced.
    Machine,
}

#[derive(Serialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Entry<'a> {
    Run { at: u64, run: &'a SavedRun },
    Message { at: u64, message: &'a Message },
    History { at: u64, messages: &'a crate::message::Messages },
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
    /// Creates a file that only its owner can read, on systems with owners.
    ///
    /// # Errors
    /// `Io` if it cannot be created. An existing file is never overwritten.
    pub fn create(path: impl AsRef<Path>, run: &Run, durability: Durability) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let mut options = OpenOptions::new();
        // Windows cannot truncate a file that is opened only for appending.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| io(&path, error))?;
        let mut transcript = Self::at(file, path, durability, 0);
        let mut lines = Vec::new();
        add_line(&mut lines, &Entry::Run { at: now(), run: &run.saved() });
        transcript.write(&lines)?;
        transcript.append(run)?;
        if durability == Durability::Machine {
            sync_folder(&transcript.path).map_err(|error| io(&transcript.path, error))?;
        }
        Ok(transcript)
    }

    /// Continues a file: returns the transcript to write to, the saved run, and the repairs that were necessary.
    ///
    /// A partial last line is truncated.
    ///
    /// # Errors
    /// `Io`; `Newer` and `Damaged` as for [`load`](Self::load).
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<(Self, Run, Vec<Repair>)> {
        let path = path.as_ref().to_path_buf();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(|error| io(&path, error))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| io(&path, error))?;
        let (run, repairs) = read(&bytes).map_err(|error| error.with_path(path.display().to_string()))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut transcript = Self::at(file, path, durability, whole as u64);
        transcript.cut()?;
        // Repairs are written, so that the file matches the run.
        if repairs.is_empty() {
            transcript.written = run.history().messages().len();
            transcript.last = run.history().messages().last().cloned();
            transcript.append(&run)?;
        } else {
            transcript.write_run(&run, false)?;
        }
        Ok((transcript, run, repairs))
    }

    /// Loads the run of a transcript, and returns the repairs that were necessary. The file is not changed.
    ///
    /// # Errors
    /// `Io` if it cannot be read; `Newer` if a newer version wrote it; `Damaged` if the first line is not a run or a
    /// line before the last one is not valid JSON.
    pub fn load(path: impl AsRef<Path>) -> Result<(Run, Vec<Repair>)> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| io(path, error))?;
        read(&bytes).map_err(|error| error.with_path(path.display().to_string()))
    }

    /// Returns all messages of a transcript, including those that compaction has removed from the run.
    ///
    /// # Errors
    /// The same as those of [`load`](Self::load).
    pub fn messages(path: impl AsRef<Path>) -> Result<Vec<Message>> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| io(path, error))?;
        let mut all: Vec<Message> = Vec::new();
        for (number, line) in whole_lines(&bytes) {
            let named = |error: Error| error.with_path(path.display().to_string());
            match parsed(number, line).map_err(named)? {
                Line::Run { run } => drop(SavedRun::from_value(run).map_err(named)?),
                Line::Message { message } => all.push(message),
                Line::History { messages } => {
                    let known =
                        messages.iter().rposition(|message| all.last().is_some_and(|last| is_same(message, last)));
                    let is_new = |message: &Message| all.iter().all(|one| !is_same(one, message));
                    let new: Vec<Message> = match known {
                        Some(known) => messages.into_iter().skip(known + 1).collect(),
                        // The history was repaired later.
                        None => messages.into_iter().filter(is_new).collect(),
                    };
                    all.extend(new);
                }
                _ => {}
            }
        }
        Ok(all)
    }

    fn at(file: File, path: PathBuf, durability: Durability, whole: u64) -> Self {
        Self { file, path, durability, whole, is_torn: false, written: 0, last: None, state: String::new() }
    }

    /// Writes the changes of the run. The cost depends on the size of the changes and of the open calls.
    ///
    /// # Errors
    /// `Io`. Earlier lines stay intact, and the next call writes what this one could not write.
    pub fn append(&mut self, run: &Run) -> Result<()> {
        let messages = run.history().messages();
        let goes_on = match &self.last {
            None => self.written == 0,
            Some(last) => messages.get(self.written - 1).is_some_and(|message| Arc::ptr_eq(message, last)),
        };
        self.write_run(run, goes_on)
    }

    /// Writes the new messages, or all of them if the history was replaced, and the state if it has changed.
    fn write_run(&mut self, run: &Run, goes_on: bool) -> Result<()> {
        let (messages, at) = (run.history().messages(), now());
        let mut lines = Vec::new();
        if goes_on {
            messages[self.written..].iter().for_each(|message| add_line(&mut lines, &Entry::Message { at, message }));
        } else {
            add_line(&mut lines, &Entry::History { at, messages });
        }
        let state = run.state_json();
        if state != self.state {
            lines.extend_from_slice(format!("{{\"entry\":\"state\",\"at\":{at},\"state\":{state}}}\n").as_bytes());
        }
        self.write(&lines)?;
        self.written = messages.len();
        self.last = messages.last().cloned();
        self.state = state;
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            self.cut()?;
        }
        let written = self.file.write_all(lines).and_then(|()| match self.durability {
            Durability::Process => Ok(()),
            Durability::Machine => self.file.sync_data(),
        });
        match written {
            Ok(()) => {
                self.whole += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.is_torn = true;
                // If this fails too, the next write tries again first.
                let _ = self.cut();
                Err(io(&self.path, error))
            }
        }
    }

    /// Truncates the file after its last whole line and continues there.
    fn cut(&mut self) -> Result<()> {
        let cut = self.file.set_len(self.whole).and_then(|()| self.file.seek(SeekFrom::Start(self.whole)));
        cut.map_err(|error| io(&self.path, error))?;
        self.is_torn = false;
        Ok(())
    }
}

/// Syncs the folder of a new file, because the file otherwise may not exist after a crash of the machine.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

impl Observer for Transcript {
    fn save(&mut self, run: &Run) -> Result<()> {
        self.append(run)
    }
}

impl Observer for &mut Transcript {
    fn save(&mut self, run: &Run) -> Result<()> {
        self.append(run)
    }
}

fn damaged(number: usize, what: String) -> Error {
    Error::new(ErrorKind::Damaged, format!("line {number} cannot be read: {what}"))
        .with_remedy("delete the damaged lines at its end; what stands before them can be loaded")
}

/// Returns the lines that end with a line feed, with their numbers from 1.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    (1..).zip(bytes[..end].split(|byte| *byte == b'\n'))
}

fn parsed(number: usize, line: &[u8]) -> Result<Line> {
    serde_json::from_slice(line).map_err(|error| damaged(number, error.to_string()))
}

/// Returns whether two messages are the same, although compaction may have cut the results of one.
fn is_same(one: &Message, other: &Message) -> bool {
    match (one, other) {
        (Message::Results { results: one }, Message::Results { results: other }) => {
            one.iter().map(|result| &result.call).eq(other.iter().map(|result| &result.call))
        }
        _ => one == other,
    }
}

fn read(bytes: &[u8]) -> Result<(Run, Vec<Repair>)> {
    let (mut saved, mut messages): (Option<SavedRun>, Vec<Message>) = (None, Vec::new());
    for (number, line) in whole_lines(bytes) {
        match (parsed(number, line)?, &mut saved) {
            (Line::Run { run }, saved) => *saved = Some(SavedRun::from_value(run)?),
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

/// Returns the milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn add_line(lines: &mut Vec<u8>, entry: &Entry<'_>) {
    serde_json::to_writer(&mut *lines, entry).expect("every entry has a JSON form");
    lines.push(b'\n');
}

fn io(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "the file cannot be read or written")
        .with_path(path.display().to_string())
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::RunId;
    use crate::error::Failure;

    #[test]
    fn a_write_that_failed_in_the_middle_of_a_line_damages_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let mut run = Run::new(RunId("r".into()), Default::default(), "go");
        let mut transcript = Transcript::create(&path, &run, Durability::Process).unwrap();
        // A full disk accepts only half of a line. A handle that cannot write simulates it.
        let whole = std::mem::replace(&mut transcript.file, File::open(&path).unwrap());
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"entry\":\"mess").unwrap();
        run.cancel(Vec::new());
        assert_eq!(Failure::from(&transcript.append(&run).unwrap_err()).kind, ErrorKind::Io);
        assert!(!Transcript::load(&path).unwrap().0.is_done(), "what was saved before can be loaded");
        transcript.file = whole;
        // Moves to the position of a handle that has written the half line itself.
        transcript.file.seek(SeekFrom::End(0)).unwrap();
        transcript.append(&run).unwrap();
        assert!(Transcript::load(&path).unwrap().0.is_done());
    }
}
