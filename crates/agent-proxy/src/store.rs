//! Responses and conversations that later requests can refer to: in memory, with limits; the least recently used go
//! first.
//!
//! ```text
//! request ──> resolve: the conversation that it refers to, as items ──> history of the model
//! response, complete ──> keep: input and output ──> a new response, and more items of its conversation
//! ```
//!
//! A response contains all items before it, shared with the responses that it continues, so that deleting one of these
//! does not change it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::ApiError;
use crate::items::input_items;

/// The limits of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreLimits {
    /// The most responses and conversations together. Default: 1,000.
    pub entries: usize,
    /// The most bytes of all of them as JSON. Items that several contain count for each. Default: 64 MiB.
    pub bytes: usize,
}

setters!(StoreLimits { entries: usize, bytes: usize });

impl Default for StoreLimits {
    fn default() -> Self {
        Self { entries: 1000, bytes: 64 << 20 }
    }
}

/// The objects that later requests can refer to, by `previous_response_id`, `conversation`, and `item_reference`.
///
/// A client with access to the proxy can also read and delete stored objects if it knows their ids.
#[derive(Debug)]
pub struct Store {
    limits: StoreLimits,
    entries: HashMap<String, Entry>,
    /// The ids of entries, ordered by their last use.
    by_use: BTreeMap<u64, String>,
    /// The entry that contains an item, by the item's id.
    holders: HashMap<String, String>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    used: u64,
    bytes: usize,
    /// All items, oldest first.
    items: Vec<Item>,
    /// How many of the items are shared with other entries.
    shared: usize,
    content: EntryContent,
}

#[derive(Debug)]
enum EntryContent {
    Response(Value),
    Conversation { created_at: u64, metadata: Value },
}

/// An item, and its size as JSON.
#[derive(Debug, Clone)]
struct Item(Arc<Value>, usize);

/// The part of a request that is stored once its response is complete.
#[derive(Debug, Clone)]
pub struct PendingEntry {
    before: Vec<Item>,
    input: Vec<Value>,
    conversation: Option<String>,
    /// Whether the response can be referred to by its id.
    is_stored: bool,
}

/// A request's input and the conversation that it refers to.
#[derive(Debug, Default)]
pub(crate) struct ResolvedInput {
    items: Vec<Item>,
    /// The input with each reference replaced by its item.
    pub(crate) input: Value,
    /// Fields that the response repeats.
    pub(crate) echo: Map<String, Value>,
    conversation: Option<String>,
}

impl Item {
    fn new(value: Value) -> Self {
        let bytes = value.to_string().len();
        Self(Arc::new(value), bytes)
    }

    fn id(&self) -> Option<&str> {
        self.0["id"].as_str()
    }
}

impl ResolvedInput {
    /// Returns the items before the input.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Value> {
        self.items.iter().map(|item| &*item.0)
    }

    /// Returns the entry to be stored. `is_stored` is whether the client wants the response itself to be stored.
    pub(crate) fn into_entry(self, is_stored: bool) -> PendingEntry {
        let input = input_items(&self.input, new_id);
        PendingEntry { before: self.items, input, conversation: self.conversation, is_stored }
    }
}

