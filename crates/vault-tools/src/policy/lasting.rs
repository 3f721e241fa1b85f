//! Permissions that last: one tool changes the notes of one folder without asking, until a person revokes it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Risk, key};
use crate::error::{Error, ErrorKind, Result};

/// A person's approval of every further change that one tool makes in one folder. It covers no deletes, no commands, no
/// plans, and no change that touches a file outside of the folder, such as a link to a note that is renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastingPermission {
    /// The tool, by its whole name.
    pub tool: String,
    /// The folder, from the vault's root; folders below it are included.
    pub folder: String,
}

impl LastingPermission {
    /// Returns the narrowest permission that covers a call; `None` if none can, or if it would have to cover the whole
    /// vault.
    pub(super) fn for_call(call: &Call<'_>) -> Option<Self> {
        let (first, others) = call.changes.split_first()?;
        let mut folder = first.rsplit_once('/')?.0;
        while !others.iter().all(|path| is_below(path, folder)) {
            folder = folder.rsplit_once('/')?.0;
        }
        let permission = Self { tool: call.tool.to_owned(), folder: folder.to_owned() };
        permission.covers(call).then_some(permission)
    }

    /// Returns whether it covers a call. Only its changes count, because a call may also name a note as in a link, without its
    /// folder; a call whose changes are not known is not covered.
    pub(super) fn covers(&self, call: &Call<'_>) -> bool {
        call.risk == Risk::Write
            && call.tool_risk == Risk::Write
            && key(&self.tool) == key(call.tool)
            && !call.changes.is_empty()
            && call.changes.iter().all(|path| is_below(path, self.folder.trim_matches('/')))
    }

    /// # Errors
    /// [`ErrorKind::Config`] if it names no tool or no folder.
    pub(super) fn check(&self) -> Result<()> {
        let folder = self.folder.trim_matches('/');
        let is_folder = !folder.is_empty() && folder.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if is_folder && !self.tool.trim().is_empty() && !self.tool.contains(['*', '?', '[', '{']) {
            return Ok(());
        }
        let message = format!("a lasting permission is for one tool and one folder, not for {self}");
        Err(Error::new(ErrorKind::Config, message).with_remedy("name both, without globs, or take it out"))
    }
}

/// The exact rule, as it is shown to a person before they approve it.
impl fmt::Display for LastingPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changes notes below {}/ without asking", self.tool, self.folder.trim_matches('/'))
    }
}

// Compared case-sensitively: on some systems `Log` and `log` are two folders, and a permission errs on the side of
// asking.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Grants, Permission, PolicySettings, ToolSetting, Toolset};

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn the_narrowest_folder_is_offered_and_never_the_vault() {
        for (changed, folder) in [
            (&["Log/2026/May.md"][..], Some("Log/2026")),
            (&["Log/2026/May.md", "Log/Index.md"], Some("Log")),
            (&["Log/a.md", "Logs/b.md"], None),
            (&["Home.md"], None),
            (&["Log/a.md", "Home.md"], None),
            (&[], None),
        ] {
            let changed = paths(changed);
            let call = Call { changes: &changed, ..Call::new("append_to_note", Toolset::Notes, Risk::Write, &changed) };
            let offered = LastingPermission::for_call(&call).map(|permission| permission.folder);
            assert_eq!(offered.as_deref(), folder, "{changed:?}");
        }
        let changed = paths(&["Log/a.md"]);
        let of = |risk| {
            LastingPermission::for_call(&Call { changes: &changed, ..Call::new("t", Toolset::Notes, risk, &changed) })
        };
        assert!(of(Risk::Write).is_some());
        assert!(of(Risk::Delete).is_none() && of(Risk::Command).is_none() && of(Risk::Read).is_none());
    }

    #[test]
    fn it_covers_its_tool_in_its_folder_and_nothing_else() {
        let permission = LastingPermission { tool: "append_to_note".into(), folder: "Log".into() };
        let settings = PolicySettings { permissions: vec![permission], ..PolicySettings::default() };
        let policy = settings.compile().unwrap();
        let asked = |policy: &crate::Policy, tool: &str, risk, changed: &[&str]| {
            let changed = paths(changed);
            let named = [&paths(&["daily"])[..], &changed].concat();
            let call = Call { risk, ..Call::new(tool, Toolset::Notes, Risk::Write, &named) };
            // Before its changes are known, nothing is covered.
            assert_eq!(policy.decide(&call, &Grants::default()), Permission::Ask);
            let call = Call { changes: &changed, ..call };
            policy.decide(&call, &Grants::default()) == Permission::Ask
        };
        assert!(!asked(&policy, "append_to_note", Risk::Write, &["Log/a.md", "Log/B/c.md"]));
        assert!(asked(&policy, "append_to_note", Risk::Write, &["log/a.md"]));
        assert!(asked(&policy, "edit_note", Risk::Write, &["Log/a.md"]));
        assert!(asked(&policy, "append_to_note", Risk::Write, &["Log.md"]));
        assert!(asked(&policy, "append_to_note", Risk::Write, &["Log/a.md", "Home.md"]));
        assert!(asked(&policy, "append_to_note", Risk::Write, &[]));
        let plan = [Call::new("append_to_note", Toolset::Notes, Risk::Write, &[])];
        assert_eq!(policy.decide_plan(&plan, &Grants::default()), Permission::Ask);
        let mut strict = settings.clone();
        strict.tools.insert("append_to_note".into(), ToolSetting::AlwaysAsk);
        assert!(asked(&strict.compile().unwrap(), "append_to_note", Risk::Write, &["Log/a.md"]));
        let mut denying = settings;
        denying.denied_paths.push("Log/Private".into());
        let changed = paths(&["Log/Private/a.md"]);
        let call = Call::new("append_to_note", Toolset::Notes, Risk::Write, &changed);
        assert!(matches!(denying.compile().unwrap().decide(&call, &Grants::default()), Permission::Deny(_)));
    }

    #[test]
    fn one_that_names_no_folder_is_refused() {
        for (tool, folder) in
            [("append_to_note", ""), ("append_to_note", "/"), ("*", "Log"), ("", "Log"), ("t", "a/../..")]
        {
            let permission = LastingPermission { tool: tool.into(), folder: folder.into() };
            let settings = PolicySettings { permissions: vec![permission], ..PolicySettings::default() };
            assert_eq!(settings.compile().unwrap_err().kind(), ErrorKind::Config, "{tool} {folder}");
        }
    }
}
