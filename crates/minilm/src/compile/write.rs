//! Calibrates a model layer by layer, and writes its file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use super::cosine_range::cosine_range;
use super::folder::{CompileOptions, ModelFolder};
use super::plain_encoder::{LayerActivations, PlainLayer};
use super::published::PublishedTensors;
use super::quantize::integers;
use super::sections::{Sections, rewrite_header};
use crate::Model;
use crate::error::ModelError;
use crate::model_file::{CosineRange, Description, check_dimensions, header};
use crate::weights::Pooling;

/// Texts that the ranges of the activations are measured on; see `recipe/README.md`.
const TEXTS: &str = include_str!("../../recipe/calibration.json");

/// Rows of the word table that are read at once.
const ROWS: usize = 4096;

impl ModelFolder {
    /// Makes the file that [`Model::open`](crate::Model::open) maps. `progress` gets the share that is done, from 0 to 1.
    ///
    /// The file at `to` is written in place, so give it a temporary name, and rename it when it is complete. The same
    /// folder and options give the same bytes on every processor. When `cancel` is set, it stops before the next layer or
    /// block of words.
    ///
    /// # Errors
    /// [`ModelError::Cancelled`]; when the model has fewer dimensions than the options keep; when a matrix is missing,
    /// has another shape than the configuration says, or holds NaN or infinity; when the file cannot be written.
    pub fn compile(
        &self,
        to: &Path,
        options: &CompileOptions,
        cancel: &AtomicBool,
        progress: &dyn Fn(f32),
    ) -> Result<Description, ModelError> {
        let dimensions = options.dimensions.unwrap_or(self.dimensions());
        check_dimensions(&self.sizes, dimensions).map_err(|what| ModelError::unsupported(&self.folder, what))?;
        let check_cancel = || match cancel.load(Ordering::Relaxed) {
            true => Err(ModelError::Cancelled(to.to_owned())),
            false => Ok(()),
        };
        let published = PublishedTensors::of(self)?;
        let mut out = Sections::create(to)?;
        for table in self.tokenizer.bytes() {
            out.bytes(&table)?;
        }
        let tables_digest = out.digest();
        self.word_table(&published, &mut out, &check_cancel)?;
        let (positions, norm) = (published.positions()?, published.embedded_norm()?);
        out.floats(&positions)?;
        out.norm(&norm)?;
        let mut texts = Vec::new();
        for ids in self.calibration_ids()? {
            texts.push(published.embed(&ids, &positions, &norm)?);
        }
        for layer in 0..self.sizes.layers {
            let plain = published.layer(layer)?;
            let activations = run(&plain, texts, cancel);
            check_cancel()?;
            out.layer(&plain, &activations)?;
            texts = activations.into_iter().map(|activations| activations.output).collect();
            progress((layer + 1) as f32 / self.sizes.layers as f32);
        }
        if let Some((weights, bias)) = published.dense()? {
            out.floats(&weights)?;
            out.floats(&bias)?;
        }
        let mut description = Description {
            name: options.name.clone(),
            sizes: self.sizes,
            pooling: options.pooling.or(self.pooling).unwrap_or(Pooling::Mean),
            dimensions,
            prompts: options.prompts.clone().unwrap_or_else(|| self.prompts.clone()),
            cosine_range: CosineRange::default(),
            record: options.record.clone(),
            tokenizer: self.tokenizer.tables(),
            digests: [tables_digest, out.digest()],
        };
        let too_long = || ModelError::unsupported(&self.folder, "the model's prompts or special tokens are too long");
        out.finish(&header(&description).ok_or_else(too_long)?)?;
        // A file that cannot be opened is found now, not by its first user.
        description.cosine_range = cosine_range(&Model::open(to)?);
        rewrite_header(to, &header(&description).ok_or_else(too_long)?)?;
        Ok(description)
    }

    /// The words as integers, halved by columns as the bundled ones are; then the scale of each.
    fn word_table(
        &self,
        published: &PublishedTensors<'_>,
        out: &mut Sections,
        check_cancel: &dyn Fn() -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let width = self.sizes.width;
        let (mut halves, mut scales) = ([Vec::new(), Vec::new()], Vec::new());
        for first in (0..self.sizes.words).step_by(ROWS) {
            check_cancel()?;
            let rows = published.words(first, ROWS.min(self.sizes.words - first))?;
            let (whole, of_rows) = integers(&rows, width);
            for row in whole.chunks_exact(width) {
                let (left, right) = row.split_at(width / 2);
                halves[0].extend_from_slice(left);
                halves[1].extend_from_slice(right);
            }
            scales.extend(of_rows);
        }
        halves.iter().try_for_each(|half| out.integers(half))?;
        out.floats(&scales)
    }

    /// The input ids of the calibration texts.
    fn calibration_ids(&self) -> Result<Vec<Vec<u32>>, ModelError> {
        let texts: Vec<String> = serde_json::from_str(TEXTS)
            .map_err(|error| ModelError::damaged(Path::new("calibration.json"), error.to_string()))?;
        let tokenizer = self.tokenizer.tokenizer();
        let ids = |text: &String| {
            let mut ids = Vec::new();
            tokenizer.model_input(text, self.sizes.positions, &mut ids);
            ids
        };
        Ok(texts.iter().map(ids).collect())
    }
}

/// All texts through a layer, on all cores; only some of them when `cancel` is set.
fn run(layer: &PlainLayer, texts: Vec<Vec<f32>>, cancel: &AtomicBool) -> Vec<LayerActivations> {
    let prepared = layer.prepare();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((index, text)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            texts.get(index).filter(|_| !cancel.load(Ordering::Relaxed)).map(|text| (index, text.clone()))
        } {
            done.push((index, prepared.run(text)));
        }
        done
    };
    let threads = available_parallelism().map_or(1, |threads| threads.get());
    let mut activations: Vec<(usize, LayerActivations)> = std::thread::scope(|scope| {
        let started: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut all = worker();
        for thread in started {
            all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    activations.sort_by_key(|(index, _)| *index);
    activations.into_iter().map(|(_, activations)| activations).collect()
}
