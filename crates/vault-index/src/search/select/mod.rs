//! The eligible passages: evaluates the conditions and filters of a query before ranking.
//!
//! `eligible` is the entry point, `find_note` finds the note that a name means, and `phrase` finds the passages that
//! contain a phrase.

pub(super) mod find_note;
pub(super) mod phrase;
mod note_dates;
mod passage_scopes;
pub(super) mod eligible;
