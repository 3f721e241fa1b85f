//! Texts with NUL characters, which PostgreSQL cannot store: frontmatter and addresses can spell one.

use std::borrow::Cow;

/// Introduces a replaced character. It is not assigned, and replaced itself, so that every text comes back as it was.
const ESCAPE: char = '\u{10FFFE}';

/// The text as it is stored.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    match text.contains(['\0', ESCAPE]) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.replace(ESCAPE, "\u{10FFFE}1").replace('\0', "\u{10FFFE}0")),
    }
}

/// The text that [`escape`] stored.
pub(crate) fn unescape(text: String) -> String {
    match text.contains(ESCAPE) {
        false => text,
        true => text.replace("\u{10FFFE}0", "\0").replace("\u{10FFFE}1", "\u{10FFFE}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back(text in "[a01\0\u{10FFFE}]{0,12}") {
            let stored = escape(&text).into_owned();
            prop_assert!(!stored.contains('\0'));
            prop_assert_eq!(unescape(stored), text);
        }
    }
}
