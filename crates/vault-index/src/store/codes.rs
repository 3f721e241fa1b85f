//! Blocks of int8 codes, what a search scans: written a row at a time, read a block at a time.

use std::ops::Range;

use rusqlite::params;

use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::checksum::checksum;
use crate::vectors::{
    BLOCK_ROWS, Codes, Interval, MAX_SLOTS, Quantized, QueryCodes, block_and_row, block_len, row_bytes, row_offsets,
};

/// From so many blocks on, reading half of them takes longer than opening another connection: reading is mostly the
/// copying of SQLite and the kernel, page by page, which two can do at once.
const BLOCKS_FOR_TWO: usize = 32;

/// Numbers that only a damaged index has, too.
const ALL_BLOCKS: Range<i64> = i64::MIN..i64::MAX;

const NOT_AS_WRITTEN: &str = "a block of vectors is not as it was written";

impl Store {
    /// Writes the codes of a slot.
    pub(super) fn put_codes(&self, slot: i64, quantized: &Quantized) -> rusqlite::Result<()> {
        let (block, row) = block_and_row(slot as usize);
        self.conn
            .prepare_cached("INSERT OR IGNORE INTO codes(block, bytes) VALUES(?1, zeroblob(?2))")?
            .execute(params![block, block_len(quantized.codes.len())])?;
        let mut blob = self.conn.blob_open("main", "codes", "bytes", block as i64, false)?;
        for (offset, bytes) in row_bytes(row, quantized) {
            blob.write_at(&bytes, offset)?;
        }
        blob.close()
    }

    /// From now on the slot has no row.
    pub(super) fn clear_codes(&self, slot: i64, dimensions: usize) -> rusqlite::Result<()> {
        let (block, row) = block_and_row(slot as usize);
        let mut blob = self.conn.blob_open("main", "codes", "bytes", block as i64, false)?;
        blob.write_at(&[0; 4], row_offsets(dimensions, row).scale.start)?;
        blob.close()
    }

    /// Has the block of a slot, which is about to change, summed anew when the transaction is committed.
    ///
    /// # Errors
    /// When it is damaged: the new sum would hide that.
    pub(super) fn mark_codes(&self, slot: i64) -> Result<()> {
        let block = block_and_row(slot as usize).0 as i64;
        if !self.unsummed.borrow_mut().insert(block) {
            return Ok(());
        }
        let sql = "SELECT checksum(bytes) IS sum FROM codes LEFT JOIN codes_sum USING(block) WHERE block = ?1";
        match self.first(sql, [block], |row| row.get(0))?.unwrap_or(true) {
            true => Ok(()),
            false => Err(self.damaged(NOT_AS_WRITTEN)),
        }
    }

