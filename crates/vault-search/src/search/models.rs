//! `vault-index models add` and `remove`: a model is downloaded only when a person agreed to its size, address and licence.

use std::path::Path;
use std::time::Duration;

use vault_index::models::{self, AddingLock, KnownModel, ModelSource};
#[cfg(feature = "http")]
use vault_index::models::{Hub, Listing};
use vault_index::{Error, ErrorKind, ModelName};

use super::index_args::{AddModelArgs, ModelsCommand};
use super::progress;
use crate::{CliResult, Failure, Out, Outcome, bytes, note};
#[cfg(feature = "http")]
use crate::{can_ask, confirm};

pub(super) fn run(command: &ModelsCommand, out: &mut Out) -> CliResult {
    match command {
        ModelsCommand::Add(args) => add(args, out),
        ModelsCommand::Remove(args) => {
            let known = known(&args.name)?;
            if !models::remove(known.name)? {
                return Err(Failure::Error(format!("the model `{}` is not installed", known.name)));
            }
            out.line(&format!("removed {}", known.name))?;
            Ok(Outcome::Done)
        }
    }
}

fn known(name: &str) -> CliResult<&'static KnownModel> {
    KnownModel::named(name).ok_or_else(|| {
        let names = KnownModel::all().iter().map(|model| model.name).collect::<Vec<_>>().join(", ");
        Failure::Error(format!("there is no model `{name}` to add or remove; there are {names}"))
    })
}

fn add(args: &AddModelArgs, out: &mut Out) -> CliResult {
    let known = known(&args.name)?;
    let added = match &args.from {
        Some(path) => Some(add_from(known, path)?),
        None => add_from_hub(known, args.hub.as_deref(), args.yes)?,
    };
    match added {
        Some(added) => {
            out.line(&added)?;
            out.line(&format!("to embed a vault with it: vault-index rebuild --model {}", known.name))?;
        }
        None => out.line(&format!("{} is installed, and the hub has the same files", known.name))?,
    }
    Ok(Outcome::Done)
}

/// Adds a model from a folder or an archive, and returns a line about it.
fn add_from(known: &KnownModel, path: &Path) -> CliResult<String> {
    // Before what is there is taken for an archive.
    let is_folder = std::fs::metadata(path).map_err(|error| Error::io(path, error))?.is_dir();
    let lock = AddingLock::take(known.name, Some(Duration::ZERO))?;
    if is_folder {
        return install(&lock, known, path, &models::source_of_folder(path)?);
    }
    add_from_archive(&lock, known, path)
}

#[cfg(not(feature = "http"))]
fn add_from_archive(_: &AddingLock, _: &KnownModel, _: &Path) -> CliResult<String> {
    Err(Failure::Error("this program cannot unpack archives: it lacks the feature http; unpack the model's files, and name their folder with --from".to_owned()))
}

#[cfg(feature = "http")]
fn add_from_archive(lock: &AddingLock, known: &KnownModel, path: &Path) -> CliResult<String> {
    let listening = crate::listen();
    let (folder, source) = models::unpack(lock, path, listening.flag()).map_err(interrupted(NOTHING_LEFT))?;
    let added = install(lock, known, &folder, &source);
    // Its outcome counts, and the next try empties the folder.
    let _ = models::delete_unpacked(lock);
    added
}

#[cfg(feature = "http")]
const NOTHING_LEFT: &str = "nothing was installed";

/// Turns the error of work that was cancelled into an interruption, which says what became of the work.
fn interrupted(left: &'static str) -> impl Fn(Error) -> Failure {
    move |error| match error.kind() {
        ErrorKind::Cancelled => Failure::Interrupted(left.to_owned()),
        _ => error.into(),
    }
}

/// The installed model of this name, if its file is sound.
#[cfg(feature = "http")]
fn sound(name: &str) -> Option<models::InstalledModel> {
    let installed = models::installed(name).and_then(|installed| {
        installed.as_ref().map_or(Ok(()), models::InstalledModel::verify)?;
        Ok(installed)
    });
    installed.unwrap_or_else(|error| {
        note(&format!("the installed file is replaced: {}", error.one_line()));
        None
    })
}

/// Adds the model of a rebuild, if it is one of the table and is not installed. `agreed` is `--yes`.
///
/// # Errors
/// [`Failure::Refused`] without consent.
pub(super) fn add_missing(model: &ModelName, agreed: bool) -> CliResult<()> {
    if let ModelName::Known(name) = model
        && models::installed(name)?.is_none()
        && let Some(added) = add_from_hub(known(name)?, None, agreed)?
    {
        note(&added);
    }
    Ok(())
}

