"""Makes the tiny embedding model beside this file: `pip install onnx numpy`, then `python make_model.py`.

It has the inputs and outputs of a sentence encoder and no sense: every word of a
small vocabulary has a vector, a word that means something near another's has one
near it, and one matrix product follows. All numbers are ours, none is trained.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from tiny import SUBJECTS, WORDS, write, write_tokenizer  # noqa: E402

DIMENSIONS = 16
numbers = np.random.default_rng(7)
table = numbers.normal(0, 0.1, (len(WORDS), DIMENSIONS))
for subject in SUBJECTS:
    centre = numbers.normal(0, 1, DIMENSIONS)
    for word in subject:
        table[WORDS.index(word)] += centre
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

write_tokenizer(HERE)
write(HERE / "tokenizer_config.json", {"model_max_length": 32, "pad_token": "[PAD]"})
write(HERE / "config.json", {"pad_token_id": 0, "hidden_size": DIMENSIONS})
write(HERE / "special_tokens_map.json", {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"})
write(HERE / "1_Pooling/config.json", {"word_embedding_dimension": DIMENSIONS, "pooling_mode_mean_tokens": True})
