//! `update_frontmatter`: properties of a note set or removed, all else kept byte for byte.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::edit::frontmatter;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::Risk;
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct UpdateFrontmatter;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
    /// Properties and their new values; null removes a property. Those that are not named stay.
    updates: Map<String, Value>,
}

impl Tool for UpdateFrontmatter {
    const NAME: &'static str = "update_frontmatter";
    const DESCRIPTION: &'static str = "Set or remove properties in a note's YAML frontmatter (tags, status, aliases \
        and so on) without touching its text, its other properties or their comments. A list replaces the whole \
        list: to add a tag, give all tags.";
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = String;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<String> {
        let path = locate::file(&args.path, context)?;
        if !path.is_markdown() {
            return Err(Error::new(ErrorKind::InvalidArguments, "only Markdown notes have frontmatter")
                .at(path)
                .remedy("name a .md file"));
        }
        let text = context.overlay.text(&path)?;
        let updated = frontmatter::update(&text, &args.updates).map_err(|error| error.at(&path))?;
        context.overlay.write(&path, updated)?;
        Ok(format!("Frontmatter updated for {path}: {}", Value::Object(args.updates)))
    }
}
