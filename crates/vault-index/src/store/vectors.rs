//! Rows of vectors, and the blocks of their int8 codes for searches.
//!
//! Vectors are f32 in a sqlite-vec table, each found by its text. Codes are written by row and read by block.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Once;

use rusqlite::params;
use rusqlite::types::ValueRef;

use crate::error::{Error, ErrorKind, Result};
use crate::store::checksum::checksum;
use crate::store::{ChangedBlock, Store, schema};
use crate::vectors::{
    BLOCK_ROWS, Block, Codes, Interval, MAX_SLOTS, QuantizedRow, QueryCodes, block_and_row, block_len, row_bytes,
    row_offsets,
};

/// The key of a vector: 128 bits of the BLAKE3 hash of the exact text embedded.
pub type EmbeddingKey = [u8; 16];

/// The key of a text.
pub fn key_of(text: &str) -> EmbeddingKey {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    key
}

/// Unused vectors are kept up to this number plus half of those in use, because folders are moved out and come back,
/// edits are undone, and embedding again is expensive.
const UNUSED_KEPT: usize = 1000;

/// Registers sqlite-vec for every connection that is opened from now on.
#[allow(unsafe_code)]
pub(super) fn register_sqlite_vec() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        type Init = unsafe extern "C" fn(
            *mut rusqlite::ffi::sqlite3,
            *mut *mut std::ffi::c_char,
            *const rusqlite::ffi::sqlite3_api_routines,
        ) -> std::ffi::c_int;
        // SAFETY: `sqlite3_vec_init` is the C entry point of a statically linked extension. It is compiled
        // with exactly the signature `Init`, which its Rust declaration leaves out; SQLite calls it with
        // valid arguments when a connection opens. The function lives as long as the program.
        unsafe {
            let init = std::mem::transmute::<unsafe extern "C" fn(), Init>(sqlite_vec::sqlite3_vec_init);
            rusqlite::ffi::sqlite3_auto_extension(Some(init));
        }
    });
}

/// The name of a model's table.
fn table_of(embedder: &str) -> String {
    let name: String = embedder
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(48)
        .collect();
    // Two models whose names become equal by this replacement still get two tables.
    format!("vectors_{name}_{}", &blake3::hash(embedder.as_bytes()).to_hex()[..6])
}

/// The query for a vector in a model's table, and its checksum.
fn vector_sql(table: &str) -> String {
    format!("SELECT embedding, (SELECT sum FROM embedding WHERE id = ?1) FROM {table} WHERE rowid = ?1")
}

/// The questions of a search about vectors.
pub trait ReadVectors {
    /// The model of the vectors in the index, and their dimensions.
    fn embedder(&self) -> Result<Option<(String, usize)>>;

    /// The slots of some keys; those without a vector are left out.
    fn slots_of(&self, keys: &[EmbeddingKey]) -> Result<HashMap<EmbeddingKey, i64>>;

    /// A reader of vectors by their slots, each as the model returned it.
    fn vectors(&self) -> Result<VectorReader<'_>>;

    /// The codes of all vectors, which later searches scan in memory. `None`: there are no vectors, or this store scans
    /// them itself, so that every search asks for [`intervals`](Self::intervals).
    fn codes(&self) -> Result<Option<Codes>>;

    /// The bounds of the score of every slot; `query` can be compared with the rows. For a process that searches once,
    /// this is less work than loading all codes.
    ///
    /// Each interval must contain what [`rescore`](crate::backend::rescore) computes of the query and the row in f32.
    fn intervals(&self, query: &[f32]) -> Result<Vec<Interval>>;
}

/// Reads the vector of a slot.
pub type VectorReader<'a> = Box<dyn Fn(i64) -> Result<Vec<f32>> + 'a>;

/// The number of vectors that sqlite-vec stores in one blob: the fewest that it allows. SQLite follows the pages of a
/// blob from its start, so reading a vector of 384 dimensions takes 26 to 30 µs from a blob of 64, and 5 to 8 from one
/// of 8.
const VECTORS_A_BLOB: usize = 8;

