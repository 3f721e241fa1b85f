//! `vault-agent plan`: has a model write a plan for an instruction, which is then shown, approved, run and saved as a
//! macro.

use agent_loop::{RunUsage, StopReason};
use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_search::VaultArgs;
use vault_search::tools::{ExecutionArgs, MacroCommand, MacroSaveArgs, run_macro, run_plan, with_toolbox};
use vault_search::{CliResult, Failure, Out, Outcome, ask, can_ask, note, sanitize, say};
use vault_tools::Toolbox;

use super::ask::cancel_on_signal;
use crate::call_line::spent_text;
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::loop_error::{retry_text, stop_text};
use crate::model;
use crate::plan_writer::{PlanReply, write};
use crate::settings::{Settings, WriterArgs};
use crate::workspace::{PolicyOverrides, Workspace};

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// The instruction, in words
    #[arg(required = true)]
    pub instruction: Vec<String>,
    /// Print the plan as JSON for `vault-tools plan run`, and run nothing
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub running: ExecutionArgs,
    #[command(flatten)]
    pub settings: WriterArgs,
}

pub(super) fn plan(vault_args: &VaultArgs, args: &PlanArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load(&args.settings.0)?;
    let model = model::required(&settings)?;
    let instruction = args.instruction.join(" ");
    // Compute vectors while the model writes, because the plan may search.
    let workspace = Workspace::open(vault_args, PolicyOverrides::default())?;
    let watching = IndexWatcher::start(workspace.vaults(), WatchNotices::Off);
    let outcome = with_toolbox(vault_args, &args.running.context, |toolbox| {
        let plan = match written(&instruction, toolbox, &model, &settings)? {
            Ok(plan) => plan,
            Err(answer) => {
                out.line(&sanitize(answer.trim()))?;
                out.flush()?;
                note("the model answered instead of writing a plan; nothing was done");
                return Ok(Outcome::Nothing);
            }
        };
        if args.print {
            out.json(&plan)?;
            return Ok(Outcome::Done);
        }
        run_plan(toolbox, &plan, &args.running, &[], out)
    });
    drop(watching);
    let outcome = outcome?;
    if !args.print && !args.running.dry_run && outcome == Outcome::Done {
        offer_macro(vault_args, &instruction, out)?;
    }
    Ok(outcome)
}

/// Has the model write the plan. Returns the text instead if the model answered without a plan.
fn written(
    instruction: &str,
    toolbox: &Toolbox,
    model: &model::ChosenModel,
    settings: &Settings,
) -> CliResult<std::result::Result<Value, String>> {
    note(&format!("{} writes a plan", model.name));
    let runtime = super::runtime::runtime()?;
    let cancel = CancellationToken::new();
    let _watching = runtime.spawn(cancel_on_signal(cancel.clone()));
    let mut report = |event: agent_loop::Event| match event {
        agent_loop::Event::Warning(warning) => say("warning", &warning),
        agent_loop::Event::Retry { delay, failure, .. } => {
            note(&retry_text(&failure, delay));
        }
        _ => {}
    };
    let mut spent = RunUsage::default();
    let written = runtime.block_on(write(instruction, toolbox, model, settings, &mut report, &cancel, &mut spent));
    runtime.shutdown_background();
    note(&spent_text(&spent));
    match written? {
        PlanReply::Plan(plan) => Ok(Ok(plan)),
        PlanReply::Answer(answer) => Ok(Err(answer)),
        PlanReply::Stopped(stop) => Err(not_written(&stop)),
    }
}

/// Returns the failure for a model that stopped before there was a plan.
pub(super) fn not_written(stop: &StopReason) -> Failure {
    match stop {
        StopReason::Cancelled => Failure::Interrupted("nothing was done"),
        StopReason::Limit { .. } | StopReason::Length => {
            Failure::Refused(format!("{}; nothing was done", stop_text(stop)))
        }
        stop => Failure::Error(format!("{stop}; nothing was done")),
    }
}

/// Offers to save the plan that has just run as a macro.
///
/// # Errors
/// The macro cannot be saved.
pub(super) fn offer_macro(vault_args: &VaultArgs, instruction: &str, out: &mut Out) -> CliResult<()> {
    if !can_ask() {
        return Ok(());
    }
    // Flush first, so that the question comes after the report.
    out.flush()?;
    let name = ask("Keep it as a macro, to run again without a model? [its name, empty for no]");
    let Some(name) = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()) else { return Ok(()) };
    let save = MacroSaveArgs {
        name,
        file: None,
        run: None,
        untried: false,
        description: instruction.to_owned(),
        default: Vec::new(),
        force: false,
    };
    run_macro(vault_args, &MacroCommand::Save(save), out)?;
    Ok(())
}
