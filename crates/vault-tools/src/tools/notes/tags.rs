//! Changes the tags of one note, or a tag in all notes: `edit_tags`, `rename_tag`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::WarningKind;
use vault_index::note::TagKey;

use crate::edit::{EditedTags, TagChanges, apply_edits, edit_tags, tag_renames};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{canvas_strings, edit_in_json};
use crate::sandbox::{Entry, EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::known_notes::notes_tagged;
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NoteArgs {
    /// The note.
    path: PathArg,
    /// Tags to add to its frontmatter, unless it has them.
    #[serde(default)]
    add: Vec<String>,
    /// Tags to remove. Nested tags stay: removing `project` keeps `project/garden`.
    #[serde(default)]
    remove: Vec<String>,
    /// Tags to rename, with those nested below them.
    #[serde(default)]
    rename: Vec<Rename>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Rename {
    /// What it is called now.
    from: String,
    /// Its new name.
    to: String,
}

/// The result of an edit of tags.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct TaggedNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// All tags it has now, without `#`.
    tags: Vec<String>,
    /// The tags that were added.
    added: Vec<String>,
    /// How many times a tag was removed.
    removed: usize,
    /// How many times a tag was renamed.
    renamed: usize,
    /// The note's new version.
    version: String,
}

pub(in crate::tools) fn of_note(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<TaggedNote> {
    if args.add.is_empty() && args.remove.is_empty() && args.rename.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "no tag to add, remove or rename is given"));
    }
    let path = locate::markdown(&args.path, "only the tags of Markdown notes can be edited", context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let rename = args.rename.into_iter().map(|rename| (rename.from, rename.to)).collect();
    let changes = TagChanges { add: args.add, remove: args.remove, rename };
    let edited = edit(&path, &changes, context)?;
    let note = locate::parsed(&path, &context.overlay.read(&path)?);
    Ok(TaggedNote {
        version: expected_version::of(&path, context)?,
        path: path.to_string(),
        tags: note.tags.into_iter().map(|tag| tag.shown).collect(),
        added: edited.added,
        removed: edited.removed,
        renamed: edited.renamed,
    })
}

fn edit(path: &SafePath, changes: &TagChanges, context: &mut Context<'_, '_>) -> Result<EditedTags> {
    let edited = edit_tags(&context.overlay.text(path)?, changes).map_err(|error| error.at(path))?;
    context.overlay.write(path, edited.text.as_str())?;
    Ok(edited)
}

/// Renames the tags in the texts of a canvas; returns the number of renamed occurrences.
fn edit_canvas(path: &SafePath, changes: &TagChanges, context: &mut Context<'_, '_>) -> Result<usize> {
    let text = context.overlay.text(path)?;
    let strings = canvas_strings(&text);
    if strings.is_empty() {
        return Err(Error::new(ErrorKind::Unsupported, "it is not a valid canvas").at(path));
    }
    let mut edits = Vec::new();
    for (value, string, _) in strings.into_iter().filter(|(_, _, is_text)| *is_text) {
        let renames = tag_renames(&value, changes)?;
        edits.extend(renames.iter().filter_map(|rename| edit_in_json(&text, &string, rename)));
    }
    edits.sort_by_key(|edit| edit.span.start);
    context.overlay.write(path, apply_edits(&text, &edits)?)?;
    Ok(edits.len())
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct VaultArgs {
    /// The tag as it is called now, with or without `#`.
    #[schemars(length(min = 1))]
    tag: String,
    /// Its new name.
    #[schemars(length(min = 1))]
    new_tag: String,
}

/// The result of renaming a tag.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct RenamedTag {
    /// The tag as it was called.
    tag: String,
    /// Its new name.
    new_tag: String,
    /// How many times it was renamed.
    renamed: usize,
    /// The notes that had it.
    #[schemars(extend("x-vault-path" = true))]
    notes_updated: Vec<String>,
    /// Notes that keep it.
    left_out: Vec<LeftOutNote>,
}

/// A note that could not be changed.
#[derive(Serialize, JsonSchema)]
struct LeftOutNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Why.
    reason: String,
}

