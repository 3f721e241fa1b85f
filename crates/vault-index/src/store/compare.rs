//! Are a note's rows in one file those in another? Compared value by value, whatever the columns hold.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};

use crate::error::Result;
use crate::path::FileId;
use crate::store::vectors::register_sqlite_vec;
use crate::store::{EmbeddingKey, Store, schema};

/// The parts of a note's rows and how each is read, without the ids that differ from file to file. `?1` is the
/// note's id. A link's id is made of it (see `store/links.rs`).
const PARTS: [(&str, &str); 6] = [
    ("note", "SELECT title, title_source, aliases, tags, frontmatter, anchors, words FROM note WHERE id = ?1"),
    ("tags", "SELECT key, shown FROM tag WHERE note = ?1 ORDER BY key"),
    ("properties", "SELECT key, n, number, text FROM property WHERE note = ?1 ORDER BY key, n"),
    (
        PASSAGES,
        "SELECT length, headings, line, end_line, start, end, text
         FROM passage LEFT JOIN passage_text ON passage_text.id = passage.id WHERE note = ?1 ORDER BY passage.id",
    ),
    (
        WORDS,
        "SELECT sz FROM passage LEFT JOIN words_docsize ON words_docsize.id = passage.id
         WHERE note = ?1 ORDER BY passage.id",
    ),
    (
        "links",
        "SELECT id, source, line, start, end, kind, raw, path, subpath, display, name, target
         FROM link WHERE id >= ?1 << 24 AND id < (?1 + 1) << 24 ORDER BY id",
    ),
];
const PASSAGES: &str = "passages";
const WORDS: &str = "words";
const WARNINGS: &str = "warnings";

/// By passage: its terms with their fields and places, as a hash.
pub(crate) type WordPrints = HashMap<i64, u64>;

/// What a note's rows are compared with.
pub(crate) struct Expected<'a> {
    /// Holds the rows that a sync would write now.
    pub store: &'a Store,
    /// All of them.
    pub words: &'a WordPrints,
    /// The key of a title that is only the file's name.
    pub title: Option<EmbeddingKey>,
    /// The keys of the passages, in their order.
    pub passages: &'a [EmbeddingKey],
}

/// What differs in a note's rows.
#[derive(Debug, Default)]
pub(crate) struct RowsDiffer {
    pub parts: Vec<&'static str>,
    /// Slots that are not of the texts they should be.
    pub vectors: Vec<i64>,
}

impl Store {
    /// An empty index in memory, of no model.
    pub(crate) fn scratch() -> Result<Self> {
        register_sqlite_vec();
        let store = Self { conn: Connection::open_in_memory()?, path: ":memory:".into() };
        store.setup().map_err(|e| store.error(e))?;
        // Rows of notes are written without those of their files.
        store.conn.pragma_update(None, "foreign_keys", false).map_err(|e| store.error(e))?;
        schema::migrate(&store)?;
        store.track_passages().map_err(|e| store.error(e))?;
        Ok(store)
    }

    /// What differs between a note's rows here, whose words are `words`, and those expected.
    pub(crate) fn compare_note(&self, note: FileId, words: &WordPrints, expected: &Expected<'_>) -> Result<RowsDiffer> {
        let mut differ = RowsDiffer::default();
        for (part, sql) in PARTS {
            if self.rows_print(sql, note)? != expected.store.rows_print(sql, note)? {
                differ.parts.push(part);
            }
        }
        // Passages that are not the same are written anew with their words and vectors.
        if differ.parts.contains(&PASSAGES) {
            return Ok(differ);
        }
        let prints = |store: &Self, words: &WordPrints| -> Result<Vec<Option<u64>>> {
            Ok(store.passages_of(note)?.iter().map(|passage| words.get(passage).copied()).collect())
        };
        if !differ.parts.contains(&WORDS) && prints(self, words)? != prints(expected.store, expected.words)? {
            differ.parts.push(WORDS);
        }
        differ.vectors = self.foreign_vectors(note, expected)?;
        if !differ.vectors.is_empty() {
            differ.parts.push("vectors");
        }
        Ok(differ)
    }

