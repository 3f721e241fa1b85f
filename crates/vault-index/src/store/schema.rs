//! The tables and how older files become newer ones; each migration says whether notes must be read again.

use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;

/// The format this program writes.
pub(crate) const FORMAT: i64 = 7;

/// The oldest format it reads; what is older was never released.
const OLDEST: i64 = 5;

/// "vidx".
pub(crate) const APPLICATION_ID: i32 = 0x7669_6478;

/// A step from format `to - 1` to format `to`.
struct Migration {
    to: i64,
    sql: &'static str,
    /// Whether all notes are parsed again afterwards (vectors are found by their texts and stay).
    reindex: bool,
}

const MIGRATIONS: &[Migration] = &[
    Migration { to: 5, sql: FIRST, reindex: false },
    Migration { to: 6, sql: PACKED, reindex: false },
    Migration { to: 7, sql: STATES, reindex: false },
];

/// Filled by [`Store::pack_all`].
const PACKED: &str = "CREATE TABLE passage_block(block INTEGER PRIMARY KEY, bytes BLOB NOT NULL);";

/// Filled by [`Store::give_states`].
const STATES: &str = "CREATE TABLE codes_state(block INTEGER PRIMARY KEY, state INTEGER NOT NULL);";

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
    let batch = Transaction::new_unchecked(&store.conn, TransactionBehavior::Immediate).map_err(|e| store.error(e))?;
    // Another process may have migrated while we waited for the lock.
    let mut format = check_format(store)?;
    if format == FORMAT {
        return Ok(());
    }
    for migration in MIGRATIONS {
        if migration.to <= format {
            continue;
        }
        let reindex = if migration.reindex { "UPDATE file SET version = NULL;" } else { "" };
        batch.execute_batch(migration.sql).and_then(|()| batch.execute_batch(reindex)).map_err(|e| store.error(e))?;
        format = migration.to;
    }
    store
        .pack_all()
        .and_then(|()| store.give_states())
        .and_then(|()| batch.pragma_update(None, "application_id", APPLICATION_ID))
        .and_then(|()| batch.pragma_update(None, "user_version", format))
        .and_then(|()| batch.commit())
        .map_err(|e| store.error(e))
}

/// The file's format; 0 for an empty file.
///
/// # Errors
/// [`ErrorKind::Newer`], or [`ErrorKind::Damaged`] for another program's database.
pub(super) fn check_format(store: &Store) -> Result<i64> {
    let read = |name| store.conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(|e| store.error(e));
    let (format, id) = (read("user_version")?, read("application_id")?);
    let tables: i64 =
        store.conn.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).map_err(|e| store.error(e))?;
    if tables > 0 && id != i64::from(APPLICATION_ID) {
        return Err(Error::new(ErrorKind::Damaged, "this is the database of another program")
            .at(store.path())
            .with_remedy("choose another file with --index FILE"));
    }
    if (1..OLDEST).contains(&format) {
        return Err(Error::new(ErrorKind::Damaged, format!("the index has format {format}, which was never released"))
            .at(store.path())
            .with_remedy("run `vault-index forget`, then `vault-index sync` to make it anew"));
    }
    if format > FORMAT {
        return Err(Error::new(
            ErrorKind::Newer,
            format!("the index has format {format}, and this program reads up to {FORMAT}"),
        )
        .at(store.path())
        .with_remedy("use the newer program, or `vault-index forget` and `sync` to make it anew with this one"));
    }
    Ok(format)
}
