//! Prepares and makes changes of the vaults, on threads that may block, with paths as the caller knows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vault_tools::approval::{
    Answer, AppliedChange, ApprovedChange, ChangeOutput, ChangeRequest, PreparedChange, now, settle,
};
use vault_tools::plan::Event;
use vault_tools::{Cancel, Error, ErrorKind, Grants, Result, Route, Vaults};

/// The time limit for preparing or making a change, without the time that the person takes.
pub(crate) const LONGEST: Duration = Duration::from_secs(300);

/// Makes an approved change in one vault.
///
/// # Errors
/// Those of [`ApprovedChange::carry_out`], with paths as the caller knows them.
pub(crate) fn carry_out(
    approved: ApprovedChange,
    vaults: &mut Vaults,
    vault: usize,
    cancel: Cancel<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<ChangeOutput> {
    let tool = approved.change().call().map(|call| call.tool.clone());
    let done = approved.carry_out(vaults.toolbox(vault), cancel, on_event).and_then(AppliedChange::done);
    let mut done = done.map_err(|error| vaults.shown_error(vault, error))?;
    if let Some(tool) = tool {
        done.value = vaults.shown(vault, &tool, done.value)?;
    }
    Ok(done)
}

/// Calls a tool that reads in each of several vaults.
///
/// # Errors
/// Those of the tool; [`ErrorKind::Denied`] if a vault requires approval for reading.
pub(crate) fn read_all(vaults: &mut Vaults, tool: &str, route: &Route, cancel: Cancel<'_>) -> Result<ChangeOutput> {
    let mut nobody = |_: &PreparedChange| {
        let error = Error::new(ErrorKind::Denied, "a person is asked before this reads a vault");
        Answer::No(error.with_remedy("name one vault in the argument `vault`"))
    };
    let (mut values, mut notices) = (Vec::new(), Vec::new());
    for &vault in &route.vaults {
        let request = ChangeRequest::Call { tool: tool.to_owned(), args: route.args.clone() };
        let prepared = request.prepare(vaults.toolbox(vault), &now(), cancel);
        let prepared = prepared.map_err(|error| vaults.shown_error(vault, error))?;
        let approved =
            settle(prepared, &Grants::default(), &mut nobody).map_err(|refused| refused.log(vaults.toolbox(vault)))?;
        let done = carry_out(approved, vaults, vault, cancel, &mut |_| {})?;
        let name = vaults.names().nth(vault).unwrap_or_default();
        notices.extend(done.notices.iter().map(|notice| format!("{name}: {notice}")));
        values.push(done.value);
    }
    Ok(ChangeOutput::new(vaults.merged(tool, &route.args, values), notices))
}

/// Runs a closure to its end on a thread that may block. The closure's `Cancel` is set when `cancelled` completes.
///
/// # Errors
/// Those of the closure; a panic.
pub(crate) async fn blocking<T: Send + 'static>(
    cancelled: impl Future<Output = ()>,
    act: impl FnOnce(Cancel<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let flag = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&flag);
    let mut running = tokio::task::spawn_blocking(move || act(Cancel::on(&told)));
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = cancelled => {
            flag.store(true, Ordering::Relaxed);
            running.await
        }
    };
    ended.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Unsupported, "internal error: the tool panicked")
            .with_remedy("no further changes were made; please report it"))
    })
}

/// Adds the time limit [`LONGEST`] from now on.
pub(crate) fn limited(cancel: Cancel<'_>) -> Cancel<'_> {
    cancel.until(Instant::now() + LONGEST)
}
