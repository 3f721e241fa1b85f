//! Renames notes of real vaults and sees whether every link still leads where it led: `rename_vaults --help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::path::PathBuf;
use std::process::ExitCode;

use benches::{RenamePlan, RenameTrial, median, rename_trial};
use clap::Parser;

/// Renames notes on copies of vaults, checks every link after each, undoes all, and compares each byte.
///
/// Each note goes to a new name in another folder: with spaces and accents, into new and deep folders, to names that
/// dangling links want and to names that other notes bear. After each rename every link of the vault is resolved, and
/// must lead to the note it led to; those that led nowhere still must, unless the preview named them. When all is
/// undone, the copy must be as it was, folders too. Then each note is renamed forth and back by hand, to names that no
/// link wants and no note bears; after that only links may differ that were not spelled as their file's name is.
#[derive(Debug, Parser)]
struct Args {
    /// The vaults. They are only read
    #[arg(value_name = "VAULT_DIR", required = true)]
    vaults: Vec<PathBuf>,
    /// Notes of each that are renamed
    #[arg(long, default_value_t = 100)]
    renames: usize,
    /// Chooses notes and names
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let plan = RenamePlan { renames: args.renames, seed: args.seed };
    let mut rows = Vec::new();
    let mut has_failed = false;
    for vault in &args.vaults {
        let name = vault.file_name().map_or_else(|| vault.display().to_string(), |name| name.display().to_string());
        match rename_trial(vault, &plan) {
            Ok(trial) => {
                report(&name, &trial);
                rows.push(row(&name, &trial));
            }
            Err(error) => {
                has_failed = true;
                eprintln!("FAILED: {name}, seed {}: {error}", args.seed);
            }
        }
    }
    let columns = [
        "vault",
        "notes",
        "links (dangling)",
        "renames (to a shared name)",
        "links rewritten",
        "links satisfied",
        "ms a rename",
        "links re-spelled by hand",
    ];
    println!("| {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len()));
    rows.iter().for_each(|row| println!("{row}"));
    println!("\nEvery link was resolved after every rename.");
    if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn report(name: &str, trial: &RenameTrial) {
    for refused in &trial.refused {
        println!("{name}: refused: {refused}");
    }
    for link in &trial.respelled {
        println!("{name}: {}:{}: {} -> {} ({})", link.path, link.line, link.before, link.after, link.why);
    }
}

fn row(name: &str, trial: &RenameTrial) -> String {
    format!(
        "| {name} | {} | {} ({}) | {} ({}) | {} | {} | {:.1} | {} |",
        trial.notes,
        trial.links,
        trial.dangling,
        trial.renames,
        trial.shared,
        trial.rewritten,
        trial.satisfied,
        median(&trial.millis),
        trial.respelled.len()
    )
}
