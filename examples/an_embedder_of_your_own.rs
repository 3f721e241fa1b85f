//! Uses its own embedding model, here one that knows four subjects: `… --example an_embedder_of_your_own -- FOLDER
//! QUERY…`

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use vault_index::chunk::TokenCount;
use vault_index::{Embedder, Index, Options, Query, Result, Role};

/// One dimension per subject: how often a text has words that begin like these.
const SUBJECTS: [(&str, &[&str]); 4] = [
    ("garden", &["bed", "bloom", "garden", "plant", "prun", "rose", "seed", "soil", "tree"]),
    ("kitchen", &["bake", "bread", "cook", "dough", "flour", "oven", "recipe", "salt", "soup"]),
    ("money", &["account", "bank", "budget", "cost", "euro", "interest", "money", "pay", "tax"]),
    ("travel", &["hotel", "luggage", "pack", "passport", "station", "ticket", "train", "travel", "trip"]),
];

/// An embedding model for the index. Yours may call a library or a server instead.
struct Subjects;

/// The index cuts notes into passages by these counts, so they must be those of your model. It asks for counts of all
/// text, even while nothing is embedded: answer without loading anything.
impl TokenCount for Subjects {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

impl Embedder for Subjects {
    /// Change the id whenever a text can get another vector, because vectors of different ids are never compared.
    fn id(&self) -> &str {
        "subjects-v1"
    }

    fn dimensions(&self) -> usize {
        SUBJECTS.len()
    }

    fn max_tokens(&self) -> usize {
        200
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| unit(subjects_of(text))).collect())
    }

    /// If most words are unknown, the index ranks by words instead of vectors.
    fn known_share(&self, text: &str) -> f32 {
        if subjects_of(text).iter().any(|count| *count > 0.0) { 1.0 } else { 0.0 }
    }
}

fn subjects_of(text: &str) -> Vec<f32> {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let count = |stems: &[&str]| words.iter().filter(|word| stems.iter().any(|stem| word.starts_with(stem))).count();
    SUBJECTS.iter().map(|(_, stems)| count(stems) as f32).collect()
}

/// The index expects vectors of length 1, or all zeros for a text without content.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: an_embedder_of_your_own FOLDER QUERY…")?;
    let query: Vec<String> = arguments.collect();

    // An index contains the vectors of one model, so this one gets its own file.
    let file = env::var_os("VAULT_INDEX_FILE").map_or_else(|| env::temp_dir().join("subjects/index.db"), PathBuf::from);
    let options = Options::new().embedder(Arc::new(Subjects)).index_file(file);
    let index = Index::open(folder, options)?;
    index.sync()?;

    // Scores of meaning and words are added, so even a model as crude as this one does no harm. `Mode::Semantic` shows
    // the results of vectors alone.
    for hit in index.search(&Query::parse(&query.join(" "))?)?.results {
        println!("{:.2}  {}:{}  {}", hit.score, hit.path, hit.line, hit.title);
    }
    Ok(())
}
