//! SafePath: a path from any source, verified to be that of a file or folder in the vault.

use std::fmt;

use serde::{Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;
use vault_index::{FileKind, VaultPath};

use crate::error::{Error, ErrorKind, Result};

/// The maximum length of a file or folder name in bytes, which is the limit of the usual file systems.
const MAX_NAME: usize = 255;

/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 1024;

/// A path inside the vault that a tool may use: relative, `/` between names, NFC, nothing hidden, no `..`. Existing
/// files may have any other name; new ones may not.
///
/// It does not tell whether the file exists. Symbolic links on the way are refused when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SafePath(VaultPath);

impl SafePath {
    /// Parses a path from a tool's caller. `./` at the front, doubled slashes and a slash at the end are dropped.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPath`] for a path that is absolute, has a drive letter or a scheme, contains a `..`, a
    /// backslash or a control character, is hidden, ends in a dot or a space, or is a name that Windows reserves.
    pub fn new(text: &str) -> Result<Self> {
        Self::with_names(text, |_| false)
    }

    /// Like [`SafePath::new`], but accepts a name that no new file may have if `is_there` reports that it exists.
    ///
    /// # Errors
    /// The errors of [`SafePath::new`].
    pub fn new_or_existing(text: &str, is_there: impl Fn(&Self) -> bool) -> Result<Self> {
        // On Windows, such a name refers to another file, or to a device.
        Self::with_names(text, |path| !cfg!(windows) && is_there(path))
    }

    fn with_names(text: &str, is_there: impl Fn(&Self) -> bool) -> Result<Self> {
        let refuse = |why: &str| Err(Error::invalid_path(text, why).with_remedy(REMEDY));
        let path: String = text.nfc().collect();
        if path.starts_with('/') {
            return refuse("is absolute");
        }
        if path.len() > MAX_PATH {
            return refuse("is too long");
        }
        let mut so_far = String::new();
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            let is_first = so_far.is_empty();
            so_far.push_str(if is_first { "" } else { "/" });
            so_far.push_str(name);
            if let Some(why) = not_in_vault(name) {
                return refuse(why);
            }
            if let Some(why) = bad_name(name, is_first)
                && !VaultPath::new(&so_far).is_some_and(|path| is_there(&Self(path)))
            {
                return refuse(why);
            }
        }
        VaultPath::new(&so_far).map(Self).map_or_else(|| refuse("names nothing"), Ok)
    }

    /// Creates the path of a name that was found in a folder; `None` for a hidden one.
    pub(super) fn listed(folder: Option<&Self>, name: &str) -> Option<Self> {
        if name.starts_with('.') {
            return None;
        }
        VaultPath::new(&folder.map_or(name.to_owned(), |folder| format!("{folder}/{name}"))).map(Self)
    }

    /// Creates a path that the sandbox found on the disk; `None` for a hidden one.
    pub(crate) fn found(path: VaultPath) -> Option<Self> {
        (!is_hidden(path.as_str())).then_some(Self(path))
    }

    /// Creates a path in the vault's trash, which is the only hidden folder that is written to, and never by a name
    /// from a caller.
    pub(crate) fn in_trash(rest: &str) -> Option<Self> {
        if rest.split('/').any(|name| name == "..") {
            return None;
        }
        VaultPath::new(&format!("{TRASH}/{rest}")).map(Self)
    }

    /// Parses a path from a journal.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`] for a path that no recorded action can have.
    pub(crate) fn recorded(text: &str) -> Result<Self> {
        let path = VaultPath::new(text).filter(|path| path.as_str() == text);
        let inside = |path: &VaultPath| {
            let shown = path.as_str().strip_prefix(TRASH).map_or(path.as_str(), |rest| rest.trim_start_matches('/'));
            !is_hidden(shown)
        };
        match path.filter(inside) {
            Some(path) => Ok(Self(path)),
            None => Err(Error::new(ErrorKind::Journal, "the journal names a path outside of the vault").at(text)),
        }
    }

    /// Checks that a file or folder may be created with this name: one that links can lead to, on every system.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPath`] with the offending character.
    pub fn check_new(&self) -> Result<()> {
        self.as_str().split('/').try_for_each(check_new_name)
    }

    /// Converts a value to one name in a path. Characters that file names cannot contain, that links could not lead to
    /// or that would begin a new line become `-`; dots and white space at both ends are removed. Never empty.
    pub fn segment(text: &str) -> String {
        let text: String = text.nfc().collect();
        let plain = |c: char| {
            if matches!(c, '\u{200b}' | '\u{feff}') {
                return None;
            }
            if c == '\u{a0}' {
                return Some(' ');
            }
            let bad = c.is_control()
                || matches!(c, '/' | '\\' | ':' | '\u{2028}' | '\u{2029}')
                || is_unlinkable(c)
                || is_direction_mark(c)
                || is_refused_by_windows(c);
            Some(if bad { '-' } else { c })
        };
        let is_end = |c: char| c == '.' || c.is_whitespace();
        let name: String = text.trim().chars().filter_map(plain).collect();
        let name = name.trim_start_matches(is_end).trim_end_matches(is_end);
        let mut end = name.len().min(MAX_NAME - 55);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = name[..end].trim_end_matches(is_end);
        match name {
            "" => "-".to_string(),
            // A reserved device name remains one whatever follows its first dot.
            reserved if is_reserved(reserved) => {
                let (device, rest) = reserved.split_at(reserved.find('.').unwrap_or(reserved.len()));
                format!("{device}-{rest}")
            }
            name => name.to_string(),
        }
    }

    /// Formats a path for a message: characters that look like a space, or are invisible, are named.
    pub(crate) fn visible(text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            if is_disguised(c) {
                shown.push_str(&format!("<U+{:04X}>", u32::from(c)));
            } else {
                shown.push(c);
            }
        }
        shown
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the path in the form of the index.
    pub fn vault_path(&self) -> &VaultPath {
        &self.0
    }

    /// Returns the folder that contains it; `None` for the vault's root.
    pub fn parent(&self) -> Option<Self> {
        VaultPath::new(self.0.folder()).map(Self)
    }

    /// Returns the path of a file or folder below this one.
    ///
    /// # Errors
    /// The errors of [`SafePath::new`].
    pub fn join(&self, rest: &str) -> Result<Self> {
        Self::new_or_existing(&format!("{self}/{rest}"), |path| self.is_in(path))
    }

    /// Returns the last name.
    pub fn file_name(&self) -> &str {
        self.0.file_name()
    }

    /// Returns the last name without its extension.
    pub fn stem(&self) -> &str {
        self.0.stem()
    }

    /// Returns the text after the last dot of the last name.
    pub fn extension(&self) -> Option<&str> {
        self.0.extension()
    }

    /// Returns whether it has the extension of a Markdown note.
    pub fn is_markdown(&self) -> bool {
        self.0.kind() == FileKind::Markdown
    }

    /// Returns whether it has the extension of a note: Markdown or canvas.
    pub fn is_note(&self) -> bool {
        self.0.kind().is_note()
    }

    /// Returns whether it is in the vault's trash.
    pub(crate) fn is_in_trash(&self) -> bool {
        self.as_str().split('/').next() == Some(TRASH)
    }

    /// Returns whether it is a folder or below it.
    pub fn is_in(&self, folder: &Self) -> bool {
        self.below(folder).is_some()
    }

    /// Returns the rest of its path after the folder, beginning with `/`; empty for the folder itself.
    pub(crate) fn below(&self, folder: &Self) -> Option<&str> {
        self.as_str().strip_prefix(folder.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the corresponding path below another folder.
    pub(crate) fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        VaultPath::new(&format!("{to}{}", self.below(from)?)).map(Self)
    }
}

/// Checks that a file or folder may be created with a name.
pub(crate) fn check_new_name(name: &str) -> Result<()> {
    let refuse = |why: String, remedy: String| {
        let name = SafePath::visible(name);
        Err(Error::new(ErrorKind::InvalidPath, format!("Invalid path: the name {name:?} {why}")).with_remedy(remedy))
    };
    let instead = || format!("use the name {:?}", SafePath::segment(name));
    for c in name.chars() {
        if is_unlinkable(c) {
            return refuse(format!("holds {c:?}, so no link could lead to it"), instead());
        }
        if c == ':' || is_direction_mark(c) || is_refused_by_windows(c) {
            return refuse(format!("holds {c:?}, which not every system takes"), instead());
        }
        if is_disguised(c) {
            let shown = SafePath::visible(c.encode_utf8(&mut [0; 4]));
            return refuse(format!("holds {shown}, which looks like a space or is invisible"), instead());
        }
    }
    if name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        return refuse("begins or ends with white space, which links drop".to_string(), instead());
    }
    if name.len() > MAX_NAME {
        return refuse("is too long".to_string(), format!("use at most {MAX_NAME} bytes"));
    }
    Ok(())
}