pub(in crate::tools) fn of_vault(args: VaultArgs, context: &mut Context<'_, '_>) -> Result<RenamedTag> {
    let key = TagKey::new(&args.tag);
    let changes = TagChanges { rename: vec![(args.tag.clone(), args.new_tag.clone())], ..TagChanges::default() };
    // Checks the arguments, so that an invalid one is an error before any note is read.
    edit_tags("", &changes)?;
    let mut done = RenamedTag {
        tag: args.tag,
        new_tag: args.new_tag,
        renamed: 0,
        notes_updated: Vec::new(),
        left_out: Vec::new(),
    };
    // This notice is given whether or not there are such notes, so that it does not reveal whether there are.
    if !context.policy.permits_all_paths() {
        context.overlay.notice("notes that your settings deny are not checked, and keep the tag if they have it");
    }
    notice_if_some_are_excluded(context)?;
    let mut notes = tagged(&key, context)?;
    notes.extend(with_broken_frontmatter(context)?);
    notes.sort();
    notes.dedup();
    for path in notes {
        context.cancel.check()?;
        let renamed = match path.is_markdown() {
            true => edit(&path, &changes, context).map(|edited| edited.renamed),
            false => edit_canvas(&path, &changes, context),
        };
        match renamed {
            Ok(0) => {}
            Ok(count) => {
                done.renamed += count;
                done.notes_updated.push(path.to_string());
            }
            Err(error) => {
                context.overlay.notice(format!("{path} keeps #{}: {}", key.as_str(), error.message()));
                done.left_out.push(LeftOutNote { path: path.to_string(), reason: error.message().to_owned() });
            }
        }
    }
    let new = TagKey::new(&done.new_tag);
    let merged = match key.covers(&new) {
        true => 0,
        false => tagged(&new, context)?.iter().filter(|path| !done.notes_updated.contains(&path.to_string())).count(),
    };
    if done.notes_updated.is_empty() && done.left_out.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, format!("no note has the tag #{}", key.as_str()))
            .at("/tag")
            .with_remedy("search_by_tag finds the notes with a tag"));
    }
    if merged > 0 {
        let what = "have this tag already; afterwards only undo tells the two apart";
        context.overlay.notice(format!("#{}: {merged} more notes {what}", new.as_str()));
    }
    Ok(done)
}

/// Adds a notice about the number of notes that are not changed because the index excludes them.
fn notice_if_some_are_excluded(context: &mut Context<'_, '_>) -> Result<()> {
    let entries = context.overlay.walk(None)?;
    let listing = context.listing()?;
    let is_left_out = |entry: &&Entry| {
        let is_note = entry.stat.kind == EntryKind::File && !entry.stat.symlink && entry.path.is_markdown();
        is_note && context.permits(&entry.path) && !listing.has(entry)
    };
    let notes = entries.iter().filter(is_left_out).count();
    if notes > 0 {
        let what = "are not checked, and keep the tag if they have it";
        context.overlay.notice(format!("notes that are excluded from the index ({notes}) {what}"));
    }
    Ok(())
}

/// Returns the notes that have a tag, or one nested below it.
fn tagged(tag: &TagKey, context: &Context<'_, '_>) -> Result<Vec<SafePath>> {
    let mut notes = notes_tagged(std::slice::from_ref(tag), context)?;
    notes.retain(|note| note.tags.iter().any(|other| tag.covers(&TagKey::new(other))));
    Ok(notes.into_iter().map(|note| note.path).collect())
}

/// Returns the notes whose tags the index does not know because their frontmatter cannot be read.
fn with_broken_frontmatter(context: &Context<'_, '_>) -> Result<Vec<SafePath>> {
    let mut notes = Vec::new();
    for found in context.vault.index()?.warnings()? {
        let Ok(path) = SafePath::new(found.path.as_str()) else { continue };
        let may_hold_it =
            found.warning.kind == WarningKind::Frontmatter && path.is_markdown() && context.permits(&path);
        // If the overlay has moved a note away, another note can be at its path.
        if may_hold_it && context.overlay.exists(&path)? {
            notes.push(path);
        }
    }
    Ok(notes)
}
