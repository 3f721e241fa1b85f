//! Who may do what, case by case.

use super::*;

fn call<'a>(tool: &'a str, risk: Risk, paths: &'a [String]) -> Call<'a> {
    Call { tool, toolset: Toolset::Notes, tool_risk: risk, risk, paths }
}

fn verdict(policy: &Policy, tool: &str, risk: Risk, path: &str) -> Verdict {
    let paths = if path.is_empty() { vec![] } else { vec![path.to_string()] };
    policy.compile().unwrap().decide(&call(tool, risk, &paths), &Grants::default(), Attendance::Attended)
}

fn is_denied(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Deny(_))
}

#[test]
fn defaults_by_risk() {
    let policy = Policy::default();
    assert_eq!(verdict(&policy, "read_note", Risk::Read, "a.md"), Verdict::Allow);
    assert_eq!(verdict(&policy, "write_note", Risk::Write, "a.md"), Verdict::Ask);
    assert!(is_denied(verdict(&policy, "delete_note", Risk::Delete, "a.md")));
    assert_eq!(verdict(&policy, "commands.run", Risk::Command, ""), Verdict::Ask);
    let chat = Call { toolset: Toolset::Chat, ..call("file_read", Risk::Read, &[]) };
    let rules = Rules::default();
    assert_eq!(rules.decide(&chat, &Grants::default(), Attendance::Attended), Verdict::Ask);
    assert!(is_denied(rules.decide(&chat, &Grants::default(), Attendance::Unattended)));
    let allowed = Policy { allow_delete: true, confirm_writes: false, ..Policy::default() };
    assert_eq!(verdict(&allowed, "delete_note", Risk::Delete, "a.md"), Verdict::Ask);
    assert_eq!(verdict(&allowed, "write_note", Risk::Write, "a.md"), Verdict::Allow);
    let no_commands = Policy { allow_commands: false, ..Policy::default() };
    assert!(is_denied(verdict(&no_commands, "commands.run", Risk::Command, "")));
}

#[test]
fn denied_wins_over_everything() {
    let policy = Policy {
        denied_tools: vec!["vault_*".into()],
        denied_paths: vec!["Private".into(), "*.secret.md".into()],
        allowed_tools: vec!["*".into()],
        allowed_paths: vec!["**".into()],
        tools: [("vault.readFile".to_string(), Setting::NeverAsk)].into(),
        ..Policy::default()
    };
    let rules = policy.compile().unwrap();
    let mut grants = Grants::default();
    grants.grant("vault.readFile");
    grants.grant("read_note");
    let denied = |tool, path: &str| {
        let paths = [path.to_string()];
        is_denied(rules.decide(&call(tool, Risk::Read, &paths), &grants, Attendance::Attended))
    };
    assert!(denied("vault.readFile", "a.md"));
    for path in ["Private/x.md", "private/X.md", "Private", "Private.md", "a.secret.md", "./Private/x"] {
        assert!(denied("read_note", path), "{path}");
    }
    assert!(!denied("read_note", "Privateer/x.md"));
    assert!(!rules.permits_path("Private/a/b.md") && rules.permits_path("a.md"));
}

#[test]
fn settings_and_grants_lift_questions_only() {
    let never = Policy { tools: [("write_note".to_string(), Setting::NeverAsk)].into(), ..Policy::default() };
    assert_eq!(verdict(&never, "write_note", Risk::Write, "a.md"), Verdict::Allow);
    let always = Policy { tools: [("read_note".to_string(), Setting::AlwaysAsk)].into(), ..Policy::default() };
    assert_eq!(verdict(&always, "read_note", Risk::Read, "a.md"), Verdict::Ask);
    let mut grants = Grants::default();
    grants.grant("delete_note");
    let paths = [];
    let rules = Rules::default();
    assert!(is_denied(rules.decide(&call("delete_note", Risk::Delete, &paths), &grants, Attendance::Attended)));
    assert!(rules.runs_unattended("read_note", Toolset::Notes, Risk::Read));
    assert!(!rules.runs_unattended("write_note", Toolset::Notes, Risk::Write));
}

