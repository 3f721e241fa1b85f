//! The arguments and defaults that several tools share.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::PathArg;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NoArgs {}

// The arguments of a tool that takes nothing but a note.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteArgs {
    /// The note.
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
