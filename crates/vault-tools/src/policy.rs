//! Decides whether a call is allowed, asks a person, or is denied: a pure function of settings and call.
//!
//! The first rule that applies decides:
//! 1. Denied tools, denied paths, denied commands, and deletes and commands that are not allowed are denied, whatever
//!    later rules say.
//! 2. A session grant allows.
//! 3. The tool's own setting: always ask, never ask.
//! 4. A lasting permission allows, once the changes of the call are known.
//! 5. The default for its risk: reads are free except in the toolset `chat`; writes, deletes and commands ask.
//!
//! Grants and settings are about a tool, so they cover no more than the tool's own risk: for example, a rename that
//! deletes the file it overwrites asks. A plan asks if one of its calls asks, and also if it only reads. Risks are
//! computed from tools and changes; the risk that a plan declares is not used.

mod call;
mod lasting;

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::DeleteMode;
use crate::error::{Error, ErrorKind, Result};

pub use call::{Call, Risk, Toolset};
pub use lasting::LastingPermission;

use call::{folded, key};

/// The user's setting for one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolSetting {
    /// Every call asks.
    AlwaysAsk,
    /// No call asks, except one that exceeds the tool's own risk, such as a rename that deletes the file it overwrites.
    NeverAsk,
    /// The default for its risk applies.
    #[default]
    ByRisk,
}

/// The user's settings. Begin with the default, and set what differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PolicySettings {
    /// Whether writes ask. On by default. Deletes ask whatever it is.
    pub confirm_writes: bool,
    /// Whether commands of a host may be run at all; they ask. On by default.
    pub allow_commands: bool,
    /// Whether anything may be deleted at all. Off by default.
    pub allow_delete: bool,
    /// Whether plans that only read run without asking. Off by default.
    pub auto_approve_read_only: bool,
    /// If any are given, no other tools may run. Names or globs: `search_notes`, `vault.*`.
    pub allowed_tools: Vec<String>,
    /// Tools that may not run. Names or globs.
    pub denied_tools: Vec<String>,
    /// If any are given, no other commands of a host may be run. Ids or globs: `editor:*`.
    pub allowed_commands: Vec<String>,
    /// Commands of a host that may not be run. Ids or globs.
    pub denied_commands: Vec<String>,
    /// If any are given, no other paths may be read or written. Folders or globs, from the vault's root.
    pub allowed_paths: Vec<String>,
    /// Paths that may be neither read nor written. Folders or globs; as in `.gitignore`, one without a `/` matches at
    /// any depth, and one with a `/` in it or in front is relative to the vault's root.
    pub denied_paths: Vec<String>,
    /// Where deleted files go. By default where the vault's Obsidian is set to, and into its `.trash` if that says nothing.
    pub trash: Option<DeleteMode>,
    /// Settings for single tools, by name.
    pub tools: BTreeMap<String, ToolSetting>,
    /// Permissions to change notes without asking until they are revoked, by tool and folder. Empty by default.
    pub permissions: Vec<LastingPermission>,
    /// Additional lists for single vaults, by the name of their folder; see [`PolicySettings::of_vault`].
    pub vault: BTreeMap<String, VaultLists>,
}

/// A user's settings for one vault only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct VaultLists {
    /// As [`PolicySettings::allowed_tools`].
    pub allowed_tools: Vec<String>,
    /// As [`PolicySettings::denied_tools`].
    pub denied_tools: Vec<String>,
    /// As [`PolicySettings::allowed_paths`].
    pub allowed_paths: Vec<String>,
    /// As [`PolicySettings::denied_paths`].
    pub denied_paths: Vec<String>,
    /// As [`PolicySettings::permissions`].
    pub permissions: Vec<LastingPermission>,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            confirm_writes: true,
            allow_commands: true,
            allow_delete: false,
            auto_approve_read_only: false,
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            allowed_commands: Vec::new(),
            denied_commands: Vec::new(),
            allowed_paths: Vec::new(),
            denied_paths: Vec::new(),
            trash: None,
            tools: BTreeMap::new(),
            permissions: Vec::new(),
            vault: BTreeMap::new(),
        }
    }
}

/// The tools that a person allowed for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants(BTreeSet<String>);

impl Grants {
    /// Allows every further call of a tool, up to the tool's own risk.
    pub fn grant(&mut self, tool: &str) {
        self.0.insert(key(tool));
    }

