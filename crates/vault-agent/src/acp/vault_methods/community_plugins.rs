//! Obsidian's list of community plugins: downloaded when a person asks for it, and searched for plugins that fit an
//! instruction. Nothing is installed.
//!
//! The list is a folder of short notes with an index of its own, in the user's state folder, so that it is searched as a
//! vault is. Its address is contacted only by [`download`].

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use vault_index::{Hit, Index, Options, Query, SyncOptions};
use vault_tools::{Cancel, Error, ErrorKind, Result, State};

use crate::known_providers::{connection, is_this_machine};
use crate::model_list::body;
use crate::state_folder::state_of_user;

/// The time limit of a download.
const WITHIN: Duration = Duration::from_secs(60);

/// The most plugins of an answer, and how many there are unless a request says otherwise.
const MOST: usize = 20;
const USUAL: usize = 3;

/// The most plugins that are taken, and the longest id, name and description.
const MOST_PLUGINS: usize = 50_000;
const LONGEST_NAME: usize = 200;
const LONGEST_DESCRIPTION: usize = 2_000;

/// A plugin fits a little if the cosine of its description and the instruction is at least this. Scores of the search are
/// for passages, and descriptions are a sentence.
const LEAST_COSINE: f32 = 0.35;

/// The file with the list, and the folder with a note for each plugin.
const LIST: &str = "list.json";
const NOTES: &str = "notes";
const INDEX: &str = "index.db";

/// A search of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginsRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// What a person wants to do, in words; without it no plugin is returned.
    pub instruction: Option<String>,
    /// The most plugins to return: 3 unless it says otherwise, and at most 20.
    pub limit: Option<usize>,
}

/// The plugins that fit an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginsResult {
    /// The list; absent before it is downloaded.
    pub list: Option<PluginList>,
    /// The best first. Plugins that hardly fit are left out.
    pub plugins: Vec<CommunityPlugin>,
}

/// The list that a person has downloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginList {
    /// The address that it was downloaded from.
    pub address: String,
    /// When, as in RFC 3339.
    pub downloaded: String,
    /// How many plugins are on it.
    pub count: usize,
}

/// A plugin of the list, in its author's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CommunityPlugin {
    /// Its id in Obsidian.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its author.
    #[serde(default)]
    pub author: String,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
}

/// A download of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DownloadPluginsRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The address of the list, which a person has seen.
    pub address: String,
}

/// The list as it is saved.
#[derive(Serialize, Deserialize)]
struct SavedList {
    list: PluginList,
    plugins: Vec<CommunityPlugin>,
}

/// Returns the plugins that fit an instruction.
///
/// # Errors
/// A list or an index that cannot be read.
pub(super) fn plugins(request: &PluginsRequest) -> Result<PluginsResult> {
    let state = state_of_user("plugins")?;
    let Some(saved) = saved(&state)? else { return Ok(PluginsResult { list: None, plugins: Vec::new() }) };
    let instruction = request.instruction.as_deref().unwrap_or_default();
    let mut plugins = Vec::new();
    if !instruction.trim().is_empty() {
        let mut query = Query::literal(instruction);
        query.limit = request.limit.unwrap_or(USUAL).min(MOST);
        let hits = index_of(&state)?.search(&query)?;
        let fits = |hit: &&Hit| !hit.is_weak || hit.why.semantic.is_some_and(|cosine| cosine >= LEAST_COSINE);
        let ids = hits.results.iter().filter(fits).map(|hit| hit.path.stem());
        plugins.extend(ids.filter_map(|id| saved.plugins.iter().find(|plugin| plugin.id == id).cloned()));
    }
    Ok(PluginsResult { list: Some(saved.list), plugins })
}

