//! The name of a model, in the forms that `--model` takes, and the other options of loading.
//!
//! A new model also needs an arm in `load.rs` and a line in `available.rs`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::models::KnownModel;

/// Which embedding model: the value of `--model`. Its text form can be parsed back without loss.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ModelName {
    /// `minilm`: bundled, the default.
    #[default]
    MiniLm,
    /// A model of [`KnownModel::all`], which `vault-index models add` installs.
    Known(&'static str),
    /// `dir:DIR`: a folder with a model's published files (`config.json`, `tokenizer.json`, `model.safetensors`).
    Dir(PathBuf),
    /// `fastembed:NAME`.
    FastEmbed(String),
    /// `onnx:DIR`: a folder with a `model.onnx` and its tokenizer files.
    Onnx(PathBuf),
    /// `openai:NAME`: any endpoint that speaks OpenAI's `/v1/embeddings`.
    OpenAi(String),
    /// `ollama:NAME`.
    Ollama(String),
    /// `hashed`: no model, vectors of hashed words; for tests.
    Hashed,
}

/// Options of loading besides the name. The default: usual addresses and folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The address of a remote model, such as `http://localhost:8080` or `https://host/v1`.
    /// `None`: `https://api.openai.com`; for Ollama `OLLAMA_HOST`, else `http://localhost:11434`.
    pub base_url: Option<String>,
    /// The length of the model's vectors if it is already known, for example from the index. `None`: if the length is
    /// not known otherwise, the model is asked for one vector while it is loaded.
    pub dimensions: Option<usize>,
    /// The folder of downloaded models. `None`: `FASTEMBED_CACHE_DIR` or `HF_HOME`, else the user's cache folder.
    pub model_folder: Option<PathBuf>,
}

impl FromStr for ModelName {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Query`] for a name of unknown form, with the known forms. Whether the model exists is checked when
    /// it is loaded.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::new(ErrorKind::Query, format!("there is no model `{text}`")).with_remedy(format!(
                "the models are minilm, {}, dir:DIR, fastembed:NAME, onnx:DIR, openai:NAME, ollama:NAME; \
                     `vault-index models` lists them",
                KnownModel::all().iter().map(|model| model.name).collect::<Vec<_>>().join(", ")
            ))
        };
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let rest = rest.trim();
        match (kind, rest) {
            ("minilm", "") => Ok(Self::MiniLm),
            ("hashed", "") => Ok(Self::Hashed),
            (name, "") => KnownModel::named(name)
                .filter(|_| name == text)
                .map(|known| Self::Known(known.name))
                .ok_or_else(unknown),
            ("dir", folder) => Ok(Self::Dir(PathBuf::from(folder))),
            ("fastembed", name) => Ok(Self::FastEmbed(name.to_owned())),
            ("onnx", folder) => Ok(Self::Onnx(PathBuf::from(folder))),
            ("openai", name) => Ok(Self::OpenAi(name.to_owned())),
            ("ollama", name) => Ok(Self::Ollama(name.to_owned())),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MiniLm => f.write_str("minilm"),
            Self::Known(name) => f.write_str(name),
            Self::Dir(folder) => write!(f, "dir:{}", folder.display()),
            Self::FastEmbed(name) => write!(f, "fastembed:{name}"),
            Self::Onnx(folder) => write!(f, "onnx:{}", folder.display()),
            Self::OpenAi(name) => write!(f, "openai:{name}"),
            Self::Ollama(name) => write!(f, "ollama:{name}"),
            Self::Hashed => f.write_str("hashed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        let texts = [
            "minilm",
            "hashed",
            "leaf-ir-384",
            "dir:/models/my model",
            "fastembed:BGESmallENV15",
            "onnx:/models/my model",
            "onnx:C:\\models\\e5",
            "openai:text-embedding-3-small",
            "ollama:nomic-embed-text:latest",
        ];
        for text in texts {
            assert_eq!(text.parse::<ModelName>().unwrap().to_string(), text);
        }
        let ollama = ModelName::Ollama("nomic-embed-text:latest".into());
        assert_eq!("ollama:nomic-embed-text:latest".parse::<ModelName>().unwrap(), ollama);
    }

    #[test]
    fn other_names_are_refused_with_what_there_is() {
        for text in [
            "",
            "minlm",
            "openai",
            "openai:",
            "onnx: ",
            "minilm:x",
            "MiniLM",
            "leaf-ir:",
            "leaf-ir:x",
            "dir:",
            ":",
            "gpt:4",
        ] {
            let error = text.parse::<ModelName>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Query, "{text}");
            assert!(error.to_string().contains("fastembed:NAME"), "{error}");
        }
    }
}
