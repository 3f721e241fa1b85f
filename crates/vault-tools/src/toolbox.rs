//! Finds tools by name and makes calls in two steps: propose and apply.
//!
//! [`Toolbox::propose`] checks a call and runs it on an overlay. The caller looks at the [`Proposal`] (its output, its
//! changes as a diff, what the policy says), and `approval/` hands it to [`Toolbox::apply`]. Both steps refuse what is
//! denied. Each call leaves a line in the log, written here and nowhere else.

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
use crate::sandbox::{Entry, EntryKind, SafePath, View};
use crate::tool::{Cancel, Context, Draft, HostEffect, Listing, StepCache, Tool, ToolSpec};
use crate::tools::{self, fill_in_times};
use crate::transaction::ApplyOptions;
use crate::vault::Vault;

/// Attempts to propose a call on files that change while it reads them.
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
    /// What the editor of a headless host would show after the calls so far.
    editor: Option<Editor>,
    now: Option<Zoned>,
    /// Why a line is missing from the log.
    log_error: Option<Error>,
}

/// What a call would do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Proposal {
    /// The tool.
    pub tool: String,
    /// Its arguments, checked.
    pub args: Value,
    /// Its output, as far as it is known before the changes are made.
    pub output: Value,
    /// What it would change. Private: it is applied by an approval only.
    pub(crate) change: Change,
    /// What the host would do.
    pub effects: Vec<HostEffect>,
    /// The worst that it does, going by its tool and its changes.
    pub risk: Risk,
    /// Every path that it names, then every path that it changes.
    pub paths: Vec<String>,
    /// The error of the call unless a person sees the change and approves it.
    pub unless_seen: Option<Error>,
    /// What a person left out of it, see [`Proposal::keep`].
    pub left_out: Vec<LeftOutHunks>,
    /// How many of `paths` it names.
    named: usize,
    toolset: Toolset,
    tool_risk: Risk,
    separable: SeparableParts,
    /// What the editor shows then; unknown if something is left out.
    editor: Option<Editor>,
    took_ms: u64,
}

/// The output of a call that was made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// The output.
    pub value: Value,
    /// The transaction that `undo` reverts, if anything was changed.
    pub transaction: Option<TransactionId>,
    /// What else the caller should know: also what a person left out.
    pub notices: Vec<String>,
    /// What a person left out.
    pub left_out: Vec<LeftOutHunks>,
}

impl Output {
    /// The output that a call would have: nothing was applied, so there is no transaction.
    pub fn previewed(value: Value, notices: Vec<String>) -> Self {
        Self { value, transaction: None, notices, left_out: Vec::new() }
    }

    /// The output as a model gets it, see [`output_text`].
    pub fn text(&self) -> String {
        output_text(&self.value, &self.notices)
    }
}

/// An output as a model gets it: a text bare, anything else as JSON. Of an object with a `content`, the other fields come
/// first, on one line, and the content follows as it is. Each of the notices is a line before all that.
pub fn output_text(value: &Value, notices: &[String]) -> String {
    let notices: String = notices.iter().map(|notice| format!("note: {notice}\n")).collect();
    match content_of(value) {
        Some((content, rest)) => format!("{notices}{rest}\n\n{content}"),
        None => format!("{notices}{}", text_of(value)),
    }
}

/// Of an object with a `content`: that, and the other fields as an object.
pub fn content_of(value: &Value) -> Option<(&str, Value)> {
    let content = value.get("content")?.as_str()?;
    let rest = value.as_object()?.iter().filter(|(name, _)| *name != "content");
    Some((content, Value::Object(rest.map(|(name, value)| (name.clone(), value.clone())).collect())))
}

/// A text bare, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

