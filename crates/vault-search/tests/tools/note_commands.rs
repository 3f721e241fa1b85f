//! The commands that people type: `rename`, `move`, `delete`, `merge`, `tag`, `prop`, `new`, `append`, `daily`.

use serde_json::Value;

use crate::command::Shell;
use crate::vault::assert_same;

const NOTES: &str = "//- Garden/Compost.md
---
aliases: [Humus, Black gold]
tags: [garden]
---
# Compost
//- Garden/Plan.md
spring #garden
//- Archive/Plan.md
autumn
//- Log.md
# Log

## Done
- a

## Open
//- Bread and butter.md
see [[Compost]] and [c](Garden/Compost.md)
";

/// Runs a command: what it prints to both outputs, and its exit code.
#[track_caller]
fn check(shell: &Shell, args: &[&str], code: i32, out: &str, err: &str) {
    let ran = shell.run(args);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, out, err), "{args:?}");
}

/// Runs a command with --yes and undoes it.
#[track_caller]
fn check_done(shell: &Shell, args: &[&str], out: &str, then: &dyn Fn(&Shell)) {
    let before = shell.vault.tree();
    let ran = shell.run(&[args, &["--yes"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, out), "{args:?}: {}", ran.err);
    assert!(out.starts_with("done; ") || ran.err.contains("; vault-tools undo reverts it"), "{args:?}: {}", ran.err);
    then(shell);
    shell.done(&["undo", "--yes"]);
    assert_same(&shell.vault.tree(), &before, "undone");
}

#[test]
fn a_note_is_renamed_or_moved_and_links_follow() {
    let shell = Shell::new(NOTES);
    check_done(
        &shell,
        &["rename", "Compost", "Hot compost"],
        "renamed Garden/Compost.md to Garden/Hot compost.md, 2 links updated in 1 note\n",
        &|shell| {
            let links = "see [[Hot compost]] and [c](Garden/Hot%20compost.md)\n";
            assert_eq!(shell.vault.read("Bread and butter.md"), links);
        },
    );
    for (old, new, to) in [
        ("compost.md", "Soil/Humus.md", "Soil/Humus.md"),
        ("[[Compost|the heap]]", "/Compost", "Compost.md"),
        ("/garden/compost", "archive/", "Archive/Compost.md"),
        ("Humus", "v1.2", "Garden/v1.2.md"),
        ("BLACK GOLD", "archive/Gold", "Archive/Gold.md"),
    ] {
        let from = "renamed Garden/Compost.md to";
        let links = if to == "Compost.md" || to == "Archive/Compost.md" { "1 link" } else { "2 links" };
        check_done(&shell, &["rename", old, new], &format!("{from} {to}, {links} updated in 1 note\n"), &|_| {});
    }
    let path = shell.vault.root().canonicalize().unwrap().join("Log.md");
    check_done(&shell, &["rename", path.to_str().unwrap(), "Diary"], "renamed Log.md to Diary.md\n", &|_| {});
    check(&shell, &["rename", "Log", "Log"], 0, "nothing to change\n", "");
}

#[test]
fn names_that_mean_no_note_or_several_are_refused() {
    let shell = Shell::new(NOTES);
    shell.vault.write("Private/Secret.md", "aliases\n");
    shell.vault.write("Private/Told.md", "---\naliases: Alias\n---\n");
    shell.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let before = shell.vault.tree();
    let find = "(vault-search finds notes by what is in them)";
    for (name, err) in [
        ("Compst", "Note not found: Compst (did you mean Garden/Compost.md?)".to_owned()),
        ("Plan", "`Plan` can be 2 notes: Archive/Plan.md, Garden/Plan.md (give the path of one of them)".into()),
        ("chive/Plan", "Note not found: chive/Plan (did you mean Archive/Plan.md or Garden/Plan.md?)".into()),
        ("Log#Done", "`Log#Done` is a place in a note, but the command takes a whole note (write `Log`)".into()),
        (
            "Garden",
            "`Garden` is a folder, not a note (name the notes; vault-tools call vault.rename renames a folder)".into(),
        ),
        ("Secret", format!("Note not found: Secret {find}")),
        ("Secrte", format!("Note not found: Secrte {find}")),
        ("Private/Secret", format!("Note not found: Private/Secret {find}")),
        ("Alias", format!("Note not found: Alias {find}")),
        ("../Log", format!("Note not found: ../Log {find}")),
    ] {
        for command in [vec!["rename", name, "x"], vec!["delete", name], vec!["append", name, "x"]] {
            check(&shell, &[&command[..], &["--yes"]].concat(), 2, "", &format!("error: {err}\n"));
        }
    }
    for target in ["../x", "/etc/x", ".obsidian/x", "a#b"] {
        let ran = shell.run(&["rename", "Log", target, "--yes"]);
        assert!(ran.code == 2 && ran.err.starts_with("error: Invalid path: "), "{}", ran.err);
    }
    let taken = "error: Garden/Plan.md: is there already (choose another name, or move that one away first)\n";
    check(&shell, &["rename", "Archive/Plan", "Garden/Plan", "--yes"], 3, "", taken);
    check(&shell, &["move", "Archive/Plan", "Log", "Garden", "--yes"], 3, "", taken);
    let note = "error: `Garden/Compost.md` is the name of a note, but move takes a folder \
                (vault-tools rename gives a note another name)\n";
    check(&shell, &["move", "Log", "Garden/Compost.md", "--yes"], 2, "", note);
    let one = "error: this command works on one vault at a time (give --vault once)\n";
    check(&shell, &["rename", "Log", "x", "--vault", "Garden", "--vault", "Archive"], 2, "", one);
    assert_same(&shell.vault.tree(), &before, "refused");
}

#[test]
fn the_path_of_a_note_comes_before_other_notes_of_its_name() {
    let shell = Shell::new("//- Plan.md\na\n//- Garden/Plan.md\nb\n//- Garden/Sub/Plan.md\nc\n//- ab/x.md\nd\n");
    for (name, path) in [("plan", "Plan.md"), ("garden/plan", "Garden/Plan.md"), ("Sub/Plan", "Garden/Sub/Plan.md")] {
        let json: Value = serde_json::from_str(&shell.done(&["rename", name, "y", "--dry-run", "--json"])).unwrap();
        assert_eq!(json["args"]["path"], path);
    }
    // As the text of a link, `b/x` would lead to it.
    assert_eq!(shell.run(&["delete", "b/x", "--dry-run"]).code, 2);
}

#[test]
fn nothing_is_done_without_a_yes() {
    let shell = Shell::new(NOTES);
    let before = shell.vault.tree();
    for (name, command) in [
        ("rename", &["rename", "Log", "x"][..]),
        ("move", &["move", "Log", "Compost", "Archive"]),
        ("delete", &["delete", "Log"]),
        ("delete", &["delete", "Log", "Compost"]),
        ("merge", &["merge", "Log", "Compost"]),
        ("tag add", &["tag", "add", "Log", "x"]),
        ("tag remove", &["tag", "remove", "Compost", "garden"]),
        ("tag rename", &["tag", "rename", "garden", "x"]),
        ("prop set", &["prop", "set", "Log", "x", "1"]),
        ("prop remove", &["prop", "remove", "Compost", "tags"]),
        ("new", &["new", "x"]),
        ("append", &["append", "Log", "x"]),
        ("daily", &["daily"]),
    ] {
        let err = "needs approval, and there is no terminal to ask on (inspect it with --dry-run, then add --yes)";
        check(&shell, command, 3, "", &format!("error: {name} {err}\n"));
        assert!(!shell.done(&[command, &["--dry-run"]].concat()).is_empty());
    }
    let unasked = "error: deleting unasked is not allowed (leave out --yes and answer in a terminal, or set allow_delete = \
                   true in tools.toml)\n";
    for command in [["delete", "Log", "--yes"], ["delete", "Compost", "--yes"]] {
        check(&shell, &command, 3, "", unasked);
    }
    check(&shell, &["merge", "Log", "Compost", "--yes"], 3, "", unasked);
    check(&shell, &["delete", "Log", "Compost", "--yes"], 3, "", unasked);
    // Who lets a tool delete without asking has not said so of what the settings forbid.
    shell.configure("tools.toml", "[tools]\ndelete_note = \"never-ask\"\n");
    assert_eq!(shell.run(&["delete", "Log"]).code, 3);
    assert_same(&shell.vault.tree(), &before, "nothing was done");
    let preview = "rename Log.md -> x.md (+0 -0)\n";
    check(&shell, &["rename", "Log", "x", "--dry-run"], 0, preview, "");
}

#[test]
fn notes_are_moved_deleted_and_merged_as_one() {
    let shell = Shell::new(NOTES);
    shell.configure("tools.toml", "allow_delete = true\n");
    let exists = |shell: &Shell, path: &str| shell.vault.root().join(path).exists();
    check_done(&shell, &["move", "Log", "garden"], "renamed Log.md to Garden/Log.md\n", &|_| {});
    let run = |number| format!("done; transaction {number}, vault-tools undo reverts it\n");
    check_done(&shell, &["move", "Log", "Compost", "[[Log]]", "New/${date}"], &run(3), &|shell| {
        assert!(exists(shell, "New/${date}/Log.md") && exists(shell, "New/${date}/Compost.md"));
    });
    let trashed = "deleted Garden/Compost.md, which is in .trash/Garden/Compost.md now\n";
    check_done(&shell, &["delete", "humus"], trashed, &|shell| assert!(!exists(shell, "Garden/Compost.md")));
    check_done(&shell, &["delete", "Log", "Compost"], &run(7), &|shell| assert!(!exists(shell, "Log.md")));
    check_done(
        &shell,
        &["merge", "Compost", "Log"],
        "merged Garden/Compost.md into Log.md, 2 links updated in 1 note\n",
        &|shell| assert_eq!(shell.vault.read("Bread and butter.md"), "see [[Log]] and [c](Log.md)\n"),
    );
    check_done(&shell, &["merge", "Archive/Plan", "Garden/Plan", "Log"], &run(11), &|shell| {
        let text = shell.vault.read("Log.md");
        assert!(text.contains("autumn") && text.contains("spring #garden"), "{text}");
    });
    check(&shell, &["merge", "Log", "Log", "--yes"], 2, "", "error: a note cannot be merged into itself\n");
    let events = shell.done(&["move", "Log", "Compost", "/", "--yes", "--json"]);
    let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "run.finished");
}

