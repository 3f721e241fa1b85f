//! Lists the notes with given tags: `search_by_tag`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::note::TagKey;

use crate::error::{Error, ErrorKind, Result};
use crate::tool::Context;
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::known_notes::{KnownNote, notes_tagged};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The tags, with or without `#`; case is ignored, and `project` also finds `project/garden`.
    #[schemars(length(min = 1))]
    tags: Vec<String>,
    /// Whether a note must have all of them or any.
    #[serde(default, rename = "match")]
    matching: Match,
    /// The most notes to return.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many notes to skip.
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Match {
    #[default]
    All,
    Any,
}

pub(in crate::tools) fn search_by_tag(args: Args, context: &mut Context<'_, '_>) -> Result<Vec<KnownNote>> {
    let keys: Vec<TagKey> = args.tags.iter().map(|tag| TagKey::new(tag)).collect();
    if let Some(empty) = keys.iter().position(|key| key.as_str().is_empty()) {
        return Err(Error::new(ErrorKind::InvalidArguments, "this is not a tag")
            .at(format!("/tags/{empty}"))
            .with_remedy("write a tag's name, such as garden or garden/roses"));
    }
    let matches = |tags: &[String]| {
        let has = |asked: &TagKey| tags.iter().any(|tag| asked.covers(&TagKey::new(tag)));
        match args.matching {
            Match::All => keys.iter().all(has),
            Match::Any => keys.iter().any(has),
        }
    };
    let mut notes = notes_tagged(&keys, context)?;
    notes.retain(|note| matches(&note.tags));
    let notes = page(notes, args.limit, args.offset, "notes have these tags", context);
    for note in &notes {
        context.cancel.check()?;
        context.overlay.bind(&note.path);
    }
    Ok(notes)
}
