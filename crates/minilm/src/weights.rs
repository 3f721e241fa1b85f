//! The location of each tensor in the three data files, in the order of the recipe; each starts on a line of 64 bytes.
//!
//! ```text
//! minilm-1.data  words.0 (left half of the table)  words.scale  layer 0
//! minilm-2.data  words.1 (right half)  layer 1
//! minilm-3.data  places  x.gain  x.bias  layers 2 to 5
//! a layer        qkv: multiplier shift matrix · seen: matrix · middle: gain bias
//!                inner: multiplier shift matrix · outer: multiplier shift matrix · out: gain bias
//! a matrix       weight [columns / 64][width / 4][64][4] i8, start (i32), scale and bias (f32) a column
//! ```
//!
//! `places` are the position embeddings, `seen` is the attention output projection. The graph `minilm.onnx` points to
//! the same bytes; a test compares them.

use crate::kernel::{Embeddings, LANES, Linear, Norm, Shape, SmoothQuant, floats, integers, lines, panels, word_lines};
use crate::{DIMENSIONS as WIDTH, MAX_TOKENS};

/// Rows of the word table.
const WORDS: usize = 30_522;

/// Components of a token between the two feed-forward matrices.
const INNER: usize = 4 * WIDTH;

const SHAPE: Shape = Shape { lines: WIDTH / LANES, inner_lines: INNER / LANES, heads: 12 };

/// A model: its tensors in place, so creating this costs nothing.
pub(crate) struct Weights {
    pub(crate) shape: Shape,
    pub(crate) embeddings: Embeddings,
    pub(crate) embedded: Norm,
    pub(crate) layers: Vec<Layer>,
}

#[derive(Clone, Copy)]
pub(crate) struct Layer {
    /// Query, key and value in one; the query's part includes 1 / √32.
    pub(crate) qkv: (SmoothQuant, Linear),
    /// The attention output projection (`seen` in the data). The SmoothQuant scale of its input is folded into the
    /// value part of `qkv`.
    pub(crate) attention_output: Linear,
    pub(crate) attention_norm: Norm,
    pub(crate) inner: (SmoothQuant, Linear),
    pub(crate) outer: (SmoothQuant, Linear),
    pub(crate) output_norm: Norm,
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

impl Weights {
    pub(crate) fn bundled() -> Weights {
        Weights::read(|_| ())
    }

    /// Reads all tensors and calls `visit` for each.
    fn read(mut visit: impl FnMut(Tensor)) -> Weights {
        let visit = &mut visit;
        let mut first = Reader { layer: None, file: 1, data: minilm_weights_1::BYTES, at: 0, visit };
        let left = word_lines(first.take("words", "0", WORDS * WIDTH / 2));
        let scales = floats(first.take("words", "scale", WORDS * 4));
        let layer_0 = first.layer(0);
        first.end();
        let mut second = Reader { layer: None, file: 2, data: minilm_weights_2::BYTES, at: 0, visit };
        let right = word_lines(second.take("words", "1", WORDS * WIDTH / 2));
        let layer_1 = second.layer(1);
        second.end();
        let mut third = Reader { layer: None, file: 3, data: minilm_weights_3::BYTES, at: 0, visit };
        let positions = lines(third.take("places", "", MAX_TOKENS * WIDTH * 4));
        let embedded = third.norm("x");
        let layers = vec![layer_0, layer_1, third.layer(2), third.layer(3), third.layer(4), third.layer(5)];
        third.end();
        let embeddings = Embeddings { words: [left, right], scales, positions };
        Weights { shape: SHAPE, embeddings, embedded, layers }
    }
}

/// Reads a file's tensors one after the other.
struct Reader<'a, F> {
    layer: Option<usize>,
    file: usize,
    data: &'static [u8],
    at: usize,
    visit: &'a mut F,
}

impl<F: FnMut(Tensor)> Reader<'_, F> {
    fn take(&mut self, of: &'static str, part: &'static str, bytes: usize) -> &'static [u8] {
        let offset = self.at;
        self.at += bytes.next_multiple_of(64);
        (self.visit)(Tensor { layer: self.layer, of, part, file: self.file, offset, bytes });
        &self.data[offset..offset + bytes]
    }

    fn layer(&mut self, layer: usize) -> Layer {
        self.layer = Some(layer);
        Layer {
            qkv: (self.smooth("qkv", WIDTH), self.linear("qkv", WIDTH, 3 * WIDTH)),
            attention_output: self.linear("seen", WIDTH, WIDTH),
            attention_norm: self.norm("middle"),
            inner: (self.smooth("inner", WIDTH), self.linear("inner", WIDTH, INNER)),
            outer: (self.smooth("outer", INNER), self.linear("outer", INNER, WIDTH)),
            output_norm: self.norm("out"),
        }
    }

    fn smooth(&mut self, of: &'static str, width: usize) -> SmoothQuant {
        SmoothQuant {
            multiplier: lines(self.take(of, "multiplier", width * 4)),
            shift: lines(self.take(of, "shift", width * 4)),
        }
    }

    fn linear(&mut self, of: &'static str, width: usize, columns: usize) -> Linear {
        Linear {
            width,
            weights: integers(self.take(of, "weight", width * columns)),
            starts: panels(self.take(of, "start", columns * 4)),
            scales: lines(self.take(of, "scale", columns * 4)),
            bias: lines(self.take(of, "bias", columns * 4)),
        }
    }

    fn norm(&mut self, of: &'static str) -> Norm {
        Norm { gain: lines(self.take(of, "gain", WIDTH * 4)), bias: lines(self.take(of, "bias", WIDTH * 4)) }
    }

    fn end(&self) {
        assert_eq!(self.at, self.data.len(), "the length of minilm-{}.data", self.file);
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
