//! What the policy permits, case by case.

use super::*;

fn call<'a>(tool: &'a str, risk: Risk, paths: &'a [String]) -> Call<'a> {
    Call::new(tool, Toolset::Notes, risk, paths)
}

fn permission(settings: &PolicySettings, tool: &str, risk: Risk, path: &str) -> Permission {
    let paths = if path.is_empty() { vec![] } else { vec![path.to_string()] };
    settings.compile().unwrap().decide(&call(tool, risk, &paths), &Grants::default())
}

fn is_denied(permission: Permission) -> bool {
    matches!(permission, Permission::Deny(_))
}

#[test]
fn defaults_by_risk() {
    let settings = PolicySettings::default();
    assert_eq!(permission(&settings, "read_note", Risk::Read, "a.md"), Permission::Allow);
    assert_eq!(permission(&settings, "write_note", Risk::Write, "a.md"), Permission::Ask);
    assert!(is_denied(permission(&settings, "delete_note", Risk::Delete, "a.md")));
    assert_eq!(permission(&settings, "commands.run", Risk::Command, ""), Permission::Ask);
    let chat = Call { toolset: Toolset::Chat, ..call("file_read", Risk::Read, &[]) };
    let policy = Policy::default();
    assert_eq!(policy.decide(&chat, &Grants::default()), Permission::Ask);
    assert!(is_denied(policy.decide(&chat, &Grants::default()).unattended("it")));
    let allowed = PolicySettings { allow_delete: true, confirm_writes: false, ..PolicySettings::default() };
    assert_eq!(permission(&allowed, "delete_note", Risk::Delete, "a.md"), Permission::Ask);
    assert_eq!(permission(&allowed, "write_note", Risk::Write, "a.md"), Permission::Allow);
    let no_commands = PolicySettings { allow_commands: false, ..PolicySettings::default() };
    assert!(is_denied(permission(&no_commands, "commands.run", Risk::Command, "")));
}

#[test]
fn denied_wins_over_everything() {
    let settings = PolicySettings {
        denied_tools: vec!["vault_*".into()],
        denied_paths: vec!["Private".into(), "*.secret.md".into()],
        allowed_tools: vec!["*".into()],
        allowed_paths: vec!["**".into()],
        tools: [("vault.readFile".to_string(), ToolSetting::NeverAsk)].into(),
        ..PolicySettings::default()
    };
    let policy = settings.compile().unwrap();
    let mut grants = Grants::default();
    grants.grant("vault.readFile");
    grants.grant("read_note");
    let denied = |tool, path: &str| {
        let paths = [path.to_string()];
        is_denied(policy.decide(&call(tool, Risk::Read, &paths), &grants))
    };
    assert!(denied("vault.readFile", "a.md"));
    for path in ["Private/x.md", "private/X.md", "Private", "Private.md", "a.secret.md", "./Private/x"] {
        assert!(denied("read_note", path), "{path}");
    }
    assert!(!denied("read_note", "Privateer/x.md"));
    assert!(!policy.permits_path("Private/a/b.md") && policy.permits_path("a.md"));
}

#[test]
fn settings_and_grants_lift_questions_only() {
    let never = PolicySettings {
        tools: [("write_note".to_string(), ToolSetting::NeverAsk)].into(),
        ..PolicySettings::default()
    };
    assert_eq!(permission(&never, "write_note", Risk::Write, "a.md"), Permission::Allow);
    let always = PolicySettings {
        tools: [("read_note".to_string(), ToolSetting::AlwaysAsk)].into(),
        ..PolicySettings::default()
    };
    assert_eq!(permission(&always, "read_note", Risk::Read, "a.md"), Permission::Ask);
    let mut grants = Grants::default();
    grants.grant("delete_note");
    let paths = [];
    let policy = Policy::default();
    assert!(is_denied(policy.decide(&call("delete_note", Risk::Delete, &paths), &grants)));
    assert!(policy.runs_unattended("read_note", Toolset::Notes, Risk::Read));
    assert!(!policy.runs_unattended("write_note", Toolset::Notes, Risk::Write));
}

