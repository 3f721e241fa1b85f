//! The help of commands that `vault-tools` and `vault-agent` share, with the name of the program that shows it.

use clap::Command;

/// Returns a function for the `mut_subcommands` of a program's `clap::Command`: it adds usage, details and examples to
/// the shared commands, and leaves the others unchanged.
pub fn shared_help(program: &'static str) -> impl Fn(Command) -> Command {
    move |command| match command.get_name() {
        "undo" => {
            let usage = ["[TRANSACTION]", "--list", "<--recover|--keep>"]
                .map(|args| format!("{program} undo [OPTIONS] {args}"));
            command.override_usage(usage.join("\n       ")).after_long_help(format!(
                "If a file has changed since, nothing is done; --force undoes the transaction anyway and reports what \
                 is lost.\n\n--json, --jsonl and --schema apply to --list; --json also prints what was undone.\n\n{}",
                examples(program, &["undo", "undo 12", "undo --list", "undo --yes --json"])
            ))
        }
        "redo" => command.after_long_help(examples(program, &["redo"])),
        "log" => command.after_long_help(examples(program, &["log -n 20", "log --stats", "log --jsonl"])),
        "macro" => command.mut_subcommands(|command| macro_help(program, command)),
        _ => command,
    }
}

fn macro_help(program: &str, command: Command) -> Command {
    let of = |lines: &[&str]| examples(program, lines);
    let text = match command.get_name() {
        "save" => {
            let saved = "macro save bullets --run 12 --description 'a note for each bullet'";
            let mut lines = vec![saved, "macro save bullets plan.json --untried"];
            // Only `vault-tools` runs a plan from a file.
            if program == "vault-tools" {
                lines.insert(0, "plan run plan.json && vault-tools macro save bullets");
            }
            format!("Without FILE and --run, the last plan that ran is saved.\n\n{}", of(&lines))
        }
        "list" => of(&["macro list --json", "macro list --shipped"]),
        "show" => of(&["macro show bullets"]),
        "run" => of(&["macro run bullets --selection-from Inbox.md:3-9 --set folderName=Work"]),
        "rename" => of(&["macro rename bullets notes-from-bullets"]),
        "delete" => {
            format!("Undo does not bring it back; macro export keeps a copy.\n\n{}", of(&["macro delete bullets"]))
        }
        "export" => of(&["macro export > macros.json"]),
        "import" => of(&["macro import macros.json"]),
        name => unreachable!("macro {name} has no example"),
    };
    command.after_long_help(text)
}

fn examples(program: &str, lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("\n  {program} {line}")).collect();
    format!("Example{}:{lines}", if lines.matches('\n').count() == 1 { "" } else { "s" })
}
