//! Rows of passages, and of texts without a vector.

use std::collections::{HashMap, HashSet, VecDeque};

use postgres::types::Type;
use vault_index::backend::{
    EmbeddingKey, PassageRow, PassageText, PendingText, ReadPassages, ReadVectors, Slot, WritePassages,
};
use vault_index::{FileId, Result};

use crate::connection::{VaultStore, int, ints, optional_string, string};
use crate::notes::{file_id, json};
use crate::prefetch::{Key, Keyed};
use crate::row::Row;

/// All passages in one value: id (8 bytes), note, vector, title (0: none), length, hash of what it says (4 bytes each).
/// Rows of the protocol would take three times as much.
const PASSAGES: &str = "SELECT string_agg(int8send(passage.id) || int4send(passage.note::integer)
      || int4send(coalesce(vector, 0)::integer) || int4send(coalesce(title_vector, 0)::integer)
      || int4send(length::integer) || substring(int8send(said), 5), '' ORDER BY passage.id)
  FROM passage LEFT JOIN note ON note.id = passage.note AND note.vault = @vault WHERE passage.vault = @vault";

fn passage_row(bytes: &[u8; 28]) -> PassageRow {
    let (id, rest) = bytes.split_first_chunk().expect("8 of 28 bytes");
    let number = |n: usize| rest.as_chunks().0.get(n).map_or(0, |bytes| u32::from_be_bytes(*bytes));
    PassageRow {
        id: i64::from_be_bytes(*id),
        note: FileId(number(0)),
        vector: Slot::new(number(1)),
        title: Slot::new(number(2)),
        length: number(3),
        said: number(4),
        repeated: 0,
    }
}

const TEXT: Keyed = Keyed {
    sql: "SELECT id, headings, line, end_line, start_byte, end_byte, text FROM passage_text
          WHERE vault = @vault AND id = ANY($1)",
    also: None,
};

const TEXTS_OF_NOTE: Keyed = Keyed {
    sql: "SELECT note, headings, line, end_line, start_byte, end_byte, text
          FROM passage JOIN passage_text ON passage_text.vault = @vault AND passage_text.id = passage.id
          WHERE passage.vault = @vault AND note = ANY($1) ORDER BY note, passage.id",
    also: None,
};

impl ReadPassages for VaultStore {
    fn passages(&self) -> Result<Vec<PassageRow>> {
        let rows = self.take_rows(PASSAGES, &[])?;
        let bytes = rows.first().and_then(|row| row.get::<_, Option<&[u8]>>(0)).unwrap_or_default();
        Ok(bytes.as_chunks().0.iter().map(passage_row).collect())
    }

    fn passage_vectors(&self, note: FileId) -> Result<Option<Vec<Option<i64>>>> {
        let sql = "SELECT vector FROM passage WHERE vault = @vault AND note = $1 ORDER BY id";
        let slots: Vec<Option<i64>> = self.all(sql, &[int(&note.0.into())], |row| row.get(0))?;
        Ok((!slots.is_empty()).then_some(slots))
    }

    fn passage_text(&self, id: i64) -> Result<Option<PassageText>> {
        Ok(self.rows_of_key(&TEXT, Key::Int(id))?.first().map(passage_text))
    }

    fn passage_texts(&self, note: FileId) -> Result<Vec<PassageText>> {
        Ok(self.rows_of_key(&TEXTS_OF_NOTE, Key::Int(note.0.into()))?.iter().map(passage_text).collect())
    }

    fn each_text(&self, ids: &[i64], each: &mut dyn FnMut(i64, &str)) -> Result<()> {
        // In parts, so that the texts of a whole vault are not in memory at once.
        for ids in ids.chunks(4096) {
            let sql = "SELECT id, text FROM passage_text WHERE vault = @vault AND id = ANY($1) ORDER BY id";
            for row in self.rows(sql, &[ints(&ids)])?.iter() {
                each(row.get(0), &string(row, 1));
            }
        }
        Ok(())
    }

    fn pending(&self) -> Result<usize> {
        self.count(
            "SELECT (SELECT count(*) FROM passage WHERE vault = @vault AND vector IS NULL)
                  + (SELECT count(*) FROM note WHERE vault = @vault AND title_vector IS NULL
                     AND file_title IS NOT NULL)",
            &[],
        )
    }
}

fn passage_text(row: &Row) -> PassageText {
    let number = |column| row.get::<_, i64>(column);
    PassageText {
        headings: json(row, 1),
        line: number(2) as u32,
        end_line: number(3) as u32,
        start: number(4) as usize,
        end: number(5) as usize,
        text: string(row, 6),
    }
}

