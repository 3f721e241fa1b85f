//! Arguments and defaults that several tools share.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::edit::frontmatter;
use crate::error::Result;
use crate::tool::{Context, PathArg};

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NoArgs {}

// The arguments of a tool that takes nothing but a note.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NoteArgs {
    /// The note: its path, or its name as in a link.
    pub path: PathArg,
}

/// Returns a number, as the default of a field: `#[serde(default = "number::<10>")]`.
pub(in crate::tools) fn number<const N: usize>() -> usize {
    N
}

/// Returns `true`, as the default of a field.
pub(in crate::tools) fn yes() -> bool {
    true
}

/// Converts texts in properties to lists where a list is expected, with notices. `argument` is the pointer to the
/// properties.
///
/// # Errors
/// The errors of [`frontmatter::read_lists`].
pub(in crate::tools) fn read_lists(
    text: &str,
    properties: &mut Map<String, Value>,
    argument: &str,
    context: &mut Context<'_, '_>,
) -> Result<()> {
    let read = frontmatter::read_lists(text, properties).map_err(|error| {
        let field = error.path().unwrap_or_default().to_owned();
        error.at(format!("{argument}{field}"))
    })?;
    read.into_iter().for_each(|notice| context.overlay.notice(notice));
    Ok(())
}

/// Returns the items of a page. If more items remain, a notice gives the offset of the next page.
pub(in crate::tools) fn page<T>(
    items: Vec<T>,
    limit: usize,
    offset: usize,
    what: &str,
    context: &mut Context<'_, '_>,
) -> Vec<T> {
    let (all, end) = (items.len(), offset.saturating_add(limit));
    if end < all {
        context.overlay.notice(format!("{all} {what}; these are {limit} of them, offset {end} goes on"));
    }
    items.into_iter().skip(offset).take(limit).collect()
}
