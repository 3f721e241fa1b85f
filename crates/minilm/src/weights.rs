//! The location of each tensor: of the bundled model in the three data files, of any other one in its model file.
//!
//! ```text
//! minilm-1.data  words.0 (left half of the table)  words.scale  layer 0
//! minilm-2.data  words.1 (right half)  layer 1
//! minilm-3.data  places  x.gain  x.bias  layers 2 to 5
//! a layer        qkv: multiplier shift matrix · seen: matrix · middle: gain bias
//!                inner: multiplier shift matrix · outer: multiplier shift matrix · out: gain bias
//! a matrix       weight [columns / 64][width / 4][64][4] i8, start (i32), scale and bias (f32) a column
//! a model file   words.0  words.1  words.scale  places  x.gain  x.bias  all layers
//!                and if there is one, the dense layer after pooling: weight [width][columns], bias (f32)
//! ```
//!
//! Each tensor starts on a line of 64 bytes. `places` are the position embeddings, `seen` is the attention output
//! projection. The graph `minilm.onnx` points to the same bytes as the data files; a test compares them.

use serde::{Deserialize, Serialize};

use crate::kernel::{Embeddings, LANES, Linear, Norm, Shape, SmoothQuant, floats, integers, lines, panels, word_lines};
use crate::{DIMENSIONS, MAX_TOKENS};

/// The sizes of a model, from which the length of each tensor follows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// Layers of the encoder.
    pub layers: usize,
    /// Components of a token.
    pub width: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Components of a token between the two feed-forward matrices.
    pub inner: usize,
    /// Rows of the word table.
    pub words: usize,
    /// Rows of the position table: the tokens that a text may have, special ones included.
    pub positions: usize,
    /// The term that the layer norms add to the variance.
    pub epsilon: f32,
    /// Components of a vector after the dense layer that follows pooling, if there is one.
    pub dense: Option<usize>,
}

/// How the tokens of a text become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The mean of all tokens.
    Mean,
    /// The first token.
    First,
}

const BUNDLED: Sizes = Sizes {
    layers: 6,
    width: DIMENSIONS,
    heads: 12,
    inner: 4 * DIMENSIONS,
    words: 30_522,
    positions: MAX_TOKENS,
    epsilon: 1e-12,
    dense: None,
};

impl Sizes {
    pub(crate) fn shape(&self) -> Shape {
        Shape { lines: self.width / LANES, inner_lines: self.inner / LANES, heads: self.heads }
    }
}

/// A model: its tensors in place, so creating this costs little.
pub(crate) struct Weights<'a> {
    pub(crate) shape: Shape,
    pub(crate) embeddings: Embeddings<'a>,
    pub(crate) embedded: Norm<'a>,
    pub(crate) layers: Vec<Layer<'a>>,
    pub(crate) pooling: Pooling,
    pub(crate) dense: Option<Dense<'a>>,
    /// The length of a vector; the components after it are left out.
    pub(crate) dimensions: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Layer<'a> {
    /// Query, key and value in one; the query's part includes 1 / √(head width).
    pub(crate) qkv: (SmoothQuant<'a>, Linear<'a>),
    /// The attention output projection (`seen` in the data). The SmoothQuant scale of its input is folded into the
    /// value part of `qkv`.
    pub(crate) attention_output: Linear<'a>,
    pub(crate) attention_norm: Norm<'a>,
    pub(crate) inner: (SmoothQuant<'a>, Linear<'a>),
    pub(crate) outer: (SmoothQuant<'a>, Linear<'a>),
    pub(crate) output_norm: Norm<'a>,
}

/// The dense layer after pooling, in f32: it is one row a text.
#[derive(Clone, Copy)]
pub(crate) struct Dense<'a> {
    /// For each input, its factor in all outputs.
    pub(crate) weights: &'a [f32],
    pub(crate) bias: &'a [f32],
}

/// The location of a tensor.
#[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the graph"))]
struct Tensor {
    layer: Option<usize>,
    of: &'static str,
    part: &'static str,
    /// Counted from 1.
    file: usize,
    offset: usize,
    bytes: usize,
}

