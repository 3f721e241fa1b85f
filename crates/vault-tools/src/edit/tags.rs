//! Adds, removes and renames the tags of a note, in its frontmatter and in its text. Code and URLs contain no tags.

use std::ops::Range;

use serde_json::{Map, Value};
use vault_index::note::{Property, TagKey, frontmatter_span, is_inline_tag, property_key, tag_spans};

use super::frontmatter;
use super::list::items_of;
use super::section::{note, structure};
use super::spans::{TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};

/// Changes to the tags of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagChanges {
    /// Tags to add to the frontmatter, unless the note has them.
    pub add: Vec<String>,
    /// Tags to remove. Tags nested below them stay.
    pub remove: Vec<String>,
    /// Tags to rename, as old and new name. Tags nested below them are renamed too.
    pub rename: Vec<(String, String)>,
}

/// The result of [`edit_tags`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedTags {
    /// The whole new text.
    pub text: String,
    /// The tags that were added.
    pub added: Vec<String>,
    /// The number of removed occurrences.
    pub removed: usize,
    /// The number of renamed occurrences.
    pub renamed: usize,
}

/// Changes the tags of a note: removes, renames and then adds. Case is ignored.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for an invalid tag; [`ErrorKind::Frontmatter`] for frontmatter that cannot be read
/// or preserved; [`ErrorKind::Refused`] if a tag cannot be removed without changing the text around it.
pub fn edit_tags(text: &str, changes: &TagChanges) -> Result<EditedTags> {
    let rules = Rules::of(changes)?;
    let mut edited = EditedTags { text: text.to_owned(), ..EditedTags::default() };
    rules.apply_to_frontmatter(&mut edited)?;
    rules.apply_to_body(&mut edited)?;
    rules.add_to_frontmatter(&mut edited)?;
    Ok(edited)
}

/// Returns the edits that rename tags in a text that is not a whole note, for example one in a canvas.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for an invalid tag.
pub(crate) fn tag_renames(text: &str, changes: &TagChanges) -> Result<Vec<TextEdit>> {
    let rules = Rules::of(changes)?;
    // A line is put before it, because a text that does not begin with `---` has no frontmatter.
    let spans = tag_spans(&format!("\n{text}")).into_iter().map(|span| span.start..span.end - 1);
    let edit = |span: Range<usize>| match rules.fate(&text[span.clone()]) {
        Fate::Becomes(text) => Some(TextEdit { span, text }),
        _ => None,
    };
    Ok(spans.filter_map(edit).collect())
}

/// The changes, with their tags in the form in which they are compared.
struct Rules {
    add: Vec<String>,
    remove: Vec<TagKey>,
    rename: Vec<(TagKey, String)>,
}

/// The outcome for one tag.
enum Fate {
    Stays,
    Goes,
    Becomes(String),
}

impl Rules {
    fn of(changes: &TagChanges) -> Result<Self> {
        let name = |tag: &String| {
            let name = tag.trim();
            let name = name.strip_prefix('#').unwrap_or(name).trim_end_matches('/');
            match is_inline_tag(name) {
                true => Ok(name.to_owned()),
                false => Err(Error::new(ErrorKind::InvalidArguments, format!("{tag:?} cannot be a tag"))
                    .with_remedy("a tag has letters, digits, _, - and /, no spaces, and is not a number")),
            }
        };
        // A tag to remove or rename may be one that only frontmatter can contain, such as `c++`.
        let key = |tag: &String| match TagKey::new(tag) {
            key if key.as_str().is_empty() => {
                Err(Error::new(ErrorKind::InvalidArguments, format!("{tag:?} is not a tag")))
            }
            key => Ok(key),
        };
        Ok(Self {
            add: changes.add.iter().map(name).collect::<Result<_>>()?,
            remove: changes.remove.iter().map(key).collect::<Result<_>>()?,
            rename: changes.rename.iter().map(|(from, to)| Ok((key(from)?, name(to)?))).collect::<Result<_>>()?,
        })
    }

