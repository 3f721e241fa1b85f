//! `commands.run`: a command of the host, which nobody can take back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Effect, Tool};

pub(super) struct RunCommand;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command's id, such as `editor:toggle-bold`.
    #[schemars(length(min = 1))]
    id: String,
}

/// How it went.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ran {
    /// The command.
    id: String,
    /// Whether it was run.
    executed: bool,
    /// What the host said if it was not.
    error_message: Option<String>,
}

impl Tool for RunCommand {
    const NAME: &'static str = "commands.run";
    const DESCRIPTION: &'static str = "Run a command of the program around the vault by its id. It cannot be \
        previewed or undone; prefer other tools.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Command;
    type Args = Args;
    type Output = Ran;

    /// It is run when the call is applied; the answer is what holds if that succeeds.
    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Ran> {
        if !context.host.is_live() {
            // Nothing happens; the host says who could run it.
            context.host.run_command(&args.id)?;
        } else if !context.host.commands()?.iter().any(|command| command.id == args.id) {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no command `{}`", args.id))
                .at("/id")
                .remedy("commands.list lists them"));
        }
        context.effects.push(Effect::Command { id: args.id.clone() });
        Ok(Ran { id: args.id, executed: true, error_message: None })
    }

    fn effect_failed(&self, output: &mut Value, error: &Error) {
        output["executed"] = false.into();
        output["errorMessage"] = error.to_string().into();
    }
}
