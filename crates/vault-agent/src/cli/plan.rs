//! `vault-agent plan`: has a model write a plan for an instruction, which is then shown, approved, run and saved as a
//! macro.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_loop::{Event, RunUsage, StopReason};
use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_search::VaultArgs;
use vault_search::tools::{ExecutionArgs, MacroCommand, MacroSaveArgs, run_macro, run_plan, with_toolbox};
use vault_search::{CliResult, Failure, Out, Outcome, ask, can_ask, note, sanitize, sanitize_line};
use vault_tools::Toolbox;

use super::ask::cancel_on_signal;
use super::retry_wait::RetryWait;
use super::screen::Screen;
use crate::call_line::spent_text;
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::loop_error::stop_text;
use crate::model;
use crate::plan_writer::{PlanReply, write};
use crate::settings::{Settings, WriterArgs};
use crate::workspace::{PolicyOverrides, Workspace};

/// The interval at which the status line is redrawn.
const FRAME: Duration = Duration::from_millis(200);

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
    let mut screen = Screen::new();
    if !screen.is_live() {
        note(&format!("{} writes a plan", model.name));
    }
    let runtime = super::runtime::runtime()?;
    let cancel = CancellationToken::new();
    let _watching = runtime.spawn(cancel_on_signal(cancel.clone()));
    let mut spent = RunUsage::default();
    let written = write_on_screen(instruction, toolbox, model, settings, &mut screen, &cancel, &mut spent);
    let written = runtime.block_on(written);
    runtime.shutdown_background();
    note(&spent_text(&spent));
    match written? {
        PlanReply::Plan(plan) => Ok(Ok(plan)),
        PlanReply::Answer(answer) => Ok(Err(answer)),
        PlanReply::Stopped(stop) => Err(not_written(&stop)),
    }
}

/// Has the model write a plan, with a status line that says what it does and how to stop it. Adds the usage to `spent`.
///
/// # Errors
/// The errors of the model and of its plan.
pub(super) async fn write_on_screen(
    instruction: &str,
    toolbox: &Toolbox,
    model: &model::ChosenModel,
    settings: &Settings,
    screen: &mut Screen,
    cancel: &CancellationToken,
    spent: &mut RunUsage,
) -> vault_tools::Result<PlanReply> {
    let since = Instant::now();
    let status = Mutex::new((screen, None::<RetryWait>));
    let lock = || status.lock().unwrap_or_else(PoisonError::into_inner);
    let mut on_event = |event| {
        let (screen, wait) = &mut *lock();
        match event {
            Event::Warning(warning) => screen.warn(&warning),
            Event::Retry { delay, failure, .. } => *wait = RetryWait::announce(screen, &failure, delay),
            _ => {}
        }
    };
    let mut writing = pin!(write(instruction, toolbox, model, settings, &mut on_event, cancel, spent));
    let mut frames = tokio::time::interval(FRAME);
    let ended = loop {
        tokio::select! {
            ended = &mut writing => break ended,
            _ = frames.tick() => {
                let (screen, wait) = &mut *lock();
                let writes = || {
                    format!("{} writes a plan · {} s · Ctrl-C stops", sanitize_line(&model.name), since.elapsed().as_secs())
                };
                screen.draw(&[wait.as_ref().and_then(RetryWait::line).unwrap_or_else(writes)]);
            }
        }
    };
    lock().0.erase();
    ended
}

/// Returns the failure for a model that stopped before there was a plan.
pub(super) fn not_written(stop: &StopReason) -> Failure {
    match stop {
        StopReason::Cancelled => Failure::Interrupted("nothing was done".into()),
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