impl Proposal {
    /// The call as the policy sees it.
    pub fn as_call(&self) -> Call<'_> {
        let changes = &self.paths[self.named..];
        Call { risk: self.risk, changes, ..Call::new(&self.tool, self.toolset, self.tool_risk, &self.paths) }
    }

    /// What it would change, file by file, with diffs.
    pub fn preview(&self) -> Preview {
        self.change.preview()
    }

    /// The files that it edits and of which parts can be left out; none where all that it does belongs together, as a
    /// rename and the links to what is renamed.
    pub fn separable_files(&self) -> Vec<EditedFile> {
        self.change.separable_files(&[(0..self.change.actions().len(), self.separable)])
    }

    /// Leaves out what a person left out of its [`Proposal::separable_files`]. The output says so, and has the versions
    /// that the files will have.
    pub fn keep(&mut self, files: &[EditedFile]) {
        self.change.keep(files);
        for file in files {
            let Some(left_out) = file.left_out() else { continue };
            file.correct_version(&mut self.output);
            self.left_out.push(left_out);
            self.editor = None;
        }
    }

    /// Whether it changes nothing, so that only its output remains to be shown.
    pub fn only_reads(&self) -> bool {
        self.change.is_empty() && self.effects.is_empty()
    }
}

impl Toolbox {
    /// All built-in tools for a vault, with a host around it.
    pub fn new(vault: Arc<Vault>, host: Box<dyn Host>, policy: Policy) -> Self {
        Self { vault, host, policy, tools: tools::all(), editor: None, now: None, log_error: None }
    }

    /// Adds a tool of your own; it replaces one of the same name.
    pub fn add(&mut self, tool: Tool) {
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
    }

    /// Sets the current time, for tests and for working as if on another day.
    pub fn set_now(&mut self, now: Zoned) {
        self.now = Some(now);
    }

    /// The current time: the clock's, unless it was set.
    pub fn now(&self) -> Zoned {
        self.now.clone().unwrap_or_else(Zoned::now)
    }

    /// The vault.
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The host.
    pub fn host(&mut self) -> &mut dyn Host {
        self.host.as_mut()
    }

    /// The tools of a toolset, or all.
    pub fn specs(&self, toolset: Option<Toolset>) -> Vec<&ToolSpec> {
        let specs = self.tools.iter().map(Tool::spec);
        specs.filter(|spec| toolset.is_none_or(|toolset| spec.toolset == toolset)).collect()
    }

    /// A tool by its name, or by the one without dots.
    ///
    /// # Errors
    /// `Unknown tool: X`, with the names of all tools.
    pub fn spec(&self, name: &str) -> Result<&ToolSpec> {
        self.tool(name).map(Tool::spec)
    }

    pub(crate) fn tool(&self, name: &str) -> Result<&Tool> {
        find(&self.tools, name)
    }

    /// What the policy says about a call, going by its name, its risk and the paths that it names. Nothing is run and
    /// nothing is logged. The policy is asked again about the proposal, which knows the changes; so a call that
    /// [may do worse than its tool](Self::may_exceed_its_tool) asks here.
    ///
    /// # Errors
    /// An unknown tool; arguments that do not match its schema.
    pub fn permission(&self, name: &str, args: &Value, grants: &Grants) -> Result<Permission> {
        let tool = self.tool(name)?;
        let (args, _) = tool.checked(self.without_expect(name, args)?.0)?;
        let permission = self.policy.decide(&tool.spec().as_call(&tool.paths(&args)), grants);
        Ok(if tool.may_exceed(&args) { permission.max(Permission::Ask) } else { permission })
    }

    /// Whether a call with these arguments may do worse than its tool's own risk, which no grant covers: a rename that
    /// overwrites a file deletes it.
    pub fn may_exceed_its_tool(&self, name: &str, args: &Value) -> bool {
        self.tool(name).is_ok_and(|tool| tool.may_exceed(args))
    }

    /// What the editor shows after the calls so far; nothing of files that the policy denies.
    ///
    /// # Errors
    /// Those of the host.
    pub fn editor(&self) -> Result<Editor> {
        let mut editor = match &self.editor {
            Some(editor) if !self.host.is_live() => editor.clone(),
            _ => self.host.editor()?,
        };
        let sandbox = self.vault.sandbox();
        let permits = |path: &SafePath| {
            let real = sandbox.real(path).unwrap_or_else(|_| path.clone());
            self.policy.permits_path(path.as_str()) && self.policy.permits_path(real.as_str())
        };
        editor.open.retain(permits);
        if editor.active_file.as_ref().is_some_and(|path| !permits(path)) {
            editor = Editor { open: editor.open, ..Editor::default() };
        }
        Ok(editor)
    }

