//! All passages at once, as a search wants them: packed, some hundred to a block.
//!
//! `passage_block` says again what `passage` and `note` say, in the form in which it is read fast: 20 bytes a passage,
//! five numbers of 32 bits, highest byte first: the passage's place in its block, its note, its vector and that of the
//! note's title (0: none), its length in terms. Whoever changes a passage, or its note's title vector, marks its block;
//! marked blocks are packed anew before the transaction is committed, so that no reader sees one that is out of date.

use std::num::NonZeroU32;

use crate::error::Result;
use crate::path::FileId;
use crate::store::Store;

/// What a search keeps in memory of every passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PassageRow {
    pub id: i64,
    pub note: FileId,
    /// The slot of its vector.
    pub vector: Option<Slot>,
    /// The slot of the vector of its note's title, where that is only the file's name.
    pub title: Option<Slot>,
    /// Terms in its text.
    pub length: u32,
}

/// The slot of a vector. They begin with 1.
pub(crate) type Slot = NonZeroU32;

/// Of each block; a passage's block is its id without the lowest bits.
const ID_BITS: u32 = 8;

const ENTRY: usize = 20;

/// Blocks as `passage` and `note` would have them: number, bytes.
const PACKED: &str = "SELECT passage.id >> 8 AS block, unhex(group_concat(
    printf('%08x%08x%08x%08x%08x', passage.id & 255, note, ifnull(vector, 0), ifnull(title_vector, 0), length), ''
    ORDER BY passage.id)) AS bytes
  FROM passage LEFT JOIN note ON note.id = passage.note";

impl Store {
    /// Has the block of a passage packed anew.
    pub(super) fn mark_passage(&self, id: i64) {
        self.unpacked.borrow_mut().insert(id >> ID_BITS);
    }

    /// Has the blocks of a note's passages packed anew.
    pub(super) fn mark_passages_of(&self, note: FileId) -> Result<()> {
        let ids = self.all("SELECT id FROM passage WHERE note = ?1", [note], |row| row.get(0))?;
        ids.into_iter().for_each(|id| self.mark_passage(id));
        Ok(())
    }

    /// Packs the marked blocks anew.
    pub(super) fn pack(&self) -> rusqlite::Result<()> {
        let mut delete = self.conn.prepare_cached("DELETE FROM passage_block WHERE block = ?1")?;
        let mut insert = self.conn.prepare_cached(&format!(
            "INSERT INTO passage_block {PACKED} WHERE passage.id BETWEEN ?1 << 8 AND (?1 << 8) + 255 GROUP BY 1"
        ))?;
        for block in std::mem::take(&mut *self.unpacked.borrow_mut()) {
            delete.execute([block])?;
            insert.execute([block])?;
        }
        Ok(())
    }

    /// Packs all blocks: those of an index whose format had none.
    pub(super) fn pack_all(&self) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM passage_block; INSERT INTO passage_block {PACKED} GROUP BY 1;");
        self.conn.execute_batch(&sql)
    }

    /// How many passages there are.
    pub(crate) fn passage_count(&self) -> Result<usize> {
        self.only("SELECT count(*) FROM passage", [])
    }

    /// All passages by id.
    pub(crate) fn passages(&self) -> Result<Vec<PassageRow>> {
        let mut passages = Vec::new();
        let is_whole = self.with(|conn| {
            let mut statement = conn.prepare_cached("SELECT block, bytes FROM passage_block ORDER BY block")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let block: i64 = row.get(0)?;
                let (entries, rest) = row.get_ref(1)?.as_blob()?.as_chunks::<ENTRY>();
                if !rest.is_empty() {
                    return Ok(false);
                }
                passages.extend(entries.iter().map(|entry| unpacked(block, entry)));
            }
            Ok(passages.is_sorted_by_key(|passage: &PassageRow| passage.id))
        })?;
        match is_whole {
            true => Ok(passages),
            false => Err(self.damaged("a block of passages is not whole")),
        }
    }

    /// How many blocks do not say what the rows say.
    pub(super) fn outdated_passage_blocks(&self) -> Result<usize> {
        let sql = format!(
            "WITH packed AS ({PACKED} GROUP BY 1) SELECT count(*) FROM packed FULL JOIN passage_block USING(block)
             WHERE packed.bytes IS NOT passage_block.bytes"
        );
        self.only(&sql, [])
    }
}

fn unpacked(block: i64, entry: &[u8; ENTRY]) -> PassageRow {
    let number = |at: usize| u32::from_be_bytes(*entry[4 * at..].first_chunk().expect("five numbers are an entry"));
    PassageRow {
        id: (block << ID_BITS) | i64::from(number(0)),
        note: FileId(number(1)),
        vector: Slot::new(number(2)),
        title: Slot::new(number(3)),
        length: number(4),
    }
}
