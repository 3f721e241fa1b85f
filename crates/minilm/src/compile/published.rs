//! The parts of a published model by the names of its tensors.

use super::folder::ModelFolder;
use super::plain_encoder::{PlainLayer, PlainLinear, PlainNorm};
use super::tensors::Tensors;
use crate::error::ModelError;

/// The word table's name, without the prefix that some models have before all names.
const WORDS: &str = "embeddings.word_embeddings.weight";

type Result<T> = std::result::Result<T, ModelError>;

/// A model's tensors.
pub(super) struct PublishedTensors<'a> {
    tensors: Tensors<'a>,
    prefix: String,
    model: &'a ModelFolder,
}

impl<'a> PublishedTensors<'a> {
    pub(super) fn of(model: &'a ModelFolder) -> Result<PublishedTensors<'a>> {
        let tensors = model.tensors.tensors()?;
        Ok(PublishedTensors { prefix: tensors.prefix_of(WORDS)?, tensors, model })
    }

    fn all(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        self.tensors.all(&format!("{}{name}", self.prefix), shape)
    }

    /// Some rows of the word table.
    pub(super) fn words(&self, first: usize, count: usize) -> Result<Vec<f32>> {
        let sizes = self.model.sizes;
        self.tensors.rows(&format!("{}{WORDS}", self.prefix), &[sizes.words, sizes.width], first, count)
    }

    /// The position table from the first token on. One text has one type of tokens, so its row is part of each.
    pub(super) fn positions(&self) -> Result<Vec<f32>> {
        let ModelFolder { sizes, first_position, position_rows, type_rows, .. } = self.model;
        let (name, shape) = ("embeddings.position_embeddings.weight", [*position_rows, sizes.width]);
        let name = format!("{}{name}", self.prefix);
        let mut positions = self.tensors.rows(&name, &shape, *first_position, sizes.positions)?;
        let types = self.all("embeddings.token_type_embeddings.weight", &[*type_rows, sizes.width])?;
        for row in positions.chunks_exact_mut(sizes.width) {
            row.iter_mut().zip(&types).for_each(|(x, of_type)| *x += of_type);
        }
        Ok(positions)
    }

    pub(super) fn embedded_norm(&self) -> Result<PlainNorm> {
        self.norm("embeddings.LayerNorm")
    }

    /// The rows of a text with these ids, before the first layer.
    pub(super) fn embed(&self, ids: &[u32], positions: &[f32], norm: &PlainNorm) -> Result<Vec<f32>> {
        let mut rows = Vec::with_capacity(ids.len() * self.model.sizes.width);
        for id in ids {
            rows.extend(self.words(*id as usize, 1)?);
        }
        rows.iter_mut().zip(positions).for_each(|(x, position)| *x += position);
        norm.apply(&mut rows);
        Ok(rows)
    }

    pub(super) fn layer(&self, layer: usize) -> Result<PlainLayer> {
        let sizes = self.model.sizes;
        let at = format!("encoder.layer.{layer}");
        let mut qkv = PlainLinear { weight: Vec::new(), bias: Vec::new() };
        for part in ["query", "key", "value"] {
            let part = self.linear(&format!("{at}.attention.self.{part}"), sizes.width, sizes.width)?;
            qkv.weight.extend(part.weight);
            qkv.bias.extend(part.bias);
        }
        Ok(PlainLayer {
            heads: sizes.heads,
            qkv,
            attention_output: self.linear(&format!("{at}.attention.output.dense"), sizes.width, sizes.width)?,
            attention_norm: self.norm(&format!("{at}.attention.output.LayerNorm"))?,
            inner: self.linear(&format!("{at}.intermediate.dense"), sizes.width, sizes.inner)?,
            outer: self.linear(&format!("{at}.output.dense"), sizes.inner, sizes.width)?,
            output_norm: self.norm(&format!("{at}.output.LayerNorm"))?,
        })
    }

    /// The dense layer after pooling, if there is one: for each input its factors, then the bias.
    pub(super) fn dense(&self) -> Result<Option<(Vec<f32>, Vec<f32>)>> {
        let (Some(file), Some(columns)) = (&self.model.dense, self.model.sizes.dense) else { return Ok(None) };
        let tensors = file.tensors()?;
        let width = self.model.sizes.width;
        let weight = tensors.all("linear.weight", &[columns, width])?;
        let bias = match tensors.has("linear.bias") {
            true => tensors.all("linear.bias", &[columns])?,
            false => vec![0.0; columns],
        };
        let weight = PlainLinear { weight, bias: bias.clone() }.transposed();
        Ok(Some((weight, bias)))
    }

    fn linear(&self, name: &str, width: usize, columns: usize) -> Result<PlainLinear> {
        Ok(PlainLinear {
            weight: self.all(&format!("{name}.weight"), &[columns, width])?,
            bias: self.all(&format!("{name}.bias"), &[columns])?,
        })
    }

    fn norm(&self, name: &str) -> Result<PlainNorm> {
        let sizes = self.model.sizes;
        // Some files of old have other names for the same.
        let [gain, bias] = match self.tensors.has(&format!("{}{name}.gamma", self.prefix)) {
            true => ["gamma", "beta"],
            false => ["weight", "bias"],
        };
        Ok(PlainNorm {
            gain: self.all(&format!("{name}.{gain}"), &[sizes.width])?,
            bias: self.all(&format!("{name}.{bias}"), &[sizes.width])?,
            epsilon: sizes.epsilon,
        })
    }
}