/// With at least this number of blocks, reading half of them takes longer than opening another connection: most of the
/// time is copying by SQLite and the kernel, page by page, which two connections can do in parallel.
const BLOCKS_FOR_TWO: usize = 32;

/// Includes numbers that only a damaged index has.
const ALL_BLOCKS: Range<i64> = i64::MIN..i64::MAX;

const NOT_AS_WRITTEN: &str = "a block of vectors does not match its checksum";

/// The indexer's questions about vectors, and its changes of them.
pub trait WriteVectors {
    /// Those of some keys that have no vector.
    fn without_vector(&self, keys: &[EmbeddingKey]) -> Result<HashSet<EmbeddingKey>>;

    /// Deletes unused vectors once there are many.
    fn drop_unused_vectors(&self) -> Result<()>;
}

impl Store {
    /// Creates the tables for a model's vectors; an index has one model.
    pub(crate) fn make_vectors(&self, embedder: &str, dimensions: usize) -> Result<()> {
        let table = table_of(embedder);
        let sql = format!(
            "CREATE VIRTUAL TABLE {table}
               USING vec0(embedding float[{dimensions}] distance_metric=cosine, chunk_size={VECTORS_A_BLOB});
             {}",
            schema::chunks_view(&table)
        );
        self.with(|conn| conn.execute_batch(&sql))?;
        self.set_meta("embedder", embedder)?;
        self.set_meta("dimensions", &dimensions.to_string())
    }

    fn table(&self) -> Result<(String, usize)> {
        let (embedder, dimensions) = self.embedder()?.ok_or_else(|| {
            Error::new(ErrorKind::Damaged, "the index does not name a model")
                .at(&self.path)
                .with_remedy("run `vault-index check --repair`")
        })?;
        Ok((table_of(&embedder), dimensions))
    }

    /// The slot of a text's vector, if there is one.
    pub(super) fn find_vector(&self, key: &EmbeddingKey) -> Result<Option<i64>> {
        self.first("SELECT id FROM embedding WHERE key = ?1", [key.as_slice()], |row| row.get(0))
    }

    /// The number of vectors, used or not.
    pub(crate) fn vector_count(&self) -> Result<usize> {
        self.only("SELECT count(*) FROM embedding", [])
    }

    /// The slots available for new vectors: gaps first, then the next ones.
    pub(super) fn free_slots(&self) -> Result<impl Iterator<Item = i64> + use<>> {
        let last: i64 = self.only("SELECT coalesce(max(id), 0) FROM embedding", [])?;
        let mut gaps = Vec::new();
        if self.vector_count()? as i64 != last {
            let mut expected = 1;
            self.all("SELECT id FROM embedding ORDER BY id", [], |row| {
                let id: i64 = row.get(0)?;
                gaps.extend(expected..id);
                expected = id + 1;
                Ok(())
            })?;
        }
        Ok(gaps.into_iter().chain(last + 1..))
    }

    /// Adds the vector of a text in a free slot.
    pub(super) fn put_vector(&self, slot: i64, key: &EmbeddingKey, vector: &[f32]) -> Result<()> {
        let (table, _) = self.table()?;
        let quantized = QuantizedRow::new(vector)?;
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        let sum = checksum(&bytes);
        self.run("INSERT INTO embedding(id, key, sum) VALUES(?1, ?2, ?3)", params![slot, key.as_slice(), sum])?;
        self.run(&format!("INSERT INTO {table}(rowid, embedding) VALUES(?1, ?2)"), params![slot, bytes])?;
        self.mark_codes(slot)?;
        self.with(|_| self.put_codes(slot, &quantized))
    }

    pub(super) fn delete_vectors(&self, slots: &[i64]) -> Result<()> {
        let (table, dimensions) = self.table()?;
        for &slot in slots {
            self.run("DELETE FROM embedding WHERE id = ?1", [slot])?;
            self.run(&format!("DELETE FROM {table} WHERE rowid = ?1"), [slot])?;
            self.mark_codes(slot)?;
            self.with(|_| self.clear_codes(slot, dimensions))?;
        }
        Ok(())
    }

