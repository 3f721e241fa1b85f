//! The journal read: its runs without the contents, and a content when it is needed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::content::{Content, ContentHash};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::record::{ActionRecord, Record, check, check_of_record, slot_length, unescaped};
use crate::journal::{FILE, RunId, RunKind};
use crate::sandbox::{Kept, SafePath};
use crate::state::State;

/// A run as the journal has it.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub id: RunId,
    pub time: SystemTime,
    pub label: String,
    pub kind: RunKind,
    pub of: Option<RunId>,
    pub actions: Vec<LoggedAction>,
    /// All of its actions are written down.
    pub is_ready: bool,
    /// How many are known to be done.
    pub done: usize,
    /// It is known how it ended.
    pub is_over: bool,
    pub rolled_back: bool,
    /// Frames of it cannot be read.
    pub is_damaged: bool,
    /// Where its frames lie in the file.
    pub bytes: std::ops::Range<u64>,
    /// Where it says how far it has come.
    pub(super) slot: Option<u64>,
}

/// An action as the journal has it.
#[derive(Debug, Clone)]
pub(crate) struct LoggedAction {
    pub kind: String,
    pub path: SafePath,
    pub to: Option<SafePath>,
    pub before: Option<ContentHash>,
    pub after: Option<ContentHash>,
    /// What its inverse gives back besides the content.
    pub kept: Kept,
    content: Place,
}

/// Where a content lies in the file.
#[derive(Debug, Clone)]
struct Place {
    at: u64,
    length: u64,
    check: String,
}

/// All that the file says.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub runs: Vec<Logged>,
    /// The highest number that a run has or had.
    pub newest: u64,
    /// Where the last whole frame ends.
    pub end: u64,
    /// How long the file is.
    pub length: u64,
    /// Bytes between whole frames that are none.
    pub unreadable: u64,
}

/// All runs, oldest first. A run of which nothing is whole is not among them.
pub(crate) fn runs(state: &State) -> Result<Vec<Logged>> {
    scan(state).map(|scan| scan.runs)
}

/// How many bytes in the middle of the file cannot be read: runs that are lost, or hurt.
pub(crate) fn unreadable(state: &State) -> Result<u64> {
    scan(state).map(|scan| scan.unreadable)
}

/// The content that the inverse of an action needs.
pub(crate) fn content_of(state: &State, action: &LoggedAction) -> Result<Content> {
    let Place { at, length, check: expected } = &action.content;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(state.folder().join(FILE))?;
        file.seek(SeekFrom::Start(*at))?;
        let mut bytes = Vec::new();
        file.take(*length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| state.failed(FILE, &error))?;
    if bytes.len() as u64 != *length || check(&bytes) != *expected {
        return Err(damaged(state, format!("what {} held before is not whole", action.path)));
    }
    Ok(unescaped(&bytes).into())
}

pub(crate) fn damaged(state: &State, what: String) -> Error {
    Error::new(ErrorKind::Journal, format!("the journal is damaged: {what}"))
        .at(state.folder().join(FILE).display())
        .remedy("that run cannot be taken back; others can")
}

/// The number of the newest run and the length of the file, if its last words are that a run is over and nothing is
/// left to be mended. Reads those words only, however long the file is.
pub(super) fn at_rest(state: &State) -> Result<Option<(u64, u64)>> {
    let Some((mut reader, length)) = opened(state)? else { return Ok(Some((0, 0))) };
    let last = slot_length();
    if length < last {
        return Ok((length == 0).then_some((0, 0)));
    }
    let mut read = || -> std::io::Result<Option<Frame>> {
        reader.seek(SeekFrom::Start(length - last))?;
        next_frame(&mut reader, length - last, length)
    };
    Ok(match read().map_err(|error| state.failed(FILE, &error))? {
        Some(Frame { record: Record::End { run, .. } | Record::Pruned { run }, next, .. }) if next == length => {
            Some((run.0, length))
        }
        _ => None,
    })
}

fn opened(state: &State) -> Result<Option<(BufReader<File>, u64)>> {
    if !state.has(FILE) {
        return Ok(None);
    }
    let file = state.open(FILE, OpenOptions::new().read(true))?;
    let length = file.metadata().map_err(|error| state.failed(FILE, &error))?.len();
    Ok(Some((BufReader::with_capacity(1 << 16, file), length)))
}

/// Reads all frames. Between two that are whole there may be some that are not; behind the last one as well.
pub(super) fn scan(state: &State) -> Result<Scan> {
    let Some((mut reader, length)) = opened(state)? else { return Ok(Scan::default()) };
    let failed = |error: std::io::Error| state.failed(FILE, &error);
    let mut scan = Scan { length, ..Scan::default() };
    let mut at = 0;
    loop {
        reader.seek(SeekFrom::Start(at)).map_err(failed)?;
        let found = match next_frame(&mut reader, at, length).map_err(failed)? {
            Some(frame) => Found::Frame(Box::new(frame)),
            None => search(&mut reader, at, length).map_err(failed)?,
        };
        match found {
            Found::Frame(frame) => {
                scan.unreadable += frame.at - at;
                at = frame.next;
                scan.enter(*frame);
            }
            Found::Newer(version) => {
                let what = format!("the journal was written by a newer version of this program (format {version})");
                return Err(Error::new(ErrorKind::Journal, what)
                    .at(state.folder().join(FILE).display())
                    .remedy("use that version; or move the file away to begin anew, without what it can take back"));
            }
            Found::End => break,
        }
    }
    scan.judge();
    Ok(scan)
}

/// What follows a place at which no frame can be read.
enum Found {
    Frame(Box<Frame>),
    /// A head of another version, and nothing of ours after it.
    Newer(u64),
    End,
}

