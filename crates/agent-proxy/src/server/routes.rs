//! Routes of the proxy and their handlers.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Request, Response};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::refusal::{Refusal, json_response};
use super::reply::{Api, Job, StoreWriter, now, stem};
use super::{NamedModel, Shared, auth, body, store_routes};
use crate::chat::{ChatEvents, ChatRequest};
use crate::{ApiError, ApiRequest, ResponseEvents};

/// After how long a client may retry if the limit of replies was reached.
const SOON: Duration = Duration::from_secs(1);

type AppState = State<Arc<Shared>>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    let stored = if shared.store.is_some() { store_routes::router() } else { Router::new() };
    let router = stored
        .merge(shared.proxy.more.clone().with_state(()))
        .route("/v1/responses", post(responses))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(model))
        .route("/health", get(health))
        .fallback(async || Refusal::new(404, "not_found", "This path does not exist."))
        .method_not_allowed_fallback(async || {
            Refusal::new(405, "method_not_allowed", "This path does not support this method.")
        });
    router.layer(from_fn_with_state(Arc::clone(&shared), check_request)).with_state(shared)
}

/// Checks every request, for every path.
async fn check_request(State(shared): AppState, request: Request<Body>, next: Next) -> Response<Body> {
    let options = &shared.proxy.options;
    let needs_key = request.uri().path() != "/health";
    let checked = auth::check_origin(&options.hosts, &request)
        .and_then(|()| if needs_key { auth::check_key(options.key.as_deref(), request.headers()) } else { Ok(()) });
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            body::drain(options.max_body, request.into_body().into_data_stream());
            refusal.into_response()
        }
    };
    if let Ok(id) = HeaderValue::try_from(format!("req_{}", stem())) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

async fn responses(State(shared): AppState, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    answer(&shared, request, |body| {
        let (mut request, writer) = match &shared.store {
            None => (ApiRequest::parse(body)?, None),
            Some(store) => {
                let parsed = ApiRequest::parse_stored(body, &mut store.lock().unwrap_or_else(PoisonError::into_inner))?;
                (parsed.0, Some(StoreWriter { store: Arc::clone(store), entry: parsed.1 }))
            }
        };
        request.strict_tools = shared.proxy.options.strict_tools;
        let events = ResponseEvents::new(&request, stem(), now());
        Ok((request, Api::Responses(Box::new(events)), writer))
    })
    .await
}

async fn chat(State(shared): AppState, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    answer(&shared, request, |body| {
        let mut request = ChatRequest::parse(body)?;
        request.api.strict_tools = shared.proxy.options.strict_tools;
        let events = ChatEvents::new(&request, stem(), now());
        Ok((request.api, Api::Chat(Box::new(events)), None))
    })
    .await
}

async fn answer(
    shared: &Arc<Shared>,
    request: Request<Body>,
    read: impl FnOnce(&[u8]) -> Result<(ApiRequest, Api, Option<StoreWriter>), Refusal>,
) -> Result<Response<Body>, Refusal> {
    let options = &shared.proxy.options;
    let bytes = body::read(options, request.into_body()).await?;
    // Not earlier, because clients that send slowly would block others.
    let Ok(permit) = Arc::clone(&shared.replies).try_acquire_owned() else {
        let message = format!("{} replies are in progress, which is the maximum.", options.max_replies);
        return Err(Refusal { retry_after: Some(SOON), ..Refusal::new(503, "overloaded", message) });
    };
    let (asked, api, writer) = read(&bytes)?;
    drop(bytes);
    let model = shared.proxy.find(&asked.model).ok_or_else(|| not_served(&asked.model))?;
    if let Some(hear) = &options.on_warning {
        asked.warnings.iter().for_each(|warning| hear(warning));
    }
    let job = Job {
        model: Arc::clone(model),
        request: asked.request,
        api,
        writer,
        options: Arc::clone(options),
        stop: shared.stop.clone(),
        permit,
    };
    job.answer(asked.delivery).await
}

fn not_served(name: &str) -> Refusal {
    let message = format!("The model '{name}' is not served here.");
    ApiError { status: 404, code: Some("model_not_found".into()), ..ApiError::invalid("model", message) }.into()
}

async fn models(State(shared): AppState) -> Response<Body> {
    let models: Vec<Value> = shared.proxy.models.iter().map(|served| card(&shared, served)).collect();
    json_response(200, &json!({"object": "list", "data": models}))
}

async fn model(State(shared): AppState, Path(name): Path<String>) -> Result<Response<Body>, Refusal> {
    let served = shared.proxy.models.iter().find(|served| served.name == name);
    served.map(|served| json_response(200, &card(&shared, served))).ok_or_else(|| not_served(&name))
}

/// Returns a model's entry in the list. The API has no field for the context length: one name is OpenRouter's and LM
/// Studio's, the other one vLLM's.
fn card(shared: &Shared, served: &NamedModel) -> Value {
    let mut card = json!({"id": served.name, "object": "model", "created": shared.started, "owned_by": "agent-loop"});
    if let Some(tokens) = served.context_length {
        (card["context_length"], card["max_model_len"]) = (json!(tokens), json!(tokens));
    }
    card
}

async fn health(State(shared): AppState) -> Response<Body> {
    let under_way = shared.proxy.options.max_replies - shared.replies.available_permits();
    json_response(200, &json!({"status": "ok", "replies": under_way}))
}
