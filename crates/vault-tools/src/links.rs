//! Links when files are renamed, created or deleted: their positions in a text, how they are written, which notes
//! contain them, and how they are rewritten. Changes nothing.

mod occurrences;
mod style;
mod index;
mod relink;
mod retarget;

pub(crate) use index::{CarriedText, Delta, DiskLinks, LinkIndex, lossy, not_looked_through, readable};
pub(crate) use occurrences::{LinkEncoding, canvas_strings, edit_in_json, link_keys, raw_links};
pub use relink::{LinkAt, RewrittenLink};
pub(crate) use relink::{LinkChanges, PathFilter, Relinker};
pub(crate) use retarget::{NewTarget, plain_subpath, retarget};
pub(crate) use style::{LinkFormat, encode, new_path};
