//! `vault.readFile`: the text of a file, or its beginning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The file.
    path: PathArg,
    /// How many bytes at most; all unless told. It is cut between characters.
    #[serde(default)]
    #[schemars(range(min = 1))]
    max_bytes: Option<usize>,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileText {
    /// Where it lies.
    path: String,
    /// Its text.
    content: String,
    /// When it was last changed, in milliseconds since 1970; null for what is not yet written.
    mtime_ms: Option<i64>,
    /// Whether there is more of it.
    truncated: bool,
}

impl Tool for ReadFile {
    const NAME: &'static str = "vault.readFile";
    const DESCRIPTION: &'static str = "Read the text of a file, or no more than maxBytes of it.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = FileText;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<FileText> {
        let path = locate::file(&args.path, context)?;
        let mut content = context.overlay.text(&path)?;
        let whole = content.len();
        if let Some(most) = args.max_bytes.filter(|most| *most < whole) {
            content.truncate(content.floor_char_boundary(most));
        }
        Ok(FileText {
            truncated: content.len() < whole,
            mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
            path: path.to_string(),
            content,
        })
    }

    fn settle(&self, output: &mut Value, vault: &dyn View) {
        locate::settle(output, vault);
    }
}
