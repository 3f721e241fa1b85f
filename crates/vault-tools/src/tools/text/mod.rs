//! Tools for texts that are not in a file: `bullets` splits a list into items, for example for a loop of a plan, and `slug`
//! makes a file name of a title.

pub(super) mod bullets;
pub(super) mod slug;
