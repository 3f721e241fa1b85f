//! Rows of passages (their notes, vectors and texts), and a packed copy of all of them, some hundred per block.
//!
//! `passage_block` repeats data of `passage` and `note` in a form that is fast to read: 24 bytes per passage, as six
//! numbers of 32 bits, highest byte first: the passage's position in its block, its note, its vector and that of the
//! note's file's name (0: none), its length in terms, and the hash of its text. Code that changes a passage, or the
//! title vector of its note, must mark the block. Marked blocks are packed again, with their checksum, before the
//! transaction is committed, so that readers never see an outdated one.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::ops::Range;

use rusqlite::{Row, params};

use crate::error::Result;
use crate::path::FileId;
use crate::store::checksum::checksum;
use crate::store::notes::from_json;
use crate::store::{ChangedBlock, EmbeddingKey, PassageFields, Store};

/// A new passage.
#[derive(Debug)]
pub struct NewPassage {
    /// As JSON.
    pub headings: String,
    /// The first and the last line.
    pub lines: (u32, u32),
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// Its text.
    pub text: String,
    /// The key of the embedded text.
    pub key: EmbeddingKey,
    /// A number that is equal for passages with the same text, ignoring titles and addresses; 0: no text.
    pub said: u32,
    /// The number of tokens of the embedded text.
    pub tokens: usize,
    /// Its words.
    pub fields: PassageFields,
}

/// The least cost of embedding this number of texts, in tokens.
pub fn least_size(texts: usize) -> u64 {
    TOKENS_A_TEXT * texts as u64
}

/// The displayed data of a passage.
#[derive(Debug, Clone, PartialEq)]
pub struct PassageText {
    /// The headings that it is below.
    pub headings: Vec<String>,
    /// The first line.
    pub line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first byte in the file.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
    /// Its text.
    pub text: String,
}

/// A text without a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum PendingText {
    /// A passage. Its embedded text consists of the note's title (if the note contains it), headings and text.
    Passage {
        /// Its id.
        id: i64,
        /// The title of its note, unless that is the name of the file.
        title: Option<String>,
        /// The headings that it is below.
        headings: Vec<String>,
        /// Its text.
        text: String,
        /// The title of its note in any case.
        note_title: String,
        /// The number of tokens of the embedded text.
        tokens: u32,
    },
    /// The name of a file, if its note does not contain it.
    Title {
        /// The note.
        note: FileId,
        /// The name.
        title: String,
    },
}

/// The cost of embedding a text besides its tokens, in tokens. For a title, this is the whole cost.
const TOKENS_A_TEXT: u64 = 4;

impl PendingText {
    /// The id of the passage; for a title, that of its note, negated.
    pub fn id(&self) -> i64 {
        match self {
            Self::Passage { id, .. } => *id,
            Self::Title { note, .. } => -i64::from(note.0),
        }
    }

    /// The cost of embedding it, in tokens.
    pub fn size(&self) -> u64 {
        match self {
            Self::Passage { tokens, .. } => TOKENS_A_TEXT + u64::from(*tokens),
            Self::Title { .. } => TOKENS_A_TEXT,
        }
    }
}

/// The questions of a search about passages.
pub trait ReadPassages {
    /// All passages, ordered by id.
    fn passages(&self) -> Result<Vec<PassageRow>>;

    /// The current vectors of a note's passages, in order. `None`: it has no passages.
    fn passage_vectors(&self, note: FileId) -> Result<Option<Vec<Option<i64>>>>;

    /// The text and position of a passage.
    fn passage_text(&self, id: i64) -> Result<Option<PassageText>>;

    /// The texts and positions of a note's passages, in order.
    fn passage_texts(&self, note: FileId) -> Result<Vec<PassageText>>;

    /// Calls `each` with the texts of passages. `ids` must ascend.
    fn each_text(&self, ids: &[i64], each: &mut dyn FnMut(i64, &str)) -> Result<()>;

    /// The number of texts without a vector.
    fn pending(&self) -> Result<usize>;
}

/// The indexer's questions about passages without a vector, and its changes of them.
pub trait WritePassages {
    /// The notes that have texts without a vector, newest first.
    fn pending_notes(&self) -> Result<VecDeque<FileId>>;