    /// Returns whether a tool was granted.
    pub fn holds(&self, tool: &str) -> bool {
        self.0.contains(&key(tool))
    }

    /// Returns whether a grant covers a call: no grant covers more than its tool's own risk.
    pub(crate) fn cover(&self, call: &Call<'_>) -> bool {
        self.holds(call.tool) && !call.exceeds_its_tool()
    }
}

/// The policy's decision about a call, from the most lenient to the strictest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// The call may run.
    Allow,
    /// A person decides.
    Ask,
    /// The call may not run, for this reason.
    Deny(String),
}

impl Permission {
    /// Returns the decision for a run in which no person can be asked: `Ask` becomes `Deny`. `what` names the call in
    /// the reason.
    #[must_use]
    pub fn unattended(self, what: &str) -> Self {
        match self {
            Self::Ask => Self::Deny(format!("{what} needs a person's approval, which cannot be requested here")),
            other => other,
        }
    }

    /// # Errors
    /// [`ErrorKind::Denied`] if it denies the call.
    pub(crate) fn not_denied(self) -> Result<()> {
        match self {
            Self::Deny(reason) => Err(Error::new(ErrorKind::Denied, reason)),
            Self::Allow | Self::Ask => Ok(()),
        }
    }
}

impl PolicySettings {
    /// Returns the settings of one vault: its own lists are added to those of all vaults. The case of its name is
    /// ignored.
    #[must_use]
    pub fn of_vault(mut self, name: &str) -> Self {
        let lists =
            std::mem::take(&mut self.vault).into_iter().filter(|(of, _)| of.to_lowercase() == name.to_lowercase());
        for (_, VaultLists { allowed_tools, denied_tools, allowed_paths, denied_paths, permissions }) in lists {
            self.allowed_tools.extend(allowed_tools);
            self.denied_tools.extend(denied_tools);
            self.allowed_paths.extend(allowed_paths);
            self.denied_paths.extend(denied_paths);
            self.permissions.extend(permissions);
        }
        self
    }

    /// Compiles the settings to a policy.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a glob with invalid syntax, and for settings of single vaults, because they would be
    /// ignored: call [`Self::of_vault`] first.
    pub fn compile(&self) -> Result<Policy> {
        if let Some(name) = self.vault.keys().next() {
            let message = format!("the settings of the vault {name} are not applied");
            return Err(Error::new(ErrorKind::Config, message).with_remedy("name the vault whose settings are meant"));
        }
        self.permissions.iter().try_for_each(LastingPermission::check)?;
        let tools = |globs: &[String]| globs.iter().map(|glob| matcher(&key(glob), glob)).collect::<Result<Vec<_>>>();
        let commands = |globs: &[String]| globs.iter().map(|glob| command_matcher(glob)).collect::<Result<Vec<_>>>();
        Ok(Policy {
            allowed_tools: tools(&self.allowed_tools)?,
            denied_tools: tools(&self.denied_tools)?,
            allowed_commands: commands(&self.allowed_commands)?,
            denied_commands: commands(&self.denied_commands)?,
            allowed_paths: path_matchers(&self.allowed_paths, false)?,
            denied_paths: path_matchers(&self.denied_paths, true)?,
            tool_settings: self.tools.iter().map(|(name, setting)| (key(name), *setting)).collect(),
            settings: self.clone(),
        })
    }
}

/// Decides which calls run: [`PolicySettings`] with their globs compiled.
///
/// ```
/// use vault_tools::{Call, Grants, Permission, PolicySettings, Risk, Toolset};
///
/// let mut settings = PolicySettings::default();
/// settings.denied_paths.push("Private".to_string());
/// let policy = settings.compile()?;
/// let paths = ["Private/Diary.md".to_string()];
/// let call = Call::new("read_note", Toolset::Notes, Risk::Read, &paths);
/// assert!(matches!(policy.decide(&call, &Grants::default()), Permission::Deny(_)));
/// # Ok::<(), vault_tools::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    settings: PolicySettings,
    allowed_tools: Vec<GlobMatcher>,
    denied_tools: Vec<GlobMatcher>,
    allowed_commands: Vec<GlobMatcher>,
    denied_commands: Vec<GlobMatcher>,
    allowed_paths: Vec<GlobMatcher>,
    denied_paths: Vec<GlobMatcher>,
    tool_settings: BTreeMap<String, ToolSetting>,
}

