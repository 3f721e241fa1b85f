//! The records of the journal, and how one becomes a frame.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::content::{Content, ContentHash};
use crate::sandbox::{Kept, SafePath};

/// The number of a run; later runs have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Something new.
    Apply,
    /// Takes a run back.
    Undo,
    /// Takes an undo back.
    Redo,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its first so many actions are done.
    Done(usize),
    /// None of them is.
    RolledBack,
}

/// One record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub(super) enum Record {
    Begin {
        run: RunId,
        time_ms: u64,
        label: String,
        kind: RunKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<RunId>,
    },
    Action(ActionRecord),
    Ready {
        run: RunId,
        actions: usize,
    },
    Did {
        run: RunId,
        done: usize,
    },
    End {
        run: RunId,
        done: usize,
        rolled_back: bool,
    },
    Pruned {
        run: RunId,
    },
}

/// An action without its contents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ActionRecord {
    pub run: RunId,
    pub action: String,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl Record {
    pub(super) fn of(run: RunId, action: &Action, kept: &Kept) -> Self {
        let (path, to) = action.paths();
        let hash = |content: &Content| Some(content.hash().to_string());
        let (before, after) = match action {
            Action::Create { content, .. } => (None, hash(content)),
            Action::Edit { before, after, .. } => (hash(before), hash(after)),
            Action::Delete { content, .. } => (hash(content), None),
            _ => (None, None),
        };
        Self::Action(ActionRecord {
            run,
            action: action.name().to_owned(),
            path: path.to_string(),
            to: to.map(SafePath::to_string),
            before,
            after,
            name: kept.name().map(str::to_owned),
            mode: kept.mode(),
        })
    }

    pub(super) fn run(&self) -> RunId {
        match self {
            Self::Begin { run, .. }
            | Self::Action(ActionRecord { run, .. })
            | Self::Ready { run, .. }
            | Self::Did { run, .. }
            | Self::End { run, .. }
            | Self::Pruned { run } => *run,
        }
    }
}

/// Bytes that the record of a slot takes, blanks at its end included: room for the largest numbers.
const SLOT_RECORD: usize = 120;

/// The bytes of a frame.
pub(super) fn frame(record: &Record, content: &[u8]) -> Vec<u8> {
    framed(text_of(record), content)
}

/// The bytes of a frame that may be written over another one: all slots are of one length.
pub(super) fn slot(record: &Record) -> Vec<u8> {
    let mut json = text_of(record);
    json.resize(json.len().max(SLOT_RECORD), b' ');
    framed(json, b"")
}

/// How many bytes a slot takes.
pub(super) fn slot_length() -> u64 {
    slot(&Record::Pruned { run: RunId(0) }).len() as u64
}

fn text_of(record: &Record) -> Vec<u8> {
    // A record is made of text and numbers, which can always be written.
    serde_json::to_vec(record).unwrap_or_default()
}

fn framed(json: Vec<u8>, content: &[u8]) -> Vec<u8> {
    let content = escaped(content);
    let lengths = format!("vt1 {} {} {} ", json.len(), content.len(), check(&content));
    let check = check_of_record(&lengths, &json);
    let mut bytes = Vec::with_capacity(lengths.len() + check.len() + json.len() + content.len() + 3);
    bytes.extend(lengths.bytes());
    bytes.extend(check.bytes());
    bytes.push(b'\n');
    bytes.extend(&json);
    bytes.push(b'\n');
    bytes.extend(&content);
    bytes.push(b'\n');
    bytes
}

pub(super) fn check(bytes: &[u8]) -> String {
    ContentHash::of(bytes).to_string()[..16].to_owned()
}

/// The check of a record, and of the head before it: a wrong length must not lead to a place in the middle of others.
pub(super) fn check_of_record(head: &str, json: &[u8]) -> String {
    check(&[head.as_bytes(), json].concat())
}

/// A content in which no line begins as a head does: a `v` stands before each line that begins with one.
fn escaped(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 16);
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if line[0] == b'v' {
            bytes.push(b'v');
        }
        bytes.extend(line);
    }
    bytes
}

/// What [`escaped`] was given.
pub(super) fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| if line[0] == b'v' { &line[1..] } else { line }).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_content_looks_like_a_head() {
        for content in ["", "v", "vt1 2 0 x y\n{}\n\n", "a\nvt1\nvvt1\n\nv\nxv", "\n", "\nv\r\nvt\0"] {
            let inside = escaped(content.as_bytes());
            let text = String::from_utf8(inside.clone()).unwrap();
            assert!(!text.split('\n').any(|line| line.starts_with("vt")), "{text:?}");
            assert_eq!(unescaped(&inside), content.as_bytes());
        }
    }

    #[test]
    fn slots_are_of_one_length() {
        let most = (RunId(u64::MAX), usize::MAX);
        for record in [
            Record::Did { run: RunId(1), done: 0 },
            Record::Did { run: most.0, done: most.1 },
            Record::End { run: most.0, done: most.1, rolled_back: false },
            Record::Pruned { run: most.0 },
        ] {
            assert_eq!(slot(&record).len() as u64, slot_length(), "{record:?}");
        }
    }
}
