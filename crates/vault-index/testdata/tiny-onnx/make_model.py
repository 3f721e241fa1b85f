"""Makes the tiny embedding model beside this file: `pip install onnx numpy`, then `python make_model.py`.

It has the inputs and outputs of a sentence encoder and no sense: every word of a
small vocabulary has a vector, a word that means something near another's has one
near it, and one matrix product follows. All numbers are ours, none is trained.
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
DIMENSIONS = 16
TOPICS = [
    ["prune", "branches", "apple", "trees", "garden", "winter"],
    ["bank", "interest", "rate", "money", "loan", "quarterly"],
    ["boil", "pasta", "water", "salt", "sauce", "kitchen"],
]
PLAIN = ["the", "a", "in", "of", "and", "to", "how", "do", "i"]

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PLAIN, *(word for topic in TOPICS for word in topic)]
numbers = np.random.default_rng(7)
table = numbers.normal(0, 0.1, (len(words), DIMENSIONS))
for topic in TOPICS:
    centre = numbers.normal(0, 1, DIMENSIONS)
    for word in topic:
        table[words.index(word)] += centre
mixing = np.linalg.qr(numbers.normal(0, 1, (DIMENSIONS, DIMENSIONS)))[0]

shape = ["batch", "tokens"]
graph = helper.make_graph(
    nodes=[
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("MatMul", ["words", "mixing"], ["mixed"]),
        # The mask is an input of every such model; here it only clears what is padding.
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["mask_column"]),
        helper.make_node("Mul", ["mixed", "mask_column"], ["last_hidden_state"]),
    ],
    name="tiny",
    inputs=[
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, shape),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, shape),
    ],
    outputs=[helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, DIMENSIONS])],
    initializer=[
        numpy_helper.from_array(table.astype(np.float32), "table"),
        numpy_helper.from_array(mixing.astype(np.float32), "mixing"),
        numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, HERE / "model.onnx")

special = [
    {
        "id": words.index(word), "content": word, "single_word": False, "lstrip": False,
        "rstrip": False, "normalized": False, "special": True,
    }
    for word in words[:4]
]
tokenizer = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": special,
    "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": {
        "type": "BertProcessing",
        "sep": ["[SEP]", words.index("[SEP]")],
        "cls": ["[CLS]", words.index("[CLS]")],
    },
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "[UNK]"},
}


def write(name: str, value: object) -> None:
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


write("tokenizer.json", tokenizer)
write("tokenizer_config.json", {"model_max_length": 32, "pad_token": "[PAD]"})
write("config.json", {"pad_token_id": 0, "hidden_size": DIMENSIONS})
write("special_tokens_map.json", {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"})
write("1_Pooling/config.json", {"word_embedding_dimension": DIMENSIONS, "pooling_mode_mean_tokens": True})
