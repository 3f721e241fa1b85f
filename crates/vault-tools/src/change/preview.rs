//! The preview of a change for people: which files are created, edited, renamed and deleted, with unified diffs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::{Change, FolderContents, SYSTEM_TRASH, origin_of};
use crate::action::{Action, DeleteMode};
use crate::content::Content;
use crate::sandbox::SafePath;

/// The time limit for finding the shortest diff of a file. It is limited because the search takes time proportional to
/// the product of the file's lines and its changes. After this time the diff is correct but may be larger than
/// necessary.
const LOOKED_FOR: Duration = Duration::from_millis(300);

/// The number of context lines around each difference.
pub(super) const AROUND: usize = 3;

/// The effects of a change, file by file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Files and moved folders, by path.
    pub files: Vec<FilePreview>,
    /// Folders that are created or removed, by path.
    pub folders: Vec<FolderPreview>,
    /// Notices for the reader.
    pub notices: Vec<String>,
}

/// The effect on a file, all actions taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePreview {
    /// The kind of the effect.
    pub kind: Kind,
    /// The current path; for a new file, its future path.
    pub path: String,
    /// The new path, if it changes: in `.trash`, or `the system's trash`, for a file that is deleted there.
    pub to: Option<String>,
    /// The change of its text as a unified diff, with all lines if it was not text before or is not afterwards. `None`
    /// if its text is unchanged or it is never text.
    pub diff: Option<String>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// For a folder: the files that move with it, including hidden ones, by their current paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// If there is a diff: its current text, for callers who compare texts themselves; `None` for a new file.
    #[serde(skip)]
    pub before: Option<Content>,
    /// If there is a diff: its text after the change; `None` for a file that is deleted.
    #[serde(skip)]
    pub after: Option<Content>,
}

/// The effect on a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderPreview {
    /// The folder.
    pub path: String,
    /// Created or deleted.
    pub kind: Kind,
}

/// The kind of an effect on a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is created.
    Created,
    /// Its text changes.
    Modified,
    /// It moves, and its text may change.
    Renamed,
    /// It is moved to the trash or deleted permanently.
    Deleted,
}

/// A file while it is followed through the actions.
#[derive(Debug, Clone, Default)]
struct Track {
    /// Its path on the disk; `None` for a new file.
    origin: Option<SafePath>,
    before: Option<Content>,
    after: Option<Content>,
    deleted: Option<DeleteMode>,
    inside: Vec<String>,
}

impl Change {
    /// Computes the effects, file by file.
    pub fn preview(&self) -> Preview {
        let mut tracks: BTreeMap<SafePath, Track> = BTreeMap::new();
        let mut gone: Vec<(SafePath, Track)> = Vec::new();
        let mut folders: BTreeMap<&SafePath, Kind> = BTreeMap::new();
        for (index, action) in self.actions.iter().enumerate() {
            let origin = |path: &SafePath| Some(origin_of(&self.actions[..index], path));
            match action {
                Action::MakeFolder { path } | Action::RemoveFolder { path } => {
                    let is_made = matches!(action, Action::MakeFolder { .. });
                    if folders.remove(path).is_none() && !path.is_in_trash() {
                        folders.insert(path, if is_made { Kind::Created } else { Kind::Deleted });
                    }
                }
                Action::Create { path, content } => {
                    tracks.insert(path.clone(), Track { after: Some(content.clone()), ..Track::default() });
                }
                Action::Edit { path, before, after } => {
                    let track = tracks
                        .entry(path.clone())
                        .or_insert_with(|| Track { origin: origin(path), ..Track::default() });
                    if track.before.is_none() && track.origin.is_some() {
                        track.before = Some(before.clone());
                    }
                    track.after = Some(after.clone());
                }
                Action::Delete { path, content, mode } => {
                    let track = tracks.remove(path).unwrap_or_else(|| Track {
                        origin: origin(path),
                        before: Some(content.clone()),
                        ..Track::default()
                    });
                    if track.origin.is_some() {
                        gone.push((path.clone(), Track { deleted: Some(*mode), after: None, ..track }));
                    }
                }
                Action::Move { from, to } => {
                    let inside: Vec<SafePath> = tracks.keys().filter(|path| path.is_in(from)).cloned().collect();
                    if !inside.contains(from) {
                        let inside = self.carried.get(&index).map(FolderContents::all_files).unwrap_or_default();
                        tracks.insert(to.clone(), Track { origin: origin(from), inside, ..Track::default() });
                    }
                    for path in inside {
                        if let (Some(track), Some(new)) = (tracks.remove(&path), path.moved(from, to)) {
                            tracks.insert(new, track);
                        }
                    }
                }
            }
        }
        let mut files: Vec<FilePreview> =
            tracks.into_iter().chain(gone).filter_map(|(path, track)| track.preview(&path)).collect();
        files.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
        let folders = folders.into_iter().map(|(path, kind)| FolderPreview { path: path.to_string(), kind }).collect();
        Preview { files, folders, notices: self.notices().map(str::to_owned).collect() }
    }
}

