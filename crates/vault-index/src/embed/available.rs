//! What models there are: the list behind `vault-index models`; it loads nothing and asks no server.

use serde::Serialize;

use super::ModelName;

/// One model, or one family of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// What `--model` takes; capitals stand for what you fill in.
    pub name: String,
    /// The length of its vectors, where it is known without asking.
    pub dimensions: Option<usize>,
    /// Where the texts go.
    pub place: ModelPlace,
    /// Whether this program can use it.
    pub state: ModelState,
    /// What else to know, in one line.
    pub note: String,
}

/// Where a model computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelPlace {
    /// On this machine.
    Local,
    /// On a server, unless its address is this machine.
    Remote,
}

/// Whether a model can be used by this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelState {
    /// Nothing but this program is needed.
    BuiltIn,
    /// The code is there; the note says what else is needed (a runtime, a download, a server, a key).
    Supported,
    /// The program was built without this cargo feature.
    NeedsFeature(&'static str),
}

impl ModelName {
    /// All models, the default first. Families that a name must be filled into are one entry.
    pub fn all() -> Vec<ModelInfo> {
        let minilm = if cfg!(feature = "minilm") { ModelState::BuiltIn } else { ModelState::NeedsFeature("minilm") };
        let fastembed = supported(cfg!(feature = "fastembed"), "fastembed");
        let http = supported(cfg!(feature = "http"), "http");
        let model = |name: &str, dimensions, place, state, note: &str| ModelInfo {
            name: name.to_owned(),
            dimensions,
            place,
            state,
            note: note.to_owned(),
        };
        let mut models = vec![model(
            "minilm",
            Some(384),
            ModelPlace::Local,
            minilm,
            "all-MiniLM-L6-v2, the default: English, quick, needs nothing",
        )];
        #[cfg(feature = "fastembed")]
        models.extend(super::fastembed::names().into_iter().map(|(name, dimensions, note)| {
            model(&format!("fastembed:{name}"), Some(dimensions), ModelPlace::Local, fastembed, &note)
        }));
        #[cfg(not(feature = "fastembed"))]
        models.push(model(
            "fastembed:NAME",
            None,
            ModelPlace::Local,
            fastembed,
            "models that are downloaded once, some multilingual; need ONNX Runtime",
        ));
        let own = "an ONNX model of your own: a folder with model.onnx and its tokenizer files; needs ONNX Runtime";
        models.push(model("onnx:DIR", None, ModelPlace::Local, fastembed, own));
        let note = "any server with OpenAI's /v1/embeddings, by --base-url; the key is read from OPENAI_API_KEY";
        models.push(model("openai:NAME", None, ModelPlace::Remote, http, note));
        let note = "an Ollama server: OLLAMA_HOST, --base-url, else this machine";
        models.push(model("ollama:NAME", None, ModelPlace::Remote, http, note));
        models
    }
}

fn supported(built: bool, feature: &'static str) -> ModelState {
    if built { ModelState::Supported } else { ModelState::NeedsFeature(feature) }
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
