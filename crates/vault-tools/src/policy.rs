//! Who may do what: allow, ask or deny, as a pure function of configuration and call. It never asks anybody.
//!
//! The order of the reasons, first match decides:
//! 1. what is denied (tools, paths, deletes and commands that are not allowed) is denied, whatever else says yes;
//! 2. a session grant allows;
//! 3. the tool's own setting: always ask, never ask;
//! 4. the default of its risk: reads are free, but for the toolset `chat`; writes, deletes and commands ask.
//!
//! Grants and settings are about a tool, so they reach as far as the tool's own risk: a rename that deletes what it
//! overwrites asks. A plan asks where one of its calls does, and by itself if it only reads. Where nobody can be
//! asked, what would ask is denied. Risks are computed from tools and changes; what a plan declares plays no part.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, ErrorKind, Result};

/// What a call can do at worst; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Reads notes.
    Read,
    /// Makes or changes files; `undo` takes it back.
    Write,
    /// Deletes files.
    Delete,
    /// Runs a command of a live host, which nobody can take back.
    Command,
}

impl Risk {
    /// As it is written in records and shown in badges.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Command => "command",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The named sets that tools are offered in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Toolset {
    /// What a model works on notes with: the default.
    #[default]
    Notes,
    /// Two tools that only read, and ask before they do.
    Chat,
    /// What plans are made of.
    Actions,
}

impl Toolset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Notes, Self::Chat, Self::Actions];

    /// As it is written on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notes => "notes",
            Self::Chat => "chat",
            Self::Actions => "actions",
        }
    }
}

impl fmt::Display for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the user decided about one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Every call asks.
    AlwaysAsk,
    /// No call asks, but for one that does worse than is the tool's kind, as a rename that deletes what it overwrites.
    NeverAsk,
    /// As the risk's default says.
    #[default]
    ByRisk,
}

/// Where deleted files go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trash {
    /// Into the vault's `.trash`.
    #[default]
    Vault,
    /// Into the system's.
    System,
}

/// The user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether writes ask. On by default; deletes ask in any case.
    pub confirm_writes: bool,
    /// Whether commands of a host may be run at all. On by default; they ask.
    pub allow_commands: bool,
    /// Whether anything may be deleted at all. Off by default.
    pub allow_delete: bool,
    /// Whether plans that only read run without being asked about. Off by default.
    pub auto_approve_read_only: bool,
    /// If any are named, no other tools may run. Names or globs: `search_notes`, `vault.*`.
    pub allowed_tools: Vec<String>,
    /// Tools that may not run. Names or globs.
    pub denied_tools: Vec<String>,
    /// If any are named, no other paths may be read or written. Folders or globs, from the vault's root.
    pub allowed_paths: Vec<String>,
    /// Paths that may be neither read nor written. Folders or globs; one without a `/` fits at any depth, as in
    /// `.gitignore`, and one with a `/` in it or at its front counts from the vault's root.
    pub denied_paths: Vec<String>,
    /// Where deleted files go. Into the vault's `.trash` unless told.
    pub trash: Trash,
    /// What was decided about single tools, by name.
    pub tools: BTreeMap<String, Setting>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            confirm_writes: true,
            allow_commands: true,
            allow_delete: false,
            auto_approve_read_only: false,
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            allowed_paths: Vec::new(),
            denied_paths: Vec::new(),
            trash: Trash::default(),
            tools: BTreeMap::new(),
        }
    }
}

/// A call as the policy sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The tool's name; `vault.delete` and `vault_delete` are the same one.
    pub tool: &'a str,
    /// Where it is offered.
    pub toolset: Toolset,
    /// What the tool can do at worst, by its kind.
    pub tool_risk: Risk,
    /// What this call does at worst, its changes looked at: `tool_risk` or more.
    pub risk: Risk,
    /// The vault paths it names or changes, those of rewritten links included.
    pub paths: &'a [String],
}

impl Call<'_> {
    /// Whether it does worse than its tool's kind, so that what was said about the tool does not cover it.
    fn goes_beyond_its_tool(&self) -> bool {
        self.risk > self.tool_risk
    }
}

/// What was allowed for as long as a session lasts. It belongs to the run that was granted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants(BTreeSet<String>);

impl Grants {
    /// Allows every further call of a tool, as far as the tool's own risk.
    pub fn grant(&mut self, tool: &str) {
        self.0.insert(key(tool));
    }

    /// Whether a tool was granted.
    pub fn holds(&self, tool: &str) -> bool {
        self.0.contains(&key(tool))
    }
}

/// Whether somebody is there who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// A person can be asked.
    Attended,
    /// Nobody can.
    Unattended,
}

