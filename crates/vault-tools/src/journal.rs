//! What was done to the vault: a file that is only added to, written before the vault is touched. It applies nothing.
//!
//! # The format
//!
//! The file `journal` in the vault's state folder is a sequence of frames:
//!
//! ```text
//! vt1 <length of the record> <length of the content> <check of the content> <check of the line so far and the record>\n
//! <record: one JSON object>\n
//! <content: bytes>\n
//! ```
//!
//! Lengths are decimal, in bytes; a check is the first 16 hexadecimal digits of the BLAKE3 hash; both are of the
//! bytes as they stand in the file. In a content, a `v` is put before each line that begins with one. So a line that
//! begins with `vt` and digits is the head of a frame, whatever the notes hold that are kept here.
//!
//! A run is
//!
//! | record | says | content |
//! | --- | --- | --- |
//! | `begin` | its number, when, what it is called, whether it applies, undoes or redoes, and which run | |
//! | `action`, for each | what is done to which path; the hashes of the file before and after; the name on the disk, where it is spelt otherwise than the path, and the permissions of what is moved or deleted | what the inverse needs: the file before an edit or a deletion |
//! | `ready` | all of the above is there | |
//! | `did` | the number of actions that are done | |
//! | `end`, in the place of `did` | how many were done, and whether the run was rolled back | |
//!
//! All of it, with `did` at 0, is written and synced before the vault is touched. `did` is written over itself
//! after each action; that is not synced, may fail, and only helps to find the place where a run was cut. `end` is
//! written over it when what was done is on the disk, and synced. Both are filled with blanks to one length, so that a
//! run can end on a disk that is full. Nothing else in the file is ever changed; frames of one run stand together, as
//! only the holder of the vault's lock writes. The file of a vault at rest ends with `end`: whoever begins a run has to
//! read that alone.
//!
//! When old runs are pruned, the first frame is `pruned`: the number of the last run that went, so that no later run
//! is given its number.
//!
//! # What cannot be read
//!
//! - Behind the last whole frame: it was never finished. The next writer removes it. If it is more than a cut frame can
//!   leave, it is kept beside the journal as `journal.damaged`.
//! - Between whole frames: it is damage. It stays, and is passed over. The run that it belongs to cannot be taken back;
//!   the others can.
//! - A head of another version, with nothing of this one after it: nothing is read or written, since a newer version
//!   wrote it.
//!
//! A run without `ready` and with `did` at 0 never began, and is removed by the next writer. One with `ready` and
//! without `end` was cut: it is rolled back before anything else is done to the vault (`change/recover.rs`).

mod prune;
mod read;
mod record;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::action::Action;
use crate::error::Result;
use crate::fault;
use crate::sandbox::Kept;
use crate::state::State;

pub(crate) use prune::prune;
pub use prune::{PruneOptions, Pruned};
pub(crate) use read::{Logged, LoggedAction, content_of, damaged, runs, unreadable};
pub(crate) use record::Ending;
use record::{Record, frame, slot, slot_length};
pub use record::{RunId, RunKind};

const FILE: &str = "journal";

/// Where bytes are kept that were behind the last whole frame and are more than a crash leaves.
const DAMAGED: &str = "journal.damaged";

/// A run is written down in pieces of about so many bytes; in tests of so few that runs are cut between them.
const PIECE: usize = if cfg!(test) { 512 } else { 1 << 20 };

/// What is said of a run before it begins.
#[derive(Debug, Clone)]
pub(crate) struct NewRun {
    pub label: String,
    pub kind: RunKind,
    /// The run that is undone or redone.
    pub of: Option<RunId>,
}

/// Whether every run is over and the file ends as it should. Takes no longer for a long file.
pub(crate) fn is_at_rest(state: &State) -> Result<bool> {
    read::at_rest(state).map(|at_rest| at_rest.is_some())
}

/// The run that was cut, if there is one. The file is mended: what never began or was never finished is gone from its
/// end, and where that was more than a crash leaves, it is told where it is kept. The lock is held.
pub(crate) fn mend(state: &State) -> Result<(Option<Logged>, Option<PathBuf>)> {
    if is_at_rest(state)? {
        return Ok((None, None));
    }
    let mut scan = read::scan(state)?;
    let mut aside = None;
    let tail = scan.length - scan.end;
    // A cut frame is one whose end is missing, or one that was being written over.
    if tail > slot_length() && !is_cut(state, scan.end, scan.length)? {
        aside = Some(keep_aside(state, scan.end)?);
    }
    let cut = scan.runs.pop().filter(|run| !run.is_over);
    let never_began = cut.as_ref().is_some_and(|run| !run.is_ready && run.done == 0);
    let end = match &cut {
        Some(run) if never_began => run.bytes.start,
        _ => scan.end,
    };
    // What of a cut run says how far it had come is written over when that is known, which takes no room.
    let is_written_over = cut.is_some() && !never_began && tail <= slot_length();
    if end < scan.length && !is_written_over {
        let file = state.open(FILE, OpenOptions::new().write(true))?;
        file.set_len(end).and_then(|()| file.sync_data()).map_err(|error| state.failed(FILE, &error))?;
        fault::step();
    }
    Ok((cut.filter(|_| !never_began), aside))
}