impl Track {
    fn preview(self, now: &SafePath) -> Option<FilePreview> {
        let Self { origin, before, after, deleted, inside } = self;
        let moved = origin.as_ref().is_some_and(|origin| origin != now);
        let kind = match &origin {
            _ if deleted.is_some() || now.is_in_trash() => Kind::Deleted,
            None => Kind::Created,
            Some(_) if moved => Kind::Renamed,
            Some(_) => Kind::Modified,
        };
        if kind == Kind::Modified && before == after {
            return None;
        }
        let path = origin.as_ref().unwrap_or(now).to_string();
        let to = match deleted {
            Some(DeleteMode::SystemTrash) => Some(SYSTEM_TRASH.to_owned()),
            Some(DeleteMode::Permanent | DeleteMode::Trash) => None,
            None => moved.then(|| now.to_string()),
        };
        let names = match kind {
            Kind::Created => ("/dev/null".to_owned(), format!("b/{now}")),
            Kind::Deleted => (format!("a/{path}"), "/dev/null".to_owned()),
            _ => (format!("a/{path}"), format!("b/{now}")),
        };
        // A file name can contain a line break, which must not look like a line of the diff.
        let names = [names.0, names.1].map(|name| name.replace(char::is_control, " "));
        let has_texts = before.is_some() || after.is_some();
        let texts = match (text_of(before.as_ref()), text_of(after.as_ref())) {
            (None, None) => None,
            _ if !has_texts => None,
            // If only one of them is text, all of its lines are shown.
            (before, after) => Some((before.unwrap_or_default(), after.unwrap_or_default())),
        };
        let (diff, added, removed) = match texts {
            Some((before, after)) => {
                let (before, after) = (lines(before), lines(after));
                let diff = compared(&before, &after);
                let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
                let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
                let unified = diff.unified_diff().context_radius(AROUND).header(&names[0], &names[1]).to_string();
                ((!unified.is_empty()).then_some(unified), added, removed)
            }
            None => (None, 0, 0),
        };
        let is_compared = |content: &Option<Content>| content.clone().filter(|_| diff.is_some());
        let (before, after) = (is_compared(&before), is_compared(&after));
        Some(FilePreview { kind, path, to, diff, added, removed, inside, before, after })
    }
}

/// Splits a text into lines, with their line ends. A lone carriage return ends no line, because in a diff it would put
/// two lines in one row.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Compares two texts line by line.
pub(super) fn compared<'t>(before: &'t [&'t str], after: &'t [&'t str]) -> TextDiff<'t, 't, 't, str> {
    TextDiff::configure().timeout(LOOKED_FOR).newline_terminated(true).diff_slices(before, after)
}

/// Returns the text of a file, empty if there is no file; `None` for one that is not UTF-8.
fn text_of(content: Option<&Content>) -> Option<&str> {
    content.map_or(Some(""), Content::text)
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FolderPreview { path, kind } in &self.folders {
            let what = if *kind == Kind::Created { "create folder" } else { "remove folder" };
            writeln!(f, "{what} {path}")?;
        }
        for FilePreview { kind, path, to, diff, inside, .. } in &self.files {
            match (kind, to) {
                (Kind::Created, _) => writeln!(f, "create {path}")?,
                (Kind::Modified, _) => writeln!(f, "modify {path}")?,
                (Kind::Renamed, to) => writeln!(f, "rename {path} -> {}", to.as_deref().unwrap_or_default())?,
                (Kind::Deleted, Some(to)) => writeln!(f, "delete {path} -> {to}")?,
                (Kind::Deleted, None) => writeln!(f, "delete {path} for good")?,
            }
            inside.iter().try_for_each(|path| writeln!(f, "  {path}"))?;
            if let Some(diff) = diff {
                f.write_str(diff)?;
                if !diff.ends_with('\n') {
                    writeln!(f)?;
                }
            }
        }
        self.notices.iter().try_for_each(|notice| writeln!(f, "note: {notice}"))
    }
}
