//! Tests the guarantee of renames on real vaults: every link of the vault keeps its target.

mod tree;
mod led;
mod names;
mod respelled;
mod trial;

pub use led::{Led, Links};
pub use respelled::{Respelled, respelled};
pub use tree::{Tree, copy_tree};
pub use trial::{RenamePlan, RenameTrial, rename_trial};
