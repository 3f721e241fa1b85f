//! Rows of passages: which note, which vector, which text.

use std::ops::Range;

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::path::FileId;
use crate::store::Store;
use crate::store::notes::{file_id, from_json};

/// A passage's text and where it stands.
#[derive(Debug)]
pub(crate) struct TextRow {
    /// As JSON.
    pub headings: String,
    pub lines: (u32, u32),
    pub span: Range<usize>,
    pub text: String,
}

/// A passage to be added.
pub(crate) struct PassageToPut<'t> {
    pub id: i64,
    pub note: FileId,
    pub vector: Option<i64>,
    /// Terms in its text.
    pub length: u32,
    pub text: &'t TextRow,
}

/// What a hit shows of a passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PassageText {
    pub headings: Vec<String>,
    pub line: u32,
    pub end_line: u32,
    pub start: usize,
    pub end: usize,
    pub text: String,
}

/// A text that waits for its vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PendingText {
    /// A passage; its embedded text is made of the note's title (if it stands in the note), headings and text.
    Passage { id: i64, title: Option<String>, headings: Vec<String>, text: String, note_title: String },
    /// A title that is only the file's name.
    Title { note: FileId, title: String },
}

impl Store {
    /// The id that the next new passage gets. No id is given twice: who embeds a passage without holding the lock
    /// knows that the id still means that text, or nothing.
    pub(crate) fn next_passage_id(&self) -> Result<i64> {
        let next = |row: &rusqlite::Row<'_>| row.get(0);
        let there: i64 =
            self.conn.query_row("SELECT coalesce(max(id), 0) + 1 FROM passage", [], next).map_err(|e| self.error(e))?;
        let given = self.meta("next_passage")?.and_then(|id| id.parse().ok()).unwrap_or(0);
        Ok(there.max(given))
    }

    /// Notes which id the next new passage gets.
    pub(crate) fn set_next_passage_id(&self, id: i64) -> Result<()> {
        self.set_meta("next_passage", &id.to_string())
    }

    /// Adds passages.
    pub(crate) fn put_passages(&self, passages: &[PassageToPut<'_>]) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            let mut insert =
                self.conn.prepare_cached("INSERT INTO passage(id, note, vector, length) VALUES(?1, ?2, ?3, ?4)")?;
            for PassageToPut { id, note, vector, length, .. } in passages {
                insert.execute(params![id, note.0, vector, length])?;
            }
            self.note_unpacked(passages.iter().map(|passage| passage.id))?;
            let mut insert = self.conn.prepare_cached(
                "INSERT INTO passage_text(id, headings, line, end_line, start, end, text)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for PassageToPut { id, text, .. } in passages {
                insert.execute(params![
                    id,
                    text.headings,
                    text.lines.0,
                    text.lines.1,
                    text.span.start,
                    text.span.end,
                    text.text
                ])?;
            }
            Ok(())
        };
        write().map_err(|e| self.error(e))
    }

    /// Removes a note's passages with their words.
    pub(crate) fn remove_passages(&self, note: FileId) -> Result<()> {
        self.run("DELETE FROM words WHERE rowid IN (SELECT id FROM passage WHERE note = ?1)", [note.0])?;
        self.run("DELETE FROM passage_text WHERE id IN (SELECT id FROM passage WHERE note = ?1)", [note.0])?;
        self.run("DELETE FROM passage WHERE note = ?1", [note.0])
    }

    /// The vectors that the passages of a note have by now, in their order in it. `None`: it has no passages.
    pub(crate) fn vectors_of(&self, note: FileId) -> Result<Option<Vec<i64>>> {
        let read = || -> rusqlite::Result<Vec<Option<i64>>> {
            let mut statement = self.conn.prepare_cached("SELECT vector FROM passage WHERE note = ?1 ORDER BY id")?;
            statement.query_map([note.0], |row| row.get(0))?.collect()
        };
        let slots = read().map_err(|e| self.error(e))?;
        Ok((!slots.is_empty()).then(|| slots.into_iter().flatten().collect()))
    }

