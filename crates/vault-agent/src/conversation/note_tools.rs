//! The tools of the vaults as an agent's tools, and the policy of the vaults as the agent's.
//!
//! ```text
//! call ──> policy ──┬─ allowed ────────────────────────────────────────────> prepared, carried out
//!                   ├─ ask ──> panel: prepared on an overlay, shown, bound ──> prepared again, the same? carried out
//!                   └─ deny
//! ```
//!
//! A yes is to what the panel showed: where the call would do something else by then, nothing is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_loop::{
    BoxFuture, Effect, Permission as Ruling, Policy, Review, ToolCall, ToolError, ToolOutput, ToolSpec, Tools,
};
use jiff::Zoned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_tools::{
    Approval, Call, Cancel, EditedFile, Editor, Error, ErrorKind, Grants, Permission, Preview, Result, Risk, Toolset,
    Vaults, output_text,
};

use crate::request::{Done, Prepared, Request, now, read_all};
use crate::settings::{Review as ReviewSetting, Settings};
use crate::workspace::{OpenVault, Workspace};

/// The longest that a call may take, the person's time aside.
const LONGEST: Duration = Duration::from_secs(300);

/// Which tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Those of the toolsets.
    All,
    /// Those that change nothing.
    Reading,
    /// Those that the settings of every vault let run without asking.
    Unattended,
}

/// The tools of the vaults. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct NoteTools(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    workspace: Arc<Workspace>,
    tools: Vec<NoteTool>,
    offer: Offer,
    review: ReviewSetting,
    state: Mutex<State>,
    /// The person has set the conversation to read only, which holds at once.
    is_closed: AtomicBool,
}

/// A tool as it is offered.
#[derive(Debug)]
struct NoteTool {
    spec: ToolSpec,
    toolset: Toolset,
    risk: Risk,
}

#[derive(Debug, Default)]
struct State {
    /// What the editor around the first vault shows.
    editor: Editor,
    /// What a person was shown of calls that wait, by the id of the call.
    shown: BTreeMap<String, Shown>,
    /// The tools that a person allowed for the session.
    granted: BTreeSet<String>,
}

/// What a person was shown.
#[derive(Debug, Clone)]
struct Shown {
    args: Value,
    now: Zoned,
    digest: String,
    /// What is left out of the files that the call edits.
    kept: Vec<EditedFile>,
    /// Whether the person said yes to it.
    is_agreed: bool,
}

/// Which vault a call is for, and what is asked of it.
struct Routed {
    vault: usize,
    request: Request,
    notice: Option<String>,
}

