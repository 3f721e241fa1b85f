//! Results of syncs and the contents of an index, as plain values for people and scripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Warning;
use crate::links::Rule;
use crate::note::LinkKind;
use crate::path::VaultPath;

/// The result of a sync.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Report {
    /// Notes that are new in the index.
    pub added: usize,
    /// Notes whose content changed.
    pub changed: usize,
    /// Notes that were renamed or moved with their content unchanged.
    pub renamed: usize,
    /// Notes that were removed.
    pub removed: usize,
    /// Notes that were already up to date.
    pub unchanged: usize,
    /// Texts that the model embedded.
    pub embedded: usize,
    /// Passages of added, changed or renamed notes whose vectors already existed.
    pub reused: usize,
    /// Passages and file titles that still have no vector.
    pub pending: usize,
    /// Notes that were not read within the time limit.
    #[serde(skip)]
    pub unread: usize,
    /// Notes that are not indexed, and why.
    pub skipped: Vec<SkippedNote>,
    /// Warnings about notes that are indexed.
    pub warnings: Vec<NoteWarning>,
    /// Whether `skipped` or `warnings` differ from those before the sync.
    #[serde(skip)]
    pub has_new_findings: bool,
    /// The duration of each stage in milliseconds: `walk`, `read`, `text`, `links`, `vectors`.
    pub stages_ms: BTreeMap<String, u64>,
    /// The total duration in milliseconds.
    pub took_ms: u64,
}

impl Report {
    /// Whether the sync found no changes.
    pub fn is_unchanged(&self) -> bool {
        self.added + self.changed + self.renamed + self.removed + self.embedded + self.reused == 0
    }
}

/// A note that is not indexed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Skipped"))]
#[non_exhaustive]
pub struct SkippedNote {
    /// The path of the note.
    pub path: String,
    /// The reason.
    pub reason: String,
}

impl SkippedNote {
    /// Creates one, for a store.
    pub fn new(path: String, reason: String) -> Self {
        Self { path, reason }
    }
}

/// A [`Warning`] and the file that it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NoteWarning {
    /// The path of the file.
    pub path: String,
    /// The warning.
    #[serde(flatten)]
    pub warning: Warning,
}

impl NoteWarning {
    /// Creates one, for a store.
    pub fn new(path: String, warning: Warning) -> Self {
        Self { path, warning }
    }
}

/// The progress of a long call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// The number of items done.
    pub done: usize,
    /// The number of items in all, as far as known.
    pub total: usize,
    /// The estimated time for the rest of this stage, from the speed of the last half minute; only in
    /// [`Stage::Vectors`].
    pub left: Option<Duration>,
}

/// The stages of a sync, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Listing the vault's files.
    Walk,
    /// Reading, parsing and storing notes.
    Text,
    /// Resolving links.
    Links,
    /// Embedding passages.
    Vectors,
}

/// The results and failures of background embedding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackgroundStatus {
    /// The running process, if there is one.
    pub process: Option<String>,
    /// When the last process started.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub started: Option<Timestamp>,
    /// When it ended; none while it is running, and after it was killed.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub ended: Option<Timestamp>,
    /// The reason why it ended early.
    pub error: Option<String>,
    /// Texts without a vector, because the model could not embed them.
    pub failed: Vec<FailedText>,
}

/// A text that is no longer embedded in the background. A sync tries it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FailedText {
    /// The note.
    pub path: String,
    /// The first line of the passage; none for the note's title.
    pub line: Option<u32>,
    /// The error of the model.
    pub error: String,
}

