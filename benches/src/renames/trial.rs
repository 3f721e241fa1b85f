//! The test of one vault: renames that are checked one by one and then undone, and renames forth and back without undo.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use vault_index::{HashedEmbedder, VaultPath};
use vault_tools::{ApplyOptions, Force, RenameReport, SafePath, Vault, VaultOptions};

use super::led::Links;
use super::names::{ALL, Choice, Kind, PLAIN, new_path};
use super::respelled::{Respelled, respelled};
use super::tree::{Tree, copy_tree};
use crate::random::Random;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The maximum number of attempts to find a new name.
const TRIES: usize = 12;

/// The plan of a test.
#[derive(Debug, Clone, Copy)]
pub struct RenamePlan {
    /// The number of notes to rename; all, if there are fewer.
    pub renames: usize,
    /// The seed for the choice of notes and names.
    pub seed: u64,
}

/// The result of a test.
#[derive(Debug, Clone, Default)]
pub struct RenameTrial {
    /// The number of notes in the vault.
    pub notes: usize,
    /// The number of links in the vault.
    pub links: usize,
    /// The number of links that are unresolved.
    pub dangling: usize,
    /// The number of renamed notes.
    pub renames: usize,
    /// The number of notes that were renamed to the name of another note.
    pub shared: usize,
    /// The number of links that were rewritten.
    pub rewritten: usize,
    /// The number of unresolved links that a rename resolved, and that the preview named.
    pub satisfied: usize,
    /// The duration of each rename in milliseconds.
    pub millis: Vec<f64>,
    /// The refused renames, with the reasons.
    pub refused: Vec<String>,
    /// The differences after renames forth and back without undo.
    pub respelled: Vec<Respelled>,
}

/// Tests a copy of a vault.
///
/// # Errors
/// The first check that fails.
pub fn rename_trial(source: &Path, plan: &RenamePlan) -> Result<RenameTrial> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("vault");
    copy_tree(source, &root)?;
    let index =
        vault_index::Options::new().index_file(folder.path().join("index/index.db")).embedder(Arc::new(HashedEmbedder));
    let state_folder = folder.path().join("state");
    let vault = Vault::open(&root, VaultOptions::new().state_folder(state_folder).index(index))?;
    vault.index()?;

    let before = Tree::of(&root)?;
    let links = Links::of(&before);
    let mut random = Random(plan.seed);
    let notes = chosen(&links, plan.renames, &mut random);
    let mut trial = RenameTrial {
        notes: links.0.len(),
        links: links.count(),
        dangling: links.0.values().flatten().filter(|link| link.target.is_none()).count(),
        ..RenameTrial::default()
    };
    one_by_one(&vault, &notes, &mut random, &mut trial)?;
    if Tree::of(&root)? == before {
        return Err("nothing was changed by the renames".into());
    }
    for left in (0..trial.renames).rev() {
        vault.undo(None, Force::No).map_err(|error| format!("undo of rename {}: {error}", left + 1))?;
    }
    if let Some(path) = before.differences(&Tree::of(&root)?).first() {
        return Err(format!("after all was undone, {path} is not as it was").into());
    }

    forth_and_back(&vault, &notes, &mut random, &mut trial)?;
    let after = Tree::of(&root)?;
    trial.respelled = respelled(&before, &after).map_err(|error| format!("after forth and back by hand: {error}"))?;
    links.kept(&Links::of(&after), ("", ""), &[]).map_err(|error| format!("after forth and back by hand: {error}"))?;
    Ok(trial)
}

/// Returns `renames` notes in random order.
fn chosen(links: &Links, count: usize, random: &mut Random) -> Vec<String> {
    let mut notes: Vec<String> = links.0.keys().cloned().collect();
    for at in (1..notes.len()).rev() {
        notes.swap(at, random.below(at + 1));
    }
    notes.truncate(count);
    notes
}

