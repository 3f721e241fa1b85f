//! `vault.writeFile`: a file's text replaced or added to, if it is still what the caller read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;
use crate::edit;
use crate::error::{Error, Result};
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The file; it is made if it is missing.
    path: PathArg,
    /// The text.
    content: String,
    /// Whether the text replaces what is there or goes behind it; overwrite unless told.
    #[serde(default)]
    mode: WriteMode,
    /// The etag of the content that is to be changed, as vault.listFiles or an earlier write gave it. If the file has
    /// another one by now, nothing is written and the error is CONFLICT.
    #[serde(default)]
    expected_etag: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    #[default]
    Overwrite,
    Append,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenFile {
    /// Where it lies.
    path: String,
    /// The hash of its content now.
    etag: String,
    /// When it was written, in milliseconds since 1970; null in a preview.
    mtime_ms: Option<i64>,
    /// Bytes of the given text.
    bytes_written: usize,
}

impl Tool for WriteFile {
    const NAME: &'static str = "vault.writeFile";
    const DESCRIPTION: &'static str = "Write a file as a whole, or add text at its end on a line of its own. With \
        expectedEtag only if nobody else changed it since.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = WrittenFile;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<WrittenFile> {
        let path = context.path(&args.path)?;
        let before = if context.overlay.exists(&path)? { Some(context.overlay.read(&path)?) } else { None };
        if let Some(expected) = &args.expected_etag {
            match &before {
                None => return Err(Error::conflict(&path, "expectedEtag is given, and there is no such file")),
                Some(content) if content.hash().etag() != *expected => {
                    return Err(Error::conflict(&path, "changed since expectedEtag was taken"));
                }
                Some(_) => {}
            }
        }
        let bytes_written = args.content.len();
        let content = match (args.mode, before) {
            (WriteMode::Append, Some(_)) => edit::append(&context.overlay.text(&path)?, &args.content),
            _ => args.content,
        };
        let content = Content::from(content);
        context.overlay.write(&path, content)?;
        Ok(WrittenFile {
            etag: context.overlay.read(&path)?.hash().etag(),
            mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
            bytes_written,
            path: path.to_string(),
        })
    }

    fn settle(&self, output: &mut Value, vault: &dyn View) {
        locate::settle(output, vault);
    }
}
