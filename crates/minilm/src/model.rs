//! The models as handles: load once, embed one text or many, from any thread.

use std::path::Path;

use crate::engine::{Engine, Parts};
use crate::error::ModelError;
use crate::kernel::Kernel;
use crate::model_file::{Description, ModelFile};
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;
use crate::{MAX_TOKENS, WordPiece};

/// The bundled model, ready to run. Share one among all threads.
pub struct MiniLm {
    weights: Weights<'static>,
    engine: Engine,
}

impl MiniLm {
    /// Loads the model. This costs nothing: the weights are used in place, where the operating system mapped them.
    pub fn load() -> MiniLm {
        MiniLm::on(Kernel::best())
    }

    pub(crate) fn on(kernel: Kernel) -> MiniLm {
        MiniLm { weights: Weights::bundled(), engine: Engine::on(kernel) }
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
        let tokenizer = Tokenizer::WordPiece(WordPiece::bundled());
        let parts = Parts { weights: &self.weights, tokenizer, window: MAX_TOKENS };
        self.engine.embed_batch(&parts, texts, threads)
    }
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MiniLm")
            .field("id", &crate::ID)
            .field("kernel", &self.engine.kernel_name())
            .finish_non_exhaustive()
    }
}

/// A model from a file that [`ModelFolder::compile`](crate::ModelFolder::compile) made. Share one among all threads.
pub struct Model {
    file: ModelFile,
    engine: Engine,
}

impl Model {
    /// Opens a model's file. The weights are used in place: the file is mapped, and nothing of it is copied.
    ///
    /// # Errors
    /// When it is not a model's file, or one of another version; when it is cut off; when its description or its
    /// tokenizer is damaged. Whether the weights are is checked by [`verify`](Self::verify).
    pub fn open(path: &Path) -> Result<Model, ModelError> {
        Model::on(Kernel::best(), path)
    }

    pub(crate) fn on(kernel: Kernel, path: &Path) -> Result<Model, ModelError> {
        Ok(Model { file: ModelFile::open(path)?, engine: Engine::on(kernel) })
    }

    /// Compares all weights with their digest: some 50 ms for 100 MB. Do it before vectors are stored.
    ///
    /// # Errors
    /// When the weights are damaged.
    pub fn verify(&self) -> Result<(), ModelError> {
        self.file.verify()
    }

    /// Which vectors these are: those of different ids are not comparable. It follows from all that decides a vector.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// The shape of the model.
    pub fn description(&self) -> &Description {
        &self.file.description
    }

    /// The tokens that the model reads of a text, without those before and after it.
    pub fn max_tokens(&self) -> usize {
        self.file.description.sizes.positions - 2
    }

    /// The ids of a text, without those before and after it, without a limit.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.file.tokenizer().encode(text)
    }

    /// The number of ids that [`tokens`](Self::tokens) would give, without collecting them.
    pub fn count(&self, text: &str) -> usize {
        self.file.tokenizer().count(text)
    }

    /// The share of a text that the model can read, from 0 to 1.
    pub fn known_share(&self, text: &str) -> f32 {
        self.file.tokenizer().known_share(text)
    }

    /// The vectors of many texts, in their order, as [`MiniLm::embed_batch`] computes them. The prompts of the
    /// [`description`](Self::description) are not added.
    pub fn embed_batch(&self, texts: &[&str], threads: usize) -> Vec<Vec<f32>> {
        let window = self.file.description.sizes.positions;
        let parts = Parts { weights: &self.file.weights(), tokenizer: self.file.tokenizer(), window };
        self.engine.embed_batch(&parts, texts, threads)
    }

    /// The vector of one text: finite numbers, with a length of 1.
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.embed_batch(&[text], 1).swap_remove(0)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("id", &self.id())
            .field("kernel", &self.engine.kernel_name())
            .finish_non_exhaustive()
    }
}
