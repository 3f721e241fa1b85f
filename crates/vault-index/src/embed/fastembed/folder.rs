//! A model in a folder of the user's, as sentence-transformers exports it: which files, what they say, one id for all.
//!
//! | file | needed | for |
//! | --- | --- | --- |
//! | `model.onnx` or `onnx/model.onnx` (and `model.onnx_data`, `model.onnx.data` beside it) | yes | the model |
//! | `tokenizer.json`, `tokenizer_config.json`, `config.json` | yes | the tokenizer |
//! | `special_tokens_map.json` | no | the tokenizer |
//! | `1_Pooling/config.json` | no | mean or first token; without it, mean |
//! | `sentence_bert_config.json` | no | `max_seq_length`, else `model_max_length` of the tokenizer |
//! | `config_sentence_transformers.json` | no | prompts for passages and queries, else by the folder's name |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ::fastembed::{Pooling, TokenizerFiles, UserDefinedEmbeddingModel};
use serde_json::Value;

use crate::embed::prompts::Prompts;
use crate::error::{Error, ErrorKind, Result};

/// A folder that was looked through; the model itself has not been read into memory.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Tokens a text may have, special ones included.
    pub(super) window: usize,
    pub(super) prompts: Prompts,
    pooling: Pooling,
    model: PathBuf,
    /// Of all files that decide over the vectors.
    hash: blake3::Hash,
}

const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const CONFIG: &str = "config.json";
const SPECIAL_TOKENS: &str = "special_tokens_map.json";
const POOLING: &str = "1_Pooling/config.json";
const SENTENCE_CONFIG: &str = "sentence_bert_config.json";
const PROMPTS: &str = "config_sentence_transformers.json";

impl Folder {
    /// Reads all files once, to hash them: about 50 ms for 100 MB that the system has at hand.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let missing = |what: &str| {
            Error::new(ErrorKind::Model, format!("there is no {what} here")).at(path).remedy(
                "onnx:DIR takes a folder with model.onnx, tokenizer.json, tokenizer_config.json and config.json",
            )
        };
        let model =
            ["model.onnx", "onnx/model.onnx"].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
        let model = model.ok_or_else(|| missing("model.onnx"))?;
        for name in [TOKENIZER, TOKENIZER_CONFIG, CONFIG] {
            if !path.join(name).is_file() {
                return Err(missing(name));
            }
        }
        let sentence = json(&path.join(SENTENCE_CONFIG))?;
        let tokenizer = json(&path.join(TOKENIZER_CONFIG))?;
        // Some tokenizers say 1e30 for "as long as you like".
        let window = sentence["max_seq_length"].as_f64().or_else(|| tokenizer["model_max_length"].as_f64());
        let by_name = || Prompts::of(&path.file_name().unwrap_or_default().to_string_lossy());
        let mut folder = Self {
            window: window.map_or(usize::MAX, |tokens| tokens as usize).max(1),
            prompts: Prompts::of_config(&json(&path.join(PROMPTS))?).unwrap_or_else(by_name),
            pooling: pooling(&json(&path.join(POOLING))?).map_err(|error| error.at(path.join(POOLING)))?,
            hash: blake3::hash(b""),
            path: path.to_path_buf(),
            model,
        };
        folder.hash = folder.hash_files()?;
        Ok(folder)
    }

    /// The folder's name, for people, and the hash of its contents.
    pub(super) fn id(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("onnx:{name}-{}{}", &self.hash.to_hex()[..16], self.prompts.id_suffix())
    }

    /// Reads the model into memory.
    pub(super) fn read(&self) -> Result<UserDefinedEmbeddingModel> {
        let read = |path: &Path| fs::read(path).map_err(|error| Error::io(path, error));
        let special = self.path.join(SPECIAL_TOKENS);
        let tokenizer = TokenizerFiles {
            tokenizer_file: read(&self.path.join(TOKENIZER))?,
            config_file: read(&self.path.join(CONFIG))?,
            special_tokens_map_file: if special.is_file() { read(&special)? } else { b"{}".to_vec() },
            tokenizer_config_file: read(&self.path.join(TOKENIZER_CONFIG))?,
        };
        let mut model =
            UserDefinedEmbeddingModel::new(read(&self.model)?, tokenizer).with_pooling(self.pooling.clone());
        for data in self.external_data() {
            let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
            model = model.with_external_initializer(name, read(&data)?);
        }
        Ok(model)
    }

    /// Weights that are kept beside the model.
    fn external_data(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let beside = ["model.onnx_data", "model.onnx.data"].map(|name| self.model.with_file_name(name));
        beside.into_iter().filter(|file| file.is_file())
    }

    fn hash_files(&self) -> Result<blake3::Hash> {
        let small = [TOKENIZER, TOKENIZER_CONFIG, CONFIG, SPECIAL_TOKENS, POOLING, SENTENCE_CONFIG, PROMPTS];
        let small = small.map(|name| self.path.join(name)).into_iter().filter(|file| file.is_file());
        let mut of_all = blake3::Hasher::new();
        for file in small.chain([self.model.clone()]).chain(self.external_data()) {
            let mut of_one = blake3::Hasher::new();
            let hashed = File::open(&file).and_then(|open| of_one.update_reader(open).map(|_| ()));
            hashed.map_err(|error| Error::io(&file, error))?;
            of_all.update(file.file_name().unwrap_or_default().as_encoded_bytes());
            of_all.update(of_one.finalize().as_bytes());
        }
        Ok(of_all.finalize())
    }
}

