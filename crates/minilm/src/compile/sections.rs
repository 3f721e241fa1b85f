//! Writes the tensors of a model's file one after the other, with the digests of its two parts.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::plain_encoder::{LayerActivations, PlainLayer, PlainLinear, PlainNorm};
use super::quantize::{Smoothing, integers, panels, smoothed, smoothing};
use crate::error::ModelError;
use crate::model_file::DESCRIPTION_END;

type Result<T> = std::result::Result<T, ModelError>;

/// A file that is being written, behind the place of its description.
pub(super) struct Sections {
    path: PathBuf,
    file: BufWriter<File>,
    digest: blake3::Hasher,
}

impl Sections {
    pub(super) fn create(path: &Path) -> Result<Sections> {
        let file = File::create(path).map_err(|error| ModelError::Io(path.to_owned(), error))?;
        let mut sections =
            Sections { path: path.to_owned(), file: BufWriter::new(file), digest: blake3::Hasher::new() };
        sections.file.write_all(&[0; DESCRIPTION_END]).map_err(|error| sections.failed(error))?;
        Ok(sections)
    }

    fn failed(&self, error: std::io::Error) -> ModelError {
        ModelError::Io(self.path.clone(), error)
    }

    /// Appends bytes, up to the next line of 64.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let rest = &[0; 64][..bytes.len().next_multiple_of(64) - bytes.len()];
        for part in [bytes, rest] {
            self.digest.update(part);
            self.file.write_all(part).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    pub(super) fn floats(&mut self, numbers: &[f32]) -> Result<()> {
        self.bytes(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub(super) fn integers(&mut self, numbers: &[i8]) -> Result<()> {
        self.bytes(&numbers.iter().map(|number| *number as u8).collect::<Vec<u8>>())
    }

    pub(super) fn norm(&mut self, norm: &PlainNorm) -> Result<()> {
        self.floats(&norm.gain)?;
        self.floats(&norm.bias)
    }

    /// A layer, smoothed for what its matrices activations and made of integers.
    pub(super) fn layer(&mut self, layer: &PlainLayer, activations: &[LayerActivations]) -> Result<()> {
        let of = |part: fn(&LayerActivations) -> &Vec<f32>| {
            activations.iter().map(|activations| part(activations).as_slice()).collect::<Vec<_>>()
        };
        let seen = smoothing(&of(|activations| &activations.attention_output), &layer.attention_output, true);

        let smooth = smoothing(&of(|activations| &activations.qkv), &layer.qkv, true);
        let (mut weight, mut bias) = smoothed(&layer.qkv, &smooth);
        let width = layer.qkv.width();
        // The score's 1 / √(head width) is folded into the query, and what makes the attention's output smooth into the
        // value, of which it is a mean.
        let score = 1.0 / ((width / layer.heads) as f32).sqrt();
        for (row, (weights, bias)) in weight.chunks_exact_mut(width).zip(&mut bias).enumerate() {
            let factor = match row / width {
                0 => score,
                1 => 1.0,
                _ => {
                    *bias -= f64::from(seen.offset[row % width]);
                    seen.multiplier[row % width]
                }
            };
            weights.iter_mut().for_each(|weight| *weight *= factor);
            *bias *= f64::from(factor);
        }
        self.smoothing(&smooth)?;
        self.matrix(&weight, width, &bias)?;

        let (weight, bias) = smoothed(&layer.attention_output, &seen);
        self.matrix(&weight, width, &bias)?;
        self.norm(&layer.attention_norm)?;
        self.smooth_matrix(&layer.inner, &of(|activations| &activations.inner), true)?;
        self.smooth_matrix(&layer.outer, &of(|activations| &activations.outer), false)?;
        self.norm(&layer.output_norm)
    }

    fn smooth_matrix(&mut self, matrix: &PlainLinear, activations: &[&[f32]], is_centred: bool) -> Result<()> {
        let smooth = smoothing(activations, matrix, is_centred);
        let (weight, bias) = smoothed(matrix, &smooth);
        self.smoothing(&smooth)?;
        self.matrix(&weight, matrix.width(), &bias)
    }

    fn smoothing(&mut self, smooth: &Smoothing) -> Result<()> {
        self.floats(&smooth.multiplier)?;
        let shift = smooth.multiplier.iter().zip(&smooth.offset).map(|(multiplier, offset)| -(offset * multiplier));
        self.floats(&shift.collect::<Vec<f32>>())
    }

    fn matrix(&mut self, weight: &[f32], width: usize, bias: &[f64]) -> Result<()> {
        let (whole, scales) = integers(weight, width);
        let (packed, starts) = panels(&whole, width);
        self.integers(&packed)?;
        self.bytes(&starts.iter().flat_map(|start| start.to_le_bytes()).collect::<Vec<u8>>())?;
        self.floats(&scales)?;
        self.floats(&bias.iter().map(|bias| *bias as f32).collect::<Vec<f32>>())
    }

    /// The digest of all bytes since the last call.
    pub(super) fn digest(&mut self) -> String {
        let digest = self.digest.finalize().to_hex().to_string();
        self.digest.reset();
        digest
    }

    /// Writes the description, and everything to the disk.
    pub(super) fn finish(mut self, description: &[u8]) -> Result<()> {
        let mut write = || {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(description)?;
            self.file.flush()?;
            self.file.get_ref().sync_all()
        };
        write().map_err(|error| self.failed(error))
    }
}

/// Writes another description into a file that is complete.
pub(super) fn rewrite_header(path: &Path, description: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::options().write(true).open(path)?;
        file.write_all(description)?;
        file.sync_all()
    };
    write().map_err(|error| ModelError::Io(path.to_owned(), error))
}
