//! `search_by_tag`: the notes that bear tags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::note::TagKey;

use crate::error::{Error, ErrorKind, Result};
use crate::policy::Risk;
use crate::tool::{Context, Tool};
use crate::tools::notes_known::{has_all, has_any, notes_tagged};

pub(super) struct SearchByTag;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The tags, with or without `#`; upper and lower case are alike, and `project` also finds `project/garden`.
    #[schemars(length(min = 1))]
    tags: Vec<String>,
    /// Whether a note must bear all of them or any.
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

/// A note that bears them.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tagged {
    /// The note.
    path: String,
    /// Its title.
    title: String,
    /// All of its tags, without `#`.
    tags: Vec<String>,
}

impl Tool for SearchByTag {
    const NAME: &'static str = "search_by_tag";
    const DESCRIPTION: &'static str = "List the notes that bear all (or any) of the given tags, in the order of \
        their paths. Exact and complete: choose it over search_notes when tags are what matters.";
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Vec<Tagged>;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Vec<Tagged>> {
        let keys: Vec<TagKey> = args.tags.iter().map(|tag| TagKey::new(tag)).collect();
        if let Some(empty) = keys.iter().position(|key| key.as_str().is_empty()) {
            return Err(Error::new(ErrorKind::InvalidArguments, "this names no tag")
                .at(format!("/tags/{empty}"))
                .remedy("write a tag's name, such as garden or garden/roses"));
        }
        let bears = |tags: &[String]| match args.matching {
            Match::All => has_all(tags, &keys),
            Match::Any => has_any(tags, &keys),
        };
        let mut found = Vec::new();
        for note in notes_tagged(&keys, context)?.into_iter().filter(|note| bears(&note.tags)) {
            context.stop.check()?;
            context.overlay.bind(&note.path);
            found.push(Tagged { path: note.path.to_string(), title: note.title, tags: note.tags });
        }
        Ok(found)
    }
}
