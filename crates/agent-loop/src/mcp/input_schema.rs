//! Converts the input schema of a server's tool to one that all providers accept, with definitions inlined.

use rmcp::model::JsonObject;
use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use crate::tool::{SchemaCheck, strip_schema};

/// The most sub-schemas after inlining, because a few lines can expand to millions.
const MOST: usize = 5_000;
/// The deepest nesting.
const DEEPEST: usize = 64;
/// Keywords that may appear beside a reference without changing which values it allows.
const ANNOTATIONS: [&str; 7] = ["description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// Returns the schema with its definitions inlined. A recursive schema keeps its definitions.
///
/// # Errors
/// The reason why the tool cannot be offered.
pub(super) fn portable(given: &JsonObject) -> Result<Value, String> {
    let root = Value::Object(given.clone());
    let without = |keywords: &[&str]| -> Schema {
        let kept = given.iter().filter(|(keyword, _)| !keywords.contains(&keyword.as_str()));
        kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect::<Map<String, Value>>().into()
    };
    let mut schema = without(&["$schema", "$id", "$comment", "$defs", "definitions"]);
    let mut inline = RefInliner { root: &root, open: Vec::new(), depth: 0, count: 0, end: None };
    inline.transform(&mut schema);
    match inline.end {
        Some(InlineError::TooLarge) => return Err("its schema is too large".into()),
        Some(InlineError::Unresolved) => schema = without(&["$schema", "$comment"]),
        None => {}
    }
    strip_schema(&mut schema);
    let fields = schema.ensure_object();
    match fields.entry("type").or_insert(json!("object")) {
        kind if kind == "object" => {}
        kind => return Err(format!("its schema is of the type {kind}, not of an object")),
    }
    // Some providers reject an object without properties.
    fields.entry("properties").or_insert(json!({}));
    let schema = schema.to_value();
    SchemaCheck::new(&schema).map_err(|what| format!("its schema cannot be used: {what}"))?;
    Ok(schema)
}

/// Replaces references by their targets.
struct RefInliner<'a> {
    root: &'a Value,
    /// The references that are being followed.
    open: Vec<String>,
    depth: usize,
    count: usize,
    end: Option<InlineError>,
}

enum InlineError {
    TooLarge,
    /// A reference to itself, or to nothing in this schema.
    Unresolved,
}

impl Transform for RefInliner<'_> {
    fn transform(&mut self, schema: &mut Schema) {
        if self.end.is_some() {
            return;
        }
        (self.count, self.depth) = (self.count + 1, self.depth + 1);
        if self.count > MOST || self.depth > DEEPEST {
            self.end = Some(InlineError::TooLarge);
            return;
        }
        match schema.get("$ref").and_then(Value::as_str).map(str::to_owned) {
            None => transform_subschemas(self, schema),
            Some(reference) => match self.target(&reference) {
                None => self.end = Some(InlineError::Unresolved),
                Some(target) => {
                    put(schema, target);
                    self.open.push(reference);
                    self.transform(schema);
                    self.open.pop();
                }
            },
        }
        self.depth -= 1;
    }
}

impl RefInliner<'_> {
    fn target(&self, reference: &str) -> Option<Schema> {
        let is_open = self.open.iter().any(|open| open == reference);
        let target = self.root.pointer(reference.strip_prefix('#')?).filter(|_| !is_open)?;
        Schema::try_from(target.clone()).ok()
    }
}

