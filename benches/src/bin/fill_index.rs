//! Indexes a vault with vectors of hashed words under the bundled model's name: `fill_index VAULT INDEX`.
//!
//! This takes seconds, while the model would take minutes, so that searches of large vaults can be timed. Semantic
//! results in such an index are meaningless.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::process::ExitCode;
use std::sync::Arc;

use vault_index::{Embedder, HashedEmbedder, Index, LoadOptions, ModelName, Options, Role, TokenCount};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An embedder with the id and the token counts of the bundled model.
struct Disguised(Arc<dyn Embedder>);

impl TokenCount for Disguised {
    fn count(&self, text: &str) -> usize {
        self.0.count(text)
    }
}

impl Embedder for Disguised {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    fn embed(&self, texts: &[&str], role: Role) -> vault_index::Result<Vec<Vec<f32>>> {
        let times = self.dimensions() / HashedEmbedder.dimensions();
        let shrink = 1.0 / (times as f32).sqrt();
        let stretch = |vector: Vec<f32>| -> Vec<f32> { vector.repeat(times).iter().map(|x| x * shrink).collect() };
        Ok(HashedEmbedder.embed(texts, role)?.into_iter().map(stretch).collect())
    }

    fn batch_size(&self) -> usize {
        1024
    }
}

fn main() -> ExitCode {
    let [_, vault, index] = &std::env::args().collect::<Vec<_>>()[..] else {
        eprintln!("usage: fill_index VAULT INDEX");
        return ExitCode::from(2);
    };
    match fill(vault, index) {
        Ok(passages) => println!("{passages} passages"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn fill(vault: &str, file: &str) -> Result<usize> {
    let mut options = Options::default();
    options.index_file = Some(file.into());
    options.embedder = Some(Arc::new(Disguised(ModelName::MiniLm.load(&LoadOptions::default())?)));
    let index = Index::open(vault, options)?;
    index.sync()?;
    let passages = index.status()?.chunks;
    drop(index);
    let connection = rusqlite::Connection::open(file)?;
    connection.execute("UPDATE meta SET value = 'minilm' WHERE key = 'model'", [])?;
    Ok(passages)
}
