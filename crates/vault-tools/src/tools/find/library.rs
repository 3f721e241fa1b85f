//! Questions about the vault as a whole: `list_tags`, `find_similar_notes`, `find_duplicates`, `query_notes`,
//! `list_templates`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vault_index::note::TagKey;
use vault_index::{DuplicateNotes, PropertyTest, Query, Sort};

use crate::edit::frontmatter;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::links::graph::{permits, say_if_changed};
use crate::tools::obsidian::templates::Templates;
use crate::tools::shared::arguments::{NoArgs, number, page};
use crate::tools::shared::known_notes::known_notes;
use crate::tools::shared::note_filter::NoteFilter;
use crate::tools::shared::ranked::ranked;
use crate::tools::shared::{excerpt, locate};

/// Characters of a preview.
const PREVIEW: usize = 200;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct TagsArgs {
    /// Only this tag and those nested below it.
    below: Option<String>,
    /// The most tags to return.
    #[serde(default = "number::<500>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many tags to skip.
    #[serde(default)]
    offset: usize,
}

/// A tag.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct ListedTag {
    /// As first seen, without `#`.
    tag: String,
    /// The notes that have it itself.
    notes: usize,
    /// The notes that have it, or one nested below it.
    nested: usize,
}

/// By name. Counted from the notes that may be shown.
pub(in crate::tools) fn list_tags(args: TagsArgs, context: &mut Context<'_, '_>) -> Result<Vec<ListedTag>> {
    let mut tags: BTreeMap<String, ListedTag> = BTreeMap::new();
    for note in known_notes(context)? {
        let mut counted = std::collections::BTreeSet::new();
        for shown in &note.tags {
            let key = TagKey::new(shown);
            for (end, _) in key.as_str().match_indices('/').chain([(key.as_str().len(), "")]) {
                let of = &key.as_str()[..end];
                let new = || ListedTag { tag: beginning(shown, of), notes: 0, nested: 0 };
                let tag = tags.entry(of.to_owned()).or_insert_with(new);
                tag.notes += usize::from(end == key.as_str().len());
                tag.nested += usize::from(counted.insert(of.to_owned()));
            }
        }
    }
    let below = args.below.as_deref().map(TagKey::new);
    let found = tags.into_iter().filter(|(key, _)| below.as_ref().is_none_or(|below| below.covers(&TagKey::new(key))));
    let found: Vec<ListedTag> = found.map(|(_, tag)| tag).collect();
    Ok(page(found, args.limit, args.offset, "tags are there", context))
}

