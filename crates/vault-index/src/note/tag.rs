//! Tags: which characters they have, when two are the same, and which of them a search for a tag finds.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// A tag as a person wrote it, without its `#`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tag {
    /// The first spelling in the note, with its case: `Inbox/To-Read`.
    pub shown: String,
}

impl Tag {
    /// The key for comparisons.
    pub fn key(&self) -> TagKey {
        TagKey::new(&self.shown)
    }
}

/// The key by which tags are compared: NFC, lower case in full Unicode, without `#`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TagKey(String);

impl TagKey {
    /// Creates the key of a tag with or without `#`, without surrounding white space and trailing slashes.
    pub fn new(tag: &str) -> Self {
        let tag = tag.trim();
        let tag = tag.strip_prefix('#').unwrap_or(tag).trim_end_matches('/');
        if tag.is_ascii() {
            return Self(tag.to_ascii_lowercase());
        }
        let lower = tag.to_lowercase();
        Self(if is_nfc(&lower) { lower } else { lower.nfc().collect() })
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a search for `self` finds a note tagged `other`: `inbox` covers `inbox` and
    /// `inbox/x`, not `inboxes`.
    pub fn covers(&self, other: &TagKey) -> bool {
        other.0.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Tags in order, each once.
#[derive(Debug, Default)]
pub(super) struct Tags {
    list: Vec<Tag>,
    keys: HashSet<TagKey>,
}

impl Tags {
    /// Adds a tag (without its `#`) unless it is already present in any case.
    pub(super) fn add(&mut self, shown: &str) {
        if self.list.iter().take(8).any(|tag| tag.shown == shown) {
            return;
        }
        if self.keys.insert(TagKey::new(shown)) {
            self.list.push(Tag { shown: shown.to_owned() });
        }
    }

    pub(super) fn into_list(self) -> Vec<Tag> {
        self.list
    }
}

/// The tag that follows a `#`, without trailing slashes; `None` if it is not a tag.
///
/// The caller must check the text before the `#`.
pub(super) fn inline_tag(after_hash: &str) -> Option<&str> {
    let end = after_hash.find(|c| !is_tag_char(c)).unwrap_or(after_hash.len());
    let tag = after_hash[..end].trim_end_matches('/');
    names_something(tag).then_some(tag)
}

/// Whether a text, without its `#`, is a valid tag everywhere, including the body.
pub fn is_inline_tag(tag: &str) -> bool {
    inline_tag(tag) == Some(tag)
}

/// A tag of the frontmatter, without the optional `#`; `None` if it is not a valid tag.
///
/// The frontmatter allows all characters except white space.
pub(super) fn frontmatter_tag(item: &str) -> Option<&str> {
    let item = item.trim();
    let tag = item.strip_prefix('#').unwrap_or(item).trim_end_matches('/');
    (!tag.contains(char::is_whitespace) && names_something(tag)).then_some(tag)
}

/// Whether a tag has at least one character that is not a digit; for example, `#1984` is not a tag. Marks that only
/// modify the previous character, as in a keycap emoji, do not count.
fn names_something(tag: &str) -> bool {
    tag.chars().any(|c| !c.is_numeric() && !is_combining_mark(c) && c != '\u{200d}')
}

fn is_tag_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    }
    // In Obsidian all characters of these blocks end a tag: dashes, quotes, and also `‼` and the joiner of emoji.
    let ends = matches!(c, '\u{2000}'..='\u{206f}' | '\u{2e00}'..='\u{2e7f}');
    !ends && (c.is_alphanumeric() || is_combining_mark(c) || is_emoji_part(c))
}

/// Emoji: whole Unicode blocks instead of the exact property, so that emoji newer than this program are included.
fn is_emoji_part(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{fe0e}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}'
        | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_tags() {
        for (after_hash, expected) in [
            ("inbox", Some("inbox")),
            ("inbox/to-read done", Some("inbox/to-read")),
            ("1984", None),
            ("y1984", Some("y1984")),
            ("1984a", Some("1984a")),
            ("2024/01", Some("2024/01")),
            ("inbox/", Some("inbox")),
            ("1984/", None),
            ("/", None),
            ("", None),
            (" a", None),
            ("a.b", Some("a")),
            ("a,b", Some("a")),
            ("a#b", Some("a")),
            ("a*b*", Some("a")),
            ("snake_case_", Some("snake_case_")),
            ("Überprüfung!", Some("Überprüfung")),
            ("日本語、x", Some("日本語")),
            ("हिन्दी।", Some("हिन्दी")),
            ("🎉party", Some("🎉party")),
            ("👩‍💻", Some("👩")),
            ("a‼b", Some("a")),
            ("a\u{200b}b", Some("a")),
            ("a\u{2e2f}b", Some("a")),
            ("✅", Some("✅")),
            ("\u{fe0f}\u{20e3}", None),
            ("a—b", Some("a")),
            ("it’s", Some("it")),
        ] {
            assert_eq!(inline_tag(after_hash), expected, "{after_hash:?}");
        }
    }

    #[test]
    fn frontmatter_tags() {
        for (item, expected) in [
            ("a", Some("a")),
            ("#a", Some("a")),
            (" a/b/ ", Some("a/b")),
            ("two words", None),
            ("1984", None),
            ("", None),
            ("#", None),
            ("c++", Some("c++")),
        ] {
            assert_eq!(frontmatter_tag(item), expected, "{item:?}");
        }
    }

    #[test]
    fn a_search_finds_nested_tags() {
        for (query, tag, expected) in [
            ("inbox", "inbox", true),
            ("#Inbox", "INBOX/x", true),
            ("inbox", "inboxes", false),
            ("inbox/x", "inbox", false),
            ("inbox/", "inbox/x/y", true),
            ("ÄRGER", "ärger", true),
            ("cafe\u{301}", "CAFÉ", true),
        ] {
            assert_eq!(TagKey::new(query).covers(&TagKey::new(tag)), expected, "{query} {tag}");
        }
    }
}