#[cfg(not(feature = "http"))]
fn add_from_hub(known: &KnownModel, _: Option<&str>, _: bool) -> CliResult<Option<String>> {
    Err(Failure::Error(format!(
        "this program cannot download: it lacks the feature http; download the files of {} on another machine, and name their folder with --from",
        known.repository
    )))
}

/// Returns a line about the added model; `None` if it is installed, from the same files.
#[cfg(feature = "http")]
fn add_from_hub(known: &KnownModel, mirror: Option<&str>, agreed: bool) -> CliResult<Option<String>> {
    // Before anything is asked of the hub.
    if !agreed && !can_ask() {
        return Err(refused(known));
    }
    let hub = hub(mirror)?;
    let listing = hub.listing(known.repository)?;
    let had = sound(known.name);
    if let Some(had) = &had {
        if had.source.files == listing.source.files {
            return Ok(None);
        }
        let now = &listing.revision;
        note(&match &had.source.revision {
            Some(before) => format!("the files are others than those that were added: {before} then, {now} now"),
            None => {
                format!("the model was added from {}, whose files cannot be compared with the hub's", had.source.from)
            }
        });
    }
    describe(known, &listing).lines().for_each(note);
    if !agreed && !confirm("Download it?") {
        return Err(refused(known));
    }
    let lock = AddingLock::take(known.name, Some(Duration::ZERO))?;
    let listening = crate::listen();
    let bar = progress::download_bar("downloading");
    let downloaded = models::download(&hub, &lock, &listing, listening.flag(), &|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    const KEPT: &str = "what was downloaded is kept; the same command goes on with it";
    let folder = downloaded.map_err(interrupted(KEPT))?;
    let added = install(&lock, known, &folder, &listing.source)?;
    // The model is installed, and removing it deletes the folder.
    let _ = models::delete_part(&lock);
    Ok(Some(added))
}

/// Opens the hub at `mirror`, else at the address in `HF_ENDPOINT`, else the usual one. Connects to nothing.
///
/// # Errors
/// An invalid address.
#[cfg(feature = "http")]
pub fn hub(mirror: Option<&str>) -> vault_index::Result<Hub> {
    let variable = std::env::var("HF_ENDPOINT").ok().filter(|address| !address.is_empty());
    Hub::at(mirror.or(variable.as_deref()))
}

/// Describes a download to the person who decides about it. The first line has its size, address, commit and licence,
/// and the model. Each further line has a file, with its size and digest.
#[cfg(feature = "http")]
pub fn describe(known: &KnownModel, listing: &Listing) -> String {
    let licence = listing.source.licence.as_deref().unwrap_or("not named");
    let before = match licence.eq_ignore_ascii_case(known.licence) {
        true => String::new(),
        false => format!(" (it was {} when this program was made)", known.licence),
    };
    let (name, from, revision) = (known.name, &listing.source.from, &listing.revision);
    let (size, note) = (bytes(listing.bytes()), known.note());
    let files = listing.source.files.iter();
    let files: String = files.map(|file| format!("\n{}: {}, {}", file.path, bytes(file.bytes), file.digest)).collect();
    format!("{name}: {size} from {from} at commit {revision}, licence {licence}{before}; {note}{files}")
}

#[cfg(feature = "http")]
fn refused(known: &KnownModel) -> Failure {
    Failure::Refused(
        Error::new(ErrorKind::Model, format!("downloading {} needs your consent", known.name))
            .with_remedy(format!("agree with `vault-index models add {} --yes`", known.name))
            .one_line(),
    )
}

fn install(lock: &AddingLock, known: &KnownModel, folder: &Path, source: &ModelSource) -> CliResult<String> {
    let before = models::installed(known.name).ok().flatten();
    let listening = crate::listen();
    let bar = progress::download_bar("quantizing");
    bar.set_length(1000);
    let made = models::install(lock, Some(known), folder, source, listening.flag(), &|share| {
        bar.set_position((share * 1000.0) as u64);
    });
    bar.finish_and_clear();
    let made = made.map_err(interrupted("the model was not installed; run the command again"))?;
    if before.is_some_and(|before| before.id != made.id) {
        note("its vectors are others than before: the next `vault-index sync` embeds the notes again");
    }
    Ok(format!("added {} ({}, {})", known.name, bytes(made.bytes), made.id))
}
