//! Notes as resources: read by their URIs, under the same rules as the tools.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::{Map, Value, json};
use vault_tools::approval::HeadlessApprover;
use vault_tools::{Entry, Error, ErrorKind, Result, Vaults};

use super::results::UNTRUSTED;
use super::uri::{SCHEME, UriTarget, VaultUri};

/// The instructions for agents that use these tools.
pub(crate) const SKILL: &str = include_str!("skill.md");

const SKILL_URI: &str = "vault-agent://skill";
const MARKDOWN: &str = "text/markdown";

/// The number of resources on a page of the list.
const PAGE: usize = 200;

/// The maximum bytes of a note that are returned at once.
const MOST: usize = 256 << 10;

/// Returns a page of the list: the skill and the recent changes first, then notes by path. The cursor is the last note
/// of the page before, so that notes that are added or removed do not shift the pages.
///
/// # Errors
/// A cursor that is not from this list; a vault that cannot be listed.
pub(super) fn list(vaults: &mut Vaults, cursor: Option<&str>) -> Result<ListResourcesResult> {
    let names = names(vaults);
    let mut resources = Vec::new();
    let after = cursor.map(VaultUri::parse).transpose()?;
    let (first, after) = match after {
        None => {
            resources.push(
                Resource::new(SKILL_URI, "skill")
                    .with_title("How to work with these notes")
                    .with_mime_type(MARKDOWN)
                    .with_size(SKILL.len() as u64),
            );
            resources.extend(names.iter().map(|name| {
                let uri = VaultUri::changed(name).to_string();
                Resource::new(uri, format!("{name}: changed lately"))
                    .with_title("Notes changed lately")
                    .with_mime_type(MARKDOWN)
            }));
            (0, String::new())
        }
        Some(VaultUri { vault, target: UriTarget::Note { path, .. } }) => (number(&names, &vault)?, path),
        Some(_) => return Err(Error::new(ErrorKind::InvalidArguments, "this cursor is not from this list")),
    };
    let mut last = None;
    for (vault, name) in names.iter().enumerate().skip(first) {
        let notes = vaults.toolbox(vault).notes()?;
        let rest = notes.iter().skip_while(|note| vault == first && note.path.as_str() <= after.as_str());
        for note in rest {
            if resources.len() >= PAGE {
                let next = last.map(|uri: VaultUri| uri.to_string());
                let mut page = ListResourcesResult::with_all_items(resources);
                page.next_cursor = next;
                return Ok(page.with_ttl_ms(0).with_cache_scope(CacheScope::Private));
            }
            let uri = VaultUri::note(name, note.path.as_str());
            resources.push(
                Resource::new(uri.to_string(), note.path.as_str())
                    .with_mime_type(mime_type(note))
                    .with_size(note.stat.size),
            );
            last = Some(uri);
        }
    }
    Ok(ListResourcesResult::with_all_items(resources).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

fn mime_type(note: &Entry) -> &'static str {
    if note.path.as_str().ends_with(".canvas") { "application/json" } else { MARKDOWN }
}

/// Returns the templates of URIs.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let note = |query: &str, name: &str, title: &str| {
        ResourceTemplate::new(format!("vault://{{vault}}/{{+path}}{query}"), name)
            .with_title(title)
            .with_mime_type(MARKDOWN)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        note("", "note", "A note"),
        note("?heading={heading}", "section", "The section of a note under a heading"),
        note("?lines={lines}", "lines", "Lines of a note: 3-10"),
        note("?block={block}", "block", "A block of a note, by its id"),
        ResourceTemplate::new("vault://{vault}/?changed={number}", "changed")
            .with_title("The notes that changed lately")
            .with_mime_type(MARKDOWN),
    ])
    .with_ttl_ms(0)
    .with_cache_scope(CacheScope::Private)
}

