//! The query language: [`Query`] has the words to rank by, the conditions that must hold and the options of the result.
//! Its modules are the grammar of typed queries, and the conditions, filters and dates. Nothing here reads the index.
//! can ask for. Nothing here reads the index.

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

/// A question to a vault, with everything that shapes the answer.
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
    /// The words that are ranked by, those of phrases among them, without the rest of the syntax. May be empty when only
    /// conditions are given.
    pub text: String,
    /// Those of the words that stand for all words that begin so: they were written as `canv*`.
    pub prefixes: Vec<String>,
    /// What must hold, as the syntax says it; applied before anything is ranked.
    pub condition: Option<Condition>,
    /// What looks like an operator of the syntax and is none. It is among the words.
    pub unknown_operators: Vec<String>,
    /// A note (its path or a link to it): find notes similar to it instead of `text`.
    pub like: Option<String>,
    /// The vector to rank by meaning with, instead of that of `text`: see [`Query::from_vector`].
    pub vector: Option<Vec<f32>>,
    /// Whether all words stand in the condition.
    pub(crate) words_are_conditions: bool,
    /// What must hold besides.
    pub filter: Filter,
    /// How passages are ranked.
    pub mode: Mode,
    /// Results at most.
    pub limit: usize,
    /// One result a note, or every passage.
    pub grouping: Grouping,
    /// Weaker results are dropped. `None`: the measured floor of the mode.
    pub min_score: Option<f32>,
    /// The order of the results.
    pub sort: Sort,
}

/// How passages are ranked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// By meaning and by words, added up.
    #[default]
    Hybrid,
    /// By meaning only: cosine of the embeddings.
    Semantic,
    /// By words only: BM25.
    Lexical,
}

impl Mode {
    /// As `--mode` takes it and the records show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Semantic => "semantic",
            Self::Lexical => "lexical",
        }
    }
}

/// What a result is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grouping {
    /// A note, shown by its best passage.
    #[default]
    BestPassage,
    /// Every matching passage.
    Passages,
}

/// The order of results. Other orders than that of the scores are of all that match, so that the first of them are not
/// the best ones, and each that matches costs its exact score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Best first; without anything to rank by, as [`Sort::Modified`].
    #[default]
    Score,
    /// The most recently changed notes first.
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
    /// Ranks by the words of a text, taken as they are: no syntax.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Passages whose vectors are near a vector that is already there: of a text that was embedded before, or of
    /// something else that the index's model embeds. Its length does not matter. With a `text` and [`Mode::Hybrid`],
    /// the text ranks by its words beside it.
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

    /// Notes similar to one, named by its path or by a link to it.
    pub fn like(note: impl Into<String>) -> Self {
        Self { like: Some(note.into()), ..Self::default() }
    }

    /// Sets how passages are ranked.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Sets how many results come back at most.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets what a result is.
    #[must_use]
    pub fn grouping(self, grouping: Grouping) -> Self {
        Self { grouping, ..self }
    }

    /// Sets what must hold.
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

    /// Adds a condition, which must hold beside those that are there.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.condition = Expression::all(self.condition.into_iter().chain([condition]).collect());
        self
    }

    /// Reads the query syntax, whose operators `vault-search --help` lists: `"exact phrase"`, `-word`, `word*`, `OR`,
    /// parentheses, `tag:x`, `path:glob`, `file:x`, `date:2023-12`, `[property:value]`, `line:(…)`, `section:(…)`,
    /// `task-todo:x`, `/regex/`. All other words are ranked by. What is not closed runs to the end; what looks like an
    /// operator and is none is words; `--` ends the syntax. Groups nest sixteen deep; parentheses further in are
    /// characters.
    ///
    /// # Errors
    /// [`ErrorKind::Query`](crate::ErrorKind::Query) for a glob, tag, date or regular expression that cannot be
    /// understood, and for more than 200 conditions.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_at(text, &Zoned::now())
    }

    /// The same, where dates such as `yesterday` count from a moment of the caller's.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn parse_at(text: &str, now: &Zoned) -> Result<Self> {
        let ParsedQuery { text, prefixes, condition, has_free_words, unknown } = grammar::parse(text, now)?;
        let words_are_conditions = condition.is_some() && !has_free_words;
        Ok(Self { text, prefixes, condition, words_are_conditions, unknown_operators: unknown, ..Self::default() })
    }

    /// Whether there is nothing to rank by and nothing to filter by.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.condition.is_none()
            && self.like.is_none()
            && self.vector.is_none()
            && self.filter.is_empty()
    }

    /// Whether each note that meets the condition is a result, however it is ranked.
    pub(super) fn finds_all(&self) -> bool {
        self.words_are_conditions && self.like.is_none() && self.min_score.is_none_or(|least| least <= 0.0)
    }

    /// The condition, and the filter as one. `None`: every note meets them.
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
