//! Lists links in the state of the overlay: `list_backlinks`, `list_forward_links`.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::links::{Names, resolve};
use vault_index::note::{parse, split_link};
use vault_index::{LinkKind, LinkRow, VaultPath};

use crate::error::{ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, FoundLink, PathArg};
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::known_notes::{changed_paths, files_at, is_among};
use crate::tools::shared::locate::{self, parsed};

/// Returns the links of a note, in order.
pub(in crate::tools) fn links_of(path: &SafePath, context: &Context<'_, '_>) -> Result<Vec<FoundLink>> {
    context.overlay.bind(path);
    // The index does not know the links of notes that it excludes.
    let known = if context.overlay.is_changed() { None } else { rows(context.vault.index()?.links(path.as_str(), 1))? };
    match known {
        Some(found) if !found.is_empty() => Ok(found),
        _ if !path.is_note() || parsed(path, &context.overlay.read(path)?).links.is_empty() => Ok(Vec::new()),
        _ => links_in(path, context.names()?, context),
    }
}

/// Returns the links to a file, by source and line. Links from notes that the index excludes are unknown.
pub(in crate::tools) fn links_to(path: &SafePath, context: &Context<'_, '_>) -> Result<Vec<FoundLink>> {
    let known =
        if context.overlay.is_changed() { None } else { rows(context.vault.index()?.backlinks(path.as_str(), 1))? };
    let found = match known {
        Some(found) => found,
        None => {
            let all = context.cache.links(|| links_by_target(context))?;
            all.get(&Some(path.vault_path().clone())).cloned().unwrap_or_default()
        }
    };
    let mut permitted = Vec::with_capacity(found.len());
    for link in found {
        let Some(source) = SafePath::found(link.source.clone()) else { continue };
        if context.permits(&source) {
            context.overlay.bind(&source);
            permitted.push(link);
        }
    }
    Ok(permitted)
}

/// Returns all links by target, for an overlay with changes. Each link is resolved again, because names may have
/// changed. Broken links have the target `None`.
pub(in crate::tools) fn links_by_target(
    context: &Context<'_, '_>,
) -> Result<HashMap<Option<VaultPath>, Vec<FoundLink>>> {
    let names = context.names()?;
    let changed = changed_paths(context.overlay);
    let mut found: HashMap<Option<VaultPath>, Vec<FoundLink>> = HashMap::new();
    context.vault.index()?.all_links(&mut |mut row| {
        let is_current = SafePath::found(row.source.clone()).is_some_and(|source| !is_among(&changed, &source));
        if is_current {
            row.target = resolve(names, &row.path, &row.source).target.and_then(|id| names.path(id)).cloned();
            let link = of_row(row);
            found.entry(link.target.clone()).or_default().push(link);
        }
        Ok(())
    })?;
    let listing = context.listing()?;
    for changed in &changed {
        let notes = files_at(changed, context.overlay)?.into_iter().filter(SafePath::is_note);
        for note in notes.filter(|note| listing.has_file(note)) {
            for link in links_in(&note, names, context)? {
                found.entry(link.target.clone()).or_default().push(link);
            }
        }
    }
    for links in found.values_mut() {
        links.sort_by(|a, b| (&a.source, a.line).cmp(&(&b.source, b.line)));
        links.dedup();
    }
    Ok(found)
}

fn links_in(path: &SafePath, names: &Names, context: &Context<'_, '_>) -> Result<Vec<FoundLink>> {
    let note = parse(path.vault_path(), context.overlay.read(path)?.bytes(), &context.vault.sandbox().parse_options());
    let source = path.vault_path();
    let found = note.links.into_iter().map(|link| {
        let points_at = points_at(&link.path, link.subpath.as_deref());
        FoundLink {
            source: source.clone(),
            target: resolve(names, &link.path, source).target.and_then(|id| names.path(id)).cloned(),
            kind: link.kind,
            line: link.line,
            text: shown(&link.raw, &points_at),
            points_at,
        }
    });
    Ok(found.collect())
}

