//! Finds tools by name and makes calls in two steps: propose and apply.
//!
//! [`Toolbox::propose`] checks a call and runs it on an overlay. The caller inspects the [`Proposal`] (its output, its
//! changes as a diff, the policy's decision), and `approval/` passes it to [`Toolbox::apply`]. Both steps refuse denied
//! calls. Each call adds a line to the log, which is written only here.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Zoned;
use serde_json::Value;
use vault_index::likeness::nearest;

use crate::change::{Change, EditedFile, LeftOutHunks, Preview, SeparableParts};
use crate::error::{Error, ErrorKind, Result};
use crate::expect::Expectation;
use crate::host::{Editor, Host};
use crate::journal::TransactionId;
use crate::log::{self, Approval, Record};
use crate::overlay::Overlay;
use crate::policy::{Call, Grants, Permission, Policy, Risk, Toolset};
use crate::sandbox::{Entry, EntryKind, View};
use crate::tool::{Cancel, Context, Draft, HostEffect, Listing, StepCache, Tool, ToolSpec, editor_of, without_denied};
use crate::tools::{self, fill_in_times};
use crate::transaction::ApplyOptions;
use crate::vault::Vault;

/// The maximum number of attempts to propose a call on files that change while it reads them.
const MAX_ATTEMPTS: usize = 5;

/// The tools of one vault.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use vault_tools::approval::{Answer, PreparedChange};
/// use vault_tools::{Headless, Policy, Toolbox, Vault, VaultOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let dir = folder.path().join("notes");
/// # std::fs::create_dir(&dir)?;
/// # std::fs::write(dir.join("Log.md"), "- begun\n")?;
/// # let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(vault_tools::IndexUse::Scan);
/// let vault = Arc::new(Vault::open(&dir, options)?);
/// let mut toolbox = Toolbox::new(vault, Box::new(Headless::default()), Policy::default());
/// let args = json!({ "path": "Log.md", "content": "- done" });
/// let mut ask = |change: &PreparedChange| {
///     print!("{}", change.preview()); // a diff; nothing has changed yet
///     Answer::Yes
/// };
/// toolbox.call("append_to_note", args, &mut ask)?;
/// # assert_eq!(std::fs::read_to_string(dir.join("Log.md"))?, "- begun\n- done\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Toolbox {
    vault: Arc<Vault>,
    host: Box<dyn Host>,
    policy: Policy,
    tools: Vec<Tool>,
    /// The state of the editor of a headless host after the calls so far.
    editor: Option<Editor>,
    now: Option<Zoned>,
    /// The reason that a line is missing from the log.
    log_error: Option<Error>,
}

/// The effects of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Proposal {
    /// The tool.
    pub tool: String,
    /// Its arguments, checked.
    pub args: Value,
    /// Its output, without the values that are only known after the changes.
    pub output: Value,
    /// Its changes. Private, because only an approval may apply them.
    pub(crate) change: Change,
    /// The effects that the host would carry out.
    pub effects: Vec<HostEffect>,
    /// The highest risk of its tool and its changes.
    pub risk: Risk,
    /// Every path that it names, then every path that it changes.
    pub paths: Vec<String>,
    /// The error of the call unless a person sees the change and approves it.
    pub unless_seen: Option<Error>,
    /// The hunks that a person left out of it; see [`Proposal::keep`].
    pub left_out: Vec<LeftOutHunks>,
    /// How many of `paths` it names.
    named: usize,
    toolset: Toolset,
    tool_risk: Risk,
    separable: SeparableParts,
    /// The state of the editor after the call; `None` if something is left out, or if the call did not read it.
    editor: Option<Editor>,
    took_ms: u64,
}

/// The output of a call that was carried out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// The output.
    pub value: Value,
    /// The transaction that `undo` reverts, if anything was changed.
    pub transaction: Option<TransactionId>,
    /// Notices for the caller, including those about parts that a person left out.
    pub notices: Vec<String>,
    /// The hunks that a person left out.
    pub left_out: Vec<LeftOutHunks>,
}

impl Output {
    /// Creates the output of a preview, which has no transaction because nothing was applied.
    pub fn previewed(value: Value, notices: Vec<String>) -> Self {
        Self { value, transaction: None, notices, left_out: Vec::new() }
    }

