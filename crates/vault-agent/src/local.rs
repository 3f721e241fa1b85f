//! Models whose files are here: `local:FILE.gguf` in this process, `llama-server:FILE.gguf` in a process of its own.

use std::sync::Arc;

use agent_loop::Model;
use vault_tools::{Error, ErrorKind, Result};

use crate::providers::Choice;
use crate::settings::Settings;

/// Loads a model.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where this program cannot; a file that is no model.
pub(crate) fn load(choice: &Choice, _settings: &Settings) -> Result<Arc<dyn Model>> {
    let message = format!("models of the provider {} are not built into this program", choice.name());
    let remedy = "start the model with Ollama, LM Studio or llama.cpp's server, and name that as the provider";
    Err(Error::new(ErrorKind::Unsupported, message).with_remedy(remedy))
}
