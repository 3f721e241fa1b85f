//! Evaluates shares of vectors: the quality of results while passages wait for their vectors.
//!
//! The notes of a collection get modification times in random order, and are embedded newest first, as in any vault.
//! After each share, the sync is stopped, and all queries are run. There are five orders, except without vectors and
//! with all of them, where the order does not matter.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use vault_index::{
    Embedder, Error, ErrorKind, Grouping, Index, LoadOptions, Mode, Options, Query, Role, Searcher, SyncOptions,
    TokenCount, VaultPath,
};

use super::as_notes::{NewNote, note_text, path_of, write_notes};
use super::{Collection, Means, Plan, Result, Scores};
use crate::random::Random;

const SHARES: [f64; 9] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0];
const ORDERS: u64 = 5;
const SHOWN: usize = 10;
/// 2020.
const OLDEST: Duration = Duration::from_secs(1_577_836_800);

/// The report on a collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharesReport {
    /// Its name.
    pub collection: String,
    /// The model.
    pub model: String,
    /// The number of documents, each of which is a note.
    pub documents: usize,
    /// The number of texts that get a vector.
    pub texts: usize,
    /// The number of queries.
    pub queries: usize,
    /// nDCG@10 by words alone.
    pub words: f64,
    /// The results of each share.
    pub shares: Vec<ShareOfVectors>,
}

/// The results of one share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShareOfVectors {
    /// The share, 0 to 1.
    pub share: f64,
    /// nDCG@10 of the hybrid mode: the mean, the minimum and the maximum over the orders.
    pub ndcg10: (f64, f64, f64),
}

/// Writes the collection's notes below `folder`, and runs all queries after each share of the vectors.
///
/// The vectors are stored there, so that the next run embeds nothing.
///
/// # Errors
/// If notes cannot be written, indexed or searched.
pub fn ask_with_shares(collection: &Collection, folder: &Path, plan: &Plan) -> Result<SharesReport> {
    let paths: Vec<VaultPath> =
        collection.documents.iter().enumerate().map(|(at, document)| path_of(&document.id, at)).collect();
    let notes = collection.documents.iter().zip(&paths);
    let notes = notes.map(|(document, path)| NewNote { path: path.clone(), text: note_text(document) });
    let vault = folder.join("notes");
    write_notes(&vault, notes)?;
    let ids: HashMap<&str, &str> = paths
        .iter()
        .map(VaultPath::as_str)
        .zip(collection.documents.iter().map(|document| document.id.as_str()))
        .collect();
    let model = plan.model.clone().unwrap_or_default().load(&LoadOptions::default())?;
    let model = Arc::new(Limited::new(model, &folder.join("vectors.bin"))?);
    let queries = &collection.queries[..plan.queries.min(collection.queries.len())];
    let ndcg10 = |searcher: &Searcher, mode: Mode| -> Result<f64> {
        let mut scores = Vec::with_capacity(queries.len());
        for query in queries {
            let asked = Query::literal(&query.text).mode(mode).grouping(Grouping::BestPassage).limit(SHOWN);
            let hits = if asked.is_empty() { Vec::new() } else { searcher.search(&asked)?.results };
            let found = hits.iter().filter_map(|hit| ids.get(hit.path.as_str()).copied());
            scores.push(Scores::of(found, &query.judgments, SHOWN));
        }
        Ok(Means::of(&scores).ndcg10)
    };
    let (mut of_shares, mut words, mut texts) = (vec![Vec::new(); SHARES.len()], 0.0, 0);
    for order in 0..ORDERS {
        date(&vault, &paths, order)?;
        let file = tempfile::tempdir()?;
        let options = Options::new().index_file(file.path().join("index.db")).embedder(model.clone());
        let index = Index::open(&vault, options)?;
        texts = index.sync_with(&SyncOptions::new().without_vectors())?.pending;
        for (at, share) in SHARES.into_iter().enumerate() {
            if order > 0 && (share == 0.0 || share == 1.0) {
                continue;
            }
            let has = texts - index.status()?.pending;
            let wanted = if share == 1.0 { usize::MAX } else { ((share * texts as f64) as usize).saturating_sub(has) };
            model.embed_up_to(&index, wanted)?;
            let searcher = index.searcher()?;
            of_shares[at].push(ndcg10(&searcher, Mode::Hybrid)?);
            if share == 1.0 {
                words = ndcg10(&searcher, Mode::Lexical)?;
            }
        }
    }
    model.keep()?;
    let shares = SHARES.into_iter().zip(&of_shares).map(|(share, found)| {
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        let (least, most) = (found.iter().copied().fold(1.0, f64::min), found.iter().copied().fold(0.0, f64::max));
        ShareOfVectors { share, ndcg10: (mean, least, most) }
    });
    Ok(SharesReport {
        collection: collection.name.clone(),
        model: model.id().to_owned(),
        documents: paths.len(),
        texts,
        queries: queries.len(),
        words,
        shares: shares.collect(),
    })
}