    /// Returns the outcome for a tag, given without its `#`.
    fn fate(&self, tag: &str) -> Fate {
        let key = TagKey::new(tag);
        if self.remove.contains(&key) {
            return Fate::Goes;
        }
        let Some((from, to)) = self.rename.iter().find(|(from, _)| from.covers(&key)) else { return Fate::Stays };
        // The tag as written may be longer than its key, so the nested part is found by its slash.
        let depth = from.as_str().matches('/').count();
        let nested = tag.match_indices('/').nth(depth).map_or("", |(at, _)| &tag[at..]);
        match format!("{to}{nested}") {
            new if new == tag => Fate::Stays,
            new => Fate::Becomes(new),
        }
    }

    fn apply_to_body(&self, edited: &mut EditedTags) -> Result<()> {
        let mut new = edited.text.clone();
        let (mut tags, mut renames) = (Vec::new(), Vec::new());
        // From the end, so that if all tags of a line are removed, the last removal finds the line otherwise empty.
        for span in tag_spans(&edited.text).into_iter().rev() {
            let tag = &edited.text[span.start + 1..span.end];
            match self.fate(tag) {
                Fate::Stays => tags.push(tag.to_owned()),
                Fate::Becomes(text) => {
                    tags.push(text.clone());
                    renames.push(text);
                }
                Fate::Goes => {
                    remove_tag(&mut new, span);
                    edited.removed += 1;
                }
            }
        }
        edited.renamed += renames.len();
        if !renames.is_empty() {
            let becomes = |span: &Range<usize>| matches!(self.fate(&new[span.start + 1..span.end]), Fate::Becomes(_));
            let spans = tag_spans(&new).into_iter().filter(becomes);
            let edits: Vec<TextEdit> = spans
                .zip(renames.into_iter().rev())
                .map(|(span, text)| TextEdit { span: span.start + 1..span.end, text })
                .collect();
            new = apply_edits(&new, &edits)?;
        }
        let tags_of = |text: &str| -> Vec<String> {
            tag_spans(text).into_iter().rev().map(|span| text[span.start + 1..span.end].to_owned()).collect()
        };
        let is_as_before =
            || structure(&new) == structure(&edited.text) && bare_marks(&new) <= bare_marks(&edited.text);
        if new != edited.text && (tags_of(&new) != tags || !is_as_before()) {
            let what = "a tag cannot be changed without changing what the text around it means";
            return Err(Error::new(ErrorKind::Refused, what).with_remedy("change it with edit_note"));
        }
        edited.text = new;
        Ok(())
    }

