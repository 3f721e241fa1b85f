//! `commands.list`: the commands that the host can run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};

pub(super) struct ListCommands;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Words that id or name must hold.
    #[serde(default)]
    query: Option<String>,
    /// How the id must begin: `editor:`.
    #[serde(default)]
    prefix: Option<String>,
    /// How many at most.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
}

fn hundred() -> usize {
    100
}

/// The commands.
#[derive(Serialize, JsonSchema)]
pub(super) struct Commands {
    /// Those that match, by id.
    commands: Vec<Command>,
    /// Whether there are more.
    truncated: bool,
}

/// A command.
#[derive(Serialize, JsonSchema)]
struct Command {
    /// By which it is run.
    id: String,
    /// As people see it.
    name: String,
}

impl Tool for ListCommands {
    const NAME: &'static str = "commands.list";
    const DESCRIPTION: &'static str = "List the commands that commands.run can run; without a program around the vault \
        there are none.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Commands;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Commands> {
        let words: Vec<String> = args.query.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
        let prefix = args.prefix.unwrap_or_default();
        let mut commands = context.host.commands()?;
        commands.retain(|command| {
            let text = format!("{} {}", command.id, command.name).to_lowercase();
            command.id.starts_with(&prefix) && words.iter().all(|word| text.contains(word))
        });
        commands.sort_by(|a, b| a.id.cmp(&b.id));
        let truncated = commands.len() > args.limit;
        commands.truncate(args.limit);
        let commands = commands.into_iter().map(|command| Command { id: command.id, name: command.name }).collect();
        Ok(Commands { commands, truncated })
    }
}
