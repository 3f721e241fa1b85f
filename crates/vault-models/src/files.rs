//! A folder with a user's model, as exported for ONNX Runtime: its files, and reading them.
//!
//! | file | needed | for |
//! | --- | --- | --- |
//! | `model.onnx` or `onnx/model.onnx` (and `model.onnx_data`, `model.onnx.data` beside it) | yes | the model |
//! | `tokenizer.json`, `tokenizer_config.json`, `config.json` | yes | the tokenizer |
//! | `special_tokens_map.json` | no | the tokenizer |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fastembed::TokenizerFiles;
use serde_json::Value;

use super::error::{Error, ModelError, Result};

const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const CONFIG: &str = "config.json";
const SPECIAL_TOKENS: &str = "special_tokens_map.json";

/// A folder whose files were checked; the model itself has not been read into memory.
#[derive(Debug)]
pub(super) struct ModelFiles {
    folder: PathBuf,
    model: PathBuf,
}

impl ModelFiles {
    /// # Errors
    /// When a required file is missing.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let missing = |what: &str| {
            ModelError::new(format!("there is no {what} here")).at(folder).with_remedy(
                "onnx:DIR takes a folder with model.onnx, tokenizer.json, tokenizer_config.json and config.json",
            )
        };
        let model =
            ["model.onnx", "onnx/model.onnx"].map(|name| folder.join(name)).into_iter().find(|file| file.is_file());
        let model = model.ok_or_else(|| missing("model.onnx"))?;
        for name in [TOKENIZER, TOKENIZER_CONFIG, CONFIG] {
            if !folder.join(name).is_file() {
                return Err(missing(name).into());
            }
        }
        Ok(Self { folder: folder.to_path_buf(), model })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file with the model's graph.
    pub(super) fn model(&self) -> &Path {
        &self.model
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn config(&self) -> Result<Value> {
        self.json(CONFIG)
    }

    /// `model_max_length`: the number of tokens that a text, or a pair of texts, may have.
    pub(super) fn tokenizer_window(&self) -> Result<Option<f64>> {
        Ok(self.json(TOKENIZER_CONFIG)?["model_max_length"].as_f64())
    }

    /// Reads a JSON file; null if it does not exist.
    pub(super) fn json(&self, name: &str) -> Result<Value> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)
                .map_err(|error| ModelError::new("this is not JSON").at(path).because(error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Null),
            Err(error) => Err(Error::Io(path, error)),
        }
    }

    pub(super) fn tokenizer(&self) -> Result<TokenizerFiles> {
        let special = self.path(SPECIAL_TOKENS);
        Ok(TokenizerFiles {
            tokenizer_file: read(&self.path(TOKENIZER))?,
            config_file: read(&self.path(CONFIG))?,
            special_tokens_map_file: if special.is_file() { read(&special)? } else { b"{}".to_vec() },
            tokenizer_config_file: read(&self.path(TOKENIZER_CONFIG))?,
        })
    }

    /// Reads the model's graph into memory.
    pub(super) fn read_model(&self) -> Result<Vec<u8>> {
        read(&self.model)
    }

    /// Reads the weights that are stored beside the graph into memory, each with the name of its file.
    pub(super) fn read_weights(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let name = |data: &Path| data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.external_data().map(|data| Ok((name(&data), read(&data)?))).collect()
    }

    /// The hash of the model, the tokenizer and the given files. Takes about 50 ms for 100 MB in the page cache.
    pub(super) fn hash(&self, also: &[&str]) -> Result<blake3::Hash> {
        let small = [TOKENIZER, TOKENIZER_CONFIG, CONFIG, SPECIAL_TOKENS];
        let small = small.iter().chain(also).map(|name| self.path(name)).filter(|file| file.is_file());
        let mut of_all = blake3::Hasher::new();
        for file in small.chain([self.model.clone()]).chain(self.external_data()) {
            let mut of_one = blake3::Hasher::new();
            let hashed = File::open(&file).and_then(|open| of_one.update_reader(open).map(|_| ()));
            hashed.map_err(|error| Error::Io(file.clone(), error))?;
            of_all.update(file.file_name().unwrap_or_default().as_encoded_bytes());
            of_all.update(of_one.finalize().as_bytes());
        }
        Ok(of_all.finalize())
    }

    /// The files with weights beside the model.
    fn external_data(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let beside = ["model.onnx_data", "model.onnx.data"].map(|name| self.model.with_file_name(name));
        beside.into_iter().filter(|file| file.is_file())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Error::Io(path.to_path_buf(), error))
}
