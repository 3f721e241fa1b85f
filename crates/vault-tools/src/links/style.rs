//! Writes the path of a link to a moved file, in the style in which it was written.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use vault_index::links::{Names, ranked, resolve};
use vault_index::{FileId, FileKind, VaultPath};

use super::occurrences::LinkEncoding;

/// Obsidian's "new link format".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LinkFormat {
    /// The name if it is enough, otherwise the path from the vault's root.
    #[default]
    Shortest,
    /// The path from the folder of the note that contains the link.
    Relative,
    /// The path from the vault's root.
    Absolute,
}

impl LinkFormat {
    /// Reads the setting from the text of `.obsidian/app.json`.
    pub fn of(settings: Option<&str>) -> Self {
        let settings: Option<serde_json::Value> = settings.and_then(|text| serde_json::from_str(text).ok());
        Self::named(settings.as_ref().and_then(|settings| settings["newLinkFormat"].as_str()).unwrap_or_default())
    }

    /// Returns the format with Obsidian's name for it; the shortest for any other name.
    pub fn named(name: &str) -> Self {
        match name {
            "relative" => Self::Relative,
            "absolute" => Self::Absolute,
            _ => Self::Shortest,
        }
    }
}

/// Returns the path of a new link in `source` that leads to the file `target`, with `.md` or without; `None` if no path
/// could.
pub(crate) fn new_path(
    (source, target): (&VaultPath, &VaultPath),
    encoding: LinkEncoding,
    names: &Names,
    format: LinkFormat,
) -> Option<String> {
    let path = match format {
        LinkFormat::Shortest => target.file_name().to_owned(),
        LinkFormat::Relative => relative(source.folder(), target.as_str()),
        LinkFormat::Absolute => target.to_string(),
    };
    let keeps_ending = encoding == LinkEncoding::Destination || !may_lack_ending(target);
    let written = if keeps_ending { &path } else { &path[..path.len() - ".md".len()] };
    let (source, target, id) = ((source, source), (target, target), names.id(target)?);
    LinkRewrite { written, encoding, source, target, id, names, format }.new_path()
}

/// A link that has to be rewritten.
pub(crate) struct LinkRewrite<'a> {
    /// Its path as written, decoded.
    pub written: &'a str,
    pub encoding: LinkEncoding,
    /// The note that contains it, before and after.
    pub source: (&'a VaultPath, &'a VaultPath),
    /// Its target file, before and after.
    pub target: (&'a VaultPath, &'a VaultPath),
    pub id: FileId,
    /// All names after the change.
    pub names: &'a Names,
    pub format: LinkFormat,
}

enum Style {
    Name,
    FromRoot,
    /// With a leading slash.
    Rooted,
    /// `./x`, `../x`.
    Dotted,
    /// `x`, `sub/x`, `../x`.
    Relative,
}