#[test]
fn tags_and_properties() {
    let shell = Shell::new(NOTES);
    let log = |head: &'static str| {
        move |shell: &Shell| {
            let text = shell.vault.read("Log.md");
            assert_eq!(text.strip_suffix("# Log\n\n## Done\n- a\n\n## Open\n"), Some(head));
        }
    };
    let tags = "Log.md has the tags x, soil/living\n";
    check_done(
        &shell,
        &["tag", "add", "log", "x", "#soil/living"],
        tags,
        &log("---\ntags:\n  - x\n  - soil/living\n---\n"),
    );
    check(&shell, &["tag", "add", "Compost", "garden"], 0, "nothing to change\n", "");
    check_done(&shell, &["tag", "remove", "Compost", "garden"], "Garden/Compost.md has no tags now\n", &|_| {});
    check_done(&shell, &["tag", "rename", "garden", "plot"], "renamed garden to plot in 2 notes\n", &|shell| {
        assert_eq!(shell.vault.read("Garden/Plan.md"), "spring #plot\n");
    });
    let none = "error: no note has the tag #none (vault-index tags lists all tags)\n";
    check(&shell, &["tag", "rename", "none", "x", "--yes"], 2, "", none);
    for (value, yaml, shown) in [
        ("[a, 'b c']", "\n  - a\n  - b c", "[\"a\",\"b c\"]"),
        ("42", " 42", "42"),
        ("-3", " -3", "-3"),
        ("true", " true", "true"),
        ("yes", " \"yes\"", "\"yes\""),
        ("2026-03-02", " 2026-03-02", "\"2026-03-02\""),
        ("done", " done", "\"done\""),
    ] {
        let set = format!("set k of Log.md to {shown}\n");
        check_done(&shell, &["prop", "set", "Log", "k", value], &set, &|shell| {
            assert_eq!(shell.vault.read("Log.md").split_once("# Log").unwrap().0, format!("---\nk:{yaml}\n---\n"));
        });
    }
    for (value, yaml) in [("42", "\"42\""), ("true", "\"true\""), ("Q3: Planning", "\"Q3: Planning\""), ("", "\"\"")] {
        check_done(
            &shell,
            &["prop", "set", "Log", "k", value, "--text"],
            &format!("set k of Log.md to {value:?}\n"),
            &|shell| {
                assert_eq!(shell.vault.read("Log.md").split_once("# Log").unwrap().0, format!("---\nk: {yaml}\n---\n"));
            },
        );
    }
    let text = "(to take it as text, add --text)";
    check(&shell, &["prop", "set", "Log", "k", "Q3: x"], 2, "", &format!("error: `Q3: x` is not valid YAML {text}\n"));
    check(
        &shell,
        &["prop", "set", "Log", "k", "1\nj: 2"],
        2,
        "",
        &format!("error: `1 j: 2` is not valid YAML {text}\n"),
    );
    let none = "error: `null` is not a value (vault-tools prop remove removes a property; for a text, add --text)\n";
    check(&shell, &["prop", "set", "Log", "k", "null"], 2, "", none);
    check_done(&shell, &["prop", "remove", "Compost", "aliases"], "removed aliases of Garden/Compost.md\n", &|_| {});
    check(&shell, &["prop", "remove", "Log", "k"], 0, "nothing to change\n", "");
}

