//! Finds the vault for a session's working directory: the nearest folder upward with an `.obsidian`, else the vault on
//! the command line, else the directory itself if it has notes.

use std::path::{Path, PathBuf};

use vault_index::dirs::home;
use vault_search::{CliResult, VaultSources, find_vaults};
use vault_search::{VaultArgs, vaults_from};
use vault_tools::{Error, ErrorKind};

use crate::workspace::{PolicyOverrides, Workspace};

/// Returns the folders of the vaults for a working directory. `named` are the arguments of the command line.
///
/// # Errors
/// A path that is not absolute; the home folder or `/`, unless the command line names it.
pub(super) fn meant(cwd: &Path, named: &VaultArgs) -> CliResult<Vec<PathBuf>> {
    if !cwd.is_absolute() {
        return Err(Error::new(ErrorKind::InvalidArguments, "`cwd` must be an absolute path").at(cwd.display()).into());
    }
    match above(cwd) {
        Some(folder) => {
            let sources = VaultSources { current: folder.to_owned(), home: home(), ..VaultSources::default() };
            Ok(find_vaults(&sources)?.folders)
        }
        None => vaults_from(cwd, named),
    }
}

fn above(cwd: &Path) -> Option<&Path> {
    cwd.ancestors().find(|folder| folder.join(".obsidian").is_dir())
}

/// Opens the vaults for a working directory.
///
/// # Errors
/// Those of [`meant`]; a missing folder; a directory without notes.
pub(super) fn open(cwd: &Path, named: &VaultArgs) -> CliResult<Workspace> {
    let folders = meant(cwd, named)?;
    let is_of_editor = above(cwd).is_some();
    let is_any_folder = !is_of_editor && folders == [cwd] && folders != named.vault;
    // An index file on the command line is only for the vault on the command line.
    let index = named.index.clone().filter(|_| !is_of_editor || folders == named.vault);
    let workspace = Workspace::open(&VaultArgs { vault: folders, index }, PolicyOverrides::default())?;
    if is_any_folder && workspace.with(|vaults| vaults.toolbox(0).notes())?.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "there are no notes in this folder, and no vault is named")
            .at(cwd.display())
            .with_remedy("open a folder of notes, or start the agent with --vault DIR")
            .into());
    }
    Ok(workspace)
}
