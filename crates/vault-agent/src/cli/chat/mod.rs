//! `vault-agent chat` and `resume`: a conversation in the terminal. Output is only appended to the screen.
//!
//! ```text
//! line ──> message ──> turn ──┬─ done ──> the next line
//!   └────> /command           └─ waits ──> panels ──> the turn goes on
//! ```

mod commands;
mod prompts;
mod completion;
mod input;
mod panel;
mod changes;
mod chat_loop;

use std::path::PathBuf;
use std::sync::Arc;

use agent_loop::RunUsage;
use clap::Args;
use vault_search::VaultArgs;
use vault_search::{CliResult, Outcome};
use vault_tools::Editor;

use crate::conversation::{Conversation, Offer, SessionInfo, Sessions};
use crate::model;
use crate::settings::{SettingArgs, Settings};
use crate::vectors;
use crate::workspace::{PolicyOverrides, Workspace};

use super::first_run::choose;
use super::screen::Screen;
use super::stop::Stop;
use chat_loop::ChatLoop;
use input::Input;

#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    /// The note that you are viewing, "this note" in messages
    #[arg(long, value_name = "NOTE")]
    pub note: Option<String>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// Its id, or the beginning of its id [default: the last one]
    pub session: Option<String>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

pub(super) fn chat(vault_args: &VaultArgs, args: &ChatArgs) -> CliResult {
    let workspace = Workspace::open(vault_args, PolicyOverrides::default())?;
    let editor = super::ask::editor_of(
        &workspace,
        &vault_search::tools::EditorArgs { active_file: args.note.clone(), ..Default::default() },
    )?;
    talk(workspace, editor, &args.settings, None)
}

pub(super) fn resume(vault_args: &VaultArgs, args: &ResumeArgs) -> CliResult {
    let saved = Sessions::of_user()?.find(args.session.as_deref())?;
    let vault: Vec<PathBuf> = match vault_args.vault.is_empty() {
        true => saved.vaults.clone(),
        false => vault_args.vault.clone(),
    };
    let workspace = Workspace::open(&VaultArgs { vault, index: vault_args.index.clone() }, PolicyOverrides::default())?;
    talk(workspace, Editor::default(), &args.settings, Some(saved))
}

fn talk(workspace: Workspace, editor: Editor, flags: &SettingArgs, saved: Option<SessionInfo>) -> CliResult {
    let mut settings = Settings::load(flags)?;
    let is_file = model::chosen_provider(&settings)?.is_some_and(|choice| choice.is_file());
    if settings.model.is_none() && !is_file {
        settings = choose(settings, &mut |question| input::ask(question, &Screen::new()))?;
    }
    let model = model::required(&settings)?;
    let runtime = super::runtime::runtime()?;
    let stop = Stop::install(runtime.handle())?;
    let workspace = Arc::new(workspace);
    let mut screen = Screen::new();
    screen.rings = settings.bell;
    let input = Input::open(&workspace, &screen)?;
    let is_saved = saved.is_some();
    let mut conversation = match saved {
        None => Conversation::begin(Arc::clone(&workspace), model, settings.clone(), editor.clone(), Offer::All)?,
        Some(saved) => {
            Conversation::resume(saved, Arc::clone(&workspace), model, settings.clone(), editor.clone(), Offer::All)?
        }
    };
    super::servers::add_servers(&mut conversation, &runtime, &mut screen)?;
    let open = Arc::clone(&workspace);
    let mut talk = ChatLoop {
        workspace,
        settings,
        editor,
        conversation,
        screen,
        input,
        stop,
        spent: RunUsage::default(),
        thoughts: String::new(),
        leaves: false,
    };
    let ended = talk.run(&runtime, is_saved);
    // A pending read of a line cannot be cancelled, and the process ends anyway.
    runtime.shutdown_background();
    vectors::go_on(open.vaults());
    ended.map(|()| Outcome::Done)
}
