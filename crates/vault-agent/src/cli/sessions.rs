//! `vault-agent sessions`: lists, searches, prints and deletes saved conversations.

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use vault_search::tools::declined;
use vault_search::{CliResult, ListArgs, Out, Outcome, can_ask, confirm, sanitize, sanitize_line};
use vault_tools::{Error, ErrorKind};

use crate::conversation::{SessionInfo, Sessions};

#[derive(Debug, Args)]
pub(super) struct SessionsArgs {
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List all conversations, the newest first; `sessions` alone does the same
    #[command(after_long_help = "Example:\n  vault-agent sessions list --json")]
    List(ListArgs),
    /// List the conversations that contain all of these words
    #[command(after_long_help = "Example:\n  vault-agent sessions search roses winter")]
    Search(SearchArgs),
    /// Print a conversation: questions, answers, sources
    #[command(
        visible_alias = "export",
        after_long_help = "Examples:\n  vault-agent sessions show 3f2a\n  vault-agent sessions show 3f2a > ~/Notes/Roses.md"
    )]
    Show(ShowArgs),
    /// Delete a conversation
    #[command(after_long_help = "Example:\n  vault-agent sessions delete 3f2a")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// The words
    #[arg(required = true)]
    pub words: Vec<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Its id, or the beginning of its id [default: the last one]
    pub session: Option<String>,
    /// Include everything that the tools returned
    #[arg(long)]
    pub full: bool,
}

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// Its id, or the beginning of its id
    pub session: String,
    /// Delete it without asking
    #[arg(long)]
    pub yes: bool,
}

pub(super) fn sessions(args: &SessionsArgs, out: &mut Out) -> CliResult {
    let sessions = Sessions::of_user()?;
    match &args.command {
        None => list(sessions.list()?, &args.list, out),
        Some(SessionsCommand::List(of)) => list(sessions.list()?, of, out),
        Some(SessionsCommand::Search(search)) => list(sessions.search(&search.words.join(" "))?, &search.list, out),
        Some(SessionsCommand::Show(show)) => {
            let text = sessions.export(&sessions.find(show.session.as_deref())?, show.full)?;
            // Control characters must not reach a terminal; a file gets the text unchanged.
            if out.paint.is_terminal() {
                out.text(&sanitize(&text))?
            } else {
                out.text(&text)?
            }
            Ok(Outcome::Done)
        }
        Some(SessionsCommand::Delete(delete)) => {
            let info = sessions.find(Some(&delete.session))?;
            let question = format!("Delete \"{}\"?", sanitize_line(&info.title));
            if !delete.yes {
                if !can_ask() {
                    let error = Error::new(ErrorKind::Denied, "deleting a conversation needs your approval");
                    return Err(error.with_remedy("add --yes").into());
                }
                if !confirm(&question) {
                    return Err(declined().into());
                }
            }
            sessions.delete(&info)?;
            out.line(&format!("deleted {}", info.id))?;
            Ok(Outcome::Done)
        }
    }
}

fn list(all: Vec<SessionInfo>, args: &ListArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.list_schema::<SessionInfo>(args);
    }
    out.list(args.format(), &all, |out, all| {
        all.iter().try_for_each(|info| {
            let waits = if info.waits { "  (waits for your decision)" } else { "" };
            let updated = info.updated.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
            out.line(&format!("{}  {updated}  {}{waits}", info.id, sanitize_line(&info.title)))
        })
    })
}
