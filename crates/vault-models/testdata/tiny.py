"""What the tiny models share: a vocabulary of three subjects, and the files of its tokenizer."""

import json
from pathlib import Path

SUBJECTS = [
    ["prune", "branches", "apple", "trees", "garden", "winter"],
    ["bank", "interest", "rate", "money", "loan", "quarterly"],
    ["boil", "pasta", "water", "salt", "sauce", "kitchen"],
]
PLAIN = ["the", "a", "in", "of", "and", "to", "how", "do", "i"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIAL, *PLAIN, *(word for subject in SUBJECTS for word in subject)]


def write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def write_tokenizer(folder: Path) -> None:
    special = [
        {
            "id": WORDS.index(word), "content": word, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True,
        }
        for word in SPECIAL
    ]
    write(folder / "tokenizer.json", {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "BertProcessing",
            "sep": ["[SEP]", WORDS.index("[SEP]")],
            "cls": ["[CLS]", WORDS.index("[CLS]")],
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    })
