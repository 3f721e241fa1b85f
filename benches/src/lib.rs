//! Tools for the benches: generated vaults and texts, rows, recordings, the peers, and the evaluation of results.

mod notes;
mod random;
mod words;
mod vault;
mod named_vault;
mod texts;
mod links;
mod median;
mod data_folder;
mod rows;
mod indexed_rows;
mod turns;
mod renames;
mod recordings;
pub mod peers;
pub mod eval;

pub use data_folder::data_folder;
pub use indexed_rows::{IndexedRows, StoredVectors, TAG_1, TAG_10};
pub use links::{LinkPlan, LinkTable, make_links};
pub use median::median;
pub use named_vault::make_named_vault;
pub use notes::notes_in;
pub use random::Random;
pub use recordings::{Recording, Verdict, recordings_in, replay};
pub use renames::{Led, Links, RenamePlan, RenameTrial, Respelled, Tree, copy_tree, rename_trial, respelled};
pub use rows::{ROWS_SEED, RealVectors, random_rows, read_floats, resample, write_floats};
pub use texts::make_texts;
pub use turns::Turns;
pub use vault::{VaultPlan, make_vault};
pub use words::demo_vault;
