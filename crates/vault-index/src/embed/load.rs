//! From a model's name to a model that is ready to embed, without reading its weights.

use std::sync::Arc;

use super::{Embedder, HashedEmbedder, LoadOptions, ModelInfo, ModelName};
use crate::error::Result;
#[cfg(any(feature = "minilm", not(all(feature = "minilm", feature = "fastembed", feature = "http"))))]
use crate::error::{Error, ErrorKind};

impl ModelName {
    /// Loads the model, but not its weights. The key of a remote one comes from the environment. With
    /// [`LoadOptions::dimensions`], no server is contacted.
    ///
    /// # Errors
    /// [`ErrorKind::Model`](crate::ErrorKind::Model) with a remedy: a feature is not built in, or a runtime or file was
    /// not found.
    #[cfg_attr(not(any(feature = "fastembed", feature = "http")), allow(unused_variables))]
    pub fn load(&self, options: &LoadOptions) -> Result<Arc<dyn Embedder>> {
        match self {
            ModelName::Hashed => Ok(Arc::new(HashedEmbedder::new())),
            #[cfg(feature = "minilm")]
            ModelName::MiniLm => Ok(Arc::new(super::minilm::BundledModel::new())),
            #[cfg(feature = "minilm")]
            ModelName::Known(name) => {
                let known = crate::models::KnownModel::named(name).ok_or_else(|| {
                    Error::new(ErrorKind::Query, format!("there is no model `{name}`"))
                        .with_remedy("`vault-index models` lists them")
                })?;
                Ok(Arc::new(super::added::named(known)?))
            }
            #[cfg(feature = "minilm")]
            ModelName::Dir(folder) => Ok(Arc::new(super::added::folder(folder)?)),
            #[cfg(feature = "fastembed")]
            ModelName::FastEmbed(model) => Ok(Arc::new(super::fastembed::named(model, options)?)),
            #[cfg(feature = "fastembed")]
            ModelName::Onnx(folder) => Ok(Arc::new(super::fastembed::folder(folder, options)?)),
            #[cfg(feature = "http")]
            ModelName::OpenAi(model) => Ok(Arc::new(super::http::openai(model, options)?)),
            #[cfg(feature = "http")]
            ModelName::Ollama(model) => Ok(Arc::new(super::http::ollama(model, options)?)),
            #[cfg(not(feature = "minilm"))]
            ModelName::MiniLm | ModelName::Known(_) | ModelName::Dir(_) => Err(not_built_in(self, "minilm")),
            #[cfg(not(feature = "fastembed"))]
            ModelName::FastEmbed(_) | ModelName::Onnx(_) => Err(not_built_in(self, "fastembed")),
            #[cfg(not(feature = "http"))]
            ModelName::OpenAi(_) | ModelName::Ollama(_) => Err(not_built_in(self, "http")),
        }
    }
}

/// A small model for a hundred languages, recommended for notes that are not in English.
pub(crate) const MULTILINGUAL: &str = "multilingual-e5-small";

impl ModelInfo {
    /// Says how to install a program with a feature that this one lacks.
    pub fn install_with(feature: &str) -> String {
        format!("install it with `cargo install --locked --path crates/vault-search --features {feature}`")
    }
}

#[cfg(not(all(feature = "minilm", feature = "fastembed", feature = "http")))]
fn not_built_in(name: &ModelName, feature: &str) -> Error {
    Error::new(ErrorKind::Model, format!("the model `{name}` is not built into this program"))
        .with_remedy(format!("{}, or choose one of `vault-index models`", ModelInfo::install_with(feature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_built_in_says_how_to_get_it() {
        for model in ModelName::all() {
            let Some(feature) = model.needs_feature else { continue };
            let name: ModelName = model.name.replace("NAME", "x").replace("DIR", "x").parse().unwrap();
            let error = name.load(&LoadOptions::default()).map(|m| m.id().to_owned()).unwrap_err();
            assert!(error.to_string().contains(&format!("--features {feature}")), "{error}");
        }
    }
}
