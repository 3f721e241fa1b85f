//! The tools of the vaults as an agent's tools, and the policy of the vaults as the agent's policy.
//!
//! ```text
//! call ──> policy ──┬─ allowed ──────────────────────────────────────────────> prepared, settled, carried out
//!          (pure)   ├─ ask ──> panel: prepared once, held here, shown ── yes ──> settled, carried out
//!                   └─ deny
//! ```
//!
//! An approval is for the change that the panel showed, which is held until the call is made. If the notes have changed
//! by then, nothing is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_loop::{
    BoxFuture, CallPermission, CallPolicy, Effect, Review, ToolCall, ToolError, ToolOutput, ToolSpec, Tools,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_tools::approval::{Answer, ChangeOutput, ChangeRequest, GivenAnswer, PreparedChange, now, settle};
use vault_tools::{
    Call, Cancel, EditedFile, Editor, Error, ErrorKind, Grants, Permission, Policy, Preview, Result, Risk, Toolset,
    Vaults, output_text,
};

use crate::call_line::NOTICE;
use crate::changes::{LONGEST, blocking, carry_out, limited, read_all};
use crate::settings::{ReviewSetting, Settings};
use crate::vectors;
use crate::workspace::{OpenVault, Workspace};

use super::line_numbers::{number_lines, without_line_numbers};

/// Tools that rank by meaning.
const SEARCHES: [&str; 3] = ["search_notes", "vault_search", "find_similar_notes"];

/// The value of `reading` if no search waits for vectors.
const NOT_READING: usize = usize::MAX;

/// Which tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// All tools of the toolsets.
    All,
    /// Only tools that change nothing.
    Reading,
    /// Only tools that the settings of every vault allow without asking.
    Unattended,
}

/// The tools of the vaults. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct NoteTools(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    workspace: Arc<Workspace>,
    tools: Vec<NoteTool>,
    /// Why the settings deny tools that delete or run commands, which are not offered.
    denials: BTreeSet<String>,
    offer: Offer,
    review: ReviewSetting,
    state: Mutex<State>,
    /// Whether the person has set the conversation to read only, which takes effect immediately.
    is_closed: AtomicBool,
    /// Whether a search has already waited for vectors.
    has_waited: AtomicBool,
    /// The percentage of passages that have vectors, while a search waits for them; otherwise [`NOT_READING`].
    reading: AtomicUsize,
}

/// An offered tool.
#[derive(Debug)]
struct NoteTool {
    spec: ToolSpec,
    toolset: Toolset,
    risk: Risk,
}

#[derive(Debug, Default)]
struct State {
    /// The state of the editor, in the first vault.
    editor: Editor,
    /// The calls that a person is asked about or has decided, by the id of the call.
    held: BTreeMap<String, HeldCall>,
    /// The tools that a person allowed for the session.
    granted: Grants,
}

/// A call that was prepared for a panel, until it is made.
#[derive(Debug)]
struct HeldCall {
    args: Value,
    /// The change, and its vault. `None` for a call that asks before it reads, because its result is not known yet.
    prepared: Result<Option<(usize, PreparedChange)>>,
    /// The files of the change without the parts that were left out.
    kept: Vec<EditedFile>,
    /// Whether the person approved it.
    is_agreed: bool,
}

impl NoteTools {
    /// Creates the tools that the settings offer, over the vaults of a workspace.
    pub fn new(workspace: Arc<Workspace>, settings: &Settings, offer: Offer) -> Self {
        let toolsets = if settings.tools { settings.toolsets.as_slice() } else { &[] };
        let mut denials = BTreeSet::new();
        let tools = workspace.with(|vaults| {
            let mut tools: Vec<NoteTool> = Vec::new();
            for spec in toolsets.iter().flat_map(|toolset| vaults.specs(Some(*toolset))) {
                let name = spec.alias.as_ref().unwrap_or(&spec.name).clone();
                let is_left_out = match offer {
                    Offer::All => false,
                    Offer::Reading => spec.risk != Risk::Read,
                    Offer::Unattended => {
                        let runs =
                            |open: &OpenVault| open.policy().runs_unattended(&spec.name, spec.toolset, spec.risk);
                        !workspace.vaults().iter().all(runs) || reviews(settings.review, spec.toolset, spec.risk)
                    }
                };
                if is_left_out || tools.iter().any(|tool| tool.spec.name == name) {
                    continue;
                }
                if let Some(reason) = vaults.denial(&spec) {
                    // Of the other tools the model knows nothing that a person could ask for.
                    if matches!(spec.risk, Risk::Delete | Risk::Command) {
                        denials.insert(reason);
                    }
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
            denials,
            offer,
            review: settings.review,
            state: Mutex::default(),
            is_closed: AtomicBool::new(false),
            has_waited: AtomicBool::new(false),
            reading: AtomicUsize::new(NOT_READING),
        }))
    }

    /// Returns why the settings deny tools that delete or run commands, which are not offered.
    pub fn denials(&self) -> &BTreeSet<String> {
        &self.0.denials
    }

    /// The vaults.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.0.workspace
    }