#[test]
fn notes_are_created_and_added_to() {
    let shell = Shell::new(NOTES);
    check_done(&shell, &["new", "garden/Mulch", "# Mulch"], "created Garden/Mulch.md\n", &|shell| {
        assert_eq!(shell.vault.read("Garden/Mulch.md"), "# Mulch\n");
    });
    check_done(&shell, &["new", "Empty"], "created Empty.md\n", &|shell| assert_eq!(shell.vault.read("Empty.md"), ""));
    check_done(&shell, &["new", "From", "--template", "Garden/Plan"], "created From.md\n", &|shell| {
        assert_eq!(shell.vault.read("From.md"), "spring #garden\n");
    });
    let exists = "error: Log.md: a file or folder of this name exists (choose another name)\n";
    check(&shell, &["new", "Log", "x", "--yes"], 3, "", exists);
    let ran = shell.run_with(&["new", "Clip", "-", "--yes"], "no end");
    assert_eq!((ran.code, shell.vault.read("Clip.md").as_str()), (0, "no end"));

    check_done(&shell, &["append", "Log", "- done"], "added to Log.md, line 8\n", &|shell| {
        assert!(shell.vault.read("Log.md").ends_with("## Open\n\n- done\n"));
    });
    check_done(&shell, &["append", "Log", "- b", "--heading", "Done"], "added to Log.md, line 5\n", &|shell| {
        assert!(shell.vault.read("Log.md").contains("- a\n- b\n"));
    });
    let ran = shell.run_with(&["append", "log", "-", "--yes"], "- piped\n");
    assert!(ran.code == 0 && shell.vault.read("Log.md").ends_with("- piped\n"), "{}", ran.err);
    let ran = shell.run_with(&["append", "log", "-", "--yes"], "");
    assert_eq!((ran.code, ran.err.as_str()), (2, "error: standard input is empty, so nothing is added\n"));
}

