//! Rows to scan: real embeddings, stored between runs, and any number of rows that are resampled from them.

use std::collections::HashSet;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use vault_index::chunk::{ChunkOptions, chunk, embedded_text};
use vault_index::note::{ParseOptions, TitleSource, parse};
use vault_index::{Embedder, LoadOptions, ModelName, Role, VaultPath};

use crate::notes::notes_in;
use crate::random::Random;
use crate::texts::make_texts;
use crate::vault::{VaultPlan, make_vault};
use crate::words::demo_vault;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The seed of the rows, which is fixed so that the peers in Python get the same rows.
pub const ROWS_SEED: u64 = 7;

/// A version to increment when other texts are embedded, so that old vectors are computed again.
const VERSION: u32 = 1;
/// The number of notes that are generated in addition to the demo vault: about 2,500 passages.
const NOTES: usize = 700;
/// The number of texts that are embedded as queries.
const QUERIES: usize = 32;
/// The length of the noise that [`resample`] adds. With it, two rows from the same vector have a cosine of about .8,
/// like passages on the same topic.
const NOISE: f32 = 0.5;

/// Vectors of real texts, computed by the bundled model.
#[derive(Debug, Clone)]
pub struct RealVectors {
    /// The length of every vector.
    pub dimensions: usize,
    /// Passages of the demo vault and of a generated vault, one vector after the other.
    pub passages: Vec<f32>,
    /// Sentences, embedded as queries.
    pub queries: Vec<f32>,
}

impl RealVectors {
    /// Reads the vectors that are stored in `folder`. If there are none, computes and stores them, which takes about a
    /// minute.
    ///
    /// # Errors
    /// If texts or vectors cannot be read or written, or the model fails.
    pub fn stored_in(folder: &Path) -> Result<Self> {
        let model = ModelName::MiniLm.load(&LoadOptions::default())?;
        let dimensions = model.dimensions();
        let file = |what: &str| folder.join(format!("{what}-{}-{VERSION}.f32", model.id()));
        let (passages, queries) = (file("passages"), file("queries"));
        if !passages.exists() || !queries.exists() {
            let texts = make_texts(&demo_vault(), QUERIES, 5, |text| text.len() >= 30)?;
            write_floats(&queries, &embed(&*model, &texts, Role::Query)?)?;
            write_floats(&passages, &embed(&*model, &passage_texts(&*model, folder)?, Role::Passage)?)?;
        }
        let read = |path: &Path| -> Result<Vec<f32>> {
            let floats = read_floats(path)?;
            match floats.len() {
                0 => Err(format!("{}: no vectors; delete it", path.display()).into()),
                n if !n.is_multiple_of(dimensions) => Err(format!("{}: cut off; delete it", path.display()).into()),
                _ => Ok(floats),
            }
        };
        Ok(Self { dimensions, passages: read(&passages)?, queries: read(&queries)? })
    }

    /// The queries, one by one.
    pub fn queries(&self) -> impl Iterator<Item = &[f32]> {
        self.queries.chunks_exact(self.dimensions)
    }
}

/// Returns the texts of all passages, without duplicates, as the indexer gives them to the model.
fn passage_texts(model: &dyn Embedder, folder: &Path) -> Result<Vec<String>> {
    let vault = folder.join(format!("notes-{}", std::process::id()));
    make_vault(&vault, &demo_vault(), &VaultPlan { notes: NOTES, bytes: 1500, links: 6, seed: 2 })?;
    let mut texts = texts_of(&demo_vault(), model)?;
    texts.extend(texts_of(&vault, model)?);
    fs::remove_dir_all(&vault)?;
    let mut seen = HashSet::new();
    texts.retain(|text| !text.trim().is_empty() && seen.insert(text.clone()));
    Ok(texts)
}

