//! Lets the user choose the parts of a change to make, one after the other, like `git add -p`.

use std::collections::BTreeSet;

use vault_tools::plan::{CallId, PlanPreview, SeparableCall};
use vault_tools::{EditedFile, Preview, Result};

use crate::{Paint, ask, note, sanitize_line};

use super::approve::{PartChoice, ReadLine, page, show};
use super::preview_text::{cut, file_line, texts_of_diff};

const KEYS: &str = "y keep it, n leave it out, a keep the rest of this file or step, d leave out the rest of it, \
k keep everything from here, q leave out everything from here, /TEXT keep everything before the next that names TEXT, \
w show it whole";

/// A part of a change, which is kept or left out as a whole.
struct Part {
    title: String,
    diff: String,
    /// The number of the file or step, for keys that apply to all of its parts.
    group: usize,
}

/// Asks about each hunk of the files, and reads the answers with `read_line`.
pub fn choose_hunks(mut files: Vec<EditedFile>, read_line: &mut ReadLine<'_>) -> PartChoice<Vec<EditedFile>> {
    let parts = parts_of_files(&files, 0);
    if parts.len() < 2 {
        note("this change belongs together, so it is made as a whole or not at all");
        return PartChoice::Whole;
    }
    let Some(kept) = choose(&parts, read_line) else { return PartChoice::Nothing };
    leave_out(&mut files, &kept);
    PartChoice::Part(files)
}

/// Asks about each call and each hunk of a plan. `again` previews the plan without some of its calls.
pub(super) fn choose_of_plan(
    plan: &PlanPreview,
    again: impl FnOnce(&BTreeSet<CallId>) -> Result<PlanPreview>,
) -> Result<PartChoice<PlanPreview>> {
    let (calls, mut files) = (plan.separable_calls(), plan.separable_files());
    let mut parts = parts_of_calls(&calls, plan);
    parts.extend(parts_of_files(&files, plan.steps.len()));
    if parts.len() < 2 {
        note("this plan belongs together, so it runs as a whole or not at all");
        return Ok(PartChoice::Whole);
    }
    let Some(kept) = choose(&parts, &mut ask) else { return Ok(PartChoice::Nothing) };
    let (kept_calls, kept_hunks) = kept.split_at(calls.len());
    leave_out(&mut files, kept_hunks);
    files.retain(|file| file.left_out().is_some());
    let without: BTreeSet<CallId> =
        calls.into_iter().zip(kept_calls).filter(|(_, kept)| !**kept).map(|(call, _)| call.id).collect();
    let mut chosen = if without.is_empty() { plan.clone() } else { again(&without)? };
    if !without.is_empty() {
        // Without these calls, the other calls can change a file differently. Ask again about such files.
        let now = chosen.separable_files();
        let (same, other): (Vec<EditedFile>, Vec<EditedFile>) =
            files.into_iter().partition(|file| now.iter().any(|now| now.is_same_edit(file)));
        files = same;
        let is_other = |file: &EditedFile| other.iter().any(|other| other.path() == file.path());
        let mut changed: Vec<EditedFile> = now.into_iter().filter(is_other).collect();
        if !changed.is_empty() {
            note("without these calls, some files change differently:");
            let Some(kept) = choose(&parts_of_files(&changed, 0), &mut ask) else { return Ok(PartChoice::Nothing) };
            leave_out(&mut changed, &kept);
            files.extend(changed);
        }
    }
    chosen.keep(&files)?;
    chosen.note_links_to_left_out(plan);
    if chosen.actions().is_empty() && chosen.steps.iter().all(|step| step.effects.is_empty()) {
        return Ok(PartChoice::Nothing);
    }
    Ok(PartChoice::Part(chosen))
}

fn parts_of_files(files: &[EditedFile], first_group: usize) -> Vec<Part> {
    let of_file = |(number, file): (usize, &EditedFile)| {
        let (path, hunks) = (sanitize_line(file.path().as_str()), file.hunks());
        let title = |at: usize| match hunks.len() {
            1 => format!("modify {path}"),
            count => format!("modify {path}, hunk {} of {count}", at + 1),
        };
        let part = |(at, diff): (usize, &&str)| Part {
            title: title(at),
            diff: (*diff).to_owned(),
            group: first_group + number,
        };
        hunks.iter().enumerate().map(part).collect::<Vec<Part>>()
    };
    files.iter().enumerate().flat_map(of_file).collect()
}

fn parts_of_calls(calls: &[SeparableCall], plan: &PlanPreview) -> Vec<Part> {
    let Preview { files, .. } = plan.preview();
    let part = |call: &SeparableCall| {
        let step = &plan.steps[call.at.0];
        let item = call.id.item.map(|item| format!(", item {}", item + 1)).unwrap_or_default();
        let is_its_own = |path: &String| call.paths.binary_search(path).is_ok();
        let own: Vec<_> =
            files.iter().filter(|file| is_its_own(&file.path) || file.to.as_ref().is_some_and(is_its_own)).collect();
        let effects = step.effects.iter().map(|effect| sanitize_line(&effect.to_string()));
        let lines: Vec<String> = own.iter().map(|file| file_line(file)).chain(effects).collect();
        let diff = match own[..] {
            [only] => only.diff.clone().unwrap_or_default(),
            _ => String::new(),
        };
        let title = format!("the step {}{item} ({})\n{}", step.id, step.tool, lines.join("\n"));
        Part { title, diff, group: call.at.0 }
    };
    calls.iter().map(part).collect()
}

/// Leaves out the hunks that are not kept; `kept` is in the order of [`parts_of_files`].
fn leave_out(files: &mut [EditedFile], kept: &[bool]) {
    let mut kept = kept.iter();
    for file in files {
        for hunk in 0..file.hunks().len() {
            if kept.next() == Some(&false) {
                file.leave_out(hunk);
            }
        }
    }
}

/// Asks about each part, and returns whether it is kept. `None` at the end of input.
fn choose(parts: &[Part], read_line: &mut ReadLine<'_>) -> Option<Vec<bool>> {
    let mut kept: Vec<bool> = Vec::new();
    while let Some(part) = parts.get(kept.len()) {
        let at = kept.len();
        let (short, whole) = texts_of_diff(&part.diff);
        let (short, whole) = (format!("{}\n{short}", part.title), format!("{}\n{whole}", part.title));
        let paint = Paint::stderr();
        show(&format!("\n{}", paint.diff(&cut(&short, &whole).0)));
        let rest = parts.len() - at;
        let same = parts[at..].iter().take_while(|other| other.group == part.group).count();
        let question = format!("{} of {}: keep it? [y, n, a, d, k, q, /TEXT, w, ? for help]", at + 1, parts.len());
        let answer = read_line(&question)?;
        let (count, is_kept) = match answer.as_str() {
            "y" | "yes" => (1, true),
            "n" | "no" => (1, false),
            "a" => (same, true),
            "d" => (same, false),
            "k" => (rest, true),
            "q" => (rest, false),
            "w" => {
                page(&paint.diff(&whole));
                continue;
            }
            text if text.starts_with('/') => {
                let wanted = text[1..].to_lowercase();
                let next = parts[at + 1..].iter().position(|part| part.title.to_lowercase().contains(&wanted));
                let Some(next) = next else {
                    note("no later part names it");
                    continue;
                };
                (next + 1, true)
            }
            _ => {
                note(KEYS);
                continue;
            }
        };
        kept.extend(std::iter::repeat_n(is_kept, count));
    }
    Some(kept)
}