/// The levels of a tag that its key has.
fn beginning(shown: &str, key: &str) -> String {
    shown.split('/').take(key.split('/').count()).collect::<Vec<_>>().join("/")
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct SimilarArgs {
    /// The note.
    path: PathArg,
    /// The most notes to return.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

/// A note like another one.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct SimilarNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its title.
    title: String,
    /// How much it is alike, 0 to 1.
    score: f32,
    /// The part that is most alike.
    preview: String,
}

pub(in crate::tools) fn find_similar_notes(
    args: SimilarArgs,
    context: &mut Context<'_, '_>,
) -> Result<Vec<SimilarNote>> {
    let (path, _) = locate::linked(&args.path, context)?;
    say_if_changed(context);
    let mut query = Query::default();
    query.like = Some(path.to_string());
    let (found, notices) = ranked(query, args.limit, context)?;
    notices.into_iter().for_each(|notice| context.overlay.notice(notice));
    let similar = found.into_iter().filter(|(found, _)| *found != path).map(|(path, hit)| SimilarNote {
        path: path.to_string(),
        title: hit.title,
        score: hit.score,
        preview: excerpt::beginning(&hit.text, PREVIEW),
    });
    Ok(similar.collect())
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct DuplicatesArgs {
    /// The least share of their text that two notes have in common, 0.1 to 1.
    #[serde(default = "most")]
    #[schemars(range(min = 0.1, max = 1.0))]
    least: f32,
    /// The most pairs to return.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many pairs to skip.
    #[serde(default)]
    offset: usize,
}

fn most() -> f32 {
    0.8
}

/// Two notes that say the same.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Duplicates {
    /// The one.
    #[schemars(extend("x-vault-path" = true))]
    first: String,
    /// The other.
    #[schemars(extend("x-vault-path" = true))]
    second: String,
    /// The share of their text that they have in common.
    share: f32,
}

pub(in crate::tools) fn find_duplicates(
    args: DuplicatesArgs,
    context: &mut Context<'_, '_>,
) -> Result<Vec<Duplicates>> {
    say_if_changed(context);
    let found = context.vault.index()?.duplicates(args.least)?.into_iter();
    let is_shown = |pair: &DuplicateNotes| permits(&pair.first, context) && permits(&pair.second, context);
    let shown = found.filter(is_shown).map(|pair| Duplicates {
        first: pair.first.to_string(),
        second: pair.second.to_string(),
        share: pair.share,
    });
    let shown: Vec<Duplicates> = shown.collect();
    Ok(page(shown, args.limit, args.offset, "pairs are alike", context))
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct QueryArgs {
    /// Conditions on properties, which all must hold: `status=done`, `rating>=4`, `due<2026-03`, `author`.
    #[serde(default)]
    properties: Vec<String>,
    /// Tags that a note must all have.
    #[serde(default)]
    tags: Vec<String>,
    /// Only notes in this folder, or whose path matches this glob.
    path: Option<String>,
    /// Only notes that were not changed for so many days.
    #[schemars(range(max = 100_000))]
    untouched_days: Option<u32>,
    /// The properties to return.
    #[serde(default)]
    show: Vec<String>,
    /// The order.
    #[serde(default)]
    sort: Order,
    /// The most notes to return.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many notes to skip.
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Path,
    Newest,
    Oldest,
}

/// A note that fits.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct QueriedNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its title.
    title: String,
    /// When it was last changed.
    modified: String,
    /// The properties that were asked for; null for one that it does not have.
    properties: Map<String, Value>,
}

pub(in crate::tools) fn query_notes(args: QueryArgs, context: &mut Context<'_, '_>) -> Result<Vec<QueriedNote>> {
    say_if_changed(context);
    let filter = NoteFilter { tags: args.tags, path: args.path, ..NoteFilter::default() };
    let mut filter = filter.for_index(context.now)?;
    for (number, test) in args.properties.iter().enumerate() {
        let test = test.parse::<PropertyTest>().map_err(|error| {
            Error::new(ErrorKind::InvalidArguments, error.to_string()).at(format!("/properties/{number}"))
        })?;
        filter.properties.push(test);
    }
    if let Some(days) = args.untouched_days {
        let before = context.now.checked_sub(jiff::Span::new().days(i64::from(days))).ok();
        filter.before = before.map(|moment| moment.timestamp());
    }
    if filter.is_empty() {
        // A query without any condition would be none.
        filter.add_path("**")?;
    }
    let mut query = Query::default().filter(filter).limit(usize::MAX);
    query.sort = if args.sort == Order::Path { Sort::Path } else { Sort::Modified };
    let (index, _) = context.vault.index_for_search()?;
    let mut found: Vec<(SafePath, vault_index::Hit)> = Vec::new();
    for hit in index.search(&query)?.results {
        if let Some(path) = SafePath::found(hit.path.clone()).filter(|path| context.permits(path)) {
            found.push((path, hit));
        }
    }
    if args.sort == Order::Oldest {
        found.reverse();
    }
    let found = page(found, args.limit, args.offset, "notes fit", context);
    let mut notes = Vec::with_capacity(found.len());
    for (path, hit) in found {
        context.cancel.check()?;
        let read = || frontmatter::properties(&context.overlay.text(&path).ok()?).ok();
        let has = if args.show.is_empty() { None } else { read() };
        let has = serde_json::to_value(has).unwrap_or_default();
        let value = |name: &String| (name.clone(), has.get(name).cloned().unwrap_or_default());
        notes.push(QueriedNote {
            path: path.to_string(),
            title: hit.title,
            modified: format!("{:.0}", hit.modified),
            properties: args.show.iter().map(value).collect(),
        });
    }
    Ok(notes)
}

/// A template.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Template {
    /// Its path: what create_from_template takes.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its name.
    name: String,
}

pub(in crate::tools) fn list_templates(_: NoArgs, context: &mut Context<'_, '_>) -> Result<Vec<Template>> {
    let templates = Templates::of(context.vault, context.now)?;
    let mut found = Vec::new();
    for folder in templates.folders() {
        let folder = context.path(&PathArg(folder.clone()))?;
        if !context.overlay.exists(&folder)? {
            context.overlay.notice(format!("the settings name the folder of templates {folder}, which is not there"));
            continue;
        }
        for entry in context.overlay.walk(Some(&folder))? {
            if entry.stat.kind == EntryKind::File && entry.path.is_markdown() && context.permits(&entry.path) {
                found.push(Template { name: entry.path.stem().to_owned(), path: entry.path.to_string() });
            }
        }
    }
    if templates.folders().is_empty() {
        context.overlay.notice("Obsidian's settings name no folder of templates; create_from_template takes any note");
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}
