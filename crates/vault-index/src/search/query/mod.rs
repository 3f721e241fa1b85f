//! The query language: the grammar of typed queries, and their conditions, filters and dates.
//!
//! A [`Query`] has the words to rank by, the conditions that must hold and the options of the result. Nothing here
//! reads the index.

pub(super) mod path_pattern;
pub(super) mod dates;
pub(super) mod text_condition;
pub(super) mod property_condition;
pub(super) mod filter;
pub(super) mod condition;
mod tokens;
mod grammar;

#[cfg(test)]
mod grammar_tests;

use jiff::Zoned;

use crate::error::Result;
use crate::search::query::condition::{Condition, Expression, Test};
use crate::search::query::filter::Filter;
use crate::search::query::grammar::ParsedQuery;

/// A query to a vault, with all options of the result.
///
/// ```
/// use vault_index::{Filter, Mode, Query};
///
/// let query = Query::parse("how to prune tag:garden \"late winter\" -pear")?.filter(Filter::default().path("Notes")?);
/// assert_eq!(query.text, "how to prune late winter");
/// assert_eq!(query.condition.unwrap().to_string(), "tag:garden \"late winter\" -\"pear\"");
///
/// let query = Query::literal("tag:garden is only text here").mode(Mode::Lexical).limit(3);
/// assert_eq!((query.mode, query.limit), (Mode::Lexical, 3));
/// # Ok::<(), vault_index::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Query {
    /// The words to rank by, including those of phrases, without the rest of the syntax. May be empty if there are only
    /// conditions.
    pub text: String,
    /// Those of the words that stand for all words with that prefix: they were written as `canv*`.
    pub prefixes: Vec<String>,
    /// The condition from the syntax; applied before ranking.
    pub condition: Option<Condition>,
    /// Words that look like operators of the syntax but are not. They are among the words.
    pub unknown_operators: Vec<String>,
    /// A note (its path or a link to it): find notes similar to it instead of `text`.
    pub like: Option<String>,
    /// The vector to rank by meaning with, instead of that of `text`: see [`Query::from_vector`].
    pub vector: Option<Vec<f32>>,
    /// Whether all words are in the condition.
    pub(crate) words_are_conditions: bool,
    /// Additional conditions.
    pub filter: Filter,
    /// The ranking mode.
    pub mode: Mode,
    /// The most results.
    pub limit: usize,
    /// The unit of a result: a note or a passage.
    pub grouping: Grouping,
    /// Results with a lower score are dropped. `None`: the measured floor of the mode.
    pub min_score: Option<f32>,
    /// The order of the results.
    pub sort: Sort,
}

/// The ranking mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// By meaning and by words, as a sum.
    #[default]
    Hybrid,
    /// By meaning only: cosine of the embeddings.
    Semantic,
    /// By words only: BM25.
    Lexical,
}

impl Mode {
    /// The value of `--mode` and of records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Semantic => "semantic",
            Self::Lexical => "lexical",
        }
    }
}

/// The unit of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grouping {
    /// A note, shown by its best passage.
    #[default]
    BestPassage,
    /// Every matching passage.
    Passages,
}

/// The order of results. With another order than that of the scores, all matches are sorted: so the first results are
/// not the best ones, and each match costs its exact score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Best first; without anything to rank by, like [`Sort::Modified`].
    #[default]
    Score,
    /// The most recently modified notes first.
    Modified,
    /// By path.
    Path,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            text: String::new(),
            prefixes: Vec::new(),
            condition: None,
            words_are_conditions: false,
            unknown_operators: Vec::new(),
            like: None,
            vector: None,
            filter: Filter::default(),
            mode: Mode::default(),
            limit: 10,
            grouping: Grouping::default(),
            min_score: None,
            sort: Sort::default(),
        }
    }
}

