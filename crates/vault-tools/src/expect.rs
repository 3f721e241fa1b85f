//! The numbers of notes and links that a call expects to touch. If its preview differs, it is refused before asking.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use vault_index::note::ParseOptions;

use crate::action::Action;
use crate::change::Change;
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::links::raw_links;
use crate::sandbox::SafePath;

/// The argument that every tool that writes accepts.
pub const EXPECT: &str = "expect";

/// The numbers that a call expects; a missing number is not compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The notes that are created, changed, moved or deleted.
    pub notes: Option<usize>,
    /// The links of existing notes that are added, removed or changed.
    pub links: Option<usize>,
}

/// The numbers of notes and links that a change touches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// The notes that are created, changed, moved or deleted.
    pub notes: usize,
    /// The links of existing notes that are added, removed or changed.
    pub links: usize,
}

impl Expectation {
    /// Removes the expectation from the arguments of a call.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if it is malformed or empty.
    pub fn take(args: &mut Value) -> Result<Option<Self>> {
        let Some(given) = args.as_object_mut().and_then(|args| args.remove(EXPECT)) else { return Ok(None) };
        if given.is_null() {
            return Ok(None);
        }
        let given = match given.as_str().map(serde_json::from_str) {
            Some(Ok(parsed)) => parsed,
            _ => given,
        };
        let expect: Option<Self> = serde_json::from_value(given).ok();
        expect.filter(|expect| expect.notes.or(expect.links).is_some()).map(Some).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, "expect is an object with numbers of notes and links")
                .at(format!("/{EXPECT}"))
                .with_remedy("write it as {\"notes\": 1, \"links\": 3}")
        })
    }

    /// # Errors
    /// [`ErrorKind::Refused`] with both numbers, if they differ.
    pub fn check(self, touched: ChangeCounts) -> Result<()> {
        let differs = |expected: Option<usize>, found| expected.is_some_and(|expected| expected != found);
        if !differs(self.notes, touched.notes) && !differs(self.links, touched.links) {
            return Ok(());
        }
        let number = |expected: Option<usize>| expected.map_or_else(|| "any number of".to_owned(), |n| n.to_string());
        let what = format!(
            "the change touches {} notes and {} links, and {} notes and {} links were expected",
            touched.notes,
            touched.links,
            number(self.notes),
            number(self.links)
        );
        let remedy = "check the change; if it is right, set expect to these numbers";
        Err(Error::new(ErrorKind::Refused, what).at(format!("/{EXPECT}")).with_remedy(remedy))
    }

    /// Returns its JSON schema for the schemas of tools.
    pub fn schema() -> Value {
        let number = json!({ "type": "integer", "minimum": 0 });
        json!({
            "type": "object",
            "properties": { "notes": number, "links": number },
            "description": "How many notes and links you expect to touch; if it is another number, nothing is done.",
        })
    }
}

impl Change {
    /// Counts the notes and links that it touches. Parses the notes that it edits.
    pub fn touched(&self) -> ChangeCounts {
        let mut notes: BTreeSet<SafePath> = BTreeSet::new();
        let mut edited: BTreeMap<SafePath, (&Content, &Content)> = BTreeMap::new();
        for (index, action) in self.actions.iter().enumerate() {
            let (path, _) = action.paths();
            let origin = crate::change::origin_of(&self.actions[..index], path);
            match action {
                Action::MakeFolder { .. } | Action::RemoveFolder { .. } => continue,
                Action::Edit { before, after, .. } => {
                    edited.entry(origin.clone()).and_modify(|(_, last)| *last = after).or_insert((before, after));
                }
                _ => {}
            }
            match self.carried.get(&index) {
                Some(carried) => notes.extend(carried.files.iter().filter(|file| file.is_note()).cloned()),
                None if path.is_note() => _ = notes.insert(origin),
                None => {}
            }
        }
        let links = edited.iter().map(|(path, (before, after))| changed_links(path, before, after)).sum();
        ChangeCounts { notes: notes.len(), links }
    }
}

/// Counts the links of a note that are added, removed or changed.
fn changed_links(path: &SafePath, before: &Content, after: &Content) -> usize {
    let count = |content: &Content| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let text = String::from_utf8_lossy(content.bytes());
        raw_links(path, &text, &ParseOptions::default()).for_each(|raw| *counts.entry(raw).or_default() += 1);
        counts
    };
    let (before, after) = (count(before), count(after));
    let more = |a: &BTreeMap<String, usize>, b: &BTreeMap<String, usize>| -> usize {
        a.iter().map(|(raw, count)| count.saturating_sub(b.get(raw).copied().unwrap_or_default())).sum()
    };
    more(&after, &before).max(more(&before, &after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_read_and_compared() {
        let take = |expect: Value| Expectation::take(&mut json!({ "path": "a.md", "expect": expect }));
        assert_eq!(take(Value::Null).unwrap(), None);
        assert_eq!(take(json!("{\"notes\": 2}")).unwrap(), Some(Expectation { notes: Some(2), links: None }));
        for wrong in [json!({}), json!({ "note": 1 }), json!(3), json!({ "notes": -1 })] {
            assert_eq!(take(wrong).unwrap_err().path(), Some("/expect"));
        }
        let touched = ChangeCounts { notes: 2, links: 5 };
        Expectation { notes: Some(2), links: None }.check(touched).unwrap();
        let error = Expectation { notes: Some(2), links: Some(4) }.check(touched).unwrap_err();
        assert!(error.message().contains("2 notes and 5 links, and 2 notes and 4 links"), "{error}");
    }
}