    /// The first `limit` texts without a vector of some notes, titles with their passages. Notes without such texts are
    /// removed from the queue. `skipped` is a JSON list of [`PendingText::id`].
    fn pending_texts(&self, notes: &mut VecDeque<FileId>, limit: usize, skipped: &str) -> Result<Vec<PendingText>>;

    /// The path of the note of a text, by [`PendingText::id`], and the first line of a passage.
    fn place_of(&self, id: i64) -> Result<Option<(String, Option<u32>)>>;

    /// Sets the vectors of texts, by the keys of what is embedded of them: the one that the index has of a key, else the
    /// one in `new`, which is added. A text that has neither stays pending. Returns the number of added vectors.
    fn set_vectors(
        &self,
        texts: &[PendingText],
        keys: &[EmbeddingKey],
        new: &HashMap<EmbeddingKey, Vec<f32>>,
    ) -> Result<usize>;
}

impl Store {
    /// Whether a text, by [`PendingText::id`], still has no vector.
    pub(crate) fn is_pending(&self, id: i64) -> Result<bool> {
        self.only(
            "SELECT EXISTS(SELECT 1 FROM passage WHERE id = ?1 AND vector IS NULL)
                 OR EXISTS(SELECT 1 FROM note WHERE id = -?1 AND title_vector IS NULL AND file_title IS NOT NULL)",
            [id],
        )
    }

    /// The total size of the texts without a vector; linear in their number, which is `texts`.
    pub(crate) fn pending_size(&self, texts: usize) -> Result<u64> {
        let tokens: u64 = self
            .only("SELECT coalesce(sum(tokens), 0) FROM passage INDEXED BY passage_pending WHERE vector IS NULL", [])?;
        Ok(tokens + least_size(texts))
    }

    /// The id of the next new passage. Ids are never reused, so that a process which embeds a passage without holding
    /// the lock knows that the id still means that text, or nothing.
    pub(super) fn next_passage_id(&self) -> Result<i64> {
        let there: i64 = self.only("SELECT coalesce(max(id), 0) + 1 FROM passage", [])?;
        let given = self.meta("next_passage")?.and_then(|id| id.parse().ok()).unwrap_or(0);
        Ok(there.max(given))
    }

    /// Stores the id of the next new passage.
    pub(super) fn set_next_passage_id(&self, id: i64) -> Result<()> {
        self.set_meta("next_passage", &id.to_string())
    }

    /// Adds a passage, without its words in the keyword index; its id is higher than those of all before.
    pub(crate) fn put_passage(&self, id: i64, note: FileId, vector: Option<i64>, passage: &NewPassage) -> Result<()> {
        self.mark_passage(id);
        self.new_postings.borrow_mut().add(id, &passage.fields);
        self.run(
            "INSERT INTO passage(id, note, vector, length, tokens, said) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            params![id, note, vector, passage.fields.length(), passage.tokens, passage.said],
        )?;
        let NewPassage { headings, lines, span, text, .. } = passage;
        self.run(
            "INSERT INTO passage_text(id, headings, line, end_line, start, end, text, sum)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, checksum(concat_ws(char(0), ?2, ?3, ?4, ?5, ?6, ?7)))",
            params![id, headings, lines.0, lines.1, span.start, span.end, text],
        )
    }

    /// Removes a note's passages with their words, and the words of its own fields.
    pub(super) fn remove_passages(&self, note: FileId) -> Result<()> {
        self.mark_passages_of(note)?;
        self.remove_note_words(note)?;
        self.run("DELETE FROM words WHERE rowid IN (SELECT id FROM passage WHERE note = ?1)", [note])?;
        self.run("DELETE FROM passage_text WHERE id IN (SELECT id FROM passage WHERE note = ?1)", [note])?;
        self.run("DELETE FROM passage WHERE note = ?1", [note])
    }

    /// The number of texts that do not match their checksums.
    pub(super) fn unsound_texts(&self) -> Result<usize> {
        self.only(&format!("SELECT count(*) FROM passage_text WHERE sum IS NOT {SUM}"), [])
    }

