//! Adds items to a list in the frontmatter, and removes them.

use serde_json::Value;
use vault_index::note::{Property, property_key};

use super::frontmatter::{self, property, to_json};
use crate::error::{Error, ErrorKind, Result};

/// The result of [`edit_list`].
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EditedList {
    /// The whole new text.
    pub text: String,
    /// The items of the resulting list.
    pub items: Vec<Value>,
    /// The items that were added.
    pub added: Vec<Value>,
    /// The items that were removed.
    pub removed: Vec<Value>,
}

/// Removes items from a property that is a list, and adds missing ones at its end. A missing property is created, and a
/// single value becomes the first item; the texts of tags and aliases may contain several, separated by commas.
///
/// # Errors
/// [`ErrorKind::Frontmatter`] as for [`frontmatter::update`], and for a property with keys and values.
pub fn edit_list(text: &str, key: &str, add: &[Value], remove: &[Value]) -> Result<EditedList> {
    let properties = frontmatter::properties(text)?;
    let before = properties.get(key);
    if let Some(Property::Map(_)) = before {
        return Err(Error::new(ErrorKind::Frontmatter, format!("the property {key:?} is not a list: it has keys"))
            .with_remedy("set its keys with update_frontmatter"));
    }
    let items = before.map_or_else(Vec::new, |value| items_of(&property_key(key), value));
    let mut edited = EditedList::default();
    for item in items {
        let list = if contains(remove, &item) { &mut edited.removed } else { &mut edited.items };
        list.push(item);
    }
    for item in add {
        if !contains(&edited.items, item) {
            edited.items.push(item.clone());
            edited.added.push(item.clone());
        }
    }
    if edited.added.is_empty() && edited.removed.is_empty() {
        edited.text = text.to_owned();
        return Ok(edited);
    }
    let updates = [(key.to_owned(), Value::Array(edited.items.clone()))].into_iter().collect();
    edited.text = frontmatter::update(text, &updates)?;
    Ok(edited)
}

/// Returns the items of a property, whose key is given in the form of [`property_key`]. A single value is one item. A
/// tag contains neither commas nor white space, so a text can hold several tags.
pub(super) fn items_of(key: &str, value: &Property) -> Vec<Value> {
    match value {
        Property::Null => Vec::new(),
        Property::List(items) => items.iter().map(to_json).collect(),
        Property::Text(text) if key == "tags" => {
            let between = |c: char| c == ',' || c.is_whitespace();
            text.split(between).filter(|tag| !tag.is_empty()).map(Value::from).collect()
        }
        single => vec![to_json(single)],
    }
}

/// Returns whether an item is among others, by its value or its written form, because `2024` is a number in one note
/// and a text in another.
pub(super) fn contains(items: &[Value], item: &Value) -> bool {
    let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    items.iter().any(|other| property(other) == property(item) || written(other) == written(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_come_and_go_and_the_others_stay_as_they_are_written() {
        for (text, add, remove, expected) in [
            ("---\nl: ['a', b] # c\n---\n", json!(["d", "a"]), json!(["b"]), "---\nl: ['a', d] # c\n---\n"),
            ("---\nl:\n- a # one\n- 2024\n---\n", json!(["x"]), json!(["2024"]), "---\nl:\n- a # one\n- x\n---\n"),
            ("---\nl: one\n---\n", json!(["two"]), json!([]), "---\nl:\n  - one\n  - two\n---\n"),
            ("---\nl:\n---\n", json!([1]), json!([]), "---\nl:\n  - 1\n---\n"),
            ("---\nl: [a]\n---\n", json!([]), json!(["a"]), "---\nl: []\n---\n"),
            ("---\ntags: a, b\n---\n", json!(["c"]), json!(["a"]), "---\ntags:\n  - b\n  - c\n---\n"),
            ("\u{feff}text\r\n", json!(["a"]), json!(["b"]), "\u{feff}---\r\nl:\r\n  - a\r\n---\r\ntext\r\n"),
        ] {
            let list = |value: &Value| value.as_array().unwrap().clone();
            let key = if text.contains("tags") { "tags" } else { "l" };
            let edited = edit_list(text, key, &list(&add), &list(&remove)).unwrap();
            assert_eq!(edited.text, expected);
            let again = edit_list(&edited.text, key, &list(&add), &list(&remove)).unwrap();
            assert_eq!((again.text, again.added.len()), (edited.text, 0));
        }
        let nothing = edit_list("---\nl: [a]\n---\n", "l", &[json!("a")], &[json!("b")]).unwrap();
        assert_eq!((nothing.text.as_str(), nothing.removed.len()), ("---\nl: [a]\n---\n", 0));
        for broken in ["---\nl: {a: 1}\n---\n", "---\nl: [\n---\n"] {
            assert_eq!(edit_list(broken, "l", &[json!("a")], &[]).unwrap_err().kind(), ErrorKind::Frontmatter);
        }
    }
}
