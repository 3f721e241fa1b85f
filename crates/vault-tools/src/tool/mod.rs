//! What a tool is: typed arguments and output with their schemas, a risk, and a call that changes nothing on disk.
//!
//! A call works on an overlay of the vault. What it changed there is shown, approved and applied by others, so that
//! a tool's code is the same in a preview and in a run.

mod check;
mod context;
mod schema;
mod step_cache;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Call, Risk, Toolset};
use crate::sandbox::View;

pub use check::Fault;
pub(crate) use check::{check, pointer, tidy};
pub use context::{Context, Effect, Stop};
pub(crate) use schema::{OR_ROOT, PATH_MARK};
pub use schema::{PathArg, of_arguments, of_output};
pub(crate) use step_cache::{FoundLink, StepCache};

/// One thing that can be done. Implement it, and hand it to the toolbox.
pub trait Tool: Send + Sync {
    /// What it is called: letters, digits, `_` and `.`.
    const NAME: &'static str;
    /// What it does and when to choose it: written for a model, read by people.
    const DESCRIPTION: &'static str;
    /// Where it is offered.
    const TOOLSET: Toolset = Toolset::Notes;
    /// What a call can do at worst.
    const RISK: Risk;
    /// What it takes. Doc comments become the descriptions of the schema.
    type Args: DeserializeOwned + JsonSchema;
    /// What it answers.
    type Output: Serialize + JsonSchema;

    /// Does it, on the overlay of the context.
    ///
    /// # Errors
    /// Whatever is wrong, in words that the caller can act on.
    fn call(&self, args: Self::Args, context: &mut Context<'_, '_>) -> Result<Self::Output>;

    /// Fills in what is known only when the changes of a call are made, such as when a file was written. `output` is
    /// what the call answered. What cannot be found out stays open: the call as such was made.
    fn settle(&self, output: &mut Value, vault: &dyn View) {
        let _ = (output, vault);
    }

    /// Says in the answer what the host could not do; the call as such was made.
    fn effect_failed(&self, output: &mut Value, error: &Error) {
        let _ = (output, error);
    }
}

/// A tool as it is shown to those who choose one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// Its name where dots are not allowed, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Where it is offered.
    pub toolset: Toolset,
    /// What a call can do at worst.
    pub risk: Risk,
    /// What it does and when to choose it.
    pub description: String,
    /// The portable JSON schema of its arguments.
    pub input_schema: Value,
    /// The portable JSON schema of its answer.
    pub output_schema: Value,
}

impl ToolSpec {
    /// A call as the policy sees it before anything is known but its arguments.
    pub(crate) fn as_call<'a>(&'a self, paths: &'a [String]) -> Call<'a> {
        Call { tool: &self.name, toolset: self.toolset, tool_risk: self.risk, risk: self.risk, paths }
    }
}

/// A tool whose types are known to nobody: JSON in, JSON out.
pub(crate) trait AnyTool: Send + Sync {
    fn call(&self, args: Value, context: &mut Context<'_, '_>) -> Result<Value>;
    fn settle(&self, output: &mut Value, vault: &dyn View);
    fn effect_failed(&self, output: &mut Value, error: &Error);
}

impl<T: Tool> AnyTool for T {
    fn call(&self, args: Value, context: &mut Context<'_, '_>) -> Result<Value> {
        let args = serde_json::from_value(args).map_err(|error| {
            Error::new(ErrorKind::InvalidArguments, format!("{}: {error}", T::NAME))
                .remedy("compare them with the schema")
        })?;
        let output = Tool::call(self, args, context)?;
        serde_json::to_value(output)
            .map_err(|error| Error::new(ErrorKind::Unsupported, format!("{}: the answer is no JSON: {error}", T::NAME)))
    }

    fn settle(&self, output: &mut Value, vault: &dyn View) {
        Tool::settle(self, output, vault);
    }

    fn effect_failed(&self, output: &mut Value, error: &Error) {
        Tool::effect_failed(self, output, error);
    }
}

/// A tool with its schemas made, ready to be called.
pub(crate) struct Entry {
    pub spec: ToolSpec,
    /// With the marks that the handed-out schema lacks.
    pub marked: Value,
    pub tool: Box<dyn AnyTool>,
}

impl Entry {
    pub(crate) fn new<T: Tool + 'static>(tool: T) -> Self {
        let marked = of_arguments::<T::Args>();
        let alias = T::NAME.replace('.', "_");
        let spec = ToolSpec {
            name: T::NAME.to_string(),
            alias: (alias != T::NAME).then_some(alias),
            toolset: T::TOOLSET,
            risk: T::RISK,
            description: T::DESCRIPTION.to_string(),
            input_schema: schema::handed_out(&marked),
            output_schema: of_output::<T::Output>(),
        };
        Self { spec, marked, tool: Box::new(tool) }
    }

    /// The arguments as the tool takes them: checked, nulls of optional fields left out.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] with every fault.
    pub(crate) fn checked(&self, mut args: Value) -> Result<Value> {
        if args.is_null() {
            args = Value::Object(serde_json::Map::new());
        }
        tidy(&self.marked, &mut args);
        let faults = check(&self.marked, &args, "", &|_| false);
        let of = &self.spec.name;
        Err(match &faults[..] {
            [] => return Ok(args),
            [only] => Error::new(ErrorKind::InvalidArguments, format!("{} (arguments of {of})", only.message))
                .at(only.place()),
            several => {
                let told: Vec<String> = several.iter().map(ToString::to_string).collect();
                Error::new(ErrorKind::InvalidArguments, format!("arguments of {of}: {}", told.join("; ")))
            }
        })
    }

    /// The vault paths that the arguments name.
    pub(crate) fn paths(&self, args: &Value) -> Vec<String> {
        let mut paths = Vec::new();
        named_paths(&self.marked, args, &mut paths);
        paths
    }
}

/// The texts that a schema marks as paths.
fn named_paths(schema: &Value, value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::String(text) if schema.get(PATH_MARK).is_some() => paths.push(text.clone()),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter().for_each(|item| named_paths(schema, item, paths));
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(schema) = schema.get("properties").and_then(|known| known.get(name)) {
                    named_paths(schema, value, paths);
                }
            }
        }
        _ => {}
    }
}
