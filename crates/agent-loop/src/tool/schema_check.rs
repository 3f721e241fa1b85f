//! A compiled JSON Schema: checks whether a value fits, and reports each issue with its JSON pointer.

use jsonschema::Validator;
use serde_json::Value;

/// The most issues reported for one value, because a model corrects only a few at a time.
const MAX_ISSUES: usize = 8;

/// A compiled JSON Schema.
///
/// ```
/// use agent_loop::SchemaCheck;
/// use serde_json::json;
///
/// let check = SchemaCheck::new(&json!({"properties": {"lines": {"type": "integer"}}})).unwrap();
/// assert!(check.fits(&json!({"lines": 3})));
/// assert!(check.issues(&json!({"lines": "three"}))[0].starts_with("/lines: "));
/// ```
#[derive(Debug)]
pub struct SchemaCheck(Validator);

impl SchemaCheck {
    /// Compiles a schema. Nothing is fetched: a remote reference is an error.
    ///
    /// # Errors
    /// The reason why the schema cannot be used, as text.
    pub fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Returns whether a value fits. It allocates nothing.
    pub fn fits(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Returns the first issues of a value, eight at most, in the schema's order, each with the JSON pointer of its
    /// location.
    pub fn issues(&self, value: &Value) -> Vec<String> {
        let issue = |error: jsonschema::ValidationError<'_>| match error.instance_path().as_str() {
            "" => error.to_string(),
            pointer => format!("{pointer}: {error}"),
        };
        self.0.iter_errors(value).take(MAX_ISSUES).map(issue).collect()
    }

    /// Returns the JSON pointer of the first part of a value that does not fit.
    pub(super) fn first_misfit(&self, value: &Value) -> Option<String> {
        self.0.iter_errors(value).next().map(|error| error.instance_path().as_str().to_owned())
    }
}

/// Formats issues, each on its own line.
pub(crate) fn list_issues(issues: &[String]) -> String {
    issues.iter().map(|issue| format!("- {issue}")).collect::<Vec<_>>().join("\n")
}
