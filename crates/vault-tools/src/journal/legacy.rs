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

use serde::Deserialize;

use super::database::{Failure, open_or_create};
use super::entry::{ActionRow, State as EntryState, TransactionRow, digest};
use super::insert::insert;
use super::salvage::{LOST, number_from};
use crate::content::ContentHash;
use crate::error::Result;
use crate::failpoint;
use crate::state::State;

/// The journal of earlier versions.
pub(crate) const FILE: &str = "journal";

#[derive(Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
enum Record {
    Begin { run: i64, time_ms: i64, label: String, kind: String, of: Option<i64> },
    Action(ActionRecord),
    Ready { run: i64, actions: usize },
    Did { run: i64, done: i64 },
    End { run: i64, done: i64, rolled_back: bool },
    Pruned { run: i64 },
}

#[derive(Deserialize)]
struct ActionRecord {
    run: i64,
    action: String,
    path: String,
    to: Option<String>,
    before: Option<String>,
    after: Option<String>,
    name: Option<String>,
    mode: Option<u32>,
}

/// A run as the old journal has it.
#[derive(Default)]
struct Run {
    id: i64,
    time_ms: i64,
    label: String,
    kind: Option<String>,
    of: Option<i64>,
    actions: Vec<(ActionRow, Option<Vec<u8>>)>,
    is_ready: bool,
    done: i64,
    is_over: bool,
    rolled_back: bool,
}

/// What an old journal holds.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    newest: i64,
    is_damaged: bool,
}

/// Copies an old journal into the new one, if there is an old one, and renames it. The lock is held.
pub(crate) fn take_over(state: &State) -> Result<()> {
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
    let time_of = |id: i64| -> rusqlite::Result<Option<i64>> {
        use rusqlite::OptionalExtension;
        connection.query_row("SELECT time_ms FROM transaction_ WHERE id = ?", [id], |row| row.get(0)).optional()
    };
    let mut clash = false;
    let mut known = Vec::new();
    for run in &runs.runs {
        let time = time_of(run.id)?;
        // One of the same number and time was taken over before a crash.
        known.push(time == Some(run.time_ms));
        clash |= time.is_some_and(|time| time != run.time_ms);
    }
    // Both versions were used in turns.
    let offset: i64 = match clash {
        true => connection.query_row("SELECT max(id) FROM transaction_", [], |row| row.get(0))?,
        false => 0,
    };
    let last = runs.runs.len().saturating_sub(1);
    for (number, run) in runs.runs.into_iter().enumerate().filter(|(number, _)| !known[*number]) {
        let is_cut = number == last && !run.is_over;
        if is_cut && !run.is_ready && run.done == 0 {
            // It never began.
            continue;
        }
        let records: Vec<&ActionRow> = run.actions.iter().map(|(action, _)| action).collect();
        let state = match () {
            () if run.rolled_back => EntryState::RolledBack,
            () if is_cut && runs.is_damaged => EntryState::Suspect,
            () if is_cut => EntryState::Unfinished,
            () => EntryState::Done,
        };
        let is_whole = run.kind.is_some() && run.is_ready && (run.is_over || is_cut);
        let mut row = TransactionRow {
            id: run.id + offset,
            time_ms: run.time_ms,
            label: run.label,
            kind: run.kind.unwrap_or_else(|| "apply".to_owned()),
            of: run.of.map(|of| of + offset),
            first_action: 0,
            actions: records.len() as i64,
            digest: if is_whole { digest(&records) } else { LOST.to_owned() },
            state: state.name().to_owned(),
            done: run.done,
        };
        let actions: Vec<(&ActionRow, Option<&[u8]>)> =
            run.actions.iter().map(|(action, content)| (action, content.as_deref())).collect();
        insert(&connection, &mut row, &actions)?;
    }
    number_from(&connection, runs.newest + offset)?;
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
fn frame(bytes: &[u8]) -> Option<(Record, Option<Vec<u8>>, usize)> {
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
    let content = (check_of(content) == check_of_content).then(|| unescaped(content));
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
    fn add(&mut self, record: Record, content: Option<Vec<u8>>) {
        let id = match &record {
            Record::Begin { run, .. }
            | Record::Action(ActionRecord { run, .. })
            | Record::Ready { run, .. }
            | Record::Did { run, .. }
            | Record::End { run, .. }
            | Record::Pruned { run } => *run,
        };
        self.newest = self.newest.max(id);
        if matches!(record, Record::Pruned { .. }) {
            return;
        }
        if self.runs.last().is_none_or(|run| run.id != id) {
            self.runs.push(Run { id, ..Run::default() });
        }
        let Some(run) = self.runs.last_mut() else { return };
        match record {
            Record::Begin { time_ms, label, kind, of, .. } => {
                (run.time_ms, run.label, run.kind, run.of) = (time_ms, label, Some(kind), of);
            }
            Record::Action(ActionRecord { action, path, to, before, after, name, mode, .. }) => {
                let content = content.filter(|_| before.is_some());
                let row = ActionRow { kind: action, path, target: to, before, after, name, mode };
                run.actions.push((row, content));
            }
            Record::Ready { actions, .. } => run.is_ready = actions == run.actions.len(),
            Record::Did { done, .. } => run.done = done,
            Record::End { done, rolled_back, .. } => {
                (run.done, run.rolled_back, run.is_over) = (done, rolled_back, true);
            }
            Record::Pruned { .. } => {}
        }
    }
}
