//! Points one link to another file or heading, and leaves everything else in it as it is written.

use std::ops::Range;

use vault_index::VaultPath;
use vault_index::links::Names;
use vault_index::note::ParseOptions;

use super::occurrences::{LinkEncoding, LinkOccurrence, links_of_text};
use super::style::{LinkFormat, LinkRewrite, encode};
use crate::edit::TextEdit;

/// The new target of a link.
pub(crate) struct NewTarget<'a> {
    pub file: &'a VaultPath,
    /// The heading or `^block`; `None` to link to the file.
    pub subpath: Option<&'a str>,
}

/// Returns the edit that points the link `raw` of a note to another file: the link in `line`, or otherwise the nearest
/// one. `None` if the note has no such link, or if no link of its kind can lead to the file.
pub(crate) fn retarget(
    text: &str,
    (source, line, raw): (&VaultPath, u32, &str),
    to: &NewTarget<'_>,
    (names, format, options): (&Names, LinkFormat, &ParseOptions),
) -> Option<TextEdit> {
    let links = links_of_text(text, options);
    let link = links.iter().filter(|link| link.raw == raw).min_by_key(|link| link.line.abs_diff(line))?;
    let location = link.location.as_ref()?;
    let id = names.id(to.file)?;
    let rewrite = LinkRewrite {
        written: &link.path,
        encoding: location.encoding,
        source: (source, source),
        target: (to.file, to.file),
        id,
        names,
        format,
    };
    // A link without a path leads to a place within its own note.
    let path = if link.path.is_empty() && to.file == source { String::new() } else { rewrite.new_path()? };
    let old = &text[location.span.clone()];
    let is_plain = options.relative_destinations
        && matches!(location.encoding, LinkEncoding::Destination | LinkEncoding::Pointed)
        && !old.starts_with("./");
    let path = path.strip_prefix("./").filter(|_| is_plain).unwrap_or(&path);
    let end = end_of_subpath(text, link, location.span.end, location.encoding)?;
    let mut new = encode(path, location.encoding, old);
    if let Some(subpath) = to.subpath {
        new.push('#');
        new.push_str(&match location.encoding {
            LinkEncoding::Wikilink | LinkEncoding::Quoted(_) => plain_subpath(subpath),
            encoding => encode(subpath, encoding, ""),
        });
    }
    Some(TextEdit { span: Range { start: location.span.start, end }, text: new })
}

/// Returns the end of the subpath after a link's path, or of the path if there is no subpath.
fn end_of_subpath(text: &str, link: &LinkOccurrence, path_end: usize, encoding: LinkEncoding) -> Option<usize> {
    let rest = text.get(path_end..)?;
    if link.subpath.is_none() || !rest.starts_with('#') {
        return Some(path_end);
    }
    let is_end = |c: char| match encoding {
        LinkEncoding::Wikilink | LinkEncoding::Quoted(_) => matches!(c, '|' | ']' | '\\'),
        LinkEncoding::Pointed => c == '>',
        LinkEncoding::Destination => c == ')' || c.is_whitespace(),
        LinkEncoding::Bare => c.is_whitespace(),
    };
    Some(path_end + rest.find(is_end).unwrap_or(rest.len()))
}

/// Returns a heading in the form for a wikilink, without the characters that would end the link.
pub(crate) fn plain_subpath(heading: &str) -> String {
    let (mark, heading) = heading.strip_prefix('^').map_or(("", heading), |id| ("^", id));
    let words = heading.replace(['#', '^', '[', ']', '|', ':', '%'], " ");
    format!("{mark}{}", words.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use vault_index::FileId;

    use super::*;

    fn check(text: &str, raw: &str, to: (&str, Option<&str>), is_plain: bool, expected: &str) {
        let path = |path: &str| VaultPath::new(path).unwrap();
        let mut names = Names::new();
        for (id, file) in (1..).zip(["Notes/Log.md", "Garden/Hot compost.md", "Work/Plan.md", "Home/Plan.md"]) {
            names.insert(FileId(id), &path(file));
        }
        let options = ParseOptions { relative_destinations: is_plain, ..ParseOptions::default() };
        let to = NewTarget { file: &path(to.0), subpath: to.1 };
        let edit = retarget(text, (&path("Notes/Log.md"), 1, raw), &to, (&names, LinkFormat::default(), &options));
        let edit = edit.expect("an edit");
        let new = format!("{}{}{}", &text[..edit.span.start], edit.text, &text[edit.span.end..]);
        assert_eq!(new, expected);
    }

    #[test]
    fn only_the_target_changes() {
        let compost = ("Garden/Hot compost.md", None);
        check("a [[Heap]] b", "[[Heap]]", compost, false, "a [[Hot compost]] b");
        check("![[Heap#Heat|shown]]", "![[Heap#Heat|shown]]", compost, false, "![[Hot compost|shown]]");
        check(
            "[[Heap|x]]",
            "[[Heap|x]]",
            ("Garden/Hot compost.md", Some("How: hot?")),
            false,
            "[[Hot compost#How hot?|x]]",
        );
        check("[a](heap.md#x \"t\")", "[a](heap.md#x \"t\")", compost, false, "[a](Hot%20compost.md \"t\")");
        check("[a](heap.md)", "[a](heap.md)", compost, true, "[a](../Garden/Hot%20compost.md)");
        check("[a](<he ap.md>)", "[a](<he ap.md>)", compost, true, "[a](<../Garden/Hot compost.md>)");
        check("[[Plan]]", "[[Plan]]", ("Work/Plan.md", None), false, "[[Work/Plan]]");
        check("| [[Heap\\|x]] |", "[[Heap\\|x]]", compost, false, "| [[Hot compost\\|x]] |");
        check("[[#Old part]]", "[[#Old part]]", ("Notes/Log.md", Some("New part")), false, "[[#New part]]");
    }
}