/// The next frame behind a place. A line that begins as a head is one, wherever it stands.
fn search(reader: &mut BufReader<File>, from: u64, length: u64) -> std::io::Result<Found> {
    let mut found = Found::End;
    let (mut at, mut line) = (from, Vec::new());
    loop {
        reader.seek(SeekFrom::Start(at))?;
        // To the next line that may be a head.
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                return Ok(found);
            }
            if line.starts_with(b"vt") {
                break;
            }
            at += read;
        }
        reader.seek(SeekFrom::Start(at))?;
        if let Some(frame) = next_frame(reader, at, length)? {
            return Ok(Found::Frame(Box::new(frame)));
        }
        if let Some(version) = version_of(&line).filter(|version| *version != 1) {
            found = Found::Newer(version);
        }
        at += line.len() as u64;
    }
}

/// The version that a head is of.
fn version_of(line: &[u8]) -> Option<u64> {
    let (version, rest) = std::str::from_utf8(line).ok()?.strip_prefix("vt")?.split_once(' ')?;
    // What follows is the business of that version; that it is a line of a few words is not.
    (rest.ends_with('\n') && rest.len() < 200).then(|| version.parse().ok()).flatten()
}

/// A frame without its content.
struct Frame {
    record: Record,
    content: Place,
    at: u64,
    next: u64,
}

/// The frame at a place, if it is whole as far as can be seen without its content.
fn next_frame(reader: &mut BufReader<File>, at: u64, length: u64) -> std::io::Result<Option<Frame>> {
    let mut head = Vec::new();
    reader.by_ref().take(200).read_until(b'\n', &mut head)?;
    let Some(parts) = std::str::from_utf8(&head).ok().and_then(Head::parse) else { return Ok(None) };
    let [json_length, content_length] = parts.lengths;
    if json_length > 1 << 24 || content_length > length {
        return Ok(None);
    }
    let content_at = at + head.len() as u64 + json_length + 1;
    let next = content_at + content_length + 1;
    if next > length {
        return Ok(None);
    }
    let mut json = vec![0; json_length as usize + 1];
    reader.read_exact(&mut json)?;
    json.pop();
    if check_of_record(parts.text, &json) != parts.check {
        return Ok(None);
    }
    let Ok(record) = serde_json::from_slice(&json) else { return Ok(None) };
    let content = Place { at: content_at, length: content_length, check: parts.check_of_content.to_owned() };
    Ok(Some(Frame { record, content, at, next }))
}

/// The first line of a frame.
struct Head<'a> {
    lengths: [u64; 2],
    check_of_content: &'a str,
    /// All before the check.
    text: &'a str,
    check: &'a str,
}

impl<'a> Head<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        let (text, check) = line.split_at(line.rfind(' ')? + 1);
        let mut words = text.strip_prefix("vt1 ")?.split(' ');
        let mut length = || words.next()?.parse().ok();
        let lengths = [length()?, length()?];
        Some(Self { lengths, check_of_content: words.next()?, text, check })
    }
}

impl Scan {
    fn enter(&mut self, frame: Frame) {
        let Frame { record, content, at, next } = frame;
        self.newest = self.newest.max(record.run().0);
        self.end = next;
        if matches!(record, Record::Pruned { .. }) {
            return;
        }
        let id = record.run();
        if self.runs.last().is_none_or(|run| run.id != id) {
            // A run whose beginning cannot be read is known by what follows.
            self.runs.push(Logged::unknown(id, at));
        }
        let Some(run) = self.runs.last_mut() else { return };
        run.bytes.end = next;
        match record {
            Record::Begin { time_ms, label, kind, of, .. } => {
                run.time = UNIX_EPOCH + Duration::from_millis(time_ms);
                (run.label, run.kind, run.of, run.is_damaged) = (label, kind, of, false);
            }
            // One of which no action can be made is missed when all are counted.
            Record::Action(action) => run.actions.extend(logged(action, content)),
            Record::Ready { actions, .. } => run.is_ready = !run.is_damaged && actions == run.actions.len(),
            Record::Did { done, .. } => (run.done, run.slot) = (done, Some(at)),
            Record::End { done, rolled_back, .. } => {
                (run.done, run.rolled_back, run.is_over, run.slot) = (done, rolled_back, true, Some(at));
            }
            Record::Pruned { .. } => {}
        }
    }

    /// Says of each run whether it can be relied on. Only the last one may be under way.
    fn judge(&mut self) {
        let last = self.runs.len().saturating_sub(1);
        for (number, run) in self.runs.iter_mut().enumerate() {
            let is_whole = run.is_ready && (run.is_over || number == last);
            // What was rolled back, or never begun, is not missed.
            let is_nothing = run.rolled_back || (number == last && !run.is_over && run.done == 0);
            run.is_damaged = !is_whole && !is_nothing;
            run.is_over |= number != last;
        }
    }
}

impl Logged {
    fn unknown(id: RunId, at: u64) -> Self {
        Self {
            id,
            time: UNIX_EPOCH,
            label: String::new(),
            kind: RunKind::Apply,
            of: None,
            actions: Vec::new(),
            is_ready: false,
            done: 0,
            is_over: false,
            rolled_back: false,
            is_damaged: true,
            bytes: at..at,
            slot: None,
        }
    }
}

/// `None` for paths that no action of ours can have had.
fn logged(action: ActionRecord, content: Place) -> Option<LoggedAction> {
    let hash = |hex: Option<String>| hex.as_deref().and_then(ContentHash::from_hex);
    Some(LoggedAction {
        kind: action.action,
        path: SafePath::recorded(&action.path).ok()?,
        to: action.to.as_deref().map(SafePath::recorded).transpose().ok()?,
        before: hash(action.before),
        after: hash(action.after),
        kept: Kept::new(action.name, action.mode),
        content,
    })
}
