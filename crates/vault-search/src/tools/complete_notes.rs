//! Shell completion of the names of notes: a few lines of shell script call the program itself.
//!
//! This only lists the vault's folder: it reads no note and no index, and writes nothing. Files that the settings deny
//! or the index excludes are not listed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap_complete::Shell;
use vault_index::Exclusion;
use vault_index::dirs::home;
use vault_tools::{Entry, EntryKind, Sandbox, View};

use crate::{CliResult, Settings, VaultArgs};

use super::settings;

/// The first argument with which the shell calls the program. The words of the line up to the cursor follow it.
pub(super) const COMMAND: &str = "__complete";

/// Options with a value, of the commands that are completed.
const WITH_VALUE: [&str; 4] = ["--vault", "--index", "--heading", "--template"];

/// Returns the addition to the generated completion script of a shell.
pub(super) fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("complete_notes.bash"),
        Shell::Zsh => include_str!("complete_notes.zsh"),
        Shell::Fish => include_str!("complete_notes.fish"),
        _ => "",
    }
}

/// Returns the names to which the last word can be completed. Empty if no note is expected there.
pub(super) fn names(words: impl Iterator<Item = OsString>) -> Vec<String> {
    let words: Vec<String> = words.map(|word| unquoted(&word.to_string_lossy())).collect();
    let Some(line) = Line::of(&words) else { return Vec::new() };
    // Ignore errors, because a shell does not show them during completion.
    let mut names = listed(&line).unwrap_or_default();
    let lower = line.begun.to_lowercase();
    // Exact case comes before other cases, and the whole name before its last part. Only the names that match in the
    // first of these ways are returned, because a shell inserts their common prefix.
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name.starts_with(&line.begun), &|name| name.to_lowercase().starts_with(&lower), &|name| {
            name.rsplit('/').next().is_some_and(|last| last.to_lowercase().starts_with(&lower))
        }];
    let way = ways.into_iter().find(|way| names.iter().any(|name| way(name)));
    names.retain(|name| way.is_some_and(|way| way(name)));
    names.sort();
    names
}

/// A command line whose last word is the name of a note.
#[derive(Debug, PartialEq)]
struct Line {
    vault: Vec<PathBuf>,
    /// Whether the word can be a folder, too.
    takes_folder: bool,
    begun: String,
}

impl Line {
    fn of(words: &[String]) -> Option<Self> {
        let (begun, before) = words.split_last()?;
        let (mut vault, mut plain) = (Vec::new(), Vec::new());
        let mut before = before.iter().map(String::as_str);
        let mut are_options = true;
        while let Some(word) = before.next() {
            match word.split_once('=').unwrap_or((word, "")) {
                ("--", _) => are_options = false,
                ("--vault", folder) if are_options && !folder.is_empty() => vault.push(folder.into()),
                ("--vault", _) if are_options => vault.push(before.next()?.into()),
                (name, "") if are_options && WITH_VALUE.contains(&name) => _ = before.next()?,
                _ if are_options && word.starts_with("--") => {}
                _ => plain.push(word),
            }
        }
        let takes_folder = plain.first() == Some(&"move") && plain.len() > 1;
        let takes_note = matches!(
            plain[..],
            ["rename" | "append"]
                | ["tag", "add" | "remove"]
                | ["prop", "set" | "remove"]
                | ["move" | "delete" | "merge", ..]
        );
        (takes_note && !(are_options && begun.starts_with('-'))).then(|| Self {
            vault,
            takes_folder,
            begun: begun.clone(),
        })
    }
}

/// Returns the notes as a link names them: by name, or by path if several notes have the name or the word has a slash.
/// Also returns the folders, if the word can be a folder.
fn listed(line: &Line) -> CliResult<Vec<String>> {
    let settings = Settings::load(&VaultArgs { vault: line.vault.clone(), index: None })?;
    let sandbox = Sandbox::open(settings.only_vault()?)?;
    let policy = settings::policy_of(&settings::name_of(sandbox.vault()))?.compile()?;
    let exclusion = Exclusion::new(sandbox.vault(), &settings.config.exclude).map_err(vault_tools::Error::from)?;
    let mut entries = sandbox.walk(None)?;
    entries.retain(|entry| {
        // Skip symbolic links, because their targets may be denied, and names with a line break, at which a shell would
        // split them.
        let path = entry.path.as_str();
        !entry.stat.symlink && !path.contains(char::is_control) && policy.permits_path(path)
    });
    let notes = entries.iter().filter(|entry| entry.path.is_note() && entry.stat.kind == EntryKind::File);
    let notes: Vec<&Entry> = notes.filter(|entry| !exclusion.covers_file(entry.path.vault_path())).collect();
    let mut bearers: HashMap<String, usize> = HashMap::new();
    for note in &notes {
        *bearers.entry(note.path.file_name().to_lowercase()).or_default() += 1;
    }
    let shown = |note: &&Entry| {
        let is_only = bearers[&note.path.file_name().to_lowercase()] == 1 && !line.begun.contains('/');
        let name = if is_only { note.path.file_name() } else { note.path.as_str() };
        name.strip_suffix(".md").unwrap_or(name).to_owned()
    };
    let mut names: Vec<String> = notes.iter().map(shown).collect();
    if line.takes_folder {
        let folders = entries.iter().filter(|entry| entry.stat.kind == EntryKind::Folder);
        let folders = folders.filter(|entry| !exclusion.covers_folder(entry.path.vault_path()));
        names.extend(folders.map(|entry| format!("{}/", entry.path)));
    }
    Ok(names)
}

/// Returns a word as the shell reads it: without quotes, which may not be closed yet, and with `~` expanded.
fn unquoted(word: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => plain.extend(letters.next()),
            _ => plain.push(letter),
        }
    }
    match (plain.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_note_is_expected() {
        let begun = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Line::of(&words).map(|line| (line.begun, line.vault.len(), line.takes_folder))
        };
        for (line, expected) in [
            ("rename Com", Some(("Com", 0, false))),
            ("--vault x rename --dry-run ", Some(("", 1, false))),
            ("rename --vault=x Com", Some(("Com", 1, false))),
            ("rename Compost New", None),
            ("move A ", Some(("", 0, true))),
            ("delete A B", Some(("B", 0, false))),
            ("delete --y", None),
            ("delete -- -a", Some(("-a", 0, false))),
            ("append --heading Done Log", Some(("Log", 0, false))),
            ("append --heading Done", None),
            ("append Log te", None),
            ("tag add Com", Some(("Com", 0, false))),
            ("tag add Compost ga", None),
            ("tag rename ga", None),
            ("prop set Com", Some(("Com", 0, false))),
            ("--vault x", None),
            ("", None),
        ] {
            let expected = expected.map(|(begun, vaults, folder): (&str, _, _)| (begun.to_owned(), vaults, folder));
            assert_eq!(begun(line), expected, "{line}");
        }
    }

    #[test]
    fn quotes_of_the_shell() {
        for (word, expected) in [
            (r"Bread\ and", "Bread and"),
            ("\"Bread and", "Bread and"),
            ("'Don", "Don"),
            (r"Don\'t", "Don't"),
            ("\"Don't\"", "Don't"),
        ] {
            assert_eq!(unquoted(word), expected);
        }
    }
}
