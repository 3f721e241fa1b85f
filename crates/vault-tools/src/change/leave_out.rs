//! Parts of a change that a person leaves out: files that are only edited, and hunks of them. This module does no I/O.
//!
//! Only an independent part can be left out. A rename and the links that are rewritten for it belong together, and so
//! do a call's changes to several files, unless its tool declares that the files are independent.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Change;
use super::preview::{AROUND, compared, lines};
use crate::action::Action;
use crate::content::Content;
use crate::sandbox::SafePath;

/// Which parts of a call can be left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeparableParts {
    /// Hunks, if it edits one file and does nothing else.
    #[default]
    Hunks,
    /// Hunks and files, if it only edits files, because each file may as well remain unchanged.
    Files,
    /// Nothing: its edits belong together, for example when lines move.
    Nothing,
}

/// The actions of a call, by their positions, and which parts of it can be left out.
pub(crate) type CallActions = (Range<usize>, SeparableParts);

/// A file that a change edits, and which of its hunks are kept; initially all.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use vault_tools::approval::{Answer, PreparedChange};
/// use vault_tools::{Headless, IndexUse, Policy, Toolbox, Vault, VaultOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let dir = folder.path().join("notes");
/// # std::fs::create_dir(&dir)?;
/// # let lines = "line\n".repeat(20);
/// # std::fs::write(dir.join("Log.md"), format!("begun\n{lines}done\n"))?;
/// # let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(IndexUse::Scan);
/// let vault = Arc::new(Vault::open(&dir, options)?);
/// let mut toolbox = Toolbox::new(vault, Box::new(Headless::default()), Policy::default());
/// let args = json!({ "path": "Log.md", "mode": "replace", "content": format!("BEGUN\n{lines}DONE\n") });
/// let mut ask = |change: &PreparedChange| {
///     let mut files = change.separable_files();
///     if files[0].hunks().len() == 1 {
///         return Answer::Yes;
///     }
///     files[0].leave_out(1); // of its hunks, what a person does not want
///     Answer::Instead(Box::new(change.without(&files))) // which is asked about again
/// };
/// toolbox.call("write_note", args, &mut ask)?;
/// # assert_eq!(std::fs::read_to_string(dir.join("Log.md"))?, format!("BEGUN\n{lines}done\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedFile {
    path: SafePath,
    before: Content,
    after: Content,
    hunks: Vec<Hunk>,
    kept: Vec<bool>,
}

/// A run of lines that change, with context lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk {
    diff: String,
    before: Range<usize>,
    after: Range<usize>,
}

/// The hunks that a person left out of a file that a call would have edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct LeftOutHunks {
    /// The file.
    pub path: String,
    /// The number of hunks that were left out.
    pub hunks: usize,
    /// The number of all hunks.
    pub of: usize,
    /// The hunks that were left out, as a unified diff; empty for a file that is not text.
    pub diff: String,
}

impl EditedFile {
    fn new(path: SafePath, before: Content, after: Content) -> Self {
        let hunks = match (before.text(), after.text()) {
            (Some(before), Some(after)) => {
                let (before, after) = (lines(before), lines(after));
                let diff = compared(&before, &after);
                let mut unified = diff.unified_diff();
                let hunks = unified.context_radius(AROUND).iter_hunks().filter_map(|hunk| {
                    let (first, last) = (hunk.ops().first()?, hunk.ops().last()?);
                    let before = first.old_range().start..last.old_range().end;
                    let after = first.new_range().start..last.new_range().end;
                    Some(Hunk { diff: hunk.to_string(), before, after })
                });
                hunks.collect()
            }
            _ => Vec::new(),
        };
        let kept = vec![true; hunks.len().max(1)];
        Self { path, before, after, hunks, kept }
    }

    /// Returns its path in the vault.
    pub fn path(&self) -> &SafePath {
        &self.path
    }