fn one_by_one(vault: &Vault, notes: &[String], random: &mut Random, trial: &mut RenameTrial) -> Result<()> {
    let mut now = Links::of(&Tree::of(vault.path())?);
    for (number, note) in notes.iter().enumerate() {
        let Some(done) = rename(vault, note, number, &ALL, random, trial)? else { continue };
        let Done { to, kind, renamed, notices } = done;
        let satisfied: Vec<(String, u32, String)> =
            renamed.satisfied.iter().map(|link| (link.path.to_string(), link.line, link.raw.clone())).collect();
        for (path, line, raw) in &satisfied {
            if !notices.iter().any(|notice| notice.contains(&format!("{path}:{line}:")) && notice.contains(raw)) {
                return Err(format!("{note} -> {to}: the preview does not name {raw} of {path}:{line}").into());
            }
        }
        let after = Links::of(&Tree::of(vault.path())?);
        now.kept(&after, (note, &to), &satisfied).map_err(|error| format!("{note} -> {to}: {error}"))?;
        now = after;
        trial.renames += 1;
        trial.shared += usize::from(kind == Kind::Shared);
        trial.rewritten += renamed.rewritten.len();
        trial.satisfied += satisfied.len();
    }
    Ok(())
}

fn forth_and_back(vault: &Vault, notes: &[String], random: &mut Random, trial: &mut RenameTrial) -> Result<()> {
    let mut unmeasured = RenameTrial::default();
    for (number, note) in notes.iter().enumerate() {
        let Some(Done { to, .. }) = rename(vault, note, number, &PLAIN, random, &mut unmeasured)? else { continue };
        renamed(vault, &to, note).map_err(|error| format!("{to} back to {note}: {error}"))?;
    }
    trial.refused.extend(unmeasured.refused);
    Ok(())
}

/// A rename that was done.
struct Done {
    to: String,
    kind: Kind,
    renamed: RenameReport,
    /// The notices of its preview.
    notices: Vec<String>,
}

/// Renames a note to a name of the first available kind, beginning with the kind whose turn it is.
fn rename(
    vault: &Vault,
    note: &str,
    number: usize,
    kinds: &[Kind],
    random: &mut Random,
    trial: &mut RenameTrial,
) -> Result<Option<Done>> {
    let tree = Tree::of(vault.path())?;
    let links = Links::of(&tree);
    let files: BTreeSet<String> =
        tree.files().filter_map(|(path, _)| VaultPath::new(path)).map(|path| path.to_string()).collect();
    let folders: Vec<String> = std::iter::once("").chain(tree.folders()).map(str::to_owned).collect();
    let dangling = links.dangling();
    let choice = Choice { files: &files, folders: &folders, dangling: &dangling };
    for attempt in 0..TRIES {
        let kind = kinds[(number + attempt) % kinds.len()];
        let Some(to) = new_path(random, kind, number, note, &choice) else { continue };
        let started = Instant::now();
        match renamed(vault, note, &to) {
            Ok((renamed, notices)) => {
                trial.millis.push(started.elapsed().as_secs_f64() * 1000.0);
                return Ok(Some(Done { to, kind, renamed, notices }));
            }
            Err(error) => trial.refused.push(format!("{note} -> {to}: {error}")),
        }
    }
    Ok(None)
}

fn renamed(vault: &Vault, from: &str, to: &str) -> vault_tools::Result<(RenameReport, Vec<String>)> {
    let mut overlay = vault.overlay();
    let renamed = overlay.rename(&SafePath::new(from)?, &SafePath::new(to)?)?;
    let change = overlay.change();
    vault.apply(&change, ApplyOptions::new().label("rename"))?;
    Ok((renamed, change.preview().notices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::demo_vault;

    #[test]
    fn the_demo_vault_passes() {
        let trial = rename_trial(&demo_vault(), &RenamePlan { renames: 12, seed: 3 }).unwrap();
        assert_eq!((trial.renames, trial.millis.len(), trial.refused.len()), (12, 12, 0));
        assert!(trial.rewritten > 0 && trial.shared > 0, "{trial:?}");
    }
}
