//! Evaluates the quality of search on judged collections and on vaults, with the real pipeline and searcher.
//!
//! | evaluation | by | file |
//! | --- | --- | --- |
//! | retrieval: queries of a collection, documents judged by people | [`retrieve`] | `retrieval.rs` |
//! | known-item search: the words of a link, the note it leads to | [`find_known_items`] | `known_item.rs` |
//! | typed names: a note's name, its prefixes, a typo in it | [`find_names`] | `names.rs` |
//! | adjacent words: a phrase or an identifier, without quotes | [`find_phrases`] | `phrases.rs` |
//! | shares of vectors: the queries while passages wait for their vectors | [`ask_with_shares`] | `shares.rs` |
//! | passages: the same queries, documents as sections of long notes | [`find_passages`] | `passages.rs` |
//!
//! A collection is read ([`Collection`]), written as notes (`as_notes.rs`), synced ([`Indexed`]) and searched with each
//! query as literal text. The results are compared with the judgments (`measure.rs`). They are plain values: rows,
//! means, and tables as text (`table.rs`). Nothing here prints.

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

/// The result of an evaluation; an error names the file.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The plan of an evaluation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The model. `None` is the model of an existing index, else the bundled one.
    pub model: Option<ModelName>,
    /// The modes, in the order of the output.
    pub modes: Vec<Mode>,
    /// The maximum number of queries; the first ones are used.
    pub queries: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { model: None, modes: vec![Mode::Lexical, Mode::Semantic, Mode::Hybrid], queries: usize::MAX }
    }
}