    /// `None`: there is no vector, or it does not match its checksum. `sql` is that of [`vector_sql`].
    fn stored_vector(&self, sql: &str, slot: i64) -> Result<Option<Vec<f32>>> {
        let vector = self.first(sql, [slot], |row| {
            let bytes = row.get_ref(0)?.as_blob()?;
            let is_sound = row.get::<_, Option<i64>>(1)? == Some(checksum(bytes));
            Ok(is_sound.then(|| bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect()))
        })?;
        Ok(vector.flatten())
    }

    /// The number of vectors that are missing, or differ from their codes.
    pub(super) fn unsound_vectors(&self) -> Result<usize> {
        let Some((embedder, dimensions)) = self.embedder()? else { return Ok(0) };
        let mut unsound = 0;
        self.each_vector(&table_of(&embedder), dimensions, |_, _, vector| {
            unsound += usize::from(vector.is_none());
            Ok(())
        })?;
        Ok(unsound)
    }

    /// Calls `each` with every slot, its key, and its vector if that is sound: present, finite, and equal to its codes.
    fn each_vector(
        &self,
        table: &str,
        dimensions: usize,
        mut each: impl FnMut(i64, ValueRef<'_>, Option<Vec<f32>>) -> Result<()>,
    ) -> Result<()> {
        // In a block that is not whole, no vector is sound.
        let blocks = self.all("SELECT block, bytes FROM codes", [], |row| {
            let block = row.get(1).map(|bytes| Block::from_bytes(dimensions, bytes));
            Ok(row.get::<_, usize>(0).ok().zip(block.ok().and_then(Result::ok)))
        })?;
        let blocks: HashMap<usize, Block> = blocks.into_iter().flatten().collect();
        let fail = |e| Error::from(e).at(&self.path);
        let sql = vector_sql(table);
        let mut statement = self.conn.prepare("SELECT id, key FROM embedding ORDER BY id").map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let slot: i64 = row.get(0).map_err(fail)?;
            let is_sound = |vector: &Vec<f32>| {
                let (number, row) = block_and_row(slot as usize);
                let codes = blocks.get(&number).and_then(|block| block.row(row));
                codes.is_some() && codes == QuantizedRow::new(vector).ok()
            };
            let vector = match self.stored_vector(&sql, slot) {
                // Other vectors may be in sound pages.
                Err(error) if error.kind() == ErrorKind::Damaged => None,
                vector => vector?.filter(is_sound),
            };
            each(slot, row.get_ref(1).map_err(fail)?, vector)?;
        }
        Ok(())
    }

    /// Copies the keys of another index of the same model, each in its slot, without vectors.
    pub(crate) fn copy_keys(&self, from: &Self) -> Result<()> {
        let batch = self.begin()?;
        let keys: Vec<(i64, EmbeddingKey)> =
            from.all("SELECT id, key FROM embedding WHERE typeof(key) = 'blob' AND length(key) = 16", [], |row| {
                row.try_into()
            })?;
        for (slot, key) in keys {
            self.run("INSERT OR IGNORE INTO embedding(id, key) VALUES(?1, ?2)", (slot, key))?;
        }
        batch.commit()
    }

    /// Copies the sound vectors of another index of the same model, except those in `doubtful` slots, so that their
    /// texts need not be embedded again. If the rest of the other file cannot be read, the vectors read so far stay.
    pub(crate) fn copy_vectors(&self, from: &Self, doubtful: &BTreeSet<i64>) -> Result<()> {
        let (table, dimensions) = self.table()?;
        let batch = self.begin()?;
        let mut slots = self.free_slots()?;
        let copied = from.each_vector(&table, dimensions, |slot, key, vector| {
            let ValueRef::Blob(key) = key else { return Ok(()) };
            let (Ok(key), Some(vector)) = (EmbeddingKey::try_from(key), vector) else { return Ok(()) };
            if doubtful.contains(&slot) || self.find_vector(&key)?.is_some() {
                return Ok(());
            }
            self.put_vector(slots.next().expect("slots do not end"), &key, &vector)
        });
        match copied {
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            copied => copied?,
        }
        batch.commit()
    }
}

