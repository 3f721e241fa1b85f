//! Blocks of int8 codes, what a search scans: written a row at a time, read a block at a time.

use rusqlite::params;

use crate::error::{Error, Result};
use crate::store::Store;
use crate::vectors::{
    BLOCK_ROWS, Codes, Interval, MAX_SLOTS, Quantized, QueryCodes, block_and_row, block_len, row_bytes, row_offsets,
};

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

    /// The codes of all vectors.
    pub(crate) fn codes(&self) -> Result<Option<Codes>> {
        let Some((_, dimensions)) = self.embedder()? else { return Ok(None) };
        let mut codes = Codes::new(dimensions);
        let last: Option<usize> = self.only("SELECT max(block) FROM codes", [])?;
        codes.reserve(last.map_or(0, |last| (last + 1).saturating_mul(BLOCK_ROWS)));
        self.blocks(|number, bytes| codes.load_block(number, bytes))?;
        Ok(Some(codes))
    }

    /// What the score of every slot lies within, with one block in memory at a time: for a process that asks once, half
    /// the work of loading all codes.
    pub(crate) fn intervals(&self, query: &QueryCodes) -> Result<Vec<Interval>> {
        let mut block = Codes::new(query.dimensions());
        let mut intervals = Vec::new();
        self.blocks(|number, bytes| {
            block.load_block(0, bytes)?;
            let slots: Vec<u32> = (0..block.len() as u32).collect();
            intervals.resize(number * BLOCK_ROWS, Interval::NONE);
            intervals.extend(block.intervals(query, &slots));
            Ok(())
        })?;
        Ok(intervals)
    }

    /// Calls `each` with the blocks by number, as the file has them; without a copy where SQLite needs none.
    fn blocks(&self, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let fail = |e| Error::from(e).at(&self.path);
        let mut statement = self.conn.prepare_cached("SELECT block, bytes FROM codes ORDER BY block").map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let number: i64 = row.get(0).map_err(fail)?;
            if !(0..(MAX_SLOTS / BLOCK_ROWS) as i64).contains(&number) {
                return Err(self.damaged(format!("there is no block {number} of vectors")));
            }
            let bytes = row.get_ref(1).and_then(|bytes| Ok(bytes.as_blob()?)).map_err(fail)?;
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

    fn put(store: &Store, slot: i64, of: i64) {
        store.put_vector(slot, &key_of(&of.to_string()), &vector(of)).unwrap();
    }

    fn store() -> Store {
        let store = Store::scratch().unwrap();
        store.make_vectors("test", 4).unwrap();
        (1..SLOTS).for_each(|slot| put(&store, slot, slot));
        store
    }

    /// Block by block the intervals are those of all codes in memory, also around slots and blocks without rows.
    #[test]
    fn intervals_of_stored_codes_are_those_of_loaded_ones() {
        let store = store();
        store.delete_vectors(&[7, 1500]).unwrap();
        put(&store, 5 * BLOCK_ROWS as i64 + 3, 7777);
        let query = QueryCodes::new(&vector(1)).unwrap();
        let codes = store.codes().unwrap().unwrap();
        let slots: Vec<u32> = (0..codes.len() as u32).collect();
        assert_eq!(store.intervals(&query).unwrap(), codes.intervals(&query, &slots));
    }
}
