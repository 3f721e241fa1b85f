//! Changes of the vaults that are served, on threads that may block: prepared, carried out, told as the caller knows paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vault_tools::approval::{
    Answer, AppliedChange, ApprovedChange, ChangeOutput, ChangeRequest, PreparedChange, now, settle,
};
use vault_tools::plan::Event;
use vault_tools::{Cancel, Error, ErrorKind, Grants, Result, Route, Vaults};

/// The longest that preparing or carrying out a change may take; the person's time is aside.
pub(crate) const LONGEST: Duration = Duration::from_secs(300);

/// Carries out an approved change of one vault.
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
/// Those of the tool; [`ErrorKind::Denied`] where a person is asked before it reads.
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

/// Runs on a thread that may block, until it is done; it is told when nobody waits for it any more.
///
/// # Errors
/// Its own; a fault of the program.
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
        Err(Error::new(ErrorKind::Unsupported, "this call met a fault of the program")
            .with_remedy("nothing more was done; please report it"))
    })
}

/// Within the [`LONGEST`] time from now on.
pub(crate) fn limited(cancel: Cancel<'_>) -> Cancel<'_> {
    cancel.until(Instant::now() + LONGEST)
}
