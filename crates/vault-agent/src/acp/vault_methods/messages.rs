//! The parameters and results of the methods `_vault/…`. The JSON schema and the TypeScript types of the plugin are
//! generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A vault, for requests that have no other parameters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VaultRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// Words and operators, for example `compost tag:garden -draft`.
    pub query: String,
    /// How passages are ranked.
    #[serde(default)]
    pub ranking: Ranking,
    /// The most notes to return, 1 to 200; 20 by default.
    pub limit: Option<usize>,
}

/// How passages are ranked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ranking {
    /// By words only: the fastest.
    Words,
    /// By words and meaning.
    #[default]
    Meaning,
}

/// A piece of a text. The pieces, joined, are the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Segment {
    /// The text.
    pub text: String,
    /// Whether it matched and is to be highlighted.
    pub is_match: bool,
}

/// The notes that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchResult {
    /// The notes, best first.
    pub hits: Vec<SearchHit>,
    /// How they were ranked.
    pub ranking: Ranking,
    /// The parts of the index that are missing from the result.
    pub coverage: Coverage,
    /// Misspelled words, and the words that were searched for instead.
    pub substitutions: Vec<Substitution>,
    /// Words of the query that look like operators but are not. They are searched for as words.
    pub unknown_operators: Vec<String>,
    /// If nothing was found: the notes that came closest.
    pub near_misses: Vec<NoteName>,
    /// Milliseconds that the program needed.
    pub took_ms: u64,
}

/// How much of the vault the index has at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Coverage {
    /// Notes in the index.
    pub notes: usize,
    /// Notes that are not read yet and so cannot be found.
    pub unread: usize,
    /// Passages in the index.
    pub passages: usize,
    /// Passages that are found by their words only, since they have no embedding yet.
    pub pending: usize,
    /// False if another process is updating the index, so that the newest changes can be missing.
    pub is_current: bool,
}

/// A word that no note has, and what was searched for instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Substitution {
    /// The word of the query.
    pub word: String,
    /// The words that were searched for.
    pub read_as: Vec<String>,
}

/// A note by path and title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NoteName {
    /// The path.
    pub path: String,
    /// The title.
    pub title: String,
}

/// A note that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchHit {
    /// The path.
    pub path: String,
    /// The title.
    pub title: String,
    /// The headings above the line, outermost first.
    pub headings: Vec<String>,
    /// The line to open, from 1.
    pub line: u32,
    /// The first line of the passage.
    pub start_line: u32,
    /// 0 to 1.
    pub score: f32,
    /// Whether the match is weak.
    pub is_weak: bool,
    /// The part of the passage that matches best, without markup.
    pub excerpt: Vec<Segment>,
    /// The whole passage, as it is written.
    pub passage: Vec<Segment>,
    /// The note's tags, without `#`.
    pub tags: Vec<String>,
    /// When the file was last changed, as RFC 3339.
    pub modified: String,
}

/// Notes about the same as a note.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelatedRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The note.
    pub path: String,
    /// The most notes to return, 1 to 200; 20 by default.
    pub limit: Option<usize>,
}

/// Notes about the same as a note.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelatedResult {
    /// The notes, the nearest first.
    pub notes: Vec<RelatedNote>,
    /// The parts of the index that are missing from the result.
    pub coverage: Coverage,
}

/// A note about the same as another one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelatedNote {
    /// The path.
    pub path: String,
    /// The title.
    pub title: String,
    /// The line of the nearest passage, from 1.
    pub line: u32,
    /// 0 to 1.
    pub score: f32,
    /// The beginning of the nearest passage.
    pub excerpt: Vec<Segment>,
    /// Whether a link leads from one of the two notes to the other.
    pub is_linked: bool,
}

/// The links that are missing around a note.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MentionsRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The note.
    pub path: String,
    /// The most entries of each list to return, 1 to 200; 20 by default.
    pub limit: Option<usize>,
}

