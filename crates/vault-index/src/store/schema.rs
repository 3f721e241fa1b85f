//! The tables, and the format of a file.
//!
//! A file of another format is rebuilt, see [`Store::renew`](crate::store::Store::renew).

use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;

/// The format that this program reads and writes.
pub(crate) const FORMAT: i64 = 13;

/// "vidx".
pub(crate) const APPLICATION_ID: i32 = 0x7669_6478;

const TABLES: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE file(
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  disk BLOB,
  kind INTEGER NOT NULL,
  indexed INTEGER NOT NULL,
  size INTEGER NOT NULL,
  modified_ns INTEGER NOT NULL,
  changed_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  seen_ns INTEGER NOT NULL,
  hash BLOB,
  version INTEGER
);

CREATE TABLE note(
  id INTEGER PRIMARY KEY REFERENCES file(id),
  title TEXT NOT NULL,
  title_source INTEGER NOT NULL,
  aliases TEXT NOT NULL,
  tags TEXT NOT NULL,
  frontmatter TEXT NOT NULL,
  anchors TEXT NOT NULL,
  words INTEGER NOT NULL,
  -- The file's name where the note does not say it: embedded by itself.
  file_title TEXT,
  title_vector INTEGER
);
-- What finds them, and what counts them, without reading them.
CREATE INDEX note_title_vector ON note(title_vector);
CREATE INDEX note_pending ON note(id) WHERE title_vector IS NULL AND file_title IS NOT NULL;

CREATE TABLE tag(
  key TEXT NOT NULL,
  note INTEGER NOT NULL,
  shown TEXT NOT NULL,
  PRIMARY KEY(key, note)
) WITHOUT ROWID;
CREATE INDEX tag_note ON tag(note);

CREATE TABLE property(
  key TEXT NOT NULL,
  note INTEGER NOT NULL,
  n INTEGER NOT NULL,
  number REAL,
  text TEXT NOT NULL,
  PRIMARY KEY(key, note, n)
) WITHOUT ROWID;
CREATE INDEX property_note ON property(note);

CREATE TABLE passage(
  id INTEGER PRIMARY KEY,
  note INTEGER NOT NULL,
  vector INTEGER,
  length INTEGER NOT NULL,
  -- Equal where passages say the same, titles and addresses aside.
  said INTEGER NOT NULL,
  -- Of the text that is embedded: embedding takes time by them.
  tokens INTEGER NOT NULL
);
CREATE INDEX passage_note ON passage(note);
CREATE INDEX passage_pending ON passage(note) WHERE vector IS NULL;

CREATE TABLE passage_text(
  id INTEGER PRIMARY KEY,
  headings TEXT NOT NULL,
  line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  start INTEGER NOT NULL,
  end INTEGER NOT NULL,
  text TEXT NOT NULL,
  sum INTEGER NOT NULL
);
CREATE TABLE passage_block(block INTEGER PRIMARY KEY, bytes BLOB NOT NULL, sum INTEGER NOT NULL);

CREATE TABLE link(
  id INTEGER PRIMARY KEY,
  source INTEGER NOT NULL,
  line INTEGER NOT NULL,
  start INTEGER NOT NULL,
  end INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  raw TEXT NOT NULL,
  path TEXT NOT NULL,
  subpath TEXT,
  display TEXT,
  name INTEGER NOT NULL,
  target INTEGER
);
CREATE INDEX link_target ON link(target);
CREATE INDEX link_name ON link(name);

CREATE VIRTUAL TABLE note_words USING fts5(
  title, aliases, tags, properties, path,
  content='', contentless_delete=1, tokenize='ascii'
);
CREATE VIRTUAL TABLE words USING fts5(
  headings, body,
  content='', contentless_delete=1, tokenize='ascii'
);
-- Bytes of words that are gathered in memory before they are written: each write is a part to be merged later.
INSERT INTO note_words(note_words, rank) VALUES('hashsize', 33554432);
INSERT INTO words(words, rank) VALUES('hashsize', 33554432);

CREATE TABLE posting(
  term TEXT NOT NULL,
  segment INTEGER NOT NULL,
  entries BLOB NOT NULL,
  PRIMARY KEY(term, segment)
) WITHOUT ROWID;

CREATE TABLE vocabulary(word TEXT PRIMARY KEY, stem TEXT) WITHOUT ROWID;
CREATE INDEX vocabulary_stem ON vocabulary(stem) WHERE stem IS NOT NULL;

