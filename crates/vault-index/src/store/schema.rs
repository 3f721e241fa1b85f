//! The tables and how older files become newer ones; each migration says whether notes must be read again.

use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;

/// The format this program writes.
pub(crate) const FORMAT: i64 = 9;

/// The oldest format it reads; what is older was never released.
const OLDEST: i64 = 5;

/// "vidx".
pub(crate) const APPLICATION_ID: i32 = 0x7669_6478;

/// Formats, and what makes each of them from the one before. One whose notes must be parsed again sets `file.version`
/// to NULL; vectors are found by their texts and stay.
const MIGRATIONS: &[(i64, &str)] =
    &[(OLDEST, FIRST), (6, PACKED), (8, WALK_WARNINGS), (9, WORDS_AS_THEY_STAND), (9, NAMES), (9, CHECKSUMS)];

/// Filled by [`Store::pack_all`].
const PACKED: &str = "CREATE TABLE passage_block(block INTEGER PRIMARY KEY, bytes BLOB NOT NULL);";

/// What listing the vault found was named by a setting.
const WALK_WARNINGS: &str = "
DROP TABLE IF EXISTS codes_state;
UPDATE warning SET skipped = 2 WHERE (file, message) IN (
  SELECT found.value ->> 0, found.value ->> '$[1].message'
  FROM meta, json_each(iif(json_valid(meta.value), meta.value, '[]')) AS found WHERE meta.key = 'walk_warnings');
DELETE FROM meta WHERE key = 'walk_warnings';
";

/// Those of vectors are made by [`Store::sum_vectors`], those of blocks of passages when these are packed.
const CHECKSUMS: &str = "
DROP TABLE passage_block;
CREATE TABLE passage_block(block INTEGER PRIMARY KEY, bytes BLOB NOT NULL, sum INTEGER NOT NULL);
ALTER TABLE embedding ADD COLUMN sum INTEGER;
ALTER TABLE passage_text ADD COLUMN sum INTEGER;
UPDATE passage_text SET sum = checksum(concat_ws(char(0), headings, line, end_line, start, end, text));
CREATE TABLE codes_sum(block INTEGER PRIMARY KEY, sum INTEGER NOT NULL);
INSERT INTO codes_sum SELECT block, checksum(bytes) FROM codes;
";

/// Terms that are not stemmed, in a table of passages and one of notes. All notes are read again.
const WORDS_AS_THEY_STAND: &str = "
DROP TABLE words_vocabulary;
DROP TABLE words;

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

CREATE TABLE vocabulary(word TEXT PRIMARY KEY, stem TEXT) WITHOUT ROWID;
CREATE INDEX vocabulary_stem ON vocabulary(stem) WHERE stem IS NOT NULL;

-- Of the text that is embedded: embedding takes time by them.
ALTER TABLE passage ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

UPDATE file SET version = NULL;
INSERT INTO meta(key, value) SELECT 'unread', count(*) FROM note WHERE true
  ON CONFLICT DO UPDATE SET value = excluded.value;
";

/// What notes are called.
const NAMES: &str = "
CREATE TABLE name(
  note INTEGER NOT NULL,
  n INTEGER NOT NULL,
  key TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY(note, n)
) WITHOUT ROWID;
CREATE INDEX name_key ON name(key);
";

const FIRST: &str = "
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
  title_vector INTEGER
);
-- What finds them, and what counts them, without reading them.
CREATE INDEX note_title_vector ON note(title_vector);
CREATE INDEX note_pending ON note(id) WHERE title_vector IS NULL AND title_source = 2;

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
  length INTEGER NOT NULL
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
  text TEXT NOT NULL
);

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

CREATE VIRTUAL TABLE words USING fts5(
  title, aliases, headings, tags, body,
  content='', contentless_delete=1, tokenize='ascii'
);
CREATE VIRTUAL TABLE words_vocabulary USING fts5vocab(words, row);
-- Bytes of words that are gathered in memory before they are written: each write is a part to be merged later.
INSERT INTO words(words, rank) VALUES('hashsize', 33554432);

CREATE TABLE embedding(id INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE UNIQUE INDEX embedding_key ON embedding(key);
CREATE TABLE codes(block INTEGER PRIMARY KEY, bytes BLOB NOT NULL);

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

/// Brings the file to [`FORMAT`].
pub(super) fn migrate(store: &Store) -> Result<()> {
    if check_format(store)? == FORMAT {
        return Ok(());
    }
    let batch = store.with(|conn| Transaction::new_unchecked(conn, TransactionBehavior::Immediate))?;
    // Another process may have migrated while we waited for the lock.
    let format = check_format(store)?;
    if format == FORMAT {
        return Ok(());
    }
    store.with(|conn| {
        for (_, sql) in MIGRATIONS.iter().filter(|(to, _)| *to > format) {
            conn.execute_batch(sql)?;
        }
        store.pack_all()?;
        store.sum_vectors()?;
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        conn.pragma_update(None, "user_version", FORMAT)?;
        batch.commit()
    })
}

/// The file's format; 0 for an empty file.
///
/// # Errors
/// [`ErrorKind::Newer`], or [`ErrorKind::Damaged`] for a format that was never released.
pub(super) fn check_format(store: &Store) -> Result<i64> {
    let format = store.only("PRAGMA user_version", [])?;
    let error =
        |kind, message: String, remedy: &str| Err(Error::new(kind, message).at(&store.path).with_remedy(remedy));
    if (1..OLDEST).contains(&format) {
        return error(
            ErrorKind::Damaged,
            format!("the index has format {format}, which was never released"),
            "run `vault-index forget`, then `vault-index sync` to make it anew",
        );
    }
    if format > FORMAT {
        return error(
            ErrorKind::Newer,
            format!("the index has format {format}, and this program reads up to {FORMAT}"),
            "use the newer program, or `vault-index forget` and `sync` to make it anew with this one",
        );
    }
    Ok(format)
}