#[test]
fn a_daily_note_is_made_once_and_its_path_printed() {
    let shell = Shell::new(
        "//- Day.md\n# {{title}}\n//- .obsidian/daily-notes.json\n{\"folder\": \"Days\", \"template\": \"Day\"}\n",
    );
    for day in ["2026-01-02", "today", "yesterday", "tomorrow"] {
        let made = shell.run(&["daily", day, "--yes"]);
        assert!(made.code == 0 && made.err.contains("vault-tools undo reverts it"), "{}", made.err);
        let name = made.out.strip_prefix("Days/").and_then(|path| path.strip_suffix(".md\n")).unwrap();
        assert_eq!(shell.vault.read(made.out.trim_end()), format!("# {name}\n"));
        check(&shell, &["daily", name], 0, &made.out, "");
    }
    check(&shell, &["daily", "someday"], 2, "", "error: `someday` is not a day (write YYYY-MM-DD)\n");
}

#[cfg(unix)]
mod at_a_terminal {
    use super::*;
    use crate::terminal::Session;

    #[test]
    fn a_person_is_asked_and_may_delete() {
        let shell = Shell::new(NOTES);
        let before = shell.vault.tree();
        for (answer, code) in [("n", 3), ("y", 0)] {
            let mut session = Session::new(&shell.vault, &shell.home, &["delete", "Compost"]);
            let shown = session.until("edit arguments] ");
            assert!(shown.contains("delete Garden/Compost.md -> .trash/Garden/Compost.md"), "{shown}");
            assert!(shown.contains("the link [[Compost]] leads nowhere now"), "{shown}");
            session.answer(answer);
            assert_eq!(session.end().1, code);
            assert_eq!(shell.vault.tree() == before, answer == "n");
        }
        shell.done(&["undo", "--yes"]);
        assert_same(&shell.vault.tree(), &before, "undone");
        // What changes nothing is not asked about.
        let session = Session::new(&shell.vault, &shell.home, &["tag", "add", "Compost", "garden"]);
        assert_eq!(session.end(), ("nothing to change\n".to_owned(), 0));
    }

