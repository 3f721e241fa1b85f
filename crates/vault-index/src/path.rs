//! The path of a file in its vault, which is the same text on every operating system.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// A path inside a vault: relative, with `/` between segments, in NFC, without empty segments, `.` or `..`.
///
/// Ordered as text. It names a file, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VaultPath(String);

impl VaultPath {
    /// Parses a text with `/` (or, on Windows, `\`): `./` and doubled slashes are removed, `..` is resolved.
    ///
    /// `None` if the result is empty or leads out of the vault.
    pub fn new(text: &str) -> Option<Self> {
        let mut segments: Vec<&str> = Vec::new();
        let is_separator = |c: char| c == '/' || (cfg!(windows) && c == '\\');
        for segment in text.split(is_separator) {
            match segment {
                "" | "." => {}
                ".." => {
                    segments.pop()?;
                }
                other => segments.push(other),
            }
        }
        if segments.is_empty() {
            return None;
        }
        let joined = segments.join("/");
        Some(Self(if is_nfc(&joined) { joined } else { joined.nfc().collect() }))
    }

    /// Converts a path on disk, relative to the vault's root. Bytes that are not Unicode become U+FFFD, so two
    /// different files can have the same `VaultPath`; the code that walks the disk must check for that.
    pub fn from_disk(relative: &Path) -> Option<Self> {
        let mut joined = String::new();
        for component in relative.components() {
            let std::path::Component::Normal(segment) = component else { return None };
            if !joined.is_empty() {
                joined.push('/');
            }
            joined.push_str(&segment.to_string_lossy());
        }
        if joined.is_empty() {
            return None;
        }
        Some(Self(if is_nfc(&joined) { joined } else { joined.nfc().collect() }))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder of the file, without a trailing slash; empty for the vault's root.
    pub fn folder(&self) -> &str {
        self.0.rfind('/').map_or("", |at| &self.0[..at])
    }

    /// The last segment, extension included.
    pub fn file_name(&self) -> &str {
        self.0.rfind('/').map_or(&self.0, |at| &self.0[at + 1..])
    }

    /// The last segment without its extension. A leading dot does not start an extension.
    pub fn stem(&self) -> &str {
        let name = self.file_name();
        match name.rfind('.') {
            Some(at) if at > 0 => &name[..at],
            _ => name,
        }
    }

    /// The text after the last dot of the last segment, if it has one.
    pub fn extension(&self) -> Option<&str> {
        let name = self.file_name();
        match name.rfind('.') {
            Some(at) if at > 0 => Some(&name[at + 1..]),
            _ => None,
        }
    }

    /// The kind of file, according to the extension.
    pub fn kind(&self) -> FileKind {
        match self.extension() {
            Some(e) if e.eq_ignore_ascii_case("md") || e.eq_ignore_ascii_case("markdown") => FileKind::Markdown,
            Some(e) if e.eq_ignore_ascii_case("canvas") => FileKind::Canvas,
            _ => FileKind::Attachment,
        }
    }
}

impl fmt::Display for VaultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for VaultPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Whether a path is `place`, a file or folder, or is inside it.
pub(crate) fn is_within(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The number of a file in one index: of a note, a canvas or an attachment. A rename keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileId(pub u32);

/// The kind of a file in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A Markdown note (`.md`, `.markdown`).
    Markdown,
    /// A JSON Canvas (`.canvas`): a note too.
    Canvas,
    /// Anything else: a link target, never read.
    Attachment,
}

impl FileKind {
    /// Markdown and canvas files are notes.
    pub fn is_note(self) -> bool {
        self != Self::Attachment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normal() {
        for (input, expected) in [
            ("a/b.md", Some("a/b.md")),
            ("./a//b.md", Some("a/b.md")),
            ("a/../b.md", Some("b.md")),
            ("../b.md", None),
            ("a/../../b.md", None),
            ("", None),
            (".", None),
            ("/a.md", Some("a.md")),
            ("Cafe\u{301}.md", Some("Caf\u{e9}.md")),
        ] {
            assert_eq!(VaultPath::new(input).as_ref().map(VaultPath::as_str), expected, "{input:?}");
        }
    }

    #[test]
    fn parts_of_a_path() {
        let path = VaultPath::new("a/b/v1.2 plan.md").unwrap();
        assert_eq!(
            (path.folder(), path.file_name(), path.stem(), path.extension(), path.kind()),
            ("a/b", "v1.2 plan.md", "v1.2 plan", Some("md"), FileKind::Markdown)
        );
        for (name, kind) in [("a.MARKDOWN", FileKind::Markdown), ("a.mdx", FileKind::Attachment)] {
            assert_eq!(VaultPath::new(name).unwrap().kind(), kind, "{name}");
        }
        let hidden = VaultPath::new(".md").unwrap();
        assert_eq!((hidden.stem(), hidden.extension(), hidden.kind()), (".md", None, FileKind::Attachment));
    }
}
