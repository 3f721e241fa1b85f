//! What the benches run on: large synthetic vaults, the same ones for the same seed on every machine.

mod vault;

pub use vault::{VaultPlan, make_vault};