/// Reads the resource at a URI.
///
/// # Errors
/// An unknown resource, or one that the settings deny. Both have the same error, so that it does not reveal which notes
/// exist.
pub(super) fn read(vaults: &mut Vaults, uri: &str) -> std::result::Result<ReadResourceResult, ErrorData> {
    let text = match uri {
        SKILL_URI => Ok(SKILL.to_owned()),
        _ => VaultUri::parse(uri).and_then(|address| text_of(vaults, &address)),
    };
    let data = || Some(json!({ "uri": uri }));
    let text = text.map_err(|error| match error.kind() {
        ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::InvalidPath => {
            ErrorData::resource_not_found(format!("there is no resource {uri}"), data())
        }
        _ if !uri.starts_with(SCHEME) => ErrorData::resource_not_found(error.to_string(), data()),
        _ => ErrorData::invalid_params(error.to_string(), data()),
    })?;
    let meta = MetaObject(Map::from_iter([(UNTRUSTED.to_owned(), json!(uri != SKILL_URI))]));
    let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN).with_meta(meta);
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

fn text_of(vaults: &mut Vaults, address: &VaultUri) -> Result<String> {
    let vault = number(&names(vaults), &address.vault)?;
    let toolbox = vaults.toolbox(vault);
    let (path, part) = match &address.target {
        UriTarget::Changed(most) => return Ok(changed(&toolbox.notes()?, *most)),
        UriTarget::Note { path, part } => (path, part),
    };
    let mut args = json!({ "path": path, "max_bytes": MOST });
    if let Some((part, value)) = part {
        args[part.name()] = json!(value);
    }
    let read = toolbox.call("read_note", args, &mut HeadlessApprover)?.value;
    let mut text = read["content"].as_str().unwrap_or_default().to_owned();
    if read["bytes_left"].as_u64().is_some_and(|left| left > 0) {
        let next = read["first_line"].as_u64().unwrap_or(1) + text.lines().count() as u64;
        let target =
            UriTarget::Note { path: path.clone(), part: Some((super::uri::NotePart::Lines, format!("{next}-"))) };
        let rest = VaultUri { vault: address.vault.clone(), target };
        text.push_str(&format!("\n\n(The note goes on: {} bytes more, at {rest}.)\n", read["bytes_left"]));
    }
    Ok(text)
}

/// Lists the notes that changed last, newest first.
fn changed(notes: &[Entry], most: usize) -> String {
    let mut notes: Vec<&Entry> = notes.iter().collect();
    notes.sort_by_key(|note| (std::cmp::Reverse(note.stat.modified), note.path.clone()));
    let line = |note: &&Entry| {
        let time = note.stat.modified.and_then(|time| Timestamp::try_from(time).ok());
        let time = time.map(|time| format!("{time:.0}")).unwrap_or_default();
        format!("- {time} {}\n", note.path)
    };
    format!("# Notes changed lately\n\n{}", notes.iter().take(most).map(line).collect::<String>())
}

fn names(vaults: &Vaults) -> Vec<String> {
    vaults.names().map(str::to_owned).collect()
}

/// Finds a vault by its name, without regard to case, because some clients change the case of URIs.
pub(super) fn number(names: &[String], vault: &str) -> Result<usize> {
    let found = names.iter().position(|name| name == vault);
    let found = found.or_else(|| names.iter().position(|name| name.to_lowercase() == vault.to_lowercase()));
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no vault {vault}")))
}

/// Returns a value for each resource that changes when the resource does: the size and time of a note, or the newest
/// note of the recent changes. It is null for a resource that does not exist or is denied. Each vault is listed only
/// once.
pub(super) fn states_of(vaults: &mut Vaults, uris: Vec<String>) -> BTreeMap<String, Value> {
    let names = names(vaults);
    let mut listed: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
    let mut state = |uri: &str| {
        let address = VaultUri::parse(uri).ok()?;
        let vault = number(&names, &address.vault).ok()?;
        let notes = listed.entry(vault).or_insert_with(|| vaults.toolbox(vault).notes().unwrap_or_default());
        let found = match &address.target {
            UriTarget::Changed(_) => notes.iter().max_by_key(|note| note.stat.modified),
            UriTarget::Note { path, .. } => notes.iter().find(|note| note.path.as_str() == path),
        };
        let found = found?;
        let time = found.stat.modified.and_then(|time| Timestamp::try_from(time).ok()).map(|time| time.to_string());
        let count = matches!(address.target, UriTarget::Changed(_)).then_some(notes.len());
        Some(json!([found.path.as_str(), found.stat.size, time, count]))
    };
    uris.into_iter().map(|uri| (state(&uri).unwrap_or_default(), uri)).map(|(state, uri)| (uri, state)).collect()
}
