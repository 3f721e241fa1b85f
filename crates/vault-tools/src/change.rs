//! A change: actions that belong together, as plain data. It is shown as a preview and applied as one transaction.

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

/// What stands for the path of a file that is in the system's trash.
pub(crate) const SYSTEM_TRASH: &str = "the system's trash";

/// Actions that belong together, in order, and what was read to arrive at them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    pub(crate) actions: Vec<Action>,
    /// What the moves of folders carry along, by the position of the move among the actions.
    pub(crate) carried: BTreeMap<usize, FolderContents>,
    /// Files of the disk that were read, as they were.
    pub(crate) reads: BTreeMap<SafePath, ContentHash>,
    /// What it assumes of the disk besides.
    pub(crate) preconditions: Preconditions,
    /// What the reader of a preview should know besides.
    pub(crate) notices: Vec<Notice>,
}

/// What the reader of a preview should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// A file that the call did not name and that this tells about.
    pub about: Option<SafePath>,
    pub text: String,
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { about: None, text }
    }
}

/// What a folder that is moved takes along, by its paths before the move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderContents {
    pub folders: Vec<SafePath>,
    pub files: Vec<SafePath>,
    /// Files that no tool sees.
    pub hidden: Vec<String>,
}

impl FolderContents {
    /// The paths of all files, sorted.
    pub fn all_files(&self) -> Vec<String> {
        let mut files: Vec<String> = self.files.iter().map(ToString::to_string).collect();
        files.extend(self.hidden.iter().cloned());
        files.sort();
        files
    }
}

/// Where on the disk lies what is at a path when some actions are done.
pub(crate) fn origin_of(actions: &[Action], path: &SafePath) -> SafePath {
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

    /// Removes notices about files that may not be shown.
    pub(crate) fn retain_notices(&mut self, may_be_shown: &dyn Fn(&SafePath) -> bool) {
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

    /// By which an approval is bound to exactly these actions: 64 hexadecimal digits.
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

/// What a change assumes of the disk beside the files it reads: names, links and folders as they were observed.
///
/// A change is made of the files it reads, and is compared with them before it is applied. But where a link leads is
/// also decided by files that nobody reads: one that comes with the same name, or a note that links to it by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// By link key: the files that links under it can lead to.
    pub names: BTreeMap<String, BTreeSet<SafePath>>,
    /// Keys whose links were looked for.
    pub keys: BTreeSet<String>,
    /// The notes in which they may stand.
    pub linking: BTreeSet<SafePath>,
    /// The files in a folder that moves or is deleted.
    pub folders: BTreeMap<SafePath, BTreeSet<SafePath>>,
    /// The state of vault and index in which all of it was observed.
    pub observed: ObservedState,
}

/// The state of vault and index when they were asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ObservedState {
    /// They were not.
    #[default]
    Never,
    /// Always this one.
    At(VaultState),
    /// Not always the same, or the notes themselves were read.
    Unknown,
}

impl Preconditions {
    /// What is added was observed in this state, if that is certain.
    pub fn observe(&mut self, state: Option<&VaultState>) {
        self.observed = match (state, &self.observed) {
            (Some(state), ObservedState::Never) => ObservedState::At(*state),
            (Some(state), ObservedState::At(first)) if state == first => return,
            _ => ObservedState::Unknown,
        };
    }
}