/// A JSON file; null if there is none.
fn json(path: &Path) -> Result<Value> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| Error::new(ErrorKind::Model, "this is not JSON").at(path).because(error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(Error::io(path, error)),
    }
}

fn pooling(config: &Value) -> Result<Pooling> {
    let is_set = |mode: &str| config[mode].as_bool().unwrap_or(false);
    let other = ["max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"];
    if other.iter().any(|mode| is_set(&format!("pooling_mode_{mode}"))) {
        return Err(Error::new(ErrorKind::Model, "the model pools its tokens in a way that is not supported")
            .remedy("mean and first-token (CLS) pooling are"));
    }
    Ok(if is_set("pooling_mode_cls_token") { Pooling::Cls } else { Pooling::Mean })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::Role;

    fn tiny() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tiny-onnx")
    }

    #[test]
    fn a_folder_is_looked_through_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let error = Folder::open(folder.path()).unwrap_err();
        assert!(error.to_string().contains("no model.onnx here") && error.path() == Some(folder.path()), "{error}");
        std::fs::create_dir(at("onnx")).unwrap();
        std::fs::copy(tiny().join("model.onnx"), at("onnx/model.onnx")).unwrap();
        assert!(Folder::open(folder.path()).unwrap_err().to_string().contains("no tokenizer.json"));
        for name in ["tokenizer.json", "tokenizer_config.json", "config.json"] {
            std::fs::copy(tiny().join(name), at(name)).unwrap();
        }
        let open = || Folder::open(folder.path()).unwrap();
        let first = open();
        assert_eq!((first.window, first.prompts.before(Role::Query), first.pooling), (32, "", Pooling::Mean));

        std::fs::write(at("sentence_bert_config.json"), r#"{"max_seq_length": 24}"#).unwrap();
        let prompts = r#"{"prompts": {"query": "ask: ", "document": "text: "}}"#;
        std::fs::write(at("config_sentence_transformers.json"), prompts).unwrap();
        std::fs::create_dir(at("1_Pooling")).unwrap();
        std::fs::write(at("1_Pooling/config.json"), r#"{"pooling_mode_cls_token": true}"#).unwrap();
        let second = open();
        assert_eq!((second.window, second.prompts.before(Role::Query), second.pooling), (24, "ask: ", Pooling::Cls));
        assert_ne!(first.hash, second.hash, "whatever decides over the vectors is in the id");

        std::fs::write(at("onnx/model.onnx_data"), "weights").unwrap();
        assert_ne!(open().hash, second.hash);
        std::fs::write(at("1_Pooling/config.json"), r#"{"pooling_mode_lasttoken": true}"#).unwrap();
        assert!(Folder::open(folder.path()).unwrap_err().to_string().contains("first-token"));
        std::fs::write(at("1_Pooling/config.json"), "{").unwrap();
        assert!(Folder::open(folder.path()).unwrap_err().to_string().contains("not JSON"));
    }
}