    fn apply_to_frontmatter(&self, edited: &mut EditedTags) -> Result<()> {
        let properties = match frontmatter::properties(&edited.text) {
            Ok(properties) => properties,
            // Unreadable frontmatter is left unchanged if none of the tags occurs in it.
            Err(_) if self.add.is_empty() && !self.may_stand_in_frontmatter(&edited.text) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut updates = Map::new();
        for (key, value) in properties.iter().filter(|(key, _)| property_key(key) == "tags") {
            let before = (edited.removed, edited.renamed);
            let items = self.applied_to(items_of("tags", value), edited);
            if before != (edited.removed, edited.renamed) {
                updates.insert(key.to_owned(), as_before(value, items));
            }
        }
        edited.text = frontmatter::update(&edited.text, &updates)?;
        Ok(())
    }

    fn applied_to(&self, items: Vec<Value>, edited: &mut EditedTags) -> Vec<Value> {
        let fates: Vec<Fate> =
            items.iter().map(|item| item.as_str().map_or(Fate::Stays, |tag| self.fate(name(tag)))).collect();
        let stays = |(item, fate): (&Value, &Fate)| match fate {
            Fate::Stays => item.as_str().map(TagKey::new),
            _ => None,
        };
        // The new name of a tag may already be in the list.
        let mut there: Vec<TagKey> = items.iter().zip(&fates).filter_map(stays).collect();
        let mut new = Vec::new();
        for (item, fate) in items.into_iter().zip(fates) {
            match fate {
                Fate::Stays => new.push(item),
                Fate::Goes => edited.removed += 1,
                Fate::Becomes(tag) => {
                    edited.renamed += 1;
                    if !there.contains(&TagKey::new(&tag)) {
                        there.push(TagKey::new(&tag));
                        let mark = if item.as_str().is_some_and(|item| item.starts_with('#')) { "#" } else { "" };
                        new.push(format!("{mark}{tag}").into());
                    }
                }
            }
        }
        new
    }

    /// Adds the tags that the note does not have to the first property that holds tags, or to a new one.
    fn add_to_frontmatter(&self, edited: &mut EditedTags) -> Result<()> {
        let mut there: Vec<TagKey> = note(&edited.text).tags.iter().map(|tag| tag.key()).collect();
        for tag in &self.add {
            if !there.contains(&TagKey::new(tag)) {
                there.push(TagKey::new(tag));
                edited.added.push(tag.clone());
            }
        }
        if edited.added.is_empty() {
            return Ok(());
        }
        let properties = frontmatter::properties(&edited.text)?;
        let holder = properties.iter().find(|(key, _)| property_key(key) == "tags");
        let (key, value) = match holder {
            Some((_, Property::Map(_))) => {
                return Err(Error::new(
                    ErrorKind::Frontmatter,
                    "the tags of the frontmatter are neither a list nor a text",
                )
                .with_remedy("make them a list first, with update_frontmatter"));
            }
            Some((key, value)) => {
                let mut items = items_of("tags", value);
                items.extend(edited.added.iter().cloned().map(Value::from));
                (key, as_before(value, items))
            }
            None => ("tags", edited.added.clone().into()),
        };
        let updates = [(key.to_owned(), value)].into_iter().collect();
        edited.text = frontmatter::update(&edited.text, &updates)?;
        Ok(())
    }

    /// Returns whether the lines of the frontmatter contain one of the tags, read as text.
    fn may_stand_in_frontmatter(&self, text: &str) -> bool {
        let Some(span) = frontmatter_span(text) else { return false };
        let mut words = text[span].split(|c: char| c.is_whitespace() || "[]{}\"',:".contains(c));
        words.any(|word| !matches!(self.fate(name(word)), Fate::Stays))
    }
}

/// Returns a tag of the frontmatter without its optional `#`.
fn name(tag: &str) -> &str {
    tag.strip_prefix('#').unwrap_or(tag).trim_end_matches('/')
}

/// Returns tags in the form of a property that contained others: a text with commas or spaces if it was one, otherwise
/// a list.
fn as_before(before: &Property, items: Vec<Value>) -> Value {
    match before {
        Property::Text(text) if items.len() == 1 || (!items.is_empty() && text.trim().contains([',', ' ', '\t'])) => {
            let between = if text.contains(',') { ", " } else { " " };
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between).into()
        }
        _ => Value::Array(items),
    }
}

/// Counts the lines that consist of marks only, because such a line is read as a rule or as the underline of a heading.
fn bare_marks(text: &str) -> usize {
    let is_mark = |c: char| matches!(c, '*' | '_' | '=' | '~' | '-' | '+' | '>' | ' ' | '\t');
    text.lines().filter(|line| line.contains(['*', '_', '=', '~']) && line.chars().all(is_mark)).count()
}

