//! The text that a model reads of a chunk: title, headings, text. It leaves out the path, so a move needs no embedding.

use super::plain::plain;
use super::{ChunkOptions, TokenCount};
use crate::note::{Note, TitleSource};
use crate::path::VaultPath;
use crate::terms::name_key;

/// The most bytes of a line that are read.
const LINE: usize = 1024;

/// The text that is embedded for a chunk: the title, then its headings, then its text, one a line.
///
/// `title` is the title that the note contains. A title that is only the file's name is left out here, so that a rename
/// costs no embedding ([`file_title_text`] is embedded for it instead). A line is not repeated: for example, the H1
/// that is the title, or the heading that the text begins with. When title and headings exceed
/// [`ChunkOptions::max_context_tokens`], the outer headings are left out first, then the title, then the end of the
/// innermost heading.
///
/// The text has no markup: no heading, list, quote, table and emphasis marks, no fences, rules, brackets and targets of
/// links (`[[a|b]]` is b, `[[a#b]]` is a b, `[a](b)` is a), no HTML tags and block ids. It also leaves out text that is
/// not the note's statement: comments (`%%…%%`, `<!--…-->`), addresses, and badges, which are images that are links.
/// Code is left as it is, except for addresses in a line of text. The result is empty if nothing is left, for example
/// of a rule.
///
/// This is a pure function. With the counts and options that the chunk was made with, the result fits the window.
pub fn embedded_text(
    title: Option<&str>,
    headings: &[String],
    text: &str,
    tokens: &dyn TokenCount,
    options: &ChunkOptions,
) -> String {
    with_context(title, headings, text, tokens, options).0
}

/// Returns the [`embedded_text`], and the offset of the text in it, after the title and the headings.
pub(super) fn with_context(
    title: Option<&str>,
    headings: &[String],
    text: &str,
    tokens: &dyn TokenCount,
    options: &ChunkOptions,
) -> (String, usize) {
    let text = plain(text);
    let mut whole = context(title, headings, &text, tokens, options);
    if !whole.is_empty() && !text.is_empty() {
        whole.push('\n');
    }
    let start = whole.len();
    whole.push_str(&text);
    (whole, start)
}

/// The name of a note's file, if the note has no title of its own or its title is a heading that differs from the name.
/// It is embedded by itself, so that a rename embeds at most one short text, and no embedded text depends on another
/// note.
pub fn file_title_text(note: &Note, path: &VaultPath) -> Option<String> {
    let is_said = match note.title.source {
        TitleSource::FileName => false,
        TitleSource::Heading => name_key(&note.title.text) == name_key(path.stem()),
        TitleSource::Frontmatter => true,
    };
    (!is_said).then(|| path.stem().to_owned())
}

/// The lines before `text`, which is plain.
pub(super) fn context(
    title: Option<&str>,
    headings: &[String],
    text: &str,
    tokens: &dyn TokenCount,
    options: &ChunkOptions,
) -> String {
    let limit = options.max_context_tokens.min(options.window() / 2);
    let first_line = text.lines().next().unwrap_or_default();
    let mut lines: Vec<&str> = Vec::with_capacity(headings.len() + 1);
    for line in title.into_iter().chain(headings.iter().map(String::as_str)) {
        let line = line[..line.floor_char_boundary(LINE)].trim();
        if !line.is_empty() && line != first_line && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let titles = usize::from(title.is_some_and(|title| lines.first() == Some(&title.trim())));
    let fits = |lines: &[&str]| {
        let text = lines.join("\n");
        (text.len() <= limit || tokens.count(&text) <= limit).then_some(text)
    };
    loop {
        if let Some(context) = fits(&lines) {
            return context;
        }
        match lines.len() {
            0 => return String::new(),
            1 => break,
            many => _ = lines.remove(if many > titles + 1 { titles } else { 0 }),
        }
    }
    // A single line is too long.
    let mut line = lines[0];
    while !line.is_empty() {
        let cut = &line[..line.floor_char_boundary(line.len() * 3 / 4)];
        line = cut.rfind(char::is_whitespace).map_or(cut, |at| cut[..at].trim_end());
        if let Some(context) = fits(&[line]) {
            return context;
        }
    }
    String::new()
}
