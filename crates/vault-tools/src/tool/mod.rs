//! The tool type: a typed function with a name, a risk and the schemas of its arguments and its output.
//!
//! A call changes nothing on disk: it works on an overlay of the vault. Other modules show, approve and apply its
//! changes, so the same code runs in a preview and in a run.

mod schema;
mod check;
mod context;
mod trash_choice;

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::SeparableParts;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Call, Risk, Toolset};

pub use check::Issue;
pub(crate) use check::{check, each_path, expected, map_paths, pointer, tidy};
pub use context::{Cancel, Context, HostEffect};
pub(crate) use context::{Draft, FoundLink, Listing, StepCache, editor_of, without_denied};
pub use schema::PathArg;
pub(crate) use schema::{PATH_MARK, argument_schema, properties_schema};

/// A tool: give it a name and a function, and add it to a [`Toolbox`](crate::Toolbox).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use vault_tools::{PathArg, Risk, Tool, View};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     /// The note. Doc comments become the descriptions of the schema, which is what a model reads.
///     path: PathArg,
/// }
///
/// let count_words = Tool::new("count_words", Risk::Read, "Count the words of a note.", |args: Args, context| {
///     let path = context.path(&args.path)?;
///     Ok(context.overlay.text(&path)?.split_whitespace().count())
/// });
/// assert_eq!(count_words.spec().input_schema["required"][0], "path");
/// ```
pub struct Tool {
    spec: ToolSpec,
    marked_schema: Value,
    marked_output: Value,
    separable: SeparableParts,
    /// The arguments with which a call may also delete files.
    deletes_if: fn(&Value) -> bool,
    run: Box<ToolFunction>,
}

type ToolFunction = dyn Fn(Value, &mut Context<'_, '_>) -> Result<Value> + Send + Sync;

/// The description of a tool for the models and people who choose one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// Its name for clients that do not allow dots, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The toolset that offers it.
    pub toolset: Toolset,
    /// The highest risk of a call.
    pub risk: Risk,
    /// A description of its effect and of when to choose it.
    pub description: String,
    /// The portable JSON schema of its arguments.
    pub input_schema: Value,
    /// The portable JSON schema of its output.
    pub output_schema: Value,
}

impl ToolSpec {
    /// Returns the call in the form for the policy when only its arguments are known.
    pub(crate) fn as_call<'a>(&'a self, paths: &'a [String]) -> Call<'a> {
        Call::new(&self.name, self.toolset, self.risk, paths)
    }
}

impl Tool {
    /// Creates a tool of the toolset `notes`.
    ///
    /// `name` consists of letters, digits, `_` and `.`. `description` tells what the tool does and when to choose it;
    /// it is written for a model, and people read it too. `risk` is the highest risk of a call. `call` reads and writes
    /// through the overlay of its context; its errors must tell what is wrong in a way that the caller can act on.
    pub fn new<Args, Output>(
        name: &str,
        risk: Risk,
        description: &str,
        call: impl Fn(Args, &mut Context<'_, '_>) -> Result<Output> + Send + Sync + 'static,
    ) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        Output: Serialize + JsonSchema,
    {
        let (marked_schema, marked_output) = (argument_schema::<Args>(), schema::output_schema::<Output>());
        let alias = name.replace('.', "_");
        let spec = ToolSpec {
            name: name.to_string(),
            alias: (alias != name).then_some(alias),
            toolset: Toolset::Notes,
            risk,
            description: description.to_string(),
            input_schema: schema::without_marks(&marked_schema),
            output_schema: schema::without_marks(&marked_output),
        };
        let name = name.to_string();
        let run = move |args: Value, context: &mut Context<'_, '_>| {
            let args = serde_json::from_value(args).map_err(|error| {
                Error::new(ErrorKind::InvalidArguments, format!("{name}: {error}"))
                    .with_remedy("compare them with the schema")
            })?;
            serde_json::to_value(call(args, context)?).map_err(|error| {
                Error::new(ErrorKind::Unsupported, format!("{name}: the output is not valid JSON: {error}"))
            })
        };
        let separable = SeparableParts::default();
        Self { spec, marked_schema, marked_output, separable, deletes_if: |_| false, run: Box::new(run) }
    }

    /// Moves it to another toolset.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.spec.toolset = toolset;
        self
    }

    /// Sets which parts of a call a person can leave out.
    #[must_use]
    pub fn separable(mut self, separable: SeparableParts) -> Self {
        self.separable = separable;
        self
    }

    /// Sets the arguments with which a call may delete files although its risk is lower, for example a rename that
    /// overwrites. Such a call asks, whatever was granted.
    #[must_use]
    pub fn may_delete_if(mut self, condition: fn(&Value) -> bool) -> Self {
        self.deletes_if = condition;
        self
    }

    /// Returns whether a call with these arguments may exceed the tool's own risk.
    pub(crate) fn may_exceed(&self, args: &Value) -> bool {
        self.spec.risk < Risk::Delete && (self.deletes_if)(args)
    }

    /// Returns which parts of a call can be left out.
    pub(crate) fn parts(&self) -> SeparableParts {
        self.separable
    }

    /// Returns its name, description, risk and schemas.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns the schema of its arguments, with the marks that tell which texts are paths.
    pub(crate) fn marked_schema(&self) -> &Value {
        &self.marked_schema
    }

    /// Returns the schema of its output, with the same marks.
    pub(crate) fn marked_output(&self) -> &Value {
        &self.marked_output
    }

    /// Calls it with checked arguments.
    pub(crate) fn run(&self, args: Value, context: &mut Context<'_, '_>) -> Result<Value> {
        (self.run)(args, context)
    }

    /// Converts the arguments to the form for the function: checked against the schema, without nulls of optional
    /// fields. Also returns notices about them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] with every issue.
    pub(crate) fn checked(&self, mut args: Value) -> Result<(Value, Vec<String>)> {
        if args.is_null() {
            args = Value::Object(serde_json::Map::new());
        }
        let notices = tidy(&self.marked_schema, &mut args);
        let issues = check(&self.marked_schema, &args, "", &|_| false);
        let name = &self.spec.name;
        Err(match &issues[..] {
            [] => return Ok((args, notices)),
            [only] => Error::new(ErrorKind::InvalidArguments, format!("{} (arguments of {name})", only.message))
                .at(only.location()),
            several => {
                let all: Vec<String> = several.iter().map(ToString::to_string).collect();
                Error::new(ErrorKind::InvalidArguments, format!("arguments of {name}: {}", all.join("; ")))
            }
        })
    }

    /// Returns the vault paths in the arguments.
    pub(crate) fn paths(&self, args: &Value) -> Vec<String> {
        let mut paths = Vec::new();
        each_path(&self.marked_schema, args, "", &mut |path, _, _| paths.push(path.to_string()));
        paths
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("spec", &self.spec).finish_non_exhaustive()
    }
}
