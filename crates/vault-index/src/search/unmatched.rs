//! Which conditions of a filter no note meets at all: a name that is misspelt, most often.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::error::Result;
use crate::note::{TagKey, property_key};
use crate::path::{FileId, VaultPath};
use crate::search::eligible::holding;
use crate::search::filter::Filter;
use crate::search::path_pattern::PathPattern;
use crate::search::searcher::Searcher;

/// Conditions that no note meets, a line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// Of those that must hold: nothing can be found.
    pub wanted: Vec<String>,
    /// Of those that must not hold: nothing is left out by them, and what was meant to be left out is found.
    pub excluded: Vec<String>,
}

impl Searcher {
    /// The tags, paths, dates and properties of a filter that no note has. Linear in the notes where there are paths
    /// or dates, and in the notes with a property where there is one.
    ///
    /// # Errors
    /// Those of reading; a path that is no glob.
    pub fn unmatched(&self, filter: &Filter) -> Result<Unmatched> {
        let store = self.snapshot.store();
        let mut unmatched = Unmatched::default();
        let is_no_tag = |tag: &str| -> Result<bool> { Ok(store.notes_with_tag(TagKey::new(tag).as_str())?.is_empty()) };
        let listed = "`vault-index tags` lists those there are";
        for tag in &filter.tags {
            if is_no_tag(tag)? {
                unmatched.wanted.push(format!("no note has the tag `{tag}`; {listed}"));
            }
        }
        for tag in &filter.without_tags {
            if is_no_tag(tag)? {
                unmatched.excluded.push(format!("-tag:{tag} leaves nothing out: no note has that tag; {listed}"));
            }
        }
        let has_paths = !filter.paths.is_empty() || !filter.without_paths.is_empty();
        if has_paths || filter.after.is_some() || filter.before.is_some() {
            let notes = store.notes()?;
            let modified = |holds: &dyn Fn(i128) -> bool| notes.iter().any(|(.., at)| holds(i128::from(*at)));
            if let Some(after) = filter.after
                && !modified(&|at| at >= after.as_nanosecond())
            {
                unmatched.wanted.push(format!("no note was modified since {}", day(after)));
            }
            if let Some(before) = filter.before
                && !modified(&|at| at < before.as_nanosecond())
            {
                unmatched.wanted.push(format!("no note was last modified before {}", day(before)));
            }
            for pattern in &filter.paths {
                if is_no_path(pattern, &notes)? {
                    unmatched.wanted.push(format!("no note's path is `{pattern}`, lies under it or matches it"));
                }
            }
            for pattern in &filter.without_paths {
                if is_no_path(pattern, &notes)? {
                    let line = format!(
                        "-path:\"{pattern}\" leaves nothing out: no note's path is that, lies under it or matches it"
                    );
                    unmatched.excluded.push(line);
                }
            }
        }
        let now = Zoned::now();
        for test in &filter.properties {
            if store.notes_with_property(&property_key(&test.key))?.is_empty() {
                unmatched.wanted.push(format!("no note has the property `{}`", test.key));
            } else if holding(&store, test, &now)?.is_empty() {
                unmatched.wanted.push(format!("no note meets `{test}`"));
            }
        }
        Ok(unmatched)
    }
}

fn day(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn is_no_path(pattern: &str, notes: &[(FileId, VaultPath, i64)]) -> Result<bool> {
    let pattern = PathPattern::new(pattern)?;
    Ok(!notes.iter().any(|(_, path, _)| pattern.matches(path)))
}