impl WritePassages for VaultStore {
    fn pending_notes(&self) -> Result<VecDeque<FileId>> {
        let sql = "SELECT id FROM file WHERE vault = @vault AND id IN (
               SELECT note FROM passage WHERE vault = @vault AND vector IS NULL UNION
               SELECT id FROM note WHERE vault = @vault AND title_vector IS NULL AND file_title IS NOT NULL)
             ORDER BY modified_ns DESC, id";
        Ok(self.all(sql, &[], |row| file_id(row, 0))?.into())
    }

    fn pending_texts(&self, notes: &mut VecDeque<FileId>, limit: usize, skipped: &str) -> Result<Vec<PendingText>> {
        let skipped: Vec<i64> = serde_json::from_str(skipped).unwrap_or_default();
        let mut pending: Vec<PendingText> = Vec::new();
        while pending.len() < limit && !notes.is_empty() {
            // Every note has at least one text, or is not needed any more.
            let some: Vec<i64> =
                notes.iter().take((limit - pending.len()).min(256)).map(|note| i64::from(note.0)).collect();
            let sql = "SELECT at, note.id, NULL, NULL, NULL, file_title, NULL, NULL
                 FROM unnest($1) WITH ORDINALITY AS asked(id, at) JOIN note ON note.vault = @vault AND note.id = asked.id
                 WHERE title_vector IS NULL AND file_title IS NOT NULL AND NOT -note.id = ANY($2)
               UNION ALL SELECT at, note.id, passage.id, passage_text.headings, passage_text.text, note.title,
                   CASE WHEN note.title_source = 2 THEN NULL ELSE note.title END, tokens
                 FROM unnest($1) WITH ORDINALITY AS asked(id, at) JOIN note ON note.vault = @vault AND note.id = asked.id
                 JOIN passage ON passage.vault = @vault AND passage.note = note.id
                 JOIN passage_text ON passage_text.vault = @vault AND passage_text.id = passage.id
                 WHERE passage.vector IS NULL AND NOT passage.id = ANY($2)
               ORDER BY 1, 3 NULLS FIRST LIMIT $3";
            let wanted = (limit - pending.len()) as i64;
            let rows = self.rows(sql, &[ints(&some), ints(&skipped), int(&wanted)])?;
            pending.extend(rows.iter().map(|row| match row.get::<_, Option<i64>>(2) {
                None => PendingText::Title { note: file_id(row, 1), title: string(row, 5) },
                Some(id) => PendingText::Passage {
                    id,
                    headings: json(row, 3),
                    text: string(row, 4),
                    note_title: string(row, 5),
                    title: optional_string(row, 6),
                    tokens: row.get::<_, i64>(7) as u32,
                },
            }));
            // The last note of a full list may have more texts.
            let done = match rows.last() {
                Some(last) if rows.len() as i64 == wanted => last.get::<_, i64>(0) as usize - 1,
                _ => some.len(),
            };
            notes.drain(..done);
        }
        Ok(pending)
    }

    fn place_of(&self, id: i64) -> Result<Option<(String, Option<u32>)>> {
        let sql = "SELECT file.path, passage_text.line FROM passage
               JOIN passage_text ON passage_text.vault = @vault AND passage_text.id = passage.id
               JOIN file ON file.vault = @vault AND file.id = passage.note
             WHERE passage.vault = @vault AND passage.id = $1
             UNION ALL SELECT path, NULL FROM file WHERE vault = @vault AND id = -$1";
        let line = |row: &Row| row.get::<_, Option<i64>>(1).map(|line| line as u32);
        self.first(sql, &[int(&id)], |row| (string(row, 0), line(row)))
    }

    fn set_vectors(
        &self,
        texts: &[PendingText],
        keys: &[EmbeddingKey],
        new: &HashMap<EmbeddingKey, Vec<f32>>,
    ) -> Result<usize> {
        let mut slots = self.slots_of(keys)?;
        let mut seen = HashSet::new();
        let missing: Vec<_> = keys
            .iter()
            .filter(|key| !slots.contains_key(*key) && seen.insert(**key))
            .filter_map(|key| new.get_key_value(key))
            .collect();
        let added = missing.len();
        slots.extend(self.add_vectors(missing)?);
        let (mut passages, mut passage_slots) = (Vec::new(), Vec::new());
        let (mut notes, mut titles, mut title_slots) = (Vec::new(), Vec::new(), Vec::new());
        for (text, key) in texts.iter().zip(keys) {
            // Another process has dropped it since the caller looked.
            let Some(&slot) = slots.get(key) else { continue };
            match text {
                PendingText::Passage { id, .. } => {
                    passages.push(*id);
                    passage_slots.push(slot);
                }
                PendingText::Title { note, title } => {
                    notes.push(i64::from(note.0));
                    titles.push(crate::nul::escape(title).into_owned());
                    title_slots.push(slot);
                }
            }
        }
        self.run(
            "UPDATE passage SET vector = new.slot FROM unnest($1, $2) AS new(id, slot)
             WHERE passage.vault = @vault AND passage.id = new.id",
            &[ints(&passages), ints(&passage_slots)],
        )?;
        if !notes.is_empty() {
            self.run(
                "UPDATE note SET title_vector = new.slot FROM unnest($1, $2, $3) AS new(id, title, slot)
                 WHERE note.vault = @vault AND note.id = new.id AND note.file_title = new.title",
                &[ints(&notes), (&titles, Type::TEXT_ARRAY), ints(&title_slots)],
            )?;
        }
        Ok(added)
    }
}
