//! Part 2 of the int8 weights of all-MiniLM-L6-v2 (Apache-2.0): data only, read by the crate `minilm`.
//!
//! It holds the right half of the word table and layer 1. Made by the recipe of
//! the crate `minilm`, where its checksum stands too.

/// The external data file `minilm-2.data` of the ONNX graph. It starts on a line of 64 bytes.
pub static BYTES: &[u8] = &ALIGNED.0;

static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!("../minilm-2.data"));

#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);
