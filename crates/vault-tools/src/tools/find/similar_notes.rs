//! Lists notes that are similar to a note, and pairs of duplicates: `find_similar_notes`, `find_duplicates`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::{DuplicateNotes, Query};

use crate::error::Result;
use crate::tool::{Context, PathArg};
use crate::tools::links::graph::{permits, say_if_changed};
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::ranked::ranked;
use crate::tools::shared::{excerpt, locate};

/// The number of characters of a preview.
const PREVIEW: usize = 200;

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
