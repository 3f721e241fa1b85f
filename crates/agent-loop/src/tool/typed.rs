//! Tools from Rust functions. The schema is derived from the type of the arguments.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::transform_subschemas};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::message::{CallId, ToolCall};

use super::{BoxFuture, Effect, ToolError, ToolOutput, ToolSpec, Tools};

type Function = dyn Fn(ToolCall, CancellationToken) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// The context of a call that a tool can use.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The id of the call, unique in its run. Use it as a key to record an effect, so that the effect happens only
    /// once.
    pub call: CallId,
    /// Cancelled when the call has to stop.
    pub cancel: CancellationToken,
}

/// A tool that calls a function. Cloning is cheap.
///
/// ```
/// use agent_loop::{Json, Tool, Tools};
///
/// /// Adds two numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: f64,
///     b: f64,
/// }
///
/// let add = Tool::read("add", |Add { a, b }| async move { Ok(Json(a + b)) });
/// assert_eq!(add.spec().description, "Adds two numbers.");
/// let toolbox = vec![add];
/// assert_eq!(toolbox.specs()[0].parameters["required"], serde_json::json!(["a", "b"]));
/// ```
#[derive(Clone)]
pub struct Tool {
    spec: Arc<ToolSpec>,
    function: Arc<Function>,
}

impl Tool {
    /// Creates a tool without side effects. Its description is the doc comment of the argument type.
    pub fn read<A, F, Out, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ToolError>> + Send + 'static,
        Out: IntoOutput,
    {
        Self::read_with(name, move |arguments, _| function(arguments))
    }

    /// Creates a tool with side effects: its calls run one at a time, and by default a person is asked before each.
    pub fn write<A, F, Out, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ToolError>> + Send + 'static,
        Out: IntoOutput,
    {
        Self::write_with(name, move |arguments, _| function(arguments))
    }

    /// Does the same as [`read`](Self::read), for a function that also gets the call's id and its cancellation.
    pub fn read_with<A, F, Out, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ToolError>> + Send + 'static,
        Out: IntoOutput,
    {
        let (parameters, description) = portable_schema::<A>();
        let spec = ToolSpec { name: name.into(), description, parameters, effect: Effect::Read, time_limit: None };
        let function = Arc::new(function);
        Self::dynamic(spec, move |call, cancel| {
            let function = Arc::clone(&function);
            async move {
                let arguments = serde_json::from_value(call.arguments)?;
                function(arguments, ToolContext { call: call.id, cancel }).await?.into_output()
            }
        })
    }

    /// Does the same as [`write`](Self::write), for a function that also gets the call's id and its cancellation.
    pub fn write_with<A, F, Out, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ToolError>> + Send + 'static,
        Out: IntoOutput,
    {
        let mut tool = Self::read_with(name, function);
        Arc::make_mut(&mut tool.spec).effect = Effect::Write;
        tool
    }

    /// Creates a tool whose schema is known only at runtime. The function gets the unparsed call.
    pub fn dynamic<F, Fut>(spec: ToolSpec, function: F) -> Self
    where
        F: Fn(ToolCall, CancellationToken) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let function = move |call, cancel| -> BoxFuture<'static, _> { Box::pin(function(call, cancel)) };
        Self { spec: Arc::new(spec), function: Arc::new(function) }
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.spec).time_limit = Some(limit);
        self
    }

    /// Returns the tool's specification.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tool").field(&self.spec).finish()
    }
}

impl Tools for Vec<Tool> {
    fn specs(&self) -> Vec<ToolSpec> {
        self.iter().map(|tool| ToolSpec::clone(&tool.spec)).collect()
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match self.iter().find(|tool| tool.spec.name == call.name) {
            Some(tool) => (tool.function)(call.clone(), cancel.clone()),
            None => Box::pin(async move { Err(ToolError(format!("there is no tool {:?}", call.name))) }),
        }
    }
}

