//! The matrices of a safetensors file as f32, whatever they are stored as; each is checked before it is used.

use std::path::{Path, PathBuf};

use memmap2::Mmap;
use safetensors::{Dtype, SafeTensors};

use crate::error::ModelError;
use crate::mapped::map;

/// A safetensors file, mapped.
pub(super) struct TensorFile {
    path: PathBuf,
    map: Mmap,
}

impl TensorFile {
    pub(super) fn open(path: &Path) -> Result<TensorFile, ModelError> {
        let map = map(path)?;
        let file = TensorFile { path: path.to_owned(), map };
        file.tensors()?;
        Ok(file)
    }

    /// Reads the header, which the library checks against the length of the file.
    pub(super) fn tensors(&self) -> Result<Tensors<'_>, ModelError> {
        let all = SafeTensors::deserialize(&self.map)
            .map_err(|error| ModelError::damaged(&self.path, format!("these are no safetensors: {error}")))?;
        Ok(Tensors { path: &self.path, all })
    }
}

/// The tensors of a file, by name.
pub(super) struct Tensors<'a> {
    path: &'a Path,
    all: SafeTensors<'a>,
}

impl Tensors<'_> {
    /// The prefix of `name` in the one tensor whose name ends with it.
    pub(super) fn prefix_of(&self, name: &str) -> Result<String, ModelError> {
        let prefixes = self.all.names().into_iter().filter_map(|found| found.strip_suffix(name));
        let prefix = prefixes.min_by_key(|prefix| prefix.len());
        prefix.map(str::to_owned).ok_or_else(|| ModelError::unsupported(self.path, format!("there is no `{name}`")))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all.names().contains(&name)
    }

    /// All numbers of a tensor.
    ///
    /// # Errors
    /// If it is missing, has another shape, another kind of numbers, or contains NaN or infinity.
    pub(super) fn all(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        self.rows(name, shape, 0, shape[0])
    }

    /// Some rows of a tensor: `count` from `first` of its first dimension.
    pub(super) fn rows(&self, name: &str, shape: &[usize], first: usize, count: usize) -> Result<Vec<f32>, ModelError> {
        let damaged = |what: String| ModelError::damaged(self.path, format!("`{name}` {what}"));
        let tensor = self.all.tensor(name).map_err(|_| damaged("is missing".to_owned()))?;
        if tensor.shape() != shape {
            return Err(damaged(format!("has the shape {:?} instead of {shape:?}", tensor.shape())));
        }
        let read: fn(&[u8]) -> f32 = match tensor.dtype() {
            Dtype::F32 => |bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            Dtype::F16 => |bytes| of_f16(u16::from_le_bytes([bytes[0], bytes[1]])),
            Dtype::BF16 => |bytes| f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16),
            other => return Err(damaged(format!("has numbers of kind {other:?}; F32, F16 and BF16 are read"))),
        };
        let size = if tensor.dtype() == Dtype::F32 { 4 } else { 2 };
        let row: usize = shape[1..].iter().product();
        let bytes = tensor.data().get(first * row * size..(first + count) * row * size);
        let bytes = bytes.ok_or_else(|| damaged(format!("has no rows {first} to {}", first + count)))?;
        let numbers: Vec<f32> = bytes.chunks_exact(size).map(read).collect();
        match numbers.iter().all(|number| number.is_finite()) {
            true => Ok(numbers),
            false => Err(damaged("contains NaN or infinity".to_owned())),
        }
    }
}

/// A number of half precision: a sign, five bits of exponent, ten of mantissa.
fn of_f16(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = ((bits >> 10) & 31, f32::from(bits & 1023));
    let magnitude = match exponent {
        0 => mantissa * f32::from_bits((127 - 24) << 23),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * f32::from_bits((u32::from(exponent) + 127 - 25) << 23),
    };
    sign * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(of_f16(bits), number, "{bits:x}");
        }
        assert!(of_f16(0x7e00).is_nan());
    }
}