    /// A path goes to another program while the question is on the terminal.
    #[test]
    fn a_daily_note_is_asked_about_beside_its_path() {
        let shell = Shell::new(NOTES);
        let mut session = Session::new(&shell.vault, &shell.home, &["daily", "2026-01-02"]);
        session.until("] ");
        session.answer("y");
        assert_eq!(session.end(), ("2026-01-02.md\n".to_owned(), 0));
    }
}

#[test]
fn help_begins_with_these_commands() {
    let help = Shell::new("//- a.md\nx\n").done(&["-h"]);
    let commands = help.split_once("Commands:\n").unwrap().1.lines().take(9);
    let names: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["rename", "move", "delete", "merge", "tag", "prop", "new", "append", "daily"]);
}

/// Completes a word in Bash, with the script that the command prints: what is offered, one a line.
#[cfg(unix)]
fn completed(shell: &Shell, words: &[&str]) -> Vec<String> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_vault-tools"));
    let script = "source <(vault-tools completions bash) || exit 9
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        complete -p vault-tools | grep -q _vault_tools_notes || exit 8
        _vault_tools_notes vault-tools \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
        for name in \"${COMPREPLY[@]}\"; do echo \"$name\"; done";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script, "bash", "vault-tools"]).args(words).env_clear().current_dir(shell.vault.root());
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    bash.env("PATH", path).env("HOME", shell.home.path()).env("VAULT_DIR", shell.vault.root());
    bash.env("XDG_CONFIG_HOME", shell.home.path()).env("XDG_STATE_HOME", shell.home.path());
    let ran = bash.env("XDG_CACHE_HOME", shell.home.path()).output().unwrap();
    assert!(ran.status.success(), "{:?}", ran.status);
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "");
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn bash_completes_names_of_notes() {
    let shell = Shell::new(NOTES);
    shell.vault.write("Private/Secret.md", "x\n");
    shell.vault.write("Left out/Leaf.md", "x\n");
    shell.vault.write(".vaultignore", "Left out\n");
    shell.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let (before, home) = (shell.vault.tree(), crate::vault::tree(shell.home.path()));
    for (words, expected) in [
        (&["rename", "Bre"][..], &["Bread and butter"][..]),
        (&["rename", r"bread\ a"], &["Bread and butter"]),
        (&["rename", "\"Bread a"], &["Bread and butter"]),
        (&["delete", "Log", ""], &["Archive/Plan", "Bread and butter", "Compost", "Garden/Plan", "Log"]),
        (&["append", "pl"], &["Archive/Plan", "Garden/Plan"]),
        (&["prop", "set", "garden/c"], &["Garden/Compost"]),
        (&["move", "Log", "Ga"], &["Garden/", "Garden/Plan"]),
        (&["rename", "Sec"], &[]),
        (&["rename", "Lea"], &[]),
        (&["rename", "Log", "Lo"], &[]),
        (&["rename", "--d"], &["--dry-run"]),
        (&["rena"], &["rename"]),
    ] {
        assert_eq!(completed(&shell, words), expected, "{words:?}");
    }
    assert_same(&shell.vault.tree(), &before, "nothing is written");
    assert_same(&crate::vault::tree(shell.home.path()), &home, "and no index or journal");
    // Settings that cannot be understood may deny anything.
    shell.configure("tools.toml", "denied_paths = \"Private\"\n");
    assert_eq!(completed(&shell, &["rename", "Bre"]), [""; 0]);
}