/// The links that are missing around a note.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MentionsResult {
    /// Where other notes name this note without a link.
    pub mentions: Vec<MissingLink>,
    /// How many there are in all.
    pub mentions_in_all: usize,
    /// Links that this note could have.
    pub suggestions: Vec<MissingLink>,
    /// How many there are in all.
    pub suggestions_in_all: usize,
}

/// A link that could be made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MissingLink {
    /// The link, to be sent with `_vault/prepare`.
    pub link: NewLink,
    /// The title of the note that the link leads to.
    pub target_title: String,
    /// The sentence or line, with the words that become the link marked.
    pub sentence: Vec<Segment>,
    /// Why the link is suggested.
    pub reason: LinkReason,
}

/// Why a link is suggested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LinkReason {
    /// The text has the note's name, title or alias.
    Name,
    /// Other notes link to the note with these words.
    LinkText,
    /// The text is about the same.
    Meaning,
}

/// The completions for a query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VocabularyResult {
    /// The operators of the query syntax.
    pub operators: Vec<Operator>,
    /// The tags of the vault, without `#`, the most used first.
    pub tags: Vec<Tag>,
    /// The names of the properties of all notes.
    pub properties: Vec<String>,
}

/// An operator of the query syntax.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operator {
    /// The text to insert, for example `tag:`.
    pub insert: String,
    /// The effect, in words for a person.
    pub description: String,
    /// The names that can follow it.
    pub completes: Completes,
}

/// The names that can follow an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Completes {
    /// Tags.
    Tags,
    /// Folders.
    Folders,
    /// Names of notes.
    Notes,
    /// Names of properties.
    Properties,
    /// Nothing: any text follows.
    Nothing,
}

/// A tag, and how many notes have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tag {
    /// The tag, without `#`.
    pub name: String,
    /// How many notes have it or a tag below it.
    pub notes: usize,
}

/// A part of the list of changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactionsRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// Only transactions before this one.
    pub before: Option<u64>,
    /// The most transactions to return, 1 to 200; 20 by default.
    pub limit: Option<usize>,
}

/// A part of the list of changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactionsResult {
    /// The transactions, newest first.
    pub transactions: Vec<PastTransaction>,
    /// Whether there are older ones.
    pub has_more: bool,
    /// Warnings about the journal, for example that it is damaged.
    pub warnings: Vec<String>,
}

/// A change that was made, by whatever program: an assistant, a plan, the command line, the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PastTransaction {
    /// Its number.
    pub transaction: u64,
    /// When it began, as RFC 3339.
    pub time: String,
    /// The tool, or the goal of the plan.
    pub label: String,
    /// The effect, in words for a person.
    pub kind: PastKind,
    /// The transaction that it undid or redid.
    pub of: Option<u64>,
    /// Its present status.
    pub status: PastStatus,
    /// The first of the files and folders that it touched.
    pub paths: Vec<String>,
    /// How many files and folders it touched.
    pub paths_in_all: usize,
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PastKind {
    /// A change.
    Change,
    /// The undo of a change.
    Undo,
    /// The undo of an undo.
    Redo,
}

/// The present status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PastStatus {
    /// It is in effect.
    Done,
    /// It was undone, and can be redone.
    Undone,
    /// It failed or was interrupted, and nothing is left of it.
    RolledBack,
    /// It was interrupted, and is not rolled back yet.
    Interrupted,
    /// The journal no longer has all of it, so it cannot be undone.
    Damaged,
}

/// One change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactionRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// Its number.
    pub transaction: u64,
}

/// The files of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactionResult {
    /// Files and moved folders, by path.
    pub files: Vec<FileChange>,
    /// Folders that were made or removed.
    pub folders: Vec<FolderChange>,
    /// Notices for the person, for example that a text is no longer known.
    pub notices: Vec<String>,
}