/// Creates a [`Tool`](crate::Tool) from an asynchronous function. The schema is derived from the function's arguments;
/// the descriptions are the doc comments. The first word is the effect, `read` or `write`.
///
/// ```
/// use agent_loop::{Json, ToolError, tool};
///
/// let add = tool! {
///     /// Adds two numbers.
///     read async fn add(a: i64, /** The number that is added. */ b: i64) -> Result<Json<i64>, ToolError> {
///         Ok(Json(a.checked_add(b).ok_or("the sum is too large")?))
///     }
/// };
/// assert_eq!((add.spec().name.as_str(), add.spec().description.as_str()), ("add", "Adds two numbers."));
/// assert_eq!(add.spec().parameters["required"], serde_json::json!(["a", "b"]));
/// ```
///
/// A tool with state names the variables that it uses after the effect, for example a database handle or an HTTP
/// client. The tool stores a clone of each, and every call gets its own clone, so use types that are cheap to clone,
/// such as an `Arc`. Several tools can share one.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
///
/// use agent_loop::{Agent, AllowAll, ScriptedModel, ScriptedReply, ToolError, tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = Arc::new(Mutex::new(HashMap::from([("apple".to_owned(), 3)])));
/// let stock = tool! {
///     /// Returns how many pieces there are.
///     read(db) async fn stock(item: String) -> Result<String, ToolError> {
///         let db = db.lock().unwrap();
///         Ok(db.get(&item).ok_or("there is no such item")?.to_string())
///     }
/// };
/// let order = tool! {
///     /// Orders one more piece.
///     write(db) async fn order(item: String) -> Result<&'static str, ToolError> {
///         *db.lock().unwrap().entry(item).or_default() += 1;
///         Ok("ordered")
///     }
/// };
/// # let call = |name| ScriptedReply::calls([(name, serde_json::json!({"item": "apple"}))]);
/// # let model = ScriptedModel::new([call("stock"), call("order"), call("stock"), ScriptedReply::text("There are 4 now.")]);
/// let agent = Agent::new(model, vec![stock, order])?.policy(AllowAll);
/// println!("{}", agent.ask("Order an apple.").await?.text);
/// assert_eq!(db.lock().unwrap()["apple"], 4);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! tool {
    (
        $(#[$about:meta])*
        $effect:ident $(($($state:ident),+ $(,)?))? async fn $name:ident(
            $($(#[$of_argument:meta])* $argument:ident: $type:ty),* $(,)?
        ) -> $out:ty $body:block
    ) => {{
        $(#[$about])*
        #[derive($crate::__private::Deserialize, $crate::__private::JsonSchema)]
        #[serde(crate = "::agent_loop::__private::serde")]
        #[schemars(crate = "::agent_loop::__private::schemars")]
        struct Arguments {
            $($(#[$of_argument])* $argument: $type,)*
        }
        $($(let $state = ::core::clone::Clone::clone(&$state);)+)?
        $crate::Tool::$effect(stringify!($name), move |Arguments { $($argument),* }: Arguments| {
            $($(let $state = ::core::clone::Clone::clone(&$state);)+)?
            // A closure rather than a block: `return` and `?` in the body need the declared type.
            let call = async move || -> $out { $body };
            async move { call().await }
        })
    }};
}

/// A type that a tool's function may return.
pub trait IntoOutput {
    /// Converts the value to the output of a tool.
    ///
    /// # Errors
    /// If a value has no JSON form.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

/// Any value, which the model gets as compact JSON. A list becomes one item for each of its elements.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(match serde_json::to_value(self.0)? {
            Value::Array(items) => ToolOutput::items(items.iter().map(Value::to_string)),
            value => ToolOutput::text(value.to_string()),
        })
    }
}

/// Returns the schema of a type without the parts that models and providers handle badly, and the type's doc comment.
/// Sub-schemas are inlined; `$schema`, `title` and `format` of numbers are removed. A recursive type keeps `$defs`.
pub fn portable_schema<T: JsonSchema>() -> (Value, String) {
    let mut settings = SchemaSettings::draft2020_12().with_transform(strip);
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let description = remove(&mut schema, "description").and_then(|text| Some(text.as_str()?.to_string()));
    if schema.get("type").is_some_and(|kind| kind == "object") {
        // Some providers reject an object without properties.
        schema.ensure_object().entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    (schema.to_value(), description.unwrap_or_default())
}

/// Removes a keyword and preserves the order of the others.
fn remove(schema: &mut Schema, keyword: &str) -> Option<Value> {
    schema.as_object_mut()?.shift_remove(keyword)
}

/// Removes keywords that do not help a model or that providers reject: titles, and formats of numbers.
pub(crate) fn strip(schema: &mut Schema) {
    remove(schema, "title");
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    let of_number = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_number),
        kind => kind.is_some_and(is_number),
    };
    if of_number {
        remove(schema, "format");
    }
    transform_subschemas(&mut strip, schema);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Finds notes.
    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Search {
        /// What to look for.
        query: String,
        limit: Option<u32>,
        filter: Option<Filter>,
        title: Option<String>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Filter {
        tags: Vec<String>,
    }

    #[test]
    fn schemas_are_portable() {
        let (schema, description) = portable_schema::<Search>();
        assert_eq!(description, "Finds notes.");
        let expected = json!({
            "type": "object",
            "required": ["query"],
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "limit": {"type": ["integer", "null"], "minimum": 0},
                "filter": {"type": ["object", "null"], "required": ["tags"],
                    "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
                "title": {"type": ["string", "null"]},
            },
        });
        assert_eq!(schema, expected);
    }

    #[tokio::test]
    async fn a_function_is_a_tool() {
        let toolbox = vec![
            Tool::read("search", |args: Search| async move { Ok(Json(vec![args.query.clone(), args.query])) }),
            Tool::write("fail", |_: Filter| async move { Err::<String, _>("no such folder: x".into()) }),
        ];
        let call = |name: &str, arguments| ToolCall::new("1", name, arguments);
        let cancel = CancellationToken::new();
        let found = toolbox.call(&call("search", json!({"query": "a"})), &cancel).await;
        assert_eq!(found, Ok(ToolOutput::items(["\"a\"", "\"a\""])));
        let failed = toolbox.call(&call("fail", json!({"tags": []})), &cancel).await;
        assert_eq!(failed, Err(ToolError::new("no such folder: x")));
        let unknown = toolbox.call(&call("gone", json!({})), &cancel).await;
        assert!(unknown.unwrap_err().0.contains("gone"));
    }

    #[tokio::test]
    async fn a_pair_has_the_tools_of_both() {
        let tool = |name: &str, said: &'static str| Tool::read(name, move |_: Filter| async move { Ok(said) });
        let pair =
            (vec![tool("a", "first"), tool("b", "first")], (vec![tool("c", "second")], vec![tool("b", "third")]));
        let names: Vec<String> = pair.specs().into_iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["a", "b", "c", "b"]);
        assert!(pair.has("c") && !pair.has("d"));
        let cancel = CancellationToken::new();
        for (name, said) in [("a", "first"), ("b", "first"), ("c", "second")] {
            let output = pair.call(&ToolCall::new("1", name, json!({"tags": []})), &cancel).await;
            assert_eq!(output, Ok(ToolOutput::text(said)));
        }
        let unknown = pair.call(&ToolCall::new("1", "d", json!({})), &cancel).await;
        assert!(unknown.unwrap_err().0.contains("\"d\""));
    }
}
