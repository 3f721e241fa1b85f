//! The forms for clients that support them, and the parsing of their values. A value that is missing or of the wrong
//! type changes nothing and shares nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use vault_search::sanitize_line;

use super::wire::{
    ElicitationContentValue, ElicitationSchema, EnumOption, MultiSelectPropertySchema, StringPropertySchema,
};

/// The values of a filled form.
pub(super) type FormValues = BTreeMap<String, ElicitationContentValue>;

/// The names of fields.
const REASON: &str = "reason";
const TICKED: &str = "ticked";

/// The maximum characters of an item's label.
const LONGEST_LABEL: usize = 160;

/// Builds a form that asks what to do instead.
pub(super) fn reason() -> ElicitationSchema {
    ElicitationSchema::new().property(REASON, StringPropertySchema::new().title("Do this instead".to_owned()), true)
}

/// Returns the text that the person wrote, unless it is empty.
pub(super) fn reason_in(filled: &FormValues) -> Option<String> {
    match filled.get(REASON) {
        Some(ElicitationContentValue::String(reason)) if !reason.trim().is_empty() => Some(reason.trim().to_owned()),
        _ => None,
    }
}

/// Builds a form with a field for each argument. Values other than texts are edited as JSON.
pub(super) fn arguments(arguments: &Value) -> ElicitationSchema {
    let fields = arguments.as_object().into_iter().flatten();
    fields.fold(ElicitationSchema::new(), |form, (name, value)| {
        let field = StringPropertySchema::new().title(sanitize_line(name));
        match value {
            Value::String(text) => form.property(name, field.default_value(text.clone()), true),
            other => form.property(name, field.description("JSON".to_owned()).default_value(other.to_string()), true),
        }
    })
}

/// Returns the arguments as the person edited them.
///
/// # Errors
/// A field that is not valid JSON, in words.
pub(super) fn arguments_in(before: &Value, filled: &FormValues) -> Result<Value, String> {
    let mut edited = Map::new();
    for (name, value) in before.as_object().into_iter().flatten() {
        let new = match (value, filled.get(name)) {
            (_, None) => value.clone(),
            (Value::String(_), Some(ElicitationContentValue::String(text))) => json!(text),
            (_, Some(ElicitationContentValue::String(text))) => serde_json::from_str(text)
                .map_err(|error| format!("{} is not valid JSON: {error}", sanitize_line(name)))?,
            (_, Some(other)) => serde_json::to_value(other).unwrap_or_default(),
        };
        edited.insert(name.clone(), new);
    }
    Ok(Value::Object(edited))
}

/// Builds a form with a ticked checkbox for each item.
pub(super) fn ticks(title: &str, items: &[String]) -> ElicitationSchema {
    let option =
        |(at, item): (usize, &String)| EnumOption::new(at.to_string(), vault_search::shortened(item, LONGEST_LABEL));
    let options = items.iter().enumerate().map(option).collect();
    let all = (0..items.len()).map(|at| at.to_string()).collect::<Vec<_>>();
    let field = MultiSelectPropertySchema::titled(options).title(title.to_owned()).default_value(all);
    ElicitationSchema::new().property(TICKED, field, false)
}

/// Returns the indexes of the items that are not ticked.
pub(super) fn unticked(filled: &FormValues, items: usize) -> Vec<usize> {
    let ticked: &[String] = match filled.get(TICKED) {
        Some(ElicitationContentValue::StringArray(ticked)) => ticked,
        _ => &[],
    };
    (0..items).filter(|at| !ticked.contains(&at.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(fields: Value) -> FormValues {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn arguments_come_back_in_their_types() {
        let before = json!({ "path": "a.md", "top": 3, "exact": true, "edits": [{ "old": "x" }], "note": null });
        let form = serde_json::to_value(arguments(&before)).unwrap();
        assert_eq!(form["properties"]["path"]["default"], "a.md");
        assert_eq!(form["properties"]["edits"]["default"], r#"[{"old":"x"}]"#);
        let of = |fields| arguments_in(&before, &filled(fields));
        assert_eq!(of(json!({})).unwrap(), before, "what is missing stays");
        let edited = of(json!({ "path": "7", "top": "4", "exact": false, "edits": "[]", "more": "x" })).unwrap();
        assert_eq!(edited, json!({ "path": "7", "top": 4, "exact": false, "edits": [], "note": null }));
        assert!(of(json!({ "edits": "[" })).unwrap_err().contains("edits is not valid JSON"));
    }

    #[test]
    fn what_is_not_ticked_is_not_shared() {
        let items = ["a", "b\nc", "d"].map(str::to_owned);
        let form = serde_json::to_value(ticks("Share", &items)).unwrap();
        assert_eq!(form["properties"]["ticked"]["default"], json!(["0", "1", "2"]));
        assert_eq!(unticked(&filled(json!({ "ticked": ["0", "2", "9"] })), 3), [1]);
        for nothing in [json!({}), json!({ "ticked": [] }), json!({ "ticked": true }), json!({ "ticked": "0" })] {
            assert_eq!(unticked(&filled(nothing), 3), [0, 1, 2]);
        }
    }

    #[test]
    fn a_reason_is_words() {
        assert_eq!(reason_in(&filled(json!({ "reason": " no " }))).as_deref(), Some("no"));
        for none in [json!({}), json!({ "reason": " " }), json!({ "reason": 1 })] {
            assert_eq!(reason_in(&filled(none)), None);
        }
    }
}
