//! Code that tools of several subjects share: arguments, finding the note that a name refers to, versions, excerpts,
//! filters, ranked search. It defines no tool.

pub(super) mod arguments;
pub(super) mod locate;
pub(super) mod expected_version;
pub(super) mod excerpt;
pub(super) mod collision;
pub(super) mod known_notes;
pub(super) mod note_filter;
pub(super) mod ranked;
