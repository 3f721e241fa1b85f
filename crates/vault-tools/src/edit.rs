//! Changes of a text: by place, by words that occur once, by heading, by property. Pure; what is not changed stays
//! byte for byte, with its line endings, its byte order mark and its missing last newline.

pub mod frontmatter;
mod section;
mod spans;

pub use section::{Appended, Section, append, append_to_section, find_section};
pub use spans::{LineEnding, Replaced, TextEdit, apply_edits, offset_of, position_of, replace_once};
