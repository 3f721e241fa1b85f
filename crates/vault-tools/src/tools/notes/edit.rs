//! Replaces passages of a note, or all equal ones: `edit_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::write::write;
use crate::edit;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::View;
use crate::tool::{Context, PathArg};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The note.
    path: PathArg,
    /// The text to replace, exactly as it is in the note; it must occur once, or all must be true.
    #[schemars(length(min = 1))]
    old_text: Option<String>,
    /// The new text; empty to remove the passage.
    new_text: Option<String>,
    /// In place of old_text and new_text: several of them, replaced in turn, all or none.
    #[serde(default)]
    edits: Vec<Edit>,
    /// Whether to replace every occurrence.
    #[serde(default)]
    all: bool,
    /// With `similar`, quotes, dashes, spaces and blanks at the ends of lines may differ.
    #[serde(default)]
    r#match: edit::Match,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
    /// Whether the frontmatter may become unreadable.
    #[serde(default)]
    allow_broken_frontmatter: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// The text to replace.
    #[schemars(length(min = 1))]
    old_text: String,
    /// The new text.
    new_text: String,
}

/// The result of an edit.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct EditedPassage {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The first line of the new text, from 1.
    first_line: u32,
    /// Its last line; the first line if the new text is empty. Of several, the last line of the last one.
    last_line: u32,
    /// How many passages were replaced.
    count: usize,
    /// The old text as it was given; null for several edits.
    replaced: Option<String>,
    /// The new text; null for several edits.
    replaced_by: Option<String>,
    /// The note's new version.
    version: String,
}

pub(in crate::tools) fn edit_note(mut args: Args, context: &mut Context<'_, '_>) -> Result<EditedPassage> {
    let path = locate::file(&args.path, context)?;
    let (edits, is_one) = edits(&mut args)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let mut text = context.overlay.text(&path)?;
    let (mut first_line, mut last_line, mut count) = (u32::MAX, 0, 0);
    let replace = if args.all { edit::replace_all } else { edit::replace_once };
    for (number, edit) in edits.iter().enumerate() {
        let edited = replace(&text, &edit.old_text, &edit.new_text, args.r#match).map_err(|error| match is_one {
            true => error.at(&path),
            false => error.within(format!("edit {}", number + 1)).at(&path),
        })?;
        (first_line, last_line) = (first_line.min(edited.first_line), last_line.max(edited.last_line));
        count += edited.count;
        text = edited.text;
    }
    write(&path, text, ("allow_broken_frontmatter", args.allow_broken_frontmatter), context)?;
    let only = edits.into_iter().next().filter(|_| is_one);
    let (replaced, replaced_by) = only.map(|edit| (edit.old_text, edit.new_text)).unzip();
    let version = expected_version::of(&path, context)?;
    Ok(EditedPassage { version, path: path.to_string(), first_line, last_line, count, replaced, replaced_by })
}

/// Returns the edits of a call, and whether it is a single one that was not given as a list.
fn edits(args: &mut Args) -> Result<(Vec<Edit>, bool)> {
    let wrong = |what: &str| Error::new(ErrorKind::InvalidArguments, what);
    let given = (args.old_text.take(), args.new_text.take(), std::mem::take(&mut args.edits));
    let (edits, is_one) = match given {
        (Some(old_text), Some(new_text), several) if several.is_empty() => (vec![Edit { old_text, new_text }], true),
        (None, None, several) if !several.is_empty() => (several, false),
        (None, None, _) => return Err(wrong("old_text and new_text are missing").at("/old_text")),
        (Some(_), None, several) if several.is_empty() => return Err(wrong("new_text is missing").at("/new_text")),
        (None, Some(_), several) if several.is_empty() => return Err(wrong("old_text is missing").at("/old_text")),
        _ => return Err(wrong("edits and old_text exclude each other").with_remedy("give one of them")),
    };
    match edits.iter().any(|edit| edit.old_text == edit.new_text) {
        true => Err(wrong("old_text and new_text are the same").at("/new_text")),
        false => Ok((edits, is_one)),
    }
}