impl LinkRewrite<'_> {
    /// Returns the path that leads to the file in the style of the old one; `None` if no link path could.
    pub fn new_path(&self) -> Option<String> {
        let (_, to) = self.target;
        let keeps_ending = !may_lack_ending(to) || has_ending(self.written);
        let cut = |path: &str| {
            if keeps_ending { path.to_owned() } else { path[..path.len() - ".md".len()].to_owned() }
        };
        let (full, name) = (cut(to.as_str()), cut(to.file_name()));
        let relative = cut(&relative(self.source.1.folder(), to.as_str()));
        let mut tries = match self.style() {
            Style::Name => {
                let is_only = ranked(self.names, &name, self.source.1).len() == 1;
                if is_only { vec![name, full.clone()] } else { vec![full.clone()] }
            }
            Style::FromRoot => vec![full.clone()],
            Style::Rooted => vec![format!("/{full}")],
            Style::Dotted if relative.starts_with("../") => vec![relative],
            // A path that began with `../` and no longer goes up needs no `./`, provided that it is read as a path
            // without it.
            Style::Dotted if self.written.starts_with("../") && self.is_way_without_dots(&relative) => {
                vec![relative.clone(), format!("./{relative}")]
            }
            Style::Dotted => vec![format!("./{relative}")],
            Style::Relative if relative.starts_with("../") => vec![relative],
            Style::Relative => vec![relative.clone(), format!("./{relative}")],
        };
        tries.extend([full.clone(), to.as_str().to_owned(), format!("/{full}"), format!("/{to}")]);
        tries.into_iter().find(|path| self.leads_there(path))
    }

    /// Returns whether a path without leading dots would count as a path from the note, rather than as a name.
    fn is_way_without_dots(&self, relative: &str) -> bool {
        relative.contains('/') || self.format == LinkFormat::Relative
    }

    fn leads_there(&self, path: &str) -> bool {
        let fits = match self.encoding {
            LinkEncoding::Wikilink | LinkEncoding::Quoted(_) => !path.contains(['#', '|', '[', ']']),
            _ => true,
        };
        fits && resolve(self.names, path, self.source.1).target == Some(self.id)
    }

    /// Returns whether the link gave the exact path of the file, and no longer does. Case counts if it is the only
    /// difference, because outside Obsidian such a link would break.
    pub fn loses_its_exact_path(&self) -> bool {
        let (from, to) = self.target;
        let ignores_case = from == to || from.as_str().to_lowercase() != to.as_str().to_lowercase();
        let exact = |source: &VaultPath, target: &VaultPath| match self.style() {
            Style::Dotted | Style::Relative => is_way(self.written, source.folder(), target, ignores_case),
            Style::FromRoot => is_way(self.written, "", target, ignores_case),
            Style::Rooted if !ignores_case => is_way(self.written, "", target, ignores_case),
            Style::Name | Style::Rooted => true,
        };
        exact(self.source.0, self.target.0) && !exact(self.source.1, self.target.1)
    }

    fn style(&self) -> Style {
        let written = self.written;
        let from = self.target.0;
        let folder = self.source.0.folder();
        if written.starts_with("./") || written.starts_with("../") {
            Style::Dotted
        } else if written.starts_with('/') {
            Style::Rooted
        } else if self.encoding == LinkEncoding::Bare {
            Style::FromRoot
        } else if written.contains('/') {
            let is_relative = is_way(written, folder, from, true);
            let is_full = is_way(written, "", from, true);
            match self.format {
                LinkFormat::Relative if is_relative => Style::Relative,
                _ if is_full || !is_relative => Style::FromRoot,
                _ => Style::Relative,
            }
        } else if self.format == LinkFormat::Relative && from.folder().eq_ignore_ascii_case(folder) {
            Style::Relative
        } else {
            Style::Name
        }
    }
}

/// Returns whether a path, followed from a folder, is that of a file; the extension of a note may be omitted.
fn is_way(written: &str, folder: &str, file: &VaultPath, ignores_case: bool) -> bool {
    let Some(path) = VaultPath::new(&format!("{folder}/{written}")) else { return false };
    let as_compared = |path: &VaultPath| if ignores_case { path.as_str().to_lowercase() } else { path.to_string() };
    let (path, file) = (as_compared(&path), as_compared(file));
    path == file || format!("{path}.md") == file || format!("{path}.markdown") == file
}

/// Returns whether links to a file are written without its extension. `.markdown` is always written, because without it
/// a link would lead to a note with the extension `.md` and the same name as soon as there is one.
fn may_lack_ending(file: &VaultPath) -> bool {
    file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
}

/// Returns whether a path as written has the extension of a note.
fn has_ending(path: &str) -> bool {
    // `../x.md` is not a path within a vault, but its last part is.
    path.rsplit('/').next().and_then(VaultPath::new).is_some_and(|name| name.kind() == FileKind::Markdown)
}

