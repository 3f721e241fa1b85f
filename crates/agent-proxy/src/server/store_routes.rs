//! Routes of stored objects: `/v1/responses/ID` and `/v1/conversations`. They exist only if the proxy has a store.

use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, Response, Uri};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::refusal::{Refusal, json_response};
use super::reply::now;
use super::{Shared, body};
use crate::fields::{optional, read_json};
use crate::request::check_items;
use crate::{ApiError, Store};

/// The items on a page by default.
const PAGE: usize = 20;
/// The most items on a page.
const LARGEST_PAGE: usize = 100;

type AppState = State<Arc<Shared>>;
type RouteResult = Result<Response<Body>, Refusal>;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/responses/{id}", get(response).delete(delete_response))
        .route("/v1/conversations", post(begin))
        .route("/v1/conversations/{id}", get(conversation).delete(delete_conversation))
        .route("/v1/conversations/{id}/items", get(list_items).post(add_items))
        .route("/v1/conversations/{id}/items/{item}", get(item).delete(delete_item))
}

impl Shared {
    /// Runs a function with the store. It succeeds on these routes, which exist only if there is a store.
    fn with_store<T>(&self, act: impl FnOnce(&mut Store) -> T) -> Result<T, Refusal> {
        let store = self.store.as_ref().ok_or_else(|| Refusal::new(404, "not_found", "Nothing is stored here."))?;
        Ok(act(&mut store.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn gone(param: &str, what: &str, id: &str) -> Refusal {
    let message = format!("{what} with id '{id}' not found: it was not stored here, or is no longer stored.");
    ApiError { status: 404, code: Some("not_found".into()), ..ApiError::invalid(param, message) }.into()
}

fn no_conversation(id: &str) -> Refusal {
    gone("conversation_id", "Conversation", id)
}

async fn response(State(shared): AppState, Path(id): Path<String>, uri: Uri) -> RouteResult {
    if parameter(&uri, "stream") == Some("true") {
        return Err(ApiError::invalid("stream", "A stored response cannot be streamed.").into());
    }
    let response = shared.with_store(|store| store.response(&id).cloned())?;
    response.map(|response| json_response(200, &response)).ok_or_else(|| gone("response_id", "Response", &id))
}

async fn delete_response(State(shared): AppState, Path(id): Path<String>) -> RouteResult {
    shared.with_store(|store| store.remove_response(&id))?.ok_or_else(|| gone("response_id", "Response", &id))?;
    Ok(json_response(200, &json!({"id": id, "object": "response", "deleted": true})))
}

async fn begin(State(shared): AppState, request: Request<Body>) -> RouteResult {
    let asked = read_json(&body::read(&shared.proxy.options, request.into_body()).await?)?;
    let metadata = optional(&asked["metadata"], "metadata", "an object", Value::as_object)?;
    let metadata = metadata.map_or_else(|| json!({}), |metadata| json!(metadata));
    let items = &asked["items"];
    if !items.is_null() {
        check_items(items)?;
    }
    let conversation = shared.with_store(|store| {
        let id = store.begin_conversation(items, metadata, now());
        store.conversation(&id)
    })?;
    let too_large = || ApiError { status: 413, ..ApiError::invalid("items", "This exceeds the limits of the store.") };
    Ok(json_response(200, &conversation.ok_or_else(too_large)?))
}

async fn conversation(State(shared): AppState, Path(id): Path<String>) -> RouteResult {
    let conversation = shared.with_store(|store| store.conversation(&id))?;
    conversation.map(|conversation| json_response(200, &conversation)).ok_or_else(|| no_conversation(&id))
}

async fn delete_conversation(State(shared): AppState, Path(id): Path<String>) -> RouteResult {
    shared.with_store(|store| store.remove_conversation(&id))?.ok_or_else(|| no_conversation(&id))?;
    Ok(json_response(200, &json!({"id": id, "object": "conversation.deleted", "deleted": true})))
}

async fn list_items(State(shared): AppState, Path(id): Path<String>, uri: Uri) -> RouteResult {
    let wrong = |param: &str, what: &str| ApiError::invalid(param, format!("This must be {what}."));
    let limit = match parameter(&uri, "limit").map(str::parse) {
        None => PAGE,
        Some(Ok(limit @ 1..=LARGEST_PAGE)) => limit,
        Some(_) => return Err(wrong("limit", &format!("a number from 1 to {LARGEST_PAGE}")).into()),
    };
    let items = shared.with_store(|store| store.conversation_items(&id))?.ok_or_else(|| no_conversation(&id))?;
    let mut items: Vec<&Value> = items.iter().map(|item| &**item).collect();
    match parameter(&uri, "order") {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(wrong("order", "asc or desc").into()),
    }
    if let Some(after) = parameter(&uri, "after") {
        let at = items.iter().position(|item| item["id"] == after).ok_or_else(|| gone("after", "Item", after))?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(json_response(200, &list(&items, has_more)))
}

async fn add_items(State(shared): AppState, Path(id): Path<String>, request: Request<Body>) -> RouteResult {
    let asked = read_json(&body::read(&shared.proxy.options, request.into_body()).await?)?;
    check_items(&asked["items"])?;
    let added =
        shared.with_store(|store| store.add_items(&id, &asked["items"]))?.ok_or_else(|| no_conversation(&id))?;
    let added: Vec<&Value> = added.iter().map(|item| &**item).collect();
    Ok(json_response(200, &list(&added, false)))
}

async fn item(State(shared): AppState, Path((id, wanted)): Path<(String, String)>) -> RouteResult {
    let items = shared.with_store(|store| store.conversation_items(&id))?.ok_or_else(|| no_conversation(&id))?;
    let item = items.iter().find(|item| item["id"] == wanted.as_str());
    item.map(|item| json_response(200, item)).ok_or_else(|| gone("item_id", "Item", &wanted))
}

async fn delete_item(State(shared): AppState, Path((id, wanted)): Path<(String, String)>) -> RouteResult {
    shared.with_store(|store| store.remove_item(&id, &wanted))?.ok_or_else(|| gone("item_id", "Item", &wanted))?;
    conversation(State(shared), Path(id)).await
}

fn list(items: &[&Value], has_more: bool) -> Value {
    let id = |item: Option<&&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    json!({
        "object": "list", "data": items, "first_id": id(items.first()), "last_id": id(items.last()), "has_more": has_more,
    })
}

/// Returns a parameter of the query. The known parameters are words and numbers, which need no escapes.
fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
}
