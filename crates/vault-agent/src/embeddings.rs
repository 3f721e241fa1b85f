//! `POST /v1/embeddings`, compatible with OpenAI's API, over the embedding model of an index.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent_proxy::Refusal;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, header};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use vault_index::{Embedder, Role};
use vault_tools::Result;

/// The maximum bytes of a request.
const MOST_BYTES: usize = 8 << 20;

/// The maximum number of texts in a request, which is OpenAI's limit.
const MOST_TEXTS: usize = 2048;

/// How long a client may take to send a request.
const WITHIN: Duration = Duration::from_secs(60);

/// How many requests are embedded at once; others wait. One request keeps a core busy.
const AT_ONCE: usize = 2;

/// Loads the model of the index.
pub(crate) type ModelLoader = Box<dyn Fn() -> Result<NamedModel> + Send + Sync>;

/// A model and its name.
type NamedModel = (String, Arc<dyn Embedder>);

struct Embeddings {
    load: ModelLoader,
    model: OnceLock<NamedModel>,
    places: Semaphore,
}

/// Returns the route. The model is loaded at the first request.
pub(crate) fn routes(load: ModelLoader) -> Router {
    let embeddings = Embeddings { load, model: OnceLock::new(), places: Semaphore::new(AT_ONCE) };
    Router::new().route("/v1/embeddings", post(embed)).with_state(Arc::new(embeddings))
}

/// A parsed request.
#[derive(Debug)]
struct EmbeddingsRequest {
    model: String,
    texts: Vec<String>,
    is_base64: bool,
    dimensions: Option<u64>,
}

async fn embed(State(state): State<Arc<Embeddings>>, request: Request) -> Result<Response<Body>, Refusal> {
    let too_long = || Refusal::new(413, "request_too_large", format!("The body is longer than {MOST_BYTES} bytes."));
    let bytes = tokio::time::timeout(WITHIN, to_bytes(request.into_body(), MOST_BYTES)).await;
    let bytes = bytes
        .map_err(|_| Refusal::new(408, "request_timeout", "The body did not arrive in time."))?
        .map_err(|_| too_long())?;
    let request = read(&bytes)?;
    let _place = state.places.acquire().await;
    let shared = Arc::clone(&state);
    let answered = tokio::task::spawn_blocking(move || answer(&shared, &request)).await;
    let answer = answered.unwrap_or_else(|_| Err(Refusal::new(500, "server_error", "Internal error.")))?;
    let mut response = Response::new(Body::from(answer.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "invalid_request", message)
}

fn read(bytes: &[u8]) -> Result<EmbeddingsRequest, Refusal> {
    let body: Value =
        serde_json::from_slice(bytes).map_err(|error| invalid(format!("The body is not JSON: {error}.")))?;
    let model = body["model"].as_str().ok_or_else(|| invalid("`model` is missing; it is the name of a model."))?;
    let not_text = || invalid("`input` must be a text or a list of texts; token numbers are not supported.");
    let texts: Vec<String> = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => {
            texts.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(not_text)?
        }
        _ => return Err(not_text()),
    };
    if texts.is_empty() || texts.len() > MOST_TEXTS {
        return Err(invalid(format!("`input` must have from 1 to {MOST_TEXTS} texts.")));
    }
    if let Some(place) = texts.iter().position(String::is_empty) {
        return Err(invalid(format!("`input[{place}]` is empty.")));
    }
    let is_base64 = match &body["encoding_format"] {
        Value::Null => false,
        Value::String(format) if format == "float" => false,
        Value::String(format) if format == "base64" => true,
        _ => return Err(invalid("`encoding_format` must be `float` or `base64`.")),
    };
    let dimensions = match &body["dimensions"] {
        Value::Null => None,
        given => Some(given.as_u64().ok_or_else(|| invalid("`dimensions` must be a whole number."))?),
    };
    Ok(EmbeddingsRequest { model: model.to_owned(), texts, is_base64, dimensions })
}

fn answer(state: &Embeddings, request: &EmbeddingsRequest) -> Result<Value, Refusal> {
    let failed = |error: String| Refusal::new(503, "backend_unavailable", error);
    let (name, model) = match state.model.get() {
        Some(named) => named,
        // If two requests load the model at the same time, both use the same one.
        None => {
            let named = (state.load)().map_err(|error| failed(error.one_line()))?;
            state.model.get_or_init(|| named)
        }
    };
    if *name != request.model && model.id() != request.model {
        let message = format!("The model '{}' is not served here; '{name}' is.", request.model);
        return Err(Refusal::new(404, "model_not_found", message));
    }
    let length = model.dimensions();
    if request.dimensions.is_some_and(|given| given != length as u64) {
        return Err(invalid(format!("`dimensions` can only be {length}: that is the length of this model's vectors.")));
    }
    let counts: Vec<usize> = request.texts.iter().map(|text| model.count(text)).collect();
    if let Some(place) = counts.iter().position(|count| *count > model.max_tokens()) {
        let (has, most) = (counts[place], model.max_tokens());
        let message = format!("`input[{place}]` has {has} tokens, and this model reads {most}; cut it into pieces.");
        return Err(Refusal::new(400, "context_length_exceeded", message));
    }
    let texts: Vec<&str> = request.texts.iter().map(String::as_str).collect();
    let vectors = model.embed(&texts, Role::Passage).map_err(|error| failed(error.one_line()))?;
    let data: Vec<Value> = vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| {
            let embedding = if request.is_base64 { json!(base64_of(vector)) } else { json!(vector) };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens: usize = counts.iter().sum();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": request.model, "usage": usage}))
}

/// Encodes a vector in single precision, little-endian.
fn base64_of(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}
