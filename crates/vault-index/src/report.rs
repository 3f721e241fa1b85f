//! What a sync did and what an index holds: plain values for people and scripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Warning;
use crate::links::Rule;
use crate::note::LinkKind;
use crate::path::VaultPath;

/// What a sync did.
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
    /// Notes that are gone.
    pub removed: usize,
    /// Notes that were already up to date.
    pub unchanged: usize,
    /// Texts that went through the model.
    pub embedded: usize,
    /// Passages of added, changed or renamed notes whose vectors were already there.
    pub reused: usize,
    /// Passages and file titles still without a vector.
    pub pending: usize,
    /// Notes that could not be read in the time there was.
    #[serde(skip)]
    pub unread: usize,
    /// Notes that are not indexed, and why.
    pub skipped: Vec<SkippedNote>,
    /// Warnings about notes that are indexed.
    pub warnings: Vec<NoteWarning>,
    /// Whether `skipped` or `warnings` are others than before the sync.
    #[serde(skip)]
    pub has_new_findings: bool,
    /// Milliseconds of each stage: `walk`, `read`, `text`, `links`, `vectors`.
    pub stages_ms: BTreeMap<String, u64>,
    /// Milliseconds of all of it.
    pub took_ms: u64,
}

impl Report {
    /// Whether the sync found nothing to do.
    pub fn is_unchanged(&self) -> bool {
        self.added + self.changed + self.renamed + self.removed + self.embedded + self.reused == 0
    }
}

/// A note that is not indexed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Skipped"))]
#[non_exhaustive]
pub struct SkippedNote {
    /// Where it lies.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A [`Warning`] and the file it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NoteWarning {
    /// Where the file lies.
    pub path: String,
    /// The warning.
    #[serde(flatten)]
    pub warning: Warning,
}

/// How far a long call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Items done.
    pub done: usize,
    /// Items in all, as far as known.
    pub total: usize,
    /// About how long the rest of this stage takes, by the pace of the last half minute; of [`Stage::Vectors`] only.
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

/// What background embedding has done, and what it could not do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackgroundStatus {
    /// The process at work, if there is one.
    pub process: Option<String>,
    /// When the last process began.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub started: Option<Timestamp>,
    /// When it ended; none while it is at work, and after it was killed.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub ended: Option<Timestamp>,
    /// Why it ended early.
    pub error: Option<String>,
    /// Texts without a vector that the model could not embed.
    pub failed: Vec<FailedText>,
}

/// A text that is not embedded in the background any more. A sync tries it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FailedText {
    /// The note.
    pub path: String,
    /// The first line of the passage; none for the note's title.
    pub line: Option<u32>,
    /// What the model said.
    pub error: String,
}

/// What an index holds.
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
    /// Bytes of the index file and its log.
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
    /// Those that lead nowhere yet.
    pub unresolved: usize,
    /// Different tags.
    pub tags: usize,
    /// Embedding in the background.
    pub background: BackgroundStatus,
    /// The model whose vectors the index holds.
    pub model: String,
    /// The model that a rebuild under way will put in its place.
    pub rebuilding_to: Option<String>,
    /// Its dimensions.
    pub dimensions: usize,
    /// Vectors held, those kept for reuse included.
    pub vectors: usize,
    /// When a sync last found or made the index equal to the notes; some passages may still wait for a vector.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub last_sync: Option<Timestamp>,
    /// Who watches the vault now, if anybody.
    pub watcher: Option<String>,
    /// Share of passages in which most words are unknown to the model.
    pub unknown_share: f32,
    /// What the reader should know, e.g. that another model would suit the vault's language.
    pub advice: Vec<String>,
    /// Notes that are not indexed.
    pub skipped: Vec<SkippedNote>,
    /// Warnings about notes.
    pub warnings: Vec<NoteWarning>,
}

/// Where a note names another one in words that are no link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Mention {
    /// The note that it stands in.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub path: VaultPath,
    /// Its line, from 1.
    pub line: u32,
    /// The name as it stands there.
    pub name: String,
    /// The line of text it stands in.
    pub text: String,
}

/// An index in the user's cache folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListedIndex {
    /// The vault's folder; `None` where the index does not say.
    pub vault: Option<PathBuf>,
    /// Whether that folder is there.
    pub state: FolderState,
    /// The index file.
    #[serde(serialize_with = "lossy")]
    pub index: PathBuf,
    /// Bytes of the index file and its log.
    pub index_bytes: u64,
    /// Notes (canvases included).
    pub notes: Option<usize>,
    /// The model whose vectors the index holds.
    pub model: Option<String>,
    /// When a sync last found or made the index equal to the notes; some passages may still wait for a vector.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub last_sync: Option<Timestamp>,
    /// What kept it from being read.
    pub problem: Option<String>,
}

/// Whether a vault's folder is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FolderState {
    /// It is.
    There,
    /// There is no such folder.
    Gone,
    /// It cannot be looked at, or is not known.
    #[default]
    Unknown,
}

