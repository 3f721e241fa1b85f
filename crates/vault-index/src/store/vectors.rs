//! Rows of vectors: f32 in a sqlite-vec table, each found by the text it is of and written with its codes.

use std::collections::BTreeSet;
use std::sync::Once;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, params};

use crate::error::{Error, ErrorKind, Result};
use crate::report::counted_as;
use crate::store::{Store, schema};
use crate::vectors::{Block, Quantized, block_and_row};

/// What a vector is found by: 128 bits of the BLAKE3 hash of the exact text embedded.
pub(crate) type EmbeddingKey = [u8; 16];

/// The key of a text.
pub(crate) fn key_of(text: &str) -> EmbeddingKey {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    key
}

/// Unused vectors are kept up to this many, and half as many as are in use: folders are moved out and come
/// back, edits are undone, and embedding again is what costs.
const UNUSED_KEPT: usize = 1000;

/// Makes sqlite-vec known to every connection that is opened from now on.
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
    // Two models whose names differ in what is folded away still get two tables.
    format!("vectors_{name}_{}", &blake3::hash(embedder.as_bytes()).to_hex()[..6])
}

/// Vectors that sqlite-vec keeps in one blob. To read one of them, SQLite follows the blob's pages from its beginning:
/// in blobs of 1,024, sqlite-vec's default, that was a quarter of a search.
const VECTORS_A_BLOB: usize = 64;

impl Store {
    /// The model whose vectors the index holds, and their dimensions.
    pub(crate) fn embedder(&self) -> Result<Option<(String, usize)>> {
        let (id, dimensions) = (self.meta("embedder")?, self.meta("dimensions")?);
        Ok(id.zip(dimensions.and_then(|d| d.parse().ok())))
    }

    /// Makes the tables for a model's vectors; an index has one model.
    pub(crate) fn make_vectors(&self, embedder: &str, dimensions: usize) -> Result<()> {
        let table = table_of(embedder);
        self.conn
            .execute_batch(&format!(
                "CREATE VIRTUAL TABLE {table}
                   USING vec0(embedding float[{dimensions}] distance_metric=cosine, chunk_size={VECTORS_A_BLOB});
                 {}",
                schema::chunks_view(&table)
            ))
            .map_err(|e| self.error(e))?;
        self.set_meta("embedder", embedder)?;
        self.set_meta("dimensions", &dimensions.to_string())
    }

    fn table(&self) -> Result<(String, usize)> {
        let (embedder, dimensions) = self.embedder()?.ok_or_else(|| {
            Error::new(ErrorKind::Damaged, "the index names no model")
                .at(&self.path)
                .with_remedy("run `vault-index rebuild`")
        })?;
        Ok((table_of(&embedder), dimensions))
    }

    /// The slot of a text's vector, if there is one.
    pub(crate) fn find_vector(&self, key: &EmbeddingKey) -> Result<Option<i64>> {
        self.conn
            .prepare_cached("SELECT id FROM embedding WHERE key = ?1")
            .and_then(|mut s| s.query_row([key.as_slice()], |row| row.get(0)).optional())
            .map_err(|e| self.error(e))
    }

    /// Whether there are no vectors at all, so that looking for one is in vain.
    pub(crate) fn has_no_vectors(&self) -> Result<bool> {
        self.conn
            .query_row("SELECT NOT EXISTS (SELECT 1 FROM embedding)", [], |row| row.get(0))
            .map_err(|e| self.error(e))
    }

    /// Vectors held, used or not.
    pub(crate) fn vector_count(&self) -> Result<usize> {
        self.conn.query_row("SELECT count(*) FROM embedding", [], |row| row.get(0)).map_err(|e| self.error(e))
    }

