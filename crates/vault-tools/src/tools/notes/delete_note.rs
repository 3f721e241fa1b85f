//! `delete_note`: a note moved to the trash, the vault's or the system's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::Risk;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct DeleteNote;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// Where it was.
    path: String,
    /// Where it lies now: a path in `.trash`, or `the system's trash`.
    trashed_to: Option<String>,
    /// Links that lead nowhere now, in notes that may be read.
    dangling_links: Vec<Dangling>,
}

/// A link whose note is gone.
#[derive(Serialize, JsonSchema)]
struct Dangling {
    /// The note it stands in.
    path: String,
    /// Its line, from 1.
    line: u32,
    /// As written.
    link: String,
}

impl Tool for DeleteNote {
    const NAME: &'static str = "delete_note";
    const DESCRIPTION: &'static str = "Move a note to the trash, from which it can be taken back, and \
        say which links now lead nowhere. Only when the user asked for it.";
    const RISK: Risk = Risk::Delete;
    type Args = Args;
    type Output = Deleted;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Deleted> {
        let path = locate::file(&args.path, context)?;
        let deleted = context.overlay.delete(&path, context.deletion())?;
        // What is denied is not told of either.
        let dangling = deleted.dangling.into_iter().filter(|link| context.permits(&link.path));
        Ok(Deleted {
            path: path.to_string(),
            trashed_to: deleted.trashed_to,
            dangling_links: dangling
                .map(|link| Dangling { path: link.path.to_string(), line: link.line, link: link.raw })
                .collect(),
        })
    }
}
