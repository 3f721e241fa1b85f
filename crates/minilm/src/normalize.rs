//! Text as the model was trained on it: cleaned, lower-cased, without accents; the general, slow path.
//!
//! The Unicode tables are those of two old crates, because the reference tokenizer uses them, and newer tables would
//! give other tokens for characters that were assigned later.

use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;

/// Appends `text` in normal form to `out`.
///
/// A text may be split before and after any ASCII character except control characters and normalized in parts, because
/// none of them combines with a neighbour.
pub(crate) fn normalize(text: &str, out: &mut String) {
    let spaced = text.chars().filter(|c| !is_dropped(*c)).flat_map(|c| {
        let around = is_ideograph(c).then_some(' ');
        let c = if is_space(c) { ' ' } else { c };
        around.into_iter().chain([c]).chain(around)
    });
    let bare = spaced.nfd().map(|(c, _)| c).filter(|c| c.is_ascii() || !c.is_mark_nonspacing());
    for c in bare {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else {
            out.extend(c.to_lowercase());
        }
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn is_dropped(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | ' '..='~' => false,
        '\u{fffd}' => true,
        c => c.is_other(),
    }
}

/// Whether a character is a word by itself: `[UNK]` or one token.
pub(crate) fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || (!c.is_ascii() && c.is_punctuation())
}

/// Whether a character is a word by itself like a Chinese one; kana and hangul form words.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}

/// Whether a letter belongs to the script that the model reads.
pub(crate) fn is_latin(letter: char) -> bool {
    matches!(letter,
        'a'..='z' | 'A'..='Z' | 'ª' | 'º'
        // Latin-1 to IPA, including two signs that are not letters; then its modifiers and extensions.
        | '\u{c0}'..='\u{2b8}'
        | '\u{1d00}'..='\u{1dbf}'
        | '\u{1e00}'..='\u{1eff}'
        | '\u{2071}' | '\u{207f}' | '\u{2090}'..='\u{209c}'
        | '\u{212a}' | '\u{212b}'
        | '\u{2c60}'..='\u{2c7f}'
        | '\u{a722}'..='\u{a7ff}'
        | '\u{ab30}'..='\u{ab6f}'
        | '\u{fb00}'..='\u{fb06}'
        | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        let check = |text: &str, expected: &str| {
            let mut out = String::new();
            normalize(text, &mut out);
            assert_eq!(out, expected, "{text:?}");
        };
        check("Crème BRÛLÉE", "creme brulee");
        check("e\u{301}te\u{301}", "ete");
        check("İstanbul", "istanbul");
        check("知識a", " 知  識 a");
        check("a\u{0}b\u{200b}c\u{ad}d\u{fffd}", "abcd");
        check("a\u{a0}b\u{3000}c\td", "a b c d");
        check("한", "\u{1112}\u{1161}\u{11ab}");
        check("ΣΑΣ", "σασ");
    }
}
