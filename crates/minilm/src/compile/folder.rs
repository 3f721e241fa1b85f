//! A model's folder, as sentence-transformers and the hub have it: what its files say about the model.
//!
//! | file | needed | for |
//! | --- | --- | --- |
//! | `config.json` | yes | architecture and sizes |
//! | `tokenizer.json` | yes | the tokenizer |
//! | `model.safetensors` | yes | the matrices: F32, F16 or BF16 |
//! | `modules.json` | no | which layers follow the encoder |
//! | `N_Pooling/config.json` | no | mean or first token; without it, mean |
//! | `N_Dense/config.json`, `N_Dense/model.safetensors` | no | a dense layer after pooling |
//! | `sentence_bert_config.json` | no | `max_seq_length` |
//! | `config_sentence_transformers.json` | no | prompts for passages and queries |

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json_file;
use super::tensors::TensorFile;
use super::tokenizer_json::{self, CompiledTokenizer};
use crate::MAX_TOKENS;
use crate::error::ModelError;
use crate::model_file::ModelPrompts;
use crate::weights::{Pooling, Sizes};

const CONFIG: &str = "config.json";

/// Settings of a model that its folder does not give, or that replace the folder's.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// The name of the model, for people and at the beginning of its id.
    pub name: String,
    /// The prompts before texts; `None`: those of the folder.
    pub prompts: Option<ModelPrompts>,
    /// How tokens are pooled; `None`: as the folder says.
    pub pooling: Option<Pooling>,
    /// How many of a vector's components are kept; `None`: all.
    pub dimensions: Option<usize>,
    /// Where the files came from, for the caller; no part of the id.
    pub record: Value,
}

/// A folder of a model that this crate can run.
pub struct ModelFolder {
    pub(super) folder: PathBuf,
    pub(super) sizes: Sizes,
    /// `None`: the folder does not say.
    pub(super) pooling: Option<Pooling>,
    pub(super) prompts: ModelPrompts,
    /// Rows of the position table before the first token's.
    pub(super) first_position: usize,
    /// All rows of the position table, and of the table of token types.
    pub(super) position_rows: usize,
    pub(super) type_rows: usize,
    pub(super) tokenizer: CompiledTokenizer,
    pub(super) tensors: TensorFile,
    pub(super) dense: Option<TensorFile>,
}

impl ModelFolder {
    /// Reads everything but the matrices, whose header is checked.
    ///
    /// # Errors
    /// When a file is missing or damaged, or when this crate does not run such a model.
    pub fn open(folder: &Path) -> Result<ModelFolder, ModelError> {
        let config_file = folder.join(CONFIG);
        let config = json_file::read(&config_file)?;
        let unsupported = |what: String| ModelError::unsupported(&config_file, what);
        let kind = config["model_type"].as_str().unwrap_or("unknown");
        let is_xlm = kind == "xlm-roberta";
        if !is_xlm && kind != "bert" {
            return Err(unsupported(format!("a model of type {kind} is not supported: bert and xlm-roberta are")));
        }
        for (key, value) in [("hidden_act", "gelu"), ("position_embedding_type", "absolute")] {
            if !config[key].is_null() && config[key] != value {
                return Err(unsupported(format!("`{key}` is {} and not {value}, which is not supported", config[key])));
            }
        }
        let number = |key: &str| {
            let number = config[key].as_u64().and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| unsupported(format!("`{key}` is missing")))
        };
        let first_position = if is_xlm { number("pad_token_id")?.saturating_add(1) } else { 0 };
        let position_rows = number("max_position_embeddings")?;
        let mut sizes = Sizes {
            layers: number("num_hidden_layers")?,
            width: number("hidden_size")?,
            heads: number("num_attention_heads")?,
            inner: number("intermediate_size")?,
            words: number("vocab_size")?,
            positions: position_rows.saturating_sub(first_position).min(MAX_TOKENS),
            epsilon: config["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32,
            dense: None,
        };
        let sentence = json_file::read_if_there(&folder.join("sentence_bert_config.json"))?;
        if let Some(most) = sentence["max_seq_length"].as_u64() {
            sizes.positions = sizes.positions.min(usize::try_from(most).unwrap_or(usize::MAX));
        }
        let modules = Modules::read(folder)?;
        sizes.dense = modules.dense.as_ref().map(|(_, columns)| *columns);
        sizes.check().map_err(unsupported)?;
        let tokenizer_file = folder.join("tokenizer.json");
        let tokenizer = tokenizer_json::compile(&tokenizer_file)?;
        let tokens = tokenizer.tokens();
        if tokens > sizes.words {
            let what = format!("it has {tokens} tokens, but the model has {} words", sizes.words);
            return Err(ModelError::damaged(&tokenizer_file, what));
        }
        let dense = modules.dense.map(|(path, _)| TensorFile::open(&path.join("model.safetensors"))).transpose()?;
        Ok(ModelFolder {
            sizes,
            pooling: modules.pooling,
            prompts: prompts(folder)?,
            first_position,
            position_rows,
            type_rows: number("type_vocab_size")?,
            tokenizer,
            tensors: TensorFile::open(&folder.join("model.safetensors"))?,
            dense,
            folder: folder.to_owned(),
        })
    }

