//! Lists and runs commands of the host: `commands.list`, `commands.run`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::host::HostCommand;
use crate::tool::{Context, HostEffect};
use crate::tools::shared::arguments::number;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct ListArgs {
    /// Words that id or name must contain.
    query: Option<String>,
    /// A prefix of the id: `editor:`.
    prefix: Option<String>,
    /// The most commands to return.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
}

/// The commands.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Commands {
    /// The matching commands, by id.
    commands: Vec<HostCommand>,
    /// Whether there are more.
    truncated: bool,
}

pub(in crate::tools) fn list(args: ListArgs, context: &mut Context<'_, '_>) -> Result<Commands> {
    let words: Vec<String> = args.query.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let prefix = args.prefix.unwrap_or_default();
    let mut commands = context.host.commands()?;
    commands.retain(|command| context.policy.permits_command(&command.id));
    commands.retain(|command| {
        let text = format!("{} {}", command.id, command.name).to_lowercase();
        command.id.starts_with(&prefix) && words.iter().all(|word| text.contains(word))
    });
    commands.sort_by(|a, b| a.id.cmp(&b.id));
    let truncated = commands.len() > args.limit;
    commands.truncate(args.limit);
    Ok(Commands { commands, truncated })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct RunArgs {
    /// The command's id, such as `editor:toggle-bold`.
    #[schemars(length(min = 1))]
    id: String,
}

/// The result of a command.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct CommandRun {
    /// The command.
    id: String,
    /// Whether it was run.
    executed: bool,
    /// The host's error, if any.
    error_message: Option<String>,
}

/// Runs nothing yet: the command runs when the call is applied. The output is correct if that succeeds.
pub(in crate::tools) fn run(args: RunArgs, context: &mut Context<'_, '_>) -> Result<CommandRun> {
    context.policy.permit_command(&args.id)?;
    if !context.host.is_live() {
        // A headless host fails with an error that names a host that could run the command.
        context.host.run_command(&args.id)?;
    }
    let Some(command) = context.host.commands()?.into_iter().find(|command| command.id == args.id) else {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no command `{}`", args.id))
            .at("/id")
            .with_remedy("commands.list lists them"));
    };
    context.effects.push(HostEffect::Command { id: command.id, name: command.name });
    Ok(CommandRun { id: args.id, executed: true, error_message: None })
}
