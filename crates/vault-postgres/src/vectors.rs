//! Vectors by slot, and bounds of their scores.
//!
//! pgvector computes the inner product of two vectors of `n` numbers in f32, in the order that its compiler chose, and
//! `rescore` in another. In any order, with or without fused operations, each is off from the true value by at most
//! `γ·‖q‖·‖v‖` with `γ = n·u / (1 − n·u)` and `u = 2⁻²⁴` (Higham; Cauchy-Schwarz for the sum of absolute products). So
//! they differ by at most `2γ·‖q‖·‖v‖`. [`bound`] is more than that for every `n` up to pgvector's 16,000: it takes
//! `n + 16` for `n`, and `4u`, twice as much as `2u`, for `1 / (1 − n·u)`, which is at most 1.001.

use std::collections::{HashMap, HashSet};

use postgres::types::Type;
use vault_index::backend::{Codes, EmbeddingKey, Interval, ReadVectors, VectorReader, WriteVectors, check_vector};
use vault_index::{Embedder, Error, ErrorKind, Result};

use crate::connection::{VaultStore, damaged, int, ints};
use crate::prefetch::{Key, Keyed};

/// Unused vectors are kept up to this number plus half of those in use, as in an index file.
const UNUSED_KEPT: usize = 1000;

/// No slot is larger, as in an index file.
const MAX_SLOTS: usize = 1 << 26;

/// The longest row that [`check_vector`] accepts.
const MAX_NORM: f64 = 1.001;

const VECTOR: Keyed =
    Keyed { sql: "SELECT id, embedding::real[] FROM embedding WHERE vault = @vault AND id = ANY($1)", also: None };

/// A bound of the difference between pgvector's inner product of `query` with a row and `rescore` of both.
fn bound(query: &[f32]) -> f32 {
    let norm = query.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let unit = f64::from(f32::EPSILON) / 2.0;
    // The last part covers products that underflow.
    let bound = (query.len() + 16) as f64 * 4.0 * unit * norm * MAX_NORM + query.len() as f64 * 1e-37;
    (bound as f32).next_up()
}

impl ReadVectors for VaultStore {
    fn embedder(&self) -> Result<Option<(String, usize)>> {
        let (id, dimensions) = (self.setting("embedder")?, self.setting("dimensions")?);
        Ok(id.zip(dimensions.and_then(|dimensions| dimensions.parse().ok())))
    }

    /// Rows that wait to be written are of notes, and have no vectors of their own.
    fn slots_of(&self, keys: &[EmbeddingKey]) -> Result<HashMap<EmbeddingKey, i64>> {
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 16]>::as_slice).collect();
        let sql = self.sql("SELECT key, id FROM embedding WHERE vault = @vault AND key = ANY($1)");
        let rows = self.beside(|client| client.query_typed(&sql, &[(&keys, Type::BYTEA_ARRAY)]))?;
        let slot = |row: &postgres::Row| {
            let key: &[u8] = row.get(0);
            let key = EmbeddingKey::try_from(key).map_err(|_| damaged("a vector has a key of another length"))?;
            Ok((key, row.get(1)))
        };
        rows.iter().map(slot).collect()
    }

    fn vectors(&self) -> Result<VectorReader<'_>> {
        Ok(Box::new(|slot| {
            let rows = self.rows_of_key(&VECTOR, Key::Int(slot))?;
            match rows.first() {
                Some(row) => Ok(row.get(1)),
                None if self.is_collecting() => Ok(vec![0.0; self.embedder()?.map_or(0, |(_, dimensions)| dimensions)]),
                None => Err(damaged(format!("vector {slot} is missing"))),
            }
        }))
    }

    /// The server scans them.
    fn codes(&self) -> Result<Option<Codes>> {
        Ok(None)
    }

    fn intervals(&self, query: &[f32]) -> Result<Vec<Interval>> {
        let bound = bound(query);
        // Eight bytes for each vector, instead of a row of the protocol.
        let sql =
            "SELECT string_agg(int4send(id::integer) || float4send(-(embedding <#> $1::real[]::vector)::real), '')
             FROM embedding WHERE vault = @vault";
        let rows = self.take_rows(sql, &[(&query, Type::FLOAT4_ARRAY)])?;
        let bytes = rows.first().and_then(|row| row.get::<_, Option<&[u8]>>(0)).unwrap_or_default();
        let mut intervals = Vec::with_capacity(bytes.len() / 8 + 1);
        for pair in bytes.as_chunks::<8>().0 {
            let [a, b, c, d, e, f, g, h] = *pair;
            let (slot, score) = (u32::from_be_bytes([a, b, c, d]) as usize, f32::from_be_bytes([e, f, g, h]));
            if slot >= MAX_SLOTS || !score.is_finite() {
                return Err(damaged(format!("vector {slot} cannot be compared")));
            }
            if intervals.len() <= slot {
                intervals.resize(slot + 1, Interval::NONE);
            }
            intervals[slot] = Interval { lower: (score - bound).next_down(), upper: (score + bound).next_up() };
        }
        Ok(intervals)
    }
}

