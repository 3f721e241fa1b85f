//! What `forget` and `adopt` have in common in all commands: their options, the question, and the list of what went.

use std::path::PathBuf;

use clap::Args;

use crate::exit::{CliResult, Failure, Outcome};
use crate::output::Out;
use crate::sanitize::sanitize_line;
use crate::terminal::{can_ask, confirm};

/// The options of `forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// The options of `adopt`.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The folder the vault was in
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
}

/// Deletes files once a person agreed, and prints their paths.
///
/// # Errors
/// [`Failure::Refused`] with `refusal` when nobody agreed; what `delete` returns.
pub fn forget(
    args: &ForgetArgs,
    question: &str,
    refusal: &str,
    delete: impl FnOnce() -> CliResult<Vec<PathBuf>>,
    out: &mut Out,
) -> CliResult {
    if !(args.yes || can_ask() && confirm(question)) {
        return Err(Failure::Refused(refusal.to_string()));
    }
    for path in delete()? {
        out.line(&format!("deleted {}", sanitize_line(&path.to_string_lossy())))?;
    }
    Ok(Outcome::Done)
}
