//! Creates every document that differs from another one by a single edit, for tests of input from outside.

use serde_json::{Value, json};

/// Every value that one change by hand makes of a document.
pub fn edited(document: &Value) -> Vec<(String, Value)> {
    fn places(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
                fields.iter().for_each(|(name, value)| places(value, format!("{at}/{}", escaped(name)), found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| places(value, format!("{at}/{index}"), found));
            }
            _ => {}
        }
        found.push(at);
    }
    let (mut found, mut all) = (Vec::new(), Vec::new());
    places(document, String::new(), &mut found);
    let odd = [
        json!(null),
        json!(0),
        json!(-1),
        json!(u32::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!(true),
        json!([[]]),
        json!({"": {}}),
    ];
    for place in found {
        for value in &odd {
            let mut changed = document.clone();
            *changed.pointer_mut(&place).unwrap() = value.clone();
            all.push((format!("{place} = {value}"), changed));
        }
        // Twice, or not at all.
        let (parent, last) = place.rsplit_once('/').unwrap_or_default();
        for is_twice in [true, false] {
            let mut changed = document.clone();
            let Some(parent) = changed.pointer_mut(parent).filter(|_| !place.is_empty()) else { continue };
            match parent {
                Value::Array(items) => {
                    let index: usize = last.parse().unwrap();
                    let item = items[index].clone();
                    if is_twice { items.insert(index, item) } else { drop(items.remove(index)) }
                }
                Value::Object(fields) if !is_twice => drop(fields.remove(last)),
                _ => continue,
            }
            all.push((format!("{place} {}", if is_twice { "twice" } else { "gone" }), changed));
        }
    }
    all
}
