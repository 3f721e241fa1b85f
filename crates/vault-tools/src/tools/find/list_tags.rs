//! Lists the tags of the vault with the number of notes that have each: `list_tags`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::note::TagKey;

use crate::error::Result;
use crate::tool::Context;
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::known_notes::known_notes;

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

/// Lists tags by name. Only the notes that may be shown are counted.
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

/// Returns as many levels of a tag as its key has.
fn beginning(shown: &str, key: &str) -> String {
    shown.split('/').take(key.split('/').count()).collect::<Vec<_>>().join("/")
}