/// Returns the relative path from a folder to a file.
fn relative(folder: &str, file: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    let to: Vec<&str> = file.split('/').collect();
    let shared = from.iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
    let mut way = vec![".."; from.len() - shared];
    way.extend(&to[shared..]);
    way.join("/")
}

/// Characters that cannot occur in a destination between `<` and `>`, or would be parsed as something else there.
const POINTED: &AsciiSet =
    &CONTROLS.add(b'%').add(b'#').add(b'<').add(b'>').add(b'\\').add(b'|').add(b'`').add(b'$').add(b'[').add(b']');

/// The same for a destination without `<` and `>`.
const DESTINATION: &AsciiSet = &POINTED.add(b' ').add(b'?').add(b'(').add(b')').add(b'"').add(b'^');

/// Encodes a path for a link; `old` is the text that it replaces.
pub(crate) fn encode(path: &str, encoding: LinkEncoding, old: &str) -> String {
    match encoding {
        LinkEncoding::Wikilink | LinkEncoding::Bare => path.to_owned(),
        LinkEncoding::Quoted('"') => path.replace('\\', "\\\\").replace('"', "\\\""),
        LinkEncoding::Quoted(_) => path.replace('\'', "''"),
        LinkEncoding::Destination | LinkEncoding::Pointed => {
            let set = if encoding == LinkEncoding::Pointed { POINTED } else { DESTINATION };
            let encodes_letters = old.is_ascii() && old.contains('%') && is_beyond_ascii(old);
            let mut text = String::new();
            let colons = path.find('/').unwrap_or(path.len());
            for (at, c) in path.char_indices() {
                let letter = &path[at..at + c.len_utf8()];
                match c {
                    // It would look like a URL scheme or an HTML entity.
                    ':' if at < colons => text.push_str("%3A"),
                    '&' if path[at..].contains(';') => text.push_str("%26"),
                    c if !c.is_ascii() && !encodes_letters && !c.is_whitespace() && !c.is_control() => text.push(c),
                    c if !c.is_ascii() => text.extend(utf8_percent_encode(letter, NON_ALPHANUMERIC)),
                    _ => text.extend(utf8_percent_encode(letter, set)),
                }
            }
            text
        }
    }
}

/// Returns whether a percent-encoded text contains characters beyond ASCII.
fn is_beyond_ascii(text: &str) -> bool {
    percent_encoding::percent_decode_str(text).any(|byte| !byte.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_folders() {
        for (folder, file, expected) in [
            ("", "a.md", "a.md"),
            ("", "x/a.md", "x/a.md"),
            ("x", "x/a.md", "a.md"),
            ("x/y", "x/a.md", "../a.md"),
            ("x", "y/z/a.md", "../y/z/a.md"),
            ("a.md", "a.md", "../a.md"),
        ] {
            assert_eq!(relative(folder, file), expected, "{folder} {file}");
        }
    }

    #[test]
    fn paths_are_written_as_their_place_demands() {
        for (path, encoding, old, expected) in [
            ("a b.md", LinkEncoding::Destination, "x.md", "a%20b.md"),
            ("a b.md", LinkEncoding::Pointed, "x.md", "a b.md"),
            ("é (1).md", LinkEncoding::Destination, "x.md", "é%20%281%29.md"),
            ("é.md", LinkEncoding::Destination, "%C3%A4.md", "%C3%A9.md"),
            ("100% #1.md", LinkEncoding::Pointed, "x", "100%25 %231.md"),
            ("a:b/c:d.md", LinkEncoding::Destination, "x", "a%3Ab/c:d.md"),
            ("it's", LinkEncoding::Quoted('\''), "x", "it''s"),
            ("a\"b", LinkEncoding::Quoted('"'), "x", "a\\\"b"),
            ("a b", LinkEncoding::Wikilink, "x", "a b"),
        ] {
            assert_eq!(encode(path, encoding, old), expected, "{path}");
        }
    }
}
