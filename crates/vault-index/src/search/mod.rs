//! From a query to hits. A [`Searcher`] is a snapshot, which later writes do not change.
//!
//! ```text
//! query ── parse ───> words to rank by, conditions                         query/grammar.rs, query/condition.rs
//!       ── select ──> which passages may be found at all                   select/eligible.rs, query/filter.rs
//!       ── expand ──> the query's words as words of the vault              rank/query_expansion.rs, rank/spelling.rs
//!       ── words ───> BM25 of every passage that holds a word              rank/bm25.rs
//!       ── names ───> notes that are called so, and their bands of scores  rank/name_match.rs
//!       ── meaning ─> bounds of every passage's cosine                     rank/cosine_bounds.rs
//!       ── impute ──> the cosine of a passage that has no vector yet       rank/imputed_cosine.rs
//!       ── prune ───> which passages can be among the k best               rank/k_best_candidates.rs
//!       ── fuse ────> the k best sums, exact                               rank/fuse.rs
//!       ── hits ────> their texts, titles, tags                            make_hits.rs, hit.rs, excerpt.rs
//!       ── rerank ──> only if asked: the best in another model's order     rerank.rs
//! ```

mod query;
mod hit;
mod excerpt;
mod note_passages;
mod repeated_passages;
mod vocabulary;
mod vector_rows;
mod snapshot;
mod select;
mod rank;
mod make_hits;
mod scored_query;
mod searcher;
mod unmatched;
mod rerank;

pub use excerpt::{best_match, body_start};
pub use hit::{Hit, Hits, NameMatch, NearMiss, PriorRank, ScoreParts, Substitution, matched_ranges};
pub use query::condition::{Condition, Expression, Scope, Test};
pub use query::dates::{DateEdge, DateRange};
pub use query::filter::Filter;
pub use query::property_condition::{Comparison, PropertyTest};
pub use query::text_condition::{TextPattern, TextTest};
pub use query::{Grouping, Mode, Query, Sort};
pub use rerank::Rerank;
pub use searcher::Searcher;
pub(crate) use select::find_note::find_note;
pub(crate) use select::phrase::passages_with_phrase;
pub(crate) use snapshot::EmbedderSource;
pub(crate) use snapshot::ask_for_snapshot;
pub use unmatched::UnmatchedConditions;
