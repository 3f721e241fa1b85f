"""Makes the tiny models that the engine is tested with, and what the original libraries compute with them.

Usage: python make_tiny_models.py [--out DIR]

Each model is of an architecture that people use, with random weights of a seed: nothing is learned, and nothing is
anybody's but the project's. Only the normalization rules of the unigram tokenizer are SentencePiece's (nmt_nfkc,
Apache-2.0), which every such tokenizer contains.

    bert-mean    BERT, WordPiece, mean of all tokens, f32
    bert-first   BERT, WordPiece, first token, a dense layer after it, bf16
    xlmr-mean    XLM-RoBERTa, unigram, mean of all tokens, f16

For each, in its folder: config.json, tokenizer.json, model.safetensors and the files of sentence-transformers; and
in reference.json and reference.f32 the ids, the rows after the embeddings and after each layer of a few texts, and the
vectors of the thousand texts that texts() makes.
"""

import argparse
import json
import os
import random
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import sentencepiece
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

HERE = Path(__file__).resolve().parent
LAYERS, WIDTH, HEADS, INNER, POSITIONS = 2, 64, 2, 256, 64
PIECES = 1200

WORDS = {
    "en": "the old mill river turns slowly while seven herons wait in reeds for fish prune apple trees late winter "
    "bank raised interest rate again meeting about kitchen budget moved to tuesday bread needs flour water salt time "
    "train left station early morning snow fell on quiet hills garden fence repaired paint dries before rain".split(),
    "de": "der alte garten hinter dem haus blüht im frühling die katze schläft auf der warmen mauer und träumt "
    "größere äpfel fallen später als süße birnen über den zaun".split(),
    "fr": "la forêt près du château reste calme après l'été où les élèves mangent un gâteau à la crème brûlée".split(),
    "ru": "старая мельница у реки медленно вращается пока семь цапель ждут рыбу в камышах завтра будет дождь".split(),
    "ja": "古い 水車 は 川 の ほとり で ゆっくり 回る 明日 は 雨 が 降る でしょう カタカナ".split(),
    "el": "ο παλιός μύλος γυρίζει αργά δίπλα στο ποτάμι".split(),
    "ar": "الطاحونة القديمة تدور ببطء بجانب النهر".split(),
    "hi": "पुरानी चक्की नदी के पास धीरे घूमती है".split(),
}

# Letters that meet in words in ways that tokenizers differ in.
ODD = [
    "", " ", "  ", "\n\t \r\n", "hello", "Hello, World!", "don’t “quote” — dash…", "unaffable embeddings tokenization",
    "😀 emoji 👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽", "a😀b", "知識グラフ と 人工智能", "한국어 문장입니다", "ㅎㅏㄴ 한",
    "e\u0301e\u0301 n\u0303 a\u0325\u0301", "\u0301starts with a mark", "İstanbul ISPARTA ıssız", "ΣΊΣΥΦΟΣ",
    "zero\u200bwidth\u200cjoi\u200dner\ufeff", "soft\u00adhyphen", "private\ue000use \U000f0000",
    "replacement \ufffd character", "inside \x7f delete \x01\x02", "vertical\x0btab form\x0cfeed next\x85line",
    "no\u00a0break\u3000wide\u2028line", "right-to-left \u202eoverride שלום مرحبا", "हिन्दी में लिखा क्षत्रिय", "ภาษาไทยน้ำ",
    "ﬁne ﬂow ｆｕｌｌ ｗｉｄｔｈ", "Å Å ℵ № ™ ½ ⅷ ㍿ ㌔", "x²+y³=z⁴", "<s> </s> <mask> <pad> <unk>", "a<mask>b   <mask>  c",
    "＜s＞ <S> < s >", "[CLS] [SEP] [MASK] [PAD] [UNK]", "a[SEP]b é[MASK]é", "##ing ## # #tag ###", "▁under ▁▁ a▁b", "▁",
    "$100.50 €20 £3 ¥4 `code` ^ ~ | < >", "https://example.org/a?b=c&d=%20#e", "snake_case camelCase kebab-case",
    "two  spaces   three    four", " leading and trailing ", "line\nbreaks\r\nand\ttabs", "ÄÖÜäöüß ẞ",
    "a" * 99, "a" * 101, "a" * 300, "é" * 120, "жук" * 50, "気" * 80, "\u0600a\u0600 \u0903b", "\u1100\u1161\u11a8가\u11a8",
    "!?" * 40, "0123456789 ٠١٢٣ 一二三", "\u302e\u302f \U00016ff0", "\U0001d15e\U0001d160 \U0002f800", "ǅ ǆ ŉ ŀ ſ",
    "q" + "\u0301" * 12 + "r", "\ufeffbom", "a\u2060b\u180ec", "ｶﾞｷﾞ ﾊﾟ", "①②③ ⑴ ⒈ 🄰", "ﷺ ﷲ", "\U000e0041tag",
]  # fmt: skip


