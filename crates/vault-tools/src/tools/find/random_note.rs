//! Picks a note at random; the same seed picks the same note: `get_random_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::Query;

use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::Context;
use crate::tools::shared::excerpt;
use crate::tools::shared::known_notes::known_notes;
use crate::tools::shared::locate::parsed;
use crate::tools::shared::note_filter::{NoteFilter, filter_of_search};

/// The number of characters of an excerpt.
const EXCERPT: usize = 300;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// Which notes to pick from.
    #[serde(default)]
    #[schemars(schema_with = "filter_of_search")]
    filter: Option<NoteFilter>,
    /// The same number picks the same note as long as the notes do not change.
    seed: Option<u64>,
}

/// A random note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct RandomNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its title.
    title: String,
    /// How it begins.
    excerpt: String,
}

pub(in crate::tools) fn get_random_note(args: Args, context: &mut Context<'_, '_>) -> Result<RandomNote> {
    let mut notes: Vec<SafePath> = known_notes(context)?.into_iter().map(|note| note.path).collect();
    let filter = args.filter.unwrap_or_default();
    if !filter.is_empty() {
        let query = Query::default().filter(filter.for_index(context.now)?).limit(usize::MAX);
        let hits = context.vault.index()?.search(&query)?;
        let passing: std::collections::HashSet<String> =
            hits.results.into_iter().map(|hit| hit.path.to_string()).collect();
        notes.retain(|note| passing.contains(note.as_str()));
    }
    if notes.is_empty() {
        return Err(
            Error::new(ErrorKind::NotFound, "no note passes the filter").with_remedy("use a weaker filter, or none")
        );
    }
    let seed = args.seed.unwrap_or_else(|| context.now.timestamp().as_nanosecond() as u64);
    let path = &notes[(mixed_bits(seed) % notes.len() as u64) as usize];
    let note = parsed(path, &context.overlay.read(path)?);
    Ok(RandomNote {
        path: path.to_string(),
        title: note.title.text.clone(),
        excerpt: excerpt::beginning(note.slice(note.body.clone()), EXCERPT),
    })
}

/// Mixes the bits, so that neighbouring seeds give unrelated results: the finalizer of SplitMix64 (Steele, Lea and
/// Flood 2014).
fn mixed_bits(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
