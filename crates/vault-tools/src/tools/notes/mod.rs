//! Reads and changes notes, files and folders. Each file is one operation with all tools that offer it: `read`, for
//! example, is `read_note`, `file_read` and `vault.readFile`.

pub(super) mod read;
pub(super) mod write;
pub(super) mod edit;
pub(super) mod insert;
pub(super) mod replace_section;
pub(super) mod frontmatter;
pub(super) mod tags;
pub(super) mod rename;
pub(super) mod delete;
pub(super) mod folder;
pub(super) mod merge;
pub(super) mod move_lines;
pub(super) mod periodic_note;
pub(super) mod history;