    /// Sets the vector of a text, if the text still exists.
    fn set_vector(&self, text: &PendingText, vector: i64) -> Result<()> {
        match text {
            PendingText::Passage { id, .. } => {
                self.mark_passage(*id);
                self.run("UPDATE passage SET vector = ?2 WHERE id = ?1", params![id, vector])
            }
            PendingText::Title { note, title } => {
                self.mark_passages_of(*note)?;
                self.run(
                    "UPDATE note SET title_vector = ?2 WHERE id = ?1 AND file_title = ?3",
                    params![note, vector, title],
                )
            }
        }
    }

    /// The text of every `step`-th passage, for statistics.
    pub(crate) fn sample_texts(&self, step: usize) -> Result<Vec<String>> {
        self.all("SELECT text FROM passage_text WHERE id % ?1 = 0 ORDER BY id", [step.max(1)], |row| row.get(0))
    }
}

impl WritePassages for Store {
    fn pending_notes(&self) -> Result<VecDeque<FileId>> {
        let notes = self.all(
            "SELECT file.id FROM file WHERE file.id IN (SELECT note FROM passage WHERE vector IS NULL
               UNION SELECT id FROM note INDEXED BY note_pending
                 WHERE title_vector IS NULL AND file_title IS NOT NULL)
             ORDER BY file.modified_ns DESC, file.id",
            [],
            |row| row.get(0),
        )?;
        Ok(notes.into())
    }

    fn pending_texts(&self, notes: &mut VecDeque<FileId>, limit: usize, skipped: &str) -> Result<Vec<PendingText>> {
        let mut pending = Vec::new();
        while let Some(&note) = notes.front() {
            pending.extend(self.first(
                "SELECT file_title FROM note WHERE id = ?1 AND title_vector IS NULL AND file_title IS NOT NULL
                   AND -id NOT IN (SELECT value FROM json_each(?2))",
                params![note, skipped],
                |row| Ok(PendingText::Title { note, title: row.get(0)? }),
            )?);
            pending.extend(self.all(
                "SELECT passage.id, passage_text.headings, passage_text.text,
                        CASE WHEN note.title_source = 2 THEN NULL ELSE note.title END, note.title, passage.tokens
                 FROM passage JOIN passage_text ON passage_text.id = passage.id JOIN note ON note.id = passage.note
                 WHERE passage.note = ?1 AND passage.vector IS NULL
                   AND passage.id NOT IN (SELECT value FROM json_each(?3))
                 ORDER BY passage.id LIMIT ?2",
                params![note, limit.saturating_sub(pending.len()), skipped],
                |row| {
                    Ok(PendingText::Passage {
                        id: row.get(0)?,
                        headings: from_json(row.get_ref(1)?.as_str()?),
                        text: row.get(2)?,
                        title: row.get(3)?,
                        note_title: row.get(4)?,
                        tokens: row.get(5)?,
                    })
                },
            )?);
            if pending.len() >= limit {
                break;
            }
            notes.pop_front();
        }
        Ok(pending)
    }

    fn place_of(&self, id: i64) -> Result<Option<(String, Option<u32>)>> {
        self.first(
            "SELECT file.path, passage_text.line FROM passage JOIN passage_text ON passage_text.id = passage.id
               JOIN file ON file.id = passage.note WHERE passage.id = ?1
             UNION ALL SELECT path, NULL FROM file WHERE id = -?1",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn set_vectors(
        &self,
        texts: &[PendingText],
        keys: &[EmbeddingKey],
        new: &HashMap<EmbeddingKey, Vec<f32>>,
    ) -> Result<usize> {
        let mut free = self.free_slots()?;
        let mut added = 0;
        for (text, key) in texts.iter().zip(keys) {
            let slot = match (self.find_vector(key)?, new.get(key)) {
                (Some(slot), _) => slot,
                (None, Some(vector)) => {
                    let slot = free.next().expect("slots do not end");
                    self.put_vector(slot, key, vector)?;
                    added += 1;
                    slot
                }
                // Another process has dropped it since the caller looked.
                (None, None) => continue,
            };
            self.set_vector(text, slot)?;
        }
        Ok(added)
    }
}