    /// Returns the output in the form for a model; see [`output_text`].
    pub fn text(&self) -> String {
        output_text(&self.value, &self.notices)
    }
}

/// Formats an output for a model: a text unquoted, anything else as JSON. If it is an object with a `content`, the
/// other fields come first, on one line, and the content follows unchanged. Each notice is a line before all that.
pub fn output_text(value: &Value, notices: &[String]) -> String {
    let notices: String = notices.iter().map(|notice| format!("note: {notice}\n")).collect();
    match content_of(value) {
        Some((content, rest)) => format!("{notices}{rest}\n\n{content}"),
        None => format!("{notices}{}", text_of(value)),
    }
}

/// Splits an object with a `content` into that and an object with the other fields.
pub fn content_of(value: &Value) -> Option<(&str, Value)> {
    let content = value.get("content")?.as_str()?;
    let rest = value.as_object()?.iter().filter(|(name, _)| *name != "content");
    Some((content, Value::Object(rest.map(|(name, value)| (name.clone(), value.clone())).collect())))
}

/// Formats a value: a text unquoted, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

impl Proposal {
    /// Returns the call in the form for the policy.
    pub fn as_call(&self) -> Call<'_> {
        let changes = &self.paths[self.named..];
        Call { risk: self.risk, changes, ..Call::new(&self.tool, self.toolset, self.tool_risk, &self.paths) }
    }

    /// Returns its changes, file by file, with diffs.
    pub fn preview(&self) -> Preview {
        self.change.preview()
    }

    /// Returns the files that it edits and of which parts can be left out; empty if its changes belong together, for
    /// example a rename and the links to the renamed file.
    pub fn separable_files(&self) -> Vec<EditedFile> {
        self.change.separable_files(&[(0..self.change.actions().len(), self.separable)])
    }

    /// Leaves out the parts that a person left out of its [`Proposal::separable_files`]. The output reports this, and
    /// contains the versions that the files will have.
    pub fn keep(&mut self, files: &[EditedFile]) {
        self.change.keep(files);
        for file in files {
            let Some(left_out) = file.left_out() else { continue };
            file.correct_version(&mut self.output);
            self.left_out.push(left_out);
            self.editor = None;
        }
    }

    /// Returns whether it changes nothing, so that only its output needs to be shown.
    pub fn only_reads(&self) -> bool {
        self.change.is_empty() && self.effects.is_empty()
    }
}

impl Toolbox {
    /// Creates a toolbox with all built-in tools for a vault, with a host around it.
    pub fn new(vault: Arc<Vault>, host: Box<dyn Host>, policy: Policy) -> Self {
        Self { vault, host, policy, tools: tools::all(), editor: None, now: None, log_error: None }
    }

    /// Adds a custom tool, which replaces one with the same name.
    pub fn add(&mut self, tool: Tool) {
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
    }

    /// Sets the current time, for tests and to work as if on another day.
    pub fn set_now(&mut self, now: Zoned) {
        self.now = Some(now);
    }

    /// Returns the current time: that of the clock, unless another was set.
    pub fn now(&self) -> Zoned {
        self.now.clone().unwrap_or_else(Zoned::now)
    }

    /// Returns the vault.
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the host.
    pub fn host(&mut self) -> &mut dyn Host {
        self.host.as_mut()
    }

    /// Returns the tools of a toolset, or all.
    pub fn specs(&self, toolset: Option<Toolset>) -> Vec<&ToolSpec> {
        let specs = self.tools.iter().map(Tool::spec);
        specs.filter(|spec| toolset.is_none_or(|toolset| spec.toolset == toolset)).collect()
    }

