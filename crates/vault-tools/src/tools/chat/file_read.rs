//! `file_read`: whole files; one that is missing is a result like the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Result};
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct FileRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The files, by their paths as vault_search gives them.
    #[serde(rename = "filePaths")]
    #[schemars(length(min = 1))]
    file_paths: Vec<PathArg>,
}

/// A file, or why it cannot be read.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileText {
    /// The path that was asked for.
    path: String,
    /// Its text, or what is wrong.
    content: String,
    /// Its size in bytes; 0 when it cannot be read.
    size: usize,
}

impl Tool for FileRead {
    const NAME: &'static str = "file_read";
    const DESCRIPTION: &'static str = "Read whole files by their paths, for example those that vault_search found. \
        The user chooses which of them are shared.";
    const TOOLSET: Toolset = Toolset::Chat;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Vec<FileText>;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Vec<FileText>> {
        let mut files = Vec::with_capacity(args.file_paths.len());
        for asked in args.file_paths {
            context.stop.check()?;
            let path = asked.to_string();
            let text = locate::file(&asked, context).and_then(|path| context.overlay.text(&path));
            files.push(match text {
                Ok(content) => FileText { size: content.len(), path, content },
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    FileText { content: format!("File not found: {path}"), path, size: 0 }
                }
                Err(error) => FileText { content: format!("Error reading file: {error}"), path, size: 0 },
            });
        }
        Ok(files)
    }
}
