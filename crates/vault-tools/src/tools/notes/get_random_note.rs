//! `get_random_note`: a note by chance; the same one again for the same seed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::Query;

use crate::error::{Error, ErrorKind, Result};
use crate::policy::Risk;
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, Tool};
use crate::tools::excerpt;
use crate::tools::locate::parsed;
use crate::tools::note_filter::NoteFilter;
use crate::tools::notes_known::known_notes;

/// Characters of an excerpt.
const EXCERPT: usize = 300;

pub(super) struct GetRandomNote;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Which notes count.
    #[serde(default)]
    filter: Option<NoteFilter>,
    /// The same number gives the same note for as long as the notes are the same.
    #[serde(default)]
    seed: Option<u64>,
}

/// A note by chance.
#[derive(Serialize, JsonSchema)]
pub(super) struct RandomNote {
    /// The note.
    path: String,
    /// Its title.
    title: String,
    /// How it begins.
    excerpt: String,
}

impl Tool for GetRandomNote {
    const NAME: &'static str = "get_random_note";
    const DESCRIPTION: &'static str = "Pick a note by chance, of all notes or of those that pass a filter, and show \
        how it begins. For rediscovering and for surprise.";
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = RandomNote;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<RandomNote> {
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
                Error::new(ErrorKind::NotFound, "no note passes the filter").remedy("ask for less, or leave it out")
            );
        }
        let seed = args.seed.unwrap_or_else(|| context.now.timestamp().as_nanosecond() as u64);
        let path = &notes[(scattered(seed) % notes.len() as u64) as usize];
        let note = parsed(path, &context.overlay.read(path)?)?;
        Ok(RandomNote {
            path: path.to_string(),
            title: note.title.text.clone(),
            excerpt: excerpt::beginning(note.slice(note.body.clone()), EXCERPT),
        })
    }
}

/// Neighbouring seeds give numbers far apart: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn scattered(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
