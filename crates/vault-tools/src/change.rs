//! A change: a sequence of actions as plain data. It is shown as a preview and applied as one transaction.

mod preview;
mod leave_out;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use vault_index::VaultState;

use crate::action::{Action, DeleteMode};
use crate::content::ContentHash;
use crate::sandbox::SafePath;

pub(crate) use leave_out::CallActions;
pub use leave_out::{EditedFile, LeftOutHunks, SeparableParts};
pub use preview::{FilePreview, FolderPreview, Kind, Preview};

/// Shown instead of a path for a file in the system's trash.
pub(crate) const SYSTEM_TRASH: &str = "the system's trash";

/// A sequence of actions, and the files that were read to compute them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    pub(crate) actions: Vec<Action>,
    /// The contents of moved folders, by the position of the move among the actions.
    pub(crate) carried: BTreeMap<usize, FolderContents>,
    /// The hashes of the files on the disk that were read.
    pub(crate) reads: BTreeMap<SafePath, ContentHash>,
    /// Further assumptions about the disk.
    pub(crate) preconditions: Preconditions,
    /// Notices for the reader of a preview.
    pub(crate) notices: Vec<Notice>,
}

/// A notice for the reader of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// A file that the call did not name and that this notice mentions.
    pub about: Option<SafePath>,
    pub text: String,
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { about: None, text }
    }
}

/// The contents of a folder that is moved, by their paths before the move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderContents {
    pub folders: Vec<SafePath>,
    pub files: Vec<SafePath>,
    /// Files that are invisible to tools.
    pub hidden: Vec<String>,
}

impl FolderContents {
    /// Returns the paths of all files, sorted.
    pub fn all_files(&self) -> Vec<String> {
        let mut files: Vec<String> = self.files.iter().map(ToString::to_string).collect();
        files.extend(self.hidden.iter().cloned());
        files.sort();
        files
    }
}

/// Returns the path on the disk of the file that is at `path` after the given actions.
pub(crate) fn origin_of(actions: &[Action], path: &SafePath) -> SafePath {
    actions.iter().rev().fold(path.clone(), |path, action| match action {
        Action::Move { from, to } => path.moved(to, from).unwrap_or(path),
        _ => path,
    })
}

impl Change {
    /// Returns the actions, in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns the notices for the reader of a preview.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.notices.iter().map(|notice| notice.text.as_str())
    }

    /// Removes notices about files that may not be shown.
    pub(crate) fn retain_notices(&mut self, may_be_shown: &dyn Fn(&SafePath) -> bool) {
        self.notices.retain(|notice| notice.about.as_ref().is_none_or(may_be_shown));
    }

    /// Returns whether it has no actions.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Returns whether it deletes files, to the trash or permanently.
    pub fn deletes(&self) -> bool {
        self.deletes_in(0..self.actions.len())
    }

    /// Returns whether some of its actions delete files.
    pub(crate) fn deletes_in(&self, actions: Range<usize>) -> bool {
        self.actions[actions].iter().any(|action| match action {
            Action::Delete { .. } => true,
            Action::Move { to, .. } => to.is_in_trash(),
            _ => false,
        })
    }

    /// Returns each path that changes, once: the contents of moved folders count, the trash does not. Rules about paths
    /// are checked against these.
    pub fn paths(&self) -> Vec<String> {
        self.paths_in(0..self.actions.len())
    }

    /// Returns the paths that some of its actions change.
    pub(crate) fn paths_in(&self, actions: Range<usize>) -> Vec<String> {
        let mut all = Vec::new();
        for (index, action) in actions.clone().zip(&self.actions[actions]) {
            let (path, to) = action.paths();
            all.push(path.clone());
            all.extend(to.cloned());
            if let (Some(carried), Some(to)) = (self.carried.get(&index), to) {
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

    /// Returns the digest that binds an approval to exactly these actions: 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut text = String::new();
        for action in &self.actions {
            let (path, to) = action.paths();
            let to = to.map_or("", SafePath::as_str);
            let contents = match action {
                Action::Create { content, .. } => format!("{}", content.hash()),
                Action::Edit { before, after, .. } => format!("{} {}", before.hash(), after.hash()),
                Action::Delete { content, mode: DeleteMode::SystemTrash, .. } => format!("{} trash", content.hash()),
                Action::Delete { content, .. } => format!("{}", content.hash()),
                _ => String::new(),
            };
            text.push_str(&format!("{}\n{:?}\n{to:?}\n{contents}\n", action.name(), path.as_str()));
        }
        for (index, carried) in &self.carried {
            for path in carried.all_files() {
                text.push_str(&format!("carried {index}\n{path:?}\n"));
            }
        }
        ContentHash::of(text.as_bytes()).to_string()
    }
}

/// A change's assumptions about the disk besides the contents of the files it reads: names, links and folders.
///
/// Before a change is applied, the files from which it was computed are compared with the disk. But the target of a
/// link also depends on files that were not read: for example, a new file with the same name, or a note that links to
/// it by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// By link key: the files that a link with this key can lead to.
    pub names: BTreeMap<String, BTreeSet<SafePath>>,
    /// Keys whose links were searched for.
    pub keys: BTreeSet<String>,
    /// The notes that may contain such links.
    pub linking: BTreeSet<SafePath>,
    /// The files in each folder that is moved or deleted.
    pub folders: BTreeMap<SafePath, BTreeSet<SafePath>>,
    /// The state of vault and index at which all of it was observed.
    pub observed: ObservedState,
}

/// The state of vault and index at the time of the observations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ObservedState {
    /// Nothing was observed.
    #[default]
    Never,
    /// All observations were made at this state.
    At(VaultState),
    /// Observations were made at different states, or the notes themselves were read.
    Unknown,
}

impl Preconditions {
    /// Records the state at which the next assumptions were observed; `None` if it is uncertain.
    pub fn observe(&mut self, state: Option<&VaultState>) {
        self.observed = match (state, &self.observed) {
            (Some(state), ObservedState::Never) => ObservedState::At(*state),
            (Some(state), ObservedState::At(first)) if state == first => return,
            _ => ObservedState::Unknown,
        };
    }
}
