//! Parses Markdown lists: `util.parseMarkdownBullets`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::note::tag_spans;

use crate::edit::item::{columns, marker, without_box};
use crate::edit::{self, TextEdit};
use crate::error::Result;
use crate::sandbox::SafePath;
use crate::tool::Context;
use crate::tools::shared::arguments::yes;

/// The approximate maximum number of characters of a name.
const LONGEST_NAME: usize = 80;

/// An item of a list.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Bullet {
    /// Its text on one line, without marker and check box.
    text: String,
    /// Its text as the name of a note: what a reader sees, without tags and block ids, and without characters that a name
    /// cannot have.
    name: String,
    /// Its source lines.
    raw: String,
    /// How deep it is nested: 0 for the outermost.
    depth: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Args {
    /// Markdown with one or more lists.
    text: String,
    /// Whether to include nested items.
    #[serde(default = "yes")]
    allow_nested: bool,
}

/// The items.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Bullets {
    /// In the order of the text; items without text are left out.
    items: Vec<Bullet>,
    /// The number of items.
    count: usize,
}

pub(in crate::tools) fn parse(args: Args, _: &mut Context<'_, '_>) -> Result<Bullets> {
    let mut items = bullets(&args.text, args.allow_nested);
    items.retain(|item| !item.text.is_empty());
    items.iter_mut().for_each(|item| item.name = name_of(&item.text));
    Ok(Bullets { count: items.len(), items })
}

/// Returns the name for a note about an item.
fn name_of(text: &str) -> String {
    let line = format!("# {text}");
    let tags: Vec<TextEdit> = tag_spans(&line).into_iter().map(|span| TextEdit { span, text: String::new() }).collect();
    let source = edit::apply_edits(&line, &tags).unwrap_or(line);
    let source = source.trim_start_matches('#').trim();
    let source = match source.rsplit_once('^') {
        Some((before, id)) if is_block_id(id) && before.ends_with(' ') => before.trim_end(),
        _ => source,
    };
    // The parser leaves highlights as they are written, and reads no name from an embed.
    let source = source.replace("==", "").replace("![[", "[[");
    // An item that consists only of tags is named after them.
    let shown = if source.is_empty() { text.replace('#', "") } else { seen(&source) };
    let mut name = String::new();
    for word in shown.split_whitespace() {
        if !name.is_empty() && name.chars().count() + word.chars().count() >= LONGEST_NAME {
            break;
        }
        let space = if name.is_empty() { "" } else { " " };
        name.push_str(&format!("{space}{word}"));
    }
    if name.is_empty() { name } else { SafePath::segment(&name) }
}

/// Returns the visible text of a line.
fn seen(line: &str) -> String {
    edit::note(&format!("# {line}")).headings.into_iter().next().map_or_else(|| line.to_owned(), |heading| heading.text)
}

fn is_block_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns the items of all lists in a text, in order. Code and lines outside of items are ignored.
///
/// Bullets are `-`, `*`, `+`; numbers are `1.` and `1)`; a check box is removed. An indented line under an item that is
/// not an item itself continues the item.
pub(in crate::tools) fn bullets(text: &str, nested: bool) -> Vec<Bullet> {
    let mut found: Vec<Bullet> = Vec::new();
    // The column of the content of each open item, outermost first.
    let mut open: Vec<usize> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut skipping = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = columns(&line[..line.len() - trimmed.len()]);
        let marks = ["```", "~~~"].into_iter().find(|marks| trimmed.starts_with(marks));
        match (fence, marks) {
            (Some(open), Some(marks)) if open == marks => fence = None,
            (None, Some(marks)) => fence = Some(marks),
            (None, None) => {}
            (Some(_), _) => continue,
        }
        if marks.is_some() {
            continue;
        }
        if let Some((width, content)) = marker(trimmed) {
            while open.last().is_some_and(|content_at| indent < *content_at) {
                open.pop();
            }
            let depth = open.len();
            open.push(indent + width);
            skipping = !nested && depth > 0;
            if !skipping {
                let (text, name, raw) = (without_box(content).trim().to_string(), String::new(), line.to_string());
                found.push(Bullet { text, name, raw, depth });
            }
        } else if trimmed.is_empty() {
            // An item can continue after a blank line if the next line is indented.
        } else if indent > 0 && !open.is_empty() {
            if let (false, Some(last)) = (skipping, found.last_mut()) {
                last.raw.push('\n');
                last.raw.push_str(line);
                last.text = format!("{} {}", last.text, trimmed.trim_end()).trim().to_string();
            }
        } else {
            open.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, &str)]) {
        let found = bullets(text, true);
        let found: Vec<(usize, &str)> = found.iter().map(|b| (b.depth, b.text.as_str())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn markers_boxes_and_numbers() {
        check("- a\n* b\n+ c\n1. d\n12) e", &[(0, "a"), (0, "b"), (0, "c"), (0, "d"), (0, "e")]);
        check(
            "- [ ] open\n- [x] done\n- [link](x.md)\n- [[Note]]",
            &[(0, "open"), (0, "done"), (0, "[link](x.md)"), (0, "[[Note]]")],
        );
        check("text\n**bold**\n---\n* * *\n-no\n- \"quoted\" 🚲 ${selection}", &[(0, "\"quoted\" 🚲 ${selection}")]);
        check("", &[]);
        check("- \n-", &[(0, ""), (0, "")]);
    }

    #[test]
    fn names_of_notes() {
        for (text, expected) in [
            (
                "write to [[Pastor Lindqvist]] about [[Ideas#^house-concert|the concert]]",
                "write to Pastor Lindqvist about the concert",
            ),
            ("[the plan](a%20b.md): who/what?", "the plan- who-what-"),
            ("**two** [[a\\|x]] #tag ^id", "two x"),
            ("_call_ `Ann` ==today== ~~not~~", "call Ann today not"),
            ("#todo #idea/new", "todo idea-new"),
            ("2 * 3 * 4", "2 - 3 - 4"),
            ("snake_case_name x^2", "snake_case_name x-2"),
            ("![pic](a.png) ![[b.png|small]]", "pic small"),
            ("1. not a list", "1. not a list"),
            ("", ""),
        ] {
            assert_eq!(name_of(text), expected);
        }
        let long = name_of(&"word ".repeat(100));
        assert!((70..=LONGEST_NAME).contains(&long.len()) && long.ends_with("word"), "{long}");
    }

    #[test]
    fn nesting_and_continuation_lines() {
        check("- a\n  - b\n    - c\n  - d\n- e", &[(0, "a"), (1, "b"), (2, "c"), (1, "d"), (0, "e")]);
        check("- a\n\t- b", &[(0, "a"), (1, "b")]);
        check("- a\n  goes on\n- b\n\n  too\ntext\n  no", &[(0, "a goes on"), (0, "b too")]);
        check("- a\r\n- b\r\n", &[(0, "a"), (0, "b")]);
        check("- a\n```\n- code\n```\n- b", &[(0, "a"), (0, "b")]);
        let outer = bullets("- a\n  - b\n    more\n- c", false);
        assert_eq!(outer.iter().map(|b| b.text.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(bullets("- a\n  on", true)[0].raw, "- a\n  on");
    }
}
