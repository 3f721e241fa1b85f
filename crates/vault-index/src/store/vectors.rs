//! Rows of vectors: f32 in a sqlite-vec table, each found by the text it is of and written with its codes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Once;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, params};

use crate::error::{Error, ErrorKind, Result};
use crate::store::checksum::checksum;
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
            Error::new(ErrorKind::Damaged, "the index names no model")
                .at(&self.path)
                .with_remedy("run `vault-index check --repair`")
        })?;
        Ok((table_of(&embedder), dimensions))
    }

    /// The slot of a text's vector, if there is one.
    pub(crate) fn find_vector(&self, key: &EmbeddingKey) -> Result<Option<i64>> {
        self.first("SELECT id FROM embedding WHERE key = ?1", [key.as_slice()], |row| row.get(0))
    }

    /// Vectors held, used or not.
    pub(crate) fn vector_count(&self) -> Result<usize> {
        self.only("SELECT count(*) FROM embedding", [])
    }

    /// Slots that can be given to new vectors: gaps first, then the next ones.
    pub(crate) fn free_slots(&self) -> Result<impl Iterator<Item = i64> + use<>> {
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
    pub(crate) fn put_vector(&self, slot: i64, key: &EmbeddingKey, vector: &[f32]) -> Result<()> {
        let (table, _) = self.table()?;
        let quantized = Quantized::new(vector)?;
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        let sum = checksum(&bytes);
        self.run("INSERT INTO embedding(id, key, sum) VALUES(?1, ?2, ?3)", params![slot, key.as_slice(), sum])?;
        self.run(&format!("INSERT INTO {table}(rowid, embedding) VALUES(?1, ?2)"), params![slot, bytes])?;
        self.mark_codes(slot)?;
        self.with(|_| self.put_codes(slot, &quantized))
    }

    /// Drops vectors that nothing uses, when they have become many.
    pub(crate) fn drop_unused_vectors(&self) -> Result<()> {
        let unused: Vec<i64> = self.all(
            "SELECT id FROM embedding WHERE id NOT IN (SELECT vector FROM passage WHERE vector IS NOT NULL)
               AND id NOT IN (SELECT title_vector FROM note WHERE title_vector IS NOT NULL) ORDER BY id",
            [],
            |row| row.get(0),
        )?;
        let used = self.vector_count()? - unused.len();
        if unused.len() <= UNUSED_KEPT + used / 2 { Ok(()) } else { self.delete_vectors(&unused) }
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

    /// One vector, as the model gave it.
    pub(crate) fn vector(&self, slot: i64) -> Result<Vec<f32>> {
        let (table, _) = self.table()?;
        self.stored_vector(&table, slot)?
            .ok_or_else(|| self.damaged(format!("vector {slot} is missing, or not as it was written")))
    }

    /// `None`: there is none, or it is not as it was written.
    fn stored_vector(&self, table: &str, slot: i64) -> Result<Option<Vec<f32>>> {
        let sum: Option<Option<i64>> =
            self.first("SELECT sum FROM embedding WHERE id = ?1", [slot], |row| row.get(0))?;
        let sql = format!("SELECT embedding FROM {table} WHERE rowid = ?1");
        let vector = self.first(&sql, [slot], |row| {
            let bytes = row.get_ref(0)?.as_blob()?;
            let is_sound = sum.flatten() == Some(checksum(bytes));
            Ok(is_sound.then(|| bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect()))
        })?;
        Ok(vector.flatten())
    }

    /// Makes the checksums of all vectors: those of an index whose format had none.
    pub(super) fn sum_vectors(&self) -> rusqlite::Result<()> {
        let sql = "SELECT value FROM meta WHERE key = 'embedder'";
        let embedder: Option<String> = self.conn.query_row(sql, [], |row| row.get(0)).optional()?;
        let Some(embedder) = embedder else { return Ok(()) };
        let table = table_of(&embedder);
        let sql = format!(
            "UPDATE embedding SET sum = (SELECT checksum(embedding) FROM {table} WHERE rowid = embedding.id)
             WHERE sum IS NULL"
        );
        self.conn.execute(&sql, []).map(drop)
    }

    /// How many vectors are missing, or are not what their codes say.
    pub(super) fn unsound_vectors(&self) -> Result<usize> {
        let Some((embedder, dimensions)) = self.embedder()? else { return Ok(0) };
        let mut unsound = 0;
        self.each_vector(&table_of(&embedder), dimensions, |_, _, vector| {
            unsound += usize::from(vector.is_none());
            Ok(())
        })?;
        Ok(unsound)
    }

    /// Calls `each` with every slot, its key, and its vector if that is sound: there, finite, and as its codes say.
    fn each_vector(
        &self,
        table: &str,
        dimensions: usize,
        mut each: impl FnMut(i64, ValueRef<'_>, Option<Vec<f32>>) -> Result<()>,
    ) -> Result<()> {
        // Of a block that is not whole, no vector is sound.
        let blocks = self.all("SELECT block, bytes FROM codes", [], |row| {
            let block = row.get(1).map(|bytes| Block::from_bytes(dimensions, bytes));
            Ok(row.get::<_, usize>(0).ok().zip(block.ok().and_then(Result::ok)))
        })?;
        let blocks: HashMap<usize, Block> = blocks.into_iter().flatten().collect();
        let fail = |e| Error::from(e).at(&self.path);
        let mut statement = self.conn.prepare("SELECT id, key FROM embedding ORDER BY id").map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let slot: i64 = row.get(0).map_err(fail)?;
            let is_sound = |vector: &Vec<f32>| {
                let (number, row) = block_and_row(slot as usize);
                let codes = blocks.get(&number).and_then(|block| block.row(row));
                codes.is_some() && codes == Quantized::new(vector).ok()
            };
            let vector = match self.stored_vector(table, slot) {
                // Others may be in sound pages.
                Err(error) if error.kind() == ErrorKind::Damaged => None,
                vector => vector?.filter(is_sound),
            };
            each(slot, row.get_ref(1).map_err(fail)?, vector)?;
        }
        Ok(())
    }

    /// Takes over the keys of another index of the same model, each in its slot, without vectors.
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
            self.put_vector(slots.next().expect("slots do not end"), &key, &vector)
        });
        match copied {
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            copied => copied?,
        }
        batch.commit()
    }
}