/// Downloads the list and indexes it. The one before is kept if that fails.
///
/// # Errors
/// An address without TLS; a server that cannot be reached or sends no list; a folder that cannot be written.
pub(super) fn download(
    request: &DownloadPluginsRequest,
    stop: &CancellationToken,
    cancel: Cancel<'_>,
) -> Result<PluginList> {
    let address = request.address.trim();
    let fetched = tokio::time::timeout(WITHIN, fetch(address));
    let fetched = Handle::current().block_on(stop.run_until_cancelled(fetched));
    let plugins =
        fetched.ok_or_else(|| Error::new(ErrorKind::Cancelled, "the request was cancelled"))?.map_err(|_| {
            let message = format!("{address} was not downloaded within {} seconds", WITHIN.as_secs());
            Error::new(ErrorKind::TimedOut, message).with_remedy("try again later")
        })??;
    let state = state_of_user("plugins")?;
    write_notes(&state, &plugins, cancel)?;
    let list =
        PluginList { address: address.to_owned(), downloaded: Timestamp::now().to_string(), count: plugins.len() };
    let saved = SavedList { list, plugins };
    let text = serde_json::to_vec(&saved).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    state.replace(LIST, text)?;
    index_of(&state)?.sync_with(&SyncOptions::new().wait(WITHIN))?;
    Ok(saved.list)
}

fn saved(state: &State) -> Result<Option<SavedList>> {
    let Some(text) = state.read(LIST)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Error::new(ErrorKind::Io, format!("the list of plugins cannot be read: {error}"))
            .at(state.folder().join(LIST).display().to_string())
            .with_remedy("download it again")
    })
}

fn index_of(state: &State) -> Result<Index> {
    let options = Options::new().index_file(state.folder().join(INDEX));
    Ok(Index::open(state.folder().join(NOTES), options)?)
}

/// Downloads the entries of the list.
async fn fetch(address: &str) -> Result<Vec<CommunityPlugin>> {
    let failed = |error: agent_loop::Error| Error::new(ErrorKind::Io, error.message().to_owned()).at(address);
    if !address.starts_with("https://") && !is_this_machine(address) {
        return Err(Error::new(ErrorKind::InvalidArguments, "the address must begin with https://").at(address));
    }
    let reply = connection()?.get(address, Vec::new()).await.map_err(failed)?;
    if reply.status != 200 {
        return Err(Error::new(ErrorKind::Io, format!("the server answered with status {}", reply.status)).at(address));
    }
    let bytes = body(reply).await.map_err(failed)?;
    let listed: Vec<CommunityPlugin> = serde_json::from_slice(&bytes)
        .map_err(|_| Error::new(ErrorKind::Io, "this is no list of community plugins").at(address))?;
    let mut seen = HashSet::new();
    let taken = listed.into_iter().filter(|plugin| is_usable(plugin) && seen.insert(plugin.id.to_lowercase()));
    Ok(taken.take(MOST_PLUGINS).collect())
}

/// Whether an entry can be shown and its id can be the name of a file on every system.
fn is_usable(plugin: &CommunityPlugin) -> bool {
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_short = |text: &str, most: usize| text.chars().count() <= most;
    !plugin.id.is_empty()
        && is_plain(&plugin.id)
        && [&plugin.id, &plugin.name, &plugin.author].iter().all(|text| is_short(text, LONGEST_NAME))
        && is_short(&plugin.description, LONGEST_DESCRIPTION)
}

/// Writes a note for each plugin, and removes those of plugins that are no longer on the list. Notes that are as they
/// were are not written, so that they are not embedded again.
fn write_notes(state: &State, plugins: &[CommunityPlugin], cancel: Cancel<'_>) -> Result<()> {
    let folder = state.folder().join(NOTES);
    let failed = |error: &std::io::Error| Error::io(folder.display().to_string(), error);
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
    let mut known: HashSet<PathBuf> = HashSet::new();
    for CommunityPlugin { id, name, description, .. } in plugins {
        cancel.check()?;
        let (path, text) = (folder.join(format!("{id}.md")), format!("# {name}\n\n{description}\n"));
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            std::fs::write(&path, text).map_err(|error| failed(&error))?;
        }
        known.insert(path);
    }
    for entry in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if !known.contains(&path) {
            std::fs::remove_file(&path).map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}
