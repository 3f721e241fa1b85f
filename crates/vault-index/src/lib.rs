//! Index a folder of Markdown notes and search it by meaning and by words, offline.
//!
//! ```text
//! files ──> note ──> links                      what is on disk, what it says, who points at whom
//!             └────> chunk ──> terms, embed     passages, their words, their vectors
//!                                └────> store   one SQLite file
//! query ──> search (filter, lexical + semantic, fuse) ──> hits
//! ```
//!
//! A vault's notes are read, never written. The index lies in the user's cache folder, private to the user; any
//! number of processes can search it while one writes.
//!
//! ```
//! use vault_index::{Index, Options, Query};
//!
//! # let vault = tempfile::tempdir()?;
//! # std::fs::write(vault.path().join("Roses.md"), "Cut the stems back to an outward-facing bud in late winter.")?;
//! # let options = Options::new().index_file(vault.path().join(".index/index.db"));
//! # let vault_dir = vault.path();
//! let index = Index::open(vault_dir, options)?;                        // cheap
//! let report = index.sync()?;                                          // slow: reads only what changed
//! let hits = index.search(&Query::parse("how to prune")?)?;            // best first; scores are 0 to 1
//! for hit in &hits.results {
//!     println!("{}:{} {:.2} {}", hit.path, hit.line, hit.score, hit.title);
//! }
//! # assert_eq!((report.added, hits.results.len()), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules [`note`], [`links`] and [`chunk`] are useful alone.

#![deny(missing_docs)]

// In order of dependencies: a module uses only those above it. A test checks it.
mod error;
pub mod likeness;
mod path;
pub mod private_file;
pub mod dirs;
pub mod lock;
pub mod settings_file;
mod files;
mod terms;
pub mod note;
pub mod links;
pub mod chunk;
#[cfg(feature = "fastembed")]
mod onnx;
mod embed;
mod rerank;
mod vectors;
mod report;
mod store;
mod indexer;
mod search;
mod index;

pub use chunk::{HEADING_MARK, TokenCount, readable};
pub use embed::{Embedder, HashedEmbedder, LoadOptions, ModelInfo, ModelName, Role};
pub use error::{Error, ErrorKind, Result, Warning, WarningKind};
pub use files::{Exclusion, LintTable, check_globs, check_vault_toml};
#[doc(hidden)]
pub use index::VaultState;
pub use index::{GraphData, GraphNode, Index, Options, VaultFile};
#[cfg(feature = "watch")]
pub use index::{WatchEvent, WatchOptions, Watcher};
pub use indexer::SyncOptions;
pub use note::LinkKind;
pub use path::{FileId, FileKind, VaultPath};
pub use report::{
    BackgroundStatus, BrokenLink, Certainty, CheckReport, DuplicateNotes, FailedText, FolderState, LinkRow,
    LinkSuggestion, ListedIndex, Mention, NoteWarning, Progress, RepairProposal, Report, ResolvedLink, SkippedNote,
    Stage, Status, SuggestionParts, SuggestionReason, TagCount, UnresolvedName,
};
pub use rerank::{Reranker, RerankerName};
pub use search::{
    Comparison, Condition, DateEdge, DateRange, Expression, Filter, Grouping, Hit, Hits, Mode, NameMatch, NearMiss,
    PriorRank, PropertyTest, Query, Rerank, Scope, ScoreParts, Searcher, Sort, Substitution, Test, TextPattern,
    TextTest, UnmatchedConditions, best_match, body_start, matched_ranges,
};
#[doc(hidden)]
pub use vectors::{Kernel, TopK, rescore};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
