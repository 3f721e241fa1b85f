//! Merges two notes and redirects links to the remaining one: `merge_notes`.

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit;
use crate::error::{Error, ErrorKind, Result};
use crate::overlay::JoinedText;
use crate::sandbox::SafePath;
use crate::tool::{Context, PathArg};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The note that is merged; it goes to the trash.
    path: PathArg,
    /// The note that is left.
    into: PathArg,
    /// The section at whose end the text is added, which is created if missing; default: the end of the note.
    heading: Option<String>,
    /// The version that read_note gave of the merged note: if it has changed since, nothing is done.
    expected_version: Option<String>,
    /// The same of the note that is left.
    expected_into_version: Option<String>,
}

/// The result of a merge.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct MergedNotes {
    /// The note that was merged.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The note that is left.
    #[schemars(extend("x-vault-path" = true))]
    into: String,
    /// Where the merged note is now: a path in `.trash`, or `the system's trash`.
    #[schemars(extend("x-vault-path" = true))]
    trashed_to: Option<String>,
    /// The number of rewritten links.
    links_updated: usize,
    /// The notes that contain them.
    #[schemars(extend("x-vault-path" = true))]
    notes_updated: Vec<String>,
    /// Properties of the merged note that were dropped, since the other had another value.
    dropped_properties: Vec<String>,
    /// The new version of the note that is left.
    version: String,
}

pub(in crate::tools) fn merge_notes(args: Args, context: &mut Context<'_, '_>) -> Result<MergedNotes> {
    let from = note(&args.path, context)?;
    let into = note(&args.into, context)?;
    if from == into {
        return Err(Error::new(ErrorKind::InvalidArguments, "a note cannot be merged into itself").at("/into"));
    }
    expected_version::require(args.expected_version.as_deref(), &from, context)?;
    expected_version::require(args.expected_into_version.as_deref(), &into, context)?;
    let heading = args.heading.as_deref().map(str::trim).filter(|heading| !heading.is_empty());
    let odd = RefCell::default();
    let join = |other: &str, text: &str| {
        edit::frontmatter::properties(other).map_err(|error| error.at(&from))?;
        let merged = edit::merge(text, other, heading).map_err(|error| error.at(&into))?;
        odd.replace((merged.dropped, merged.footnotes));
        Ok(JoinedText { text: merged.text, added: merged.added })
    };
    let mode = context.deletion();
    let carried = context.overlay.merge(&from, &into, mode, &join)?;
    let (dropped, footnotes): (Vec<_>, Vec<_>) = odd.into_inner();
    for (key, value) in &dropped {
        context.overlay.notice(format!("{into} keeps its {key}; that of {from} is dropped: {value}"));
    }
    if !footnotes.is_empty() {
        let labels = footnotes.join("], [^");
        context.overlay.notice(format!("both notes define [^{labels}], so {into} shows one text for both"));
    }
    let mut notes_updated: Vec<String> = carried.rewritten.iter().map(|link| link.path.to_string()).collect();
    notes_updated.sort();
    notes_updated.dedup();
    Ok(MergedNotes {
        version: expected_version::of(&into, context)?,
        path: from.to_string(),
        into: into.to_string(),
        trashed_to: carried.trashed_to,
        links_updated: carried.rewritten.len(),
        notes_updated,
        dropped_properties: dropped.into_iter().map(|(key, _)| key).collect(),
    })
}

/// Returns a note that is not a symbolic link.
fn note(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = locate::markdown(path, "only Markdown notes can be merged", context)?;
    match context.overlay.real(&path)? {
        real if real == path => Ok(path),
        real => Err(Error::new(ErrorKind::Refused, "is a symbolic link")
            .at(path)
            .with_remedy(format!("name the note that it leads to: {real}"))),
    }
}
