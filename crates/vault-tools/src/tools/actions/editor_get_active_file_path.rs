//! `editor.getActiveFilePath`: the note that has the focus.

use schemars::JsonSchema;
use serde::Serialize;

use super::Nothing;
use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, Tool};

pub(super) struct GetActiveFilePath;

/// The active file.
#[derive(Serialize, JsonSchema)]
pub(super) struct Active {
    /// Where it lies; null when none is active.
    path: Option<String>,
    /// Whether it is there.
    exists: bool,
}

impl Tool for GetActiveFilePath {
    const NAME: &'static str = "editor.getActiveFilePath";
    const DESCRIPTION: &'static str = "Get the path of the file the user is in, and whether it is there.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Nothing;
    type Output = Active;

    fn call(&self, _: Nothing, context: &mut Context<'_, '_>) -> Result<Active> {
        let active = context.editor.active_file.clone();
        let exists = match &active {
            Some(path) => context.overlay.exists(path)?,
            None => false,
        };
        Ok(Active { path: active.map(|path| path.to_string()), exists })
    }
}