    /// Returns whether the other is the same edit of the same file, ignoring which hunks are left out.
    pub fn is_same_edit(&self, other: &Self) -> bool {
        (&self.path, &self.before, &self.after, &self.hunks) == (&other.path, &other.before, &other.after, &other.hunks)
    }

    /// Returns its hunks as unified diffs; a single empty one for a file that is not text.
    pub fn hunks(&self) -> Vec<&str> {
        match &self.hunks[..] {
            [] => vec![""],
            hunks => hunks.iter().map(|hunk| hunk.diff.as_str()).collect(),
        }
    }

    /// Leaves out a hunk, by its position.
    pub fn leave_out(&mut self, hunk: usize) {
        if let Some(kept) = self.kept.get_mut(hunk) {
            *kept = false;
        }
    }

    /// Returns the hunks that are left out; `None` if all are kept.
    pub fn left_out(&self) -> Option<LeftOutHunks> {
        let hunks = self.kept.iter().filter(|kept| !**kept).count();
        let left_out = self.hunks.iter().zip(&self.kept).filter(|(_, kept)| !**kept);
        let diff = left_out.map(|(hunk, _)| hunk.diff.as_str()).collect();
        (hunks > 0).then(|| LeftOutHunks { path: self.path.to_string(), hunks, of: self.kept.len(), diff })
    }

    /// Returns the current content of the file with only the kept hunks applied.
    fn content(&self) -> Content {
        if self.kept.iter().all(|kept| *kept) {
            return self.after.clone();
        }
        let (Some(before), Some(after)) = (self.before.text(), self.after.text()) else { return self.before.clone() };
        let (before, after) = (lines(before), lines(after));
        let mut kept: Vec<&str> = Vec::with_capacity(before.len());
        let mut at = 0;
        for (hunk, is_kept) in self.hunks.iter().zip(&self.kept) {
            kept.extend(&before[at..hunk.before.start]);
            kept.extend(if *is_kept { &after[hunk.after.clone()] } else { &before[hunk.before.clone()] });
            at = hunk.before.end;
        }
        kept.extend(&before[at..]);
        Content::from(kept.concat())
    }

    /// In the output of a call, replaces the version of the file with all hunks by the version that it will have.
    pub(crate) fn correct_version(&self, output: &mut Value) {
        let (whole, kept) = (self.after.hash().etag(), self.content().hash().etag());
        replace_text(output, &whole, &kept);
    }
}

impl LeftOutHunks {
    /// Describes it in a sentence.
    pub fn sentence(&self) -> String {
        let Self { path, hunks, of, .. } = self;
        match hunks == of {
            true => format!("a person left out all changes in {path}"),
            false => format!("a person left out {hunks} of the {of} hunks in {path}"),
        }
    }
}

impl Change {
    /// Returns the files of which parts can be left out, by path; `calls` are all calls that made the change.
    pub(crate) fn separable_files(&self, calls: &[CallActions]) -> Vec<EditedFile> {
        let mut fixed: BTreeSet<&SafePath> = BTreeSet::new();
        for (actions, separable) in calls {
            let actions = &self.actions[actions.clone()];
            let edited: BTreeSet<&SafePath> = actions.iter().filter_map(edited_path).collect();
            let only_edits = actions.iter().all(|action| edited_path(action).is_some());
            let stands_alone = match separable {
                SeparableParts::Hunks => only_edits && edited.len() == 1,
                SeparableParts::Files => only_edits,
                SeparableParts::Nothing => false,
            };
            if !stands_alone {
                let is_folder =
                    |action: &&Action| matches!(action, Action::MakeFolder { .. } | Action::RemoveFolder { .. });
                fixed.extend(actions.iter().filter(|action| !is_folder(action)).flat_map(Action::all_paths));
            }
        }
        // The contents of a moved folder have different paths before and after.
        let is_fixed = |path: &SafePath| {
            std::iter::successors(Some(path.clone()), SafePath::parent).any(|above| fixed.contains(&above))
        };
        let mut files: BTreeMap<&SafePath, (&Content, &Content)> = BTreeMap::new();
        for action in &self.actions {
            if let Action::Edit { path, before, after } = action
                && !is_fixed(path)
            {
                files.entry(path).and_modify(|file| file.1 = after).or_insert((before, after));
            }
        }
        let file = |(path, (before, after)): (&SafePath, (&Content, &Content))| {
            EditedFile::new(path.clone(), before.clone(), after.clone())
        };
        files.into_iter().map(file).filter(|file| file.before != file.after).collect()
    }

