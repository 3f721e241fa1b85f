//! The tokenizers give the ids of the original ones, on any text.

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use minilm::{CompileOptions, Model, ModelFolder, WordPiece};
use proptest::prelude::*;
use tokenizers::Tokenizer;

static ORIGINAL: LazyLock<Tokenizer> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/minilm/testdata/tokenizer.json");
    let mut tokenizer = Tokenizer::from_file(path).unwrap();
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).unwrap();
    tokenizer
});

/// A unigram tokenizer: the original one, and ours in a model's file.
static UNIGRAM: LazyLock<(Tokenizer, Model)> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/minilm/testdata/tiny/xlmr-mean");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("model");
    ModelFolder::open(&folder)
        .unwrap()
        .compile(&file, &CompileOptions::default(), &AtomicBool::new(false), &|_| ())
        .unwrap();
    // Mapped: it stays when the folder is deleted.
    (Tokenizer::from_file(folder.join("tokenizer.json")).unwrap(), Model::open(&file).unwrap())
});

fn check(text: &str) {
    let (original, ours) = &*UNIGRAM;
    let expected = original.encode(text, false).unwrap();
    assert_eq!(ours.tokens(text), expected.get_ids(), "{text:?} is {:?}", expected.get_tokens());
    let expected = ORIGINAL.encode(text, false).unwrap();
    let ours = WordPiece::bundled();
    assert_eq!(ours.encode(text), expected.get_ids(), "{text:?} is {:?}", expected.get_tokens());
    assert_eq!(ours.count(text), expected.len(), "{text:?}");
}

#[test]
fn nasty_samples() {
    for text in [
        "",
        " ",
        "\n\t \r\n",
        "hello",
        "Hello, World!",
        "don't stop",
        "don’t “quote” — dash…",
        "unaffable embeddings tokenization",
        "😀 emoji 👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽",
        "a😀b",
        "知識グラフ と 人工智能",
        "한국어 문장입니다",
        "e\u{301}e\u{301} n\u{303} a\u{325}\u{301}",
        "\u{301}starts with a mark",
        "-\u{301}-",
        "İstanbul ISPARTA ıssız",
        "ΣΊΣΥΦΟΣ",
        "zero\u{200b}width\u{200c}joi\u{200d}ner\u{feff}",
        "soft\u{ad}hyphen",
        "private\u{e000}use \u{f0000}",
        "replacement \u{fffd} character",
        "null\0inside and \u{7f} delete",
        "vertical\u{b}tab form\u{c}feed next\u{85}line",
        "no\u{a0}break\u{3000}wide\u{2028}line",
        "right-to-left \u{202e}override שלום مرحبا",
        "हिन्दी में लिखा",
        "ภาษาไทย",
        "ﬁne ﬂow ｆｕｌｌ ｗｉｄｔｈ",
        "Å Å ℵ № ™ ½",
        "x²+y³=z⁴",
        "[CLS] [SEP] [MASK] [PAD] [UNK]",
        "[cls] [[CLS]] [CLS",
        "a[SEP]b é[MASK]é",
        "##ing ## # #tag ###",
        "<s> </s>  <mask> a<mask>b <unk><pad> ＜s＞ < s> <S>",
        "▁under ▁▁ a▁b ▁",
        "$100.50 €20 £3 ¥4 `code` ^ ~ | < >",
        "https://example.org/a?b=c&d=%20#e",
        "snake_case camelCase kebab-case",
        "\u{302e}\u{302f} \u{16ff0}",
        "\u{1d15e}\u{1d160} \u{2f800}\u{2fa1d} \u{9fff}\u{a000}",
    ] {
        check(text);
    }
    for len in [99, 100, 101, 102, 300] {
        check(&"a".repeat(len));
        check(&"A1".repeat(len / 2));
        check(&"é".repeat(len));
        check(&"жук".repeat(len / 3));
        check(&format!("before {} after", "é".repeat(len) + "x"));
        check(&("\u{ad}".repeat(9) + &"b".repeat(len)));
    }
}

#[test]
fn every_character_alone_and_inside_a_word() {
    let mut text = String::new();
    for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
        text.extend(['x', c, 'y', ' ', c, ' ']);
        if text.len() > 4000 {
            check(&text);
            text.clear();
        }
    }
    check(&text);
}

#[test]
fn the_references_texts() {
    let texts: Vec<String> = serde_json::from_str(include_str!("../../crates/minilm/testdata/texts.json")).unwrap();
    texts.iter().for_each(|text| check(text));
}

/// Characters that meet in words: letters with marks, joiners, controls, other scripts.
fn mixed() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        6 => prop::char::range(' ', '~'),
        1 => prop::char::range('\0', '\u{1f}'),
        2 => prop::char::range('\u{80}', '\u{17f}'),
        2 => prop::char::range('\u{300}', '\u{36f}'),
        1 => prop::char::range('\u{370}', '\u{6ff}'),
        1 => prop::char::range('\u{900}', '\u{e7f}'),
        1 => prop::char::range('\u{1100}', '\u{11ff}'),
        1 => prop::char::range('\u{2000}', '\u{20ff}'),
        1 => prop::char::range('\u{3000}', '\u{30ff}'),
        1 => prop::char::range('\u{4e00}', '\u{9fff}'),
        1 => prop::char::range('\u{ac00}', '\u{d7a3}'),
        1 => any::<char>(),
    ];
    prop::collection::vec(character, 0..60).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_mixture(text in mixed()) {
        check(&text);
    }

    #[test]
    fn pieces_of_words(text in "[a-zA-Z]{1,30}( |-|'|\\.)?[a-z0-9]{0,120}") {
        check(&text);
    }
}
