//! The tools, one file each: thin typed adapters over the operations they share, which stand in the files beside
//! the three folders.

mod bullets;
mod collision;
mod daily;
mod excerpt;
mod links;
mod locate;
mod moment;
mod note_filter;
mod notes_known;
mod search_text;
mod slug;
mod typing;

mod notes;
mod chat;
mod actions;

use crate::tool::Entry;

/// Every tool that is built in, in the order in which they are listed.
pub(crate) fn all() -> Vec<Entry> {
    let mut all = notes::all();
    all.extend(chat::all());
    all.extend(actions::all());
    all
}
