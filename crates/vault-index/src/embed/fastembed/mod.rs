//! Models on ONNX Runtime, through the crate fastembed: `fastembed:NAME` and `onnx:DIR`.
//!
//! Each text is a run of its own, on all cores. In a batch, texts are padded, and dynamically quantised models take one
//! scale for all of them, so a vector would depend on its neighbours. Tokens are estimated when notes are cut, so that
//! neither runtime nor tokenizer is needed before the first embedding. The runtime itself is looked up at once, because
//! nothing works without it.

mod folder;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ::fastembed::{EmbeddingModel, InitOptionsUserDefined, ModelTrait, TextEmbedding, TextInitOptions};

use self::folder::Folder;
use super::prompts::Prompts;
use super::{Embedder, LoadOptions, Role, to_unit, token_estimate};
use crate::chunk::TokenCount;
use crate::error::{Error, ErrorKind, Result};
use crate::onnx::{WINDOW, download_folder, find_runtime, with_causes};

/// The window of the one model of fastembed with a shorter window than the others.
const CLIP_WINDOW: usize = 77;
const SPECIAL_TOKENS: usize = 2;

/// A model on ONNX Runtime. Its session is created for the first text.
pub(super) struct OnnxModel {
    id: String,
    source: Source,
    session: Mutex<Option<TextEmbedding>>,
    prompts: Prompts,
    dimensions: usize,
    window: usize,
}

enum Source {
    Named { model: EmbeddingModel, folder: PathBuf },
    Folder(Folder),
}

/// The models that fastembed knows by name: name, dimensions and description, ordered by name.
pub(super) fn names() -> Vec<(String, usize, String)> {
    let models = TextEmbedding::list_supported_models();
    let mut names: Vec<_> =
        models.into_iter().map(|info| (format!("{:?}", info.model), info.dim, info.description)).collect();
    names.sort();
    for (_, _, note) in &mut names {
        *note += "; downloaded once, needs ONNX Runtime";
    }
    names
}

/// A model from fastembed's list. It is downloaded for the first text, unless it already was.
pub(super) fn named(name: &str, options: &LoadOptions) -> Result<OnnxModel> {
    let model: EmbeddingModel = name.parse().map_err(|_| {
        let error = Error::new(ErrorKind::Model, format!("fastembed has no model `{name}`"));
        // The publisher's spelling is also accepted: multilingual-e5-small.
        let plain = |name: &str| name.replace(['-', '_', '.'], "").to_ascii_lowercase();
        match names().into_iter().find(|(there, ..)| plain(there) == plain(name)) {
            Some((there, ..)) => error.with_remedy(format!("did you mean `fastembed:{there}`?")),
            None => error.with_remedy("`vault-index models` lists the names"),
        }
    })?;
    let dimensions = EmbeddingModel::get_model_info(&model).map_or(0, |info| info.dim);
    let folder = download_folder(options.model_folder.as_deref())?;
    find_runtime()?;
    let prompts = Prompts::of(name);
    Ok(OnnxModel {
        id: format!("fastembed:{model:?}{}", prompts.id_suffix()),
        window: if model == EmbeddingModel::ClipVitB32 { CLIP_WINDOW } else { WINDOW },
        source: Source::Named { model, folder },
        session: Mutex::new(None),
        prompts,
        dimensions,
    })
}

/// A model in a user's folder. Its files are hashed. If the dimensions are not given, it is loaded to determine them.
pub(super) fn folder(path: &Path, options: &LoadOptions) -> Result<OnnxModel> {
    let folder = Folder::open(path)?;
    find_runtime()?;
    let mut model = OnnxModel {
        id: folder.id(),
        window: folder.window.min(WINDOW),
        prompts: folder.prompts.clone(),
        source: Source::Folder(folder),
        session: Mutex::new(None),
        dimensions: options.dimensions.unwrap_or(0),
    };
    if options.dimensions.is_none() {
        model.dimensions = model.run(&["dimensions".to_owned()])?[0].len();
    }
    Ok(model)
}

impl OnnxModel {
    fn make_session(&self) -> Result<TextEmbedding> {
        match &self.source {
            Source::Named { model, folder } => {
                let options = TextInitOptions::new(model.clone())
                    .with_cache_dir(folder.clone())
                    .with_max_length(self.window)
                    .with_show_download_progress(false);
                TextEmbedding::try_new(options).map_err(|error| {
                    Error::new(ErrorKind::Model, format!("the model `fastembed:{model:?}` could not be loaded"))
                        .because(with_causes(&error))
                        .with_remedy(
                            "it is downloaded once: check the network, or name a folder that has it as `onnx:DIR`",
                        )
                })
            }
            Source::Folder(folder) => {
                let options = InitOptionsUserDefined::new().with_max_length(self.window);
                TextEmbedding::try_new_from_user_defined(folder.read()?, options).map_err(|error| {
                    Error::new(ErrorKind::Model, "the model could not be loaded")
                        .at(folder.files.folder())
                        .because(with_causes(&error))
                        .with_remedy("it must be an ONNX export of a sentence embedding model with its tokenizer files")
                })
            }
        }
    }

    /// Returns the vectors of the model, unchanged.
    fn run(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match &mut *session {
            Some(session) => session,
            none => none.insert(self.make_session()?),
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let of_one = session.embed([text], Some(1)).map_err(|error| {
                Error::new(ErrorKind::Model, format!("the model `{}` failed", self.id)).because(with_causes(&error))
            })?;
            vectors.extend(of_one);
        }
        if vectors.len() == texts.len() && vectors.iter().all(|vector| !vector.is_empty()) {
            Ok(vectors)
        } else {
            let message = format!("the model `{}` gave {} vectors for {} texts", self.id, vectors.len(), texts.len());
            Err(Error::new(ErrorKind::Model, message).with_remedy("try another model"))
        }
    }
}

impl TokenCount for OnnxModel {
    /// An upper estimate, because the tokenizer is not loaded before the model.
    fn count(&self, text: &str) -> usize {
        token_estimate::tokens(text)
    }
}

impl Embedder for OnnxModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn max_tokens(&self) -> usize {
        let reserved = SPECIAL_TOKENS + token_estimate::tokens(self.prompts.before(Role::Passage));
        self.window.saturating_sub(reserved).max(1)
    }

    /// Blank texts get zeros, because some tokenizers return no tokens for them, on which models fail.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        let is_blank = |text: &str| text.trim().is_empty();
        let filled: Vec<String> =
            texts.iter().filter(|text| !is_blank(text)).map(|text| self.prompts.apply(role, text)).collect();
        // Without texts, no session is created.
        let vectors = if filled.is_empty() { Vec::new() } else { self.run(&filled)? };
        let mut vectors = vectors.into_iter();
        let zeros = || vec![0.0; self.dimensions];
        let vector = |text: &&str| match is_blank(text) {
            true => Ok(zeros()),
            false => to_unit(vectors.next().unwrap_or_default(), self.dimensions),
        };
        texts.iter().map(vector).collect()
    }
}