    /// Returns why the settings deny every call of a tool; `None` if they permit one.
    pub fn denial(&self, spec: &ToolSpec) -> Option<String> {
        match self.policy.decide(&spec.as_call(&[]), &Grants::default()) {
            Permission::Deny(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns a tool by its name, or by its alias without dots.
    ///
    /// # Errors
    /// `Unknown tool: X`, with the names of all tools.
    pub fn spec(&self, name: &str) -> Result<&ToolSpec> {
        self.tool(name).map(Tool::spec)
    }

    pub(crate) fn tool(&self, name: &str) -> Result<&Tool> {
        find(&self.tools, name)
    }

    /// Returns the policy's decision about a call, based on its name, its risk and the paths in its arguments. Nothing
    /// is run and nothing is logged. The policy decides again about the proposal, whose changes are known; therefore a
    /// call that [may exceed its tool's risk](Self::may_exceed_its_tool) asks here.
    ///
    /// # Errors
    /// An unknown tool; arguments that do not match its schema.
    pub fn permission(&self, name: &str, args: &Value, grants: &Grants) -> Result<Permission> {
        let tool = self.tool(name)?;
        let (args, _) = tool.checked(self.without_expect(name, args)?.0)?;
        let permission = self.policy.decide(&tool.spec().as_call(&tool.paths(&args)), grants);
        Ok(if tool.may_exceed(&args) { permission.max(Permission::Ask) } else { permission })
    }

    /// Returns whether a call with these arguments may exceed its tool's own risk, which no grant covers: for example,
    /// a rename that overwrites a file deletes it.
    pub fn may_exceed_its_tool(&self, name: &str, args: &Value) -> bool {
        self.tool(name).is_ok_and(|tool| tool.may_exceed(args))
    }

    /// Returns the state of the editor after the calls so far, without files that the policy denies.
    ///
    /// # Errors
    /// The errors of the host.
    pub fn editor(&self) -> Result<Editor> {
        match &self.editor {
            Some(editor) if !self.host.is_live() => Ok(without_denied(editor.clone(), &self.vault, &self.policy)),
            _ => editor_of(self.host.as_ref(), &self.vault, &self.policy),
        }
    }

    /// Returns whether the host is a running editor.
    pub fn is_live(&self) -> bool {
        self.host.is_live()
    }

    /// Sets the state of the editor of a headless host.
    pub fn set_editor(&mut self, editor: Editor) {
        self.editor = Some(editor);
    }

    /// Returns the notes that lists and searches may show, by path. Costs a walk of the vault; no note is read.
    ///
    /// # Errors
    /// If the vault cannot be listed, or its exclusion rules are invalid.
    pub fn notes(&self) -> Result<Vec<Entry>> {
        let overlay = self.vault.overlay();
        let exclusion = self.vault.exclusion()?;
        let listing = Listing::new(&self.policy, &overlay, &exclusion);
        let mut entries = overlay.walk(None)?;
        entries.retain(|entry| entry.stat.kind == EntryKind::File && entry.path.is_note() && listing.has(entry));
        Ok(entries)
    }

    /// Runs a call on an overlay. Nothing is changed.
    ///
    /// # Errors
    /// An unknown tool, arguments that do not match its schema, a denied call, and the errors of the tool. All are
    /// logged.
    pub fn propose(&mut self, name: &str, args: Value, cancel: Cancel<'_>) -> Result<Proposal> {
        let started = Instant::now();
        let mut proposal = self.try_propose(name, &args, cancel);
        // A conflict means that a file changed while it was read. The call can be restarted because nothing was shown
        // yet.
        for _ in 1..MAX_ATTEMPTS {
            match &proposal {
                Err(error) if error.kind() == ErrorKind::Conflict => proposal = self.try_propose(name, &args, cancel),
                _ => break,
            }
        }
        match proposal {
            Ok(proposal) => Ok(Proposal { took_ms: millis_since(started), ..proposal }),
            Err(error) => {
                let name = self.spec(name).map_or(name, |spec| &spec.name);
                let approval = Approval::of_failure(&error);
                let record = Record::new(name, &[&args], Err(&error), millis_since(started), approval);
                self.log(&record);
                Err(error)
            }
        }
    }

    fn try_propose(&mut self, name: &str, args: &Value, cancel: Cancel<'_>) -> Result<Proposal> {
        let vault = Arc::clone(&self.vault);
        let mut draft = self.draft(&vault, vault.overlay().of_one_call())?;
        let (args, expect) = self.without_expect(name, args)?;
        let done = self.run_on(&mut draft, name, args, cancel)?;
        let mut change = draft.overlay.change();
        expect.map_or(Ok(()), |expect| expect.check(change.touched()))?;
        change.retain_notices(&|path| self.policy.permits_path(path.as_str()));
        let spec = self.spec(name)?;
        let mut paths = done.paths;
        let named = paths.len();
        Ok(Proposal {
            risk: self.check_changes(spec, &mut paths, &change, 0..change.actions().len())?,
            tool: spec.name.clone(),
            args: done.args,
            output: done.output,
            change,
            effects: draft.effects,
            unless_seen: draft.unless_seen,
            paths,
            named,
            left_out: Vec::new(),
            toolset: spec.toolset,
            tool_risk: spec.risk,
            separable: self.tool(name)?.parts(),
            editor: draft.editor,
            took_ms: 0,
        })
    }

    /// Returns the arguments of a call without its expectation, which tools that write accept in addition to their own
    /// arguments.
    fn without_expect(&self, name: &str, args: &Value) -> Result<(Value, Option<Expectation>)> {
        let mut args = args.clone();
        let writes = self.spec(name).is_ok_and(|spec| spec.risk > Risk::Read);
        let expect = if writes { Expectation::take(&mut args)? } else { None };
        Ok((args, expect))
    }

    /// Returns the draft on which calls start.
    pub(crate) fn draft<'v>(&self, vault: &'v Vault, overlay: Overlay<'v>) -> Result<Draft<'v>> {
        let editor = if self.host.is_live() { None } else { Some(self.editor()?) };
        let now = self.now();
        let overlay = match self.policy.permits_all_paths() {
            true => overlay,
            false => {
                let policy = self.policy.clone();
                overlay.permitting(move |path| policy.permits_path(path))
            }
        };
        Ok(Draft { vault, overlay, editor, effects: Vec::new(), unless_seen: None, now, cache: StepCache::default() })
    }

    /// Checks that the policy permits the actions of one or more calls of a tool, and adds the changed paths to those
    /// in the arguments. Returns the highest risk of the calls.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn check_changes(
        &self,
        spec: &ToolSpec,
        paths: &mut Vec<String>,
        change: &Change,
        actions: Range<usize>,
    ) -> Result<Risk> {
        let risk = if change.deletes_in(actions.clone()) { spec.risk.max(Risk::Delete) } else { spec.risk };
        let changed = change.paths_in(actions);
        self.policy.permit_changes(paths, &changed)?;
        paths.extend(changed);
        let call = Call { risk, ..spec.as_call(paths) };
        self.policy.decide(&call, &Grants::default()).not_denied()?;
        Ok(risk)
    }

    /// Checks a call and runs it on a draft. This is the only place where tools are called.
    pub(crate) fn run_on(
        &mut self,
        draft: &mut Draft<'_>,
        name: &str,
        args: Value,
        cancel: Cancel<'_>,
    ) -> Result<CallResult> {
        let tool = find(&self.tools, name)?;
        let (args, notices) = tool.checked(args)?;
        let paths = tool.paths(&args);
        self.policy.decide(&tool.spec().as_call(&paths), &Grants::default()).not_denied()?;
        cancel.check()?;
        notices.into_iter().for_each(|notice| draft.overlay.notice(notice));
        let mut context = Context {
            vault: draft.vault,
            overlay: &mut draft.overlay,
            editor: &mut draft.editor,
            host: self.host.as_mut(),
            policy: &self.policy,
            now: &draft.now,
            effects: &mut draft.effects,
            unless_seen: &mut draft.unless_seen,
            cancel,
            cache: &draft.cache,
        };
        let output = tool.run(args.clone(), &mut context).map_err(|error| self.policy.discreet(error, &paths))?;
        if tool.spec().risk > Risk::Read {
            draft.cache = StepCache::default();
        }
        Ok(CallResult { args, paths, output })
    }

    /// Applies the proposed changes. `approval` records who approved them; only `approval/` calls it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if a file changed since the call was proposed; [`ErrorKind::Denied`] if `approval` is
    /// [`Approval::Denied`], or if the policy asks and no person approved; [`Proposal::unless_seen`] if no person saw
    /// the change. All are logged.
    pub(crate) fn apply(&mut self, proposal: &Proposal, approval: Approval) -> Result<Output> {
        let started = Instant::now();
        let outcome = self.try_apply(proposal, approval);
        let value = outcome.as_ref().map(|output| &output.value);
        let refused = matches!(value, Err(error) if error.kind() == ErrorKind::Denied);
        let approval = if refused { Approval::Denied } else { approval };
        let took = proposal.took_ms + millis_since(started);
        let mut record = Record::new(&proposal.tool, &[&proposal.args], value, took, approval);
        record.transaction = outcome.as_ref().ok().and_then(|output| output.transaction).map(|id| id.0);
        record.left_out = proposal.left_out.iter().map(LeftOutHunks::sentence).collect();
        self.log(&record);
        outcome
    }

    /// Adds a line to the log.
    pub(crate) fn log(&mut self, record: &Record) {
        let written = log::append(self.vault.state(), record);
        self.note_log_error(written);
    }

    /// Keeps the error of a failed write for [`Self::take_log_error`]. It changes no outcome, because the call was
    /// carried out.
    pub(crate) fn note_log_error(&mut self, written: Result<()>) {
        if let Err(error) = written {
            self.log_error = Some(error);
        }
    }

    /// Returns the last error in writing the log or the history of plans since the previous call of this method.
    pub fn take_log_error(&mut self) -> Option<Error> {
        self.log_error.take()
    }

    fn try_apply(&mut self, proposal: &Proposal, approval: Approval) -> Result<Output> {
        let mut grants = Grants::default();
        if approval == Approval::Granted {
            grants.grant(&proposal.tool);
        }
        // A person approves this particular call; a grant approves its tool, up to the tool's own risk.
        approval.check(self.policy.decide(&proposal.as_call(), &grants), &proposal.tool)?;
        approval.check_seen(proposal.unless_seen.as_ref())?;
        proposal.effects.iter().try_for_each(|effect| effect.check(&self.policy))?;
        let mut value = proposal.output.clone();
        let mut transaction = None;
        if !proposal.change.is_empty() {
            let options = ApplyOptions::new().label(&proposal.tool).editors(self.host.open_editors());
            let applied = self.vault.apply(&proposal.change, options);
            let done = applied.map_err(|error| self.policy.discreet(error, &proposal.paths))?;
            transaction = (done.done > 0).then_some(done.id);
            // The change has been applied, so a problem from here on must not become an error.
            fill_in_times(&mut value, self.vault.sandbox());
        }
        for effect in &proposal.effects {
            if let Err(error) = effect.run(self.host.as_mut()) {
                effect.report_failure(&mut value, &error);
            }
        }
        if let Some(editor) = &proposal.editor {
            self.set_editor(editor.clone());
        }
        let left_out = proposal.left_out.clone();
        let said = left_out.iter().map(LeftOutHunks::sentence);
        let notices = proposal.change.notices().map(str::to_owned).chain(said).collect();
        Ok(Output { value, transaction, notices, left_out })
    }

    /// Logs a call that was not carried out because a person refused it or no person could be asked.
    pub fn refuse(&mut self, name: &str, args: &Value, reason: &Error) {
        let name = self.spec(name).map_or(name, |spec| &spec.name);
        let record = Record::new(name, &[args], Err(reason), 0, Approval::Denied);
        self.log(&record);
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Toolbox");
        debug.field("host", &self.host.name()).field("policy", &self.policy).field("tools", &self.tools.len());
        debug.finish_non_exhaustive()
    }
}

/// Returns a tool by its name, or by its alias without dots.
///
/// # Errors
/// `Unknown tool: X`, with the names of all tools.
pub fn find<'t>(tools: &'t [Tool], name: &str) -> Result<&'t Tool> {
    let found = tools.iter().find(|tool| tool.spec().name == name);
    let found = found.or_else(|| tools.iter().find(|tool| tool.spec().alias.as_deref() == Some(name)));
    found.ok_or_else(|| {
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let near = nearest(name, names.iter().map(|name| (*name, *name)));
        Error::new(ErrorKind::NotFound, format!("Unknown tool: {name}")).with_remedy(match near.is_empty() {
            true => format!("there are {}", names.join(", ")),
            false => format!("did you mean {}?", near.join(" or ")),
        })
    })
}

/// A call that ran on a draft.
pub(crate) struct CallResult {
    /// The arguments, checked.
    pub args: Value,
    /// The paths that they name.
    pub paths: Vec<String>,
    pub output: Value,
}

pub(crate) fn millis_since(started: Instant) -> u64 {
    millis(started.elapsed())
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
