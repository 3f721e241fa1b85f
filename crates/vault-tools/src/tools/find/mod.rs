//! Finds and lists notes and files: by meaning, text, tag, folder, property or chance. It changes nothing.

pub(super) mod search_notes;
pub(super) mod search_text;
pub(super) mod search_by_tag;
pub(super) mod list_files;
pub(super) mod random_note;
pub(super) mod attachments;
pub(super) mod metadata;
pub(super) mod list_tags;
pub(super) mod similar_notes;
pub(super) mod query_notes;
pub(super) mod list_templates;
