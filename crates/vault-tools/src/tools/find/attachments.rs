//! Lists attachments with the notes that use them, unused ones, and broken embeds: `list_attachments`.
//!
//! An attachment is unused if no link leads to it and its name occurs in the text of no note. The name counts because
//! HTML, a property or a script can use a file without a link.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::LinkKind;

use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{Entry, EntryKind, SafePath, View};
use crate::tool::{Context, FoundLink, PathArg};
use crate::tools::links::backlinks::links_by_target;
use crate::tools::obsidian::settings;
use crate::tools::shared::arguments::number;
use crate::tools::shared::locate;

/// The maximum memory in bytes of the regular expression that searches for names, which is enough for some ten thousand
/// names.
const MAX_REGEX_BYTES: usize = 200_000_000;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// Which attachments to list; broken lists none, only the embeds that lead nowhere.
    #[serde(default)]
    show: AttachmentFilter,
    /// Only those in this folder and below.
    folder: Option<PathArg>,
    /// Only those of this type.
    #[serde(rename = "type")]
    only: Option<Type>,
    /// The most entries of each list to return.
    #[serde(default = "number::<200>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many entries of each list to skip: next_offset of the previous page.
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AttachmentFilter {
    #[default]
    All,
    Unused,
    Broken,
}

/// By its extension, as Obsidian shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Type {
    Image,
    Audio,
    Video,
    Pdf,
    Other,
}

/// The attachments of a vault.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Attachments {
    /// How many there are, on all pages.
    count: usize,
    /// Their size together, in bytes.
    bytes: u64,
    /// A page of them, by path.
    attachments: Vec<Attachment>,
    /// How many embeds in the vault lead to no file.
    broken_count: usize,
    /// A page of those embeds.
    broken_embeds: Vec<BrokenEmbed>,
    /// The offset of the next page; null at the end of both lists.
    next_offset: Option<usize>,
    /// The folder that Obsidian is set to put new attachments in; `/` is the vault's root, and `./` at its beginning the
    /// folder of the note.
    new_go_to: String,
}

/// A file that is no note.
#[derive(Serialize, JsonSchema)]
struct Attachment {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its type: image, audio, video, pdf or other.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    of_type: Type,
    /// Its size in bytes.
    size: u64,
    /// The links that lead to it.
    used_by: Vec<Use>,
    /// If there is none: the notes in whose text its name stands. An unused attachment has neither.
    #[schemars(extend("x-vault-path" = true))]
    named_in: Vec<String>,
}

/// A link to an attachment.
#[derive(Serialize, JsonSchema)]
struct Use {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its line, from 1.
    line: u32,
    /// `embed`, or `wikilink` or `markdown` for a link that does not show it.
    #[schemars(with = "String")]
    link_type: LinkKind,
}

/// An embed that leads nowhere.
#[derive(Serialize, JsonSchema)]
struct BrokenEmbed {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its line, from 1.
    line: u32,
    /// The file that is not there, as written.
    target: String,
}

pub(in crate::tools) fn list_attachments(args: Args, context: &mut Context<'_, '_>) -> Result<Attachments> {
    if !context.policy.permits_all_paths() {
        context
            .overlay
            .notice("links in notes that your settings deny are not checked and may use attachments listed as unused");
    }
    let files = if args.show == AttachmentFilter::Broken { Vec::new() } else { files(&args, context)? };
    let links = context.cache.links(|| links_by_target(context))?;
    let is_shown = |link: &&FoundLink| SafePath::found(link.source.clone()).is_some_and(|path| context.permits(&path));
    let uses = |path: &SafePath| -> Vec<Use> {
        let links = links.get(&Some(path.vault_path().clone())).into_iter().flatten().filter(is_shown);
        links.map(|link| Use { path: link.source.to_string(), line: link.line, link_type: link.kind }).collect()
    };
    let mut found: Vec<Attachment> = Vec::new();
    for Entry { path, stat } in &files {
        let used_by = uses(path);
        if args.show == AttachmentFilter::All || used_by.is_empty() {
            found.push(Attachment {
                path: path.to_string(),
                of_type: type_of(path),
                size: stat.size,
                used_by,
                named_in: Vec::new(),
            });
        }
    }
    find_names(&mut found, context)?;
    if args.show == AttachmentFilter::Unused {
        found.retain(|attachment| attachment.named_in.is_empty());
    }
    let broken =
        broken_embeds(links.iter().flat_map(|(target, links)| links.iter().map(move |link| (target, link))), context);
    let end = args.offset.saturating_add(args.limit);
    let is_cut = end < found.len().max(broken.len());
    let (count, bytes, broken_count) =
        (found.len(), found.iter().map(|attachment| attachment.size).sum(), broken.len());
    let attachments = found.into_iter().skip(args.offset).take(args.limit).collect();
    let broken_embeds = broken.into_iter().skip(args.offset).take(args.limit).collect();
    if is_cut {
        context.overlay.notice(format!("the lists were cut at {} entries; offset {end} goes on", args.limit));
    }
    Ok(Attachments {
        count,
        bytes,
        attachments,
        broken_count,
        broken_embeds,
        next_offset: is_cut.then_some(end),
        new_go_to: folder_of_new(context)?,
    })
}

