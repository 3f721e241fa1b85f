//! Lists the notes that match conditions on properties, tags, folder and age: `query_notes`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vault_index::{PropertyTest, Query, Sort};

use crate::edit::frontmatter;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::Context;
use crate::tools::links::graph::say_if_changed;
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::note_filter::NoteFilter;

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
        // A glob that matches every note, because a query needs a condition.
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
