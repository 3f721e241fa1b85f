//! The library names no options; a command names the one that helps.

use crate::command::Shell;

#[test]
fn errors_name_the_option_that_helps() {
    let shell = Shell::new("//- a.md\nx\n");
    let step = |tool: &str, args: &str| {
        let plan = format!(
            r#"{{ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [{{ "id": "a", "tool": "{tool}", "args": {args} }}] }}"#
        );
        shell.vault.write("../plan.json", &plan);
        shell.vault.root().join("../plan.json").display().to_string()
    };
    let named = |args: &[&str], options: &[&str]| {
        let output = shell.run(args);
        assert_ne!(output.code, 0, "{args:?}");
        for option in options {
            assert!(output.err.contains(option), "{option}: {}", output.err);
        }
    };
    let create =
        step("vault.createFile", r#"{ "path": "${folderName}/b.md", "content": "${selection} ${activeFile}" }"#);
    named(&["plan", "preview", &create], &["--set folderName=VALUE", "--selection TEXT", "--active-file NOTE"]);
    let replace = ["call", "editor.replaceSelection", r#"{"text":"x"}"#, "--yes"];
    named(&replace, &["--selection-from FILE:FROM-TO, or --active-file and --cursor"]);
    named(&[&replace[..], &["--selection", "x"]].concat(), &["give it with --selection-from FILE:FROM-TO"]);
    named(&["call", "editor.insertAtCursor", r#"{"text":"x"}"#, "--yes"], &["--active-file NOTE and --cursor LINE:CH"]);
    named(&["call", "delete_note", r#"{"path":"a.md"}"#, "--yes"], &["or add --allow-delete"]);
    named(&["undo", "--yes"], &["`undo --list` shows all"]);
    shell.done(&["call", "append_to_note", r#"{"path":"a.md","content":"y"}"#, "--yes"]);
    shell.vault.write("a.md", "z\n");
    named(&["undo", "--yes"], &["--force undoes it anyway"]);
}
