//! The name of a reranker: the forms that `--rerank` takes, parsed and displayed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// Which reranker: the value of `--rerank`. Its text form can be parsed back without loss.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RerankerName {
    /// `fastembed:NAME`, one of [`RerankerName::FASTEMBED`].
    FastEmbed(String),
    /// `onnx:DIR`: a folder with the `model.onnx` of a cross-encoder and its tokenizer files.
    Onnx(PathBuf),
}

impl RerankerName {
    /// The cross-encoders that fastembed knows, its default first.
    pub const FASTEMBED: [&str; 4] =
        ["BGERerankerBase", "BGERerankerV2M3", "JINARerankerV1TurboEn", "JINARerankerV2BaseMultilingual"];
}

impl FromStr for RerankerName {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Query`] for a name of unknown form, with the known forms. Whether the reranker exists is checked
    /// when it is loaded.
    fn from_str(text: &str) -> Result<Self> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest.trim()) {
            ("fastembed", name) if !name.is_empty() => Ok(Self::FastEmbed(name.to_owned())),
            ("onnx", folder) if !folder.is_empty() => Ok(Self::Onnx(PathBuf::from(folder))),
            _ => Err(Error::new(ErrorKind::Query, format!("there is no reranker `{text}`"))
                .with_remedy(format!("write onnx:DIR, or fastembed:NAME with one of {}", Self::FASTEMBED.join(", ")))),
        }
    }
}

impl fmt::Display for RerankerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FastEmbed(name) => write!(f, "fastembed:{name}"),
            Self::Onnx(folder) => write!(f, "onnx:{}", folder.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["fastembed:BGERerankerBase", "onnx:/models/my model", "onnx:C:\\models\\mini"] {
            assert_eq!(text.parse::<RerankerName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_names_are_refused_with_what_there_is() {
        for text in ["", "minilm", "fastembed", "fastembed: ", "onnx:", "BGERerankerBase", "ollama:x"] {
            let error = text.parse::<RerankerName>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Query, "{text}");
            let says = error.to_string();
            assert!(says.contains("onnx:DIR") && says.contains("JINARerankerV1TurboEn"), "{says}");
        }
    }
}
