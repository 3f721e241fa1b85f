//! Actions together: what is proposed, shown, done as one, and taken back as one.
//!
//! ```text
//! Overlay (the vault with changes not yet made) ──> Change ──> Preview
//!                                                      └────> apply ──> a run in the journal ──> undo, redo
//! ```
//!
//! A tool works on an [`Overlay`]: it reads what would be there, and what it changes is written down as actions.
//! What is shown is made from those actions, and the same actions are what is done; before, every file they
//! concern is compared with what it was when it was read.

mod apply;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
mod expected;
mod json_text;
#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod laws;
mod overlay;
mod place_of_links;
mod preview;
mod propose;
mod put_back;
mod recover;
mod relink;
mod seen;
mod sources;
mod spell;
#[cfg(test)]
mod tests;
mod undo;
#[cfg(test)]
mod undo_tests;
mod vault;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::action::{Action, Gone};
use crate::change::seen::Seen;
use crate::content::ContentHash;
use crate::sandbox::SafePath;

pub use apply::{ApplyOptions, Applying, Go, Run};
pub use overlay::Overlay;
pub use preview::{FilePreview, FolderPreview, Kind, Preview};
pub use propose::{Deleted, Deletion, LinkAt, Renamed, Rewritten, Written};
pub use recover::Recovered;
pub use undo::Force;
pub use vault::{IndexUse, RunInfo, RunStatus, Vault, VaultOptions};

/// Actions that belong together, in order, and what was read to arrive at them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    actions: Vec<Action>,
    /// What the moves of folders carry along, by the place of the move among the actions.
    carried: BTreeMap<usize, Carried>,
    /// Files of the disk that were read, as they were.
    reads: BTreeMap<SafePath, ContentHash>,
    /// Names and links of the disk by which links were kept.
    seen: Seen,
    /// What the reader of a preview should know besides.
    notices: Vec<Notice>,
}

/// What the reader of a preview should know.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Notice {
    /// A file that the call did not name, and that is told of by this.
    about: Option<SafePath>,
    text: String,
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { about: None, text }
    }
}

/// What a folder that is moved takes along, by its paths before the move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Carried {
    folders: Vec<SafePath>,
    files: Vec<SafePath>,
    /// Files that no tool sees.
    hidden: Vec<String>,
}

impl Carried {
    /// The paths of all files, sorted.
    fn all_files(&self) -> Vec<String> {
        let mut files: Vec<String> = self.files.iter().map(ToString::to_string).collect();
        files.extend(self.hidden.iter().cloned());
        files.sort();
        files
    }
}

/// Where on the disk lies what is at a path when some actions are done.
fn origin_of(actions: &[Action], path: &SafePath) -> SafePath {
    actions.iter().rev().fold(path.clone(), |path, action| match action {
        Action::Move { from, to } => path.moved(to, from).unwrap_or(path),
        _ => path,
    })
}

impl Change {
    /// What is done, in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// What the reader of a preview should know besides.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.notices.iter().map(|notice| notice.text.as_str())
    }

    /// Leaves out what would tell of files that may not be shown.
    pub(crate) fn tell_only(&mut self, may_be_shown: &dyn Fn(&SafePath) -> bool) {
        self.notices.retain(|notice| notice.about.as_ref().is_none_or(may_be_shown));
    }

    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Whether files are deleted, to the trash or for good.
    pub fn deletes(&self) -> bool {
        self.deletes_in(0..self.actions.len())
    }

    /// The same, of some of its actions.
    pub(crate) fn deletes_in(&self, actions: Range<usize>) -> bool {
        self.actions[actions].iter().any(|action| match action {
            Action::Delete { .. } => true,
            Action::Move { to, .. } => to.is_in_trash(),
            _ => false,
        })
    }

    /// Every path that is other than before, each once: what moved folders carry along counts, the trash does not.
    /// This is what rules about paths are asked about.
    pub fn paths(&self) -> Vec<String> {
        self.paths_in(0..self.actions.len())
    }

    /// The same, of some of its actions.
    pub(crate) fn paths_in(&self, actions: Range<usize>) -> Vec<String> {
        let mut all = Vec::new();
        for (place, action) in actions.clone().zip(&self.actions[actions]) {
            let (path, to) = action.paths();
            all.push(path.clone());
            all.extend(to.cloned());
            if let (Some(carried), Some(to)) = (self.carried.get(&place), to) {
                for old in carried.folders.iter().chain(&carried.files) {
                    all.push(old.clone());
                    all.extend(old.moved(path, to));
                }
            }
        }
        let shown = all.iter().filter(|path| !path.is_in_trash());
        let mut paths: Vec<String> = shown.map(ToString::to_string).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// By which an approval is bound to exactly these actions: 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut text = String::new();
        for action in &self.actions {
            let (path, to) = action.paths();
            let to = to.map_or("", SafePath::as_str);
            let contents = match action {
                Action::Create { content, .. } => format!("{}", content.hash()),
                Action::Edit { before, after, .. } => format!("{} {}", before.hash(), after.hash()),
                Action::Delete { content, to: Gone::ForGood, .. } => format!("{}", content.hash()),
                Action::Delete { content, to: Gone::SystemTrash, .. } => format!("{} trash", content.hash()),
                _ => String::new(),
            };
            // No path has a line break in it.
            text.push_str(&format!("{}\n{path}\n{to}\n{contents}\n", action.name()));
        }
        for (place, carried) in &self.carried {
            for path in carried.all_files() {
                text.push_str(&format!("carried {place}\n{path}\n"));
            }
        }
        ContentHash::of(text.as_bytes()).to_string()
    }
}
