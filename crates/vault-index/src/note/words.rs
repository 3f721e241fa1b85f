//! How many words a text has: runs of letters and digits; each CJK character counts as one.

use unicode_normalization::char::is_combining_mark;

/// Counts words. One pass, no allocation.
pub(super) fn count(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut words = 0;
    let mut inside = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 0x80 {
            let letter = byte.is_ascii_alphanumeric();
            words += usize::from(letter && !inside);
            inside = letter;
            at += 1;
            continue;
        }
        let Some(c) = text[at..].chars().next() else { break };
        at += c.len_utf8();
        if is_cjk(c) {
            words += 1;
            inside = false;
        } else if c.is_alphanumeric() {
            words += usize::from(!inside);
            inside = true;
        } else if !is_combining_mark(c) {
            inside = false;
        }
    }
    words
}

/// Han, kana, bopomofo and Hangul syllables.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_runs_of_letters_and_digits() {
        for (text, expected) in [
            ("", 0),
            ("one two", 2),
            ("v1.2 plan", 3),
            ("don't", 2),
            ("**bold**ly", 2),
            ("re\u{301}sume\u{301}", 1),
            ("Grüße, Welt", 2),
            ("漢字かな", 4),
            ("a漢b", 3),
            ("हिन्दी भाषा", 2),
            ("🎉 --- 🎉", 0),
        ] {
            assert_eq!(super::count(text), expected, "{text:?}");
        }
    }
}
