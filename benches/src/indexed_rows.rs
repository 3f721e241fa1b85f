//! An index over given vectors, filled like any other: notes are synced, and a model with the vectors embeds them.
//!
//! A note has [`ROWS_PER_NOTE`] sections, each a passage, whose text is `row N`; the text `query N` gets the vector of
//! a query. Titles are in the frontmatter, so that they get no vector.

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use vault_index::{Embedder, Filter, Grouping, Hits, Index, Options, Query, Role, Searcher, TokenCount};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROWS_PER_NOTE: usize = 500;
const MAX_TOKENS: usize = 254;

/// The tag of one note in ten.
pub const TAG_10: &str = "tenth";
/// The tag of one note in a hundred.
pub const TAG_1: &str = "hundredth";

/// A model that returns stored vectors.
#[derive(Debug)]
pub struct StoredVectors {
    dimensions: usize,
    rows: Vec<f32>,
    queries: Vec<f32>,
}

impl StoredVectors {
    /// Creates the model from vectors of unit length, one after the other.
    pub fn new(dimensions: usize, rows: Vec<f32>, queries: Vec<f32>) -> Self {
        Self { dimensions, rows, queries }
    }

    /// All rows, one after the other.
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// Returns the vector of a query; they repeat.
    pub fn query(&self, number: usize) -> &[f32] {
        let number = number % (self.queries.len() / self.dimensions);
        &self.queries[number * self.dimensions..][..self.dimensions]
    }
}

impl TokenCount for StoredVectors {
    /// Returns a number so large that each section becomes its own passage.
    fn count(&self, text: &str) -> usize {
        200 * text.matches("row ").count()
    }
}

impl Embedder for StoredVectors {
    fn id(&self) -> &str {
        "stored-v1"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    fn embed(&self, texts: &[&str], role: Role) -> vault_index::Result<Vec<Vec<f32>>> {
        let vector = |text: &&str| {
            let number: usize = text.rsplit(' ').next().and_then(|word| word.trim().parse().ok()).unwrap_or_default();
            match role {
                Role::Query => self.query(number).to_vec(),
                _ => self.rows[number * self.dimensions..][..self.dimensions].to_vec(),
            }
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn batch_size(&self) -> usize {
        1024
    }
}

/// An index over the rows of a [`StoredVectors`].
#[derive(Debug)]
pub struct IndexedRows {
    searcher: Searcher,
}

impl IndexedRows {
    /// Opens the index in `folder`, and creates it if it is missing.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(folder: &Path, vectors: &Arc<StoredVectors>) -> Result<Self> {
        let (vault, count) = (folder.join("vault"), vectors.rows.len() / vectors.dimensions);
        fs::create_dir_all(&vault)?;
        for note in 0..count.div_ceil(ROWS_PER_NOTE) {
            let tags = match note {
                _ if note % 100 == 0 => format!("[{TAG_10}, {TAG_1}]"),
                _ if note % 10 == 0 => format!("[{TAG_10}]"),
                _ => "[]".to_owned(),
            };
            let mut text = format!("---\ntitle: rows\ntags: {tags}\n---\n");
            for row in note * ROWS_PER_NOTE..((note + 1) * ROWS_PER_NOTE).min(count) {
                write!(text, "# {row}\n\nrow {row}\n\n")?;
            }
            let file = vault.join(format!("n{note:05}.md"));
            if !file.exists() {
                fs::write(file, text)?;
            }
        }
        let mut options = Options::default();
        options.index_file = Some(folder.join("index.db"));
        options.embedder = Some(vectors.clone());
        let index = Index::open(&vault, options)?;
        index.sync()?;
        let status = index.status()?;
        if (status.chunks, status.pending) != (count, 0) {
            return Err(format!("{} passages instead of {count}, {} pending", status.chunks, status.pending).into());
        }
        Ok(Self { searcher: index.searcher()? })
    }

    /// Returns the rows of the notes with a tag, or of all notes without one, as [`IndexedRows::search`] finds them.
    pub fn tagged(count: usize, tag: Option<&str>) -> HashSet<usize> {
        let every = match tag {
            Some(TAG_10) => 10,
            Some(_) => 100,
            None => 1,
        };
        (0..count).filter(|row| (row / ROWS_PER_NOTE).is_multiple_of(every)).collect()
    }

    /// Returns the query for the `k` best passages, whatever their scores, of the notes with a tag or of all notes.
    ///
    /// # Panics
    /// If the tag is invalid.
    pub fn query(query: Query, k: usize, tag: Option<&str>) -> Query {
        let filter = tag.map_or_else(Filter::default, |tag| Filter::default().tag(tag).expect("a tag"));
        query.limit(k).grouping(Grouping::Passages).min_score(0.0).filter(filter)
    }

    /// Makes the public call that is measured.
    ///
    /// # Panics
    /// If the search fails.
    pub fn search(&self, query: &Query) -> Hits {
        self.searcher.search(query).expect("hits")
    }

    /// [`Self::search`] for many queries.
    ///
    /// # Panics
    /// If a search fails.
    pub fn search_many(&self, queries: &[Query]) -> Vec<Hits> {
        self.searcher.search_many(queries).into_iter().map(|hits| hits.expect("hits")).collect()
    }

    /// Returns the rows that were found, with their cosines, which differ from scores: scores reserve a range above
    /// them for names.
    pub fn rows(hits: &Hits) -> Vec<(usize, f32)> {
        let row = |text: &str| text.trim().rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(usize::MAX);
        hits.results.iter().map(|hit| (row(&hit.text), hit.why.semantic.unwrap_or_default())).collect()
    }
}
