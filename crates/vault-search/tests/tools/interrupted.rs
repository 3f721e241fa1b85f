//! The command when it is interrupted, when files cannot be written, and when several run at once.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::command::{CommandOutput, Shell, example};
use crate::vault::assert_same;

/// A vault in which many notes link to one.
#[cfg(unix)]
fn with_a_hub(notes: usize) -> Shell {
    let shell = Shell::new("//- hub.md\nx\n");
    for number in 0..notes {
        shell.vault.write(&format!("n{number}.md"), "[[hub]]\n");
    }
    shell
}

/// Waits until a command has begun to change the vault, and interrupts it.
#[cfg(unix)]
fn interrupted(shell: &Shell, mut child: Child, has_begun: impl Fn() -> bool) -> CommandOutput {
    while !has_begun() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    let ran = CommandOutput::of(child);
    assert!(!told.success() || ran.code != 130 || !ran.err.is_empty(), "{}", shell.vault.root().display());
    ran
}

#[cfg(unix)]
#[test]
fn an_interrupted_call_leaves_the_vault_whole() {
    let notes = 1500;
    let shell = with_a_hub(notes);
    let before = shell.vault.tree();
    let hub = shell.vault.root().join("hub.md");
    let linking = |name: &str| shell.vault.tree().values().filter(|text| text == &name.as_bytes()).count();
    let args = r#"{"fromPath":"hub.md","toPath":"zz/center.md"}"#;
    let ran = interrupted(&shell, shell.start(&["call", "vault.rename", args, "--yes"]), || !hub.exists());
    assert_eq!((ran.code, linking("[[center]]\n")), (0, notes), "{}", ran.err);
    assert!(ran.err.contains("undo reverts it"), "{}", ran.err);
    let ran = interrupted(&shell, shell.start(&["undo", "--yes", "--json"]), || {
        // The last link that was rewritten is the first to go back.
        shell.vault.read("n999.md") == "[[hub]]\n"
    });
    assert_eq!(ran.code, 0, "{}", ran.err);
    let record: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&record["transaction"], &record["lost"]), (&json!(2), &json!([])));
    assert_same(&shell.vault.tree(), &before, "after undo");
}

#[cfg(unix)]
#[test]
fn an_interrupted_plan_leaves_no_step_half_done() {
    let shell = with_a_hub(1500);
    let before = shell.vault.tree();
    let plan = json!({
        "version": "1.0", "goal": "hub", "riskLevel": "writes",
        "steps": [{ "id": "r", "tool": "vault.rename", "args": { "fromPath": "hub.md", "toPath": "zz/center.md" } }]
    });
    let file = shell.home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let hub = shell.vault.root().join("hub.md");
    let child = shell.start(&["plan", "run", file.to_str().unwrap(), "--yes", "--jsonl"]);
    let ran = interrupted(&shell, child, || !hub.exists());
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "run.finished", "{}", ran.out);
    // It may have been done by then.
    if last["status"] == "cancelled" {
        assert_eq!((ran.code, &last["transaction"]), (130, &Value::Null), "{}", ran.err);
    } else {
        shell.done(&["undo", "--yes"]);
    }
    assert_same(&shell.vault.tree(), &before, "the step was put back");
}

#[test]
fn a_call_is_made_even_if_it_cannot_be_logged() {
    let shell = Shell::new("//- a.md\nhello\n");
    shell.done(&["call", "read_note", r#"{"path":"a.md"}"#]);
    std::fs::remove_file(shell.state().join("log.jsonl")).unwrap();
    std::fs::create_dir(shell.state().join("log.jsonl")).unwrap();
    let ran = shell.run(&["call", "append_to_note", r#"{"path":"a.md","content":"- done"}"#, "--yes"]);
    assert_eq!((ran.code, shell.vault.read("a.md").as_str()), (0, "hello\n\n- done\n"), "{}", ran.err);
    assert!(ran.err.contains("warning: this could not be logged") && ran.err.contains("transaction 1"), "{}", ran.err);
    assert_eq!(shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]).code, 0);
}

#[test]
fn notes_that_are_written_at_once_lose_nothing() {
    let shell = Shell::new("//- a.md\nbegin\n");
    let append = |number: usize| {
        let args = json!({ "path": "a.md", "content": format!("- from {number}") }).to_string();
        shell.start(&["call", "append_to_note", &args, "--yes"])
    };
    let children: Vec<Child> = (0..8).map(append).collect();
    for child in children {
        let ran = CommandOutput::of(child);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let text = shell.vault.read("a.md");
    assert!((0..8).all(|number| text.contains(&format!("- from {number}\n"))), "{text}");
    for _ in 0..8 {
        shell.done(&["undo", "--yes"]);
    }
    assert_eq!(shell.vault.read("a.md"), "begin\n");
}

#[test]
fn concurrently_saved_macros_are_all_saved() {
    let shell = Shell::new("//- a.md\nx\n");
    let file = shell.home.path().join("plan.json");
    std::fs::write(&file, example().to_string()).unwrap();
    let file = file.to_str().unwrap();
    let names: Vec<String> = (0..12).map(|number| format!("m{number}")).collect();
    let children: Vec<Child> =
        names.iter().map(|name| shell.start(&["macro", "save", name, file, "--untried"])).collect();
    for child in children {
        let ran = CommandOutput::of(child);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    assert_eq!(shell.done(&["macro", "list"]).lines().count(), names.len());
}