    /// Sets what the editor of a headless host shows.
    pub fn set_editor(&mut self, editor: Editor) {
        self.editor = Some(editor);
    }

    /// The notes that lists and searches may show, by path. Costs a walk of the vault; nothing is read.
    ///
    /// # Errors
    /// When the vault cannot be listed, or its rules of what is left out cannot be understood.
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
    /// An unknown tool, arguments that do not match its schema, a denied call, and the errors of the tool. They are
    /// logged.
    pub fn propose(&mut self, name: &str, args: Value, cancel: Cancel<'_>) -> Result<Proposal> {
        let started = Instant::now();
        let mut proposal = self.try_propose(name, &args, cancel);
        // A conflict means that a file changed while it was read. Nothing was shown yet, so the call can start again.
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
            editor: Some(draft.editor),
            took_ms: 0,
        })
    }

    /// The arguments of a call without what it expects to touch, which tools that write take besides their own.
    fn without_expect(&self, name: &str, args: &Value) -> Result<(Value, Option<Expectation>)> {
        let mut args = args.clone();
        let writes = self.spec(name).is_ok_and(|spec| spec.risk > Risk::Read);
        let expect = if writes { Expectation::take(&mut args)? } else { None };
        Ok((args, expect))
    }

    /// What calls begin on.
    pub(crate) fn draft<'v>(&self, vault: &'v Vault, overlay: Overlay<'v>) -> Result<Draft<'v>> {
        let (editor, now) = (self.editor()?, self.now());
        let overlay = match self.policy.permits_all_paths() {
            true => overlay,
            false => {
                let policy = self.policy.clone();
                overlay.permitting(move |path| policy.permits_path(path))
            }
        };
        Ok(Draft { vault, overlay, editor, effects: Vec::new(), unless_seen: None, now, cache: StepCache::default() })
    }

    /// Requires that the policy permits the actions of one or more calls of a tool, and adds the paths that they change to
    /// those that the calls name. Returns the worst that the calls do.
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

    /// Makes the changes that were proposed. `approval` says who approved them; only `approval/` calls it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when a file changed since the call was proposed; [`ErrorKind::Denied`] when `approval`
    /// is [`Approval::Denied`], or when the policy asks and no person approved; [`Proposal::unless_seen`] where no person
    /// saw the change. They are logged.
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

    /// Keeps the error of a failed write for [`Self::take_log_error`]. It changes no outcome: the call was made.
    pub(crate) fn note_log_error(&mut self, written: Result<()>) {
        if let Err(error) = written {
            self.log_error = Some(error);
        }
    }

    /// The last error of writing the log or the history of plans since this was last called.
    pub fn take_log_error(&mut self) -> Option<Error> {
        self.log_error.take()
    }

    fn try_apply(&mut self, proposal: &Proposal, approval: Approval) -> Result<Output> {
        let mut grants = Grants::default();
        if approval == Approval::Granted {
            grants.grant(&proposal.tool);
        }
        // A person approves this very call; a grant approves its tool, up to the tool's own risk.
        approval.check(self.policy.decide(&proposal.as_call(), &grants), &proposal.tool)?;
        approval.check_seen(proposal.unless_seen.as_ref())?;
        let mut value = proposal.output.clone();
        let mut transaction = None;
        if !proposal.change.is_empty() {
            let options = ApplyOptions::new().label(&proposal.tool);
            let applied = self.vault.apply(&proposal.change, options);
            let done = applied.map_err(|error| self.policy.discreet(error, &proposal.paths))?;
            transaction = (done.done > 0).then_some(done.id);
            // The change is made, so nothing is an error from here on.
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

    /// Logs a call that was not made because a person refused it or nobody could be asked.
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

/// A tool by its name, or by the one without dots.
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