/// A path that is not UTF-8 is shown as well as it can be.
fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// One link of the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LinkRow {
    /// The note it stands in.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub source: VaultPath,
    /// Its line, from 1.
    pub line: u32,
    /// As written.
    pub raw: String,
    /// How it is written.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub kind: LinkKind,
    /// Its path, decoded, without subpath.
    pub path: String,
    /// What follows `#`.
    pub subpath: Option<String>,
    /// Where it leads; `None` when there is no such file yet.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub target: Option<VaultPath>,
    /// Whether it leads to a note that has no such heading or block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subpath_missing: bool,
    /// The line of text it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many steps away, for walks of more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
}

/// A link that leads to no file, or to a heading or block that its note does not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BrokenLink {
    /// The link.
    #[serde(flatten)]
    pub link: LinkRow,
    /// Where it was probably meant to lead, the surest first; at most three.
    pub proposals: Vec<RepairProposal>,
}

/// Where a broken link was probably meant to lead.
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
    /// How sure that is.
    pub certainty: Certainty,
    /// Why.
    pub reason: String,
}

/// How sure a [`RepairProposal`] is, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The file was renamed, and no other can be meant.
    Certain,
    /// It fits, and nothing else fits nearly as well.
    Likely,
    /// It is alike.
    Possible,
}

impl Certainty {
    /// As it stands in a sentence: `probably means`.
    pub fn adverb(self) -> &'static str {
        match self {
            Self::Certain => "certainly",
            Self::Likely => "probably",
            Self::Possible => "perhaps",
        }
    }
}

/// A link that a note lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LinkSuggestion {
    /// The note that lacks it.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub source: VaultPath,
    /// The line where it belongs, from 1.
    pub line: u32,
    /// The words that name the other note; none where it is only meant.
    pub text: Option<String>,
    /// The sentence, on one line.
    pub sentence: String,
    /// The note to link to.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub target: VaultPath,
    /// 0 to 1.
    pub score: f32,
    /// How it is named or meant.
    pub reason: SuggestionReason,
    /// What the score is made of.
    pub why: SuggestionParts,
}

/// The parts of the score of a [`LinkSuggestion`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SuggestionParts {
    /// 1 where the name stands there as it is spelled, less in another case or as a plural; 0 where the note is not named.
    pub spelling: f32,
    /// The share of the notes that hold the name which link it, 0 to 1.
    pub linked: f32,
    /// The words of the name, at most 3.
    pub words: u32,
    /// The cosine of the nearest passages of the two notes, where they were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
    /// Whether both notes lie in one folder.
    pub same_folder: bool,
}

/// Two notes that say the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DuplicateNotes {
    /// The one that comes first by path.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub first: VaultPath,
    /// The other.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub second: VaultPath,
    /// The share of their text that they have in common, 0 to 1.
    pub share: f32,
}

/// How a note is named or meant where no link leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SuggestionReason {
    /// By its file's name, title or an alias.
    Name,
    /// By words that other notes link to it with.
    LinkText,
    /// By what is said.
    Meaning,
}

/// Where a link leads.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResolvedLink {
    /// The file, if there is one.
    pub target: Option<VaultPath>,
    /// The line of the heading or block its subpath names, if it names one that is there.
    pub line: Option<u32>,
    /// Whether it has a subpath that names nothing in the target, which is a note.
    pub subpath_missing: bool,
    /// The rule that decided.
    pub rule: Rule,
    /// All files that bear the name, in the order the rules prefer them.
    pub candidates: Vec<VaultPath>,
}

/// A name that links lead to and no file bears, or a heading or block that they lead to and its note does not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UnresolvedName {
    /// The name, as first written; with `#` and what follows where that is what is missing.
    pub name: String,
    /// The note that lacks the heading or block.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<VaultPath>,
    /// How many links lead to it.
    pub count: usize,
    /// The notes they stand in.
    #[cfg_attr(feature = "schemars", schemars(with = "Vec<String>"))]
    pub sources: Vec<VaultPath>,
}

/// A tag of the vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TagCount {
    /// As first seen, without `#`.
    pub tag: String,
    /// Notes that bear it itself.
    pub notes: usize,
    /// Notes that bear it or one nested below it.
    pub nested: usize,
}

/// `1 note`, `2 notes`.
pub(crate) fn counted_as(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CheckReport {
    /// One line a fault: what, where.
    pub faults: Vec<String>,
    /// One line a note or folder that could not be read now, so that the index cannot be shown to equal the vault.
    pub unreadable: Vec<String>,
    /// Notes that were read and compared.
    pub notes: usize,
    /// Passages and file titles without a vector, which is no fault: the next sync makes them.
    pub pending: usize,
    /// Whether the faults were repaired.
    pub repaired: bool,
    /// Milliseconds.
    pub took_ms: u64,
}

impl CheckReport {
    /// Whether the index is sound and equal to the vault now.
    pub fn is_sound(&self) -> bool {
        (self.faults.is_empty() || self.repaired) && self.unreadable.is_empty()
    }
}
