//! Lists the files of a folder, a page at a time: `vault.listFiles`, `list_folder`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{self, EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::locate;

/// The maximum size in bytes of a file for which an etag is computed.
const MAX_HASHED_BYTES: u64 = 64_000_000;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The folder; default: the vault's root. What is no folder and ends without / is a prefix of paths.
    #[schemars(extend("x-vault-path" = "or root"))]
    prefix: Option<PathArg>,
    /// Whether to list its subfolders too.
    #[serde(default)]
    recursive: bool,
    /// Only files with these extensions, such as md, and no folders.
    #[serde(default)]
    extensions: Vec<String>,
    /// The most entries to return.
    #[serde(default = "number::<200>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many entries to skip: nextOffset of the previous page.
    #[serde(default)]
    offset: usize,
}

/// A page of entries.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Page {
    /// Files and folders, by path.
    items: Vec<Item>,
    /// The offset of the next page; null at the end.
    next_offset: Option<usize>,
    /// Whether there is a next page.
    truncated: bool,
}

/// A file or folder.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Item {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// `file` or `folder`.
    kind: &'static str,
    /// Its size; 0 for folders.
    size_bytes: u64,
    /// When it was last changed, in milliseconds since 1970; null if not yet written.
    mtime_ms: Option<i64>,
    /// The hash of a file's content; null for folders, and for files that are unreadable or above 64 MB.
    etag: Option<String>,
}

pub(in crate::tools) fn list_files(args: Args, context: &mut Context<'_, '_>) -> Result<Page> {
    let endings: Vec<String> =
        args.extensions.iter().map(|ending| ending.trim_start_matches('.').to_lowercase()).collect();
    let has_ending = |entry: &sandbox::Entry| {
        let ending = entry.path.extension().map(str::to_lowercase);
        entry.stat.kind == EntryKind::File && ending.is_some_and(|ending| endings.contains(&ending))
    };
    let entries = entries(&args, context)?;
    let mut shown = entries.iter().filter(|entry| endings.is_empty() || has_ending(entry)).skip(args.offset);
    let mut items = Vec::new();
    for entry in shown.by_ref().take(args.limit) {
        context.cancel.check()?;
        items.push(item(entry, &*context));
    }
    let truncated = shown.next().is_some();
    if truncated {
        let next = args.offset + items.len();
        let of = args.prefix.as_ref().map(|prefix| format!(" of {}", prefix.as_str())).unwrap_or_default();
        context.overlay.notice(format!("the list{of} was cut at {} entries; offset {next} goes on", items.len()));
    }
    Ok(Page { next_offset: truncated.then_some(args.offset + items.len()), items, truncated })
}

/// Returns all entries, before the page is cut. A file that the call names is listed even if the index excludes it.
fn entries(args: &Args, context: &mut Context<'_, '_>) -> Result<Vec<sandbox::Entry>> {
    let all = |folder: Option<&SafePath>, context: &Context<'_, '_>| -> Result<Vec<sandbox::Entry>> {
        let listing = context.listing()?;
        let mut entries = if args.recursive { context.overlay.walk(folder)? } else { context.overlay.list(folder)? };
        entries.retain(|entry| listing.has(entry));
        Ok(entries)
    };
    let prefix = args.prefix.as_ref().filter(|prefix| !matches!(prefix.as_str().trim_matches('/'), "" | "."));
    let Some(prefix) = prefix else { return all(None, context) };
    let ends_in_slash = prefix.as_str().ends_with('/');
    let path = context.path(&PathArg(prefix.as_str().trim_end_matches('/').to_string()))?;
    match context.overlay.stat(&path)? {
        Some(stat) if stat.kind == EntryKind::Folder => {
            context.notice_if_left_out(&path)?;
            return all(Some(&path), context);
        }
        Some(stat) if !ends_in_slash => return Ok(vec![sandbox::Entry { path, stat }]),
        _ => {}
    }
    let folder = path.parent();
    let listed = match &folder {
        _ if ends_in_slash => Vec::new(),
        Some(folder) if !context.overlay.exists(folder)? => Vec::new(),
        folder => all(folder.as_ref(), context)?,
    };
    let begins = |entry: &sandbox::Entry| entry.path.as_str().starts_with(path.as_str());
    let found: Vec<sandbox::Entry> = listed.into_iter().filter(begins).collect();
    match found.is_empty() {
        true => {
            let near = context.missing(&path);
            let error =
                Error::new(ErrorKind::NotFound, "no folder has this path, and no path begins with it").at(&path);
            Err(near.remedy().map_or(error.clone(), |remedy| error.with_remedy(remedy)))
        }
        false => Ok(found),
    }
}

fn item(entry: &sandbox::Entry, context: &Context<'_, '_>) -> Item {
    // The list can be older than the current state of the file.
    let stat = context.overlay.stat(&entry.path).ok().flatten().unwrap_or(entry.stat);
    let is_file = stat.kind == EntryKind::File;
    // A file that cannot be read is listed without an etag.
    let content = if is_file && stat.size <= MAX_HASHED_BYTES { context.overlay.read(&entry.path).ok() } else { None };
    let etag = content.map(|content| content.hash().etag());
    Item {
        kind: if is_file { "file" } else { "folder" },
        size_bytes: if is_file { stat.size } else { 0 },
        mtime_ms: stat.modified.map(locate::millis),
        etag,
        path: entry.path.to_string(),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct FolderArgs {
    /// The folder; default: the vault's root.
    #[schemars(extend("x-vault-path" = "or root"))]
    path: Option<PathArg>,
    /// Whether to list what is in its subfolders, too.
    #[serde(default)]
    recursive: bool,
    /// The most entries to return.
    #[serde(default = "number::<200>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many entries to skip.
    #[serde(default)]
    offset: usize,
}

/// What is in a folder.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Folder {
    /// Its folders.
    #[schemars(extend("x-vault-path" = true))]
    folders: Vec<String>,
    /// Its files.
    #[schemars(extend("x-vault-path" = true))]
    files: Vec<String>,
}

pub(in crate::tools) fn list_folder(args: FolderArgs, context: &mut Context<'_, '_>) -> Result<Folder> {
    // The slash selects the folder only, and not other paths with the same prefix.
    let prefix = args.path.map(|path| PathArg(format!("{}/", path.as_str().trim_end_matches('/'))));
    let of = Args { prefix, recursive: args.recursive, extensions: Vec::new(), limit: 0, offset: 0 };
    let mut entries = entries(&of, context)?;
    // Folders first, so that the first page shows where to continue.
    entries.sort_by_key(|entry| entry.stat.kind != EntryKind::Folder);
    let shown = page(entries, args.limit, args.offset, "entries are there", context);
    let (folders, files): (Vec<_>, Vec<_>) = shown.into_iter().partition(|entry| entry.stat.kind == EntryKind::Folder);
    let paths = |entries: Vec<sandbox::Entry>| entries.into_iter().map(|entry| entry.path.to_string()).collect();
    Ok(Folder { folders: paths(folders), files: paths(files) })
}
