//! Renames notes of real vaults and checks that every link keeps its target: `rename_vaults --help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::path::PathBuf;
use std::process::ExitCode;

use benches::{RenamePlan, RenameTrial, median, rename_trial};
use clap::Parser;

/// Renames notes in copies of vaults, checks every link after each rename, undoes all, and compares all bytes.
///
/// Each note gets a new name in another folder: with spaces and accents, in new and deep folders, names that unresolved
/// links have, and names of other notes. After each rename, every link of the vault is resolved and must lead to the
/// same note as before; unresolved links must stay unresolved, unless the preview named them. When all is undone, the
/// copy must be unchanged, including folders. Then each note is renamed forth and back without undo, to names that no
/// link and no note has; after that, only links that were not spelled like their file's name may differ.
#[derive(Debug, Parser)]
struct Args {
    /// The vaults. They are only read
    #[arg(value_name = "VAULT_DIR", required = true)]
    vaults: Vec<PathBuf>,
    /// Number of notes to rename in each vault
    #[arg(long, default_value_t = 100)]
    renames: usize,
    /// Seed for the choice of notes and names
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
