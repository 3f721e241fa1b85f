//! Adds a tool that ticks a task off: `… --example a_tool_of_your_own -- FOLDER NOTE.md WORDS OF THE TASK`

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use vault_tools::approval::{Answer, PreparedChange};
use vault_tools::{
    Context, Error, ErrorKind, Headless, PathArg, Policy, Result, Risk, Tool, Toolbox, Vault, VaultOptions, View,
};

/// Doc comments of fields become the schema's descriptions, which is what a model reads.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The note. As a `PathArg` it is a path to the policy too, and cannot lead out of the vault.
    path: PathArg,
    /// Words of the task; exactly one open task must have them.
    task: String,
}

#[derive(Serialize, JsonSchema)]
struct Ticked {
    /// The task's line, from 1.
    line: usize,
    /// Open tasks that are left in the note.
    open: usize,
}

/// Works only on the overlay, so the same code serves a preview, a step of a plan and a transaction, and undo is free.
fn tick_task(args: Args, context: &mut Context<'_, '_>) -> Result<Ticked> {
    let path = context.path(&args.path)?;
    let text = context.overlay.text(&path)?;
    let open: Vec<usize> = text.match_indices("- [ ] ").map(|(at, _)| at).collect();
    let of_task = |at: &&usize| text[**at..].lines().next().is_some_and(|line| line.contains(&args.task));
    let matching: Vec<&usize> = open.iter().filter(of_task).collect();
    let [at] = matching.as_slice() else {
        let message = format!("{} open tasks have these words", matching.len());
        return Err(Error::new(ErrorKind::InvalidArguments, message).at(path).with_remedy("give the words of one"));
    };
    let (before, rest) = text.split_at(**at);
    context.overlay.write(&path, format!("{before}- [x] {}", &rest["- [ ] ".len()..]))?;
    Ok(Ticked { line: before.matches('\n').count() + 1, open: open.len() - 1 })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(folder), Some(note)) = (arguments.next(), arguments.next()) else {
        return Err("usage: a_tool_of_your_own FOLDER NOTE.md WORDS…".into());
    };
    let words: Vec<String> = arguments.collect();

    let mut index = vault_index::Options::new();
    index.index_file = env::var_os("VAULT_INDEX_FILE").map(PathBuf::from);
    let mut options = VaultOptions::new().index(index);
    options.state_folder = env::var_os("VAULT_STATE_FOLDER").map(PathBuf::from);
    let vault = Arc::new(Vault::open(folder, options)?);
    let mut toolbox = Toolbox::new(vault, Box::new(Headless::default()), Policy::default());
    let description = "Tick off one open task (`- [ ]`) of a note.";
    toolbox.add(Tool::new("tick_task", Risk::Write, description, tick_task));
    println!("{}", toolbox.spec("tick_task")?.input_schema);

    // Arguments are checked against the schema, and the settings are applied, before the tool gets them.
    let mut ask = |change: &PreparedChange| {
        print!("{}", change.preview());
        Answer::Yes
    };
    let output = toolbox.call("tick_task", json!({ "path": note, "task": words.join(" ") }), &mut ask)?;
    println!("{}", output.text());
    Ok(())
}
