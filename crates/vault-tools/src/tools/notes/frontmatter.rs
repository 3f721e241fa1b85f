//! Sets and removes properties of a note, or items of one, and preserves everything else byte for byte:
//! `update_frontmatter`, `edit_list_property`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::edit::{self, frontmatter};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, properties_schema};
use crate::tools::shared::arguments::read_lists;
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The note.
    path: PathArg,
    /// Properties and their new values; null removes a property. Others stay.
    #[schemars(schema_with = "properties_schema")]
    updates: Map<String, Value>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// The result of an update.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct UpdatedNote {
    /// What was done.
    message: String,
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its new version.
    version: String,
}

pub(in crate::tools) fn update_frontmatter(mut args: Args, context: &mut Context<'_, '_>) -> Result<UpdatedNote> {
    let path = locate::markdown(&args.path, "only Markdown notes have frontmatter", context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    read_lists(&text, &mut args.updates, "/updates", context)?;
    let updated = frontmatter::update(&text, &args.updates).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, updated)?;
    Ok(UpdatedNote {
        message: format!("Frontmatter updated for {path}: {}", Value::Object(args.updates)),
        version: expected_version::of(&path, context)?,
        path: path.to_string(),
    })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct ListArgs {
    /// The note.
    path: PathArg,
    /// The property, such as aliases.
    #[schemars(length(min = 1))]
    property: String,
    /// Items to add at the end, unless they are in the list.
    #[serde(default)]
    add: Vec<Value>,
    /// Items to remove.
    #[serde(default)]
    remove: Vec<Value>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// The result of an edit of a list.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct EditedProperty {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The property.
    property: String,
    /// All items it has now.
    items: Vec<Value>,
    /// Those that were added; one that was there is not.
    added: Vec<Value>,
    /// Those that were removed.
    removed: Vec<Value>,
    /// The note's new version.
    version: String,
}

pub(in crate::tools) fn edit_list_property(args: ListArgs, context: &mut Context<'_, '_>) -> Result<EditedProperty> {
    if args.add.is_empty() && args.remove.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "nothing to add or to remove is given"));
    }
    let path = locate::markdown(&args.path, "only Markdown notes have frontmatter", context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let edited = edit::edit_list(&text, &args.property, &args.add, &args.remove).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, edited.text)?;
    Ok(EditedProperty {
        version: expected_version::of(&path, context)?,
        path: path.to_string(),
        property: args.property,
        items: edited.items,
        added: edited.added,
        removed: edited.removed,
    })
}
