//! Which passages may be found at all: the conditions and filters of a query, evaluated on a snapshot before anything is
//! ranked. `eligible` is the entry, `find_note` says which note a name means, and `holders` which passages hold a
//! phrase.

pub(super) mod find_note;
pub(super) mod phrase;
mod note_dates;
mod passage_scopes;
pub(super) mod eligible;
