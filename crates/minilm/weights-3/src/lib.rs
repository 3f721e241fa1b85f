//! Part 3 of the int8 weights of all-MiniLM-L6-v2 (Apache-2.0), with its graph and vocabulary: data only.
//!
//! It holds the places, layers 2 to 5. Made by the recipe of the crate `minilm`, where its
//! checksums stand too.

/// The external data file `minilm-3.data` of the ONNX graph. It starts on a line of 64 bytes.
pub static BYTES: &[u8] = &ALIGNED.0;

static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!("../minilm-3.data"));

#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

/// The ONNX graph, whose weights lie in the three data files.
pub static GRAPH: &[u8] = include_bytes!("../minilm.onnx");

/// The vocabulary: one token a line, whose id is the number of the line, from 0.
pub static VOCABULARY: &str = include_str!("../vocab.txt");
