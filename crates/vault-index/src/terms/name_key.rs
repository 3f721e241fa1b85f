//! The key by which names are compared: letters and digits without case, diacritics, punctuation and spaces.
//!
//! For example, `Quick Add`, `QuickAdd` and `quick-add` have the same key. A `+` or `#` at the end of a word stays, so
//! that `C`, `C++` and `C#` have different keys. The key of a name without letters and digits (`???`, an emoji)
//! consists of its characters.

use unicode_normalization::UnicodeNormalization;

use super::fold::Fold;
use super::script::{Class, class};

/// The most bytes of a key. A longer one ends with a hash of the whole key, so that names with the same beginning
/// differ.
const MAX_KEY: usize = 256;

const HASH_DIGITS: usize = 16;

/// Returns the key of a name. It is empty only for white space.
pub fn name_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    let mut fold = Fold::default();
    fold.clear(usize::MAX);
    let mut chars = name.chars().peekable();
    let mut ends_word = false;
    while let Some(c) = chars.next() {
        match class(c) {
            Class::Letter | Class::Mark | Class::Paired(_) => {
                fold.push(c);
                ends_word = true;
            }
            // After a letter, or after another such sign, but not before a letter: `C++`, not `a+b`.
            _ if matches!(c, '+' | '#') && ends_word => {
                let mut signs = String::from(c);
                while let Some(sign) = chars.next_if(|next| matches!(next, '+' | '#')) {
                    signs.push(sign);
                }
                if chars.peek().is_none_or(|next| !matches!(class(*next), Class::Letter | Class::Paired(_))) {
                    key.push_str(fold.finish());
                    key.push_str(&signs);
                    fold.clear(usize::MAX);
                }
                ends_word = false;
            }
            Class::Joiner => {}
            _ => ends_word = false,
        }
    }
    key.push_str(fold.finish());
    if key.is_empty() {
        key = name.split_whitespace().flat_map(str::chars).flat_map(char::to_lowercase).nfc().collect();
    }
    if key.len() > MAX_KEY {
        let hash = blake3::hash(key.as_bytes()).to_hex();
        key.truncate(key.floor_char_boundary(MAX_KEY - HASH_DIGITS));
        key.push_str(&hash[..HASH_DIGITS]);
    }
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_name_have_one_key() {
        for (names, key) in [
            (&["QuickAdd", "quick add", "Quick-Add", "quick_add", " QUICK  ADD "][..], "quickadd"),
            (&["2022-07-24", "2022 07 24", "20220724"], "20220724"),
            (&["Crème brûlée", "creme brulee", "Cre\u{300}me Bru\u{302}le\u{301}e"], "cremebrulee"),
            (&["Straße", "STRASSE"], "strasse"),
            (&["R&D", "r & d", "RD"], "rd"),
            (&["🎉 Party", "party!"], "party"),
            (&["最佳实践", " 最佳 实践"], "最佳实践"),
            (&["한국어", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"], "한국어"),
            (&["don't panic", "Don’t Panic"], "dontpanic"),
            (&["a+b", "A b"], "ab"),
            (&["Issue #14"], "issue14"),
            (&["C++", "c++"], "c++"),
            (&["C#"], "c#"),
            (&["C", "c"], "c"),
            (&["C# basics"], "c#basics"),
            (&["Notepad++ (tips)"], "notepad++tips"),
            (&["???", "? ? ?"], "???"),
            (&["🎉"], "🎉"),
            (&["++"], "++"),
            (&["", " \t"], ""),
        ] {
            names.iter().for_each(|name| assert_eq!(name_key(name), key, "{name:?}"));
        }
    }

    #[test]
    fn long_names_that_begin_alike_differ() {
        let long = "word ".repeat(100);
        let (one, other) = (name_key(&format!("{long}one")), name_key(&format!("{long}two")));
        assert_eq!(one, name_key(&format!("{}-ONE", long.to_uppercase())));
        assert!(one != other && one.len() == MAX_KEY && other.starts_with(&name_key("word word word")));
        assert!(name_key(&"京".repeat(500)).len() <= MAX_KEY);
    }

    proptest! {
        #[test]
        fn keys_are_short_and_know_no_case(name in "\\PC{0,40}") {
            let key = name_key(&name);
            prop_assert!(key.len() <= MAX_KEY);
            prop_assert_eq!(key.is_empty(), name.trim().is_empty());
            prop_assert_eq!(&name_key(&format!(" {}", name.to_ascii_uppercase())), &key);
        }
    }
}