    /// Whether the oddities of a file are not those that `expected` holds.
    pub(crate) fn warnings_differ(&self, expected: &Self, file: &str) -> Result<Option<&'static str>> {
        let sql = "SELECT skipped, kind, line, message FROM warning WHERE file = ?1 ORDER BY rowid";
        let print = |store: &Self| {
            let read = || print_of(&mut *store.conn.prepare_cached(sql)?, [file]);
            read().map_err(|e| store.error(e))
        };
        Ok((print(self)? != print(expected)?).then_some(WARNINGS))
    }

    /// The words of all passages.
    pub(crate) fn word_prints(&self) -> Result<WordPrints> {
        let read = || -> rusqlite::Result<WordPrints> {
            self.words_instances()?;
            let mut prints = WordPrints::new();
            let mut statement = self.conn.prepare("SELECT doc, term, col, offset FROM temp.words_instances")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let mut hasher = DefaultHasher::new();
                for column in 1..4 {
                    put_value(row.get_ref(column)?, |bytes| hasher.write(bytes));
                }
                // The order in which they come does not matter: their places are part of them.
                let print = prints.entry(row.get(0)?).or_default();
                *print = print.wrapping_add(hasher.finish());
            }
            Ok(prints)
        };
        read().map_err(|e| self.error(e))
    }

    fn rows_print(&self, sql: &str, note: FileId) -> Result<blake3::Hash> {
        let read = || print_of(&mut *self.conn.prepare_cached(sql)?, [note.0]);
        read().map_err(|e| self.error(e))
    }

    /// Slots whose key is not that of the text they are named for, and those that have that key: which of the two is
    /// wrong cannot be told. What is pending is not wrong.
    fn foreign_vectors(&self, note: FileId, expected: &Expected<'_>) -> Result<Vec<i64>> {
        const PASSAGE_KEYS: &str = "SELECT vector, key FROM passage LEFT JOIN embedding ON embedding.id = vector
             WHERE note = ?1 ORDER BY passage.id";
        const TITLE_KEY: &str = "SELECT title_vector, key FROM note LEFT JOIN embedding ON embedding.id = title_vector
             WHERE note.id = ?1";
        let passages: Vec<Option<EmbeddingKey>> = expected.passages.iter().copied().map(Some).collect();
        let mut foreign = Vec::new();
        for (sql, wanted) in [(PASSAGE_KEYS, passages), (TITLE_KEY, vec![expected.title])] {
            for ((slot, key), wanted) in self.slots_and_keys(sql, note)?.into_iter().zip(wanted) {
                let Some(slot) = slot else { continue };
                if wanted.is_some() && key == wanted {
                    continue;
                }
                foreign.push(slot);
                if let Some(wanted) = wanted {
                    foreign.extend(self.find_vector(&wanted)?);
                }
            }
        }
        Ok(foreign)
    }

    fn slots_and_keys(&self, sql: &str, note: FileId) -> Result<Vec<(Option<i64>, Option<EmbeddingKey>)>> {
        let read = || -> rusqlite::Result<Vec<(Option<i64>, Option<EmbeddingKey>)>> {
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query([note.0])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let key = match row.get_ref(1)? {
                    ValueRef::Blob(bytes) => EmbeddingKey::try_from(bytes).ok(),
                    _ => None,
                };
                found.push((row.get(0)?, key));
            }
            Ok(found)
        };
        read().map_err(|e| self.error(e))
    }
}

/// All rows of a query, as a hash.
fn print_of(statement: &mut Statement<'_>, params: impl rusqlite::Params) -> rusqlite::Result<blake3::Hash> {
    let columns = statement.column_count();
    let mut hasher = blake3::Hasher::new();
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            put_value(row.get_ref(column)?, |bytes| {
                hasher.update(bytes);
            });
        }
    }
    Ok(hasher.finalize())
}

/// A value with its type and length, so that no two sequences of values are one sequence of bytes.
fn put_value(value: ValueRef<'_>, mut put: impl FnMut(&[u8])) {
    let mut sized = |kind: u8, bytes: &[u8]| {
        put(&[kind]);
        put(&(bytes.len() as u64).to_le_bytes());
        put(bytes);
    };
    match value {
        ValueRef::Null => sized(0, &[]),
        ValueRef::Integer(number) => sized(1, &number.to_le_bytes()),
        ValueRef::Real(number) => sized(2, &number.to_le_bytes()),
        ValueRef::Text(text) => sized(3, text),
        ValueRef::Blob(bytes) => sized(4, bytes),
    }
}
