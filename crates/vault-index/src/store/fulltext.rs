//! The keyword index: FTS5 fed with terms, and what BM25 needs to know about them.

use rusqlite::params;

use crate::error::Result;
use crate::store::Store;
use crate::store::notes::from_json;
use crate::terms::Matching;

/// The fields of a passage in the keyword index, each as terms joined by spaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub title: String,
    pub aliases: String,
    pub headings: String,
    pub tags: String,
    pub body: String,
}

impl Fields {
    /// How many terms the text has.
    pub(crate) fn length(&self) -> u32 {
        let spaces = self.body.bytes().filter(|byte| *byte == b' ').count() as u32;
        spaces + u32::from(!self.body.is_empty())
    }

    /// The length of all terms together.
    pub(crate) fn bytes(&self) -> usize {
        [&self.title, &self.aliases, &self.headings, &self.tags, &self.body].into_iter().map(String::len).sum()
    }
}

/// A field of [`Fields`], in their order.
pub(crate) type Field = usize;

/// How many fields there are.
pub(crate) const FIELD_COUNT: usize = 5;

impl Store {
    /// Adds the words of a passage.
    pub(crate) fn put_words(&self, passage: i64, fields: &Fields) -> Result<()> {
        let Fields { title, aliases, headings, tags, body } = fields;
        self.run(
            "INSERT INTO words(rowid, title, aliases, headings, tags, body) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            params![passage, title, aliases, headings, tags, body],
        )
    }

    /// Calls `each` for every place at which a term stands, with its passage and field. A third of a microsecond each.
    pub(crate) fn each_occurrence(
        &self,
        term: &str,
        matching: Matching,
        mut each: impl FnMut(i64, Field),
    ) -> Result<()> {
        self.words_instances()?;
        self.with(|conn| {
            let (sql, end) = match matching {
                Matching::Whole => ("SELECT doc, col FROM temp.words_instances WHERE term = ?1", None),
                Matching::Prefix => (
                    "SELECT doc, col FROM temp.words_instances WHERE term >= ?1 AND term < ?2",
                    // Greater than all that begin with the term: terms are text, and no text holds this character.
                    Some(format!("{term}\u{10ffff}")),
                ),
            };
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(rusqlite::params_from_iter(std::iter::once(term).chain(end.as_deref())))?;
            while let Some(row) = rows.next()? {
                let field = match row.get_ref(1)?.as_bytes()? {
                    b"title" => 0,
                    b"aliases" => 1,
                    b"headings" => 2,
                    b"tags" => 3,
                    _ => 4,
                };
                each(row.get(0)?, field);
            }
            Ok(())
        })
    }

    /// Makes the table of all places of all terms be there: a view into the keyword index, which holds nothing itself.
    pub(super) fn words_instances(&self) -> Result<()> {
        let sql = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words_instances USING fts5vocab(main, words, instance)";
        self.with(|conn| conn.execute_batch(sql))
    }

    /// Passages that an FTS5 expression matches.
    pub(crate) fn passages_with(&self, expression: &str) -> Result<Vec<i64>> {
        self.all("SELECT rowid FROM words WHERE words MATCH ?1", [expression], |row| row.get(0))
    }

    /// What a passage's words were made of: text, title, headings, aliases and tags, one after another.
    pub(crate) fn searchable_texts(&self, passage: i64) -> Result<Vec<String>> {
        let texts = self.first(
            "SELECT passage_text.text, note.title, passage_text.headings, note.aliases, note.tags
             FROM passage JOIN passage_text ON passage_text.id = passage.id JOIN note ON note.id = passage.note
             WHERE passage.id = ?1",
            [passage],
            |row| {
                let mut texts: Vec<String> = vec![row.get(0)?, row.get(1)?];
                for column in 2..5 {
                    texts.extend(from_json::<Vec<String>>(row.get_ref(column)?.as_str()?));
                }
                Ok(texts)
            },
        )?;
        Ok(texts.unwrap_or_default())
    }

    /// In how many passages a term stands.
    pub(crate) fn document_frequency(&self, term: &str) -> Result<u64> {
        let found = self.first("SELECT doc FROM words_vocabulary WHERE term = ?1", [term], |row| row.get(0))?;
        Ok(found.unwrap_or(0))
    }
}
