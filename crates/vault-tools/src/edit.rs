//! Edits texts by position, by a unique passage, by heading and by property. No I/O; all other bytes stay unchanged,
//! including line endings, the byte order mark and a missing final newline.

mod similar;
mod spans;
mod section;
mod insert;
pub(crate) mod item;
mod lines;
pub mod frontmatter;
mod list;
mod tags;
mod merge;

pub use insert::{
    Anchor, Insertion, ReplacedSection, Side, append, append_to_end, append_to_section, insert, replace_section,
    without_repeated_heading,
};
pub use lines::{TakenLines, take_lines};
pub use list::{EditedList, edit_list};
pub use merge::{MergedText, merge};
pub(crate) use section::note;
pub use section::{Section, find_block, find_lines, find_section, outline};
pub use spans::{
    LineEnding, Match, Replacement, TextEdit, apply_edits, offset_of, position_of, replace_all, replace_once,
};
pub(crate) use tags::tag_renames;
pub use tags::{EditedTags, TagChanges, edit_tags};
