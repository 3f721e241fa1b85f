//! `workspace.openFile`: a file shown to the user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::host::Leaf;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Effect, PathArg, Tool};
use crate::tools::locate;

pub(super) struct OpenFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The file.
    path: PathArg,
    /// Whether in a tab of its own.
    #[serde(default)]
    new_leaf: bool,
}

/// What was shown.
#[derive(Serialize, JsonSchema)]
pub(super) struct Opened {
    /// The file; it is the active one for the steps that follow.
    path: String,
    /// Whether a program showed it.
    opened: bool,
}

impl Tool for OpenFile {
    const NAME: &'static str = "workspace.openFile";
    const DESCRIPTION: &'static str = "Show a file to the user and make it the active one.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Opened;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Opened> {
        let path = locate::file(&args.path, context)?;
        context.editor.show(&path, if args.new_leaf { Leaf::New } else { Leaf::Current });
        let opened = context.host.is_live();
        if opened {
            context.effects.push(Effect::Open { path: path.to_string(), new_leaf: args.new_leaf });
        }
        Ok(Opened { path: path.to_string(), opened })
    }

    fn effect_failed(&self, output: &mut Value, _: &Error) {
        output["opened"] = false.into();
    }
}
