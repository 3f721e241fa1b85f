//! Splits the inside of a link, `path#subpath|display`, and Markdown destinations. Syntax only.

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The parts of a link, as text. Paths and subpaths are NFC, trimmed, with plain spaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkText {
    /// The target file; empty for the note that contains the link.
    pub path: String,
    /// The text after the first `#`.
    pub subpath: Option<String>,
    /// The display text, or an image's size: as written, trimmed.
    pub display: Option<String>,
}

impl LinkText {
    /// Whether the link is empty, as in `[[ ]]` and `[[#]]`.
    pub fn is_empty(&self) -> bool {
        self.path.is_empty() && self.subpath.is_none()
    }
}

/// Splits the inside of `[[…]]` at the first `|` (`\|` in a table), then at the first `#`.
pub fn split_link(inner: &str) -> LinkText {
    let (target, display) = match inner.find('|') {
        Some(at) => {
            let target = &inner[..at];
            (target.strip_suffix('\\').unwrap_or(target), Some(inner[at + 1..].trim()))
        }
        None => (inner, None),
    };
    let (path, subpath) = cut_subpath(target);
    LinkText {
        path: tidy(path),
        subpath: subpath.map(tidy).filter(|s| !s.is_empty()),
        display: display.filter(|d| !d.is_empty()).map(|d| d.replace("\\|", "|")),
    }
}

/// Splits the destination of `[…](…)`; `None` if it leads out of the vault or is empty.
///
/// It is split at the first `#` before percent-decoding, so `%23` is part of a name.
pub(super) fn destination(dest: &str) -> Option<LinkText> {
    let dest = dest.trim();
    if is_external(dest) {
        return None;
    }
    let (path, subpath) = cut_subpath(dest);
    let link = LinkText {
        path: tidy(&decode(path)),
        subpath: subpath.map(|s| tidy(&decode(s))).filter(|s| !s.is_empty()),
        display: None,
    };
    (!link.is_empty()).then_some(link)
}

fn cut_subpath(target: &str) -> (&str, Option<&str>) {
    match target.split_once('#') {
        Some((path, subpath)) => (path, Some(subpath)),
        None => (target, None),
    }
}

/// Whether a destination has a scheme (RFC 3986: a letter, then letters, digits, `+`, `-`, `.`, then `:`) or a host.
fn is_external(dest: &str) -> bool {
    if dest.starts_with("//") {
        return true;
    }
    let Some(colon) = dest.find(':') else { return false };
    let mut scheme = dest[..colon].bytes();
    scheme.next().is_some_and(|b| b.is_ascii_alphabetic())
        && scheme.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Percent-decodes a text; returns it unchanged if the result would not be UTF-8.
fn decode(text: &str) -> std::borrow::Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(text.into())
}

/// Trimmed, NFC, with plain spaces.
pub(crate) fn tidy(text: &str) -> String {
    let text = text.trim();
    if text.is_ascii() {
        return text.to_owned();
    }
    let spaced = text.replace('\u{a0}', " ");
    if is_nfc(&spaced) { spaced } else { spaced.nfc().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(link: LinkText) -> (String, Option<String>, Option<String>) {
        (link.path, link.subpath, link.display)
    }

    #[test]
    fn wikilinks() {
        for (inner, path, subpath, display) in [
            ("a", "a", None, None),
            (" a ", "a", None, None),
            ("a|b", "a", None, Some("b")),
            ("a\\|b", "a", None, Some("b")),
            ("a\\|b\\|100", "a", None, Some("b|100")),
            ("a| b | c ", "a", None, Some("b | c")),
            ("a|", "a", None, None),
            ("a#h|b", "a", Some("h"), Some("b")),
            ("a # h", "a", Some("h"), None),
            ("#h", "", Some("h"), None),
            ("a#h1#h2", "a", Some("h1#h2"), None),
            ("a#^id", "a", Some("^id"), None),
            ("a#", "a", None, None),
            ("a|b#c", "a", None, Some("b#c")),
            ("a\u{a0}b", "a b", None, None),
            ("\u{a0}a\u{a0}", "a", None, None),
            ("cafe\u{301}", "caf\u{e9}", None, None),
            ("f/a.md", "f/a.md", None, None),
            ("img.png|640x480", "img.png", None, Some("640x480")),
            ("x.pdf#page=3", "x.pdf", Some("page=3"), None),
            ("50%20off", "50%20off", None, None),
            ("", "", None, None),
        ] {
            let got = parts(split_link(inner));
            let want = (path.into(), subpath.map(str::to_owned), display.map(str::to_owned));
            assert_eq!(got, want, "{inner:?}");
        }
    }

    #[test]
    fn markdown_destinations() {
        for (dest, expected) in [
            ("b.md", Some(("b.md", None))),
            ("a%20b.md#My%20Head", Some(("a b.md", Some("My Head")))),
            ("a%23b.md", Some(("a#b.md", None))),
            ("#Head", Some(("", Some("Head")))),
            ("./x/../b", Some(("./x/../b", None))),
            ("bad%FF.md", Some(("bad%FF.md", None))),
            ("100%.md", Some(("100%.md", None))),
            ("caf%C3%A9.md", Some(("café.md", None))),
            ("a%C2%A0b", Some(("a b", None))),
            ("https://a.b/c", None),
            ("mailto:a@b.c", None),
            ("obsidian://open?vault=x", None),
            ("//host/x", None),
            ("", None),
            ("#", None),
            ("a b:c.md", Some(("a b:c.md", None))),
            ("x/y:z.md", Some(("x/y:z.md", None))),
        ] {
            let got = destination(dest).map(|l| (l.path, l.subpath));
            let want = expected.map(|(p, s)| (p.to_owned(), s.map(str::to_owned)));
            assert_eq!(got, want, "{dest:?}");
        }
    }
}