impl NoteTools {
    /// The tools that the settings offer, over the vaults of a workspace.
    pub fn new(workspace: Arc<Workspace>, settings: &Settings, offer: Offer) -> Self {
        let toolsets = if settings.tools { settings.toolsets.as_slice() } else { &[] };
        let tools = workspace.with(|vaults| {
            let mut tools: Vec<NoteTool> = Vec::new();
            for spec in toolsets.iter().flat_map(|toolset| vaults.specs(Some(*toolset))) {
                let name = spec.alias.as_ref().unwrap_or(&spec.name).clone();
                let is_left_out = match offer {
                    Offer::All => false,
                    Offer::Reading => spec.risk != Risk::Read,
                    Offer::Unattended => {
                        let runs = |open: &OpenVault| open.policy.runs_unattended(&spec.name, spec.toolset, spec.risk);
                        !workspace.vaults().iter().all(runs) || reviews(settings.review, spec.toolset, spec.risk)
                    }
                };
                if is_left_out || tools.iter().any(|tool| tool.spec.name == name) {
                    continue;
                }
                let effect = if spec.risk == Risk::Read { Effect::Read } else { Effect::Write };
                let agent_spec = ToolSpec {
                    name,
                    description: spec.description.clone(),
                    parameters: spec.input_schema.clone(),
                    effect,
                    time_limit: Some(LONGEST),
                };
                tools.push(NoteTool { spec: agent_spec, toolset: spec.toolset, risk: spec.risk });
            }
            tools
        });
        Self(Arc::new(Inner {
            workspace,
            tools,
            offer,
            review: settings.review,
            state: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// The vaults.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.0.workspace
    }

    /// Sets what the editor around the first vault shows.
    pub fn set_editor(&self, editor: Editor) {
        self.state().editor = editor;
    }

    /// What the editor around the first vault shows.
    pub fn editor(&self) -> Editor {
        self.state().editor.clone()
    }

    /// Sets which tools a person allowed for the session.
    pub fn set_granted<'g>(&self, tools: impl Iterator<Item = &'g str>) {
        self.state().granted = tools.map(str::to_owned).collect();
    }

    /// Sets whether nothing is changed from now on, whatever was allowed before.
    pub fn close(&self, is_closed: bool) {
        self.0.is_closed.store(is_closed, Ordering::Relaxed);
    }

    /// Why nothing is changed now.
    pub fn closed(&self) -> Option<String> {
        let is_closed = self.0.is_closed.load(Ordering::Relaxed);
        is_closed.then(|| "the person has set this conversation to read only".to_owned())
    }

    /// Whether a tool is one of these.
    pub fn has(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// Whether there are tools that change notes among these.
    pub fn offers_changes(&self) -> bool {
        self.0.offer == Offer::All
    }

    /// Why the settings of a vault deny a tool of another program.
    pub fn denies(&self, name: &str) -> Option<String> {
        let call = Call::new(name, Toolset::default(), Risk::Write, &[]);
        let denied = |policy: &vault_tools::Policy| match policy.decide(&call, &Grants::default()) {
            Permission::Deny(reason) => Some(reason),
            _ => None,
        };
        self.0.workspace.vaults().iter().find_map(|open| denied(&open.policy))
    }

    /// The worst that a tool of these does.
    pub fn risk(&self, name: &str) -> Option<Risk> {
        self.tool(name).map(|tool| tool.risk)
    }

    /// What a call would change now; `None` for one that only reads or cannot be made. No yes is bound to it.
    pub fn preview(&self, call: &ToolCall) -> Option<(usize, Preview)> {
        self.risk(&call.name).filter(|risk| *risk != Risk::Read)?;
        self.with(|vaults| {
            let routed = route(vaults, &call.name, &call.arguments).ok()?;
            let prepared = self.prepare(vaults, &routed, &now(), Cancel::default()).ok()?;
            Some((routed.vault, prepared.preview))
        })
    }

    /// Prepares a call with these arguments for a person, without what is left out of `kept`, and binds a yes to what it
    /// would do. `None` for a call that asks before it reads: what it would return is not known yet.
    ///
    /// # Errors
    /// Those of the tool: the call cannot be made.
    pub fn prepare_for_panel(
        &self,
        call: &ToolCall,
        args: &Value,
        kept: Vec<EditedFile>,
    ) -> Result<Option<(usize, Prepared)>> {
        let reads = self.tool(&call.name).is_some_and(|tool| tool.risk == Risk::Read);
        let now = now();
        let mut shown =
            Shown { args: args.clone(), now: now.clone(), digest: String::new(), kept: Vec::new(), is_agreed: false };
        let prepared = match reads {
            true => None,
            false => {
                let (vault, mut prepared) = self.with(|vaults| {
                    let routed = route(vaults, &call.name, args)?;
                    self.prepare(vaults, &routed, &now, Cancel::default()).map(|prepared| (routed.vault, prepared))
                })?;
                shown.digest.clone_from(&prepared.digest);
                prepared.keep(&kept);
                shown.kept = kept;
                Some((vault, prepared))
            }
        };
        self.state().shown.insert(call.id.0.clone(), shown);
        Ok(prepared)
    }

    /// Notes a person's yes to what was shown.
    pub fn agree(&self, call: &ToolCall) {
        if let Some(shown) = self.state().shown.get_mut(&call.id.0) {
            shown.is_agreed = true;
        }
    }

    /// Notes that a person refused a call.
    pub fn refuse(&self, call: &ToolCall, reason: &str) {
        self.state().shown.remove(&call.id.0);
        let error = Error::new(ErrorKind::Denied, reason);
        self.with(|vaults| {
            let Ok(routed) = route(vaults, &call.name, &call.arguments) else { return };
            vaults.toolbox(routed.vault).refuse(&call.name, &call.arguments, &error);
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tool(&self, name: &str) -> Option<&NoteTool> {
        self.0.tools.iter().find(|tool| tool.spec.name == name)
    }

    /// Acts on the toolboxes, with the editor as it is.
    pub fn with<T>(&self, act: impl FnOnce(&mut Vaults) -> T) -> T {
        let editor = self.editor();
        self.0.workspace.with(|vaults| {
            vaults.toolbox(0).set_editor(editor);
            act(vaults)
        })
    }

    fn prepare(&self, vaults: &mut Vaults, routed: &Routed, now: &Zoned, cancel: Cancel<'_>) -> Result<Prepared> {
        let prepared = routed.request.prepare(vaults.toolbox(routed.vault), now, cancel);
        prepared.map_err(|error| vaults.shown_error(routed.vault, error))
    }

    /// What the policy of the vault says about a call.
    fn judge(&self, call: &ToolCall, tool: &NoteTool) -> Result<Ruling> {
        let grants = Grants::default();
        let name = &call.name;
        self.with(|vaults| {
            let route = vaults.route(name, call.arguments.clone())?;
            let mut strictest = Permission::Allow;
            for &vault in &route.vaults {
                let permission = vaults.toolbox(vault).permission(name, &route.args, &grants)?;
                strictest = strictest.max(permission);
            }
            if let Permission::Deny(reason) = strictest {
                return Ok(Ruling::Deny { reason });
            }
            let mut grant = name.clone();
            let mut why = format!("{name} reads what your settings ask about");
            if tool.risk != Risk::Read {
                let routed = route_one(name, route)?;
                let prepared = self.prepare(vaults, &routed, &now(), Cancel::default())?;
                strictest = prepared.permission;
                why = format!("{name} changes notes");
                if prepared.risk > tool.risk {
                    // A grant covers no more than the tool's own risk.
                    grant = format!("{name} {}", call.id);
                }
            }
            Ok(match strictest {
                Permission::Allow => Ruling::Allow,
                Permission::Ask => Ruling::Ask { why, grant },
                Permission::Deny(reason) => Ruling::Deny { reason },
            })
        })
    }

    /// Makes a call that the loop has decided to make.
    fn make(&self, call: &ToolCall, cancel: Cancel<'_>) -> Result<Done> {
        if self.risk(&call.name) != Some(Risk::Read)
            && let Some(reason) = self.closed()
        {
            return Err(Error::new(ErrorKind::Denied, reason));
        }
        // What was only shown is no yes.
        let shown = self.state().shown.remove(&call.id.0).filter(|shown| shown.is_agreed);
        let is_granted = self.state().granted.contains(&call.name);
        self.with(|vaults| {
            let route = vaults.route(&call.name, call.arguments.clone())?;
            if route.vaults.len() != 1 {
                return read_all(vaults, &call.name, &route, cancel);
            }
            let notice = route.notice.clone();
            let routed = route_one(&call.name, route)?;
            let time = shown.as_ref().map_or_else(now, |shown| shown.now.clone());
            let mut prepared = self.prepare(vaults, &routed, &time, cancel)?;
            let approval = match (&prepared.permission, shown) {
                (Permission::Deny(reason), _) => return Err(Error::new(ErrorKind::Denied, reason.clone())),
                (Permission::Allow, _) => Approval::Allowed,
                (Permission::Ask, Some(shown)) => {
                    let is_same = shown.digest.is_empty() || shown.digest == prepared.digest;
                    if !is_same || shown.args != call.arguments {
                        let message = "the notes have changed since this was shown, so it would do something else";
                        let error = Error::new(ErrorKind::Conflict, message);
                        return Err(error.with_remedy("nothing was done; ask for it again"));
                    }
                    prepared.keep(&shown.kept);
                    Approval::Approved
                }
                (Permission::Ask, None) if is_granted => Approval::Granted,
                (Permission::Ask, None) => {
                    let message = format!("{} needs a person's yes, and nobody was asked", call.name);
                    return Err(Error::new(ErrorKind::Denied, message));
                }
            };
            let done = prepared.carry_out(vaults.toolbox(routed.vault), approval, cancel, &mut |_| {});
            let mut done = done.map_err(|error| vaults.shown_error(routed.vault, error))?;
            done.value = vaults.shown(routed.vault, &call.name, done.value)?;
            done.notices.extend(notice.or(routed.notice));
            if routed.vault == 0
                && let Ok(editor) = vaults.toolbox(0).editor()
            {
                self.set_editor(editor);
            }
            Ok(done)
        })
    }
}

/// The one vault that a call is for.
fn route(vaults: &Vaults, name: &str, args: &Value) -> Result<Routed> {
    route_one(name, vaults.route(name, args.clone())?)
}

fn route_one(name: &str, route: vault_tools::Route) -> Result<Routed> {
    let vault = route.vaults.first().copied().unwrap_or_default();
    Ok(Routed { vault, request: Request::Call { tool: name.to_owned(), args: route.args }, notice: route.notice })
}

/// Whether a person sees what a tool returns before the model does.
fn reviews(setting: ReviewSetting, toolset: Toolset, risk: Risk) -> bool {
    risk == Risk::Read
        && (setting == ReviewSetting::Always || setting == ReviewSetting::Chat && toolset == Toolset::Chat)
}

impl Policy for NoteTools {
    fn permission(&self, call: &ToolCall, _: &ToolSpec) -> Ruling {
        let Some(tool) = self.tool(&call.name) else {
            return Ruling::Deny { reason: format!("{} is no tool of the notes", call.name) };
        };
        if tool.risk != Risk::Read
            && let Some(reason) = self.closed()
        {
            return Ruling::Deny { reason };
        }
        // A call that cannot be prepared fails when it is made, and the model reads why; it needs nobody's yes.
        self.judge(call, tool).unwrap_or(Ruling::Allow)
    }

    fn review(&self, call: &ToolCall, _: &ToolSpec) -> Review {
        match self.tool(&call.name) {
            Some(tool) if reviews(self.0.review, tool.toolset, tool.risk) => Review::Ask,
            _ => Review::Pass,
        }
    }
}

impl Tools for NoteTools {
    fn specs(&self) -> Vec<ToolSpec> {
        self.0.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, std::result::Result<ToolOutput, ToolError>> {
        let (tools, call, cancel) = (self.clone(), call.clone(), cancel.clone());
        Box::pin(async move {
            let flag = Arc::new(AtomicBool::new(false));
            let cancelled = Arc::clone(&flag);
            let mut running = tokio::task::spawn_blocking(move || {
                tools.make(&call, Cancel::on(&cancelled).until(Instant::now() + LONGEST))
            });
            let ended = tokio::select! {
                ended = &mut running => ended,
                () = cancel.cancelled() => {
                    flag.store(true, Ordering::Relaxed);
                    running.await
                }
            };
            match ended {
                Ok(Ok(done)) => Ok(output(done)),
                Ok(Err(error)) => Err(ToolError::new(error.to_string())),
                Err(_) => Err(ToolError::new("this call met a fault of the program; nothing more was done")),
            }
        })
    }
}

/// What the model reads: each entry of a list is an item of its own, which a person can withhold.
fn output(done: Done) -> ToolOutput {
    let Done { value, transaction, mut notices } = done;
    notices.extend(transaction.map(|transaction| format!("transaction {transaction}; the person can undo it")));
    match value {
        Value::Array(entries) if !entries.is_empty() => {
            let notices = notices.iter().map(|notice| format!("note: {notice}"));
            ToolOutput::items(notices.chain(entries.iter().map(|entry| output_text(entry, &[]))))
        }
        value => ToolOutput::text(output_text(&value, &notices)),
    }
}
