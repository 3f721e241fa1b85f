//! All passages at once, as a search wants them: packed, some hundred to a block.
//!
//! `passage_block` says again what `passage` and `note` say, in the form in which it is read fast: 20 bytes a passage,
//! five numbers of 32 bits, highest byte first: the passage's place in its block, its note, its vector and that of the
//! note's title (0: none), its length in terms. Triggers of the writer's connection note which blocks a transaction
//! touches; these are packed anew before it is committed, so that no reader sees a block that is out of date.

use std::num::NonZeroU32;

use crate::error::{Error, ErrorKind, Result};
use crate::path::FileId;
use crate::report::counted_as;
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

/// Only on the connection that writes. What a transaction that is rolled back has noted is gone with it.
/// (`OR IGNORE` would not do: within a trigger the statement that set it off says what a conflict does.) A note that is
/// put again has its passages put again behind it, so that only an update can change its title's vector alone. New
/// passages are noted by who puts them: a trigger for each made a first sync noticeably longer.
const TRACK: &str = "
CREATE TEMP TABLE unpacked(block INTEGER PRIMARY KEY);
CREATE TEMP TRIGGER unpacked_by_delete AFTER DELETE ON passage
  WHEN NOT EXISTS (SELECT 1 FROM unpacked WHERE block = old.id >> 8) BEGIN
  INSERT INTO unpacked VALUES(old.id >> 8);
END;
CREATE TEMP TRIGGER unpacked_by_update AFTER UPDATE ON passage
  WHEN NOT EXISTS (SELECT 1 FROM unpacked WHERE block = new.id >> 8) BEGIN
  INSERT INTO unpacked VALUES(new.id >> 8);
END;
CREATE TEMP TRIGGER unpacked_by_title AFTER UPDATE OF title_vector ON note BEGIN
  INSERT INTO unpacked SELECT DISTINCT id >> 8 FROM passage
    WHERE note = new.id AND id >> 8 NOT IN (SELECT block FROM unpacked);
END;
";

impl Store {
    /// Sees to it from now on that [`pack`](Self::pack) knows what to do.
    pub(super) fn track_passages(&self) -> rusqlite::Result<()> {
        self.conn.execute_batch(TRACK)
    }

    /// Notes that passages were put, given by their ids.
    pub(super) fn note_unpacked(&self, ids: impl Iterator<Item = i64>) -> rusqlite::Result<()> {
        let mut insert = self.conn.prepare_cached("INSERT OR IGNORE INTO unpacked VALUES(?1)")?;
        let mut last = None;
        for block in ids.map(|id| id >> ID_BITS) {
            if last.replace(block) != Some(block) {
                insert.execute([block])?;
            }
        }
        Ok(())
    }

    /// Packs the blocks anew that the transaction has touched.
    pub(super) fn pack(&self) -> rusqlite::Result<()> {
        let touched: Vec<i64> = {
            let mut statement = self.conn.prepare_cached("SELECT block FROM unpacked")?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?
        };
        if touched.is_empty() {
            return Ok(());
        }
        let mut delete = self.conn.prepare_cached("DELETE FROM passage_block WHERE block = ?1")?;
        let mut insert = self.conn.prepare_cached(&format!(
            "INSERT INTO passage_block {PACKED} WHERE passage.id BETWEEN ?1 << 8 AND (?1 << 8) + 255 GROUP BY 1"
        ))?;
        for block in touched {
            delete.execute([block])?;
            insert.execute([block])?;
        }
        self.conn.prepare_cached("DELETE FROM unpacked")?.execute([]).map(drop)
    }

    /// Packs all blocks: those of an index whose format had none.
    pub(super) fn pack_all(&self) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM passage_block; INSERT INTO passage_block {PACKED} GROUP BY 1;");
        self.conn.execute_batch(&sql)
    }

    /// How many passages there are.
    pub(crate) fn passage_count(&self) -> Result<usize> {
        self.conn.query_row("SELECT count(*) FROM passage", [], |row| row.get(0)).map_err(|e| self.error(e))
    }

    /// All passages by id.
    pub(crate) fn passages(&self) -> Result<Vec<PassageRow>> {
        let mut passages = Vec::new();
        let mut read = || -> rusqlite::Result<bool> {
            let mut statement = self.conn.prepare_cached("SELECT block, bytes FROM passage_block ORDER BY block")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let block: i64 = row.get(0)?;
                let entries = row.get_ref(1)?.as_blob()?.as_chunks::<ENTRY>();
                if !entries.1.is_empty() {
                    return Ok(false);
                }
                passages.reserve(entries.0.len());
                passages.extend(entries.0.iter().map(|entry| unpacked(block, entry)));
            }
            Ok(passages.is_sorted_by_key(|passage| passage.id))
        };
        match read().map_err(|e| self.error(e))? {
            true => Ok(passages),
            false => Err(Error::new(ErrorKind::Damaged, "a block of passages is not whole")
                .at(&self.path)
                .with_remedy("run `vault-index check --repair`")),
        }
    }

    /// Whether there are blocks that do not say what the rows say.
    pub(crate) fn check_passage_blocks(&self) -> Result<Option<String>> {
        let sql = format!(
            "WITH packed AS ({PACKED} GROUP BY 1) SELECT count(DISTINCT block) FROM (
               SELECT * FROM (SELECT block, bytes FROM packed EXCEPT SELECT block, bytes FROM passage_block)
               UNION ALL
               SELECT * FROM (SELECT block, bytes FROM passage_block EXCEPT SELECT block, bytes FROM packed))"
        );
        let wrong: usize = self.conn.query_row(&sql, [], |row| row.get(0)).map_err(|e| self.error(e))?;
        let fault =
            || counted_as(wrong, "block of passages is not as they are", "blocks of passages are not as they are");
        Ok((wrong > 0).then(fault))
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
