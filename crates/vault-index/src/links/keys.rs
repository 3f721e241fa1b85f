//! By which text a link is remembered: its cleaned path, and the keys that say what may concern it.

use std::iter;

use crate::note::tidy;
use crate::path::VaultPath;

/// The text after the last `/`.
pub(super) fn last_segment(path: &str) -> &str {
    path.rfind('/').map_or(path, |at| &path[at + 1..])
}

/// Lower case in which a letter does not depend on its neighbours: a final `ς` is a `σ`.
///
/// Plain lower-casing turns `ΟΔΟΣ` into `οδος` but `ΟΔΟΣ.md` into `οδοσ.md`, so keys that are cut
/// or compared in parts must not use it.
pub(super) fn fold_case(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.contains('ς') { lower.replace('ς', "σ") } else { lower }
}

/// The key under which a link is stored: the last segment of its path, in lower case.
///
/// When a file comes or goes, only links whose key is among the file's [`keys_leading_to`] can
/// resolve differently (and links whose source has moved).
///
/// ```
/// use vault_index::links::link_key;
/// assert_eq!(link_key("Projects/Plan.md"), "plan.md");
/// ```
pub fn link_key(link_path: &str) -> String {
    fold_case(last_segment(&tidy(link_path)))
}

/// Every [`link_key`] that could lead to a file: its name and, for a Markdown file, the name without `.md`.
pub fn keys_leading_to(path: &VaultPath) -> impl Iterator<Item = String> + use<> {
    let name = fold_case(path.file_name());
    let stem = name.strip_suffix(".md").map(str::to_owned);
    iter::once(name).chain(stem)
}

/// The name by which links to a file that does not exist are grouped: the path in lower case,
/// without `.md` at its end, so that `[[x]]` and `[[X.md]]` want one and the same note.
pub fn unresolved_key(link_path: &str) -> String {
    let path = tidy(link_path);
    let cut = path.len().saturating_sub(3);
    let has_md = cut > 0 && path.get(cut..).is_some_and(|end| end.eq_ignore_ascii_case(".md"));
    // Lower-cased with its ending, as the resolver does, because of the final sigma.
    let mut key = format!("{}.md", if has_md { &path[..cut] } else { &path }).to_lowercase();
    key.truncate(key.len() - 3);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_last_segments() {
        for (link, key, unresolved) in [
            ("Note", "note", "note"),
            ("Note.MD", "note.md", "note"),
            ("a/B c/Note", "note", "a/b c/note"),
            ("\u{a0}v1.2\u{a0}plan ", "v1.2 plan", "v1.2 plan"),
            ("Pic.png", "pic.png", "pic.png"),
            ("Cafe\u{301}", "caf\u{e9}", "caf\u{e9}"),
            ("ΟΔΟΣ", "οδοσ", "οδοσ"),
            ("ΟΔΟΣ.md", "οδοσ.md", "οδοσ"),
            ("folder/", "", "folder/"),
            (".md", ".md", ".md"),
            ("é", "é", "é"),
            ("", "", ""),
        ] {
            assert_eq!((link_key(link).as_str(), unresolved_key(link).as_str()), (key, unresolved), "{link:?}");
        }
    }

    #[test]
    fn a_file_knows_the_keys_that_lead_to_it() {
        for (path, expected) in [
            ("a/Note.md", vec!["note.md", "note"]),
            ("Note.MD", vec!["note.md", "note"]),
            ("a/Pic.PNG", vec!["pic.png"]),
            ("Board.canvas", vec!["board.canvas"]),
            ("note.md.md", vec!["note.md.md", "note.md"]),
        ] {
            let path = VaultPath::new(path).unwrap();
            assert_eq!(keys_leading_to(&path).collect::<Vec<_>>(), expected, "{path}");
        }
    }
}