    /// The ids of a note's passages, in their order in it.
    pub(crate) fn passages_of(&self, note: FileId) -> Result<Vec<i64>> {
        let read = || -> rusqlite::Result<Vec<i64>> {
            let mut statement = self.conn.prepare_cached("SELECT id FROM passage WHERE note = ?1 ORDER BY id")?;
            statement.query_map([note.0], |row| row.get(0))?.collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// A passage's text and place.
    pub(crate) fn passage_text(&self, id: i64) -> Result<Option<PassageText>> {
        self.conn
            .prepare_cached("SELECT headings, line, end_line, start, end, text FROM passage_text WHERE id = ?1")
            .and_then(|mut s| {
                s.query_row([id], |row| {
                    Ok(PassageText {
                        headings: from_json(&row.get::<_, String>(0)?),
                        line: row.get(1)?,
                        end_line: row.get(2)?,
                        start: row.get(3)?,
                        end: row.get(4)?,
                        text: row.get(5)?,
                    })
                })
                .optional()
            })
            .map_err(|e| self.error(e))
    }

    /// The first passage of a note that a line lies in, where there is one. The logarithm of its passages.
    pub(crate) fn passage_at_line(&self, note: FileId, line: u32) -> Result<Option<PassageText>> {
        let find = || -> rusqlite::Result<Option<i64>> {
            let (mut first, mut last): (i64, i64) = self
                .conn
                .prepare_cached(
                    "SELECT coalesce((SELECT id FROM passage WHERE note = ?1 ORDER BY id LIMIT 1), 1),
                            coalesce((SELECT id FROM passage WHERE note = ?1 ORDER BY id DESC LIMIT 1), 0)",
                )?
                .query_row([note.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
            // A note's passages have ids that follow one another, in the order of their lines.
            let mut lines = self.conn.prepare_cached("SELECT line, end_line FROM passage_text WHERE id = ?1")?;
            let mut found = None;
            while first <= last {
                let middle = first + (last - first) / 2;
                let at: Option<(u32, u32)> =
                    lines.query_row([middle], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
                match at {
                    Some((begin, end)) if end >= line => {
                        found = (begin <= line).then_some(middle);
                        last = middle - 1;
                    }
                    _ => first = middle + 1,
                }
            }
            Ok(found)
        };
        find().map_err(|e| self.error(e))?.map_or(Ok(None), |id| self.passage_text(id))
    }

    /// Texts without a vector, those of the newest notes first.
    pub(crate) fn pending_texts(&self, limit: usize) -> Result<Vec<PendingText>> {
        let read = || -> rusqlite::Result<Vec<PendingText>> {
            // The newest notes of those that have anything pending, titles with their passages.
            let mut notes = self.conn.prepare_cached(
                "SELECT file.id FROM file WHERE file.id IN (SELECT note FROM passage WHERE vector IS NULL
                   UNION SELECT id FROM note INDEXED BY note_pending
                     WHERE title_vector IS NULL AND title_source = 2)
                 ORDER BY file.modified_ns DESC, file.id LIMIT ?1",
            )?;
            let mut titles = self
                .conn
                .prepare_cached("SELECT title FROM note WHERE id = ?1 AND title_vector IS NULL AND title_source = 2")?;
            let mut passages = self.conn.prepare_cached(
                "SELECT passage.id, passage_text.headings, passage_text.text,
                        CASE WHEN note.title_source = 2 THEN NULL ELSE note.title END, note.title
                 FROM passage JOIN passage_text ON passage_text.id = passage.id JOIN note ON note.id = passage.note
                 WHERE passage.note = ?1 AND passage.vector IS NULL ORDER BY passage.id",
            )?;
            let mut pending = Vec::new();
            let mut ids = notes.query([limit])?;
            while let Some(row) = ids.next()? {
                let note = file_id(row, 0)?;
                for title in titles.query_map([note.0], |row| row.get(0))? {
                    pending.push(PendingText::Title { note, title: title? });
                }
                let rows = passages.query_map([note.0], |row| {
                    Ok(PendingText::Passage {
                        id: row.get(0)?,
                        headings: from_json(&row.get::<_, String>(1)?),
                        text: row.get(2)?,
                        title: row.get(3)?,
                        note_title: row.get(4)?,
                    })
                })?;
                for passage in rows {
                    pending.push(passage?);
                    if pending.len() >= limit {
                        return Ok(pending);
                    }
                }
            }
            Ok(pending)
        };
        read().map_err(|e| self.error(e))
    }

    /// How many texts wait for a vector. By the indexes that hold no others: left to itself, SQLite takes the one of all
    /// titles' vectors, and reads the row of every note whose title needs none.
    pub(crate) fn pending(&self) -> Result<usize> {
        self.conn
            .query_row(
                "SELECT (SELECT count(*) FROM passage WHERE vector IS NULL)
                      + (SELECT count(*) FROM note INDEXED BY note_pending
                         WHERE title_vector IS NULL AND title_source = 2)",
                [],
                |row| row.get(0),
            )
            .map_err(|e| self.error(e))
    }

    /// Gives a text its vector, if it is still there.
    pub(crate) fn set_vector(&self, text: &PendingText, vector: i64) -> Result<()> {
        match text {
            PendingText::Passage { id, .. } => {
                self.run("UPDATE passage SET vector = ?2 WHERE id = ?1", params![id, vector])
            }
            PendingText::Title { note, title } => self.run(
                "UPDATE note SET title_vector = ?2 WHERE id = ?1 AND title = ?3 AND title_source = 2",
                params![note.0, vector, title],
            ),
        }
    }

    /// Every `step`-th passage's text, for statistics.
    pub(crate) fn sample_texts(&self, step: usize) -> Result<Vec<String>> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement =
                self.conn.prepare_cached("SELECT text FROM passage_text WHERE id % ?1 = 0 ORDER BY id")?;
            statement.query_map([step.max(1)], |row| row.get(0))?.collect()
        };
        read().map_err(|e| self.error(e))
    }
}
