//! The URLs of printed paths: a click opens the file, Obsidian or an editor, depending on the setting `hyperlink`.

use std::path::Path;

use crate::{url_path, url_text};
use serde::Deserialize;

/// A template for the URL of a path. `{path}` is the absolute path, `{file}` the path in the vault, `{vault}` the name
/// of the vault's folder, `{line}` the line, and `{heading}` a `#` with the heading, or empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Hyperlink(String);

/// Templates by name. Only the plugin Advanced URI lets a URL name a line in Obsidian; without it, the URL names the
/// heading.
const NAMED: [(&str, &str); 8] = [
    ("file", "file://{path}"),
    ("obsidian", "obsidian://open?vault={vault}&file={file}{heading}"),
    ("advanced-uri", "obsidian://adv-uri?vault={vault}&filepath={file}&line={line}"),
    ("vscode", "vscode://file{path}:{line}"),
    ("vscodium", "vscodium://file{path}:{line}"),
    ("cursor", "cursor://file{path}:{line}"),
    ("zed", "zed://file{path}:{line}"),
    ("none", ""),
];

/// The target of a link.
pub struct Target<'a> {
    /// The file on disk.
    pub file: &'a Path,
    /// Its vault's folder.
    pub vault: &'a Path,
    /// Its path in the vault.
    pub path: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// The heading above the line.
    pub heading: Option<&'a str>,
}

impl Default for Hyperlink {
    fn default() -> Self {
        Self(NAMED[0].1.to_string())
    }
}

impl TryFrom<String> for Hyperlink {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let named = NAMED.iter().find(|(name, _)| *name == text).map(|(_, template)| (*template).to_string());
        let is_template = text.contains(':') && (text.contains("{path}") || text.contains("{file}"));
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        named.or_else(|| (is_template && is_plain).then_some(text)).map(Self).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            format!(
                "hyperlink is one of {}, or a URL with {{path}} or {{file}}; {{line}}, {{vault}} and {{heading}} are \
                 optional",
                names.join(", ")
            )
        })
    }
}

impl Hyperlink {
    /// Returns the URL of a file, or an empty string if links are off.
    pub fn url(&self, target: &Target<'_>) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let vault = target.vault.file_name().map_or_else(Default::default, |name| name.to_string_lossy());
        let heading = target.heading.map_or_else(String::new, |heading| url_text(&format!("#{}", linkable(heading))));
        // The values are encoded, so none of them contains braces, which a later replacement would match.
        self.0
            .replace("{path}", &url_path(target.file))
            .replace("{file}", &url_text(target.path))
            .replace("{vault}", &url_text(&vault))
            .replace("{line}", &target.line.to_string())
            .replace("{heading}", &heading)
    }
}

/// Returns a heading as Obsidian writes it in a link: characters with a meaning in links become spaces.
fn linkable(heading: &str) -> String {
    let spaced: String = heading.chars().map(|c| if "#^|:%[]\\".contains(c) { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(setting: &str, heading: Option<&str>) -> String {
        let (file, vault) = (Path::new("/notes/My vault/a b/é.md"), Path::new("/notes/My vault"));
        let target = Target { file, vault, path: "a b/é.md", line: 7, heading };
        Hyperlink::try_from(setting.to_string()).unwrap().url(&target)
    }

    #[cfg(unix)]
    #[test]
    fn urls() {
        let file = "file:///notes/My%20vault/a%20b/%C3%A9.md";
        assert_eq!(url("file", None), file);
        assert_eq!(url("none", None), "");
        assert_eq!(url("vscode", None), "vscode://file/notes/My%20vault/a%20b/%C3%A9.md:7");
        let obsidian = "obsidian://open?vault=My%20vault&file=a%20b%2F%C3%A9.md";
        assert_eq!(url("obsidian", None), obsidian);
        assert_eq!(url("obsidian", Some("C#: [[a|b]]")), format!("{obsidian}%23C%20a%20b"));
        let advanced = "obsidian://adv-uri?vault=My%20vault&filepath=a%20b%2F%C3%A9.md&line=7";
        assert_eq!(url("advanced-uri", Some("x")), advanced);
        assert_eq!(
            url("emacs://open?file={path}&line={line}", None),
            format!("emacs://open?file={}&line=7", &file[7..])
        );
    }

    #[test]
    fn what_is_no_link() {
        for setting in ["", "emacs", "http://x", "x:{path}\u{1b}", "x: {path}"] {
            let error = Hyperlink::try_from(setting.to_string()).unwrap_err();
            assert!(error.contains("vscode"), "{error}");
        }
    }
}