    /// The sizes of the model.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The length of its vectors.
    pub fn dimensions(&self) -> usize {
        self.sizes.dense.unwrap_or(self.sizes.width)
    }

    /// How tokens are pooled, if the folder says it.
    pub fn pooling(&self) -> Option<Pooling> {
        self.pooling
    }

    /// The prompts that the folder names; empty if it names none.
    pub fn prompts(&self) -> &ModelPrompts {
        &self.prompts
    }
}

impl std::fmt::Debug for ModelFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelFolder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The layers after the encoder.
struct Modules {
    pooling: Option<Pooling>,
    /// The folder of a dense layer, and its outputs.
    dense: Option<(PathBuf, usize)>,
}

impl Modules {
    fn read(folder: &Path) -> Result<Modules, ModelError> {
        let file = folder.join("modules.json");
        let list = json_file::read_if_there(&file)?;
        let mut modules = Modules { pooling: None, dense: None };
        let Some(list) = list.as_array() else {
            modules.pooling = pooling(&folder.join("1_Pooling").join(CONFIG))?;
            return Ok(modules);
        };
        for module in list {
            let (kind, path) =
                (module["type"].as_str().unwrap_or_default(), module["path"].as_str().unwrap_or_default());
            // A path of the folder's own files, and nothing else.
            if path.contains(['/', '\\']) || path.starts_with('.') {
                return Err(ModelError::damaged(&file, format!("`{path}` is not a folder beside it")));
            }
            let config = folder.join(path).join(CONFIG);
            match kind.rsplit('.').next().unwrap_or_default() {
                "Transformer" | "Normalize" => {}
                "Pooling" => {
                    let missing = || ModelError::damaged(&config, "it does not say how tokens are pooled");
                    modules.pooling = Some(pooling(&config)?.ok_or_else(missing)?);
                }
                "Dense" if modules.dense.is_none() => {
                    let json = json_file::read(&config)?;
                    // Without the field, sentence-transformers uses Tanh.
                    let activation = json["activation_function"].as_str().unwrap_or("Tanh");
                    let columns = json["out_features"].as_u64().and_then(|columns| usize::try_from(columns).ok());
                    match columns {
                        Some(columns) if activation.ends_with("Identity") => {
                            modules.dense = Some((folder.join(path), columns));
                        }
                        _ => {
                            let what = format!("a dense layer with the activation {activation} is not supported");
                            return Err(ModelError::unsupported(&config, what));
                        }
                    }
                }
                _ => return Err(ModelError::unsupported(&file, format!("the module `{kind}` is not supported"))),
            }
        }
        Ok(modules)
    }
}

/// `None` if there is no such file.
fn pooling(config: &Path) -> Result<Option<Pooling>, ModelError> {
    let json = json_file::read_if_there(config)?;
    if json.is_null() {
        return Ok(None);
    }
    if json["include_prompt"] == false {
        return Err(ModelError::unsupported(config, "a pooling without the prompt's tokens is not supported"));
    }
    let is_set = |mode: &str| json[format!("pooling_mode_{mode}")] == true;
    let modes = ["max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"];
    let found = match (is_set("cls_token"), is_set("mean_tokens"), json["pooling_mode"].as_str()) {
        _ if modes.iter().any(|mode| is_set(mode)) => None,
        (true, false, None) | (false, false, Some("cls")) => Some(Pooling::First),
        (false, true, None) | (false, false, Some("mean")) => Some(Pooling::Mean),
        _ => None,
    };
    found.map(Some).ok_or_else(|| {
        ModelError::unsupported(config, "such a pooling is not supported: the mean and the first token are")
    })
}

fn prompts(folder: &Path) -> Result<ModelPrompts, ModelError> {
    let json = json_file::read_if_there(&folder.join("config_sentence_transformers.json"))?;
    let named = |names: &[&str]| names.iter().find_map(|name| json["prompts"][name].as_str());
    let text = |found: Option<&str>| found.unwrap_or_default().to_owned();
    Ok(ModelPrompts { passage: text(named(&["passage", "document"])), query: text(named(&["query"])) })
}