    /// Removes the parts that are left out of some of its [`Change::separable_files`]. Returns the positions of the
    /// actions that are removed: a file of which a part is left out is edited once, by its last edit.
    pub(crate) fn keep(&mut self, files: &[EditedFile]) -> Vec<usize> {
        let cut = files.iter().filter(|file| file.left_out().is_some());
        let mut cut: BTreeMap<&SafePath, (&EditedFile, Option<Content>)> = cut
            .map(|file| (&file.path, (file, Some(file.content()).filter(|content| *content != file.before))))
            .collect();
        let mut gone = Vec::new();
        for (at, action) in self.actions.iter_mut().enumerate().rev() {
            let Action::Edit { path, before, after } = action else { continue };
            let Some((file, content)) = cut.get_mut(&*path) else { continue };
            // The last edit comes first in this iteration.
            match content.take() {
                Some(content) => (*before, *after) = (file.before.clone(), content),
                None => gone.push(at),
            }
        }
        gone.reverse();
        let at_new = |at: usize| at - gone.partition_point(|gone| *gone < at);
        self.carried = std::mem::take(&mut self.carried).into_iter().map(|(at, what)| (at_new(at), what)).collect();
        let mut at = 0;
        self.actions.retain(|_| {
            at += 1;
            gone.binary_search(&(at - 1)).is_err()
        });
        gone
    }
}

fn edited_path(action: &Action) -> Option<&SafePath> {
    match action {
        Action::Edit { path, .. } => Some(path),
        _ => None,
    }
}