impl WriteVectors for Store {
    fn without_vector(&self, keys: &[EmbeddingKey]) -> Result<HashSet<EmbeddingKey>> {
        let mut without = HashSet::new();
        for key in keys {
            if self.find_vector(key)?.is_none() {
                without.insert(*key);
            }
        }
        Ok(without)
    }

    fn drop_unused_vectors(&self) -> Result<()> {
        let unused: Vec<i64> = self.all(
            "SELECT id FROM embedding WHERE id NOT IN (SELECT vector FROM passage WHERE vector IS NOT NULL)
               AND id NOT IN (SELECT title_vector FROM note WHERE title_vector IS NOT NULL) ORDER BY id",
            [],
            |row| row.get(0),
        )?;
        let used = self.vector_count()? - unused.len();
        if unused.len() <= UNUSED_KEPT + used / 2 { Ok(()) } else { self.delete_vectors(&unused) }
    }
}

impl ReadVectors for Store {
    fn embedder(&self) -> Result<Option<(String, usize)>> {
        let (id, dimensions) = (self.meta("embedder")?, self.meta("dimensions")?);
        Ok(id.zip(dimensions.and_then(|d| d.parse().ok())))
    }

    fn slots_of(&self, keys: &[EmbeddingKey]) -> Result<HashMap<EmbeddingKey, i64>> {
        let slot = |key: &EmbeddingKey| Ok(self.find_vector(key)?.map(|slot| (*key, slot)));
        keys.iter().filter_map(|key| slot(key).transpose()).collect()
    }

    fn vectors(&self) -> Result<VectorReader<'_>> {
        let sql = self.embedder()?.map(|(embedder, _)| vector_sql(&table_of(&embedder)));
        Ok(Box::new(move |slot| {
            let vector = sql.as_ref().map_or(Ok(None), |sql| self.stored_vector(sql, slot))?;
            vector.ok_or_else(|| self.damaged(format!("vector {slot} is missing, or does not match its checksum")))
        }))
    }

    fn codes(&self) -> Result<Option<Codes>> {
        let Some((_, dimensions)) = self.embedder()? else { return Ok(None) };
        let mut codes = Codes::new(dimensions);
        codes.reserve(self.block_count()?.saturating_mul(BLOCK_ROWS));
        self.blocks(ALL_BLOCKS, |number, bytes| codes.load_block(number, bytes))?;
        Ok(Some(codes))
    }

    /// One block per connection is in memory at a time. If there is a second connection, it reads the first half
    /// meanwhile; it is closed then.
    fn intervals(&self, query: &[f32]) -> Result<Vec<Interval>> {
        let query = &QueryCodes::new(query)?;
        let Some(other) = self.other.take() else { return self.intervals_of(ALL_BLOCKS, query) };
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
}