impl<'a> Weights<'a> {
    pub(crate) fn bundled() -> Weights<'static> {
        Weights::read(|_| ())
    }

    /// Reads all tensors of the bundled model and calls `visit` for each.
    fn read(mut visit: impl FnMut(Tensor)) -> Weights<'static> {
        let visit = &mut visit;
        let Sizes { words, width, .. } = BUNDLED;
        let mut first = Reader::new(BUNDLED, 1, minilm_weights_1::BYTES, visit);
        let left = word_lines(first.take("words", "0", words * width / 2));
        let scales = floats(first.take("words", "scale", words * 4));
        let layer_0 = first.layer(0);
        assert!(first.is_at_the_end());
        let mut second = Reader::new(BUNDLED, 2, minilm_weights_2::BYTES, visit);
        let right = word_lines(second.take("words", "1", words * width / 2));
        let layer_1 = second.layer(1);
        assert!(second.is_at_the_end());
        let mut third = Reader::new(BUNDLED, 3, minilm_weights_3::BYTES, visit);
        let positions = lines(third.take("places", "", BUNDLED.positions * width * 4));
        let embedded = third.norm("x");
        let layers = vec![layer_0, layer_1, third.layer(2), third.layer(3), third.layer(4), third.layer(5)];
        assert!(third.is_at_the_end());
        Weights {
            shape: BUNDLED.shape(),
            embeddings: Embeddings { words: [left, right], scales, positions },
            embedded,
            layers,
            pooling: Pooling::Mean,
            dense: None,
            dimensions: width,
        }
    }

    /// The tensors of a model file; `None` if they are not exactly as many bytes as the sizes need.
    pub(crate) fn in_file(sizes: Sizes, pooling: Pooling, dimensions: usize, data: &'a [u8]) -> Option<Weights<'a>> {
        let visit = &mut |_| ();
        let mut reader = Reader::new(sizes, 0, data, visit);
        let Sizes { words, width, positions, .. } = sizes;
        let halves = ["0", "1"].map(|half| word_lines(reader.take("words", half, words * width / 2)));
        let scales = floats(reader.take("words", "scale", words * 4));
        let positions = lines(reader.take("places", "", positions * width * 4));
        let embedded = reader.norm("x");
        let layers = (0..sizes.layers).map(|layer| reader.layer(layer)).collect();
        let dense = sizes.dense.map(|columns| Dense {
            weights: floats(reader.take("dense", "weight", width * columns * 4)),
            bias: floats(reader.take("dense", "bias", columns * 4)),
        });
        let embeddings = Embeddings { words: halves, scales, positions };
        let shape = sizes.shape();
        reader.is_at_the_end().then_some(Weights { shape, embeddings, embedded, layers, pooling, dense, dimensions })
    }
}

/// Reads a file's tensors one after the other.
struct Reader<'a, 'v, F> {
    sizes: Sizes,
    layer: Option<usize>,
    file: usize,
    data: &'a [u8],
    at: usize,
    visit: &'v mut F,
}

impl<'a, 'v, F: FnMut(Tensor)> Reader<'a, 'v, F> {
    fn new(sizes: Sizes, file: usize, data: &'a [u8], visit: &'v mut F) -> Self {
        Reader { sizes, layer: None, file, data, at: 0, visit }
    }

