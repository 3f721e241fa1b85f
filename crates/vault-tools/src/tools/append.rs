//! Adds text at the end of a note or of one of its sections: `append_to_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::locate;
use crate::edit;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
    /// The text to add, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    /// The heading of the section at whose end it is added, without `#`; default: the end of the note. A missing heading
    /// is created.
    #[serde(default)]
    heading: Option<String>,
}

/// The result of an append.
#[derive(Serialize, JsonSchema)]
pub(super) struct AppendedText {
    /// The note.
    path: String,
    /// The first line of the new text, from 1.
    line: u32,
    /// Whether the heading was created.
    made_heading: bool,
}

pub(super) fn append_to_note(args: Args, context: &mut Context<'_, '_>) -> Result<AppendedText> {
    let path = locate::markdown(&args.path, "only Markdown notes can be added to", context)?;
    let text = context.overlay.text(&path)?;
    let (updated, line, made_heading) = match args.heading.as_deref().map(str::trim).filter(|h| !h.is_empty()) {
        Some(heading) => {
            let added = edit::append_to_section(&text, heading, &args.content).map_err(|error| error.at(&path))?;
            (added.text, added.line, added.made_heading)
        }
        None => {
            let updated = edit::append(&text, &args.content);
            let line = first_new_line(&text, &updated);
            (updated, line, false)
        }
    };
    context.overlay.write(&path, updated)?;
    Ok(AppendedText { path: path.to_string(), line, made_heading })
}

/// The first line of `after` that is not in `before`, to which it was appended.
fn first_new_line(before: &str, after: &str) -> u32 {
    let common = before.trim_end().len();
    let rest = &after[common..];
    let gap = rest.len() - rest.trim_start().len();
    1 + u32::try_from(after[..common + gap].matches('\n').count()).unwrap_or(u32::MAX - 1)
}