impl Default for Policy {
    fn default() -> Self {
        PolicySettings::default().compile().expect("the default names no globs")
    }
}

impl Policy {
    /// Returns the settings it was compiled from, including those of the vault.
    pub fn settings(&self) -> &PolicySettings {
        &self.settings
    }

    /// Decides whether a call may run.
    pub fn decide(&self, call: &Call<'_>, grants: &Grants) -> Permission {
        match self.denial(call) {
            Some(reason) => Permission::Deny(reason),
            None if grants.cover(call) || self.has_lasting_permission(call) => Permission::Allow,
            None => self.default_of(call),
        }
    }

    fn has_lasting_permission(&self, call: &Call<'_>) -> bool {
        !self.always_asks(call) && self.settings.permissions.iter().any(|permission| permission.covers(call))
    }

    /// Returns the lasting permission that would cover a call that asks now; `None` while its changes are not known.
    pub(crate) fn lasting_permission(&self, call: &Call<'_>) -> Option<LastingPermission> {
        let asks = self.decide(call, &Grants::default()) == Permission::Ask && !self.always_asks(call);
        asks.then(|| LastingPermission::for_call(call)).flatten()
    }

    /// Returns the lasting permissions, in the order in which they were given.
    pub fn permissions(&self) -> &[LastingPermission] {
        &self.settings.permissions
    }

    fn always_asks(&self, call: &Call<'_>) -> bool {
        self.tool_settings.get(&key(call.tool)) == Some(&ToolSetting::AlwaysAsk)
    }

    /// Decides whether a plan may run, considering all of its calls. One denied call denies the plan.
    pub fn decide_plan(&self, calls: &[Call<'_>], grants: &Grants) -> Permission {
        let only_reads = calls.iter().all(|call| call.risk == Risk::Read);
        // A plan that only reads asks because it is a plan; one that writes asks because its calls do.
        let asks = only_reads && !self.settings.auto_approve_read_only;
        let as_plan = if asks { Permission::Ask } else { Permission::Allow };
        calls.iter().map(|call| self.decide(call, grants)).fold(as_plan, Permission::max)
    }

    /// Returns whether a tool may ever run without asking. A headless run is offered only such tools.
    pub fn runs_unattended(&self, tool: &str, toolset: Toolset, risk: Risk) -> bool {
        self.decide(&Call::new(tool, toolset, risk, &[]), &Grants::default()) == Permission::Allow
    }

    /// Returns whether a path may be read; searches and listings leave out the others.
    pub fn permits_path(&self, path: &str) -> bool {
        self.path_refusal(path).is_none()
    }

    /// Returns whether a command of a host may be run; lists of commands leave out the others.
    pub fn permits_command(&self, id: &str) -> bool {
        let is_in = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(id));
        !is_in(&self.denied_commands) && (self.allowed_commands.is_empty() || is_in(&self.allowed_commands))
    }