/// Returns the attachments that no note uses, by path, without files that have no extension, such as `LICENSE`, which
/// other programs use.
pub(in crate::tools) fn unused(context: &mut Context<'_, '_>) -> Result<Vec<String>> {
    let args = Args { show: AttachmentFilter::Unused, folder: None, only: None, limit: usize::MAX, offset: 0 };
    Ok(list_attachments(args, context)?
        .attachments
        .into_iter()
        .map(|attachment| attachment.path)
        .filter(|path| has_ending(path))
        .collect())
}

fn has_ending(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains('.'))
}

/// Returns the selected attachments, by path, without symbolic links and files that the index excludes.
fn files(args: &Args, context: &mut Context<'_, '_>) -> Result<Vec<Entry>> {
    let folder = args.folder.as_ref().filter(|folder| !matches!(folder.as_str().trim_matches('/'), "" | "."));
    let folder = folder.map(|folder| locate::existing(folder, context)).transpose()?;
    if let Some(folder) = &folder {
        context.notice_if_left_out(folder)?;
    }
    let listing = context.listing()?;
    let mut files = context.overlay.walk(folder.as_ref())?;
    files.retain(|entry| {
        let is_attachment = entry.stat.kind == EntryKind::File && !entry.stat.symlink && !is_document(&entry.path);
        is_attachment && args.only.is_none_or(|only| only == type_of(&entry.path)) && listing.has(entry)
    });
    Ok(files)
}

/// Returns whether a file is a note or a base, which people open directly.
fn is_document(path: &SafePath) -> bool {
    path.is_note() || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("base"))
}

fn type_of(path: &SafePath) -> Type {
    match path.extension().unwrap_or_default().to_ascii_lowercase().as_str() {
        "avif" | "bmp" | "gif" | "jpeg" | "jpg" | "png" | "svg" | "webp" => Type::Image,
        "3gp" | "flac" | "m4a" | "mp3" | "ogg" | "opus" | "wav" => Type::Audio,
        "mkv" | "mov" | "mp4" | "ogv" | "webm" => Type::Video,
        "pdf" => Type::Pdf,
        _ => Type::Other,
    }
}

/// Finds the notes whose text contains the names of attachments without links, in any case, or percent-encoded.
fn find_names(attachments: &mut [Attachment], context: &mut Context<'_, '_>) -> Result<()> {
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, attachment) in attachments.iter().enumerate().filter(|(_, attachment)| attachment.used_by.is_empty()) {
        let name = attachment.path.rsplit('/').next().unwrap_or_default();
        for written in BTreeSet::from([name.to_lowercase(), name.replace(' ', "%20").to_lowercase()]) {
            by_name.entry(written).or_default().push(at);
        }
    }
    if by_name.is_empty() {
        return Ok(());
    }
    let names = any_of(by_name.keys())?;
    let notes = context.overlay.walk(None)?.into_iter().filter(|entry| entry.path.is_note() && !entry.stat.symlink);
    for Entry { path, .. } in notes.filter(|entry| entry.stat.kind == EntryKind::File) {
        context.cancel.check()?;
        if !context.permits(&path) {
            continue;
        }
        let content = match context.overlay.read(&path) {
            Ok(content) => content,
            Err(error) => {
                let what = "was not searched and may use attachments listed as unused";
                context.overlay.notice(format!("{path} {what}: {}", error.message()));
                continue;
            }
        };
        let text = String::from_utf8_lossy(content.bytes()).to_lowercase();
        let found: BTreeSet<&usize> = names.find_iter(&text).flat_map(|name| &by_name[name.as_str()]).collect();
        found.into_iter().for_each(|at| attachments[*at].named_in.push(path.to_string()));
    }
    Ok(())
}

/// Compiles a regular expression that finds any of the texts; if several begin at one place, the longest.
fn any_of<'t>(texts: impl Iterator<Item = &'t String>) -> Result<Regex> {
    let mut texts: Vec<&String> = texts.collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let pattern = texts.into_iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|");
    RegexBuilder::new(&pattern).size_limit(MAX_REGEX_BYTES).build().map_err(|_| {
        Error::new(ErrorKind::Unsupported, "there are too many attachments without links to search for their names")
            .with_remedy("name a folder or a type")
    })
}

/// Returns the embeds that lead to no file that may be shown, by note and line.
fn broken_embeds<'l>(
    links: impl Iterator<Item = (&'l Option<vault_index::VaultPath>, &'l FoundLink)>,
    context: &Context<'_, '_>,
) -> Vec<BrokenEmbed> {
    let permits =
        |path: &vault_index::VaultPath| SafePath::found(path.clone()).is_some_and(|path| context.permits(&path));
    let broken = links.filter(|(target, link)| {
        link.kind == LinkKind::Embed && !target.as_ref().is_some_and(permits) && permits(&link.source)
    });
    let mut broken: Vec<BrokenEmbed> = broken
        .map(|(_, link)| BrokenEmbed { path: link.source.to_string(), line: link.line, target: link.points_at.clone() })
        .collect();
    broken.sort_by(|a, b| (&a.path, a.line, &a.target).cmp(&(&b.path, b.line, &b.target)));
    broken
}

fn folder_of_new(context: &Context<'_, '_>) -> Result<String> {
    let settings = settings::read(context.vault, "app.json")?;
    Ok(match settings::text(&settings, "attachmentFolderPath") {
        "" => "/".to_owned(),
        folder => folder.to_owned(),
    })
}