/// The change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileChange {
    /// The kind of the change.
    pub kind: FileChangeKind,
    /// The path before; of a new file, its path after.
    pub path: String,
    /// The path after, if it changes.
    pub to: Option<String>,
    /// The change of its text as a unified diff.
    pub diff: Option<String>,
    /// How many lines are added.
    pub added: usize,
    /// How many lines are removed.
    pub removed: usize,
    /// Of a folder that moves: the files in it.
    pub inside: Vec<String>,
}

/// The kind of the change of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileChangeKind {
    /// It is made.
    Created,
    /// Its text changes.
    Modified,
    /// It moves, and its text can change.
    Renamed,
    /// It goes to the trash, or for good.
    Deleted,
}

/// The change of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FolderChange {
    /// Created or deleted.
    pub kind: FileChangeKind,
    /// The folder.
    pub path: String,
}

/// A change that a person wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum WantedChange {
    /// A note, attachment or folder gets another path, and all links to it are rewritten.
    Rename {
        /// The present path.
        path: String,
        /// The new path, with the extension.
        new_path: String,
    },
    /// Links are made, all of them in one change.
    Links {
        /// The links.
        links: Vec<NewLink>,
    },
    /// A transaction is undone as a whole. The undo of an undo is a redo.
    Undo {
        /// Its number; by default the newest that can be undone.
        transaction: Option<u64>,
    },
    /// A transaction that was undone is redone.
    Redo {
        /// The number of the transaction that was undone; by default the one that was undone last.
        transaction: Option<u64>,
    },
    /// A macro is run.
    Macro {
        /// Its name.
        name: String,
        /// The values of its parameters, by their names.
        parameters: BTreeMap<String, String>,
    },
}

/// A link to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewLink {
    /// The note that gets the link.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// The words that become the link. Without them, the link is added at the end of the line.
    pub text: Option<String>,
    /// The path of the note that the link leads to.
    pub target: String,
}

/// A change to be shown before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrepareRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The change.
    pub change: WantedChange,
}

/// A change that a person approves by its digest. Nothing is done yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrepareResult {
    /// To be sent with `_vault/apply`: it stands for exactly this change.
    pub digest: String,
    /// Files and moved folders, by path.
    pub files: Vec<FileChange>,
    /// Folders that are made or removed.
    pub folders: Vec<FolderChange>,
    /// Notices for the person.
    pub notices: Vec<String>,
    /// How many notes are created, changed, moved or deleted.
    pub notes: usize,
    /// How many links of existing notes change.
    pub links: usize,
    /// Why the settings of the vault deny the change; if set, `_vault/apply` refuses it.
    pub denied: Option<String>,
}

/// The approval of a change that was shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplyRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The change, as it was sent with `_vault/prepare`.
    pub change: WantedChange,
    /// The digest of the change that the person saw. If the change would be another one by now, nothing is done and the
    /// error has the kind `CONFLICT`.
    pub digest: String,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplyResult {
    /// The transaction in the journal, for undo.
    pub transaction: Option<u64>,
    /// Notices for the person.
    pub notices: Vec<String>,
}

/// The state of a vault's index.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexStateResult {
    /// The version of the program.
    pub version: String,
    /// The vault's folder.
    pub vault: String,
    /// The index; none if the vault was not indexed yet.
    pub index: Option<IndexState>,
}

/// The state of an index.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexState {
    /// The index file. It lies outside of the vault.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The embedding model.
    pub model: String,
    /// Notes in the index.
    pub notes: usize,
    /// Notes that are not read yet.
    pub unread: usize,
    /// Passages in the index.
    pub passages: usize,
    /// Passages that have no embedding yet.
    pub pending: usize,
    /// When the index was last equal to the notes, as RFC 3339.
    pub last_sync: Option<String>,
    /// Notes that cannot be indexed, each with the reason.
    pub skipped: Vec<SkippedNote>,
    /// Advice, for example that another model fits the language better.
    pub advice: Vec<String>,
}

/// A note that cannot be indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkippedNote {
    /// The path.
    pub path: String,
    /// Why.
    pub reason: String,
}