/// What the policy says of a call; the later, the stricter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run, for this reason.
    Deny(String),
}

impl Policy {
    /// The rules, ready to be asked.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a glob that cannot be understood.
    pub fn compile(&self) -> Result<Rules> {
        let tools = |globs: &[String]| globs.iter().map(|glob| matcher(&key(glob), glob)).collect::<Result<Vec<_>>>();
        let paths =
            PathRules { allowed: allowed_matchers(&self.allowed_paths)?, denied: denied_matchers(&self.denied_paths)? };
        Ok(Rules {
            allowed_tools: tools(&self.allowed_tools)?,
            denied_tools: tools(&self.denied_tools)?,
            settings: self.tools.iter().map(|(name, setting)| (key(name), *setting)).collect(),
            paths,
            policy: self.clone(),
        })
    }
}

/// A [`Policy`] with its globs read. Cheap to ask.
#[derive(Debug, Clone)]
pub struct Rules {
    policy: Policy,
    allowed_tools: Vec<GlobMatcher>,
    denied_tools: Vec<GlobMatcher>,
    settings: BTreeMap<String, Setting>,
    paths: PathRules,
}

impl Default for Rules {
    fn default() -> Self {
        Policy::default().compile().expect("the default names no globs")
    }
}

impl Rules {
    /// What these rules say of a call.
    pub fn decide(&self, call: &Call<'_>, grants: &Grants, attendance: Attendance) -> Verdict {
        let verdict = match self.denial(call) {
            Some(reason) => Verdict::Deny(reason),
            None if grants.holds(call.tool) && !call.goes_beyond_its_tool() => Verdict::Allow,
            None => self.default_of(call),
        };
        unattended(verdict, attendance, call.tool)
    }

    /// What these rules say of a plan: of all its calls at once. One denied call denies the plan.
    pub fn decide_plan(&self, calls: &[Call<'_>], grants: &Grants, attendance: Attendance) -> Verdict {
        let only_reads = calls.iter().all(|call| call.risk == Risk::Read);
        // Writes ask by themselves; what only reads asks because it is a plan.
        let as_plan = if only_reads && !self.policy.auto_approve_read_only { Verdict::Ask } else { Verdict::Allow };
        let verdicts = calls.iter().map(|call| self.decide(call, grants, Attendance::Attended));
        unattended(verdicts.fold(as_plan, Verdict::max), attendance, "this plan")
    }

    /// Whether a tool may ever run without being asked about: an unattended run is offered only such tools.
    pub fn runs_unattended(&self, tool: &str, toolset: Toolset, risk: Risk) -> bool {
        let call = Call { tool, toolset, tool_risk: risk, risk, paths: &[] };
        self.decide(&call, &Grants::default(), Attendance::Unattended) == Verdict::Allow
    }

    /// Which paths may be read: what a search or a listing finds elsewhere is left out.
    pub fn permits_path(&self, path: &str) -> bool {
        self.paths.refusal(path).is_none()
    }

    /// Where deleted files go.
    pub fn trash(&self) -> Trash {
        self.policy.trash
    }

    /// Whether every path may be read, so that none has to be looked at.
    pub(crate) fn permits_all_paths(&self) -> bool {
        self.paths.allowed.is_empty() && self.paths.denied.is_empty()
    }

    /// Whether a call may change what it would. `named` are the paths that it names itself: of no other one that is
    /// denied is it told that it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn permit_changes(&self, named: &[String], changed: &[String]) -> Result<()> {
        if changed.iter().all(|path| self.permits_path(path) || named.contains(path)) {
            return Ok(());
        }
        let what =
            "it would change something else that your settings deny, as a note that links to it or lies in a folder";
        Err(Error::new(ErrorKind::Denied, what))
    }

    /// An error that tells of no denied file but those in `named`.
    pub(crate) fn discreet(&self, error: Error, named: &[String]) -> Error {
        // Pointers into arguments, and files of ours, begin with a slash.
        let is_hidden = |path: &str| !path.starts_with('/') && !self.permits_path(path);
        match error.path() {
            Some(path) if is_hidden(path) && !named.iter().any(|name| name == path) => {
                let what = match error.kind() {
                    ErrorKind::Conflict => "something that your settings deny is not as it was, and bears on this",
                    _ => "something that your settings deny stands in the way",
                };
                Error::new(error.kind(), what)
                    .with_remedy("nothing was done; repeat the change, or choose another name")
            }
            _ => error,
        }
    }