/// Whether the bytes from a place on are what is left of frames that were being written when the power went.
fn is_cut(state: &State, at: u64, length: u64) -> Result<bool> {
    let read = || -> std::io::Result<bool> {
        let mut file = File::open(state.folder().join(FILE))?;
        file.seek(SeekFrom::Start(at))?;
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(200).read_to_end(&mut head)?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(true);
        }
        let head = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Some(words) = std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix("vt1 ")) else {
            return Ok(false);
        };
        let lengths = words.split(' ').take(2).map(|word| word.parse::<u64>().ok());
        let frame = lengths.sum::<Option<u64>>().map(|sum| at + head.len() as u64 + sum + 3);
        Ok(frame.is_some_and(|end| end > length))
    };
    read().map_err(|error| state.failed(FILE, &error))
}

fn keep_aside(state: &State, from: u64) -> Result<PathBuf> {
    let keep = || -> std::io::Result<()> {
        let mut file = File::open(state.folder().join(FILE))?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut aside = state
            .open(DAMAGED, OpenOptions::new().append(true).create(true))
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        aside.write_all(&bytes)?;
        aside.sync_all()
    };
    keep().map_err(|error| state.failed(DAMAGED, &error))?;
    Ok(state.folder().join(DAMAGED))
}

/// A run that is being written down.
#[derive(Debug)]
pub(crate) struct Writer<'s> {
    state: &'s State,
    file: File,
    run: RunId,
    /// Where it says how far it has come.
    slot: u64,
}

impl<'s> Writer<'s> {
    /// Writes down what will be done, so that it is on the disk when this returns. The lock is held, and no run is cut.
    pub fn begin<'a>(
        state: &'s State,
        run: &NewRun,
        actions: impl ExactSizeIterator<Item = (&'a Action, &'a Kept)>,
    ) -> Result<Self> {
        let (newest, start) = match read::at_rest(state)? {
            Some(at_rest) => at_rest,
            None => read::scan(state).map(|scan| (scan.newest, scan.end))?,
        };
        let id = RunId(newest + 1);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let begin = Record::Begin {
            run: id,
            time_ms: u64::try_from(time).unwrap_or(u64::MAX),
            label: run.label.clone(),
            kind: run.kind,
            of: run.of,
        };
        let ready = Record::Ready { run: id, actions: actions.len() };
        let is_new = !state.has(FILE);
        let mut writer = Self::open(state, id, start)?;
        let written = writer.write_down(start, &begin, actions, &ready).and_then(|()| writer.sync());
        if let Err(error) = written {
            // The vault was not touched, and the room is somebody else's.
            let _ = writer.file.set_len(start);
            return Err(error.remedy("nothing was done; see to it that there is room for the journal"));
        }
        if is_new {
            state.sync_folder();
        }
        Ok(writer)
    }

    fn write_down<'a>(
        &mut self,
        start: u64,
        begin: &Record,
        actions: impl Iterator<Item = (&'a Action, &'a Kept)>,
        ready: &Record,
    ) -> Result<()> {
        self.file.set_len(start).map_err(|error| self.state.failed(FILE, &error))?;
        let mut at = start;
        let mut bytes = frame(begin, b"");
        for (action, kept) in actions {
            let content = match action {
                Action::Edit { before, .. } => before.bytes(),
                Action::Delete { content, .. } => content.bytes(),
                _ => b"",
            };
            bytes.extend(frame(&Record::of(self.run, action, kept), content));
            if bytes.len() >= PIECE {
                self.write_at(at, &bytes)?;
                at += bytes.len() as u64;
                bytes.clear();
            }
        }
        bytes.extend(frame(ready, b""));
        self.slot = at + bytes.len() as u64;
        bytes.extend(slot(&Record::Did { run: self.run, done: 0 }));
        self.write_at(at, &bytes)
    }

    /// Goes on with a run that was cut, in a file that was mended.
    pub fn resume(state: &'s State, run: &Logged) -> Result<Self> {
        Self::open(state, run.id, run.slot.unwrap_or(run.bytes.end))
    }

    fn open(state: &'s State, run: RunId, slot: u64) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        Ok(Self { state, file: state.open(FILE, &mut options)?, run, slot })
    }

    /// Its number.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// One more action is done. If that cannot be written, it is found out when it has to be.
    pub fn did(&mut self, done: usize) {
        let _ = self.write_at(self.slot, &slot(&Record::Did { run: self.run, done }));
    }

    /// The run is over.
    ///
    /// # Errors
    /// When that is not on the disk; it may be tried again.
    pub fn end(&mut self, ending: Ending) -> Result<()> {
        let (done, rolled_back) = match ending {
            Ending::Done(done) => (done, false),
            Ending::RolledBack => (0, true),
        };
        self.write_at(self.slot, &slot(&Record::End { run: self.run, done, rolled_back }))?;
        self.sync()
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        // Tests cut the write in its middle.
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let write = |file: &mut File| -> std::io::Result<()> {
            fault::write()?;
            file.seek(SeekFrom::Start(at))?;
            if cfg!(test) {
                file.write_all(first)?;
                fault::step();
                file.write_all(rest)?;
            } else {
                file.write_all(bytes)?;
            }
            Ok(())
        };
        let written = write(&mut self.file);
        fault::step();
        written.map_err(|error| self.state.failed(FILE, &error))
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.file.sync_data();
        fault::step();
        synced.map_err(|error| self.state.failed(FILE, &error))
    }
}

/// The word of a run that so many of its actions are done.
#[cfg(test)]
pub(crate) fn did_for_tests(run: RunId, done: usize) -> Vec<u8> {
    slot(&Record::Did { run, done })
}

#[cfg(test)]
mod tests;