    /// Past the end, an empty slice: the end is checked once, after all tensors.
    fn take(&mut self, of: &'static str, part: &'static str, bytes: usize) -> &'a [u8] {
        let offset = self.at;
        self.at += bytes.next_multiple_of(64);
        (self.visit)(Tensor { layer: self.layer, of, part, file: self.file, offset, bytes });
        self.data.get(offset..offset + bytes).unwrap_or_default()
    }

    fn layer(&mut self, layer: usize) -> Layer<'a> {
        let Sizes { width, inner, .. } = self.sizes;
        self.layer = Some(layer);
        Layer {
            qkv: (self.smooth("qkv", width), self.linear("qkv", width, 3 * width)),
            attention_output: self.linear("seen", width, width),
            attention_norm: self.norm("middle"),
            inner: (self.smooth("inner", width), self.linear("inner", width, inner)),
            outer: (self.smooth("outer", inner), self.linear("outer", inner, width)),
            output_norm: self.norm("out"),
        }
    }

    fn smooth(&mut self, of: &'static str, width: usize) -> SmoothQuant<'a> {
        SmoothQuant {
            multiplier: lines(self.take(of, "multiplier", width * 4)),
            shift: lines(self.take(of, "shift", width * 4)),
        }
    }

    fn linear(&mut self, of: &'static str, width: usize, columns: usize) -> Linear<'a> {
        Linear {
            width,
            weights: integers(self.take(of, "weight", width * columns)),
            starts: panels(self.take(of, "start", columns * 4)),
            scales: lines(self.take(of, "scale", columns * 4)),
            bias: lines(self.take(of, "bias", columns * 4)),
        }
    }

    fn norm(&mut self, of: &'static str) -> Norm<'a> {
        let bytes = self.sizes.width * 4;
        Norm {
            gain: lines(self.take(of, "gain", bytes)),
            bias: lines(self.take(of, "bias", bytes)),
            epsilon: self.sizes.epsilon,
        }
    }

    fn is_at_the_end(&self) -> bool {
        self.at == self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kernel::PANEL;

    /// The fields of a protobuf message: their numbers and contents. Integers are left out.
    fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
        fn number(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (byte, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                value |= u64::from(byte & 127) << shift;
                if *byte < 128 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !message.is_empty() {
            let key = number(&mut message);
            let value = number(&mut message);
            match key % 8 {
                0 => {}
                2 => {
                    let (field, rest) = message.split_at(value as usize);
                    found.push((key / 8, field));
                    message = rest;
                }
                kind => panic!("a field of kind {kind}"),
            }
        }
        found
    }

    fn of(fields: &[(u64, &[u8])], wanted: u64) -> Vec<Vec<u8>> {
        fields.iter().filter(|(number, _)| *number == wanted).map(|(_, field)| field.to_vec()).collect()
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Name -> file, offset, length, from the graph: the constants with external data.
    fn in_the_graph() -> BTreeMap<String, [String; 3]> {
        let graph = &of(&fields(minilm_weights_3::GRAPH), 7)[0];
        let constants = of(&fields(graph), 5);
        let external = constants.iter().filter_map(|constant| {
            let constant = fields(constant);
            let entries: BTreeMap<String, String> = of(&constant, 13)
                .iter()
                .map(|entry| {
                    let entry = fields(entry);
                    (text(&of(&entry, 1)[0]), text(&of(&entry, 2)[0]))
                })
                .collect();
            let place = ["location", "offset", "length"].map(|key| entries.get(key).cloned().unwrap_or_default());
            (!entries.is_empty()).then(|| (text(&of(&constant, 8)[0]), place))
        });
        external.collect()
    }

    #[test]
    fn the_graph_points_to_the_same_bytes() {
        let mut ours = BTreeMap::new();
        Weights::read(|tensor| {
            let layer = tensor.layer.map(|layer| format!("l{layer}."));
            let part = if tensor.part.is_empty() { String::new() } else { format!(".{}", tensor.part) };
            let name = layer.unwrap_or_default() + tensor.of + &part;
            assert_eq!(tensor.offset % 64, 0, "{name}");
            let place = [format!("minilm-{}.data", tensor.file), tensor.offset.to_string(), tensor.bytes.to_string()];
            // Data that only a kernel needs.
            if tensor.part != "start" {
                ours.insert(name, place);
            }
        });
        assert_eq!(ours, in_the_graph());
        assert_eq!(ours.len(), 4 + 2 + 6 * (4 * 3 + 3 * 2 + 2 * 2));
    }

    /// Also, no weight is -128, on which the kernel without VNNI relies.
    #[test]
    fn sums_start_where_they_should() {
        for layer in Weights::bundled().layers {
            for matrix in [layer.qkv.1, layer.attention_output, layer.inner.1, layer.outer.1] {
                let panels = matrix.weights.chunks_exact(matrix.width * PANEL);
                assert_eq!(panels.len(), matrix.starts.len());
                for (panel, start) in panels.zip(matrix.starts) {
                    let mut sums = [0; PANEL];
                    for (i, weight) in panel.iter().enumerate() {
                        assert!(*weight > -128);
                        sums[i / 4 % PANEL] += i32::from(*weight);
                    }
                    assert_eq!(*start, sums.map(|sum| -128 * sum));
                }
            }
        }
    }
}
