//! The parts of a previewed plan that a person can leave out: calls, without which the plan is previewed again, and
//! hunks of files that are only edited.

use std::collections::BTreeSet;

use vault_index::links::keys_leading_to;

use super::preview::{CallId, CallPreview, PlanPreview, StepPreview, digest_of};
use crate::action::Action;
use crate::change::{CallActions, EditedFile, LeftOutHunks};
use crate::content::Content;
use crate::error::Result;
use crate::links::link_keys;
use crate::sandbox::SafePath;

/// A call that can be left out as a whole, with its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeparableCall {
    /// Which call it is.
    pub id: CallId,
    /// The position of the step in [`PlanPreview::steps`], and of the call in the step.
    pub at: (usize, usize),
    /// The paths that it creates, edits, moves or deletes.
    pub paths: Vec<String>,
}

impl PlanPreview {
    /// Returns the calls that do more than edit the [`PlanPreview::separable_files`]. To leave some out, preview the
    /// plan again with [`dry_run_without`](super::dry_run_without), because other calls can depend on them.
    pub fn separable_calls(&self) -> Vec<SeparableCall> {
        let files = self.separable_files();
        let is_separable = |path: &String| files.binary_search_by(|file| file.path().as_str().cmp(path)).is_ok();
        let mut calls = Vec::new();
        for (number, step) in self.steps.iter().enumerate().filter(|(_, step)| step.runs()) {
            for (position, call) in step.calls.iter().enumerate() {
                let paths = self.change.paths_in(call.actions.clone());
                // It is unknown which call of a loop has an effect.
                let acts = !step.effects.is_empty() && step.calls.len() == 1;
                if acts || paths.iter().any(|path| !is_separable(path)) {
                    let id = CallId { step: step.id.clone(), item: call.item };
                    calls.push(SeparableCall { id, at: (number, position), paths });
                }
            }
        }
        calls
    }

    /// Adds notices about notes that link to a file which `whole` creates and this plan, a part of which is left out,
    /// does not.
    pub fn note_links_to_left_out(&mut self, whole: &Self) {
        let made = |plan: &Self| -> BTreeSet<SafePath> {
            let path = |action: &Action| match action {
                Action::Create { path, .. } => Some(path.clone()),
                Action::Move { to, .. } if !to.is_in_trash() => Some(to.clone()),
                _ => None,
            };
            plan.change.actions().iter().filter_map(path).collect()
        };
        let missing = &made(whole) - &made(self);
        let keys = |path: &SafePath| keys_leading_to(path.vault_path());
        let missing: Vec<(&SafePath, Vec<String>)> = missing.iter().map(|path| (path, keys(path).collect())).collect();
        if missing.is_empty() {
            return;
        }
        for action in self.change.actions() {
            let (path, before, after) = match action {
                Action::Create { path, content } => (path, None, content),
                Action::Edit { path, before, after } => (path, Some(before), after),
                _ => continue,
            };
            let links = |content: &Content| content.text().map(|text| link_keys(path, text)).unwrap_or_default();
            let old = before.map(links).unwrap_or_default();
            let new: BTreeSet<String> = links(after).into_iter().filter(|key| !old.contains(key)).collect();
            let led = missing.iter().filter(|(_, keys)| keys.iter().any(|key| new.contains(key)));
            self.notices.extend(led.map(|(missing, _)| format!("{path} has a link to {missing}, which is left out")));
        }
    }

    /// Returns the files that are only edited, and by calls that edit no other files, by path. Hunks of them can be
    /// left out.
    pub fn separable_files(&self) -> Vec<EditedFile> {
        let of_call =
            |step: &StepPreview, call: &CallPreview| -> CallActions { (call.actions.clone(), step.separable) };
        let calls: Vec<CallActions> = self
            .steps
            .iter()
            .filter(|step| step.runs())
            .flat_map(|step| step.calls.iter().map(move |call| of_call(step, call)))
            .collect();
        self.change.separable_files(&calls)
    }

    /// Leaves out the parts that a person left out of the [`PlanPreview::separable_files`]. The notices of the steps
    /// report this, their outputs contain the versions that the files will have, and the digest changes.
    ///
    /// # Errors
    /// If the plan cannot be written as JSON.
    pub fn keep(&mut self, files: &[EditedFile]) -> Result<()> {
        let cut: Vec<(&EditedFile, LeftOutHunks)> =
            files.iter().filter_map(|file| Some((file, file.left_out()?))).collect();
        if cut.is_empty() {
            return Ok(());
        }
        for (file, left_out) in &cut {
            for step in self.steps.iter_mut().filter(|step| step.runs()) {
                let edited = self.change.paths_in(step.actions.clone());
                if edited.binary_search_by(|path| path.as_str().cmp(file.path().as_str())).is_ok() {
                    step.notices.push(left_out.sentence());
                    file.correct_version(&mut step.output);
                    self.notices.extend(step.named_notices().last());
                }
            }
        }
        let gone = self.change.keep(files);
        let moved = |at: usize| at - gone.partition_point(|gone| *gone < at);
        for step in &mut self.steps {
            step.actions = moved(step.actions.start)..moved(step.actions.end);
            for call in &mut step.calls {
                call.actions = moved(call.actions.start)..moved(call.actions.end);
            }
        }
        self.left_out = cut.into_iter().map(|(_, left_out)| left_out).collect();
        self.editor = None;
        self.digest = digest_of(&self.plan, &self.steps, &self.change)?;
        Ok(())
    }
}
