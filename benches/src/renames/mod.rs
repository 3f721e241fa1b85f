//! The promise of a rename, on vaults that people wrote: every link of the vault leads where it led before.

mod tree;
mod led;
mod names;
mod respelled;
mod trial;

pub use led::{Led, Links};
pub use respelled::{Respelled, respelled};
pub use tree::{Tree, copy_tree};
pub use trial::{RenamePlan, RenameTrial, rename_trial};
