//! A change for people: which files are made, changed, renamed and deleted, with unified diffs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::{Change, FolderContents, SYSTEM_TRASH, origin_of};
use crate::action::{Action, DeleteMode};
use crate::content::Content;
use crate::sandbox::SafePath;

/// So long the shortest diff of a file is looked for, which takes the product of its lines and its changes; then what
/// is found by then is shown, larger than it need be.
const LOOKED_FOR: Duration = Duration::from_millis(300);

/// Lines around each difference.
pub(super) const AROUND: usize = 3;

/// What a change would do, file by file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Files and moved folders, by path.
    pub files: Vec<FilePreview>,
    /// Folders that are made or removed, by path.
    pub folders: Vec<FolderPreview>,
    /// What else should be known.
    pub notices: Vec<String>,
}

/// What happens to a file, all actions taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePreview {
    /// What happens to it.
    pub kind: Kind,
    /// Where it is now; for a new file, where it will be.
    pub path: String,
    /// Where it will be, if that changes: in `.trash`, or `the system's trash`, for one that is deleted there.
    pub to: Option<String>,
    /// The change of its text as a unified diff. `None` if its text stays or it is no text.
    pub diff: Option<String>,
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
    /// Of a folder: the files that move along, hidden ones too, where they are now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// Where there is a diff: its text now, for those who compare texts themselves; `None` for a new file.
    #[serde(skip)]
    pub before: Option<Content>,
    /// Where there is a diff: its text then; `None` for a file that is deleted.
    #[serde(skip)]
    pub after: Option<Content>,
}

/// What happens to a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderPreview {
    /// The folder.
    pub path: String,
    /// Created or deleted.
    pub kind: Kind,
}

/// What happens to a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is made.
    Created,
    /// Its text changes.
    Modified,
    /// It moves, and its text may change.
    Renamed,
    /// It goes into the trash, or for good.
    Deleted,
}

/// A file on its way through the actions.
#[derive(Debug, Clone, Default)]
struct Track {
    /// Where it is on the disk; `None` for a new file.
    origin: Option<SafePath>,
    before: Option<Content>,
    after: Option<Content>,
    deleted: Option<DeleteMode>,
    inside: Vec<String>,
}

impl Change {
    /// What it would do, file by file.
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
        // The name of a file can have a line break, which must not pass for a line of the diff.
        let names = [names.0, names.1].map(|name| name.replace(char::is_control, " "));
        let has_texts = before.is_some() || after.is_some();
        let texts = text_of(before.as_ref()).zip(text_of(after.as_ref())).filter(|_| has_texts);
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

/// The lines of a text with their ends. A lone carriage return ends none: in a diff it would put two lines in one row.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Compares two texts by their lines.
pub(super) fn compared<'t>(before: &'t [&'t str], after: &'t [&'t str]) -> TextDiff<'t, 't, 't, str> {
    TextDiff::configure().timeout(LOOKED_FOR).newline_terminated(true).diff_slices(before, after)
}

/// The text of a file, empty where there is none; `None` for one that is not UTF-8.
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