    /// # Errors
    /// [`ErrorKind::Denied`] for a command that may not be run.
    pub(crate) fn permit_command(&self, id: &str) -> Result<()> {
        match self.permits_command(id) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Denied, format!("the command {id} is denied by your settings"))),
        }
    }

    /// Returns the destination of deleted files in the settings.
    pub fn trash(&self) -> Option<DeleteMode> {
        self.settings.trash
    }

    /// Returns whether every path may be read, so that no path has to be checked.
    pub(crate) fn permits_all_paths(&self) -> bool {
        self.allowed_paths.is_empty() && self.denied_paths.is_empty()
    }

    /// Requires that a call may make its changes. `named` are the paths that the call itself names; the error reveals
    /// no other denied path.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn permit_changes(&self, named: &[String], changed: &[String]) -> Result<()> {
        if changed.iter().all(|path| self.permits_path(path) || named.contains(path)) {
            return Ok(());
        }
        let what = "it would change other files that your settings deny, for example in a folder";
        Err(Error::new(ErrorKind::Denied, what).with_remedy("change files one by one"))
    }

    /// Removes the path of a denied file from an error, unless it is one of `named`.
    pub(crate) fn discreet(&self, error: Error, named: &[String]) -> Error {
        // JSON pointers and state files begin with a slash.
        let is_hidden = |path: &str| !path.starts_with('/') && !self.permits_path(path);
        match error.path() {
            Some(path) if is_hidden(path) && !named.iter().any(|name| name == path) => {
                let what = match error.kind() {
                    ErrorKind::Conflict => "a file that your settings deny has changed and affects this",
                    _ => "a file that your settings deny is in the way",
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
        if let Some(reason) = call.paths.iter().find_map(|path| self.path_refusal(path)) {
            return Some(reason);
        }
        match call.risk {
            Risk::Delete if !self.settings.allow_delete => {
                Some("deleting is not allowed (set allow_delete = true in tools.toml)".into())
            }
            Risk::Command if !self.settings.allow_commands => {
                Some("running commands is not allowed (set allow_commands = true in tools.toml)".into())
            }
            _ => None,
        }
    }

    fn path_refusal(&self, path: &str) -> Option<String> {
        let normal = folded(path.trim_start_matches("./"));
        let normal = normal.trim_end_matches('/');
        if self.denied_paths.iter().any(|glob| glob.is_match(normal)) {
            return Some(format!("{path}: this path is denied by your settings"));
        }
        if !self.allowed_paths.is_empty() && !self.allowed_paths.iter().any(|glob| glob.is_match(normal)) {
            return Some(format!("{path}: this path is not among those your settings allow"));
        }
        None
    }

    fn default_of(&self, call: &Call<'_>) -> Permission {
        match self.tool_settings.get(&key(call.tool)).copied().unwrap_or_default() {
            ToolSetting::AlwaysAsk => Permission::Ask,
            ToolSetting::NeverAsk if !call.exceeds_its_tool() => Permission::Allow,
            ToolSetting::NeverAsk | ToolSetting::ByRisk => match call.risk {
                Risk::Read if call.toolset != Toolset::Chat => Permission::Allow,
                Risk::Write if !self.settings.confirm_writes => Permission::Allow,
                _ => Permission::Ask,
            },
        }
    }
}

/// Returns whether a glob of the settings covers a tool; one with invalid syntax is refused by
/// [`PolicySettings::compile`].
pub fn is_tool_of(glob: &str, tool: &str) -> bool {
    matcher(&key(glob), glob).map_or(true, |matcher| matcher.is_match(key(tool)))
}

fn matcher(pattern: &str, written: &str) -> Result<GlobMatcher> {
    compiled(GlobBuilder::new(pattern).literal_separator(true), written)
}

/// Compiles a pattern for ids of commands. Ids are not paths, so `*` also matches `/`: for example, `templater:*` matches
/// `templater:Daily/Note.md`.
fn command_matcher(pattern: &str) -> Result<GlobMatcher> {
    compiled(&mut GlobBuilder::new(pattern), pattern)
}

fn compiled(glob: &mut GlobBuilder<'_>, written: &str) -> Result<GlobMatcher> {
    glob.case_insensitive(true).build().map(|glob| glob.compile_matcher()).map_err(|error| {
        Error::new(ErrorKind::Config, format!("`{written}` is not a pattern: {}", error.kind()))
            .with_remedy("write a name, a folder, or a glob such as Private/**")
    })
}

/// Compiles patterns. A pattern matches a path, everything below it, and (without an extension) the note with that
/// name. Case is ignored, because most file systems of macOS and Windows ignore it. With `at_any_depth`, a pattern
/// without a folder matches in every folder; it is set for denied paths only, so that both lists err on the safe side.
fn path_matchers(patterns: &[String], at_any_depth: bool) -> Result<Vec<GlobMatcher>> {
    let mut matchers = Vec::new();
    for pattern in patterns {
        let bare = pattern.trim().trim_start_matches("./");
        let stem = folded(bare.trim_matches('/'));
        if stem.is_empty() {
            return Err(Error::new(ErrorKind::Config, format!("`{pattern}` is not a pattern: it names nothing")));
        }
        let has_folder = bare.trim_end_matches('/').contains('/');
        let prefixes: &[&str] = if at_any_depth && !has_folder { &["", "**/"] } else { &[""] };
        for prefix in prefixes {
            for end in ["", "/**", ".md", ".markdown"] {
                matchers.push(matcher(&format!("{prefix}{stem}{end}"), pattern)?);
            }
        }
    }
    Ok(matchers)
}

#[cfg(test)]
mod tests;
