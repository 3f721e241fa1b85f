//! Whether the right note is found: judged collections and vaults, through the real pipeline and the real searcher.
//!
//! | what is measured | by | file |
//! | --- | --- | --- |
//! | retrieval: questions to a collection, the documents that people judged | [`retrieve`] | `retrieval.rs` |
//! | known-item search: the words of a link, the note it leads to | [`find_known_items`] | `known_item.rs` |
//! | typed names: a note's name, its beginnings, a slip in it | [`find_names`] | `names.rs` |
//! | words side by side: a phrase or an identifier, without quotes | [`find_phrases`] | `phrases.rs` |
//! | shares of vectors: the questions while passages wait for their vectors | [`ask_with_shares`] | `shares.rs` |
//! | passages: the same questions, documents as sections of long notes | [`find_passages`] | `passages.rs` |
//!
//! A collection is read ([`Collection`]), written as notes (`as_notes.rs`), synced ([`Indexed`]) and asked, each
//! query taken literally. What comes back is compared with the judgments (`measure.rs`), and is plain values: rows,
//! means, tables as text (`table.rs`). Nothing here prints.

mod measure;
mod beir;
mod as_notes;
mod indexed;
mod rows;
mod rrf;
mod retrieval;
mod known_item;
mod passages;
mod names;
mod phrases;
mod shares;
mod table;

use vault_index::{Mode, ModelName};

pub use beir::{Collection, Document, JudgedQuery};
pub use indexed::Indexed;
pub use known_item::{KnownItem, KnownItemMode, KnownItemReport, find_known_items, known_items};
pub use measure::{Judgments, Means, Scores};
pub use names::{NamesMode, NamesReport, find_names};
pub use passages::{PassageMode, PassagePlan, PassageReport, find_passages};
pub use phrases::{PhrasesMode, PhrasesReport, find_phrases};
pub use retrieval::{Above, RetrievalMode, RetrievalReport, retrieve};
pub use rows::{QueryRow, rows_as_text};
pub use rrf::{RRF_K, reciprocal_rank_fusion};
pub use shares::{ShareOfVectors, SharesReport, ask_with_shares};

/// A result of an evaluation; the error says which file it is about.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How an evaluation runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The model. `None`: the bundled one, or that of an index which is there already.
    pub model: Option<ModelName>,
    /// The modes, in the order they are to be shown.
    pub modes: Vec<Mode>,
    /// Queries at most: the first ones.
    pub queries: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { model: None, modes: vec![Mode::Lexical, Mode::Semantic, Mode::Hybrid], queries: usize::MAX }
    }
}
