//! The arguments and defaults that several tools share.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{Context, PathArg};

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NoArgs {}

// The arguments of a tool that takes nothing but a note.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteArgs {
    /// The note: its path, or its name as in a link.
    pub path: PathArg,
}

/// A number as the default of a field: `#[serde(default = "number::<10>")]`.
pub(super) fn number<const N: usize>() -> usize {
    N
}

/// `true` as the default of a field.
pub(super) fn yes() -> bool {
    true
}

/// The items of a page. What is left is said, with the offset that goes on.
pub(super) fn page<T>(items: Vec<T>, limit: usize, offset: usize, what: &str, context: &mut Context<'_, '_>) -> Vec<T> {
    let (all, end) = (items.len(), offset.saturating_add(limit));
    if end < all {
        context.overlay.notice(format!("{all} {what}; these are {limit} of them, offset {end} goes on"));
    }
    items.into_iter().skip(offset).take(limit).collect()
}