impl WriteVectors for VaultStore {
    fn without_vector(&self, keys: &[EmbeddingKey]) -> Result<HashSet<EmbeddingKey>> {
        let slots = self.slots_of(keys)?;
        Ok(keys.iter().filter(|key| !slots.contains_key(*key)).copied().collect())
    }

    fn drop_unused_vectors(&self) -> Result<()> {
        let unused: Vec<i64> = self.all(
            "SELECT id FROM embedding WHERE vault = @vault
               AND NOT EXISTS (SELECT 1 FROM passage WHERE passage.vault = @vault AND vector = embedding.id)
               AND NOT EXISTS (SELECT 1 FROM note WHERE note.vault = @vault AND title_vector = embedding.id)",
            &[],
            |row| row.get(0),
        )?;
        let used = self.count("SELECT count(*) FROM embedding WHERE vault = @vault", &[])? - unused.len();
        match unused.len() <= UNUSED_KEPT + used / 2 {
            true => Ok(()),
            false => self.run("DELETE FROM embedding WHERE vault = @vault AND id = ANY($1)", &[ints(&unused)]),
        }
    }
}

impl VaultStore {
    /// Makes this the model of the vault if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::OtherModel`].
    pub(crate) fn set_embedder(&self, embedder: &dyn Embedder) -> Result<()> {
        let wanted = (embedder.id().to_owned(), embedder.dimensions());
        match self.embedder()? {
            Some(stored) if stored == wanted => Ok(()),
            Some((stored, _)) => {
                let what = format!("the vectors of this vault are of the model {stored}, not of {}", wanted.0);
                Err(Error::new(ErrorKind::OtherModel, what)
                    .with_remedy("use that model, or forget the vault and add it again"))
            }
            None => {
                self.set_setting("embedder", &wanted.0)?;
                self.set_setting("dimensions", &wanted.1.to_string())
            }
        }
    }

    /// Adds vectors, in free slots: gaps first.
    pub(crate) fn add_vectors(&self, vectors: Vec<(&EmbeddingKey, &Vec<f32>)>) -> Result<HashMap<EmbeddingKey, i64>> {
        if vectors.is_empty() {
            return Ok(HashMap::new());
        }
        let sql = "SELECT coalesce(max(id), 0), count(*) FROM embedding WHERE vault = @vault";
        let (last, number): (i64, i64) = self.first(sql, &[], |row| (row.get(0), row.get(1)))?.unwrap_or_default();
        let gaps: Vec<i64> = match last == number {
            true => Vec::new(),
            false => self.all(
                "SELECT slot FROM generate_series(1, $1) AS slot
                 WHERE NOT EXISTS (SELECT 1 FROM embedding WHERE vault = @vault AND id = slot) LIMIT $2",
                &[int(&last), int(&(vectors.len() as i64))],
                |row| row.get(0),
            )?,
        };
        let mut slots = HashMap::new();
        let mut new = self.new.borrow_mut();
        for ((key, vector), slot) in vectors.into_iter().zip(gaps.into_iter().chain(last + 1..)) {
            check_vector(vector)?;
            new.row("embedding", self.vault).plain(slot).bytes(key).vector(vector);
            slots.insert(*key, slot);
        }
        Ok(slots)
    }
}
