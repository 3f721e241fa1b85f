//! Common code of all models on ONNX Runtime: the runtime, the folder of model files, the download folder.

mod files;
mod runtime;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};

pub(crate) use files::ModelFiles;
pub(crate) use runtime::find as find_runtime;

use crate::error::{Error, ErrorKind, Result};

/// The window of the models in tokens, including special ones, unless they have a smaller one.
pub(crate) const WINDOW: usize = 512;

/// The folder of downloaded models: `asked`, else `FASTEMBED_CACHE_DIR`, else in the user's cache folder.
///
/// # Errors
/// [`ErrorKind::Model`] when the system has no cache folder.
pub(crate) fn download_folder(asked: Option<&Path>) -> Result<PathBuf> {
    match (asked, std::env::var_os("FASTEMBED_CACHE_DIR")) {
        (Some(folder), _) => Ok(folder.to_path_buf()),
        (None, Some(folder)) => Ok(folder.into()),
        (None, None) => {
            crate::dirs::cache_folder().map(|folder| folder.join("vault-index").join("models")).ok_or_else(|| {
                Error::new(ErrorKind::Model, "the system names no cache folder to keep the model in")
                    .with_remedy("set FASTEMBED_CACHE_DIR")
            })
        }
    }
}

/// Formats an error with its causes in one line, because fastembed's messages do not include them.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        text = format!("{text}: {cause}");
        below = cause.source();
    }
    text
}
