//! Runs a model over many texts: batches of short ones, on several threads.

use std::sync::{Mutex, PoisonError};

use crate::batch::{IndexedVectors, TextQueue};
use crate::encoder::{Scratch, encode};
use crate::kernel::Kernel;
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;

/// Tokens per forward pass. Short texts are batched up to this size, because every pass reads all weights from memory;
/// larger batches were not faster.
const ENOUGH_TOKENS: usize = 64;

/// A kernel with its working memory. Share one among all threads.
pub(crate) struct Engine {
    kernel: Kernel,
    /// A pass takes one and returns it, so there are never more of them than concurrent passes.
    idle: Mutex<Vec<Scratch>>,
}

/// A model that an [`Engine`] runs.
pub(crate) struct Parts<'a> {
    pub(crate) weights: &'a Weights<'a>,
    pub(crate) tokenizer: Tokenizer<'a>,
    /// The tokens that the model reads of a text, special ones included.
    pub(crate) window: usize,
}

impl Engine {
    pub(crate) fn on(kernel: Kernel) -> Engine {
        Engine { kernel, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn kernel_name(&self) -> &'static str {
        self.kernel.name
    }

    /// The vectors of many texts, in their order, computed on up to `threads` threads (0 counts as 1).
    pub(crate) fn embed_batch(&self, model: &Parts<'_>, texts: &[&str], threads: usize) -> Vec<Vec<f32>> {
        let work = TextQueue::new(texts, threads);
        work.run(|| self.with_scratch(|scratch| self.drain(model, &work, scratch)))
    }

    /// One thread's part: takes texts until the queue is empty.
    fn drain(&self, model: &Parts<'_>, work: &TextQueue<'_>, scratch: &mut Scratch) -> IndexedVectors {
        let mut done = IndexedVectors::new();
        let (mut ids, mut lengths, mut indices) = (Vec::new(), Vec::new(), Vec::new());
        let mut text_ids = Vec::with_capacity(model.window);
        loop {
            let taken = work.take();
            if let Some((_, text)) = taken {
                model.tokenizer.model_input(text, model.window, &mut text_ids);
            }
            let is_full = ids.len() + text_ids.len() > ENOUGH_TOKENS || indices.len() == work.share();
            if !indices.is_empty() && (taken.is_none() || is_full) {
                let vectors = encode(&self.kernel, model.weights, &ids, &lengths, scratch);
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
