//! A folder with an embedding model, as sentence-transformers exports it: its settings, and one id for all its files.
//!
//! These files are read if they exist, besides the model and its tokenizer (`files.rs`):
//!
//! | file | for |
//! | --- | --- |
//! | `1_Pooling/config.json` | mean or first token; without it, mean |
//! | `sentence_bert_config.json` | `max_seq_length`, else `model_max_length` of the tokenizer |
//! | `config_sentence_transformers.json` | prompts for passages and queries |

use std::path::Path;

use fastembed::{Pooling, UserDefinedEmbeddingModel};
use serde_json::Value;

use super::error::{ModelError, Result};
use super::files::ModelFiles;

/// The prompts that a model expects before its texts, as its folder names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Prompts {
    /// The prompt before a passage; often empty.
    pub passage: String,
    /// The prompt before a query; often empty.
    pub query: String,
}

/// A folder whose files were checked; the model itself has not been read into memory.
#[derive(Debug)]
pub(super) struct EmbeddingFolder {
    pub(super) files: ModelFiles,
    /// The number of tokens that a text may have, special ones included.
    pub(super) window: usize,
    pub(super) prompts: Option<Prompts>,
    pooling: Pooling,
    /// The hash of all files that affect the vectors.
    hash: blake3::Hash,
}

const POOLING: &str = "1_Pooling/config.json";
const SENTENCE_CONFIG: &str = "sentence_bert_config.json";
const PROMPTS: &str = "config_sentence_transformers.json";

impl EmbeddingFolder {
    /// Reads all files once, to hash them.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let files = ModelFiles::open(path)?;
        let max_seq_length = files.json(SENTENCE_CONFIG)?["max_seq_length"].as_f64();
        // Some tokenizers give 1e30 to mean "no limit".
        let window = max_seq_length.or(files.tokenizer_window()?);
        Ok(Self {
            window: window.map_or(usize::MAX, |tokens| tokens as usize).max(1),
            prompts: prompts(&files.json(PROMPTS)?),
            pooling: pooling(&files.json(POOLING)?).map_err(|error| error.at(files.path(POOLING)))?,
            hash: files.hash(&[POOLING, SENTENCE_CONFIG, PROMPTS])?,
            files,
        })
    }

    /// The folder's name, for people, and the hash of its contents.
    pub(super) fn id(&self) -> String {
        let name = self.files.folder().file_name().unwrap_or_default().to_string_lossy();
        format!("onnx:{name}-{}", &self.hash.to_hex()[..16])
    }

    /// Reads the model into memory.
    pub(super) fn read(&self) -> Result<UserDefinedEmbeddingModel> {
        let model = UserDefinedEmbeddingModel::new(self.files.read_model()?, self.files.tokenizer()?)
            .with_pooling(self.pooling.clone());
        let weights = self.files.read_weights()?.into_iter();
        Ok(weights.fold(model, |model, (name, bytes)| model.with_external_initializer(name, bytes)))
    }
}

/// The prompts of a `config_sentence_transformers.json`, or `None` if it has none of the names we know.
fn prompts(config: &Value) -> Option<Prompts> {
    let named = |names: &[&str]| names.iter().find_map(|name| config["prompts"][name].as_str().map(str::to_owned));
    let (passage, query) = (named(&["passage", "document"]), named(&["query"]));
    (passage.is_some() || query.is_some())
        .then(|| Prompts { passage: passage.unwrap_or_default(), query: query.unwrap_or_default() })
}

fn pooling(config: &Value) -> Result<Pooling, ModelError> {
    let is_set = |mode: &str| config[mode].as_bool().unwrap_or(false);
    let other = ["max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"];
    if other.iter().any(|mode| is_set(&format!("pooling_mode_{mode}"))) {
        return Err(ModelError::new("the model pools its tokens in a way that is not supported")
            .with_remedy("mean and first-token (CLS) pooling are"));
    }
    Ok(if is_set("pooling_mode_cls_token") { Pooling::Cls } else { Pooling::Mean })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::testdata;

    #[test]
    fn a_folder_is_looked_through_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let error = EmbeddingFolder::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no model.onnx here") && error.starts_with(folder.path().to_str().unwrap()), "{error}");
        std::fs::create_dir(at("onnx")).unwrap();
        std::fs::copy(testdata("tiny-onnx").join("model.onnx"), at("onnx/model.onnx")).unwrap();
        assert!(EmbeddingFolder::open(folder.path()).unwrap_err().to_string().contains("no tokenizer.json"));
        for name in ["tokenizer.json", "tokenizer_config.json", "config.json"] {
            std::fs::copy(testdata("tiny-onnx").join(name), at(name)).unwrap();
        }
        let open = || EmbeddingFolder::open(folder.path()).unwrap();
        let first = open();
        assert_eq!((first.window, &first.prompts, &first.pooling), (32, &None, &Pooling::Mean));

        std::fs::write(at("sentence_bert_config.json"), r#"{"max_seq_length": 24}"#).unwrap();
        let prompts = r#"{"prompts": {"query": "ask: ", "document": "text: "}}"#;
        std::fs::write(at("config_sentence_transformers.json"), prompts).unwrap();
        std::fs::create_dir(at("1_Pooling")).unwrap();
        std::fs::write(at("1_Pooling/config.json"), r#"{"pooling_mode_cls_token": true}"#).unwrap();
        let second = open();
        let prompts = Prompts { passage: "text: ".into(), query: "ask: ".into() };
        assert_eq!((second.window, &second.prompts, &second.pooling), (24, &Some(prompts), &Pooling::Cls));
        assert_ne!(first.hash, second.hash, "whatever decides over the vectors is in the id");

        std::fs::write(at("onnx/model.onnx_data"), "weights").unwrap();
        assert_ne!(open().hash, second.hash);
        std::fs::write(at("1_Pooling/config.json"), r#"{"pooling_mode_lasttoken": true}"#).unwrap();
        assert!(EmbeddingFolder::open(folder.path()).unwrap_err().to_string().contains("first-token"));
        std::fs::write(at("1_Pooling/config.json"), "{").unwrap();
        assert!(EmbeddingFolder::open(folder.path()).unwrap_err().to_string().contains("not JSON"));
    }
}
