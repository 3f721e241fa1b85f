//! Makes a note for each bullet, shows it first, and takes it all back: `… --example plan_and_undo -- FOLDER '- a' '- b'`

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use vault_tools::approval::{Answer, PreparedChange, run_plan};
use vault_tools::plan::{Event, Parameters, preview, validate};
use vault_tools::{Cancel, Force, Headless, Policy, Toolbox, Vault, VaultOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: plan_and_undo FOLDER BULLET…")?;
    let bullets: Vec<String> = arguments.collect();

    // Journal and index lie in the user's own folders, never among the notes, unless you name others.
    let mut index = vault_index::Options::new();
    index.index_file = env::var_os("VAULT_INDEX_FILE").map(PathBuf::from);
    let mut options = VaultOptions::new().index(index);
    options.state_folder = env::var_os("VAULT_STATE_FOLDER").map(PathBuf::from);
    let vault = Arc::new(Vault::open(folder, options)?);
    let mut toolbox = Toolbox::new(vault.clone(), Box::new(Headless::default()), Policy::default());

    let plan = json!({
        "version": "1.0",
        "goal": "A note for each bullet",
        "riskLevel": "writes",
        "steps": [
            { "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": "${bullets}" } },
            {
                "id": "make",
                "tool": "vault.createFile",
                "foreach": { "from": "$steps.parse.items", "itemName": "item" },
                "args": { "path": "Projects/${item.text}.md", "content": "# ${item.text}\n\nBegun on ${today}.\n" }
            }
        ]
    });
    // Every fault in one answer: unknown tools, wrong arguments, circles, paths that lead out of the vault.
    let checked = validate(&plan, &toolbox)?;
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    parameters.set("bullets", bullets.join("\n"));

    // The tools themselves run here, on the vault as it would be. Nothing is changed.
    let shown = preview(&mut toolbox, &checked, &parameters, Cancel::default())?;
    // Ask a person here. What is done is what was shown, or nothing if a file is not as it was by then.
    let mut ask = |change: &PreparedChange| {
        print!("{}", change.preview());
        Answer::Yes
    };
    let done = run_plan(&mut toolbox, shown, &mut ask, Cancel::default(), &mut |event| {
        if let Event::StepFinished { step, .. } = event {
            println!("done: {step}");
        }
    })?;
    if let Some((step, error)) = done.failed {
        println!("{step} failed: {error}");
    }

    // Also what failed half-way is one run, and goes as one.
    if let Some(id) = done.transaction {
        let undone = vault.undo(Some(id), Force::No)?;
        println!("undone: {} changes", undone.done);
    }
    Ok(())
}
