//! A plan as text for people: its goal, its steps with loops expanded, and its changes.

use serde_json::Value;
use vault_tools::approval::PreparedChange;
use vault_tools::plan::{LeftOutItem, PlanPreview, StepState};
use vault_tools::{Preview, Risk};

use crate::sanitize_line;

use super::preview_text::texts_after;

/// The maximum number of calls of a loop, and of items left out of it, that a question shows; `w` shows all.
const SHOWN_CALLS: usize = 8;

/// Returns a change as text for people, after the lines in `head`: the text that a question shows, and the whole. It
/// includes the effects of a call on the host, and the output that a call asks to return.
pub fn texts_of_change(change: &PreparedChange, mut head: Vec<String>) -> (String, String) {
    if let Some(returns) = change.returns() {
        head.push(format!("it returns {}", sanitize_line(&returns.to_string())));
    }
    texts_for_client(change, head)
}

/// [`texts_of_change`] for a client, without the output that a call asks to return, because a client must not get it
/// before the approval.
pub fn texts_for_client(change: &PreparedChange, mut head: Vec<String>) -> (String, String) {
    let preview = change.preview();
    let Some(plan) = change.plan() else {
        head.extend(change.effects().iter().map(|effect| format!("it {}", sanitize_line(&effect.to_string()))));
        return texts_after(head, preview);
    };
    let lines = |most| head.iter().cloned().chain(table(plan, most)).collect();
    (texts_after(lines(SHOWN_CALLS), preview).0, texts_after(lines(usize::MAX), preview).1)
}

/// Returns the whole text of a plan. The notices of its changes are left out, because those of the plan include them.
pub(super) fn whole_text(preview: &PlanPreview) -> String {
    texts_after(table(preview, usize::MAX), &Preview { notices: Vec::new(), ..preview.preview() }).1
}

/// Returns the goal, the steps with their risks, loops expanded to at most `most` calls, and the notices.
fn table(preview: &PlanPreview, most: usize) -> Vec<String> {
    // The risk comes first, because a goal can have any length and content.
    let mut lines = vec![format!("[{}] {}", badge(preview.risk), sanitize_line(&preview.plan.goal))];
    lines.extend(preview.plan.assumptions.iter().map(|text| format!("assumes: {}", sanitize_line(text))));
    let width = preview.steps.iter().map(|step| step.id.len()).max().unwrap_or(0);
    for (number, step) in preview.steps.iter().enumerate() {
        let what = step.preview.as_deref().map(sanitize_line).unwrap_or_default();
        let head = format!("{:>3}. {:width$}  [{}]  {}", number + 1, step.id, badge(step.risk), step.tool);
        lines.push(format!("{head}  {what}").trim_end().to_string());
        match &step.state {
            StepState::Fails { reason } => lines.push(format!("       fails: {}", sanitize_line(reason))),
            StepState::Skipped { reason } => lines.push(format!("       skipped: {}", sanitize_line(reason))),
            StepState::Ready if step.calls.len() > 1 => {
                let calls = step.calls.iter().map(|call| format!("- {}", in_short(&call.args)));
                lines.extend(indented(calls, most));
            }
            StepState::Ready => {}
        }
        let filtered = step.filtered.iter().map(|item| format!("filtered out: {}", left_out(item)));
        lines.extend(indented(filtered, most));
        lines.extend(indented(step.left_out.iter().map(|item| format!("left out: {}", left_out(item))), most));
        lines.extend(step.effects.iter().map(|effect| format!("       {}", sanitize_line(&effect.to_string()))));
    }
    let more = preview.notices.len().saturating_sub(most);
    lines.extend(preview.notices.iter().take(most).map(|notice| format!("note: {}", sanitize_line(notice))));
    lines.extend((more > 0).then(|| format!("note: {more} more")));
    lines
}

/// Returns the first lines of a list, and a line with the number of the others.
fn indented(lines: impl ExactSizeIterator<Item = String>, most: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(most);
    let shown = lines.take(most).chain((more > 0).then(|| format!("... {more} more")));
    shown.map(|line| format!("       {line}")).collect()
}

fn badge(risk: Risk) -> String {
    risk.name().to_uppercase()
}

/// Returns an item that is left out, with the reason.
pub(super) fn left_out(item: &LeftOutItem) -> String {
    format!("item {}, {}: {}", item.item, sanitize_line(&item.what), sanitize_line(&item.reason))
}

/// Returns the paths of a call with the first line of its content, or else its arguments on one line.
fn in_short(args: &Value) -> String {
    let named = ["path", "fromPath", "toPath", "new_path"].into_iter().filter_map(|name| args.get(name)?.as_str());
    let named: Vec<&str> = named.collect();
    let content =
        args.get("content").and_then(Value::as_str).and_then(|text| text.lines().find(|line| !line.is_empty()));
    let content = content.map(|line| format!(": {line}")).unwrap_or_default();
    let text = if named.is_empty() { args.to_string() } else { format!("{}{content}", named.join(" -> ")) };
    let mut short: String = sanitize_line(&text).chars().take(120).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_calls_are_cut_where_a_question_shows_them() {
        let lines = |most| indented(["a", "b", "c"].into_iter().map(str::to_owned), most);
        assert_eq!(lines(2), ["       a", "       b", "       ... 1 more"]);
        assert_eq!((lines(3).len(), lines(usize::MAX).len()), (3, 3));
    }
}