/// Converts rows of the index; returns `None` for a file that is not in the index.
fn rows(rows: vault_index::Result<Vec<LinkRow>>) -> Result<Option<Vec<FoundLink>>> {
    match rows.map_err(crate::error::Error::from) {
        Ok(rows) => Ok(Some(rows.into_iter().map(of_row).collect())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_row(row: LinkRow) -> FoundLink {
    let points_at = points_at(&row.path, row.subpath.as_deref());
    let text = shown(&row.raw, &points_at);
    FoundLink { source: row.source, target: row.target, kind: row.kind, line: row.line, points_at, text }
}

/// Returns the visible text of a link, from its source; `points_at` if it has no text.
fn shown(raw: &str, points_at: &str) -> String {
    let bare = raw.strip_prefix('!').unwrap_or(raw);
    if let Some(inner) = bare.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
        return split_link(inner)
            .display
            .unwrap_or_else(|| inner.split('|').next().unwrap_or(inner).trim().to_string());
    }
    let text = bare.strip_prefix('[').and_then(|rest| rest.rsplit_once("](").or_else(|| rest.split_once(']')));
    text.map(|(text, _)| text).filter(|text| !text.is_empty()).unwrap_or(points_at).to_string()
}

/// Returns the target of a link as written.
fn points_at(path: &str, subpath: Option<&str>) -> String {
    match subpath {
        Some(subpath) => format!("{path}#{subpath}"),
        None => path.to_string(),
    }
}

/// Returns the titles of the notes that contain links.
fn titles(links: &[FoundLink], context: &Context<'_, '_>) -> Result<HashMap<VaultPath, String>> {
    let mut titles = HashMap::new();
    if !context.overlay.is_changed() {
        let known = context.vault.index()?.notes_at(links.iter().map(|link| &link.source))?.into_iter();
        titles.extend(known.filter_map(|note| Some((VaultPath::new(&note.path)?, note.title))));
    }
    for link in links {
        titles.entry(link.source.clone()).or_insert_with_key(|path| {
            let read = || {
                let safe = SafePath::found(path.clone())?;
                let content = context.overlay.read(&safe).ok()?;
                Some(parsed(&safe, &content).title.text)
            };
            // The file's name, if the file cannot be read.
            read().unwrap_or_else(|| path.stem().to_string())
        });
    }
    Ok(titles)
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct LinksArgs {
    /// The note, or another file that is linked to; its path, or its name as in a link.
    path: PathArg,
    /// The most links to return.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many links to skip.
    #[serde(default)]
    offset: usize,
}

/// A link to the note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Backlink {
    /// The note that contains it.
    #[schemars(extend("x-vault-path" = true))]
    source_path: String,
    /// The title of that note.
    source_title: String,
    /// Its visible text.
    link_text: String,
    /// `wikilink`, `markdown` or `embed`.
    #[schemars(with = "String")]
    link_type: LinkKind,
    /// Its line, from 1.
    line: u32,
}

pub(in crate::tools) fn list_backlinks(args: LinksArgs, context: &mut Context<'_, '_>) -> Result<Vec<Backlink>> {
    let (path, _) = locate::linked(&args.path, context)?;
    let links = links_to(&path, context)?;
    let titles = titles(&links, context)?;
    let backlinks = links.into_iter().map(|link| Backlink {
        source_title: titles[&link.source].clone(),
        source_path: link.source.to_string(),
        link_text: link.text,
        link_type: link.kind,
        line: link.line,
    });
    let mut backlinks: Vec<Backlink> = backlinks.collect();
    backlinks.sort_by_cached_key(|link| (link.source_title.to_lowercase(), link.source_path.clone(), link.line));
    Ok(page(backlinks, args.limit, args.offset, &format!("links lead to {path}"), context))
}

/// A link of the note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct ForwardLink {
    /// The note that contains it.
    #[schemars(extend("x-vault-path" = true))]
    source_path: String,
    /// The file it leads to; null if that does not exist or may not be read.
    #[schemars(extend("x-vault-path" = true))]
    target_path: Option<String>,
    /// Its target as written.
    target: String,
    /// Its visible text.
    link_text: String,
    /// `wikilink`, `markdown` or `embed`.
    #[schemars(with = "String")]
    link_type: LinkKind,
    /// Its line, from 1.
    line: u32,
}

pub(in crate::tools) fn list_forward_links(args: LinksArgs, context: &mut Context<'_, '_>) -> Result<Vec<ForwardLink>> {
    let (path, _) = locate::linked(&args.path, context)?;
    let may_be_named =
        |target: &VaultPath| SafePath::found(target.clone()).is_some_and(|target| context.permits(&target));
    let links = links_of(&path, context)?.into_iter().map(|link| ForwardLink {
        source_path: path.to_string(),
        target_path: link.target.filter(|target| may_be_named(target)).map(|target| target.to_string()),
        target: link.points_at,
        link_text: link.text,
        link_type: link.kind,
        line: link.line,
    });
    let links: Vec<ForwardLink> = links.collect();
    Ok(page(links, args.limit, args.offset, &format!("links stand in {path}"), context))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_visible_text_of_a_link() {
        for (raw, expected) in [
            ("[[Note]]", "Note"),
            ("[[a/Note#Part|shown]]", "shown"),
            ("![[pic.png|200]]", "200"),
            ("[a (b)](c.md)", "a (b)"),
            ("[a][ref]", "a"),
            ("[](c.md)", "target"),
            ("c.md", "target"),
        ] {
            assert_eq!(shown(raw, "target"), expected, "{raw}");
        }
    }
}
