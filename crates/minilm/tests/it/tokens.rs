//! Which share of a text's words the tokenizer knows. That its ids are those of the original tokenizer is tested in
//! the repository's `benches/tests/tokens.rs`, which needs that tokenizer.

use minilm::WordPiece;

#[test]
fn known_share() {
    let check = |text: &str, expected: f32| {
        assert_eq!(WordPiece::bundled().known_share(text), expected, "{text:?}");
    };
    check("", 1.0);
    check("42 + 7 = 49!", 1.0);
    check("plain English words", 1.0);
    check("Crème brûlée, déjà vu", 1.0);
    check("Привет, мир", 0.0);
    check("知識", 0.0);
    check("한국어", 0.0);
    check("half наполовину", 0.5);
    check(&format!("two {}", "long".repeat(30)), 0.5);
    check("αβγ and the rest", 0.75);
}
