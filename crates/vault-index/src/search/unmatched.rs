//! Which conditions of a filter no note meets at all: a name that is misspelt, most often.

use crate::error::Result;
use crate::note::TagKey;
use crate::search::Searcher;
use crate::search::filter::{Filter, path_matchers};

impl Searcher {
    /// A line for each tag, path or property that no note has. Linear in the notes where there are paths.
    ///
    /// # Errors
    /// Those of reading; a path that is no glob.
    pub fn unmatched(&self, filter: &Filter) -> Result<Vec<String>> {
        let store = self.snapshot.store();
        let mut unmatched = Vec::new();
        for tag in &filter.tags {
            if store.notes_with_tag(TagKey::new(tag).as_str())?.is_empty() {
                unmatched.push(format!("no note has the tag `{tag}`; `vault-index tags` lists those there are"));
            }
        }
        if !filter.paths.is_empty() {
            let notes = store.notes()?;
            for pattern in &filter.paths {
                let matchers = path_matchers(pattern)?;
                if !notes.iter().any(|(_, path, _)| matchers.iter().any(|m| m.is_match(path.as_str()))) {
                    unmatched.push(format!("no note's path is `{pattern}`, lies under it or matches it"));
                }
            }
        }
        for test in &filter.properties {
            if store.notes_with_property(&test.key.to_lowercase())?.is_empty() {
                unmatched.push(format!("no note has the property `{}`", test.key));
            }
        }
        Ok(unmatched)
    }
}
