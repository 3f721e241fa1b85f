//! The model as a handle: load once, embed one text or many, from any thread.

use std::sync::{Mutex, PoisonError};

use crate::batch::{IndexedVectors, TextQueue};
use crate::encoder::{Scratch, encode};
use crate::kernel::Kernel;
use crate::weights::Weights;
use crate::{MAX_TOKENS, WordPiece};

/// Tokens per forward pass. Short texts are batched up to this size, because every pass reads all weights from memory;
/// larger batches were not faster.
const ENOUGH_TOKENS: usize = 64;

/// The bundled model, ready to run. Share one among all threads.
pub struct MiniLm {
    weights: Weights,
    kernel: Kernel,
    /// A pass takes one and returns it, so there are never more of them than concurrent passes.
    idle: Mutex<Vec<Scratch>>,
}

impl MiniLm {
    /// Loads the model. This costs nothing: the weights are used in place, where the operating system mapped them.
    pub fn load() -> MiniLm {
        MiniLm::on(Kernel::best())
    }

    pub(crate) fn on(kernel: Kernel) -> MiniLm {
        MiniLm { weights: Weights::bundled(), kernel, idle: Mutex::new(Vec::new()) }
    }

    /// The vector of one text: [`DIMENSIONS`](crate::DIMENSIONS) finite numbers of length 1.
    ///
    /// Only the first 254 tokens count. An empty text has a vector too. The same text gives the same bits on
    /// every call, alone and in every batch, and on every processor. A short text takes less than a millisecond.
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.embed_batch(&[text], 1).swap_remove(0)
    }

    /// The vectors of many texts, in their order, computed on up to `threads` threads (0 counts as 1).
    ///
    /// Equal texts are computed once. There is no padding, and no vector depends on the other texts.
    ///
    /// ```
    /// let model = minilm::MiniLm::load();
    /// let vectors = model.embed_batch(&["apple trees", "pear trees", "apple trees"], 2);
    /// assert_eq!(vectors.len(), 3);
    /// assert_eq!(vectors[0], vectors[2]);
    /// assert_eq!(vectors[0], model.embed("apple trees"));
    /// ```
    pub fn embed_batch(&self, texts: &[&str], threads: usize) -> Vec<Vec<f32>> {
        let work = TextQueue::new(texts, threads);
        work.run(|| self.with_scratch(|scratch| self.drain(&work, scratch)))
    }

    /// One thread's part: takes texts until the queue is empty.
    fn drain(&self, work: &TextQueue<'_>, scratch: &mut Scratch) -> IndexedVectors {
        let mut done = IndexedVectors::new();
        let (mut ids, mut lengths, mut indices) = (Vec::new(), Vec::new(), Vec::new());
        let mut text_ids = Vec::with_capacity(MAX_TOKENS);
        loop {
            let taken = work.take();
            if let Some((_, text)) = taken {
                WordPiece::bundled().model_input(text, MAX_TOKENS, &mut text_ids);
            }
            let is_full = ids.len() + text_ids.len() > ENOUGH_TOKENS || indices.len() == work.share();
            if !indices.is_empty() && (taken.is_none() || is_full) {
                let vectors = encode(&self.kernel, &self.weights, &ids, &lengths, scratch);
                done.extend(indices.drain(..).zip(vectors));
                ids.clear();
                lengths.clear();
            }
            let Some((index, _)) = taken else { return done };
            ids.extend_from_slice(&text_ids);
            lengths.push(text_ids.len());
            indices.push(index);
        }
    }

    fn with_scratch<R>(&self, run: impl FnOnce(&mut Scratch) -> R) -> R {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut scratch = taken.unwrap_or_else(Scratch::new);
        let result = run(&mut scratch);
        idle().push(scratch);
        result
    }
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MiniLm").field("id", &crate::ID).field("kernel", &self.kernel.name).finish_non_exhaustive()
    }
}
