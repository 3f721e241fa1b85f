//! Models on our own engine besides the bundled one: those that were added by name, and folders of the user's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use ::minilm::Model;

use super::{Embedder, Role};
use crate::chunk::TokenCount;
use crate::error::{Error, ErrorKind, Result};
use crate::models::{self, AddingLock, KnownModel, ModelLanguages, ModelSource, SourceFile};

/// A model whose file is mapped. Opening one takes a few milliseconds.
#[derive(Debug)]
pub(super) struct AddedModel {
    model: Model,
    /// `None`: not known, for a folder of the user's.
    languages: Option<ModelLanguages>,
    /// The compiled file of a folder of the user's, which can be made again.
    cached: Option<PathBuf>,
    /// The outcome of reading all weights, which is done once, before vectors are stored.
    verified: OnceLock<Result<(), String>>,
}

/// The least share of a passage with which the model can read it.
const LEAST_KNOWN: f32 = 0.5;

/// A model of the table.
pub(super) fn named(known: &KnownModel) -> Result<AddedModel> {
    let Some(installed) = models::installed(known.name)? else {
        return Err(Error::new(ErrorKind::Model, format!("the model `{}` is not installed", known.name))
            .with_remedy(format!("vault-index models add {} downloads it, once you agree", known.name)));
    };
    AddedModel::open(&installed.file, Some(known.languages))
}

/// A folder of the user's with a model's published files. It is compiled when it is used first, and when one of its files
/// has changed.
pub(super) fn folder(folder: &Path) -> Result<AddedModel> {
    let folder = fs::canonicalize(folder).map_err(|error| Error::io(folder, error))?;
    let name = installed_name(&folder);
    let source = source_of(&folder)?;
    // A damaged file is made again, because its source is at hand.
    let installed = || models::installed(&name).ok().flatten().filter(|installed| installed.source == source);
    let file = match installed() {
        Some(installed) => installed.file,
        None => {
            let lock = AddingLock::take(&name, None)?;
            // Another process may have made it while this one waited.
            match installed() {
                Some(installed) => installed.file,
                None => models::install(&lock, None, &folder, &source, &AtomicBool::new(false), &|_| ())?.file,
            }
        }
    };
    Ok(AddedModel { cached: Some(file.clone()), ..AddedModel::open(&file, None)? })
}

/// The name under which a folder's model is compiled: readable, and unique to its path.
fn installed_name(folder: &Path) -> String {
    format!("dir-{}", crate::dirs::key_of_vault(folder))
}

/// The files of a folder with the length and the time of each: to read all of a model at each start would take longer than
/// anything else.
fn source_of(folder: &Path) -> Result<ModelSource> {
    let files = models::files_of(folder)?.into_iter().map(|path| {
        let file = folder.join(&path);
        let metadata = fs::metadata(&file).map_err(|error| Error::io(&file, error))?;
        let time = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let digest = format!("modified:{}", time.map_or(0, |time| time.as_nanos()));
        Ok(SourceFile { path, bytes: metadata.len(), digest })
    });
    let files = files.collect::<Result<Vec<_>>>()?;
    Ok(ModelSource { from: folder.to_string_lossy().into_owned(), revision: None, licence: None, files })
}

impl AddedModel {
    fn open(file: &Path, languages: Option<ModelLanguages>) -> Result<AddedModel> {
        Ok(AddedModel { model: models::open(file)?, languages, cached: None, verified: OnceLock::new() })
    }

    /// Reads all weights once, so that no vector of damaged ones is stored.
    fn verify(&self) -> Result<()> {
        let verified = self.verified.get_or_init(|| {
            let verified = self.model.verify().map_err(|error| error.to_string());
            // Else the next start would use the file again, because the folder has not changed.
            if let (Err(_), Some(file)) = (&verified, &self.cached) {
                delete_if_damaged(file);
            }
            verified
        });
        verified.clone().map_err(|what| {
            let remedy = match self.cached {
                Some(_) => "run the command again: the model is made again from its folder".to_owned(),
                None => format!("vault-index models add {} replaces it", self.model.description().name),
            };
            Error::new(ErrorKind::Model, what).with_remedy(remedy)
        })
    }
}

/// Another process may have made the file again since it was mapped.
fn delete_if_damaged(file: &Path) {
    if !models::open(file).is_ok_and(|now| now.verify().is_ok()) {
        let _ = fs::remove_file(file);
    }
}

impl TokenCount for AddedModel {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for AddedModel {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn dimensions(&self) -> usize {
        self.model.description().dimensions
    }

    /// Less what the prompt takes, so that a passage is never cut by it.
    fn max_tokens(&self) -> usize {
        let prompt = self.model.count(&self.model.description().prompts.passage);
        self.model.max_tokens().saturating_sub(prompt).max(1)
    }

    /// Embeds on all cores. A passage that the model cannot read gets zeros, as with the bundled model.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        let prompts = &self.model.description().prompts;
        let prompt = match role {
            Role::Passage => {
                self.verify()?;
                &prompts.passage
            }
            Role::Query => &prompts.query,
        };
        let threads = available_parallelism().map_or(1, |threads| threads.get());
        let is_read = |text: &&str| role == Role::Query || self.known_share(text) >= LEAST_KNOWN;
        let read: Vec<String> =
            texts.iter().filter(|text| is_read(text)).map(|text| [prompt, *text].concat()).collect();
        let read: Vec<&str> = read.iter().map(String::as_str).collect();
        let mut vectors = self.model.embed_batch(&read, threads).into_iter();
        let vector = |text| if is_read(text) { vectors.next() } else { None };
        let zeros = || vec![0.0; self.dimensions()];
        let vectors: Vec<Vec<f32>> = texts.iter().map(vector).map(|vector| vector.unwrap_or_else(zeros)).collect();
        match vectors.iter().flatten().all(|x| x.is_finite()) {
            true => Ok(vectors),
            false => Err(Error::new(ErrorKind::Model, "the model gives vectors with NaN or infinity")
                .with_remedy("add the model again with `vault-index models add`, or choose another")),
        }
    }

    fn batch_size(&self) -> usize {
        16
    }

    fn cosine_range(&self) -> Option<(f32, f32)> {
        let range = self.model.description().cosine_range;
        Some((range.unrelated, range.related))
    }

    fn is_english(&self) -> bool {
        self.languages == Some(ModelLanguages::English)
    }

    fn is_multilingual(&self) -> bool {
        self.languages == Some(ModelLanguages::Many)
    }

    fn known_share(&self, text: &str) -> f32 {
        self.model.known_share(text)
    }
}

#[cfg(test)]
mod tests {
    use ::minilm::{CompileOptions, ModelFolder};

    use super::*;

    #[test]
    fn a_damaged_cache_that_was_made_again_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dir.model");
        let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../minilm/testdata/tiny/bert-mean");
        let compile = || {
            let folder = ModelFolder::open(Path::new(tiny)).unwrap();
            folder.compile(&file, &CompileOptions::default(), &AtomicBool::new(false), &|_| ()).unwrap();
        };
        compile();
        let mut bytes = fs::read(&file).unwrap();
        let at = bytes.len() - 100;
        bytes[at] ^= 1;
        fs::write(&file, bytes).unwrap();
        let open = || AddedModel { cached: Some(file.clone()), ..AddedModel::open(&file, None).unwrap() };
        let (first, second) = (open(), open());
        assert!(first.verify().is_err() && !file.exists());
        compile();
        for old in [first, second] {
            let told = old.verify().unwrap_err().to_string();
            assert!(told.contains("made again") && file.exists(), "{told}");
        }
        assert!(open().verify().is_ok());
    }
}
