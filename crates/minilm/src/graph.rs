//! The ONNX graph and its one operation: token ids in, one unit vector out; knows no text.

use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::{NdTensor, NdTensorView};

use crate::error::Error;

/// Whether the weights are laid out for the processor at loading or at every run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weights {
    /// As shipped: loads in no time and runs straight from the program's pages,
    /// but every run lays them out again, which costs more than a short text itself.
    AsShipped,
    /// Laid out once: costs some milliseconds and a copy of the layers (11 MB).
    /// The arithmetic on them is exact, so the vectors are the same to the bit.
    Packed,
}

pub(crate) struct Graph {
    model: Model,
    ids: NodeId,
    embedding: NodeId,
}

impl Graph {
    pub(crate) fn load(weights: Weights) -> Result<Graph, Error> {
        // Only these: each operator left out is code the linker can drop.
        let mut options = ModelOptions::with_ops(rten::op_registry!(
            Add,
            Cast,
            Concat,
            DynamicQuantizeLinear,
            Gather,
            Gelu,
            LayerNormalization,
            LpNormalization,
            MatMul,
            MatMulInteger,
            Mul,
            ReduceMean,
            Reshape,
            Shape,
            Slice,
            Softmax,
            Split,
            Transpose
        ));
        options.prepack_weights(weights == Weights::Packed);
        options.external_data_static("minilm-1.data", minilm_weights_1::BYTES);
        options.external_data_static("minilm-2.data", minilm_weights_2::BYTES);
        options.external_data_static("minilm-3.data", minilm_weights_3::BYTES);
        let model = options.load_static_slice(minilm_weights_3::GRAPH).map_err(|error| Error::Load(error.into()))?;
        let node = |name| model.node_id(name).map_err(|error| Error::Load(error.into()));
        let (ids, embedding) = (node("ids")?, node("embedding")?);
        Ok(Graph { model, ids, embedding })
    }

    /// Runs on `pool`, which must have one thread: then sums are taken in one order
    /// only, and a text has the same vector whatever runs beside it.
    pub(crate) fn run(&self, ids: &[i32], pool: &Arc<ThreadPool>) -> Result<Vec<f32>, Error> {
        let input = NdTensorView::from_data([ids.len()], ids);
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(pool)));
        let [output] = self
            .model
            .run_n(vec![(self.ids, input.into())], [self.embedding], Some(options))
            .map_err(|error| Error::Run(error.into()))?;
        let output: NdTensor<f32, 1> =
            output.try_into().map_err(|error: rten::TryFromValueError| Error::Run(error.into()))?;
        Ok(output.into_data())
    }
}
