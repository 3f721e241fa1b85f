//! What is asked: the query's syntax (`tag:x`, `path:glob`, `"exact phrase"`, `-word`, `-tag:x`) and its options.

use crate::error::Result;
use crate::search::filter::{Filter, checked_path, checked_tag};

/// A question to a vault, with everything that shapes the answer.
///
/// ```
/// use vault_index::{Filter, Mode, Query};
///
/// let query = Query::parse("tag:garden \"late winter\" how to prune")?;
/// assert_eq!((query.text.as_str(), query.phrases.as_slice()), ("how to prune", &["late winter".to_string()][..]));
/// assert_eq!(query.filter, Filter::default().tag("garden")?);
///
/// let query = Query::literal("tag:garden is only text here").mode(Mode::Lexical).limit(3);
/// assert_eq!((query.mode, query.limit), (Mode::Lexical, 3));
/// # Ok::<(), vault_index::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Query {
    /// The words that are ranked by, without the syntax below. May be empty when only filters are given.
    pub text: String,
    /// `"exact phrase"`: passages must hold each of them; case and diacritics do not matter.
    pub phrases: Vec<String>,
    /// `-word`: notes that hold one of them are excluded.
    pub without: Vec<String>,
    /// A note (its path or a link to it): find notes similar to it instead of `text`.
    pub like: Option<String>,
    /// The vector to rank by meaning with, instead of that of `text`: see [`Query::from_vector`].
    pub vector: Option<Vec<f32>>,
    /// What must hold; applied before anything is ranked.
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
#[non_exhaustive]
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
            phrases: Vec::new(),
            without: Vec::new(),
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
    /// use vault_index::{Embedder, Hashed, Index, Mode, Options, Query, Role};
    ///
    /// # let vault = tempfile::tempdir()?;
    /// # std::fs::write(vault.path().join("Roses.md"), "Cut the stems back in late winter.")?;
    /// # let mut options = Options::default();
    /// # options.index_file = Some(vault.path().join(".index/index.db"));
    /// # let vault_dir = vault.path();
    /// let model = Arc::new(Hashed::new());
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

    /// Reads the query syntax: `tag:x`, `path:glob`, `"exact phrase"`, `-word`, `-tag:x`, `-path:glob`. All other words
    /// are ranked by. An unclosed quote runs to the end; a `-` or a `key:` with nothing after it is a word; `--` ends
    /// the syntax.
    ///
    /// # Errors
    /// [`ErrorKind::Query`](crate::ErrorKind::Query) for a `path:` glob that cannot be understood, or a `tag:` without
    /// a name.
    pub fn parse(text: &str) -> Result<Self> {
        let mut query = Self::default();
        let mut rest = text;
        let mut words: Vec<&str> = Vec::new();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            if let Some(after) = rest.strip_prefix('"') {
                let (phrase, tail) = quoted(after);
                if !phrase.trim().is_empty() {
                    query.phrases.push(phrase.trim().to_string());
                }
                rest = tail;
                continue;
            }
            let (word, tail) = token(rest);
            rest = tail;
            if word == "--" {
                words.push(rest.trim());
                break;
            } else if let Some(value) = value_of(word, "tag:") {
                query.filter.tags.push(checked_tag(value)?);
            } else if let Some(value) = value_of(word, "path:") {
                query.filter.paths.push(checked_path(value)?);
            } else if let Some(value) = word.strip_prefix('-').and_then(|word| value_of(word, "tag:")) {
                query.filter.without_tags.push(checked_tag(value)?);
            } else if let Some(value) = word.strip_prefix('-').and_then(|word| value_of(word, "path:")) {
                query.filter.without_paths.push(checked_path(value)?);
            } else if let Some(excluded) = word.strip_prefix('-').filter(|w| w.chars().any(char::is_alphanumeric)) {
                query.without.push(excluded.trim_matches('"').to_string());
            } else {
                words.push(word);
            }
        }
        query.text = words.join(" ").trim().to_string();
        Ok(query)
    }

    /// Whether there is nothing to rank by and nothing to filter by.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.phrases.is_empty()
            && self.without.is_empty()
            && self.like.is_none()
            && self.vector.is_none()
            && self.filter.is_empty()
    }

    /// All words to rank by: the text's and the phrases'.
    pub(crate) fn ranked_text(&self) -> String {
        let mut text = self.text.clone();
        for phrase in &self.phrases {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(phrase);
        }
        text
    }
}

