//! Renames a note and every link to it, after showing the diff: `… --example rename_everywhere -- FOLDER OLD.md NEW.md`

use std::env;
use std::io::stdin;
use std::path::PathBuf;

use vault_tools::{ApplyOptions, SafePath, Vault, VaultOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, from, to] = arguments.as_slice() else { return Err("usage: rename_everywhere FOLDER OLD NEW".into()) };

    let mut index = vault_index::Options::new();
    index.index_file = env::var_os("VAULT_INDEX_FILE").map(PathBuf::from);
    let mut options = VaultOptions::new().index(index);
    options.state_folder = env::var_os("VAULT_STATE_FOLDER").map(PathBuf::from);
    let vault = Vault::open(folder, options)?;

    // A `SafePath` cannot lead out of the vault, so you can pass any input of a user or a model.
    let (from, to) = (SafePath::new(from)?, SafePath::new(to)?);

    // The overlay is the vault with the pending changes. You can make more changes on it before you apply them.
    let mut overlay = vault.overlay();
    let renamed = overlay.rename(&from, &to)?;
    let change = overlay.change();
    print!("{}", change.preview());
    for link in &renamed.rewritten {
        println!("{}:{}: {} becomes {}", link.path, link.line, link.before, link.after);
    }

    println!("do it? (y)");
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    if answer.trim() == "y" {
        // All changes or none are made. `vault.undo(Some(transaction.id), Force::No)` undoes them, today or next week.
        let transaction = vault.apply(&change, ApplyOptions::new().label("rename"))?;
        println!("done as transaction {}: {} changes", transaction.id, transaction.done);
    }
    Ok(())
}
