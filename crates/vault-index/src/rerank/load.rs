//! From a reranker's name to a reranker that is ready to score, without reading its weights.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "fastembed")]
use vault_models::CrossEncoder;

use super::{Reranker, RerankerName};
#[cfg(feature = "fastembed")]
use crate::dirs::downloads_folder;
use crate::error::Result;
#[cfg(not(feature = "fastembed"))]
use crate::error::{Error, ErrorKind};

impl RerankerName {
    /// Loads the reranker. Its weights are read, and downloaded if necessary, when the first passage is scored.
    ///
    /// The folder of downloads is `model_folder`. `None`: `FASTEMBED_CACHE_DIR` or `HF_HOME`, else the user's cache
    /// folder.
    ///
    /// # Errors
    /// [`ErrorKind::Model`](crate::ErrorKind::Model) with a remedy: a feature is not built in, or a runtime or file was
    /// not found.
    #[cfg_attr(not(feature = "fastembed"), allow(unused_variables))]
    pub fn load(&self, model_folder: Option<&Path>) -> Result<Arc<dyn Reranker>> {
        #[cfg(feature = "fastembed")]
        return Ok(Arc::new(match self {
            RerankerName::FastEmbed(model) => CrossEncoder::named(model, &downloads_folder(model_folder)?)?,
            RerankerName::Onnx(folder) => CrossEncoder::in_folder(folder)?,
        }));
        #[cfg(not(feature = "fastembed"))]
        Err(Error::new(ErrorKind::Model, format!("the reranker `{self}` is not built into this program")).with_remedy(
            format!("{}, or search without a reranker", crate::embed::ModelInfo::install_with("fastembed")),
        ))
    }
}

#[cfg(all(test, not(feature = "fastembed")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_built_in_says_how_to_get_it() {
        for name in ["fastembed:BGERerankerBase", "onnx:here"] {
            let error =
                name.parse::<RerankerName>().unwrap().load(None).map(|reranker| reranker.id().to_owned()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Model);
            assert!(error.to_string().contains("--features fastembed"), "{error}");
        }
    }
}
