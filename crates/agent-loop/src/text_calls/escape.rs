//! Escapes untrusted text so that it cannot open or close a call or a result.

use std::borrow::Cow;

/// The names of tags that delimit calls and results.
const NAMES: [&str; 2] = ["tool_call", "tool_result"];

/// Replaces the `<` of every tag of a call or a result by `&lt;`, in any case and spacing. All other text stays
/// unchanged, and text without such a tag is not copied. Linear.
///
/// Escaping an escaped text does not change it.
pub fn escape(text: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        if is_tag(&text[at + 1..]) {
            let out = out.get_or_insert_with(|| String::with_capacity(text.len() + 16));
            out.push_str(&text[copied..at]);
            out.push_str("&lt;");
            copied = at + 1;
        }
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Returns whether the text after a `<` is one of the names, with or without a slash.
fn is_tag(rest: &str) -> bool {
    // Models treat a tag with a few spaces in it as a tag; with more spaces it is not a tag.
    let mut start = rest;
    for _ in 0..4 {
        start = start.strip_prefix([' ', '\t', '/', '\u{200b}']).unwrap_or(start);
    }
    NAMES.iter().any(|name| start.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delimiters_are_escaped_and_nothing_else() {
        for (text, expected) in [
            ("a < b, <tool>, <em>", "a < b, <tool>, <em>"),
            ("<tool_call>{}</tool_call>", "&lt;tool_call>{}&lt;/tool_call>"),
            ("x</tool_result>y", "x&lt;/tool_result>y"),
            ("< / TOOL_Call>", "&lt; / TOOL_Call>"),
            ("<<tool_call>", "<&lt;tool_call>"),
            ("<tool_result call=\"1\">", "&lt;tool_result call=\"1\">"),
            ("<ü", "<ü"),
        ] {
            assert_eq!(escape(text), expected);
        }
        assert!(matches!(escape("a < b"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn escaped_text_holds_no_delimiter(parts in prop::collection::vec(
            prop::sample::select(vec!["<", "/", "tool_call", "tool_result", ">", " ", "&lt;", "ü", "{}", "\n"]), 0..20)) {
            let text = parts.concat();
            let escaped = escape(&text).into_owned();
            prop_assert!(!escaped.contains("<tool_call") && !escaped.contains("</tool_call"));
            prop_assert!(!escaped.contains("<tool_result") && !escaped.contains("</tool_result"));
            prop_assert_eq!(escape(&escaped).into_owned(), escaped);
        }
    }
}
