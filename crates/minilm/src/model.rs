//! The model as a handle: load once, embed one text or many, from any thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rten::ThreadPool;

use crate::error::Error;
use crate::graph::{Graph, Weights};
use crate::{MAX_TOKENS, WordPiece, batch};

/// So many texts pay for laying out the weights; below it, a program that asks
/// one question and ends is quicker without.
const PACKING_PAYS_FROM: usize = 4;

/// The bundled model, ready to run. Share one among all threads.
pub struct MiniLm {
    shipped: Graph,
    packed: OnceLock<Graph>,
    embedded: AtomicUsize,
    /// Idle pools of one thread each. A run takes one and puts it back, so there
    /// are never more than runs at the same time.
    idle: Mutex<Vec<Arc<ThreadPool>>>,
}

impl MiniLm {
    /// Reads the graph; the weights stay where the operating system mapped them (about 5 ms).
    ///
    /// # Errors
    /// [`Error::Load`] if the bytes in the program are damaged.
    pub fn load() -> Result<MiniLm, Error> {
        Ok(MiniLm {
            shipped: Graph::load(Weights::AsShipped)?,
            packed: OnceLock::new(),
            embedded: AtomicUsize::new(0),
            idle: Mutex::new(Vec::new()),
        })
    }

    /// The vector of one text: [`DIMENSIONS`](crate::DIMENSIONS) finite numbers of length 1.
    ///
    /// Only the first 254 tokens count. An empty text has a vector too. The same
    /// text gives the same bits on every call, alone and in every batch; on
    /// another kind of processor the last digits may differ. The first few calls
    /// take some milliseconds, later ones less than one for a short text.
    ///
    /// # Errors
    /// [`Error::Run`], for reasons that are not the text's.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, Error> {
        let graph = self.graph_for(1)?;
        self.with_pool(|pool| run(graph, text, &mut Vec::new(), pool))
    }

    /// The vectors of many texts, in their order, computed on up to `threads` threads (0 counts as 1).
    ///
    /// Equal texts are computed once. Every thread takes one text at a time: there
    /// is no padding, and no vector depends on its neighbours.
    ///
    /// # Errors
    /// [`Error::Run`]; then there are no vectors at all.
    pub fn embed_batch(&self, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>, Error> {
        let work = batch::Work::new(texts);
        let graph = self.graph_for(work.len())?;
        let worker = || {
            self.with_pool(|pool| {
                // Already on the pool's thread, each run starts without a hand-over.
                pool.run(|| {
                    let mut ids = Vec::with_capacity(MAX_TOKENS);
                    work.drain(|text| run(graph, text, &mut ids, pool))
                })
            })
        };
        work.run_on(threads, worker)
    }

    /// Results do not depend on the choice: see [`Weights::Packed`].
    fn graph_for(&self, texts: usize) -> Result<&Graph, Error> {
        if let Some(packed) = self.packed.get() {
            return Ok(packed);
        }
        let before = self.embedded.fetch_add(texts, Ordering::Relaxed);
        if before.saturating_add(texts) < PACKING_PAYS_FROM {
            return Ok(&self.shipped);
        }
        let packed = Graph::load(Weights::Packed)?;
        Ok(self.packed.get_or_init(|| packed))
    }

    fn with_pool<R>(&self, run: impl FnOnce(&Arc<ThreadPool>) -> R) -> R {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let pool = taken.unwrap_or_else(|| Arc::new(ThreadPool::with_num_threads(1)));
        let result = run(&pool);
        idle().push(pool);
        result
    }
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MiniLm").field("id", &crate::ID).finish_non_exhaustive()
    }
}

fn run(graph: &Graph, text: &str, ids: &mut Vec<i32>, pool: &Arc<ThreadPool>) -> Result<Vec<f32>, Error> {
    WordPiece::bundled().model_input(text, MAX_TOKENS, ids);
    graph.run(ids, pool)
}