/// Replaces each string in a value that equals `old`.
fn replace_text(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_text(item, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_text(field, old, new)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::change::FolderContents;

    fn path(text: &str) -> SafePath {
        SafePath::new(text).unwrap()
    }

    fn edit(name: &str, before: &str, after: &str) -> Action {
        Action::Edit { path: path(name), before: before.into(), after: after.into() }
    }

    fn change(actions: Vec<Action>) -> Change {
        Change { actions, ..Change::default() }
    }

    fn names(files: &[EditedFile]) -> Vec<&str> {
        files.iter().map(|file| file.path().as_str()).collect()
    }

    /// Lines of few different texts, so that hunks repeat; the last may have no end.
    fn text() -> impl Strategy<Value = String> {
        let line = prop::sample::select(vec!["a\n", "b\n", "\n", "c\r\n", "d\re\n"]);
        (prop::collection::vec(line, 0..40), any::<bool>())
            .prop_map(|(lines, cut)| if cut { lines.concat().trim_end().to_owned() } else { lines.concat() })
    }

    proptest! {
        /// All hunks kept are the file after, none the file before, and each that is kept changes what it shows.
        #[test]
        fn what_is_kept_is_applied_and_nothing_else(before in text(), after in text(), kept in any::<u64>()) {
            let file = EditedFile::new(path("a.md"), before.as_str().into(), after.as_str().into());
            prop_assert_eq!(file.content(), Content::from(after.as_str()));
            let mut none = file.clone();
            (0..none.hunks().len()).for_each(|hunk| none.leave_out(hunk));
            prop_assert_eq!(none.content(), Content::from(before.as_str()));
            let mut some = file.clone();
            (0..some.hunks().len()).filter(|hunk| kept >> (hunk % 64) & 1 == 0).for_each(|hunk| some.leave_out(hunk));
            // The rest is what still differs from the file after: left out of that, nothing is.
            let rest = EditedFile::new(path("a.md"), some.content(), after.as_str().into());
            prop_assert_eq!(rest.content(), Content::from(after.as_str()));
            let count = some.left_out().map_or(0, |left_out| left_out.hunks);
            prop_assert!(count > 0 || some.content() == file.content());
        }
    }

    #[test]
    fn only_what_stands_by_itself_can_be_left_out() {
        let renamed = Action::Move { from: path("a.md"), to: path("b.md") };
        let actions = vec![edit("x.md", "1", "2"), renamed, edit("links.md", "[[a]]", "[[b]]"), edit("y.md", "1", "2")];
        let files = |calls: &[CallActions]| change(actions.clone()).separable_files(calls);
        use SeparableParts::{Files, Hunks, Nothing};
        assert_eq!(names(&files(&[(0..1, Hunks), (1..3, Hunks), (3..4, Hunks)])), ["x.md", "y.md"]);
        assert_eq!(names(&files(&[(0..1, Nothing), (1..3, Files), (3..4, Hunks)])), ["y.md"]);
        assert!(files(&[(0..4, Files)]).is_empty(), "a rename is more than edits");
        // A file that two calls edit, of which one is more than that.
        let actions = vec![edit("links.md", "[[a]]", "[[a]]\nx"), actions[1].clone(), edit("links.md", "[[a]]\nx", "")];
        assert!(change(actions).separable_files(&[(0..1, Hunks), (1..3, Hunks)]).is_empty());
        let several = || change(vec![edit("x.md", "1", "2"), edit("y.md", "1", "2")]);
        assert!(several().separable_files(&[(0..2, Hunks)]).is_empty());
        assert_eq!(names(&several().separable_files(&[(0..2, Files)])), ["x.md", "y.md"]);
        // In a folder that moves.
        let moved = Action::Move { from: path("f"), to: path("g") };
        let actions = change(vec![edit("f/x.md", "1", "2"), moved, edit("g/y.md", "1", "2")]);
        assert!(actions.separable_files(&[(0..1, Hunks), (1..2, Hunks), (2..3, Hunks)]).is_empty());
    }

    #[test]
    fn a_file_of_which_something_is_left_out_is_edited_once() {
        let lines = |first: &str, last: &str| format!("{first}\n{}{last}\n", "same\n".repeat(20));
        let (one, two, three) = (lines("a", "z"), lines("A", "z"), lines("A", "Z"));
        let moved = Action::Move { from: path("f"), to: path("g") };
        let mut change =
            change(vec![edit("x.md", &one, &two), moved, edit("x.md", &two, &three), edit("y.md", "1", "2")]);
        change.carried.insert(1, FolderContents::default());
        let calls = [
            (0..1, SeparableParts::Hunks),
            (1..2, SeparableParts::Hunks),
            (2..3, SeparableParts::Hunks),
            (3..4, SeparableParts::Hunks),
        ];
        let mut files = change.separable_files(&calls);
        assert_eq!(names(&files), ["x.md", "y.md"]);
        files[0].leave_out(0);
        files[1].leave_out(0);
        let mut output = serde_json::json!({ "all": [Content::from(three.as_str()).hash().etag()], "other": "x" });
        files[0].correct_version(&mut output);
        assert_eq!(output["all"][0], Content::from(lines("a", "Z")).hash().etag());
        assert_eq!(change.keep(&files), [0, 3]);
        assert_eq!(change.actions[1..], [edit("x.md", &one, &lines("a", "Z"))]);
        assert_eq!(change.carried.keys().collect::<Vec<_>>(), [&0]);
        assert_eq!(files[0].left_out().unwrap().sentence(), "a person left out 1 of the 2 hunks in x.md");
        assert_eq!(files[1].left_out().unwrap().sentence(), "a person left out all changes in y.md");
    }
}
