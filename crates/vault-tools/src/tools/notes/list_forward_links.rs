//! `list_forward_links`: the links that a note has, and where they lead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::VaultPath;

use crate::error::Result;
use crate::policy::Risk;
use crate::sandbox::SafePath;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::links::{kind_name, links_of};
use crate::tools::locate;

pub(super) struct ListForwardLinks;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
}

/// A link of the note.
#[derive(Serialize, JsonSchema)]
pub(super) struct ForwardLink {
    /// The file it leads to; null when there is none yet, or none that may be read.
    target_path: Option<String>,
    /// What it names, as written.
    target: String,
    /// The words it shows.
    link_text: String,
    /// `wikilink`, `markdown` or `embed`.
    link_type: &'static str,
    /// The line it stands on, from 1.
    line: u32,
}

impl Tool for ListForwardLinks {
    const NAME: &'static str = "list_forward_links";
    const DESCRIPTION: &'static str = "List the links a note has, in its order, with the file each leads to (null \
        when no such file is there yet). Choose it to follow a note's references.";
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Vec<ForwardLink>;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Vec<ForwardLink>> {
        let path = locate::file(&args.path, context)?;
        let may_be_named =
            |target: &VaultPath| SafePath::new(target.as_str()).is_ok_and(|target| context.permits(&target));
        let links = links_of(&path, context)?.into_iter().map(|link| ForwardLink {
            target_path: link.target.filter(|target| may_be_named(target)).map(|target| target.to_string()),
            target: link.points_at,
            link_text: link.text,
            link_type: kind_name(link.kind),
            line: link.line,
        });
        Ok(links.collect())
    }
}
