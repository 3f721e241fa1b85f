//! Bytes of a model as numbers, in place, without a copy.
#![expect(unsafe_code, reason = "one cast from bytes to numbers")]

use super::{Line, PANEL, WordLine};

#[cfg(target_endian = "big")]
compile_error!("the weights are shipped with their lowest bytes first");

/// A type for which any bytes are a valid value.
///
/// # Safety
/// The type consists of integers and floats only, without padding between them.
unsafe trait Plain {}
// SAFETY, for all: arrays of numbers.
unsafe impl Plain for i8 {}
unsafe impl Plain for f32 {}
unsafe impl Plain for f64 {}
unsafe impl Plain for u32 {}
unsafe impl Plain for [u32; 2] {}
unsafe impl Plain for Line {}
unsafe impl Plain for WordLine {}
unsafe impl Plain for [i32; PANEL] {}

/// # Panics
/// If the bytes are not whole, aligned values. Those of the program are tested; those of a file begin on a line of 64
/// bytes, and their lengths are checked when it is opened.
fn cast<T: Plain>(bytes: &[u8]) -> &[T] {
    // SAFETY: any bytes are a valid T.
    let (before, values, behind) = unsafe { bytes.align_to::<T>() };
    assert!(before.is_empty() && behind.is_empty(), "weights that are not aligned");
    values
}

macro_rules! views {
    ($($name:ident: $type:ty,)*) => {
        $(pub(crate) fn $name(bytes: &[u8]) -> &[$type] {
            cast(bytes)
        })*
    };
}
views! { integers: i8, floats: f32, lines: Line, panels: [i32; PANEL], word_lines: WordLine,
doubles: f64, words: u32, pairs: [u32; 2], }
