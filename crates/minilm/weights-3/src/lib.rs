//! Part 3 of the int8 weights of all-MiniLM-L6-v2 (Apache-2.0), with its graph and vocabulary: data only.
//!
//! It holds layers 2 to 5. Made by the recipe of the crate `minilm`, where its
//! checksums stand too.

/// The external data file `minilm-3.data` of the ONNX graph. Bytes only: no alignment is needed.
pub static BYTES: &[u8] = include_bytes!("../minilm-3.data");

/// The ONNX graph, with scales, biases and positions inside and the integer matrices in the three data files.
pub static GRAPH: &[u8] = include_bytes!("../minilm.onnx");

/// The vocabulary: one token a line, whose id is the number of the line, from 0.
pub static VOCABULARY: &str = include_str!("../vocab.txt");