/// Removes a tag with the white space before it, or, at the beginning of a line, after it; if the line contains nothing
/// else, removes the line.
fn remove_tag(text: &mut String, span: Range<usize>) {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let slashes = text[span.end..].len() - text[span.end..].trim_start_matches('/').len();
    let (before, after) = (&text[..span.start], &text[span.end + slashes..]);
    let (before_blank, after_blank) = (before.trim_end_matches(is_blank), after.trim_start_matches(is_blank));
    let starts_line = before_blank.is_empty() || before_blank.ends_with('\n');
    let ends_line = after_blank.is_empty() || after_blank.starts_with(['\n', '\r']);
    let removed = match (starts_line, ends_line) {
        (true, true) => {
            let newline = after_blank.find('\n').map_or(after_blank.len(), |newline| newline + 1);
            before_blank.len()..text.len() - after_blank.len() + newline
        }
        (true, false) => span.start..text.len() - after_blank.len(),
        // The next tag needs the white space.
        (false, _) if after.starts_with('#') => span,
        (false, _) => before_blank.len()..text.len() - after.len(),
    };
    text.replace_range(removed, "");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes(add: &[&str], remove: &[&str], rename: &[(&str, &str)]) -> TagChanges {
        let all = |tags: &[&str]| tags.iter().map(ToString::to_string).collect();
        let rename = rename.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect();
        TagChanges { add: all(add), remove: all(remove), rename }
    }

    #[test]
    fn a_tag_is_renamed_wherever_it_stands() {
        for (text, expected) in [
            (
                "#a, #A/sub and #ab `#a` [[x#a]] https://x.y/#a\n",
                "#new, #new/sub and #ab `#a` [[x#a]] https://x.y/#a\n",
            ),
            ("```\n#a\n```\n%% #a %%\n#a\r\n", "```\n#a\n```\n%% #a %%\n#new\r\n"),
            ("| #a |\n| - |\n| x #a/ |\n", "| #new |\n| - |\n| x #new/ |\n"),
            ("x#a #a#b _#a_\n\n|#a|x|\n|-|-|\n", "x#a #new#b _#new_\n\n|#new|x|\n|-|-|\n"),
            ("[see #a](note.md) [[x|#a]]\n", "[see #new](note.md) [[x|#a]]\n"),
            ("---\ntags: [x, 'a', a/b]\n---\n", "---\ntags: [x, 'new', new/b]\n---\n"),
            ("---\ntags:\n- x\n- \"A\" # why\n---\n", "---\ntags:\n- x\n- \"new\" # why\n---\n"),
            ("---\nTag: a, b,a/c\n---\n", "---\nTag: new, b, new/c\n---\n"),
            ("---\ntags: \"#a\"\n---\n", "---\ntags: \"#new\"\n---\n"),
            ("---\ntags: [a, b, New]\n---\n#a", "---\ntags: [b, New]\n---\n#new"),
            ("---\ntag: a\ntags: [a]\nother: a\n---\n", "---\ntag: new\ntags: [new]\nother: a\n---\n"),
            ("\u{feff}---\r\ntags: a\r\n---\r\n#a", "\u{feff}---\r\ntags: new\r\n---\r\n#new"),
            ("---\nbroken: [\n---\n#a", "---\nbroken: [\n---\n#new"),
            ("---\ntags: 5\n---\n", "---\ntags: 5\n---\n"),
        ] {
            let edited = edit_tags(text, &changes(&[], &[], &[("#A", "new")])).unwrap();
            assert_eq!(edited.text, expected);
            assert_eq!(edited.renamed > 0, text != expected);
        }
        let nested = edit_tags("#A/B/c #a/x", &changes(&[], &[], &[("a/b", "z")])).unwrap();
        assert_eq!(nested.text, "#z/c #a/x");
        let case = edit_tags("#Todo", &changes(&[], &[], &[("todo", "todo")])).unwrap();
        assert_eq!((case.text.as_str(), case.renamed), ("#todo", 1));
        let broken = edit_tags("---\ntags: [a\n---\n", &changes(&[], &[], &[("a", "b")])).unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::Frontmatter);
        for bad in ["", "two words", "1984", "a,b", "a#b"] {
            let error = edit_tags("", &changes(&[], &[], &[("a", bad)])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{bad}");
        }
    }

    #[test]
    fn a_tag_goes_with_the_space_around_it() {
        for (text, expected) in [
            ("see #a, and\n", "see, and\n"),
            ("#a text\n", "text\n"),
            ("- #a text #b\n  #a\n- c\n", "- text #b\n- c\n"),
            ("x\n\n#a #a\n\ny", "x\n\n\ny"),
            ("x\r\n#a\r\ny #a/b #A/", "x\r\ny #a/b"),
            ("# Head #a\n", "# Head\n"),
            ("x #a#b y #c#a\n", "x #b y #c\n"),
            ("[see #a](note.md) [#a x](https://x.y)\n", "[see](note.md) [ x](https://x.y)\n"),
            ("---\ntags: [a, b]\n---\n", "---\ntags: [b]\n---\n"),
            ("---\ntags: a\n---\n", "---\ntags: []\n---\n"),
            ("---\ntags: a, b, c\n---\n", "---\ntags: b, c\n---\n"),
        ] {
            assert_eq!(edit_tags(text, &changes(&[], &["a"], &[])).unwrap().text, expected);
        }
        for text in ["#a # no heading", "line\n#a ---\n", "#a ```\nx\n", "**#a**\n", "- _#a_\n", "text\n==#a==\n"] {
            let refused = edit_tags(text, &changes(&[], &["a"], &[])).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Refused, "{text}");
        }
    }

    #[test]
    fn a_tag_is_added_once() {
        for (text, expected) in [
            ("text", "---\ntags:\n  - b\n---\ntext"),
            ("---\ntags: [a]\n---\n", "---\ntags: [a, b]\n---\n"),
            ("---\ntags: a\n---\n", "---\ntags:\n  - a\n  - b\n---\n"),
            ("---\ntags: a, c\n---\n", "---\ntags: a, c, b\n---\n"),
            ("---\ntags: a c\n---\n", "---\ntags: a c b\n---\n"),
            ("---\ntag:\n---\n", "---\ntag:\n  - b\n---\n"),
            ("---\ntags: [B]\n---\n", "---\ntags: [B]\n---\n"),
            ("text #b", "text #b"),
        ] {
            let edited = edit_tags(text, &changes(&["#b", "B"], &[], &[])).unwrap();
            assert_eq!(edited.text, expected);
            assert_eq!(edited.added.len(), usize::from(text != expected));
        }
        let all = changes(&["new"], &["old"], &[("a", "b")]);
        let edited = edit_tags("---\ntags: [old, a]\n---\n", &all).unwrap();
        assert_eq!(edited.text, "---\ntags: [b, new]\n---\n");
        assert!(edit_tags("---\ntags: {a: 1}\n---\n", &changes(&["b"], &[], &[])).is_err());
    }

    proptest! {
        #[test]
        fn the_tags_are_the_renamed_ones_and_nothing_else_changes(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "#a", "#A/b", "#ab", " ", "\n", "\r\n", "`", "```\n", "%%", "[[x#a]]", "[t](u#a)", "# ", "- ", "> ",
                "text", "| ", "$", "<!-- ", "---\n", "tags: [a, \"b\"]\n", "tag: a,b\n", "\\", "**", "\u{e9}",
            ]), 0..25),
        ) {
            let text = pieces.concat();
            if let Ok(edited) = edit_tags(&text, &changes(&[], &[], &[("a", "new")])) {
                let keys = |text: &str| -> Vec<String> {
                    let mut keys: Vec<_> = note(text).tags.iter().map(|tag| tag.key().as_str().to_owned()).collect();
                    keys.sort();
                    keys
                };
                let mut expected: Vec<String> = keys(&text).into_iter().map(|key| match key.strip_prefix('a') {
                    Some(nested) if nested.is_empty() || nested.starts_with('/') => format!("new{nested}"),
                    _ => key,
                }).collect();
                expected.sort();
                prop_assert_eq!(keys(&edited.text), expected);
                prop_assert_eq!(structure(&edited.text), structure(&text));
                prop_assert_eq!(edit_tags(&edited.text, &changes(&[], &[], &[("a", "new")])).unwrap().text, edited.text);
            }
            if let Ok(edited) = edit_tags(&text, &changes(&[], &["a"], &[])) {
                let left = note(&edited.text).tags;
                prop_assert!(left.iter().all(|tag| tag.key().as_str() != "a"), "{:?}", edited.text);
            }
        }
    }
}
