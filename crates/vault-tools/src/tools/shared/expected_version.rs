//! The version of a file: reads return it and writes expect it, so that no caller overwrites text that it has not seen.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::content::Content;
use crate::error::{Error, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::Context;

/// The number of changed lines that a conflict lists, and the maximum number of characters of each.
const NAMED_LINES: usize = 8;
const LINE_LENGTH: usize = 80;

/// The time limit for finding the smallest diff.
const LOOKED_FOR: Duration = Duration::from_millis(300);

/// Returns the version of a file in the overlay: equal versions mean equal content.
pub(in crate::tools) fn of(path: &SafePath, context: &Context<'_, '_>) -> Result<String> {
    Ok(context.overlay.read(path)?.hash().etag())
}

/// Requires that a file has the version that the caller expects, if any.
///
/// # Errors
/// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict), with the lines that changed if the expected version was read
/// from this vault before.
pub(in crate::tools) fn require(expected: Option<&str>, path: &SafePath, context: &Context<'_, '_>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    if !context.overlay.exists(path)? {
        return Err(Error::conflict(path, "a version is expected, but the file does not exist"));
    }
    let now = context.overlay.read(path)?;
    let version = now.hash().etag();
    if version == expected {
        return Ok(());
    }
    let before = context.vault.versions().find(expected);
    let changes = before.and_then(|before| changed_lines(&before, &now));
    let changes = changes.map_or_else(String::new, |changes| format!("; {changes}"));
    Err(Error::conflict(path, &format!("it has changed: its version is {version}, not {expected}{changes}")))
}

/// Returns the first lines that differ, on one line; `None` if one of the contents is not text.
fn changed_lines(before: &Content, now: &Content) -> Option<String> {
    let diff = TextDiff::configure().timeout(LOOKED_FOR).diff_lines(before.text()?, now.text()?);
    let changes: Vec<_> = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).collect();
    let shown = changes.iter().take(NAMED_LINES).map(|change| {
        let (what, index) = match change.tag() {
            ChangeTag::Delete => ("removed", change.old_index()),
            ChangeTag::Insert | ChangeTag::Equal => ("added", change.new_index()),
        };
        let mut line: String = change.value().trim_end().chars().take(LINE_LENGTH + 1).collect();
        if let Some((cut, _)) = line.char_indices().nth(LINE_LENGTH) {
            line.replace_range(cut.., "…");
        }
        format!("{what} line {} {line:?}", index.map_or(0, |index| index + 1))
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if changes.len() > NAMED_LINES {
        text.push_str(&format!(" and {} more", changes.len() - NAMED_LINES));
    }
    Some(text)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn of_a_file_that_is_new_from_end_to_end_the_first_lines_are_named() {
        // Without the limit this takes more than a minute.
        let text = |word: &str| Content::from((0..30_000).map(|n| format!("{word} {n}\n")).collect::<String>());
        let changes = changed_lines(&text("old"), &text("new")).unwrap();
        assert!(changes.starts_with("removed line 1 \"old 0\"") && changes.ends_with("and 59992 more"), "{changes}");
    }
}
