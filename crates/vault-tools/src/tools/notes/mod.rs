//! The toolset `notes`: what a model works on notes with.

mod append_to_note;
mod create_daily_note;
mod delete_note;
mod edit_note;
mod get_note_metadata;
mod get_random_note;
mod list_backlinks;
mod list_forward_links;
mod read_note;
mod rename_note;
mod search_by_tag;
mod search_notes;
mod update_frontmatter;
mod write_note;

use crate::tool::Entry;

/// All of them.
pub(super) fn all() -> Vec<Entry> {
    vec![
        Entry::new(read_note::ReadNote),
        Entry::new(search_notes::SearchNotes),
        Entry::new(write_note::WriteNote),
        Entry::new(update_frontmatter::UpdateFrontmatter),
        Entry::new(list_backlinks::ListBacklinks),
        Entry::new(list_forward_links::ListForwardLinks),
        Entry::new(create_daily_note::CreateDailyNote),
        Entry::new(search_by_tag::SearchByTag),
        Entry::new(get_note_metadata::GetNoteMetadata),
        Entry::new(rename_note::RenameNote),
        Entry::new(delete_note::DeleteNote),
        Entry::new(get_random_note::GetRandomNote),
        Entry::new(edit_note::EditNote),
        Entry::new(append_to_note::AppendToNote),
    ]
}