/// Puts the target in the place of the reference. Keywords beside the reference still apply.
fn put(schema: &mut Schema, target: Schema) {
    let mut beside = std::mem::take(schema.ensure_object());
    beside.shift_remove("$ref");
    if beside.keys().all(|keyword| ANNOTATIONS.contains(&keyword.as_str())) {
        *schema = target;
        if !beside.is_empty() {
            schema.ensure_object().extend(beside);
        }
    } else {
        let all = beside.entry("allOf").or_insert(json!([]));
        if let Value::Array(all) = all {
            all.push(target.to_value());
        }
        *schema = beside.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(schema: Value) -> Result<Value, String> {
        portable(schema.as_object().unwrap())
    }

    #[test]
    fn definitions_stand_where_they_are_used() {
        let schema = of(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Arguments",
            "properties": {
                "title": {"type": "string", "title": "Title"},
                "where": {"$ref": "#/$defs/Place", "description": "There."},
                "no": {"$ref": "#/definitions/No", "minimum": 3},
                "data": {"const": {"$ref": "#/data"}},
            },
            "$defs": {"Place": {"type": "object", "properties": {"at": {"$ref": "#/definitions/No"}}}},
            "definitions": {"No": {"type": "integer", "format": "int32"}},
        }));
        let expected = json!({
            "properties": {
                "title": {"type": "string"},
                "where": {"type": "object", "properties": {"at": {"type": "integer"}}, "description": "There."},
                "no": {"minimum": 3, "allOf": [{"type": "integer"}]},
                "data": {"const": {"$ref": "#/data"}},
            },
            "type": "object",
        });
        assert_eq!(schema.unwrap(), expected);
        assert_eq!(of(json!({})).unwrap(), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn a_recursive_schema_stays_as_it_is() {
        let tree = json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/T"}},
            "$defs": {"T": {"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}}});
        assert_eq!(of(tree.clone()).unwrap(), tree);
        let itself = json!({"type": "object", "properties": {"more": {"$ref": "#"}}});
        assert_eq!(of(itself.clone()).unwrap(), itself);
    }

    #[test]
    fn what_cannot_be_offered_is_said() {
        // Two to the power of thirty.
        let mut bomb = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {"d30": {"type": "string"}}});
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            bomb["$defs"][format!("d{level}")] = json!({"anyOf": [next, next]});
        }
        // A thousand references deep.
        let mut deep = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {"d1000": {"type": "string"}}});
        for level in 0..1000 {
            deep["$defs"][format!("d{level}")] = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        }
        for (schema, why) in [
            (json!({"type": "array"}), "not of an object"),
            (json!({"properties": {"x": {"$ref": "https://example.org/x.json"}}}), "cannot be used"),
            (json!({"properties": {"x": {"$ref": "#/$defs/gone"}}}), "cannot be used"),
            (json!({"properties": {"x": {"type": 7}}}), "cannot be used"),
            (bomb, "too large"),
            (deep, "too large"),
        ] {
            let refused = of(schema).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string"})),
            Just(json!(true)),
            Just(json!({"$ref": "#/$defs/a"})),
            Just(json!({"$ref": "#/$defs/b", "description": "x"})),
            Just(json!({"$ref": "#"})),
            Just(json!(7)),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let named = prop::collection::btree_map("[ab$]", inner.clone(), 0..3);
            prop_oneof![
                named.prop_map(|of| json!({"type": "object", "properties": of, "title": "t"})),
                prop::collection::vec(inner.clone(), 1..3).prop_map(|of| json!({"anyOf": of})),
                inner.prop_map(|of| json!({"type": "array", "items": of, "minItems": 1})),
            ]
        })
    }

    proptest! {
        /// Any schema of a server gives a result, and a converted schema allows the same values as the server's own.
        #[test]
        fn portable_schemas_mean_the_same(x in any_schema(), a in any_schema(), b in any_schema(), value in prop_oneof![
            Just(json!({})), Just(json!({"x": "s"})), Just(json!({"x": ["s"]})), Just(json!({"x": {"a": 1}})), Just(json!({"x": 7})),
        ]) {
            let given = json!({"type": "object", "properties": {"x": x}, "$defs": {"a": a, "b": b}});
            // An error in a definition without references disappears.
            if let (Ok(schema), Ok(before)) = (of(given.clone()), SchemaCheck::new(&given)) {
                prop_assert_eq!(SchemaCheck::new(&schema).unwrap().fits(&value), before.fits(&value), "{} {}", given, schema);
            }
        }
    }
}