/// The text up to the next quote, and what follows it.
fn quoted(text: &str) -> (&str, &str) {
    match text.find('"') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}

/// The next token up to white space; quotes inside (`path:"My notes/*"`, `-"two words"`) hold it together.
fn token(text: &str) -> (&str, &str) {
    let mut in_quotes = false;
    for (at, c) in text.char_indices() {
        match c {
            // A quote opens only behind `key:` or `-`: in `5" pipe` it is a character like others.
            '"' if in_quotes => in_quotes = false,
            '"' if matches!(text[..at].chars().last(), Some(':' | '-')) => in_quotes = true,
            c if c.is_whitespace() && !in_quotes => return (&text[..at], &text[at..]),
            _ => {}
        }
    }
    (text, "")
}

fn value_of<'a>(word: &'a str, key: &str) -> Option<&'a str> {
    let head = word.get(..key.len())?;
    let value = head.eq_ignore_ascii_case(key).then(|| word[key.len()..].trim_matches('"'))?;
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax() {
        fn check(input: &str, text: &str, phrases: &[&str], without: &[&str], tags: &[&str], paths: &[&str]) {
            let query = Query::parse(input).unwrap();
            assert_eq!(query.text, text, "{input:?}");
            assert_eq!(query.phrases, phrases, "{input:?}");
            assert_eq!(query.without, without, "{input:?}");
            assert_eq!(query.filter.tags, tags, "{input:?}");
            assert_eq!(query.filter.paths, paths, "{input:?}");
        }
        check("how to prune", "how to prune", &[], &[], &[], &[]);
        check("tag:garden how to prune", "how to prune", &[], &[], &["garden"], &[]);
        check("tag:#日本/東京 x", "x", &[], &[], &["日本/東京"], &[]);
        check("a \"exact phrase\" b", "a b", &["exact phrase"], &[], &[], &[]);
        check("a \"unclosed phrase", "a", &["unclosed phrase"], &[], &[], &[]);
        check("rose -thorn", "rose", &[], &["thorn"], &[], &[]);
        check("path:\"My notes/*\" x", "x", &[], &[], &[], &["My notes/*"]);
        check("path:Daily x", "x", &[], &[], &[], &["Daily"]);
        check("-- -not tag:syntax \"at all", "-not tag:syntax \"at all", &[], &[], &[], &[]);
        check("- tag: path:", "- tag: path:", &[], &[], &[], &[]);
        check("  ", "", &[], &[], &[], &[]);
        check("\"\" \" \"", "", &[], &[], &[], &[]);
        check("5\" pipe", "5\" pipe", &[], &[], &[], &[]);
        check("TAG:x note", "note", &[], &[], &["x"], &[]);
        check("héé:x", "héé:x", &[], &[], &[], &[]);
        let without = Query::parse("rose -tag:#a -path:\"My notes\" -tag: -word").unwrap();
        assert_eq!(
            (without.filter.without_tags, without.filter.without_paths),
            (vec!["a".to_string()], vec!["My notes".to_string()])
        );
        assert_eq!(without.without, ["tag:", "word"]);
        assert!(Query::parse("-path:[").is_err() && Query::parse("tag:#").is_err() && Query::parse("-tag:#").is_err());
        assert!(Query::parse("").unwrap().is_empty());
        for bad in ["path:[", "path:/", "-path:/"] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
    }
}
