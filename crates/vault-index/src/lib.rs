//! Index a folder of Markdown notes and search it by meaning and by words, offline.
//!
//! An [`Index`] is one SQLite file about one folder, the vault. [`Index::sync`] reads the notes that changed, cuts them
//! into passages of up to 254 tokens along their headings, and stores for each passage its words and a vector of its
//! meaning. [`Index::search`] ranks passages by both. The vault itself is only read, and the index is in the user's
//! cache folder, so deleting it costs only the time of another sync.
//!
//! ```text
//! files ──> note ──> links                      what is on disk, what it says, who links to whom
//!             └────> chunk ──> terms, embed     passages, their words, their vectors
//!                                └────> store   one SQLite file
//! query ──> search (filter, words + meaning, fuse) ──> hits
//! ```
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
//! Opening is cheap and syncing is incremental, so a program may do both before each search, as `vault-search` does.
//! For example, a sync of 5,000 unchanged notes takes some 20 ms. A long-running program should use `Index::watch`
//! (feature `watch`), which syncs when files change, and ask [`Index::searcher`] before each search: it returns the same
//! snapshot, with its data in memory, until something is committed. Any number of processes may search while one writes:
//! each search sees one state of the index and never waits for a writer.
//!
//! Searches are exact. Filters apply before ranking, so that ten matches give ten results, and a score (0 to 1) depends
//! only on the query and the passage, so that you may compare it with a threshold. [`Query::parse`] reads the syntax
//! that people type; programs can set the fields of [`Query`] instead.
//!
//! # Errors
//! There is one type, [`Error`]: a kind to match on, a path, a message and a remedy. It is not an enum with a variant
//! for each failure, because nearly every failure here is shown to a person, who needs to know where it happened and
//! what to do next ("run `vault-index check --repair`"). Callers distinguish the dozen kinds that call for different
//! behaviour, such as [`ErrorKind::Locked`] (try again) and [`ErrorKind::NotFound`] (sync first). A note that cannot be
//! read is never an error: it is a [`Warning`] in the report of the sync, and the rest of the vault is indexed.
//!
//! # Parts
//! The modules [`note`] (parse a note), [`links`] (resolve links as Obsidian does) and [`chunk`] (cut a note into
//! passages) are useful alone and open no database. The page [`in_your_program`] shows how to use an index in a program
//! that asks once, in one that runs for long, and in an agent framework.

#![deny(missing_docs)]

// In order of dependencies: a module uses only those above it. A test checks this.
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
pub mod models;
mod embed;
mod rerank;
mod vectors;
mod report;
mod store;
mod indexer;
mod search;
mod index;
pub mod backend;

pub use chunk::{HEADING_MARK, TokenCount, readable};
pub use embed::{Embedder, HashedEmbedder, LoadOptions, ModelInfo, ModelName, Role};
pub use error::{Error, ErrorKind, Result, Warning, WarningKind};
pub use files::{Exclusion, LintTable, check_globs, check_vault_toml};
pub use index::{GraphData, GraphNode, Index, Options, VaultFile, VaultState};
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

#[doc = include_str!("../docs/in-your-program.md")]
pub mod in_your_program {}

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