    /// Sums the blocks that were changed.
    pub(super) fn sum_codes(&self) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO codes_sum SELECT block, checksum(bytes) FROM codes WHERE block = ?1";
        let mut sum = self.conn.prepare_cached(sql)?;
        std::mem::take(&mut *self.unsummed.borrow_mut()).into_iter().try_for_each(|block| sum.execute([block]).map(drop))
    }

    /// How many blocks are not as they were written.
    pub(super) fn unsound_codes(&self) -> Result<usize> {
        self.only(
            "SELECT count(*) FROM codes FULL JOIN codes_sum USING(block) WHERE checksum(bytes) IS NOT sum",
            [],
        )
    }

    /// The codes of all vectors.
    pub(crate) fn codes(&self) -> Result<Option<Codes>> {
        let Some((_, dimensions)) = self.embedder()? else { return Ok(None) };
        let mut codes = Codes::new(dimensions);
        codes.reserve(self.block_count()?.saturating_mul(BLOCK_ROWS));
        self.blocks(ALL_BLOCKS, |number, bytes| codes.load_block(number, bytes))?;
        Ok(Some(codes))
    }

    /// Pins this connection to what is committed now. Where there are many blocks, another one too, for
    /// [`intervals`](Self::intervals).
    pub(crate) fn pin_for_search(&self) -> Result<Option<Self>> {
        let other = match self.block_count()? < BLOCKS_FOR_TWO {
            true => None,
            false => Self::open_read(&self.path).and_then(|other| Ok((other.data_version()?, other))).ok(),
        };
        self.pin()?;
        let is_same = |other: &Self, before: i64| -> Result<bool> {
            other.pin()?;
            // The same version before and after: nothing was committed between the one pin and the other. The same time
            // of the last sync: it is the same file, not one that was put in its place.
            Ok(other.data_version()? == before && other.meta("last_sync")? == self.meta("last_sync")?)
        };
        Ok(other.and_then(|(before, other)| is_same(&other, before).unwrap_or(false).then_some(other)))
    }

    /// What the score of every slot lies within, with one block a connection in memory at a time: for a process that asks
    /// once, half the work of loading all codes. `other` is pinned to the same state and reads the first half meanwhile.
    pub(crate) fn intervals(&self, other: Option<Self>, query: &QueryCodes) -> Result<Vec<Interval>> {
        let Some(other) = other else { return self.intervals_of(ALL_BLOCKS, query) };
        let half = self.block_count()? as i64 / 2;
        std::thread::scope(|scope| {
            let first = scope.spawn(move || other.intervals_of(ALL_BLOCKS.start..half, query));
            let second = self.intervals_of(half..ALL_BLOCKS.end, query);
            let mut intervals = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            intervals.resize(half as usize * BLOCK_ROWS, Interval::NONE);
            intervals.extend(second?);
            Ok(intervals)
        })
    }

    /// The intervals of the slots of some blocks.
    fn intervals_of(&self, numbers: Range<i64>, query: &QueryCodes) -> Result<Vec<Interval>> {
        let first = usize::try_from(numbers.start).unwrap_or(0);
        let mut block = Codes::new(query.dimensions());
        let mut intervals = Vec::new();
        self.blocks(numbers, |number, bytes| {
            block.load_block(0, bytes)?;
            let slots: Vec<u32> = (0..block.len() as u32).collect();
            intervals.resize((number - first) * BLOCK_ROWS, Interval::NONE);
            intervals.extend(block.intervals(query, &slots));
            Ok(())
        })?;
        Ok(intervals)
    }

    /// One more than the number of the last block.
    fn block_count(&self) -> Result<usize> {
        let last: Option<usize> = self.only("SELECT max(block) FROM codes", [])?;
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    /// Calls `each` with the blocks by number, as the file has them; without a copy where SQLite needs none.
    fn blocks(&self, numbers: Range<i64>, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let fail = |e| Error::from(e).at(&self.path);
        let sql = "SELECT block, bytes, sum FROM codes LEFT JOIN codes_sum USING(block)
            WHERE block >= ?1 AND block < ?2 ORDER BY block";
        let mut statement = self.conn.prepare_cached(sql).map_err(fail)?;
        let mut rows = statement.query([numbers.start, numbers.end]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let number: i64 = row.get(0).map_err(fail)?;
            if !(0..(MAX_SLOTS / BLOCK_ROWS) as i64).contains(&number) {
                return Err(self.damaged(format!("there is no block {number} of vectors")));
            }
            let bytes = row.get_ref(1).and_then(|bytes| Ok(bytes.as_blob()?)).map_err(fail)?;
            if row.get::<_, Option<i64>>(2).map_err(fail)? != Some(checksum(bytes)) {
                return Err(self.damaged(NOT_AS_WRITTEN));
            }
            each(number as usize, bytes).map_err(|e| e.at(&self.path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::key_of;

    const SLOTS: i64 = 2 * BLOCK_ROWS as i64 + 10;

    fn vector(of: i64) -> Vec<f32> {
        let angle = of as f32;
        vec![angle.sin(), angle.cos(), 0.0, 0.0]
    }

    /// In a transaction, at whose end blocks are summed.
    fn put(store: &Store, slot: i64, of: i64) {
        store.put_vector(slot, &key_of(&of.to_string()), &vector(of)).unwrap();
    }

    fn store() -> Store {
        let store = Store::scratch().unwrap();
        store.make_vectors("test", 4).unwrap();
        let batch = store.begin().unwrap();
        (1..SLOTS).for_each(|slot| put(&store, slot, slot));
        batch.commit().unwrap();
        store
    }

    /// Block by block the intervals are those of all codes in memory, also around slots and blocks without rows.
    #[test]
    fn intervals_of_stored_codes_are_those_of_loaded_ones() {
        let store = store();
        let batch = store.begin().unwrap();
        store.delete_vectors(&[7, 1500]).unwrap();
        put(&store, 5 * BLOCK_ROWS as i64 + 3, 7777);
        batch.commit().unwrap();
        let query = QueryCodes::new(&vector(1)).unwrap();
        assert_eq!(store.intervals(None, &query).unwrap(), loaded(&store, &query));
    }

    fn loaded(store: &Store, query: &QueryCodes) -> Vec<Interval> {
        let codes = store.codes().unwrap().unwrap();
        let slots: Vec<u32> = (0..codes.len() as u32).collect();
        codes.intervals(query, &slots)
    }

    #[test]
    fn two_connections_find_what_one_finds_whatever_is_written_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        let writer = Store::open(&path).unwrap();
        let write = |slots: &[i64]| {
            let batch = writer.begin().unwrap();
            slots.iter().for_each(|slot| put(&writer, *slot, *slot));
            batch.commit().unwrap();
        };
        writer.make_vectors("test", 4).unwrap();
        write(&[1, 2000]);
        let query = QueryCodes::new(&vector(1)).unwrap();
        assert!(Store::open_read(&path).unwrap().pin_for_search().unwrap().is_none(), "few blocks need one connection");
        // No rows in many blocks of both halves.
        let last = (BLOCKS_FOR_TWO * BLOCK_ROWS) as i64;
        write(&[7, 3 * BLOCK_ROWS as i64, last / 2 + 5, last]);
        let store = Store::open_read(&path).unwrap();
        let other = store.pin_for_search().unwrap();
        assert!(other.is_some());
        let before = loaded(&store, &query);
        write(&[5, last / 2 + 9, last + 9]);
        assert_eq!(store.intervals(other, &query).unwrap(), before);
        assert_ne!(loaded(&writer, &query), before);
    }
}