fn texts_of(vault: &Path, model: &dyn Embedder) -> Result<Vec<String>> {
    let options = ChunkOptions { max_tokens: model.max_tokens(), ..ChunkOptions::default() };
    let mut texts = Vec::new();
    for file in notes_in(vault)? {
        let path = VaultPath::from_disk(file.strip_prefix(vault)?).ok_or("a note without a path")?;
        let note = parse(&path, &fs::read(&file)?, &ParseOptions::default());
        let title = (note.title.source != TitleSource::FileName).then_some(note.title.text.as_str());
        for chunk in chunk(&note, model, &options) {
            texts.push(embedded_text(title, &chunk.headings, note.slice(chunk.span.clone()), model, &options));
        }
    }
    Ok(texts)
}

fn embed(model: &dyn Embedder, texts: &[String], role: Role) -> Result<Vec<f32>> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut vectors = Vec::new();
    for batch in texts.chunks(model.batch_size().max(1)) {
        // A text without content has a zero vector. Skip it, because with noise it would become a meaningless row.
        let real = model.embed(batch, role)?.into_iter().filter(|vector| vector.iter().any(|x| *x != 0.0));
        vectors.extend(real.flatten());
    }
    Ok(vectors)
}

/// Returns `count` rows of unit length, each a random vector of `real` with a little noise, which preserves the
/// structure. The same seed gives the same rows, and a longer list begins with the shorter one.
///
/// # Panics
/// If `real` is empty and `count` is not 0.
pub fn resample(real: &[f32], dimensions: usize, count: usize, seed: u64) -> Vec<f32> {
    // A uniform number between -1 and 1 has a mean square of one third.
    let each = NOISE * (3.0 / dimensions as f32).sqrt();
    let mut random = Random(seed);
    let mut rows = Vec::with_capacity(count * dimensions);
    for row in 0..count {
        let at = random.below(real.len() / dimensions) * dimensions;
        rows.extend(real[at..][..dimensions].iter().map(|x| x + each * random.signed()));
        to_unit(&mut rows[row * dimensions..]);
    }
    rows
}

/// Returns `count` rows of unit length in random directions: the worst case for a scan that skips rows.
pub fn random_rows(dimensions: usize, count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let mut rows: Vec<f32> = (0..count * dimensions).map(|_| random.signed()).collect();
    rows.chunks_exact_mut(dimensions).for_each(to_unit);
    rows
}

fn to_unit(row: &mut [f32]) {
    let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    row.iter_mut().for_each(|x| *x /= norm);
}

/// Writes floats one after the other, little-endian, as numpy's `fromfile` reads them. The file is complete or does not
/// exist.
///
/// # Errors
/// If it cannot be written.
pub fn write_floats(path: &Path, floats: &[f32]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    for float in floats {
        file.write_all(&float.to_le_bytes())?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(&part, path)
}

/// Reads a file of [`write_floats`].
///
/// # Errors
/// If it cannot be read.
pub fn read_floats(path: &Path) -> io::Result<Vec<f32>> {
    let bytes = fs::read(path)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn rows_stay_near_what_they_are_resampled_from() {
        let real = random_rows(384, 5, 1);
        let rows = resample(&real, 384, 50, 2);
        assert_eq!(rows.len(), 50 * 384);
        for row in rows.chunks_exact(384) {
            let nearest = real.chunks_exact(384).map(|real| dot(row, real)).fold(f32::MIN, f32::max);
            assert!((0.8..0.99).contains(&nearest), "{nearest}");
            assert!((dot(row, row) - 1.0).abs() < 1e-5);
        }
        assert_eq!(rows, resample(&real, 384, 50, 2));
        assert_eq!(rows[..10 * 384], resample(&real, 384, 10, 2));
        assert_ne!(rows, resample(&real, 384, 50, 3));
    }

    #[test]
    fn floats_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let (path, floats) = (folder.path().join("x.f32"), random_rows(7, 3, 4));
        write_floats(&path, &floats).unwrap();
        assert_eq!(read_floats(&path).unwrap(), floats);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