impl ReadPassages for Store {
    fn passages(&self) -> Result<Vec<PassageRow>> {
        let mut passages = Vec::new();
        let is_whole = self.with(|conn| {
            let mut statement = conn.prepare_cached("SELECT block, bytes, sum FROM passage_block ORDER BY block")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let block: i64 = row.get(0)?;
                let bytes = row.get_ref(1)?.as_blob()?;
                let (entries, rest) = bytes.as_chunks::<ENTRY>();
                if !rest.is_empty() || row.get::<_, Option<i64>>(2)? != Some(checksum(bytes)) {
                    return Ok(false);
                }
                passages.extend(entries.iter().map(|entry| unpacked(block, entry)));
            }
            Ok(passages.is_sorted_by_key(|passage: &PassageRow| passage.id))
        })?;
        match is_whole {
            true => Ok(passages),
            false => Err(self.damaged("a block of passages does not match its checksum")),
        }
    }

    fn passage_vectors(&self, note: FileId) -> Result<Option<Vec<Option<i64>>>> {
        let sql = "SELECT vector FROM passage WHERE note = ?1 ORDER BY id";
        let slots: Vec<Option<i64>> = self.all(sql, [note], |row| row.get(0))?;
        Ok((!slots.is_empty()).then_some(slots))
    }

    fn passage_text(&self, id: i64) -> Result<Option<PassageText>> {
        match self.first(&texts("id = ?1"), [id], passage_text)? {
            Some(None) => Err(self.damaged("a text does not match its checksum")),
            text => Ok(text.flatten()),
        }
    }

    fn passage_texts(&self, note: FileId) -> Result<Vec<PassageText>> {
        let sql = texts("id IN (SELECT id FROM passage WHERE note = ?1) ORDER BY id");
        let texts: Option<Vec<PassageText>> = self.all(&sql, [note], passage_text)?.into_iter().collect();
        texts.ok_or_else(|| self.damaged("a text does not match its checksum"))
    }

    fn each_text(&self, ids: &[i64], each: &mut dyn FnMut(i64, &str)) -> Result<()> {
        let Some((first, last)) = ids.first().zip(ids.last()) else { return Ok(()) };
        self.with(|conn| {
            // Reading all texts is faster than looking many up.
            let is_many = ids.len() as i64 > (last - first) / 8;
            if !is_many {
                let mut statement = conn.prepare_cached("SELECT text FROM passage_text WHERE id = ?1")?;
                for id in ids {
                    let mut rows = statement.query([id])?;
                    if let Some(row) = rows.next()? {
                        each(*id, row.get_ref(0)?.as_str()?);
                    }
                }
                return Ok(());
            }
            let sql = "SELECT id, text FROM passage_text WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query([first, last])?;
            let mut wanted = ids.iter().peekable();
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(0)?;
                while wanted.next_if(|wanted| **wanted < id).is_some() {}
                if wanted.next_if(|wanted| **wanted == id).is_some() {
                    each(id, row.get_ref(1)?.as_str()?);
                }
            }
            Ok(())
        })
    }

    /// The query names the index of the titles without a vector, because SQLite would otherwise choose that of all
    /// titles' vectors, and read the row of every note whose title needs no vector.
    fn pending(&self) -> Result<usize> {
        self.only(
            "SELECT (SELECT count(*) FROM passage WHERE vector IS NULL)
                  + (SELECT count(*) FROM note INDEXED BY note_pending
                     WHERE title_vector IS NULL AND file_title IS NOT NULL)",
            [],
        )
    }
}

/// The checksum of a text and its position.
const SUM: &str = "checksum(concat_ws(char(0), headings, line, end_line, start, end, text))";

/// The query for [`passage_text`].
fn texts(condition: &str) -> String {
    format!("SELECT headings, line, end_line, start, end, text, sum IS {SUM} FROM passage_text WHERE {condition}")
}

/// `None`: it does not match its checksum.
fn passage_text(row: &Row<'_>) -> rusqlite::Result<Option<PassageText>> {
    if !row.get::<_, bool>(6)? {
        return Ok(None);
    }
    Ok(Some(PassageText {
        headings: from_json(row.get_ref(0)?.as_str()?),
        line: row.get(1)?,
        end_line: row.get(2)?,
        start: row.get(3)?,
        end: row.get(4)?,
        text: row.get(5)?,
    }))
}