    /// Sets the state of the editor, in the first vault. If an app has the vault open, its editor counts instead.
    pub fn set_editor(&self, editor: Editor) {
        self.state().editor = editor;
    }

    /// Returns the state of the editor, in the first vault.
    pub fn editor(&self) -> Editor {
        self.state().editor.clone()
    }

    /// Sets the tools that a person allowed for the session.
    pub fn set_granted<'g>(&self, tools: impl Iterator<Item = &'g str>) {
        let mut granted = Grants::default();
        tools.for_each(|tool| granted.grant(tool));
        self.state().granted = granted;
    }

    /// Sets whether every change is denied from now on, whatever was allowed before.
    pub fn close(&self, is_closed: bool) {
        self.0.is_closed.store(is_closed, Ordering::Relaxed);
    }

    /// Returns the reason why changes are denied now, if they are.
    pub fn closed(&self) -> Option<String> {
        let is_closed = self.0.is_closed.load(Ordering::Relaxed);
        is_closed.then(|| "the person has set this conversation to read only".to_owned())
    }

    /// Returns the percentage of passages that have vectors, while a search waits for them.
    pub fn reading(&self) -> Option<usize> {
        Some(self.0.reading.load(Ordering::Relaxed)).filter(|share| *share != NOT_READING)
    }

    /// Lets the first search of this conversation wait a short time for vectors, which are computed meanwhile.
    pub fn wait_for_vectors(&self, is_cancelled: &dyn Fn() -> bool) {
        if !self.0.has_waited.swap(true, Ordering::Relaxed) {
            let told = |share| self.0.reading.store(share, Ordering::Relaxed);
            vectors::wait(self.0.workspace.vaults(), vectors::FIRST_SEARCH, is_cancelled, &told);
            told(NOT_READING);
        }
    }

    /// Whether this is a tool of the vaults.
    pub fn has(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// Whether tools that change notes are offered.
    pub fn offers_changes(&self) -> bool {
        self.0.offer == Offer::All
    }

    /// Returns the reason why the settings of a vault deny a tool of another program, if they do.
    pub fn denies(&self, name: &str) -> Option<String> {
        let call = Call::new(name, Toolset::default(), Risk::Write, &[]);
        let denied = |policy: &Policy| match policy.decide(&call, &Grants::default()) {
            Permission::Deny(reason) => Some(reason),
            _ => None,
        };
        self.0.workspace.vaults().iter().find_map(|open| denied(&open.policy()))
    }

    /// Returns the highest risk of a tool.
    pub fn risk(&self, name: &str) -> Option<Risk> {
        self.tool(name).map(|tool| tool.risk)
    }

    /// Returns the change of a call that is about to be made, or `None` if the call only reads or cannot be made.
    pub fn preview(&self, call: &ToolCall) -> Option<(usize, Preview)> {
        self.risk(&call.name).filter(|risk| *risk != Risk::Read)?;
        let is_held = self.state().held.contains_key(&call.id.0);
        if !is_held {
            self.hold(call, &call.arguments);
        }
        let state = self.state();
        let (vault, change) = state.held.get(&call.id.0)?.prepared.as_ref().ok()?.as_ref()?;
        Some((*vault, change.preview().clone()))
    }

    /// Prepares a call for a question, and holds it. Returns whether a person must be asked: a call that cannot be
    /// made, or that the policy allows now that its changes are known, needs no approval.
    pub fn hold_question(&self, call: &ToolCall) -> bool {
        self.hold(call, &call.arguments);
        match self.state().held.get(&call.id.0).map(|held| &held.prepared) {
            Some(Ok(Some((_, change)))) => *change.permission() == Permission::Ask,
            Some(Ok(None)) => true,
            _ => false,
        }
    }

    /// Returns the change of a held call with these arguments, without the parts left out of `kept`. An approval is for
    /// this change from now on. Returns `None` for a call that asks before it reads.
    ///
    /// # Errors
    /// Those of the tool, if the call cannot be made with these arguments. The call that was held before stays.
    pub fn held_change(
        &self,
        call: &ToolCall,
        args: &Value,
        kept: Vec<EditedFile>,
    ) -> Result<Option<(usize, PreparedChange)>> {
        let is_held = self.state().held.get(&call.id.0).is_some_and(|held| held.args == *args);
        if !is_held {
            let prepared = self.prepare_to_show(call, args)?;
            let held = HeldCall { args: args.clone(), prepared: Ok(prepared), kept: Vec::new(), is_agreed: false };
            self.state().held.insert(call.id.0.clone(), held);
        }
        let mut state = self.state();
        let Some(held) = state.held.get_mut(&call.id.0) else { return Ok(None) };
        held.kept = kept;
        held.change()
    }

    /// Forgets what a call that is held would do, so that it is prepared again when it is shown next.
    pub fn forget_held(&self, call: &ToolCall) {
        self.state().held.remove(&call.id.0);
    }

    fn hold(&self, call: &ToolCall, args: &Value) {
        let prepared = self.prepare_to_show(call, args);
        let held = HeldCall { args: args.clone(), prepared, kept: Vec::new(), is_agreed: false };
        self.state().held.insert(call.id.0.clone(), held);
    }

    fn prepare_to_show(&self, call: &ToolCall, args: &Value) -> Result<Option<(usize, PreparedChange)>> {
        if self.risk(&call.name) == Some(Risk::Read) {
            return Ok(None);
        }
        let (args, _) = without_line_numbers(&call.name, args.clone());
        self.with(|vaults| {
            let route = vaults.route(&call.name, args)?;
            let vault = route.vaults.first().copied().unwrap_or_default();
            Ok(Some((vault, prepare(vaults, vault, &call.name, route.args, Cancel::default())?)))
        })
    }

    /// Records that the person approved the change that was shown.
    pub fn agree(&self, call: &ToolCall) {
        if let Some(held) = self.state().held.get_mut(&call.id.0) {
            held.is_agreed = true;
        }
    }

    /// Records that the person refused a call.
    pub fn refuse(&self, call: &ToolCall, reason: &str) {
        self.state().held.remove(&call.id.0);
        let error = Error::new(ErrorKind::Denied, reason);
        self.with(|vaults| {
            let Ok(route) = vaults.route(&call.name, call.arguments.clone()) else { return };
            let vault = route.vaults.first().copied().unwrap_or_default();
            vaults.toolbox(vault).refuse(&call.name, &call.arguments, &error);
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tool(&self, name: &str) -> Option<&NoteTool> {
        self.0.tools.iter().find(|tool| tool.spec.name == name)
    }

    /// Runs a closure on the toolboxes, with the current state of the editor.
    pub fn with<T>(&self, act: impl FnOnce(&mut Vaults) -> T) -> T {
        let editor = self.editor();
        self.0.workspace.with(|vaults| {
            vaults.toolbox(0).set_editor(editor);
            act(vaults)
        })
    }

    /// Returns the permission for a call according to the policies of the vaults. They decide by its name, its risk and
    /// the paths in its arguments.
    fn permission_of(&self, call: &ToolCall, tool: &NoteTool) -> Result<CallPermission> {
        let name = &call.name;
        self.0.workspace.with(|vaults| {
            let route = vaults.route(name, call.arguments.clone())?;
            let (mut strictest, mut may_exceed) = (Permission::Allow, false);
            for &vault in &route.vaults {
                let toolbox = vaults.toolbox(vault);
                strictest = strictest.max(toolbox.permission(name, &route.args, &Grants::default())?);
                may_exceed |= toolbox.may_exceed_its_tool(name, &route.args);
            }
            Ok(match strictest {
                Permission::Allow => CallPermission::Allow,
                Permission::Deny(reason) => CallPermission::Deny { reason },
                Permission::Ask if tool.risk == Risk::Read => CallPermission::Ask {
                    why: format!("{name} reads what your settings ask about"),
                    grant: name.clone(),
                },
                // A grant covers no more than the tool's own risk.
                Permission::Ask if may_exceed => {
                    CallPermission::Ask { why: format!("{name} changes notes"), grant: format!("{name} {}", call.id) }
                }
                Permission::Ask => CallPermission::Ask { why: format!("{name} changes notes"), grant: name.clone() },
            })
        })
    }

    /// Makes a call that the loop has decided to make.
    fn make(&self, call: &ToolCall, cancel: Cancel<'_>) -> Result<ChangeOutput> {
        if self.risk(&call.name) != Some(Risk::Read)
            && let Some(reason) = self.closed()
        {
            return Err(Error::new(ErrorKind::Denied, reason));
        }
        let (held, granted) = {
            let mut state = self.state();
            (state.held.remove(&call.id.0), state.granted.clone())
        };
        let is_agreed = held.as_ref().is_some_and(|held| held.is_agreed);
        if let Some(held) = &held
            && is_agreed
            && held.args != call.arguments
        {
            return Err(PreparedChange::is_other_than_shown());
        }
        let shown = held.filter(|held| held.args == call.arguments).map_or(Ok(None), |held| held.change())?;
        let was_shown = shown.is_some();
        let (args, had_numbers) = without_line_numbers(&call.name, call.arguments.clone());
        self.with(|vaults| {
            let route = vaults.route(&call.name, args)?;
            let [vault] = route.vaults[..] else { return read_all(vaults, &call.name, &route, cancel) };
            let change = match shown {
                Some((_, change)) => change,
                None => prepare(vaults, vault, &call.name, route.args, cancel)?,
            };
            let answer = match is_agreed {
                true => Answer::Yes,
                false => {
                    let message = format!("{} needs a person's approval, but no person was asked", call.name);
                    Answer::No(Error::new(ErrorKind::Denied, message))
                }
            };
            let approved = settle(change, &granted, &mut GivenAnswer(Some(answer)))
                .map_err(|refused| refused.log(vaults.toolbox(vault)))?;
            let done = carry_out(approved, vaults, vault, cancel, &mut |_| {});
            let mut done = done.map_err(|error| match error.kind() {
                ErrorKind::Conflict if was_shown => {
                    Error::new(ErrorKind::Conflict, format!("the notes have changed since this was shown: {error}"))
                }
                _ => error,
            })?;
            done.notices.extend(route.notice);
            if had_numbers {
                done.notices
                    .push("the line numbers in your text are not part of the note and were left out".to_owned());
            }
            if vault == 0
                && !vaults.toolbox(0).is_live()
                && let Ok(editor) = vaults.toolbox(0).editor()
            {
                self.set_editor(editor);
            }
            Ok(done)
        })
    }
}

impl HeldCall {
    /// Returns the change without the parts that were left out.
    fn change(&self) -> Result<Option<(usize, PreparedChange)>> {
        let prepared = self.prepared.as_ref().map_err(Clone::clone)?;
        Ok(prepared.as_ref().map(|(vault, change)| match self.kept.is_empty() {
            true => (*vault, change.clone()),
            false => (*vault, change.without(&self.kept)),
        }))
    }
}

/// Prepares a call; the arguments are relative to the vault.
fn prepare(vaults: &mut Vaults, vault: usize, tool: &str, args: Value, cancel: Cancel<'_>) -> Result<PreparedChange> {
    let request = ChangeRequest::Call { tool: tool.to_owned(), args };
    request.prepare(vaults.toolbox(vault), &now(), cancel).map_err(|error| vaults.shown_error(vault, error))
}

/// Whether a person reviews the tool's result before the model gets it.
fn reviews(setting: ReviewSetting, toolset: Toolset, risk: Risk) -> bool {
    risk == Risk::Read
        && (setting == ReviewSetting::Always || setting == ReviewSetting::Chat && toolset == Toolset::Chat)
}

impl CallPolicy for NoteTools {
    fn permission(&self, call: &ToolCall, _: &ToolSpec) -> CallPermission {
        let Some(tool) = self.tool(&call.name) else {
            return CallPermission::Deny { reason: format!("{} is not a tool of the notes", call.name) };
        };
        if tool.risk != Risk::Read
            && let Some(reason) = self.closed()
        {
            return CallPermission::Deny { reason };
        }
        // A call with invalid arguments fails when it is made, and the model reads the reason.
        self.permission_of(call, tool).unwrap_or(CallPermission::Allow)
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
        let (name, args) = (call.name.clone(), call.arguments.clone());
        // Line numbers and waiting are only for conversations: a client of the proxy may show text that the model
        // copies, and receives nothing while it waits.
        let is_conversation = self.0.offer != Offer::Unattended;
        Box::pin(async move {
            let made = blocking(cancel.cancelled(), move |cancel| {
                if is_conversation && SEARCHES.contains(&&*call.name) {
                    tools.wait_for_vectors(&|| cancel.check().is_err());
                }
                tools.make(&call, limited(cancel))
            });
            let mut done = made.await.map_err(|error| ToolError::new(error.to_string()))?;
            if is_conversation {
                number_lines(&name, &args, &mut done.value);
            }
            Ok(output(done))
        })
    }
}

/// Converts a result for the model. Each entry of a list is a separate item, which a person can withhold.
fn output(done: ChangeOutput) -> ToolOutput {
    let ChangeOutput { value, transaction, mut notices, .. } = done;
    notices.extend(transaction.map(|transaction| format!("transaction {transaction}; the person can undo it")));
    match value {
        Value::Array(entries) if !entries.is_empty() => {
            let notices = notices.iter().map(|notice| format!("{NOTICE}{notice}"));
            ToolOutput::items(notices.chain(entries.iter().map(|entry| output_text(entry, &[]))))
        }
        value => ToolOutput::text(output_text(&value, &notices)),
    }
}
