//! Requests and responses: the JSON of OpenAI's `/v1/embeddings` and of Ollama's `/api/embed`.

use serde::Deserialize;
use serde_json::{Value, json};

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    OpenAi,
    Ollama,
}

/// The length of the vectors of OpenAI's own models; it is fixed, because we do not request another.
pub(super) fn openai_dimensions(model: &str) -> Option<usize> {
    match model {
        "text-embedding-3-small" | "text-embedding-ada-002" => Some(1536),
        "text-embedding-3-large" => Some(3072),
        _ => None,
    }
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

impl Wire {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Ollama => "ollama",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/v1/embeddings",
            Self::Ollama => "/api/embed",
        }
    }

    pub(super) fn request(self, model: &str, texts: &[String]) -> Vec<u8> {
        let request = match self {
            Self::OpenAi => json!({ "model": model, "input": texts }),
            Self::Ollama => json!({ "model": model, "input": texts, "truncate": true }),
        };
        request.to_string().into_bytes()
    }

    /// The vectors of a response in the order of the `count` texts of the request.
    pub(super) fn vectors(self, answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
        let unreadable = |error: serde_json::Error| format!("it cannot be read ({error})");
        let vectors = match self {
            Self::OpenAi => {
                let mut data = serde_json::from_slice::<OpenAiAnswer>(answer).map_err(unreadable)?.data;
                // Some servers leave the index out; then the order is that of the request.
                if data.iter().any(|vector| vector.index.is_some()) {
                    data.sort_by_key(|vector| vector.index);
                    let in_order = data.iter().enumerate().all(|(i, vector)| vector.index == Some(i));
                    if !in_order && data.len() == count {
                        return Err("its vectors have wrong indices".into());
                    }
                }
                data.into_iter().map(|vector| vector.embedding).collect()
            }
            Self::Ollama => serde_json::from_slice::<OllamaAnswer>(answer).map_err(unreadable)?.embeddings,
        };
        if vectors.len() != count {
            return Err(format!("{} vectors for {count} texts", vectors.len()));
        }
        if vectors.iter().any(Vec::is_empty) {
            return Err("an empty vector".into());
        }
        Ok(vectors)
    }

    /// Whether the server forwards texts for this model to another one, as Ollama does for its cloud models.
    pub(super) fn passes_on(self, model: &str) -> bool {
        self == Self::Ollama && (model.ends_with("-cloud") || model.ends_with(":cloud"))
    }

    pub(super) fn key_remedy(self) -> &'static str {
        match self {
            Self::OpenAi => "check OPENAI_API_KEY",
            Self::Ollama => "the server must allow requests without a key",
        }
    }

    pub(super) fn model_remedy(self, model: &str) -> String {
        match self {
            Self::OpenAi => "check the model's name and the address; the path must lead to /v1/embeddings".into(),
            Self::Ollama => format!("run `ollama pull {model}`"),
        }
    }
}

/// The message of an error response, or the start of its text.
pub(super) fn error_message(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let error = json.as_ref().map(|json| &json["error"]);
    let message = error.and_then(|error| error.as_str().or_else(|| error["message"].as_str()));
    let text = message.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.is_empty() => "no reason given".into(),
        None => text,
    }
}

/// Whether an error means that the account's quota is used up, so that retries are useless.
pub(super) fn is_out_of_quota(body: &[u8]) -> bool {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    json.is_some_and(|json| {
        json["error"]["code"] == "insufficient_quota" || json["error"]["type"] == "insufficient_quota"
    })
}