def texts():
    """A thousand distinct texts of some words, most of them of one language."""
    rng, found = random.Random(35), []
    while len(found) < 1000:
        language = rng.choice(list(WORDS)) if rng.random() < 0.6 else "en"
        words = [rng.choice(WORDS[language]) for _ in range(rng.randint(2, 14))]
        if rng.random() < 0.1:
            words.insert(rng.randrange(len(words)), rng.choice(WORDS["en"]))
        text = " ".join(words)
        text = text[0].upper() + text[1:] + rng.choice(["", ".", "?", "!"])
        if text not in found:
            found.append(text)
    return found


def wordpiece():
    """A WordPiece tokenizer with all the parts of BERT's, trained on the words above."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = WordPieceTrainer(vocab_size=PIECES, special_tokens=special, min_frequency=1, show_progress=False)
    tokenizer.train_from_iterator(texts() + [chr(c) for c in range(33, 127)], trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ends
    )
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def unigram(folder):
    """A unigram tokenizer as XLM-RoBERTa's: SentencePiece's pieces and rules, with four tokens before them."""
    prefix = str(folder / "unigram")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts()),
        model_prefix=prefix,
        vocab_size=700,
        model_type="unigram",
        normalization_rule_name="nmt_nfkc",
        character_coverage=1.0,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    from sentencepiece import sentencepiece_model_pb2

    trained = sentencepiece_model_pb2.ModelProto()
    trained.ParseFromString(Path(prefix + ".model").read_bytes())
    for end in (".model", ".vocab"):
        Path(prefix + end).unlink()
    # <unk> <s> </s> are SentencePiece's first three.
    pieces = [(piece.piece, piece.score) for piece in trained.pieces[3:]]
    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces, ("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Precompiled(trained.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    from tokenizers import AddedToken

    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    return tokenizer


def shaken(model, seed):
    """Weights that set texts apart: the usual start would give all of them nearly one vector."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.3 if name.endswith("bias") else 0.15
            noise = torch.randn(parameter.shape, generator=generator) * scale
            if "word_embeddings" in name:
                noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise + 1 if "LayerNorm.weight" in name else noise)
        # A few channels far louder than all others, as trained models have.
        for layer in model.encoder.layer:
            layer.output.LayerNorm.weight[5] *= 8
            layer.attention.output.LayerNorm.weight[40] *= -6
    return model.eval()


