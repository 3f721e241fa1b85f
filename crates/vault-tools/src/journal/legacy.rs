//! Takes over the journal of earlier versions, a text file of frames, and keeps it as `journal.old`. Only reads it.
//!
//! ```text
//! vt1 <length of the record> <length of the content> <check of the content> <check of the line so far and the record>\n
//! <record: one JSON object>\n
//! <content: bytes, with a `v` before each line that begins with one>\n
//! ```
//!
//! A check is the first 16 digits of the BLAKE3 hash. The records of a run are `begin`, an `action` each, `ready`, and
//! `did` or `end`; `pruned` stands for runs that were dropped. What lies between two frames is damage.

use rusqlite::OptionalExtension;
use serde::Deserialize;

use super::database::{Failure, open_or_create};
use super::entry::{ActionRow, JournalEntry, LOST, NewTransaction, State as EntryState};
use super::entry::{TransactionId, TransactionKind, insert};
use super::salvage::number_from;
use crate::content::{Content, ContentHash};
use crate::error::Result;
use crate::failpoint;
use crate::state::State;

/// The journal of earlier versions.
pub(crate) const FILE: &str = "journal";

#[derive(Deserialize)]
struct Record {
    run: u64,
    #[serde(flatten)]
    what: What,
}

#[derive(Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
enum What {
    Begin { time_ms: u64, label: String, kind: TransactionKind, of: Option<u64> },
    Action(ActionRow),
    Ready { actions: usize },
    Did { done: usize },
    End { done: usize, rolled_back: bool },
    Pruned,
}

/// A run as the old journal has it.
struct Run {
    entry: JournalEntry,
    contents: Vec<Option<Content>>,
    has_begin: bool,
    is_ready: bool,
}

/// What an old journal holds.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    newest: u64,
    is_damaged: bool,
}

/// Copies an old journal into the new one, if there is an old one, and renames it. The lock is held.
pub(crate) fn take_over(state: &State) -> Result<()> {
    state.check_no_folder(&[FILE])?;
    let bytes = match std::fs::read(state.folder().join(FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        bytes => bytes.map_err(|error| state.failed(FILE, &error))?,
    };
    copy(state, runs(&bytes)).map_err(|failure| failure.into_error(state))?;
    failpoint::step();
    let old = state.free_name("journal.old");
    state.rename(FILE, &old)?;
    state.sync_folder();
    ::log::info!("the journal of an earlier version was taken over; it is kept as {old}");
    Ok(())
}

fn copy(state: &State, runs: Runs) -> Result<(), Failure> {
    let connection = open_or_create(state)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let last = runs.runs.len().saturating_sub(1);
    let time_of = |id: u64| -> rusqlite::Result<Option<u64>> {
        connection.query_row("SELECT time_ms FROM transaction_ WHERE id = ?", [id], |row| row.get(0)).optional()
    };
    let mut clash = false;
    let mut unknown = Vec::new();
    for (number, run) in runs.runs.into_iter().enumerate() {
        let time = time_of(run.entry.id.0)?;
        clash |= time.is_some_and(|time| time != run.entry.time_ms);
        // One of the same number and time was taken over before a crash.
        if time != Some(run.entry.time_ms) {
            unknown.push((number == last, run));
        }
    }
    // Both versions were used in turns.
    let offset: u64 = match clash {
        true => connection.query_row("SELECT max(id) FROM transaction_", [], |row| row.get(0))?,
        false => 0,
    };
    for (is_last, run) in unknown {
        let Run { mut entry, contents, has_begin, is_ready } = run;
        let is_over = !entry.is_unfinished();
        if is_last && !is_over && !is_ready && entry.done == 0 {
            // It never began.
            continue;
        }
        let is_whole = has_begin && is_ready && (is_over || is_last);
        entry.state = match entry.state {
            EntryState::Unfinished if !is_last => EntryState::Done,
            EntryState::Unfinished if runs.is_damaged => EntryState::Suspect,
            state => state,
        };
        entry.id.0 += offset;
        entry.of = entry.of.map(|of| TransactionId(of.0 + offset));
        entry.digest = if is_whole { entry.digest_of_actions() } else { LOST.to_owned() };
        insert(&connection, &mut entry, &contents)?;
    }
    number_from(&connection, (runs.newest + offset).cast_signed())?;
    connection.execute_batch("COMMIT")?;
    Ok(())
}

fn runs(bytes: &[u8]) -> Runs {
    let mut runs = Runs::default();
    let mut at = 0;
    while at < bytes.len() {
        match frame(&bytes[at..]) {
            Some((record, content, length)) => {
                runs.add(record, content);
                at += length;
            }
            None => {
                // To the next line that may be a head; whatever is left behind the last frame was never finished.
                let next = bytes[at + 1..].windows(5).position(|window| window == b"\nvt1 ");
                let Some(next) = next else { break };
                at += next + 2;
                runs.is_damaged = true;
            }
        }
    }
    runs
}

/// The frame that some bytes begin with: its record, its content if that is whole, and its length.
fn frame(bytes: &[u8]) -> Option<(Record, Option<Content>, usize)> {
    let head_length = bytes.iter().take(200).position(|byte| *byte == b'\n')? + 1;
    let head = std::str::from_utf8(&bytes[..head_length - 1]).ok()?;
    let (text, check) = head.split_at(head.rfind(' ')? + 1);
    let mut words = text.strip_prefix("vt1 ")?.split(' ');
    let (record_length, content_length): (usize, usize) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let check_of_content = words.next()?;
    let record = bytes.get(head_length..head_length.checked_add(record_length)?)?;
    let content_at = head_length + record_length + 1;
    let content = bytes.get(content_at..content_at.checked_add(content_length)?)?;
    let length = content_at + content_length + 1;
    if check_of(&[text.as_bytes(), record].concat()) != check || bytes.len() < length {
        return None;
    }
    let content = (check_of(content) == check_of_content).then(|| unescaped(content).into());
    Some((serde_json::from_slice(record).ok()?, content, length))
}

fn check_of(bytes: &[u8]) -> String {
    ContentHash::of(bytes).to_string()[..16].to_owned()
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| if line[0] == b'v' { &line[1..] } else { line }).copied().collect()
}

impl Runs {
    fn add(&mut self, Record { run: id, what }: Record, content: Option<Content>) {
        self.newest = self.newest.max(id);
        if matches!(what, What::Pruned) {
            return;
        }
        if self.runs.last().is_none_or(|run| run.entry.id.0 != id) {
            let unknown = NewTransaction { label: String::new(), kind: TransactionKind::Apply, of: None };
            let entry = JournalEntry { id: TransactionId(id), ..JournalEntry::new(unknown, Vec::new()) };
            self.runs.push(Run { entry, contents: Vec::new(), has_begin: false, is_ready: false });
        }
        let Some(Run { entry, contents, has_begin, is_ready }) = self.runs.last_mut() else { return };
        match what {
            What::Begin { time_ms, label, kind, of } => {
                (entry.time_ms, entry.label, entry.kind) = (time_ms, label, kind);
                entry.of = of.map(TransactionId);
                *has_begin = true;
            }
            What::Action(row) => {
                if let Some(action) = row.into_action() {
                    contents.push(content.filter(|_| action.outline.removed_content().is_some()));
                    entry.actions.push(action);
                }
            }
            What::Ready { actions } => *is_ready = actions == entry.actions.len(),
            What::Did { done } => entry.done = done,
            What::End { done, rolled_back } => {
                entry.done = done;
                entry.state = if rolled_back { EntryState::RolledBack } else { EntryState::Done };
            }
            What::Pruned => {}
        }
    }
}
