//! Lists the notes with given tags: `search_by_tag`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::note::TagKey;

use super::known_notes::{has_all, has_any, notes_tagged};
use crate::error::{Error, ErrorKind, Result};
use crate::tool::Context;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The tags, with or without `#`; case is ignored, and `project` also finds `project/garden`.
    #[schemars(length(min = 1))]
    tags: Vec<String>,
    /// Whether a note must have all of them or any.
    #[serde(default, rename = "match")]
    matching: Match,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Match {
    #[default]
    All,
    Any,
}

/// A note with these tags.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaggedNote {
    /// The note.
    path: String,
    /// Its title.
    title: String,
    /// All of its tags, without `#`.
    tags: Vec<String>,
}

pub(super) fn search_by_tag(args: Args, context: &mut Context<'_, '_>) -> Result<Vec<TaggedNote>> {
    let keys: Vec<TagKey> = args.tags.iter().map(|tag| TagKey::new(tag)).collect();
    if let Some(empty) = keys.iter().position(|key| key.as_str().is_empty()) {
        return Err(Error::new(ErrorKind::InvalidArguments, "this is not a tag")
            .at(format!("/tags/{empty}"))
            .with_remedy("write a tag's name, such as garden or garden/roses"));
    }
    let matches = |tags: &[String]| match args.matching {
        Match::All => has_all(tags, &keys),
        Match::Any => has_any(tags, &keys),
    };
    let mut found = Vec::new();
    for note in notes_tagged(&keys, context)?.into_iter().filter(|note| matches(&note.tags)) {
        context.cancel.check()?;
        context.overlay.bind(&note.path);
        found.push(TaggedNote { path: note.path.to_string(), title: note.title, tags: note.tags });
    }
    Ok(found)
}