impl Store {
    /// Writes the codes of a slot.
    fn put_codes(&self, slot: i64, quantized: &QuantizedRow) -> rusqlite::Result<()> {
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

    /// Removes the row of a slot.
    fn clear_codes(&self, slot: i64, dimensions: usize) -> rusqlite::Result<()> {
        let (block, row) = block_and_row(slot as usize);
        let mut blob = self.conn.blob_open("main", "codes", "bytes", block as i64, false)?;
        blob.write_at(&[0; 4], row_offsets(dimensions, row).scale.start)?;
        blob.close()
    }

    /// Marks the block of a slot, which is about to change, for a new checksum when the transaction is committed.
    ///
    /// # Errors
    /// When it is damaged, because the new checksum would hide that.
    fn mark_codes(&self, slot: i64) -> Result<()> {
        let block = block_and_row(slot as usize).0 as i64;
        if !self.changed.borrow_mut().insert(ChangedBlock::Codes(block)) {
            return Ok(());
        }
        let sql = "SELECT checksum(bytes) IS sum FROM codes LEFT JOIN codes_sum USING(block) WHERE block = ?1";
        match self.first(sql, [block], |row| row.get(0))?.unwrap_or(true) {
            true => Ok(()),
            false => Err(self.damaged(NOT_AS_WRITTEN)),
        }
    }

    /// Computes the checksum of a changed block.
    pub(super) fn sum_codes(&self, block: i64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO codes_sum SELECT block, checksum(bytes) FROM codes WHERE block = ?1";
        self.conn.prepare_cached(sql)?.execute([block]).map(drop)
    }

    /// The number of blocks that do not match their checksums.
    pub(super) fn unsound_codes(&self) -> Result<usize> {
        self.only("SELECT count(*) FROM codes FULL JOIN codes_sum USING(block) WHERE checksum(bytes) IS NOT sum", [])
    }

    /// Pins this connection to the committed state, with the views that word look-ups use. If there are many blocks,
    /// opens and pins another connection for [`intervals`](ReadVectors::intervals).
    pub(crate) fn pin_for_search(&self) -> Result<()> {
        let other = match self.block_count()? < BLOCKS_FOR_TWO {
            true => None,
            false => Self::open_read(&self.path).and_then(|other| Ok((other.data_version()?, other))).ok(),
        };
        self.occurrence_views()?;
        self.pin()?;
        let is_same = |other: &Self, before: i64| -> Result<bool> {
            other.pin()?;
            // The same version before and after means that nothing was committed between the two pins. The same time of
            // the last sync means that it is the same file, not one that replaced it.
            Ok(other.data_version()? == before && other.meta("last_sync")? == self.meta("last_sync")?)
        };
        let other = other.and_then(|(before, other)| is_same(&other, before).unwrap_or(false).then_some(other));
        self.other.set(other.map(Box::new));
        Ok(())
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

    /// The number of the last block plus one.
    fn block_count(&self) -> Result<usize> {
        let last: Option<usize> = self.only("SELECT max(block) FROM codes", [])?;
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    /// Calls `each` with the blocks by number, as they are in the file; without a copy if SQLite does not need one.
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

    /// Runs in a transaction, at whose end the checksums of blocks are computed.
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

    /// Block by block, the intervals equal those of all codes in memory, also around slots and blocks without rows.
    #[test]
    fn intervals_of_stored_codes_are_those_of_loaded_ones() {
        let store = store();
        let batch = store.begin().unwrap();
        store.delete_vectors(&[7, 1500]).unwrap();
        put(&store, 5 * BLOCK_ROWS as i64 + 3, 7777);
        batch.commit().unwrap();
        let query = vector(1);
        assert_eq!(store.intervals(&query).unwrap(), loaded(&store, &query));
    }

    fn loaded(store: &Store, query: &[f32]) -> Vec<Interval> {
        let codes = store.codes().unwrap().unwrap();
        let slots: Vec<u32> = (0..codes.len() as u32).collect();
        codes.intervals(&QueryCodes::new(query).unwrap(), &slots)
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
        let query = vector(1);
        let pinned = || {
            let store = Store::open_read(&path).unwrap();
            store.pin_for_search().unwrap();
            let other = store.other.take();
            let has_other = other.is_some();
            store.other.set(other);
            (store, has_other)
        };
        assert!(!pinned().1, "few blocks need one connection");
        // No rows in many blocks of both halves.
        let last = (BLOCKS_FOR_TWO * BLOCK_ROWS) as i64;
        write(&[7, 3 * BLOCK_ROWS as i64, last / 2 + 5, last]);
        let (store, has_other) = pinned();
        assert!(has_other);
        let before = loaded(&store, &query);
        write(&[5, last / 2 + 9, last + 9]);
        assert_eq!(store.intervals(&query).unwrap(), before);
        assert_ne!(loaded(&writer, &query), before);
    }
}
