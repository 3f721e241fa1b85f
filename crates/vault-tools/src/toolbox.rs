//! The tools by their names: what there is, what a call would do, and its doing.
//!
//! A call has two halves. [`Toolbox::propose`] checks it and runs it on an overlay; whoever is responsible looks at
//! the [`Proposal`] (its answer, its changes as a diff, what the policy says) and hands it to [`Toolbox::apply`].
//! What is denied is denied in both halves. Each call leaves a line in the log, written here and nowhere else.

use std::sync::Arc;
use std::time::Instant;

use jiff::Zoned;
use serde_json::Value;

use crate::change::{ApplyOptions, Change, Vault};
use crate::error::{Error, ErrorKind, Result};
use crate::host::{Editor, Host};
use crate::journal::RunId;
use crate::log::{self, Decision, Record};
use crate::policy::{Attendance, Call, Grants, Risk, Rules, Toolset, Verdict};
use crate::tool::{Context, Draft, Effect, StepCache, Stop, Tool, ToolSpec};
use crate::tools::{self, fill_in_times};

/// So often a call is made anew on files that change while it looks at them.
const LOOKS: usize = 5;

/// The tools of one vault.
pub struct Toolbox {
    vault: Arc<Vault>,
    host: Box<dyn Host>,
    rules: Rules,
    tools: Vec<Tool>,
    /// Of a host that is not live: what its editor would show by now.
    editor: Option<Editor>,
    now: Option<Zoned>,
    /// Why lines are missing from the log.
    unlogged: Option<Error>,
}

/// What a call would do.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The tool.
    pub tool: String,
    /// Its arguments, checked.
    pub args: Value,
    /// Its answer, as far as it is known before it is done.
    pub output: Value,
    /// What it would change.
    pub change: Change,
    /// What it would have the host do.
    pub effects: Vec<Effect>,
    /// What it can do at worst, by its kind and by its changes.
    pub risk: Risk,
    /// Every path that it names or changes.
    pub paths: Vec<String>,
    toolset: Toolset,
    tool_risk: Risk,
    editor: Editor,
    took_ms: u64,
}

/// The answer of a call that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The answer.
    pub value: Value,
    /// The run that `undo` takes back, if anything was changed.
    pub run: Option<RunId>,
}

impl Output {
    /// As it is handed to a model: texts bare, all else as JSON.
    pub fn text(&self) -> String {
        text_of(&self.value)
    }
}

/// A value as text: texts bare, all else as JSON.
pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

impl Proposal {
    /// As the policy sees it.
    pub fn as_call(&self) -> Call<'_> {
        let Self { tool, toolset, tool_risk, risk, paths, .. } = self;
        Call { tool, toolset: *toolset, tool_risk: *tool_risk, risk: *risk, paths }
    }

    /// Whether there is anything to do but to hand the answer on.
    pub fn only_reads(&self) -> bool {
        self.change.is_empty() && self.effects.is_empty()
    }
}

impl Toolbox {
    /// All tools, on a vault, with a host around it.
    pub fn new(vault: Arc<Vault>, host: Box<dyn Host>, rules: Rules) -> Self {
        Self { vault, host, rules, tools: tools::all(), editor: None, now: None, unlogged: None }
    }

    /// Adds a tool of your own; it replaces one of the same name.
    pub fn add(&mut self, tool: Tool) {
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
    }

    /// Sets the clock: what daily notes and `${date}` go by. For tests, and for working as if on another day.
    pub fn set_now(&mut self, now: Zoned) {
        self.now = Some(now);
    }

    /// What counts as now.
    pub fn now(&self) -> Zoned {
        self.now.clone().unwrap_or_else(Zoned::now)
    }