/// Returns an id that no other item of this process has.
fn new_id(kind: &str) -> String {
    format!("{kind}_{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

fn not_found(param: &str, code: &str, what: &str, id: &str) -> ApiError {
    let message = format!("{what} with id '{id}' not found: it was not stored here, or is no longer.");
    ApiError::not_found(param, code, message)
}

impl Store {
    /// Creates an empty store.
    pub fn new(limits: StoreLimits) -> Self {
        let (entries, by_use, holders) = (HashMap::new(), BTreeMap::new(), HashMap::new());
        Self { limits, entries, by_use, holders, bytes: 0, uses: 0 }
    }

    /// Stores a response that is complete or was truncated by a limit. A failed one is not stored, because it cannot be
    /// continued.
    pub fn keep(&mut self, entry: PendingEntry, response: &Value) {
        if !matches!(response["status"].as_str(), Some("completed" | "incomplete")) {
            return;
        }
        let output = response["output"].as_array().into_iter().flatten().cloned();
        let new: Vec<Item> = entry.input.into_iter().chain(output).map(Item::new).collect();
        if let Some(id) = response["id"].as_str().filter(|_| entry.is_stored) {
            let shared = entry.before.len();
            let items = [entry.before, new.clone()].concat();
            self.insert(
                id.to_string(),
                Entry { used: 0, bytes: 0, items, shared, content: EntryContent::Response(response.clone()) },
            );
        }
        // Stored after the response, so that the conversation owns the items, because it is used for longer.
        if let Some(id) = entry.conversation
            && let Some(conversation) = self.remove(&id)
        {
            self.insert(id, Entry { items: [conversation.items, new].concat(), ..conversation });
        }
    }

    /// Resolves the references of a request.
    ///
    /// # Errors
    /// The field whose reference is not in the store.
    pub(crate) fn resolve(&mut self, body: &Value) -> Result<ResolvedInput, ApiError> {
        let mut resolved = ResolvedInput { input: body["input"].clone(), ..ResolvedInput::default() };
        let conversation = match &body["conversation"] {
            Value::Object(conversation) => conversation.get("id").unwrap_or(&Value::Null),
            conversation => conversation,
        };
        let id = |value: &Value, param: &str| match value {
            Value::Null => Ok(None),
            Value::String(id) => Ok(Some(id.clone())),
            _ => Err(ApiError::invalid(param, "This must be an id.")),
        };
        let previous = id(&body["previous_response_id"], "previous_response_id")?;
        let conversation = id(conversation, "conversation")?;
        if previous.is_some() && conversation.is_some() {
            let message = "This cannot be combined with previous_response_id: both define the earlier conversation.";
            return Err(ApiError::invalid("conversation", message));
        }
        if let Some(id) = previous {
            let gone = || not_found("previous_response_id", "previous_response_not_found", "Previous response", &id);
            resolved.items = self.response_entry(&id).ok_or_else(gone)?.items.clone();
            resolved.echo.insert("previous_response_id".into(), json!(id));
        }
        if let Some(id) = conversation {
            let gone = || not_found("conversation", "conversation_not_found", "Conversation", &id);
            resolved.items = self.conversation_entry(&id).ok_or_else(gone)?.items.clone();
            resolved.echo.insert("conversation".into(), json!({"id": id}));
            resolved.conversation = Some(id);
        }
        for (index, item) in resolved.input.as_array_mut().into_iter().flatten().enumerate() {
            if item["type"] == "item_reference" || (item["type"].is_null() && is_only_an_id(item)) {
                let param = format!("input[{index}].id");
                let id = item["id"].as_str().ok_or_else(|| ApiError::invalid(&param, "A string is required."))?;
                *item = self.item(id).ok_or_else(|| not_found(&param, "item_not_found", "Item", id))?;
            }
        }
        Ok(resolved)
    }

    /// Returns a response by its id, as its client got it.
    pub fn response(&mut self, id: &str) -> Option<&Value> {
        match &self.response_entry(id)?.content {
            EntryContent::Response(response) => Some(response),
            EntryContent::Conversation { .. } => None,
        }
    }

    /// Returns a conversation by its id, without its items.
    pub fn conversation(&mut self, id: &str) -> Option<Value> {
        match &self.conversation_entry(id)?.content {
            EntryContent::Conversation { created_at, metadata } => {
                Some(json!({"id": id, "object": "conversation", "created_at": created_at, "metadata": metadata}))
            }
            EntryContent::Response(_) => None,
        }
    }

    /// Returns the items of a conversation, oldest first.
    pub fn conversation_items(&mut self, id: &str) -> Option<Vec<Arc<Value>>> {
        Some(self.conversation_entry(id)?.items.iter().map(|item| Arc::clone(&item.0)).collect())
    }

    /// Creates a conversation with these items, which may have any form that a request's input may have; `now` is in
    /// seconds since 1970. Returns its id.
    pub fn begin_conversation(&mut self, items: &Value, metadata: Value, now: u64) -> String {
        let id = new_id("conv");
        let items = input_items(items, new_id).into_iter().map(Item::new).collect();
        let content = EntryContent::Conversation { created_at: now, metadata };
        self.insert(id.clone(), Entry { used: 0, bytes: 0, items, shared: 0, content });
        id
    }

    /// Adds items to a conversation, and returns them as they are stored; `None` if the conversation does not exist.
    pub fn add_items(&mut self, id: &str, items: &Value) -> Option<Vec<Arc<Value>>> {
        self.conversation_entry(id)?;
        let mut conversation = self.remove(id)?;
        let new: Vec<Item> = input_items(items, new_id).into_iter().map(Item::new).collect();
        let added = new.iter().map(|item| Arc::clone(&item.0)).collect();
        conversation.items.extend(new);
        self.insert(id.to_string(), conversation);
        Some(added)
    }

    /// Removes an item from a conversation; `None` if the item does not exist.
    pub fn remove_item(&mut self, id: &str, item: &str) -> Option<()> {
        let at = self.conversation_entry(id)?.items.iter().position(|kept| kept.id() == Some(item))?;
        let mut conversation = self.remove(id)?;
        conversation.items.remove(at);
        self.insert(id.to_string(), conversation);
        Some(())
    }

    /// Deletes a response; `None` if it does not exist.
    pub fn remove_response(&mut self, id: &str) -> Option<()> {
        self.response_entry(id)?;
        self.remove(id).map(drop)
    }

    /// Deletes a conversation; `None` if it does not exist.
    pub fn remove_conversation(&mut self, id: &str) -> Option<()> {
        self.conversation_entry(id)?;
        self.remove(id).map(drop)
    }

    /// Returns an item by its id, which counts as a use of the entry that contains it.
    fn item(&mut self, id: &str) -> Option<Value> {
        let holder = self.holders.get(id)?.clone();
        let entry = self.used(&holder)?;
        let item = entry.items.iter().rev().find(|item| item.id() == Some(id))?;
        Some((*item.0).clone())
    }

    fn response_entry(&mut self, id: &str) -> Option<&Entry> {
        self.used(id).filter(|entry| matches!(entry.content, EntryContent::Response(_)))
    }

    fn conversation_entry(&mut self, id: &str) -> Option<&Entry> {
        self.used(id).filter(|entry| matches!(entry.content, EntryContent::Conversation { .. }))
    }

    /// Returns an entry, which becomes the most recently used one.
    fn used(&mut self, id: &str) -> Option<&Entry> {
        let entry = self.entries.get_mut(id)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(entry.used, id.to_string());
        Some(entry)
    }

    /// Inserts an entry, and removes the least recently used ones beyond the limits. An entry that exceeds the limit
    /// alone is not stored.
    fn insert(&mut self, id: String, mut entry: Entry) {
        self.remove(&id);
        let own = match &entry.content {
            EntryContent::Response(response) => response.to_string().len(),
            EntryContent::Conversation { metadata, .. } => metadata.to_string().len(),
        };
        entry.bytes = own + entry.items.iter().map(|item| item.1).sum::<usize>();
        if entry.bytes > self.limits.bytes {
            return;
        }
        self.uses += 1;
        entry.used = self.uses;
        let held = entry.items.iter().skip(entry.shared).filter_map(Item::id);
        self.holders.extend(held.map(|item| (item.to_string(), id.clone())));
        self.by_use.insert(entry.used, id.clone());
        self.bytes += entry.bytes;
        self.entries.insert(id, entry);
        while self.entries.len() > self.limits.entries || self.bytes > self.limits.bytes {
            let Some(oldest) = self.by_use.values().next().cloned() else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, id: &str) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.by_use.remove(&entry.used);
        self.bytes -= entry.bytes;
        for item in entry.items.iter().skip(entry.shared).filter_map(Item::id) {
            if self.holders.get(item).is_some_and(|holder| holder == id) {
                self.holders.remove(item);
            }
        }
        Some(entry)
    }
}

/// Returns whether an item is a reference, which in this API may omit its type.
fn is_only_an_id(item: &Value) -> bool {
    item.as_object()
        .is_some_and(|fields| fields.contains_key("id") && fields.keys().all(|key| key == "id" || key == "type"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response(id: &str, output: &str) -> Value {
        let message = json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "content": output});
        json!({"id": id, "status": "completed", "output": [message]})
    }

    /// Sends a request and stores its response; returns the earlier texts.
    fn turn(store: &mut Store, id: &str, previous: Option<&str>) -> Result<usize, ApiError> {
        let resolved = store.resolve(&json!({"input": "question", "previous_response_id": previous}))?;
        let count = resolved.items().count();
        store.keep(resolved.into_entry(true), &response(id, "answer"));
        Ok(count)
    }

    #[test]
    fn a_chain_grows_and_can_fork() {
        let mut store = Store::new(StoreLimits::default());
        assert_eq!(turn(&mut store, "a", None), Ok(0));
        assert_eq!(turn(&mut store, "b", Some("a")), Ok(2));
        assert_eq!(turn(&mut store, "c", Some("b")), Ok(4));
        assert_eq!(turn(&mut store, "d", Some("a")), Ok(2));
        // Deleting a response does not affect the entries that share its items.
        store.remove_response("b").unwrap();
        assert_eq!(turn(&mut store, "e", Some("c")), Ok(6));
        assert_eq!(turn(&mut store, "f", Some("b")).unwrap_err().param.as_deref(), Some("previous_response_id"));
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let mut store = Store::new(StoreLimits::default().entries(2));
        turn(&mut store, "a", None).unwrap();
        turn(&mut store, "b", None).unwrap();
        assert!(store.response("a").is_some());
        turn(&mut store, "c", None).unwrap();
        assert!(store.response("b").is_none() && store.response("a").is_some());
        assert!(store.item("msg_b").is_none() && store.item("msg_c").is_some());
        // A use of an item is a use of the entry that contains it, so the newer of the two is removed.
        assert!(store.item("msg_a").is_some());
        turn(&mut store, "d", None).unwrap();
        assert!(store.response("c").is_none() && store.response("a").is_some());
    }

    #[test]
    fn what_failed_or_is_too_large_is_not_kept() {
        let mut store = Store::new(StoreLimits::default().bytes(2000));
        turn(&mut store, "a", None).unwrap();
        let mut failed = response("b", "x");
        failed["status"] = json!("failed");
        let resolved = store.resolve(&json!({"input": "x"})).unwrap();
        store.keep(resolved.into_entry(true), &failed);
        let resolved = store.resolve(&json!({"input": "x".repeat(2000)})).unwrap();
        store.keep(resolved.into_entry(true), &response("c", "x"));
        let resolved = store.resolve(&json!({"input": "x"})).unwrap();
        store.keep(resolved.into_entry(false), &response("d", "x"));
        assert!(store.response("a").is_some(), "what does not fit does not push out what does");
        assert!(["b", "c", "d"].iter().all(|id| store.response(id).is_none()));
    }

    proptest! {
        /// After any sequence of steps, the limits hold, and the tables are consistent.
        #[test]
        fn limits_hold(steps in prop::collection::vec((0..5u8, 0..8usize, 0..300usize), 1..60)) {
            let mut store = Store::new(StoreLimits::default().entries(4).bytes(3000));
            let mut conversations: Vec<String> = Vec::new();
            for (number, (kind, which, size)) in steps.into_iter().enumerate() {
                let text = "x".repeat(size);
                match kind {
                    0 => conversations.push(store.begin_conversation(&json!(text), json!({}), 7)),
                    1 => drop(conversations.get(which).and_then(|id| store.add_items(id, &json!(text)))),
                    2 => drop(store.remove_response(&format!("r{which}"))),
                    _ => {
                        let referred = match kind {
                            3 => json!({"input": text, "previous_response_id": format!("r{which}")}),
                            _ => json!({"input": text, "conversation": conversations.get(which)}),
                        };
                        let resolved = store.resolve(&referred).or_else(|_| store.resolve(&json!({"input": text})));
                        store.keep(resolved.unwrap().into_entry(true), &response(&format!("r{}", number % 8), &text));
                    }
                }
                prop_assert!(store.entries.len() <= 4 && store.bytes <= 3000);
                prop_assert_eq!(store.bytes, store.entries.values().map(|entry| entry.bytes).sum::<usize>());
                prop_assert_eq!(store.by_use.len(), store.entries.len());
                prop_assert!(store.by_use.iter().all(|(used, id)| store.entries[id].used == *used));
                prop_assert!(store.holders.values().all(|holder| store.entries.contains_key(holder)));
            }
        }
    }
}
