//! Rows of vectors: f32 in a sqlite-vec table, each found by the text it is of and written with its codes.

use std::sync::Once;

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
                .remedy("run `vault-index rebuild`")
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

    /// Drops vectors that may not be of the texts they are kept for; what has one of them is pending again.
    pub(crate) fn distrust_vectors(&self, slots: &[i64]) -> Result<()> {
        for slot in slots {
            self.run("UPDATE passage SET vector = NULL WHERE vector = ?1", [slot])?;
            self.run("UPDATE note SET title_vector = NULL WHERE title_vector = ?1", [slot])?;
        }
        self.delete_vectors(slots)
    }

    fn delete_vectors(&self, slots: &[i64]) -> Result<()> {
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
                .remedy("run `vault-index check --repair`")
        })?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect())
    }

    /// Where vectors, codes and the texts they are of do not agree: one line a fault.
    pub(crate) fn check_vectors(&self) -> Result<Vec<String>> {
        let Some((embedder, dimensions)) = self.embedder()? else { return Ok(Vec::new()) };
        let table = table_of(&embedder);
        let mut faults = Vec::new();
        let mut read = || -> rusqlite::Result<()> {
            let dangling: usize = self.conn.query_row(
                "SELECT (SELECT count(*) FROM passage WHERE vector IS NOT NULL AND vector NOT IN (SELECT id FROM embedding))
                      + (SELECT count(*) FROM note WHERE title_vector IS NOT NULL
                         AND title_vector NOT IN (SELECT id FROM embedding))",
                [],
                |row| row.get(0),
            )?;
            if dangling > 0 {
                faults.push(counted_as(
                    dangling,
                    "text names a vector that is not there",
                    "texts name a vector that is not there",
                ));
            }
            let mut blocks = std::collections::HashMap::new();
            let mut statement = self.conn.prepare("SELECT block, bytes FROM codes")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let number: usize = row.get(0)?;
                match Block::from_bytes(dimensions, row.get(1)?) {
                    Ok(block) => drop(blocks.insert(number, block)),
                    Err(error) => faults.push(format!("codes {number}: {error}")),
                }
            }
            let mut vectors = self.conn.prepare(&format!("SELECT embedding FROM {table} WHERE rowid = ?1"))?;
            let mut statement = self.conn.prepare("SELECT id FROM embedding ORDER BY id")?;
            let mut rows = statement.query([])?;
            let mut wrong = 0;
            while let Some(row) = rows.next()? {
                let slot: i64 = row.get(0)?;
                let bytes: Option<Vec<u8>> = vectors.query_row([slot], |row| row.get(0)).optional()?;
                let vector: Option<Vec<f32>> =
                    bytes.map(|b| b.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect());
                let (number, row) = block_and_row(slot as usize);
                let expected = vector.and_then(|v| Quantized::new(&v).ok());
                if expected.is_none() || expected != blocks.get(&number).and_then(|b| b.row(row)) {
                    wrong += 1;
                }
            }
            if wrong > 0 {
                faults.push(counted_as(
                    wrong,
                    "vector differs from its codes or is missing",
                    "vectors differ from their codes or are missing",
                ));
            }
            Ok(())
        };
        read().map_err(|e| self.error(e))?;
        Ok(faults)
    }
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
