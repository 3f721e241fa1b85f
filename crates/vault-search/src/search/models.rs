//! `vault-index models add` and `remove`: a model is downloaded only when a person agreed to its size, address and licence.

use std::path::Path;
use std::time::Duration;

use vault_index::models::{self, AddingLock, KnownModel, ModelSource};
#[cfg(feature = "http")]
use vault_index::{Error, ErrorKind};

use super::index_args::{AddModelArgs, ModelsCommand};
use super::progress;
use super::status::bytes;
use crate::{CliResult, Failure, Out, Outcome};
#[cfg(feature = "http")]
use crate::{can_ask, confirm, note};

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
    match &args.from {
        Some(folder) => {
            let source = models::source_of_folder(folder)?;
            install(&AddingLock::take(known.name, Some(Duration::ZERO))?, known, folder, &source, out)
        }
        None => add_from_hub(known, args, out),
    }
}

#[cfg(not(feature = "http"))]
fn add_from_hub(known: &KnownModel, _: &AddModelArgs, _: &mut Out) -> CliResult {
    Err(Failure::Error(format!(
        "this program cannot download: it lacks the feature http; download the files of {} on another machine, and name their folder with --from",
        known.repository
    )))
}

#[cfg(feature = "http")]
fn add_from_hub(known: &KnownModel, args: &AddModelArgs, out: &mut Out) -> CliResult {
    // Before anything is asked of the hub.
    if !args.yes && !can_ask() {
        return Err(refused(known));
    }
    let mirror = args.hub.clone().or_else(|| std::env::var("HF_ENDPOINT").ok().filter(|address| !address.is_empty()));
    let hub = models::Hub::at(mirror.as_deref())?;
    let listing = hub.listing(known.repository)?;
    let had = models::installed(known.name).unwrap_or_else(|error| {
        note(&format!("the installed file cannot be read, and is replaced: {}", error.one_line()));
        None
    });
    if let Some(had) = had {
        if had.source.files == listing.source.files {
            out.line(&format!("{} is installed, and the hub has the same files", known.name))?;
            return Ok(Outcome::Done);
        }
        let before = had.source.revision.unwrap_or(had.source.from);
        note(&format!(
            "the files are others than those that were added: {before} then, {} now; an index with vectors of the old ones is embedded again",
            listing.revision
        ));
    }
    let licence = listing.source.licence.clone().unwrap_or_else(|| "not named".to_owned());
    if !licence.eq_ignore_ascii_case(known.licence) {
        note(&format!("the licence was {} when this program was made", known.licence));
    }
    let what = format!(
        "{}: {} from {} at commit {}, licence {licence}; {}",
        known.name,
        bytes(listing.bytes()),
        listing.source.from,
        listing.revision,
        known.note()
    );
    match args.yes {
        true => note(&what),
        false if confirm(&format!("{what}. Download it?")) => {}
        false => return Err(refused(known)),
    }
    let lock = AddingLock::take(known.name, Some(Duration::ZERO))?;
    let listening = crate::listen();
    let bar = progress::download_bar("downloading");
    let downloaded = models::download(&hub, &lock, &listing, listening.flag(), &|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let folder = match downloaded {
        Err(error) if error.kind() == ErrorKind::Cancelled => {
            return Err(Failure::Interrupted("what was downloaded is kept; the same command goes on with it"));
        }
        downloaded => downloaded?,
    };
    let installed = install(&lock, known, &folder, &listing.source, out)?;
    models::delete_download(&lock)?;
    Ok(installed)
}

#[cfg(feature = "http")]
fn refused(known: &KnownModel) -> Failure {
    Failure::Refused(
        Error::new(ErrorKind::Model, format!("downloading {} needs your consent", known.name))
            .with_remedy(format!("agree with `vault-index models add {} --yes`", known.name))
            .one_line(),
    )
}

fn install(lock: &AddingLock, known: &KnownModel, folder: &Path, source: &ModelSource, out: &mut Out) -> CliResult {
    let bar = progress::download_bar("quantizing");
    bar.set_length(1000);
    let made = models::install(lock, Some(known), folder, source, &|share| bar.set_position((share * 1000.0) as u64));
    bar.finish_and_clear();
    let made = made?;
    out.line(&format!("added {} ({}, {})", known.name, bytes(made.bytes), made.id))?;
    out.line(&format!("to embed a vault with it: vault-index rebuild --model {}", known.name))?;
    Ok(Outcome::Done)
}
