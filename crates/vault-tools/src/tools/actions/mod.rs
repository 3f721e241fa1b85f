//! The toolset `actions`: what plans are made of.

mod commands_list;
mod commands_run;
mod editor_get_active_file_path;
mod editor_get_selection;
mod editor_insert_at_cursor;
mod editor_replace_selection;
mod util_parse_markdown_bullets;
mod util_slugify_title;
mod vault_create_file;
mod vault_delete;
mod vault_ensure_folder;
mod vault_list_files;
mod vault_read_file;
mod vault_rename;
mod vault_search_text;
mod vault_write_file;
mod workspace_get_context;
mod workspace_open_file;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host;
use crate::tool::Entry;

/// All of them.
pub(super) fn all() -> Vec<Entry> {
    vec![
        Entry::new(vault_ensure_folder::EnsureFolder),
        Entry::new(vault_create_file::CreateFile),
        Entry::new(vault_read_file::ReadFile),
        Entry::new(vault_write_file::WriteFile),
        Entry::new(vault_rename::Rename),
        Entry::new(vault_delete::Delete),
        Entry::new(vault_search_text::SearchText),
        Entry::new(vault_list_files::ListFiles),
        Entry::new(editor_get_selection::GetSelection),
        Entry::new(editor_replace_selection::ReplaceSelection),
        Entry::new(editor_insert_at_cursor::InsertAtCursor),
        Entry::new(editor_get_active_file_path::GetActiveFilePath),
        Entry::new(workspace_open_file::OpenFile),
        Entry::new(workspace_get_context::GetContext),
        Entry::new(commands_list::ListCommands),
        Entry::new(commands_run::RunCommand),
        Entry::new(util_parse_markdown_bullets::ParseMarkdownBullets),
        Entry::new(util_slugify_title::SlugifyTitle),
    ]
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A place in a file.
#[derive(Serialize, JsonSchema)]
struct At {
    /// The line, from 0.
    line: u32,
    /// The column, from 0, in UTF-16 units as editors count.
    ch: u32,
}

/// From one place to another, the end not included.
#[derive(Serialize, JsonSchema)]
struct Range {
    /// Where it begins.
    from: At,
    /// Where it ends.
    to: At,
}

impl From<host::Position> for At {
    fn from(position: host::Position) -> Self {
        Self { line: position.line, ch: position.ch }
    }
}

impl From<host::Span> for Range {
    fn from(span: host::Span) -> Self {
        Self { from: span.from.into(), to: span.to.into() }
    }
}