    fn denial(&self, call: &Call<'_>) -> Option<String> {
        let tool = key(call.tool);
        if self.denied_tools.iter().any(|glob| glob.is_match(&tool)) {
            return Some(format!("the tool {} is denied by your settings", call.tool));
        }
        if !self.allowed_tools.is_empty() && !self.allowed_tools.iter().any(|glob| glob.is_match(&tool)) {
            return Some(format!("the tool {} is not among the tools your settings allow", call.tool));
        }
        if let Some(reason) = call.paths.iter().find_map(|path| self.paths.refusal(path)) {
            return Some(reason);
        }
        match call.risk {
            Risk::Delete if !self.policy.allow_delete => {
                Some("deleting is not allowed (set allow_delete, or add --allow-delete)".into())
            }
            Risk::Command if !self.policy.allow_commands => {
                Some("running commands is not allowed (set allow_commands)".into())
            }
            _ => None,
        }
    }

    fn default_of(&self, call: &Call<'_>) -> Verdict {
        match self.settings.get(&key(call.tool)).copied().unwrap_or_default() {
            Setting::AlwaysAsk => Verdict::Ask,
            Setting::NeverAsk if !call.goes_beyond_its_tool() => Verdict::Allow,
            Setting::NeverAsk | Setting::ByRisk => match call.risk {
                Risk::Read if call.toolset != Toolset::Chat => Verdict::Allow,
                Risk::Write if !self.policy.confirm_writes => Verdict::Allow,
                _ => Verdict::Ask,
            },
        }
    }
}

/// Which paths may be touched.
#[derive(Debug, Clone, Default)]
struct PathRules {
    allowed: Vec<GlobMatcher>,
    denied: Vec<GlobMatcher>,
}

impl PathRules {
    fn refusal(&self, path: &str) -> Option<String> {
        let normal = folded(path.trim_start_matches("./"));
        let normal = normal.trim_end_matches('/');
        if self.denied.iter().any(|glob| glob.is_match(normal)) {
            return Some(format!("{path}: this path is denied by your settings"));
        }
        if !self.allowed.is_empty() && !self.allowed.iter().any(|glob| glob.is_match(normal)) {
            return Some(format!("{path}: this path is not among those your settings allow"));
        }
        None
    }
}

fn unattended(verdict: Verdict, attendance: Attendance, what: &str) -> Verdict {
    match (verdict, attendance) {
        (Verdict::Ask, Attendance::Unattended) => {
            Verdict::Deny(format!("{what} needs a person's approval, and nobody can be asked here"))
        }
        (verdict, _) => verdict,
    }
}

/// Tools are offered under names with and without dots; rules hold for both.
fn key(tool: &str) -> String {
    tool.trim().replace('.', "_").to_lowercase()
}

fn matcher(pattern: &str, written: &str) -> Result<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| {
        Error::new(ErrorKind::Config, format!("`{written}` is not a pattern: {}", error.kind()))
            .with_remedy("write a name, a folder, or a glob such as Private/**")
    })
}

/// A pattern names a path, everything below it, and (without an extension) the note of that name. Case is folded,
/// as the file systems of two of our three systems do.
fn allowed_matchers(patterns: &[String]) -> Result<Vec<GlobMatcher>> {
    let mut matchers = Vec::new();
    for pattern in patterns {
        let stem = folded(bare(pattern).trim_matches('/'));
        add_matchers(&stem, pattern, &mut matchers)?;
    }
    Ok(matchers)
}

/// The same; one that names no folder it lies in fits in every folder. So each of the two lists errs on the safe side.
fn denied_matchers(patterns: &[String]) -> Result<Vec<GlobMatcher>> {
    let mut matchers = Vec::new();
    for pattern in patterns {
        let stem = folded(bare(pattern).trim_matches('/'));
        add_matchers(&stem, pattern, &mut matchers)?;
        if !bare(pattern).trim_end_matches('/').contains('/') {
            add_matchers(&format!("**/{stem}"), pattern, &mut matchers)?;
        }
    }
    Ok(matchers)
}

/// As paths are compared: globs fold the case of ASCII letters alone.
fn folded(path: &str) -> String {
    path.nfc().collect::<String>().to_lowercase().nfc().collect()
}

fn bare(pattern: &str) -> &str {
    pattern.trim().trim_start_matches("./")
}

fn add_matchers(stem: &str, written: &str, matchers: &mut Vec<GlobMatcher>) -> Result<()> {
    if stem.is_empty() {
        return Err(Error::new(ErrorKind::Config, format!("`{written}` is not a pattern: it names nothing")));
    }
    for glob in [stem.to_string(), format!("{stem}/**"), format!("{stem}.md")] {
        matchers.push(matcher(&glob, written)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