/// The contents and the state of an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Status {
    /// The vault's folder.
    #[serde(serialize_with = "lossy")]
    pub vault: PathBuf,
    /// The index file.
    #[serde(serialize_with = "lossy")]
    pub index: PathBuf,
    /// The size of the index file and its log in bytes.
    pub index_bytes: u64,
    /// Notes (canvases included).
    pub notes: usize,
    /// Other files that links can lead to.
    pub attachments: usize,
    /// Passages.
    pub chunks: usize,
    /// Passages and file titles without a vector.
    pub pending: usize,
    /// Notes that were found but not read yet.
    #[serde(skip)]
    pub unread: usize,
    /// Links and embeds.
    pub links: usize,
    /// Links to files that do not exist.
    pub unresolved: usize,
    /// Distinct tags.
    pub tags: usize,
    /// The status of background embedding.
    pub background: BackgroundStatus,
    /// The model of the vectors in the index.
    pub model: String,
    /// The model of an unfinished rebuild, which will replace it.
    pub rebuilding_to: Option<String>,
    /// The dimensions of the vectors.
    pub dimensions: usize,
    /// The number of vectors, including those stored for reuse.
    pub vectors: usize,
    /// When a sync last found or made the index up to date with the notes; some passages may still lack a vector.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub last_sync: Option<Timestamp>,
    /// The process that watches the vault now, if there is one.
    pub watcher: Option<String>,
    /// The share of passages in which most words are unknown to the model.
    pub unknown_share: f32,
    /// Advice for the user, for example that another model would suit the vault's language.
    pub advice: Vec<String>,
    /// Notes that are not indexed.
    pub skipped: Vec<SkippedNote>,
    /// Warnings about notes.
    pub warnings: Vec<NoteWarning>,
}

/// A place where a note names another one without a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Mention {
    /// The note that contains it.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub path: VaultPath,
    /// Its line, from 1.
    pub line: u32,
    /// The name as it is written there.
    pub name: String,
    /// The line of text that contains it.
    pub text: String,
}

/// An index in the user's cache folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListedIndex {
    /// The vault's folder; `None` if the index does not name it.
    pub vault: Option<PathBuf>,
    /// Whether that folder exists.
    pub state: FolderState,
    /// The index file.
    #[serde(serialize_with = "lossy")]
    pub index: PathBuf,
    /// The size of the index file and its log in bytes.
    pub index_bytes: u64,
    /// Notes (canvases included).
    pub notes: Option<usize>,
    /// The model of the vectors in the index.
    pub model: Option<String>,
    /// When a sync last found or made the index up to date with the notes; some passages may still lack a vector.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub last_sync: Option<Timestamp>,
    /// The error that prevented reading it.
    pub problem: Option<String>,
}

/// Whether a vault's folder exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FolderState {
    /// It exists.
    There,
    /// It does not exist.
    Gone,
    /// It cannot be checked, or the folder is not known.
    #[default]
    Unknown,
}

/// A path that is not UTF-8 is shown as closely as possible.
fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// One link of the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LinkRow {
    /// The note that contains the link.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub source: VaultPath,
    /// Its line, from 1.
    pub line: u32,
    /// As written.
    pub raw: String,
    /// The syntax of the link.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub kind: LinkKind,
    /// Its path, decoded, without subpath.
    pub path: String,
    /// The text after `#`.
    pub subpath: Option<String>,
    /// The target; `None` if the file does not exist.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub target: Option<VaultPath>,
    /// Whether the target is a note without that heading or block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subpath_missing: bool,
    /// The line of text that contains the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The distance in links, for walks of more than one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
}

/// A link that leads to no file, or to a heading or block that its note lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BrokenLink {
    /// The link.
    #[serde(flatten)]
    pub link: LinkRow,
    /// The probable targets, the most certain first; at most three.
    pub proposals: Vec<RepairProposal>,
}

/// A probable target of a broken link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Proposal"))]
#[non_exhaustive]
pub struct RepairProposal {
    /// The file.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub target: VaultPath,
    /// The heading or `^block` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subpath: Option<String>,
    /// The certainty of the proposal.
    pub certainty: Certainty,
    /// The reason.
    pub reason: String,
}

/// The certainty of a [`RepairProposal`], the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The file was renamed, and no other file matches.
    Certain,
    /// It matches, and nothing else matches nearly as well.
    Likely,
    /// It is similar.
    Possible,
}

