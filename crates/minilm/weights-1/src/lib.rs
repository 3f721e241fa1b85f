//! Part 1 of the int8 weights of all-MiniLM-L6-v2 (Apache-2.0): data only, read by the crate `minilm`.
//!
//! It holds the left half of the word table, its scales, and layer 0. Made by the recipe of
//! the crate `minilm`, where its checksum stands too.

/// The external data file `minilm-1.data` of the ONNX graph. It starts on a line of 64 bytes.
pub static BYTES: &[u8] = &ALIGNED.0;

static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!("../minilm-1.data"));

#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);