def write(folder, name, tokenizer, model, dtype, pooling, prompts, dense=None):
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    kept = {key: value.to(dtype).contiguous() for key, value in model.state_dict().items() if value.is_floating_point()}
    kept = {key: value for key, value in kept.items() if not key.startswith("pooler")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    # The values in the file are those that are computed with.
    model.load_state_dict({key: value.float() for key, value in kept.items()}, strict=False)
    keys = "model_type hidden_act hidden_size intermediate_size layer_norm_eps max_position_embeddings"
    keys += " num_attention_heads num_hidden_layers pad_token_id type_vocab_size vocab_size"
    config = model.config.to_dict()
    (folder / "config.json").write_text(json.dumps({key: config[key] for key in keys.split()}, indent=1) + "\n")
    modules = ["Transformer", "Pooling", *(["Dense"] if dense is not None else []), "Normalize"]
    paths = ["" if i == 0 else f"{i}_{kind}" for i, kind in enumerate(modules)]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(modules, paths))
    ]
    (folder / "modules.json").write_text(json.dumps(listed, indent=1) + "\n")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"pooling_mode_cls_token": pooling == "first", "pooling_mode_mean_tokens": pooling == "mean"}
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH, **modes}) + "\n")
    if prompts:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}) + "\n")
    if dense is not None:
        (folder / "2_Dense").mkdir(exist_ok=True)
        save_file({f"linear.{k}": v.contiguous() for k, v in dense.state_dict().items()}, folder / "2_Dense/model.safetensors")
        config = {"in_features": WIDTH, "out_features": dense.out_features, "bias": True}
        config["activation_function"] = "torch.nn.modules.linear.Identity"
        (folder / "2_Dense/config.json").write_text(json.dumps(config) + "\n")

    def run(text):
        ids = tokenizer.encode(text).ids
        ids = ids[: POSITIONS - 1] + [ids[-1]] if len(ids) > POSITIONS else ids
        with torch.no_grad():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
            rows = states[-1][0]
            vector = rows[0] if pooling == "first" else rows.mean(0)
            vector = dense(vector) if dense is not None else vector
            vector = torch.nn.functional.normalize(vector, dim=0)
        return ids, [state[0].numpy() for state in states], vector.numpy()

    # Three stretches of 64 tokens at most are enough to compare every layer.
    some = [ODD[9], texts()[0], texts()[5], ODD[8]]
    numbers, lengths = [], []
    for text in some:
        ids, states, _ = run(text)
        lengths.append(len(ids))
        numbers += [state.astype("<f4").tobytes() for state in states]
    numbers += [run(text)[2].astype("<f4").tobytes() for text in texts()]
    (folder / "reference.f32").write_bytes(b"".join(numbers))
    tokens = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in ODD + texts()[:100]]
    reference = {"layers_of": some, "lengths": lengths, "tokens": tokens}
    (folder / "reference.json").write_text(json.dumps(reference, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE.parent / "testdata/tiny", help="folder to write into")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    (out / "texts.json").write_text(json.dumps(texts(), ensure_ascii=False, indent=0) + "\n")
    sizes = dict(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=INNER,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager",
    )  # fmt: skip
    words = wordpiece()
    bert = dict(vocab_size=words.get_vocab_size(), max_position_embeddings=POSITIONS, layer_norm_eps=1e-12, **sizes)
    mean = shaken(BertModel(BertConfig(**bert), add_pooling_layer=False), 1)
    write(out, "bert-mean", words, mean, torch.float32, "mean", None)
    first = shaken(BertModel(BertConfig(**bert), add_pooling_layer=False), 2)
    torch.manual_seed(3)
    dense = torch.nn.Linear(WIDTH, 128).eval()
    prompts = {"query": "query: ", "document": ""}
    write(out, "bert-first", words, first, torch.bfloat16, "first", prompts, dense)
    pieces = unigram(out)
    config = XLMRobertaConfig(
        vocab_size=pieces.get_vocab_size(), max_position_embeddings=POSITIONS + 2, type_vocab_size=1, pad_token_id=1,
        bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5, **sizes,
    )  # fmt: skip
    xlmr = shaken(XLMRobertaModel(config, add_pooling_layer=False), 4)
    write(out, "xlmr-mean", pieces, xlmr, torch.float16, "mean", {"query": "query: ", "passage": "passage: "})


if __name__ == "__main__":
    main()