/// A tool that writes, in a call that deletes as well.
#[test]
fn what_goes_beyond_its_tool_asks() {
    let policy = Policy {
        allow_delete: true,
        confirm_writes: false,
        tools: [("vault.rename".to_string(), Setting::NeverAsk)].into(),
        ..Policy::default()
    };
    let rules = policy.compile().unwrap();
    let mut grants = Grants::default();
    grants.grant("vault.rename");
    let rename = call("vault.rename", Risk::Write, &[]);
    let overwriting = Call { risk: Risk::Delete, ..rename.clone() };
    for grants in [&Grants::default(), &grants] {
        assert_eq!(rules.decide(&rename, grants, Attendance::Unattended), Verdict::Allow);
        assert_eq!(rules.decide(&overwriting, grants, Attendance::Attended), Verdict::Ask);
        assert!(is_denied(rules.decide(&overwriting, grants, Attendance::Unattended)));
    }
    let delete = Policy { tools: [("vault.delete".to_string(), Setting::NeverAsk)].into(), ..policy };
    assert_eq!(verdict(&delete, "vault.delete", Risk::Delete, "a.md"), Verdict::Allow);
}

#[test]
fn denied_names_fit_at_any_depth() {
    fn check(pattern: &str, denied: &[&str], permitted: &[&str]) {
        let rules = Policy { denied_paths: vec![pattern.into()], ..Policy::default() }.compile().unwrap();
        denied.iter().for_each(|path| assert!(!rules.permits_path(path), "{pattern}: {path}"));
        permitted.iter().for_each(|path| assert!(rules.permits_path(path), "{pattern}: {path}"));
    }
    check("*.secret.md", &["a.secret.md", "x/y/a.secret.md"], &["a.md", "a.secret.md.png"]);
    check("Private", &["Private/a.md", "x/private/a.md", "x/Private.md"], &["x/Privateer/a.md"]);
    check("Private/", &["Private/a.md", "x/Private/y/a.md"], &[]);
    check("/Private", &["Private/a.md"], &["x/Private/a.md"]);
    check("./Area/Private", &["Area/Private/a.md"], &["x/Area/Private/a.md", "Area/b.md"]);
    check("**/log", &["log/a.md", "x/log/a.md"], &["x/blog/a.md"]);
    // What is allowed is not made more by it.
    let rules = Policy { allowed_paths: vec!["Work".into()], ..Policy::default() }.compile().unwrap();
    assert!(rules.permits_path("Work/a.md") && !rules.permits_path("Private/Work/a.md"));
}

#[test]
fn plans_are_decided_as_a_whole() {
    let rules = Rules::default();
    let none = [];
    let read = call("vault.readFile", Risk::Read, &none);
    let delete = call("vault.delete", Risk::Delete, &none);
    let decide = |rules: &Rules, calls: &[Call<'_>]| rules.decide_plan(calls, &Grants::default(), Attendance::Attended);
    assert_eq!(decide(&rules, std::slice::from_ref(&read)), Verdict::Ask);
    assert!(is_denied(decide(&rules, &[read.clone(), delete])));
    let auto = Policy { auto_approve_read_only: true, ..Policy::default() };
    assert_eq!(decide(&auto.compile().unwrap(), std::slice::from_ref(&read)), Verdict::Allow);
    // It stands for the question of the plan, not for those of its calls.
    let chat = Call { toolset: Toolset::Chat, ..call("file_read", Risk::Read, &none) };
    assert_eq!(decide(&auto.compile().unwrap(), &[read.clone(), chat]), Verdict::Ask);
    let tools = [("vault.readFile".to_string(), Setting::AlwaysAsk)].into();
    assert_eq!(decide(&Policy { tools, ..auto }.compile().unwrap(), &[read]), Verdict::Ask);
}

#[test]
fn bad_globs_are_errors() {
    let error = Policy { denied_paths: vec!["a[".into()], ..Policy::default() }.compile().unwrap_err();
    assert!(error.to_string().contains("`a[`"), "{error}");
}
