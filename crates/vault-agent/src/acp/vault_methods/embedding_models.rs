//! The models of the search by meaning, for a client's settings: the ones that there are, the description of a download,
//! the download itself after a person has agreed to it, and embedding the vault with another model.
//!
//! A download or an embedding answers when it has ended. Meanwhile [`state`] tells how far it is.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::models::{self, AddingLock, KnownModel};
use vault_index::{ErrorKind as IndexErrorKind, Index, ModelName, Progress, Stage, SyncOptions};
use vault_search::search::{describe, hub};
use vault_tools::{Cancel, Error, ErrorKind, Result};

use crate::workspace::OpenVault;

/// The models, and the work on one that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddingModelsResult {
    /// The model whose vectors the vault's index has; none if the vault was not indexed yet.
    pub used: Option<String>,
    /// The bundled model, then those that can be downloaded.
    pub models: Vec<EmbeddingModel>,
    /// The work under way in this process.
    pub work: Option<ModelWork>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddingModel {
    /// Its name.
    pub name: String,
    /// Its languages, its cost, published rankings and its licence.
    pub description: String,
    /// Whether it can be used without a download.
    pub installed: bool,
    /// Whether its vectors were compared with those of another engine.
    pub tested: bool,
}

/// Work on a model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelWork {
    /// The model.
    pub name: String,
    /// Its step.
    pub step: ModelStep,
    /// The share of the step that is done, from 0 to 1.
    pub share: f64,
}

/// A step of the work on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelStep {
    /// Its files are downloaded.
    Download,
    /// Its weights are made smaller.
    Quantize,
    /// The vault is embedded with it.
    Embed,
}

/// A model by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedModelRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The model.
    pub name: String,
}

/// A download, for the person who decides about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DownloadDescription {
    /// Its size, address, commit and licence, and the model; then on a line each its files.
    pub text: String,
    /// The commit, which [`AddModelRequest`] repeats.
    pub revision: String,
}

/// A download that a person has agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddModelRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The model.
    pub name: String,
    /// The commit that was described.
    pub revision: String,
}

/// The work under way, one at a time, because each keeps all cores busy.
static WORK: Mutex<Option<ModelWork>> = Mutex::new(None);

fn work() -> std::sync::MutexGuard<'static, Option<ModelWork>> {
    WORK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Notes the work under way until it is dropped.
struct WorkGuard {
    name: String,
}

impl WorkGuard {
    fn begin(name: &str, step: ModelStep) -> Result<Self> {
        let mut work = work();
        if let Some(other) = &*work {
            let message = format!("{} is being added or used", other.name);
            return Err(Error::new(ErrorKind::Conflict, message).with_remedy("wait until that has ended, or stop it"));
        }
        *work = Some(ModelWork { name: name.to_owned(), step, share: 0.0 });
        Ok(Self { name: name.to_owned() })
    }

    fn is_at(&self, step: ModelStep, share: f64) {
        *work() = Some(ModelWork { name: self.name.clone(), step, share: share.clamp(0.0, 1.0) });
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        *work() = None;
    }
}

/// Returns the models, and the work under way.
///
/// # Errors
/// Those of reading the index; a folder of models that cannot be read.
pub(super) fn state(open: &OpenVault) -> Result<EmbeddingModelsResult> {
    let status = Index::open(open.vault.path(), open.index.clone()).and_then(|index| index.status());
    let used = match status {
        Ok(status) => Some(status.model),
        Err(error) if error.kind() == IndexErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let bundled = ModelName::all().into_iter().find(|model| model.name == ModelName::MiniLm.to_string());
    let bundled = bundled.map(|model| EmbeddingModel {
        name: model.name,
        description: model.note,
        installed: true,
        tested: true,
    });
    let mut models: Vec<EmbeddingModel> = bundled.into_iter().collect();
    for known in KnownModel::all() {
        let installed = models::installed(known.name)?.is_some();
        models.push(EmbeddingModel {
            name: known.name.to_owned(),
            description: known.note(),
            installed,
            tested: known.is_tested,
        });
    }
    Ok(EmbeddingModelsResult { used, models, work: work().clone() })
}

/// Asks the hub for the files of a model. Sends nothing but their address.
///
/// # Errors
/// No such model; a hub that cannot be reached or does not have it.
pub(super) fn describe_download(request: &NamedModelRequest) -> Result<DownloadDescription> {
    let known = known(&request.name)?;
    let listing = hub(None)?.listing(known.repository)?;
    Ok(DownloadDescription { text: describe(known, &listing), revision: listing.revision })
}

/// Downloads and installs a model.
///
/// # Errors
/// No such model; other work under way; a hub that has other files than were described; those of the download.
pub(super) fn add(open: &OpenVault, request: &AddModelRequest, cancel: Cancel<'_>) -> Result<EmbeddingModelsResult> {
    let known = known(&request.name)?;
    let guard = WorkGuard::begin(known.name, ModelStep::Download)?;
    let hub = hub(None)?;
    let listing = hub.listing(known.repository)?;
    if listing.revision != request.revision {
        let message = format!("{} has changed on the hub since it was described", known.name);
        return Err(Error::new(ErrorKind::Conflict, message).with_remedy("look at the new description first"));
    }
    let never = AtomicBool::new(false);
    let stop = cancel.flag().unwrap_or(&never);
    let lock = AddingLock::take(known.name, Some(Duration::ZERO))?;
    let folder = models::download(&hub, &lock, &listing, stop, &|done, all| {
        guard.is_at(ModelStep::Download, done as f64 / all.max(1) as f64);
    })?;
    models::install(&lock, Some(known), &folder, &listing.source, stop, &|share| {
        guard.is_at(ModelStep::Quantize, f64::from(share));
    })?;
    // The model is installed; what is left of the download goes with its removal.
    let _ = models::delete_part(&lock);
    drop(guard);
    state(open)
}

/// Embeds the vault with a model that needs no download. Searches use the old vectors until the new ones are complete.
///
/// # Errors
/// A model that is not installed; other work under way; those of the rebuild.
pub(super) fn use_model(
    open: &OpenVault,
    request: &NamedModelRequest,
    cancel: Cancel<'_>,
) -> Result<EmbeddingModelsResult> {
    if open.vault.has_database() {
        let message = "the index of this vault is in a database, whose owner chooses its model";
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_remedy("ask its owner to run `vault-index rebuild --model NAME`"));
    }
    let listed = state(open)?.models.into_iter().find(|model| model.name == request.name);
    let model = listed.ok_or_else(|| unknown(&request.name))?;
    if !model.installed {
        let message = format!("{} is not installed", model.name);
        return Err(Error::new(ErrorKind::NotFound, message).with_remedy("add it first"));
    }
    let name: ModelName = model.name.parse().map_err(Error::from)?;
    let guard = WorkGuard::begin(&model.name, ModelStep::Embed)?;
    let show = |now: Progress| {
        if now.stage == Stage::Vectors {
            guard.is_at(ModelStep::Embed, now.done as f64 / now.total.max(1) as f64);
        }
    };
    let never = AtomicBool::new(false);
    let options = SyncOptions::new().cancel(cancel.flag().unwrap_or(&never)).progress(&show);
    Index::open(open.vault.path(), open.index.clone().model(name))?.rebuild(&options)?;
    drop(guard);
    state(open)
}

fn known(name: &str) -> Result<&'static KnownModel> {
    KnownModel::named(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    let names = KnownModel::all().iter().map(|model| model.name).collect::<Vec<_>>().join(", ");
    Error::new(ErrorKind::NotFound, format!("there is no model `{name}`")).with_remedy(format!("there are {names}"))
}
