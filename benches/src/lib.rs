//! What the benches run on: large synthetic vaults, their texts and their links, the same ones for the same seed.

mod notes;
mod random;
mod words;
mod vault;
mod texts;
mod links;

pub use links::{LinkPlan, LinkTable, make_links};
pub use notes::notes_in;
pub use texts::make_texts;
pub use vault::{VaultPlan, make_vault};
pub use words::demo_vault;
