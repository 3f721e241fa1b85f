//! Creates a note for each bullet after a preview, then undoes it: `… --example plan_and_undo -- FOLDER '- a' '- b'`

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use vault_tools::approval::{Answer, PreparedChange, run_plan};
use vault_tools::plan::{Event, Parameters, dry_run, validate};
use vault_tools::{Cancel, Force, Headless, Policy, Toolbox, Vault, VaultOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: plan_and_undo FOLDER BULLET…")?;
    let bullets: Vec<String> = arguments.collect();

    // Journal and index are in the user's own folders, never among the notes, unless you set other paths.
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
    // All faults in one error: unknown tools, wrong arguments, cycles, paths that lead out of the vault.
    let checked = validate(&plan, &toolbox)?;
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    parameters.set("bullets", bullets.join("\n"));

    // The tools themselves run here, on an overlay of the vault. Nothing is changed.
    let shown = dry_run(&mut toolbox, &checked, &parameters, Cancel::default())?;
    // Ask a person here. Exactly the shown changes are made, or none if a file has changed since then.
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

    // A plan that failed half-way is one transaction too, and is undone as one.
    if let Some(id) = done.transaction {
        let undone = vault.undo(Some(id), Force::No)?;
        println!("undone: {} changes", undone.done);
    }
    Ok(())
}
