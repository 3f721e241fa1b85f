"""Makes the tiny cross-encoder beside this file: `pip install onnx numpy`, then `python make_model.py`.

It has the inputs and the output of a sequence classifier with one label and no sense: a word is of one of three
subjects or of none, and the logit of a pair of texts counts the pairs of words, one of the query and one of the
passage, that are of one subject, less 3. `flat.onnx` gives the same logits as a list, which no exporter should.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from tiny import SUBJECTS, WORDS, write, write_tokenizer  # noqa: E402

table = np.zeros((len(WORDS), len(SUBJECTS)), dtype=np.float32)
for number, subject in enumerate(SUBJECTS):
    for word in subject:
        table[WORDS.index(word), number] = 1

shape = ["batch", "tokens"]


def save(name: str, keepdims: int, output: list) -> None:
    graph = helper.make_graph(
        nodes=[
            helper.make_node("Gather", ["table", "input_ids"], ["subjects"]),
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["mask", "types"], ["of_passage"]),
            helper.make_node("Sub", ["mask", "of_passage"], ["of_query"]),
            helper.make_node("Unsqueeze", ["of_passage", "last"], ["passage_column"]),
            helper.make_node("Unsqueeze", ["of_query", "last"], ["query_column"]),
            helper.make_node("Mul", ["subjects", "passage_column"], ["passage_words"]),
            helper.make_node("Mul", ["subjects", "query_column"], ["query_words"]),
            helper.make_node("ReduceSum", ["passage_words", "tokens"], ["passage"], keepdims=0),
            helper.make_node("ReduceSum", ["query_words", "tokens"], ["query"], keepdims=0),
            helper.make_node("Mul", ["query", "passage"], ["products"]),
            helper.make_node("ReduceSum", ["products", "tokens"], ["pairs"], keepdims=keepdims),
            helper.make_node("Sub", ["pairs", "three"], ["logits"]),
        ],
        name="tiny",
        inputs=[
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, shape),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, shape),
            helper.make_tensor_value_info("token_type_ids", TensorProto.INT64, shape),
        ],
        outputs=[helper.make_tensor_value_info("logits", TensorProto.FLOAT, output)],
        initializer=[
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "tokens"),
            numpy_helper.from_array(np.array([3], dtype=np.float32), "three"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, HERE / name)


save("model.onnx", 1, ["batch", 1])
save("flat.onnx", 0, ["batch"])

write_tokenizer(HERE)
write(HERE / "tokenizer_config.json", {"model_max_length": 32, "pad_token": "[PAD]"})
write(HERE / "config.json", {"pad_token_id": 0, "id2label": {"0": "LABEL_0"}})