const REMEDY: &str = "give the path from the vault's root, such as Folder/Note.md";

const TRASH: &str = ".trash";

/// Returns the reason that no path of a tool may contain a name.
fn not_in_vault(name: &str) -> Option<&'static str> {
    match name {
        ".." => Some("has a `..` in it"),
        _ if name.starts_with('.') => Some("is hidden"),
        _ => None,
    }
}

/// Returns the reason that nothing new may have a name.
fn bad_name(name: &str, is_first: bool) -> Option<&'static str> {
    if name.chars().any(char::is_control) {
        return Some("has a control character in it");
    }
    if name.contains('\\') {
        return Some("has a backslash in it; folders are separated by /");
    }
    if is_first && has_scheme(name) {
        return Some("begins with a drive letter or a scheme");
    }
    if name.ends_with(['.', ' ']) {
        return Some("has a name that ends in a dot or a space");
    }
    if name == "~" {
        return Some("begins in a home folder");
    }
    is_reserved(name).then_some("has a name that Windows reserves")
}

/// Returns whether a name begins with a letter, then letters, digits, `+`, `-`, `.`, then `:`. This includes a drive
/// letter.
fn has_scheme(name: &str) -> bool {
    let Some((scheme, _)) = name.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

/// Returns whether a name is a device name of Windows, whatever extension it has.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let Some(port) = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) else { return false };
    matches!(port, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
}

/// Returns whether a character ends the path in a link, or the link.
fn is_unlinkable(c: char) -> bool {
    matches!(c, '#' | '^' | '[' | ']' | '|')
}

/// Returns whether a character is one that Obsidian reads as a plain space in a link, that separates lines, or that has
/// no width.
fn is_disguised(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Returns whether a character makes a name look different from how it is written.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_refused_by_windows(c: char) -> bool {
    matches!(c, '<' | '>' | '"' | '?' | '*')
}

impl fmt::Display for SafePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl AsRef<str> for SafePath {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Serialize for SafePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Whatever is said to be there: nothing hidden, nothing outside, and nothing that strict rules would read otherwise.
        #[test]
        fn no_name_leads_out(text in "(/|\\.|\\.\\.|~|[a-zA-Z]:|\\\\|\\PC|\\x00|\n| |aux){0,12}", is_there in proptest::bool::ANY) {
            let strict = SafePath::new(&text);
            let Ok(path) = SafePath::new_or_existing(&text, |_| is_there) else {
                proptest::prop_assert!(strict.is_err());
                return Ok(());
            };
            proptest::prop_assert!(!path.as_str().starts_with('/') && !is_hidden(path.as_str()), "{path:?}");
            proptest::prop_assert!(strict.is_ok_and(|strict| strict == path) || (is_there && cfg!(not(windows))));
        }
    }

    #[test]
    fn new_names_have_no_white_space_but_plain() {
        for (name, shown, instead) in [
            ("x\u{a0}y.md", "\"x<U+00A0>y.md\" holds <U+00A0>", "\"x y.md\""),
            ("x\u{200b}y.md", "<U+200B>", "\"xy.md\""),
            ("x\u{2028}y.md", "<U+2028>", "\"x-y.md\""),
            ("\u{feff}y.md", "<U+FEFF>", "\"y.md\""),
            (" y.md", "white space", "\"y.md\""),
            ("y.md\u{3000}", "white space", "\"y.md\""),
            ("\u{2003}", "white space", "\"-\""),
        ] {
            // What is there already under such a name can be named all the same.
            let path = SafePath::new(&format!("f/{name}")).unwrap();
            let refused = path.check_new().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidPath, "{name:?}");
            let refused = refused.to_string();
            assert!(refused.contains(shown) && refused.contains(instead), "{refused}");
            check_new_name(&SafePath::segment(name)).unwrap();
        }
        check_new_name("日本\u{3000}語.md").unwrap();
        assert_eq!(SafePath::segment(". \u{3000}a\u{a0}b\u{200b} ."), "a b");
    }
}
