//! `vault-index completions` and `man`: what a package installs beside the two commands.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::index_args::IndexArgs;
use super::output::Out;
use super::search_args::SearchArgs;
use super::{Ended, Outcome};
use crate::{Error, ErrorKind};

/// The completions of both commands, to be sourced together.
pub(super) fn completions(shell: Shell, out: &mut Out) -> Ended {
    for (n, mut command) in [IndexArgs::command(), SearchArgs::command()].into_iter().enumerate() {
        // The generator panics when it cannot write, so it writes to memory.
        let mut script = Vec::new();
        let name = command.get_name().to_string();
        generate(shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script);
        for line in script.lines() {
            // PowerShell takes `using` only at the very top.
            if n == 0 || !(shell == Shell::PowerShell && line.starts_with("using ")) {
                out.line(line)?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// Prints the pages of the two commands, or writes a page for each command and sub-command to a folder.
pub(super) fn pages(folder: Option<&Path>, out: &mut Out) -> Ended {
    let mut pages = Vec::new();
    for command in [IndexArgs::command(), SearchArgs::command()] {
        // `help` is a command without a page of its own.
        let mut command = command.disable_help_subcommand(true);
        // Building gives sub-commands the options they share, and their full names.
        command.build();
        collect(command, &mut pages)?;
    }
    let Some(folder) = folder else {
        for (_, page) in pages.iter().filter(|(name, _)| matches!(name.as_str(), "vault-index" | "vault-search")) {
            out.bytes(page)?;
        }
        return Ok(Outcome::Done);
    };
    if folder.exists() && !folder.is_dir() {
        return Err(Error::new(ErrorKind::Io, "is not a folder that pages can be written to")
            .at(folder)
            .with_remedy("name a folder, or none to print the pages")
            .into());
    }
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    for (name, page) in &pages {
        let file = folder.join(format!("{name}.1"));
        std::fs::write(&file, page).map_err(|error| Error::io(&file, error))?;
        out.line(&file.to_string_lossy())?;
    }
    Ok(Outcome::Done)
}

fn collect(command: Command, pages: &mut Vec<(String, Vec<u8>)>) -> Ended<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let below: Vec<Command> = command.get_subcommands().cloned().collect();
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    pages.push((name, page));
    below.into_iter().try_for_each(|sub| collect(sub, pages))
}

#[cfg(test)]
mod tests {
    use super::super::output::tests::Captured;
    use super::*;

    #[test]
    fn completions_name_both_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let captured = Captured::default();
            completions(shell, &mut Out::to(captured.clone())).unwrap();
            let text = captured.text();
            assert!(
                text.contains("vault-index") && text.contains("vault-search") && text.contains("min-score"),
                "{shell}"
            );
            if shell == Shell::PowerShell {
                let last_using = text.rfind("using namespace").unwrap();
                assert!(text.find("Register-").unwrap() > last_using);
            }
        }
    }

    #[test]
    fn pages_go_to_folders_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let Err(super::super::Failure::Error(error)) = pages(Some(file.path()), &mut Out::to(Vec::new())) else {
            panic!()
        };
        assert!(error.to_string().contains("is not a folder"), "{error}");
    }

    #[test]
    fn a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        pages(Some(folder.path()), &mut Out::to(Vec::new())).unwrap();
        for name in ["vault-index", "vault-search", "vault-index-sync", "vault-index-graph", "vault-index-man"] {
            let page = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
            assert!(page.contains(".TH") && page.to_lowercase().contains("example"), "{name}");
        }
    }
}
