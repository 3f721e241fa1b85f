//! The reading half: query -> hits. A [`Searcher`] is a snapshot; what is written meanwhile does not change it.
//!
//! ```text
//! query ── parse ───> words to rank by, conditions                  grammar.rs, condition.rs
//!       ── filter ──> which passages may be found at all            filter.rs, eligible.rs
//!       ── lexical ─> BM25 of every passage that holds a word       lexical.rs
//!       ── names ───> which notes are called that, and their band of scores        names.rs
//!       ── semantic > bounds of every passage's cosine              semantic.rs
//!       ── estimate > the cosine of a passage that has no vector yet  estimate.rs
//!       ── prune ───> which passages can be among the k best        prune.rs
//!       ── fuse ────> the k best sums, exact                        fuse.rs
//!       ── hits ────> their texts, titles, tags                     make_hits.rs, hit.rs, excerpt.rs
//!       ── rerank ──> only if asked: the best of them in the order of another model    rerank.rs
//! ```

mod path_pattern;
mod dates;
mod text_condition;
mod property_condition;
mod filter;
mod condition;
mod tokens;
mod grammar;
mod query;
mod hit;
mod excerpt;
mod note_passages;
mod repeated;
mod vocabulary;
mod vector_rows;
mod snapshot;
mod find_note;
mod holders;
mod slips;
mod forms;
mod lexical;
mod names;
mod semantic;
mod estimate;
mod fuse;
mod prune;
mod adjacent;
mod direction;
mod note_dates;
mod passage_scopes;
mod eligible;
mod make_hits;
mod scored_query;
mod searcher;
mod unmatched;
mod rerank;

#[cfg(test)]
mod lexical_tests;
#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod grammar_tests;

pub use condition::{Condition, Expression, Scope, Test};
pub use dates::{DateEdge, DateRange};
pub use excerpt::{best_match, body_start};
pub use filter::Filter;
pub(crate) use find_note::find_note;
pub use hit::{Hit, Hits, NameMatch, NearMiss, Reranked, Substitution, Why, matched_ranges};
pub(crate) use holders::holders_of;
pub use property_condition::{Comparison, PropertyTest};
pub use query::{Grouping, Mode, Query, Sort};
pub use rerank::Rerank;
pub use searcher::Searcher;
pub(crate) use snapshot::EmbedderSource;
pub use text_condition::{Holds, TextTest};
pub use unmatched::Unmatched;