    /// Slots that can be given to new vectors: gaps first, then the next ones.
    pub(crate) fn free_slots(&self) -> Result<FreeSlots> {
        let read = || -> rusqlite::Result<FreeSlots> {
            let (count, max): (i64, i64) =
                self.conn.query_row("SELECT count(*), coalesce(max(id), 0) FROM embedding", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let mut gaps = Vec::new();
            if count < max {
                let mut statement = self.conn.prepare_cached("SELECT id FROM embedding ORDER BY id")?;
                let mut rows = statement.query([])?;
                let mut expected = 1;
                while let Some(row) = rows.next()? {
                    let id: i64 = row.get(0)?;
                    gaps.extend(expected..id);
                    expected = id + 1;
                }
                gaps.reverse();
            }
            Ok(FreeSlots { gaps, next: max + 1 })
        };
        read().map_err(|e| self.error(e))
    }

    /// Adds the vector of a text in a free slot.
    pub(crate) fn put_vector(&self, slot: i64, key: &EmbeddingKey, vector: &[f32]) -> Result<()> {
        let (table, _) = self.table()?;
        let quantized = Quantized::new(vector)?;
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        let write = || -> rusqlite::Result<()> {
            self.conn
                .prepare_cached("INSERT INTO embedding(id, key) VALUES(?1, ?2)")?
                .execute(params![slot, key.as_slice()])?;
            self.conn
                .prepare_cached(&format!("INSERT INTO {table}(rowid, embedding) VALUES(?1, ?2)"))?
                .execute(params![slot, bytes])?;
            self.put_codes(slot, &quantized)
        };
        write().map_err(|e| self.error(e))
    }

    /// Drops vectors that nothing uses, when they have become many. Returns how many.
    pub(crate) fn drop_unused_vectors(&self) -> Result<usize> {
        let unused: Vec<i64> = {
            let read = || {
                let mut statement = self.conn.prepare_cached(
                    "SELECT id FROM embedding WHERE id NOT IN (SELECT vector FROM passage WHERE vector IS NOT NULL)
                       AND id NOT IN (SELECT title_vector FROM note WHERE title_vector IS NOT NULL) ORDER BY id",
                )?;
                statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
            };
            read().map_err(|e| self.error(e))?
        };
        let used = self.vector_count()? - unused.len();
        if unused.len() <= UNUSED_KEPT + used / 2 {
            return Ok(0);
        }
        self.delete_vectors(&unused)?;
        Ok(unused.len())
    }

    pub(super) fn delete_vectors(&self, slots: &[i64]) -> Result<()> {
        let (table, dimensions) = self.table()?;
        let write = || -> rusqlite::Result<()> {
            for &slot in slots {
                self.conn.prepare_cached("DELETE FROM embedding WHERE id = ?1")?.execute([slot])?;
                self.conn.prepare_cached(&format!("DELETE FROM {table} WHERE rowid = ?1"))?.execute([slot])?;
                self.clear_codes(slot, dimensions)?;
            }
            Ok(())
        };
        write().map_err(|e| self.error(e))
    }

    /// One vector, as the model gave it.
    pub(crate) fn vector(&self, slot: i64) -> Result<Vec<f32>> {
        let (table, _) = self.table()?;
        let bytes: Option<Vec<u8>> = self
            .conn
            .prepare_cached(&format!("SELECT embedding FROM {table} WHERE rowid = ?1"))
            .and_then(|mut s| s.query_row([slot], |row| row.get(0)).optional())
            .map_err(|e| self.error(e))?;
        let bytes = bytes.ok_or_else(|| {
            Error::new(ErrorKind::Damaged, format!("vector {slot} is missing"))
                .at(&self.path)
                .with_remedy("run `vault-index check --repair`")
        })?;
        Ok(floats(&bytes))
    }

    /// How many vectors are missing, or are not what their codes say: one line if there are any.
    pub(crate) fn check_vectors(&self) -> Result<Option<String>> {
        let Some((embedder, dimensions)) = self.embedder()? else { return Ok(None) };
        let mut wrong = 0;
        self.each_vector(&table_of(&embedder), dimensions, |_, _, vector| {
            wrong += usize::from(vector.is_none());
            Ok(())
        })?;
        let fault = || {
            counted_as(
                wrong,
                "vector differs from its codes or is missing",
                "vectors differ from their codes or are missing",
            )
        };
        Ok((wrong > 0).then(fault))
    }

    /// Calls `each` with every slot, its key, and its vector if that is sound: there, finite, and as its codes say.
    fn each_vector(
        &self,
        table: &str,
        dimensions: usize,
        mut each: impl FnMut(i64, ValueRef<'_>, Option<Vec<f32>>) -> Result<()>,
    ) -> Result<()> {
        let fail = |e| self.error(e);
        let mut blocks = std::collections::HashMap::new();
        let mut statement = self.conn.prepare("SELECT block, bytes FROM codes").map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            // Of a block that is not whole, no vector is sound.
            if let (Ok(number), Ok(bytes)) = (row.get::<_, usize>(0), row.get(1))
                && let Ok(block) = Block::from_bytes(dimensions, bytes)
            {
                blocks.insert(number, block);
            }
        }
        let mut vectors =
            self.conn.prepare(&format!("SELECT embedding FROM {table} WHERE rowid = ?1")).map_err(fail)?;
        let mut statement = self.conn.prepare("SELECT id, key FROM embedding ORDER BY id").map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let slot: i64 = row.get(0).map_err(fail)?;
            let bytes: Option<Vec<u8>> = vectors.query_row([slot], |row| row.get(0)).optional().map_err(fail)?;
            let vector: Option<Vec<f32>> = bytes.map(|bytes| floats(&bytes));
            let is_sound = |vector: &Vec<f32>| {
                let (number, row) = block_and_row(slot as usize);
                let codes = blocks.get(&number).and_then(|block| block.row(row));
                codes.is_some() && codes == Quantized::new(vector).ok()
            };
            each(slot, row.get_ref(1).map_err(fail)?, vector.filter(is_sound))?;
        }
        Ok(())
    }

    /// Takes over the keys of another index of the same model, each in its slot, without vectors.
    pub(crate) fn copy_keys(&self, from: &Self) -> Result<()> {
        let batch = self.begin()?;
        let fail = |e| from.error(e);
        let mut insert = self.conn.prepare("INSERT OR IGNORE INTO embedding(id, key) VALUES(?1, ?2)").map_err(fail)?;
        let mut statement = from
            .conn
            .prepare("SELECT id, key FROM embedding WHERE typeof(key) = 'blob' AND length(key) = 16")
            .map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let (slot, key): (i64, EmbeddingKey) = (row.get(0).map_err(fail)?, row.get(1).map_err(fail)?);
            insert.execute((slot, key)).map_err(|e| self.error(e))?;
        }
        drop((insert, rows));
        batch.commit()
    }

    /// Takes over the sound vectors of another index of the same model, but for those in `doubtful` slots: texts that
    /// have them need not be embedded again. Where the other file cannot be read any further, what was read stays.
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
            self.put_vector(slots.take(), &key, &vector)
        });
        match copied {
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            copied => copied?,
        }
        batch.commit()
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect()
}

/// Slots for new vectors.
pub(crate) struct FreeSlots {
    /// Descending.
    gaps: Vec<i64>,
    next: i64,
}

impl FreeSlots {
    /// The lowest free slot; it is free no longer.
    pub(crate) fn take(&mut self) -> i64 {
        self.gaps.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}