/// The data of every passage that a search keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageRow {
    /// Its id.
    pub id: i64,
    /// Its note.
    pub note: FileId,
    /// The slot of its vector.
    pub vector: Option<Slot>,
    /// The slot of the vector of its note's file's name, if the note does not contain that name.
    pub title: Option<Slot>,
    /// The number of terms in its text.
    pub length: u32,
    /// A number that is equal for passages with the same text, ignoring titles and addresses; 0: no text. It is odd if
    /// the passage is only links.
    pub said: u32,
    /// The number of notes with this passage, if there are too many for a note to be about it. Not stored.
    pub repeated: u32,
}

impl PassageRow {
    /// Whether too many notes have it for one of them to be about it.
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated > 0
    }

    /// Whether it has links and no words outside of them.
    pub(crate) fn is_only_links(&self) -> bool {
        self.said % 2 == 1
    }
}

/// The slot of a vector. Slots start at 1.
pub type Slot = NonZeroU32;

/// The number of low bits of an id that give the position in a block; the other bits give the block.
const ID_BITS: u32 = 8;

const ENTRY: usize = 24;

/// The blocks that `passage` and `note` should give: number, bytes.
const PACKED: &str = "SELECT passage.id >> 8 AS block, unhex(group_concat(
    printf('%08x%08x%08x%08x%08x%08x', passage.id & 255, note, ifnull(vector, 0), ifnull(title_vector, 0), length, said), ''
    ORDER BY passage.id)) AS bytes
  FROM passage LEFT JOIN note ON note.id = passage.note";

/// Such blocks with their checksums.
fn packed(condition: &str) -> String {
    format!("SELECT block, bytes, checksum(bytes) AS sum FROM ({PACKED} {condition} GROUP BY 1)")
}

impl Store {
    /// Marks the block of a passage to be packed again.
    pub(super) fn mark_passage(&self, id: i64) {
        self.changed.borrow_mut().insert(ChangedBlock::Passages(id >> ID_BITS));
    }

    /// Marks the blocks of a note's passages to be packed again.
    pub(super) fn mark_passages_of(&self, note: FileId) -> Result<()> {
        let ids = self.all("SELECT id FROM passage WHERE note = ?1", [note], |row| row.get(0))?;
        ids.into_iter().for_each(|id| self.mark_passage(id));
        Ok(())
    }

    /// Packs a block again.
    pub(super) fn pack(&self, block: i64) -> rusqlite::Result<()> {
        let mut delete = self.conn.prepare_cached("DELETE FROM passage_block WHERE block = ?1")?;
        let mut insert = self.conn.prepare_cached(&format!(
            "INSERT INTO passage_block(block, bytes, sum) {}",
            packed("WHERE passage.id BETWEEN ?1 << 8 AND (?1 << 8) + 255")
        ))?;
        delete.execute([block])?;
        insert.execute([block]).map(drop)
    }

    /// The number of passages.
    pub(crate) fn passage_count(&self) -> Result<usize> {
        self.only("SELECT count(*) FROM passage", [])
    }

    /// The number of blocks that differ from the rows.
    pub(super) fn outdated_passage_blocks(&self) -> Result<usize> {
        let sql = format!(
            "WITH packed AS ({}) SELECT count(*) FROM packed FULL JOIN passage_block USING(block)
             WHERE packed.bytes IS NOT passage_block.bytes OR packed.sum IS NOT passage_block.sum",
            packed("")
        );
        self.only(&sql, [])
    }
}

fn unpacked(block: i64, entry: &[u8; ENTRY]) -> PassageRow {
    let number = |at: usize| u32::from_be_bytes(*entry[4 * at..].first_chunk().expect("six numbers are an entry"));
    PassageRow {
        id: (block << ID_BITS) | i64::from(number(0)),
        note: FileId(number(1)),
        vector: Slot::new(number(2)),
        title: Slot::new(number(3)),
        length: number(4),
        said: number(5),
        repeated: 0,
    }
}
