//! Embedding models: by the names of fastembed, and from a folder.
//!
//! Each text is a run of its own, on all cores. In a batch, texts are padded, and dynamically quantised models take one
//! scale for all of them, so a vector would depend on its neighbours. The runtime is looked up at once, because nothing
//! works without it; the model is loaded for the first text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fastembed::{InitOptionsUserDefined, ModelTrait, TextEmbedding, TextInitOptions};

use super::WINDOW;
use super::embedding_folder::{EmbeddingFolder, Prompts};
use super::error::{ModelError, Result, with_causes};
use super::runtime;

/// The window of the one model of fastembed with a shorter window than the others.
const CLIP_WINDOW: usize = 77;

/// An embedding model on ONNX Runtime. Its session is created for the first text.
pub struct EmbeddingModel {
    id: String,
    source: Source,
    session: Mutex<Option<TextEmbedding>>,
    dimensions: usize,
    window: usize,
}

/// A model that fastembed knows by name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedModel {
    /// The name that [`EmbeddingModel::named`] takes.
    pub name: String,
    /// The length of its vectors.
    pub dimensions: usize,
    /// fastembed's description.
    pub description: String,
}

enum Source {
    Named { model: fastembed::EmbeddingModel, folder: PathBuf },
    Folder(EmbeddingFolder),
}

impl EmbeddingModel {
    /// The models that fastembed knows, ordered by name.
    pub fn all_named() -> Vec<NamedModel> {
        let mut models: Vec<_> = TextEmbedding::list_supported_models()
            .into_iter()
            .map(|info| NamedModel {
                name: format!("{:?}", info.model),
                dimensions: info.dim,
                description: info.description,
            })
            .collect();
        models.sort_by(|a, b| a.name.cmp(&b.name));
        models
    }

    /// A model of [`all_named`](Self::all_named). It is downloaded to `folder` for the first text, unless it is there.
    ///
    /// # Errors
    /// When there is no such model, or no ONNX Runtime. An unknown name has a remedy only if it is nearly a known one.
    pub fn named(name: &str, folder: &Path) -> Result<Self> {
        let model: fastembed::EmbeddingModel = name.parse().map_err(|_| {
            let error = ModelError::new(format!("fastembed has no model `{name}`"));
            // The publisher's spelling is also accepted: multilingual-e5-small.
            let plain = |name: &str| name.replace(['-', '_', '.'], "").to_ascii_lowercase();
            match Self::all_named().into_iter().find(|model| plain(&model.name) == plain(name)) {
                Some(model) => error.with_remedy(format!("did you mean `fastembed:{}`?", model.name)),
                None => error,
            }
        })?;
        let dimensions = fastembed::EmbeddingModel::get_model_info(&model).map_or(0, |info| info.dim);
        runtime::find()?;
        Ok(Self {
            id: format!("fastembed:{model:?}"),
            window: if model == fastembed::EmbeddingModel::ClipVitB32 { CLIP_WINDOW } else { WINDOW },
            source: Source::Named { model, folder: folder.to_path_buf() },
            session: Mutex::new(None),
            dimensions,
        })
    }

    /// A model in a folder of the user's: `model.onnx` and its tokenizer. Its files are read once, to hash them. Without
    /// `dimensions`, the length of its vectors, it is loaded to determine them.
    ///
    /// # Errors
    /// When files are missing or unsuitable, or there is no ONNX Runtime.
    pub fn in_folder(folder: &Path, dimensions: Option<usize>) -> Result<Self> {
        let folder = EmbeddingFolder::open(folder)?;
        runtime::find()?;
        let mut model = Self {
            id: folder.id(),
            window: folder.window.min(WINDOW),
            source: Source::Folder(folder),
            session: Mutex::new(None),
            dimensions: dimensions.unwrap_or(0),
        };
        if dimensions.is_none() {
            model.dimensions = model.embed(&["dimensions"])?[0].len();
        }
        Ok(model)
    }

    /// `fastembed:NAME`, or `onnx:` with the folder's name and a hash of its files. Vectors are comparable if and only if
    /// the ids of their models are equal, and their texts had the same prompts.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The length of its vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The number of tokens that a text may have, with its prompt and special tokens. The model truncates longer texts.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The prompts that its folder names, which the caller writes before its texts. `None`: it names no prompts, or the
    /// model has a name of fastembed, which does not know them either.
    pub fn prompts(&self) -> Option<&Prompts> {
        match &self.source {
            Source::Named { .. } => None,
            Source::Folder(folder) => folder.prompts.as_ref(),
        }
    }