impl Certainty {
    /// The adverb for a sentence: `probably means`.
    pub fn adverb(self) -> &'static str {
        match self {
            Self::Certain => "certainly",
            Self::Likely => "probably",
            Self::Possible => "perhaps",
        }
    }
}

/// A missing link of a note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LinkSuggestion {
    /// The note that lacks the link.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub source: VaultPath,
    /// The line where it belongs, from 1.
    pub line: u32,
    /// The words that name the other note; none if it is only similar in meaning.
    pub text: Option<String>,
    /// The sentence, on one line.
    pub sentence: String,
    /// The note to link to.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub target: VaultPath,
    /// The score, from 0 to 1.
    pub score: f32,
    /// The kind of evidence.
    pub reason: SuggestionReason,
    /// The parts of the score.
    pub why: SuggestionParts,
}

/// The parts of the score of a [`LinkSuggestion`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SuggestionParts {
    /// 1 for the exact spelling of the name, less for another case or a plural; 0 if the note is not named.
    pub spelling: f32,
    /// The share of linked notes among those that contain the name, 0 to 1.
    pub linked: f32,
    /// The number of words in the name, at most 3.
    pub words: u32,
    /// The cosine of the closest passages of the two notes, if they were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
    /// Whether both notes are in the same folder.
    pub same_folder: bool,
}

/// Two notes with text in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DuplicateNotes {
    /// The one whose path comes first.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub first: VaultPath,
    /// The other one.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub second: VaultPath,
    /// The share of their text that they have in common, 0 to 1.
    pub share: f32,
}

/// The evidence that a note should be linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SuggestionReason {
    /// Its file's name, title or an alias.
    Name,
    /// The text of other notes' links to it.
    LinkText,
    /// A similar meaning.
    Meaning,
}

/// The target of a link.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResolvedLink {
    /// The file, if there is one.
    pub target: Option<VaultPath>,
    /// The line of the heading or block that its subpath names, if it exists.
    pub line: Option<u32>,
    /// Whether the target is a note that lacks the heading or block of the subpath.
    pub subpath_missing: bool,
    /// The rule that decided the target.
    pub rule: Rule,
    /// All files with this name, in the order of the rules' preference.
    pub candidates: Vec<VaultPath>,
}

/// A name that links lead to but no file has, or a heading or block that links lead to but its note lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UnresolvedName {
    /// The name, as first written, with `#` and the subpath if that is missing.
    pub name: String,
    /// The note that lacks the heading or block.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<VaultPath>,
    /// The number of links to it.
    pub count: usize,
    /// The notes that contain these links.
    #[cfg_attr(feature = "schemars", schemars(with = "Vec<String>"))]
    pub sources: Vec<VaultPath>,
}

/// A tag of the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TagCount {
    /// The first spelling, without `#`.
    pub tag: String,
    /// The number of notes with the tag itself.
    pub notes: usize,
    /// The number of notes with the tag or one nested below it.
    pub nested: usize,
}

impl TagCount {
    /// Creates one, for a store.
    pub fn new(tag: String, notes: usize, nested: usize) -> Self {
        Self { tag, notes, nested }
    }
}

/// Formats a count: `1 note`, `2 notes`.
pub(crate) fn counted_as(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CheckReport {
    /// One line per fault, with its place.
    pub faults: Vec<String>,
    /// One line for each note or folder that could not be read now, so that the index cannot be shown to match the
    /// vault.
    pub unreadable: Vec<String>,
    /// The number of notes that were read and compared.
    pub notes: usize,
    /// Passages and file titles without a vector, which is not a fault: the next sync embeds them.
    pub pending: usize,
    /// Whether the faults were repaired.
    pub repaired: bool,
    /// The duration in milliseconds.
    pub took_ms: u64,
}

impl CheckReport {
    /// Whether the index is sound and matches the vault now.
    pub fn is_sound(&self) -> bool {
        (self.faults.is_empty() || self.repaired) && self.unreadable.is_empty()
    }
}
