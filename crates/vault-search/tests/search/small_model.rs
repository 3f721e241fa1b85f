//! The files of a small model with the name of one in the table, for a hub on this machine.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::hub::WEIGHTS;

/// A model of the table that needs no prompts and no layers after the encoder.
pub const NAME: &str = "gte-small";
pub const REPOSITORY: &str = "thenlper/gte-small";

/// A model of the width that `NAME` has, of one small layer, with weights that mean nothing.
pub fn files() -> &'static BTreeMap<String, Vec<u8>> {
    static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
        let tokenizer = concat!(env!("CARGO_MANIFEST_DIR"), "/../minilm/testdata/tiny/bert-mean/tokenizer.json");
        let tokenizer = std::fs::read(tokenizer).unwrap();
        let json: Value = serde_json::from_slice(&tokenizer).unwrap();
        let words = json["model"]["vocab"].as_object().unwrap().len();
        let config = json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": 384, "intermediate_size": 384,
            "layer_norm_eps": 1e-12, "max_position_embeddings": 64, "num_attention_heads": 12, "num_hidden_layers": 1,
            "type_vocab_size": 2, "vocab_size": words,
        });
        BTreeMap::from([
            ("config.json".to_owned(), config.to_string().into_bytes()),
            ("tokenizer.json".to_owned(), tokenizer),
            (WEIGHTS.to_owned(), safetensors(words)),
            ("README.md".to_owned(), b"not asked for".to_vec()),
        ])
    });
    &FILES
}

fn safetensors(words: usize) -> Vec<u8> {
    const WIDTH: usize = 384;
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![words, WIDTH]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![64, WIDTH]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, WIDTH]),
    ];
    let at = "encoder.layer.0";
    for norm in ["embeddings.LayerNorm", &format!("{at}.attention.output.LayerNorm"), &format!("{at}.output.LayerNorm")]
    {
        tensors.extend(["weight", "bias"].map(|part| (format!("{norm}.{part}"), vec![WIDTH])));
    }
    for dense in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
        .into_iter()
        .chain(["intermediate.dense", "output.dense"])
    {
        tensors.push((format!("{at}.{dense}.weight"), vec![WIDTH, WIDTH]));
        tensors.push((format!("{at}.{dense}.bias"), vec![WIDTH]));
    }
    let (mut header, mut data, mut state) = (serde_json::Map::new(), Vec::new(), 1u32);
    for (name, shape) in tensors {
        let start = data.len();
        for _ in 0..shape.iter().product() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = state as f32 / u32::MAX as f32 - 0.5;
            data.extend(((number / 8.0).to_bits() >> 16).to_le_bytes()[..2].to_vec());
        }
        header.insert(name, json!({"dtype": "BF16", "shape": shape, "data_offsets": [start, data.len()]}));
    }
    let mut json = Value::Object(header).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json, &data].concat()
}