/// Gives the notes modification times in random order, one second apart.
fn date(vault: &Path, paths: &[VaultPath], seed: u64) -> Result<()> {
    let mut order: Vec<&VaultPath> = paths.iter().collect();
    let mut random = Random(seed);
    // A Fisher–Yates shuffle.
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    for (time, path) in (0..).zip(order) {
        let file = fs::File::options().write(true).open(vault.join(path.as_str()))?;
        file.set_modified(SystemTime::UNIX_EPOCH + OLDEST + Duration::from_secs(time))?;
    }
    Ok(())
}

/// A model that caches its vectors, and fails after a given number of texts.
struct Limited {
    model: Arc<dyn Embedder>,
    file: std::path::PathBuf,
    known: Mutex<HashMap<String, Vec<f32>>>,
    left: AtomicUsize,
}

impl Limited {
    /// Creates the model with the vectors of an earlier run, if they are from the same model.
    fn new(model: Arc<dyn Embedder>, file: &Path) -> Result<Self> {
        let mut known = HashMap::new();
        let mut bytes: &[u8] = &fs::read(file).unwrap_or_default();
        let mut take = |length: usize| bytes.split_off(..length);
        let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok().map(|number| number as usize);
        while let Some(length) = take(4).and_then(number) {
            let entry = take(length).and_then(|text| Some((text.to_vec(), take(4 * model.dimensions())?)));
            let Some((text, vector)) = entry else { break };
            let vector = vector.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
            known.insert(String::from_utf8(text)?, vector);
        }
        if !known.contains_key(model.id()) {
            known = HashMap::from([(model.id().to_owned(), vec![0.0; model.dimensions()])]);
        }
        Ok(Self { model, file: file.to_owned(), known: Mutex::new(known), left: AtomicUsize::new(0) })
    }

    /// Embeds about `texts` more texts. A batch that would exceed the number is not embedded.
    fn embed_up_to(&self, index: &Index, texts: usize) -> Result<()> {
        self.left.store(texts, Ordering::Relaxed);
        loop {
            let before = self.left.load(Ordering::Relaxed);
            match index.sync() {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() != ErrorKind::Model => return Err(error.into()),
                Err(error) if error.to_string().contains(ENOUGH) => {}
                Err(error) => return Err(error.into()),
            }
            if self.left.load(Ordering::Relaxed) == before {
                return Ok(());
            }
        }
    }

    fn keep(&self) -> Result<()> {
        let mut bytes = Vec::new();
        for (text, vector) in &*self.known.lock().unwrap_or_else(PoisonError::into_inner) {
            bytes.extend(u32::try_from(text.len())?.to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
        }
        Ok(fs::write(&self.file, bytes)?)
    }
}

/// The error of the model when the number of texts is reached.
const ENOUGH: &str = "the share is reached";

impl TokenCount for Limited {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for Limited {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    fn max_tokens(&self) -> usize {
        self.model.max_tokens()
    }

    fn known_share(&self, text: &str) -> f32 {
        self.model.known_share(text)
    }

    /// A small number, so that a share is met closely.
    fn batch_size(&self) -> usize {
        8
    }

    fn embed(&self, texts: &[&str], role: Role) -> vault_index::Result<Vec<Vec<f32>>> {
        if role == Role::Query {
            return self.model.embed(texts, role);
        }
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(texts.len())).is_err() {
            return Err(Error::new(ErrorKind::Model, ENOUGH));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<&str> = texts.iter().copied().filter(|text| !known.contains_key(*text)).collect();
        let made = if new.is_empty() { Vec::new() } else { self.model.embed(&new, role)? };
        known.extend(new.into_iter().map(str::to_owned).zip(made));
        Ok(texts.iter().map(|text| known[*text].clone()).collect())
    }
}