impl Query {
    /// Creates a query that ranks by the words of a text, without syntax.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Searches for passages whose vectors are close to an existing vector: of a text that was embedded before, or of
    /// anything else that the index's model embeds. Its length does not matter. With a `text` and [`Mode::Hybrid`], the
    /// words of the text also count.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use vault_index::{Embedder, HashedEmbedder, Index, Mode, Options, Query, Role};
    ///
    /// # let vault = tempfile::tempdir()?;
    /// # std::fs::write(vault.path().join("Roses.md"), "Cut the stems back in late winter.")?;
    /// # let mut options = Options::default();
    /// # options.index_file = Some(vault.path().join(".index/index.db"));
    /// # let vault_dir = vault.path();
    /// let model = Arc::new(HashedEmbedder::new());
    /// options.embedder = Some(model.clone());
    /// let index = Index::open(vault_dir, options)?;
    /// index.sync()?;
    /// let vector = model.embed(&["stems in winter"], Role::Query)?.remove(0);
    /// let by_vector = index.search(&Query::from_vector(vector))?;
    /// let by_text = index.search(&Query::literal("stems in winter").mode(Mode::Semantic))?;
    /// assert_eq!(by_vector, by_text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_vector(vector: impl Into<Vec<f32>>) -> Self {
        Self { vector: Some(vector.into()), mode: Mode::Semantic, ..Self::default() }
    }

    /// Searches for notes similar to one, which is named by its path or by a link to it.
    pub fn like(note: impl Into<String>) -> Self {
        Self { like: Some(note.into()), ..Self::default() }
    }

    /// Sets the ranking mode.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Sets the most results.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the unit of a result.
    #[must_use]
    pub fn grouping(self, grouping: Grouping) -> Self {
        Self { grouping, ..self }
    }

    /// Sets the filter.
    #[must_use]
    pub fn filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// Sets the score below which results are dropped.
    #[must_use]
    pub fn min_score(self, least: f32) -> Self {
        Self { min_score: Some(least), ..self }
    }

    /// Sets the order of the results.
    #[must_use]
    pub fn sort(self, sort: Sort) -> Self {
        Self { sort, ..self }
    }

    /// Adds a condition that must hold besides the existing ones.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.condition = Expression::all(self.condition.into_iter().chain([condition]).collect());
        self
    }

    /// Parses the query syntax, whose operators `vault-search --help` lists: `"exact phrase"`, `-word`, `word*`, `OR`,
    /// parentheses, `tag:x`, `path:glob`, `file:x`, `date:2023-12`, `[property:value]`, `line:(…)`, `section:(…)`,
    /// `task-todo:x`, `/regex/`. All other words affect the ranking. Unclosed quotes and groups extend to the end. Text
    /// that only looks like an operator is read as words; `--` ends the syntax. Groups nest up to sixteen deep; deeper
    /// parentheses are characters.
    ///
    /// # Errors
    /// [`ErrorKind::Query`](crate::ErrorKind::Query) for an invalid glob, tag, date or regular expression, and for more
    /// than 200 conditions.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_at(text, &Zoned::now())
    }

    /// Like [`Query::parse`], with dates such as `yesterday` relative to the given moment.
    ///
    /// # Errors
    /// The errors of [`Query::parse`].
    pub fn parse_at(text: &str, now: &Zoned) -> Result<Self> {
        let ParsedQuery { text, prefixes, condition, has_free_words, unknown } = grammar::parse(text, now)?;
        let words_are_conditions = condition.is_some() && !has_free_words;
        Ok(Self { text, prefixes, condition, words_are_conditions, unknown_operators: unknown, ..Self::default() })
    }

    /// Whether the query has neither words to rank by nor conditions.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.condition.is_none()
            && self.like.is_none()
            && self.vector.is_none()
            && self.filter.is_empty()
    }

    /// Whether each note that meets the condition is a result, whatever its score.
    pub(super) fn finds_all(&self) -> bool {
        self.words_are_conditions && self.like.is_none() && self.min_score.is_none_or(|least| least <= 0.0)
    }

    /// The condition and the filter as one condition. `None`: every note meets them.
    pub(super) fn whole_condition(&self) -> Option<Condition> {
        let filter = &self.filter;
        let is = |tests: Vec<Test>| tests.into_iter().map(Expression::Is).collect::<Vec<_>>();
        let mut parts: Vec<Condition> = is(filter.tags.iter().cloned().map(Test::Tag).collect());
        parts.extend(Expression::any(is(filter.paths.iter().cloned().map(Test::Path).collect())));
        parts.extend(filter.after.map(|after| Expression::Is(Test::ModifiedSince(after))));
        parts.extend(filter.before.map(|before| Expression::Is(Test::ModifiedBefore(before))));
        parts.extend(is(filter.dates.iter().cloned().map(Test::Date).collect()));
        parts.extend(is(filter.properties.iter().cloned().map(Test::Property).collect()));
        parts.extend(self.condition.clone());
        Expression::all(parts)
    }
}
