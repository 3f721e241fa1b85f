//! The available models: the list behind `vault-index models`. It does not load models or contact servers.

use serde::Serialize;
#[cfg(feature = "fastembed")]
use vault_models::EmbeddingModel;

use super::ModelName;
use crate::models::KnownModel;

/// One model, or one family of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelInfo {
    /// The name that `--model` takes; capitals are placeholders.
    pub name: String,
    /// The length of its vectors, where it is known without loading the model.
    pub dimensions: Option<usize>,
    /// Whether notes stay on this machine with any server address.
    pub local: bool,
    /// Whether a model that can be added is installed; null for all others.
    pub installed: Option<bool>,
    /// The feature that this program lacks to use it; null if it can be used.
    pub needs_feature: Option<&'static str>,
    /// Requirements and remarks: a runtime, a download, a server or a key that it needs.
    pub note: String,
}

impl ModelName {
    /// All models, the default first. A family, whose members need a name, is one entry.
    pub fn all() -> Vec<ModelInfo> {
        let lacks = |built: bool, feature: &'static str| (!built).then_some(feature);
        let fastembed = lacks(cfg!(feature = "fastembed"), "fastembed");
        let model = |name: &str, dimensions, needs_feature, note: &str| ModelInfo {
            name: name.to_owned(),
            dimensions,
            local: true,
            installed: None,
            needs_feature,
            note: note.to_owned(),
        };
        let note = "all-MiniLM-L6-v2, the default: English, quick, needs nothing";
        let mut models = vec![model("minilm", Some(384), lacks(cfg!(feature = "minilm"), "minilm"), note)];
        models.extend(KnownModel::all().iter().map(|known| ModelInfo {
            installed: Some(is_installed(known)),
            ..model(known.name, Some(known.dimensions), lacks(cfg!(feature = "minilm"), "minilm"), &known.note())
        }));
        let note = "a model of your own: a folder with config.json, tokenizer.json and model.safetensors";
        models.push(model("dir:DIR", None, lacks(cfg!(feature = "minilm"), "minilm"), note));
        #[cfg(feature = "fastembed")]
        models.extend(EmbeddingModel::all_named().iter().map(|known| {
            let note = format!("{}; downloaded once, needs ONNX Runtime", known.description);
            model(&format!("fastembed:{}", known.name), Some(known.dimensions), fastembed, &note)
        }));
        #[cfg(not(feature = "fastembed"))]
        models.push(model(
            "fastembed:NAME",
            None,
            fastembed,
            "models that are downloaded once, some multilingual; need ONNX Runtime",
        ));
        let note = "an ONNX model of your own: a folder with model.onnx and its tokenizer files; needs ONNX Runtime";
        models.push(model("onnx:DIR", None, fastembed, note));
        let remote =
            |name, note| ModelInfo { local: false, ..model(name, None, lacks(cfg!(feature = "http"), "http"), note) };
        let note = "any server with OpenAI's /v1/embeddings, by --base-url; the key is read from OPENAI_API_KEY";
        models.push(remote("openai:NAME", note));
        models.push(remote("ollama:NAME", "an Ollama server: OLLAMA_HOST, --base-url, else this machine"));
        models
    }
}

/// Whether there is a file of the model; it is not opened.
fn is_installed(known: &KnownModel) -> bool {
    #[cfg(feature = "minilm")]
    return crate::models::model_file(known.name).is_ok_and(|file| file.is_file());
    #[cfg(not(feature = "minilm"))]
    {
        let _ = known;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_listed_is_a_name() {
        let models = ModelName::all();
        assert_eq!(models[0].name, ModelName::default().to_string());
        for model in models {
            assert!(model.name.parse::<ModelName>().is_ok(), "{}", model.name);
            assert!(!model.note.is_empty() && !model.note.contains('\n'));
        }
    }
}
