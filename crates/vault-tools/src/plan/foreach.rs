//! The items of a loop: which of them it takes, and the names that its arguments can use for them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Map, Value, json};
use vault_index::VaultPath;

use super::reference::Root;
use super::schema::{Foreach, Version};
use super::scope::Scope;
use crate::error::Error;
use crate::tool::Issue;
use crate::toolbox::text_of;

/// The name under which a loop of version 1.1 provides its own properties.
pub(super) const LOOP: &str = "loop";

/// The minimum number of digits to which the number of an item is padded.
const LEAST_DIGITS: usize = 2;

/// The maximum number of characters of an item in a message.
const SHOWN_CHARACTERS: usize = 80;

/// An item of a list.
pub(super) struct Item {
    /// Its position in the list, from 0.
    pub position: usize,
    pub value: Value,
}

/// An item of a loop that is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LeftOutItem {
    /// Its position in the list, from 1.
    pub item: usize,
    /// The path or text of the item, or otherwise the item in shortened form.
    pub what: String,
    /// The reason.
    pub reason: String,
}

impl LeftOutItem {
    /// Leaves out an item for a reason that can depend on its path or text.
    pub(super) fn new(position: usize, item: &Value, reason: impl FnOnce(&str) -> String) -> Self {
        let text = text_of(item.get("path").or_else(|| item.get("text")).unwrap_or(item));
        let what = text.chars().take(SHOWN_CHARACTERS).collect();
        Self { item: position + 1, what, reason: reason(&text) }
    }

    /// Leaves out an item because its call failed.
    pub(super) fn failed(position: usize, item: &Value, error: &Error) -> Self {
        Self::new(position, item, |text| {
            // A file other than the item, such as the target of a rename. A JSON pointer would not help here.
            let other = error.path().filter(|path| !path.starts_with('/') && *path != text);
            let at = other.map(|path| format!("{path}: ")).unwrap_or_default();
            format!("{at}{}", error.message())
        })
    }
}

/// Chooses the items of a list that a loop takes, and those that it leaves out by `filter` and `unique`.
///
/// # Errors
/// References in `filter` and `unique` without a value.
pub(super) fn choose(
    foreach: &Foreach,
    list: Vec<Value>,
    scope: &mut Scope<'_>,
    version: Version,
) -> Result<(Vec<Item>, Vec<LeftOutItem>), Vec<Issue>> {
    let (mut taken, mut filtered) = (Vec::with_capacity(list.len()), Vec::new());
    // The positions of the items taken so far, by their values of `unique`.
    let mut known: HashMap<String, usize> = HashMap::new();
    for (position, value) in list.into_iter().enumerate() {
        if foreach.filter.is_some() || foreach.unique.is_some() {
            bind_item(scope, foreach, version, value.clone());
        }
        let unmet = foreach.filter.as_ref().map(|filter| filter.unmet(scope, "/foreach/filter")).transpose()?.flatten();
        let reason = match (&foreach.unique, unmet) {
            (Some(unique), None) => {
                let key = scope.resolve_or_null(unique, "/foreach/unique")?.to_string();
                let first = *known.entry(key).or_insert(position);
                (first != position).then(|| format!("{unique} is the same as that of item {}", first + 1))
            }
            (_, unmet) => unmet,
        };
        match reason {
            None => taken.push(Item { position, value }),
            Some(reason) => filtered.push(LeftOutItem::new(position, &value, |_| reason)),
        }
    }
    Ok((taken, filtered))
}

/// Binds the names of a loop for one of its calls: `index` from 0, of `count`.
pub(super) fn bind(
    scope: &mut Scope<'_>,
    foreach: &Foreach,
    version: Version,
    item: Value,
    index: usize,
    count: usize,
) {
    bind_item(scope, foreach, version, item);
    if let Some(name) = &foreach.index_name {
        scope.bind(Root::Name(name.clone()), Cow::Owned(index.into()));
    }
    if version >= Version::V1_1 {
        let (number, digits) = (index + 1, count.to_string().len().max(LEAST_DIGITS));
        let padded = format!("{number:0digits$}");
        let told = json!({ "index": index, "number": number, "padded": padded, "count": count });
        scope.bind(Root::Name(LOOP.into()), Cow::Owned(told));
    }
}

fn bind_item(scope: &mut Scope<'_>, foreach: &Foreach, version: Version, mut item: Value) {
    let root = Root::Name(foreach.item_name.clone());
    let names = item.as_object().filter(|_| version >= Version::V1_1).and_then(names_of);
    let (Some(names), Some(fields)) = (names, item.as_object_mut()) else {
        return scope.bind(root, Cow::Owned(item));
    };
    let has_folder = fields.contains_key("folder");
    for (name, value) in names {
        fields.entry(name).or_insert_with(|| value.into());
    }
    match has_folder {
        true => scope.bind(root, Cow::Owned(item)),
        false => scope.bind_in_folder(root, Cow::Owned(item)),
    }
}

/// Returns additional fields of an item with a path, unless it has fields with these names: the name of its file, this
/// name without the extension, and its folder.
fn names_of(item: &Map<String, Value>) -> Option<[(&'static str, String); 3]> {
    let path = VaultPath::new(item.get("path")?.as_str()?)?;
    let name = path.file_name();
    let basename = if item.get("kind").is_some_and(|kind| kind == "folder") { name } else { path.stem() };
    Some([("name", name.to_owned()), ("basename", basename.to_owned()), ("folder", path.folder().to_owned())])
}

/// Returns the schemas of the names that a loop binds; `list` is the schema of its list.
pub(super) fn schemas(foreach: &Foreach, version: Version, list: &Value) -> BTreeMap<String, Value> {
    let mut item = list.get("items").cloned().unwrap_or_default();
    let is_new = version >= Version::V1_1;
    let fields = item.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(fields) = fields.filter(|fields| is_new && fields.contains_key("path")) {
        for name in ["name", "basename", "folder"] {
            fields.entry(name).or_insert_with(|| json!({ "type": "string" }));
        }
    }
    let whole_number = json!({ "type": "integer" });
    let mut bound = BTreeMap::from([(foreach.item_name.clone(), item)]);
    bound.extend(foreach.index_name.clone().map(|name| (name, whole_number.clone())));
    if is_new {
        let known = json!({
            "index": whole_number, "number": whole_number, "padded": { "type": "string" }, "count": whole_number
        });
        bound.insert(LOOP.into(), json!({ "type": "object", "properties": known }));
    }
    bound
}
