//! usearch: exact search that compares all rows of its index, or approximate search by its HNSW graph.

use std::thread;

use ::usearch::{Index, IndexOptions, MetricKind, ScalarKind};

/// An index of rows in f32, by inner product, with usearch's defaults for the graph.
pub struct Usearch {
    index: Index,
}

impl Usearch {
    /// Builds an index of the rows, which are one after the other, with `threads` threads. This takes a minute or two
    /// for 100,000 rows, because the graph is always built.
    ///
    /// # Errors
    /// Those of usearch.
    pub fn new(rows: &[f32], dimensions: usize, threads: usize) -> Result<Self, String> {
        let options = IndexOptions {
            dimensions,
            metric: MetricKind::IP,
            quantization: ScalarKind::F32,
            ..IndexOptions::default()
        };
        let index = Index::new(&options).map_err(|error| error.to_string())?;
        let count = rows.len() / dimensions;
        index.reserve_capacity_and_threads(count, threads).map_err(|error| error.to_string())?;
        let part = count.div_ceil(threads).max(1);
        let add = |(number, rows): (usize, &[f32])| -> Result<(), String> {
            for (slot, row) in rows.chunks_exact(dimensions).enumerate() {
                index.add((number * part + slot) as u64, row).map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let parts: Vec<_> =
                rows.chunks(part * dimensions).enumerate().map(|part| scope.spawn(move || add(part))).collect();
            parts.into_iter().try_for_each(|part| part.join().map_err(|_| "a thread panicked".to_owned())?)
        })?;
        Ok(Self { index })
    }

    /// Returns the kernels that usearch has detected on the machine.
    pub fn acceleration(&self) -> String {
        self.index.hardware_acceleration()
    }

    /// Returns the best `k` rows by comparing all rows.
    ///
    /// # Errors
    /// Those of usearch.
    pub fn exact(&self, query: &[f32], k: usize) -> Result<Vec<usize>, String> {
        slots(self.index.exact_search(query, k).map_err(|error| error.to_string())?.keys)
    }

    /// Returns approximately the best `k` rows, by the graph.
    ///
    /// # Errors
    /// Those of usearch.
    pub fn hnsw(&self, query: &[f32], k: usize) -> Result<Vec<usize>, String> {
        slots(self.index.search(query, k).map_err(|error| error.to_string())?.keys)
    }
}

fn slots(keys: Vec<u64>) -> Result<Vec<usize>, String> {
    keys.into_iter().map(|key| usize::try_from(key).map_err(|error| error.to_string())).collect()
}