    /// The vault.
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
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
        let found = self.tools.iter().find(|tool| tool.spec().name == name);
        let found = found.or_else(|| self.tools.iter().find(|tool| tool.spec().alias.as_deref() == Some(name)));
        found.ok_or_else(|| unknown(name, self.tools.iter().map(Tool::spec)))
    }

    /// What the policy says of a call before anything is read for it. A proposal is asked about again, since what a
    /// call changes is known only then.
    ///
    /// # Errors
    /// An unknown tool; arguments that do not fit it.
    pub fn verdict(&self, name: &str, args: &Value, grants: &Grants, attendance: Attendance) -> Result<Verdict> {
        let tool = self.tool(name)?;
        let paths = tool.paths(&tool.checked(args.clone())?);
        Ok(self.rules.decide(&tool.spec().as_call(&paths), grants, attendance))
    }

    /// What the editor shows by now.
    ///
    /// # Errors
    /// When the host cannot be asked.
    pub fn editor(&self) -> Result<Editor> {
        match &self.editor {
            Some(editor) if !self.host.is_live() => Ok(editor.clone()),
            _ => self.host.editor(),
        }
    }

    pub(crate) fn set_editor(&mut self, editor: Editor) {
        self.editor = Some(editor);
    }

    /// Runs a call on an overlay. Nothing is changed.
    ///
    /// # Errors
    /// An unknown tool, arguments that do not fit, a call that is denied, and whatever the tool says. They are logged.
    pub fn propose(&mut self, name: &str, args: Value, stop: Stop<'_>) -> Result<Proposal> {
        let started = Instant::now();
        let mut proposal = self.try_propose(name, &args, stop);
        // A file changed between two looks at it. Nothing was shown yet, so that it can be looked at anew.
        for _ in 1..LOOKS {
            match &proposal {
                Err(error) if error.kind() == ErrorKind::Conflict => proposal = self.try_propose(name, &args, stop),
                _ => break,
            }
        }
        match proposal {
            Ok(proposal) => Ok(Proposal { took_ms: millis_since(started), ..proposal }),
            Err(error) => {
                let decision = if error.kind() == ErrorKind::Denied { Decision::Denied } else { Decision::Allowed };
                let name = self.spec(name).map_or(name, |spec| &spec.name);
                let record = Record::new(name, &args, Err(&error), millis_since(started), decision);
                self.log(&record);
                Err(error)
            }
        }
    }

    fn try_propose(&mut self, name: &str, args: &Value, stop: Stop<'_>) -> Result<Proposal> {
        let vault = Arc::clone(&self.vault);
        let mut draft = Draft {
            vault: &vault,
            overlay: vault.overlay().of_one_call(),
            editor: self.editor()?,
            effects: Vec::new(),
            now: self.now(),
            cache: StepCache::default(),
        };
        let done = self.run_on(&mut draft, name, args.clone(), stop)?;
        let mut change = draft.overlay.into_change();
        change.tell_only(&|path| self.rules.permits_path(path.as_str()));
        let (mut paths, changed) = (done.paths, change.paths());
        self.rules.permit_changes(&paths, &changed)?;
        paths.extend(changed);
        let proposal = Proposal {
            risk: if change.deletes() { done.risk.max(Risk::Delete) } else { done.risk },
            tool: done.tool,
            args: done.args,
            output: done.output,
            change,
            effects: draft.effects,
            paths,
            toolset: done.toolset,
            tool_risk: done.risk,
            editor: draft.editor,
            took_ms: 0,
        };
        self.not_denied(&proposal.as_call())?;
        Ok(proposal)
    }

    /// Checks a call and runs it on a draft. This is the only place where tools are called.
    pub(crate) fn run_on(&mut self, draft: &mut Draft<'_>, name: &str, args: Value, stop: Stop<'_>) -> Result<Done> {
        let tool = self.tool(name)?;
        let args = tool.checked(args)?;
        let (paths, name) = (tool.paths(&args), tool.spec().name.clone());
        self.not_denied(&tool.spec().as_call(&paths))?;
        stop.check()?;
        let mut context = Context {
            vault: draft.vault,
            overlay: &mut draft.overlay,
            editor: &mut draft.editor,
            host: self.host.as_mut(),
            rules: &self.rules,
            now: &draft.now,
            effects: &mut draft.effects,
            stop,
            cache: &draft.cache,
        };
        let tool = self.tools.iter().find(|tool| tool.spec().name == name).expect("it was just found");
        let output = tool.run(args.clone(), &mut context).map_err(|error| self.rules.discreet(error, &paths))?;
        let (toolset, risk) = (tool.spec().toolset, tool.spec().risk);
        if risk > Risk::Read {
            draft.cache = StepCache::default();
        }
        Ok(Done { tool: name, toolset, risk, args, paths, output })
    }

    fn not_denied(&self, call: &Call<'_>) -> Result<()> {
        match self.rules.decide(call, &Grants::default(), Attendance::Attended) {
            Verdict::Deny(reason) => Err(Error::new(ErrorKind::Denied, reason)),
            Verdict::Allow | Verdict::Ask => Ok(()),
        }
    }

    /// Does what was proposed. `decision` says who let it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when a file is not as it was when the call was proposed; [`ErrorKind::Denied`] when
    /// the rules ask and `decision` is only their own, or when it is a no. They are logged.
    pub fn apply(&mut self, proposal: Proposal, decision: Decision) -> Result<Output> {
        let started = Instant::now();
        let outcome = self.try_apply(&proposal, decision);
        let value = outcome.as_ref().map(|output| &output.value);
        let refused = matches!(value, Err(error) if error.kind() == ErrorKind::Denied);
        let decision = if refused { Decision::Denied } else { decision };
        let took = proposal.took_ms + millis_since(started);
        let mut record = Record::new(&proposal.tool, &proposal.args, value, took, decision);
        record.run = outcome.as_ref().ok().and_then(|output| output.run).map(|run| run.0);
        self.log(&record);
        outcome
    }

    /// Adds a line to the log. What was done is done, whether that can be written or not.
    pub(crate) fn log(&mut self, record: &Record) {
        self.unlogged_if(log::append(self.vault.state(), record));
    }

    /// Remembers why something could not be noted of what was done.
    pub(crate) fn unlogged_if(&mut self, noted: Result<()>) {
        if let Err(error) = noted {
            self.unlogged = Some(error);
        }
    }

    /// Why the log has no line of a call since this was last asked; `None` if it has all of them. The calls were made,
    /// or refused, as their answers say.
    pub fn unlogged(&mut self) -> Option<Error> {
        self.unlogged.take()
    }

    fn try_apply(&mut self, proposal: &Proposal, decision: Decision) -> Result<Output> {
        let mut grants = Grants::default();
        if decision == Decision::Granted {
            grants.grant(&proposal.tool);
        }
        // A person's word is about this call; a grant is about its tool, and reaches no further than that.
        let attendance = match decision {
            Decision::Denied => return Err(Error::new(ErrorKind::Denied, "it was not approved")),
            Decision::Approved | Decision::Edited => Attendance::Attended,
            Decision::Allowed | Decision::Granted => Attendance::Unattended,
        };
        if let Verdict::Deny(reason) = self.rules.decide(&proposal.as_call(), &grants, attendance) {
            return Err(Error::new(ErrorKind::Denied, reason));
        }
        let mut value = proposal.output.clone();
        let mut run = None;
        if !proposal.change.is_empty() {
            let options = ApplyOptions { label: proposal.tool.clone(), ..ApplyOptions::default() };
            let applied = self.vault.apply(&proposal.change, options);
            let done = applied.map_err(|error| self.rules.discreet(error, &proposal.paths))?;
            run = (done.done > 0).then_some(done.id);
            // From here on nothing is an error any more: it is done.
            fill_in_times(&mut value, self.vault.sandbox());
        }
        for effect in &proposal.effects {
            if let Err(error) = effect.run(self.host.as_mut()) {
                effect.report_failure(&mut value, &error);
            }
        }
        self.set_editor(proposal.editor.clone());
        Ok(Output { value, run })
    }

    /// Writes down that a person, or nobody being there to ask, kept a call from being made.
    pub fn refuse(&mut self, name: &str, args: &Value, reason: &Error) {
        let name = self.spec(name).map_or(name, |spec| &spec.name);
        let record = Record::new(name, args, Err(reason), 0, Decision::Denied);
        self.log(&record);
    }

    /// Proposes and applies in one go, for a caller who is responsible for `decision`.
    ///
    /// # Errors
    /// Those of both.
    pub fn call(&mut self, name: &str, args: Value, decision: Decision) -> Result<Output> {
        let proposal = self.propose(name, args, Stop::default())?;
        self.apply(proposal, decision)
    }
}

/// The tools that are built in, without any vault.
#[cfg(feature = "cli")]
pub(crate) fn built_in() -> Vec<ToolSpec> {
    tools::all().iter().map(|tool| tool.spec().clone()).collect()
}

/// The error of a name that no tool has.
pub(crate) fn unknown<'s>(name: &str, specs: impl IntoIterator<Item = &'s ToolSpec>) -> Error {
    let names: Vec<&str> = specs.into_iter().map(|spec| spec.name.as_str()).collect();
    Error::new(ErrorKind::NotFound, format!("Unknown tool: {name}")).remedy(format!("there are {}", names.join(", ")))
}

/// A call that was run on an overlay.
pub(crate) struct Done {
    pub tool: String,
    pub toolset: Toolset,
    pub risk: Risk,
    pub args: Value,
    pub paths: Vec<String>,
    pub output: Value,
}

pub(crate) fn millis_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}
