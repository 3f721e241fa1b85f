//! Portable JSON schemas: references inlined, without `$schema`, `title` and number formats.
//!
//! Additional requirements of single providers (strictness, subsets) are handled elsewhere.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;

/// Marks a text as a vault path, for validation: `true`, or [`OR_ROOT`]. Schemas for models do not contain it.
pub(crate) const PATH_MARK: &str = "x-vault-path";

/// Marks an object that accepts any fields and values. The fields in its schema are examples for models, and for
/// providers that refuse objects without any. Schemas for models do not contain the mark.
pub(super) const ANY_MARK: &str = "x-any-fields";

/// The mark of a path that can also be the vault's root.
pub(super) const OR_ROOT: &str = "or root";

/// A vault path in arguments, not checked yet.
///
/// A separate type, so that the policy and plans know which arguments are paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathArg(pub String);

impl PathArg {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PathArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for PathArg {
    fn from(text: &str) -> Self {
        Self(text.to_string())
    }
}

impl JsonSchema for PathArg {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PathArg".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-vault-path": true })
    }
}

/// Returns the schema of arguments. Optional fields are those that are not required; no field is nullable, because
/// absent and null are the same there. Objects with known fields accept no others.
pub(crate) fn argument_schema<T: JsonSchema>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12(), |object| {
        drop_null(object);
        tidy(object);
        close(object);
    })
}

/// Returns the schema of an output.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12().for_serialize(), tidy)
}

/// Returns the schema of a note's properties, with any names and values.
pub(crate) fn properties_schema(_: &mut SchemaGenerator) -> Schema {
    let list = |what: &str| json!({ "type": "array", "items": { "type": "string" }, "description": what });
    json_schema!({
        "type": "object",
        "properties": {
            "tags": list("Without #."),
            "aliases": list("Other names."),
            "status": { "type": "string", "description": "Or any other property." },
        },
        "additionalProperties": true,
        "x-any-fields": true,
    })
}

/// Returns a schema without the marks.
pub(crate) fn without_marks(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Ok(schema) = <&mut Schema>::try_from(&mut schema) {
        let unmark = |schema: &mut Schema| [PATH_MARK, ANY_MARK].iter().for_each(|mark| drop(schema.remove(*mark)));
        RecursiveTransform(unmark).transform(schema);
    }
    schema
}

/// Returns the schema of a type, after `change` was applied to each schema in it, outermost first.
fn generated<T: JsonSchema>(settings: SchemaSettings, change: impl Fn(&mut Map<String, Value>)) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let change = |schema: &mut Schema| schema.as_object_mut().into_iter().for_each(&change);
    RecursiveTransform(change).transform(&mut schema);
    schema.to_value()
}

fn tidy(object: &mut Map<String, Value>) {
    object.remove("title");
    let format = object.get("format").and_then(Value::as_str).unwrap_or_default();
    if format.starts_with("int") || format.starts_with("uint") || matches!(format, "float" | "double") {
        object.remove("format");
    }
    fold_constants(object);
    if let Some(description) = object.get_mut("description")
        && let Some(text) = description.as_str()
    {
        *description = Value::String(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

fn close(object: &mut Map<String, Value>) {
    let is_object = object.get("type").is_some_and(|name| name == "object");
    if is_object && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".into(), false.into());
    }
}

fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(all)) = object.get_mut(keyword) else { continue };
        let before = all.len();
        all.retain(|schema| schema.get("type").is_none_or(|name| name != "null"));
        if all.len() == 1 && before > 1 {
            let only = all.remove(0);
            object.remove(keyword);
            if let Value::Object(only) = only {
                // A keyword beside `anyOf` is about this field, so it takes precedence over that of the type.
                for (key, value) in only {
                    object.entry(key).or_insert(value);
                }
            }
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

/// Turns `oneOf` constants, which documented variants generate, into one `enum` with their meanings in its description.
fn fold_constants(object: &mut Map<String, Value>) {
    let Some(Value::Array(all)) = object.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut meanings = Vec::new();
    for schema in all {
        let names = match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(several)) => several.clone(),
            _ => return,
        };
        if let (Some(description), [Value::String(name)]) =
            (schema.get("description").and_then(Value::as_str), &names[..])
        {
            meanings.push(format!("{name}: {}", description.trim_end_matches('.')));
        }
        values.extend(names);
    }
    if !values.iter().all(Value::is_string) {
        return;
    }
    object.remove("oneOf");
    object.insert("type".into(), "string".into());
    object.insert("enum".into(), Value::Array(values));
    if !meanings.is_empty() {
        let meanings = meanings.join("; ");
        let description = match object.get("description").and_then(Value::as_str) {
            Some(before) => format!("{} ({meanings})", before.trim_end_matches('.')),
            None => meanings,
        };
        object.insert("description".into(), description.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// How it goes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Mode {
        /// From the start.
        Overwrite,
        /// At the end.
        AppendTo,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Below {
        title: String,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Args {
        /// Where
        /// it lies.
        path: PathArg,
        limit: Option<u32>,
        #[serde(default)]
        below: Option<Below>,
        mode: Option<Mode>,
        many: Vec<Below>,
    }

    #[test]
    fn arguments_are_portable() {
        let schema = argument_schema::<Args>();
        let below = json!({
            "type": "object", "properties": { "title": { "type": "string" } }, "required": ["title"],
            "additionalProperties": false
        });
        assert_eq!(
            without_marks(&schema),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Where it lies." },
                    "limit": { "type": "integer", "minimum": 0 },
                    "below": below,
                    "mode": {
                        "type": "string", "enum": ["overwrite", "append-to"],
                        "description": "How it goes (overwrite: From the start; append-to: At the end)"
                    },
                    "many": { "type": "array", "items": below }
                },
                "required": ["path", "many"],
                "additionalProperties": false
            })
        );
        assert_eq!(schema["properties"]["path"][PATH_MARK], true);
    }

    #[test]
    fn outputs_keep_their_nulls() {
        let schema = output_schema::<Args>();
        assert_eq!(schema["properties"]["limit"]["type"], json!(["integer", "null"]));
        assert!(!schema.to_string().contains("$ref"));
    }
}
