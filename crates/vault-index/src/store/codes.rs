//! Blocks of int8 codes, what a search scans: written a row at a time, read a block at a time, only those that changed.
//!
//! `codes_state` has a number for each block, another one at random whenever a row of the block is written or cleared:
//! whoever holds a block's codes and its number knows from the number alone whether they are still the block's, also
//! when the whole file was replaced meanwhile.

use rusqlite::params;
use rusqlite::types::ValueRef;

use crate::error::{Error, ErrorKind, Result};
use crate::report::counted_as;
use crate::store::Store;
use crate::vectors::{
    BLOCK_ROWS, Codes, Interval, MAX_SLOTS, Quantized, QueryCodes, block_and_row, block_len, row_bytes, row_offsets,
};

/// All codes in memory, and the state that each block had.
#[derive(Clone)]
pub(crate) struct LoadedCodes {
    pub codes: Codes,
    /// By block; ascending. A block without a state is read each time.
    states: Vec<BlockState>,
}

/// A block's number and its state, if it has one.
pub(crate) type BlockState = (i64, Option<i64>);

/// What gives every block a new state.
const GIVE_STATES: &str = "DELETE FROM codes_state; INSERT INTO codes_state SELECT block, random() FROM codes;";

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
        blob.close()?;
        self.change_state(block)
    }

    /// From now on the slot has no row.
    pub(super) fn clear_codes(&self, slot: i64, dimensions: usize) -> rusqlite::Result<()> {
        let (block, row) = block_and_row(slot as usize);
        let mut blob = self.conn.blob_open("main", "codes", "bytes", block as i64, false)?;
        blob.write_at(&[0; 4], row_offsets(dimensions, row).scale.start)?;
        blob.close()?;
        self.change_state(block)
    }

    fn change_state(&self, block: usize) -> rusqlite::Result<()> {
        self.conn.prepare_cached("INSERT OR REPLACE INTO codes_state VALUES(?1, random())")?.execute([block]).map(drop)
    }

    /// The codes of all vectors. Of the blocks that `known` has as they are now, nothing is read.
    pub(crate) fn codes(&self, known: Option<LoadedCodes>) -> Result<Option<LoadedCodes>> {
        let Some((_, dimensions)) = self.embedder()? else { return Ok(None) };
        let states = self.block_states()?;
        // A block that is there no longer: another file's codes.
        let is_ours = |known: &LoadedCodes| {
            let is_here = |(block, _): &BlockState| states.binary_search_by_key(block, |(block, _)| *block).is_ok();
            known.codes.dimensions() == dimensions && known.states.iter().all(is_here)
        };
        let none = || LoadedCodes { codes: Codes::new(dimensions), states: Vec::new() };
        let LoadedCodes { mut codes, states: known } = known.filter(is_ours).unwrap_or_else(none);
        let is_known = |block: i64, state: Option<i64>| state.is_some() && known.binary_search(&(block, state)).is_ok();
        codes.reserve(states.last().map_or(0, |(last, _)| (*last as usize + 1).saturating_mul(BLOCK_ROWS)));
        let changed = states.iter().filter(|(block, state)| !is_known(*block, *state)).map(|(block, _)| *block);
        self.blocks(changed, |number, bytes| codes.load_block(number, bytes))?;
        Ok(Some(LoadedCodes { codes, states }))
    }

    /// What the score of every slot lies within, with one block in memory at a time: for a process that asks once, half
    /// the work of loading all codes.
    pub(crate) fn intervals(&self, query: &QueryCodes) -> Result<Vec<Interval>> {
        let mut block = Codes::new(query.dimensions());
        let mut intervals = Vec::new();
        self.blocks(self.block_states()?.iter().map(|(number, _)| *number), |number, bytes| {
            block.load_block(0, bytes)?;
            let slots: Vec<u32> = (0..block.len() as u32).collect();
            intervals.resize(number * BLOCK_ROWS, Interval::NONE);
            intervals.extend(block.intervals(query, &slots));
            Ok(())
        })?;
        Ok(intervals)
    }

    /// Calls `each` with blocks by their numbers, as the file has them; without a copy where SQLite needs none.
    pub(crate) fn blocks(
        &self,
        numbers: impl Iterator<Item = i64>,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let fail = |e| self.error(e);
        let mut statement = self.conn.prepare_cached("SELECT bytes FROM codes WHERE block = ?1").map_err(fail)?;
        for number in numbers {
            if !(0..(MAX_SLOTS / BLOCK_ROWS) as i64).contains(&number) {
                return Err(Error::new(ErrorKind::Damaged, format!("there is no block {number} of vectors"))
                    .at(&self.path)
                    .with_remedy("run `vault-index check --repair`"));
            }
            let mut rows = statement.query([number]).map_err(fail)?;
            if let Some(row) = rows.next().map_err(fail)?
                && let ValueRef::Blob(bytes) = row.get_ref(0).map_err(fail)?
            {
                each(number as usize, bytes).map_err(|e| e.at(&self.path))?;
            }
        }
        Ok(())
    }

    /// Every block and its state, by number.
    pub(crate) fn block_states(&self) -> Result<Vec<BlockState>> {
        let read = || -> rusqlite::Result<Vec<BlockState>> {
            self.conn
                .prepare_cached(
                    "SELECT block, CASE typeof(state) WHEN 'integer' THEN state END
                     FROM codes LEFT JOIN codes_state USING(block) ORDER BY block",
                )?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// Gives each block a state, in an index whose format had none.
    pub(super) fn give_states(&self) -> rusqlite::Result<()> {
        self.conn.execute_batch(GIVE_STATES)
    }

    /// Whether there are blocks without a state.
    pub(crate) fn check_block_states(&self) -> Result<Option<String>> {
        let without: usize = self.block_states()?.iter().filter(|(_, state)| state.is_none()).count();
        let fault = || counted_as(without, "block of codes has no state", "blocks of codes have no state");
        Ok((without > 0).then(fault))
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

    /// What a scan says of every slot.
    fn upper_bounds(loaded: &LoadedCodes) -> Vec<f32> {
        loaded.codes.upper_bounds(&QueryCodes::new(&vector(1)).unwrap(), None)
    }

    #[track_caller]
    fn as_read_anew(store: &Store, known: LoadedCodes) -> LoadedCodes {
        let loaded = store.codes(Some(known)).unwrap().unwrap();
        let anew = store.codes(None).unwrap().unwrap();
        assert_eq!(loaded.codes.len(), anew.codes.len());
        assert_eq!(upper_bounds(&loaded), upper_bounds(&anew));
        loaded
    }

    #[test]
    fn codes_taken_over_are_those_that_are_read_anew() {
        let store = store();
        let mut known = store.codes(None).unwrap().unwrap();
        known = as_read_anew(&store, known);
        // A row more in the last block, and one in a block of its own.
        put(&store, SLOTS, SLOTS);
        known = as_read_anew(&store, known);
        put(&store, 4 * BLOCK_ROWS as i64, 7777);
        known = as_read_anew(&store, known);
        // One less, one less at the end, and another one in the first one's place.
        store.delete_vectors(&[5, 4 * BLOCK_ROWS as i64]).unwrap();
        known = as_read_anew(&store, known);
        put(&store, 5, 9999);
        known = as_read_anew(&store, known);
        // Blocks that have no state, or a wrong one, are read each time.
        store
            .conn
            .execute_batch("DELETE FROM codes_state WHERE block = 0; UPDATE codes_state SET state = 'x'")
            .unwrap();
        store.conn.execute_batch("UPDATE codes SET bytes = zeroblob(length(bytes)) WHERE block < 2").unwrap();
        as_read_anew(&store, known);
    }

    /// Block by block the intervals are those of all codes in memory, also around slots and blocks without rows.
    #[test]
    fn intervals_of_stored_codes_are_those_of_loaded_ones() {
        let store = store();
        store.delete_vectors(&[7, 1500]).unwrap();
        put(&store, 5 * BLOCK_ROWS as i64 + 3, 7777);
        let query = QueryCodes::new(&vector(1)).unwrap();
        let codes = store.codes(None).unwrap().unwrap().codes;
        let slots: Vec<u32> = (0..codes.len() as u32).collect();
        assert_eq!(store.intervals(&query).unwrap(), codes.intervals(&query, &slots));
    }

    #[test]
    fn a_block_that_has_not_changed_is_not_read() {
        let store = store();
        let known = store.codes(None).unwrap().unwrap();
        let before = upper_bounds(&known);
        // Behind the back of the state.
        store.conn.execute_batch("UPDATE codes SET bytes = zeroblob(length(bytes)) WHERE block <> 1").unwrap();
        put(&store, SLOTS + 5, SLOTS + 5);
        let after = upper_bounds(&store.codes(Some(known)).unwrap().unwrap());
        assert_eq!(after[..2 * BLOCK_ROWS], before[..2 * BLOCK_ROWS]);
        assert_ne!(after[2 * BLOCK_ROWS..], before[2 * BLOCK_ROWS..]);
    }

    #[test]
    fn another_files_codes_are_not_taken_over() {
        let (store, other) = (store(), Store::scratch().unwrap());
        other.make_vectors("other", 4).unwrap();
        (1..100).for_each(|slot| put(&other, slot, slot + 50));
        let known = store.codes(None).unwrap();
        as_read_anew(&other, known.unwrap());
    }
}