/// A tool that writes, in a call that deletes as well.
#[test]
fn what_goes_beyond_its_tool_asks() {
    let settings = PolicySettings {
        allow_delete: true,
        confirm_writes: false,
        tools: [("vault.rename".to_string(), ToolSetting::NeverAsk)].into(),
        ..PolicySettings::default()
    };
    let policy = settings.compile().unwrap();
    let mut grants = Grants::default();
    grants.grant("vault.rename");
    let rename = call("vault.rename", Risk::Write, &[]);
    let overwriting = Call { risk: Risk::Delete, ..rename.clone() };
    for grants in [&Grants::default(), &grants] {
        assert_eq!(policy.decide(&rename, grants).unattended("it"), Permission::Allow);
        assert_eq!(policy.decide(&overwriting, grants), Permission::Ask);
        assert!(is_denied(policy.decide(&overwriting, grants).unattended("it")));
    }
    let delete = PolicySettings { tools: [("vault.delete".to_string(), ToolSetting::NeverAsk)].into(), ..settings };
    assert_eq!(permission(&delete, "vault.delete", Risk::Delete, "a.md"), Permission::Allow);
}

#[test]
fn denied_names_fit_at_any_depth() {
    fn check(pattern: &str, denied: &[&str], permitted: &[&str]) {
        let policy =
            PolicySettings { denied_paths: vec![pattern.into()], ..PolicySettings::default() }.compile().unwrap();
        denied.iter().for_each(|path| assert!(!policy.permits_path(path), "{pattern}: {path}"));
        permitted.iter().for_each(|path| assert!(policy.permits_path(path), "{pattern}: {path}"));
    }
    check("*.secret.md", &["a.secret.md", "x/y/a.secret.md"], &["a.md", "a.secret.md.png"]);
    check("Private", &["Private/a.md", "x/private/a.md", "x/Private.md"], &["x/Privateer/a.md"]);
    check("Private/", &["Private/a.md", "x/Private/y/a.md"], &[]);
    check("/Private", &["Private/a.md"], &["x/Private/a.md"]);
    check("./Area/Private", &["Area/Private/a.md"], &["x/Area/Private/a.md", "Area/b.md"]);
    check("**/log", &["log/a.md", "x/log/a.md"], &["x/blog/a.md"]);
    // What is allowed is not made more by it.
    let policy = PolicySettings { allowed_paths: vec!["Work".into()], ..PolicySettings::default() }.compile().unwrap();
    assert!(policy.permits_path("Work/a.md") && !policy.permits_path("Private/Work/a.md"));
}

#[test]
fn plans_are_decided_as_a_whole() {
    let policy = Policy::default();
    let none = [];
    let read = call("vault.readFile", Risk::Read, &none);
    let delete = call("vault.delete", Risk::Delete, &none);
    let decide = |policy: &Policy, calls: &[Call<'_>]| policy.decide_plan(calls, &Grants::default());
    assert_eq!(decide(&policy, std::slice::from_ref(&read)), Permission::Ask);
    assert!(is_denied(decide(&policy, &[read.clone(), delete])));
    let auto = PolicySettings { auto_approve_read_only: true, ..PolicySettings::default() };
    assert_eq!(decide(&auto.compile().unwrap(), std::slice::from_ref(&read)), Permission::Allow);
    // It stands for the question of the plan, not for those of its calls.
    let chat = Call { toolset: Toolset::Chat, ..call("file_read", Risk::Read, &none) };
    assert_eq!(decide(&auto.compile().unwrap(), &[read.clone(), chat]), Permission::Ask);
    let tools = [("vault.readFile".to_string(), ToolSetting::AlwaysAsk)].into();
    assert_eq!(decide(&PolicySettings { tools, ..auto }.compile().unwrap(), &[read]), Permission::Ask);
}

#[test]
fn bad_globs_are_errors() {
    let error = PolicySettings { denied_paths: vec!["a[".into()], ..PolicySettings::default() }.compile().unwrap_err();
    assert!(error.to_string().contains("`a[`"), "{error}");
}

#[test]
fn settings_of_one_vault_are_applied_or_an_error() {
    let lists = VaultLists { denied_paths: vec!["Clients".into()], ..VaultLists::default() };
    let settings = PolicySettings { vault: [("Work".to_owned(), lists)].into(), ..PolicySettings::default() };
    assert!(settings.compile().unwrap_err().to_string().contains("the vault Work"));
    assert!(!settings.clone().of_vault("work").compile().unwrap().permits_path("Clients/a.md"));
    assert!(settings.of_vault("Home").compile().unwrap().permits_path("Clients/a.md"));
}