    /// Returns one vector for each text, in their order, as the model computes it: of any length. Without texts, nothing
    /// is loaded.
    ///
    /// # Errors
    /// When the model cannot be downloaded, loaded or run. Some models fail on a text without tokens, for example a blank
    /// one.
    pub fn embed(&self, texts: &[impl AsRef<str>]) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match &mut *session {
            Some(session) => session,
            none => none.insert(self.make_session()?),
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let of_one = session.embed([text.as_ref()], Some(1)).map_err(|error| {
                ModelError::new(format!("the model `{}` failed", self.id)).because(with_causes(&error))
            })?;
            vectors.extend(of_one);
        }
        if vectors.len() == texts.len() && vectors.iter().all(|vector| !vector.is_empty()) {
            Ok(vectors)
        } else {
            let message = format!("the model `{}` gave {} vectors for {} texts", self.id, vectors.len(), texts.len());
            Err(ModelError::new(message).with_remedy("try another model").into())
        }
    }

    fn make_session(&self) -> Result<TextEmbedding> {
        Ok(match &self.source {
            Source::Named { model, folder } => {
                let options = TextInitOptions::new(model.clone())
                    .with_cache_dir(folder.clone())
                    .with_max_length(self.window)
                    .with_show_download_progress(false);
                TextEmbedding::try_new(options).map_err(|error| {
                    ModelError::new(format!("the model `fastembed:{model:?}` could not be loaded"))
                        .because(with_causes(&error))
                        .with_remedy(
                            "it is downloaded once: check the network, or name a folder that has it as `onnx:DIR`",
                        )
                })?
            }
            Source::Folder(folder) => {
                let options = InitOptionsUserDefined::new().with_max_length(self.window);
                TextEmbedding::try_new_from_user_defined(folder.read()?, options).map_err(|error| {
                    ModelError::new("the model could not be loaded")
                        .at(folder.files.folder())
                        .because(with_causes(&error))
                        .with_remedy("it must be an ONNX export of a sentence embedding model with its tokenizer files")
                })?
            }
        })
    }
}

impl fmt::Debug for EmbeddingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingModel").field("id", &self.id).field("dimensions", &self.dimensions).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{has_runtime, testdata};

    #[test]
    fn a_model_of_ones_own() {
        if !has_runtime() {
            return;
        }
        let folder = testdata("tiny-onnx");
        let learned = EmbeddingModel::in_folder(&folder, None).unwrap();
        assert_eq!((learned.dimensions(), learned.window(), learned.prompts()), (16, 32, None));
        let given = EmbeddingModel::in_folder(&folder, Some(16)).unwrap();
        assert_eq!(given.id(), learned.id());
        assert!(given.embed(&[""; 0]).unwrap().is_empty());
        assert!(given.session.lock().unwrap().is_none(), "nothing is loaded before it is needed");

        let embed = |model: &EmbeddingModel, texts: &[&str]| model.embed(texts).unwrap();
        let passages =
            ["apple branches in winter", "the bank and the interest rate", "salt the water and boil the pasta"];
        let queries = ["how do i prune trees", "money", "pasta sauce"];
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        let cosine = |a: &[f32], b: &[f32]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        for (i, query) in embed(&learned, &queries).iter().enumerate() {
            for (j, passage) in embed(&given, &passages).iter().enumerate() {
                assert_eq!(cosine(query, passage) > 0.6, i == j, "{} and {}", queries[i], passages[j]);
            }
        }
        let alone = embed(&given, &passages[..1]);
        let beside = embed(&given, &[passages[1], passages[0], "a"]);
        assert_eq!(alone[0], beside[1], "the same bits, whatever stands beside it");
        // 32 tokens are read, the rest is truncated.
        let long = "apple ".repeat(200);
        assert_eq!(embed(&given, &[&long]), embed(&given, &[&(long.clone() + "bank")]));
    }

    #[test]
    fn the_names_are_fastembeds() {
        let models = EmbeddingModel::all_named();
        assert!(models.iter().any(|model| model.name == "MultilingualE5Small" && model.dimensions == 384));
        assert!(models.is_sorted_by_key(|model| &model.name));
        assert!(models.iter().all(|model| model.name.parse::<fastembed::EmbeddingModel>().is_ok()));
        let error = |name| EmbeddingModel::named(name, Path::new("downloads")).unwrap_err().to_string();
        assert_eq!(error("NoSuchModel"), "fastembed has no model `NoSuchModel`");
        assert!(error("multilingual-e5-small").contains("did you mean `fastembed:MultilingualE5Small`?"));
    }
}
