//! Matches paths with a `path:` pattern: globs over characters of any script, with case folded.

use globset::GlobBuilder;
use regex::{Regex, RegexBuilder};
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, ErrorKind, Result};
use crate::path::VaultPath;

/// A `path:` pattern: a glob that matches a note's path, the name of a folder, which matches everything below it, or
/// the path of a note without `.md`. Case is folded, as in the file systems of two of our three operating systems.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern(Regex);

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] when it is empty, or an invalid glob.
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        // Paths are NFC, so the pattern must be too: then `?` and `[…]` match a letter with its accent.
        let normal: String = pattern.trim().nfc().collect();
        let stem = normal.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
        let bad = |message: String| {
            Error::new(ErrorKind::Query, message)
                .with_remedy("write a folder, a note's path, or a glob such as Daily/2026-*.md")
        };
        if stem.is_empty() || stem == "." {
            return Err(bad(format!("`{pattern}` names no folder or note")));
        }
        let mut globs = vec![stem.to_string(), format!("{stem}/**")];
        let has_extension = |extension: &str| stem.to_lowercase().ends_with(extension);
        if ![".md", ".markdown", ".canvas"].into_iter().any(has_extension) {
            globs.extend([format!("{stem}.md"), format!("{stem}.markdown")]);
        }
        let mut parts = Vec::with_capacity(globs.len());
        for glob in globs {
            let glob = GlobBuilder::new(&glob)
                .literal_separator(true)
                .build()
                .map_err(|error| bad(format!("`{pattern}` is not a path pattern")).because(error.kind().to_string()))?;
            parts.push(characters(glob.regex()));
        }
        let regex = RegexBuilder::new(&parts.join("|")).case_insensitive(true).dot_matches_new_line(true).build();
        regex.map(Self).map_err(|error| bad(format!("`{pattern}` is not a path pattern")).because(error))
    }

    /// Whether the pattern matches this path.
    pub(crate) fn matches(&self, path: &VaultPath) -> bool {
        self.0.is_match(path.as_str())
    }
}

/// Converts a glob's regular expression from bytes to characters. The glob library writes a non-ASCII letter as a
/// series of `\xNN`, so that `?` would match a part of it, and its case would not fold.
fn characters(regex: &str) -> String {
    let mut out = String::with_capacity(regex.len());
    let mut letter: Vec<u8> = Vec::new();
    let mut rest = regex.strip_prefix("(?-u)").unwrap_or(regex);
    while let Some(next) = rest.chars().next() {
        let byte = rest.strip_prefix("\\x").and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        // Any other backslash belongs to the next character, which may be a backslash.
        let length = match (byte, next) {
            (Some(_), _) => 4,
            (None, '\\') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, next) => next.len_utf8(),
        };
        match byte {
            Some(byte) => {
                letter.push(byte);
                if let Ok(text) = std::str::from_utf8(&letter) {
                    out.push_str(text);
                    letter.clear();
                }
            }
            None => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_patterns() {
        fn check(pattern: &str, path: &str, expected: bool) {
            let matched = PathPattern::new(pattern).unwrap().matches(&VaultPath::new(path).unwrap());
            assert_eq!(matched, expected, "{pattern} on {path}");
        }
        check("Daily", "Daily/2026-03-01.md", true);
        check("Daily/", "Daily/a/b.md", true);
        check("daily", "Daily/x.md", true);
        check("Daily", "Dailyx/x.md", false);
        check("a/Note", "a/Note.md", true);
        check("a/Note", "a/Note.markdown", true);
        check("a/Note.md", "a/Note.md", true);
        check("a/Note.md", "a/Note.md.md", false);
        check("*.md", "a/Note.md", false);
        check("**/*.md", "a/Note.md", true);
        check("Daily/2026-0[12]-*", "Daily/2026-02-03.md", true);
        check("{a,b}/*", "b/x.md", true);
        check("v1.2 plans/v1.3 note", "v1.2 plans/v1.3 note.md", true);
        // Letters of any script are one character, in either case.
        check("Caf?/*", "Café/x.md", true);
        check("Caf??/*", "Café/x.md", false);
        check("**/r[é]sumé.md", "a/résumé.md", true);
        check("**/r[!é]sumé.md", "a/résumé.md", false);
        check("r[à-ï]sumé", "résumé.md", true);
        check("r[^x]sumé", "résumé.md", true);
        check("CAFÉ", "Café/x.md", true);
        check("ärger", "Ärger.md", true);
        check("[Ä]rger", "ärger.md", true);
        check("ΟΔΟΣ", "οδος/x.md", true);
        check("{é,ü}?", "üb.md", true);
        check("日?", "日本.md", true);
        check("?", "🌱.md", true);
        // Written with combining marks, as some operating systems return names.
        check("Cafe\u{301}", "Café/x.md", true);
        check("**/re\u{301}sum[e\u{301}]", "a/résumé.md", true);
        // Special characters of regular expressions are literal here, and so is text that looks like the library's own.
        check("a+b (c)", "a+b (c).md", true);
        check("a.c", "abc.md", false);
        if cfg!(unix) {
            check("a\\*b", "a*b.md", true);
            check("a\\*b", "axb.md", false);
            check("a\\\\xc3", "a\\xc3.md", true);
        }
        check("*", "line\nbreak.md", true);
        for bad in ["", " ", "/", "./", "//", ".", "[", "{a", "a{"] {
            assert!(PathPattern::new(bad).is_err(), "{bad:?}");
        }
    }
}
