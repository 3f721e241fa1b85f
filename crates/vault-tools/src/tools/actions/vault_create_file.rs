//! `vault.createFile`: a new file, with frontmatter if it is given.
//!
//! A path that is taken is an error unless the caller says otherwise: `ifNotExists` is not on by default, since then
//! two items of a loop that give the same path would be one file, and nobody would be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::edit::frontmatter;
use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::collision::{Collision, free, taken};
use crate::tools::locate;

pub(super) struct CreateFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Where it is to lie, ending included; folders that are missing are made.
    path: PathArg,
    /// Its text.
    content: String,
    /// With true, a file that is there already is left as it is, and `created` is false. Where collisionStrategy is
    /// given, that decides.
    #[serde(default)]
    if_not_exists: Option<bool>,
    /// What happens when the path is taken; error unless told.
    #[serde(default)]
    collision_strategy: Option<Collision>,
    /// Properties to begin the file with, as YAML frontmatter.
    #[serde(default)]
    frontmatter: Option<Map<String, Value>>,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created {
    /// Where it lies: with create-unique perhaps elsewhere than asked.
    path: String,
    /// Whether it was made now.
    created: bool,
    /// When it was written, in milliseconds since 1970; null in a preview.
    mtime_ms: Option<i64>,
}

impl Tool for CreateFile {
    const NAME: &'static str = "vault.createFile";
    const DESCRIPTION: &'static str = "Make a new file with the given text and, if wanted, frontmatter. A path that is \
        taken is an error unless collisionStrategy or ifNotExists says otherwise. The path needs its ending: .md for a \
        note.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = Created;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Created> {
        let mut path = context.path(&args.path)?;
        let content = match &args.frontmatter {
            Some(properties) if !properties.is_empty() => frontmatter::compose(properties, &args.content)?,
            _ => args.content,
        };
        let strategy = args.collision_strategy;
        let mut created = true;
        if strategy == Some(Collision::CreateUnique) {
            path = free(&path, context.overlay)?;
            context.overlay.create(&path, content)?;
        } else if context.overlay.exists(&path)? {
            match (strategy, args.if_not_exists) {
                (Some(Collision::Overwrite), _) => {
                    context.overlay.write(&path, content)?;
                    created = false;
                }
                (None, Some(true)) => created = false,
                _ => return Err(taken(&path)),
            }
        } else {
            context.overlay.create(&path, content)?;
        }
        Ok(Created { path: path.to_string(), created, mtime_ms: locate::mtime_ms(&path, &*context.overlay)? })
    }

    fn settle(&self, output: &mut Value, vault: &dyn View) {
        locate::settle(output, vault);
    }
}