CREATE TABLE name(
  note INTEGER NOT NULL,
  n INTEGER NOT NULL,
  key TEXT NOT NULL,
  text TEXT NOT NULL,
  -- Whether it is the first heading, and not the file's name too.
  is_heading INTEGER NOT NULL,
  PRIMARY KEY(note, n)
) WITHOUT ROWID;
CREATE INDEX name_key ON name(key);
CREATE INDEX name_heading ON name(text) WHERE is_heading;
-- First headings that name no note, because many notes have them.
CREATE TABLE shared_heading(text TEXT PRIMARY KEY) WITHOUT ROWID;

-- Where files lay that were renamed or removed outside, so that links to them can be repaired. `file` is NULL where it is not
-- known for certain which file it is now.
CREATE TABLE former_path(path TEXT PRIMARY KEY, file INTEGER) WITHOUT ROWID;
CREATE INDEX former_path_file ON former_path(file) WHERE file IS NOT NULL;

CREATE TABLE embedding(id INTEGER PRIMARY KEY, key BLOB NOT NULL, sum INTEGER);
CREATE UNIQUE INDEX embedding_key ON embedding(key);
CREATE TABLE codes(block INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE codes_sum(block INTEGER PRIMARY KEY, sum INTEGER NOT NULL);

CREATE TABLE warning(
  file TEXT NOT NULL,
  skipped INTEGER NOT NULL,
  kind TEXT NOT NULL,
  line INTEGER,
  message TEXT NOT NULL
);
CREATE INDEX warning_file ON warning(file);

CREATE VIEW documents AS
  SELECT note.id, file.path, note.title, note.frontmatter, note.words AS word_count,
         file.modified_ns / 1000000000 AS modified_at, file.size, lower(hex(file.hash)) AS content_hash
  FROM note JOIN file ON file.id = note.id;

CREATE VIEW links AS
  SELECT link.id, source.path AS source_path, target.path AS target_path, link.raw AS link_text,
         CASE link.kind WHEN 0 THEN 'wikilink' WHEN 1 THEN 'markdown' ELSE 'embed' END AS link_type,
         link.line, link.path AS link_path, link.subpath, link.display
  FROM link JOIN file AS source ON source.id = link.source
  LEFT JOIN file AS target ON target.id = link.target;
";

/// The view that joins passages with the vectors of one model's table.
pub(super) fn chunks_view(vectors_table: &str) -> String {
    format!(
        "DROP VIEW IF EXISTS chunks;
         CREATE VIEW chunks AS
           SELECT passage.id, passage.note AS document_id, passage_text.text AS content, passage_text.headings,
                  passage_text.line AS start_line, passage_text.end_line,
                  passage_text.start AS start_byte, passage_text.end AS end_byte,
                  (SELECT embedding FROM {vectors_table} WHERE rowid = passage.vector) AS embedding
           FROM passage JOIN passage_text ON passage_text.id = passage.id;"
    )
}

/// Creates the tables of a new file.
///
/// # Errors
/// [`ErrorKind::OtherFormat`].
pub(super) fn create(store: &Store) -> Result<()> {
    if format_of(store)? == 0 {
        let batch = store.with(|conn| Transaction::new_unchecked(conn, TransactionBehavior::Immediate))?;
        // Another process may have created them while this one waited for the lock.
        if format_of(store)? == 0 {
            store.with(|conn| {
                conn.execute_batch(TABLES)?;
                conn.pragma_update(None, "application_id", APPLICATION_ID)?;
                conn.pragma_update(None, "user_version", FORMAT)?;
                batch.commit()
            })?;
        }
    }
    check_format(store)
}

/// The format of the file; 0 if it has no tables yet.
pub(super) fn format_of(store: &Store) -> Result<i64> {
    store.only("PRAGMA user_version", [])
}

/// # Errors
/// [`ErrorKind::OtherFormat`].
pub(super) fn check_format(store: &Store) -> Result<()> {
    match format_of(store)? {
        FORMAT => Ok(()),
        format => {
            let what = format!("the index has format {format}, and this program reads format {FORMAT}");
            Err(Error::new(ErrorKind::OtherFormat, what)
                .at(&store.path)
                .with_remedy("run `vault-index sync`, which rebuilds it and keeps its vectors"))
        }
    }
}
