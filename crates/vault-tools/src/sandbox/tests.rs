//! What is in the vault can be reached, and nothing else can.

use super::*;
use crate::content::Content;
use crate::error::ErrorKind;

fn path(text: &str) -> SafePath {
    SafePath::new(text).unwrap()
}

/// Every way out that is known, and what only looks like one.
#[test]
fn paths_that_lead_out_are_refused() {
    let mut attacks: Vec<String> = Vec::new();
    let target = "etc/passwd";
    for up in ["..", "../..", "../../..", "a/..", "a/../..", "./..", "a/./../..", "..//", "a//..", ".././.."] {
        attacks.extend([up.to_owned(), format!("{up}/{target}"), format!("x/{up}/{target}")]);
    }
    for root in ["/", "//", "///", "/./", "/../", "//?/", "//./", "//server/share/"] {
        attacks.extend([root.to_owned(), format!("{root}{target}")]);
    }
    for backslash in
        ["\\", "..\\", "a\\..\\..\\", "\\\\server\\share\\", "\\\\?\\C:\\", "\\\\.\\", "a\\b", "..\\/", "/\\"]
    {
        attacks.push(format!("{backslash}x"));
    }
    for scheme in [
        "file:",
        "file://",
        "http://",
        "https://",
        "obsidian://",
        "C:",
        "c:/",
        "C:\\",
        "Z:",
        "javascript:",
        "data:",
        "a.b+c-1:",
        "note.md:",
    ] {
        attacks.extend([format!("{scheme}x.md"), format!(".//./{scheme}x.md")]);
    }
    for control in ["\0", "\n", "\r", "\t", "\u{1b}", "\u{7f}", "\u{85}", "\u{9b}", "\u{1}"] {
        attacks.extend([
            control.to_owned(),
            format!("a{control}b.md"),
            format!("{control}a.md"),
            format!("a.md{control}"),
        ]);
    }
    for hidden in [".git", ".obsidian", ".trash", ".", "...", ".a", ".vault.toml", ".env", "..a", ". ", ".ssh"] {
        attacks.extend([
            format!("{hidden}/config"),
            format!("a/{hidden}/config"),
            format!("a/{hidden}"),
            hidden.to_owned(),
        ]);
    }
    for device in [
        "CON", "con", "PRN", "AUX", "NUL", "nul", "COM1", "com9", "LPT1", "LPT9", "COM¹", "LPT³", "CONIN$", "conout$",
        "COM0",
    ] {
        attacks.extend([
            device.to_owned(),
            format!("{device}.md"),
            format!("a/{device}.txt.md"),
            format!("{device}/a.md"),
        ]);
    }
    for end in ["a.", "a ", "a. .", "a/b./c.md", "a /b.md", "a.md.", "a.md ", ".. ", ". ."] {
        attacks.push(end.to_owned());
    }
    attacks.extend(["", "   ", "~", "~/notes/a.md", "/", "./", "//"].map(str::to_owned));
    attacks.push("a/".repeat(1000));
    // `.` alone and `a/.` are no way out: what is left of them is nothing, or the folder.
    attacks.retain(|attack| !matches!(attack.as_str(), "./config" | "a/./config" | "a/."));
    assert!(attacks.len() >= 200, "{}", attacks.len());
    for attack in attacks {
        match SafePath::new(&attack) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidPath, "{attack:?}");
                assert!(error.to_string().starts_with("Invalid path"), "{error}");
            }
            Ok(path) => panic!("{attack:?} is {path:?}"),
        }
    }
}

#[test]
fn paths_that_stay_inside_are_taken() {
    for (text, expected) in [
        ("a.md", "a.md"),
        ("a/b/c.md", "a/b/c.md"),
        ("./a//b.md", "a/b.md"),
        ("Projects/", "Projects"),
        ("a..b.md", "a..b.md"),
        ("v1.2 plan.md", "v1.2 plan.md"),
        ("10:30 meeting.md", "10:30 meeting.md"),
        ("a~b.md", "a~b.md"),
        ("Cafe\u{301}.md", "Caf\u{e9}.md"),
        ("日本/語.md", "日本/語.md"),
        ("console.md", "console.md"),
        ("com10.md", "com10.md"),
        ("%2e%2e/a.md", "%2e%2e/a.md"),
        ("a/$HOME.md", "a/$HOME.md"),
    ] {
        assert_eq!(path(text).as_str(), expected, "{text:?}");
    }
}

#[test]
fn new_names_can_be_linked_to() {
    for bad in [
        "a#b.md",
        "a^b.md",
        "a[b.md",
        "a]b.md",
        "a|b.md",
        "a b: c.md",
        "x/C#/a.md",
        "a\u{202e}b.md",
        "What is it?.md",
        "a*b.md",
        "a\"b.md",
        "a<b>.md",
    ] {
        assert_eq!(path(bad).check_new().unwrap_err().kind(), ErrorKind::InvalidPath, "{bad}");
    }
    assert!(path(&"é".repeat(130)).check_new().is_err());
}

#[test]
fn a_value_becomes_one_name() {
    for (value, expected) in [
        ("Plain title", "Plain title"),
        ("a/b\\c", "a-b-c"),
        ("../../x", "-..-x"),
        ("line\nbreak\r\n", "line-break"),
        ("[[x]] #tag ^id | y: z?", "--x-- -tag -id - y- z-"),
        ("  .hidden. ", "hidden"),
        ("CON", "CON-"),
        ("COM1.md", "COM1-.md"),
        ("nul .a.b", "nul -.a.b"),
        ("...", "-"),
        ("", "-"),
        ("say \"${selection}\" 🎉", "say -${selection}- 🎉"),
    ] {
        let segment = SafePath::segment(value);
        assert_eq!(segment, expected, "{value:?}");
        let new = path(&format!("f/{segment}.md"));
        new.check_new().unwrap();
        assert_eq!(new.as_str().matches('/').count(), 1);
    }
    assert!(SafePath::segment(&"字".repeat(500)).len() <= 200);
}

/// A vault with a secret beside it, and a sibling whose name begins alike.
fn vault() -> (tempfile::TempDir, Sandbox) {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("secret.md", "secret"),
        ("notes-evil/x.md", "secret"),
        ("notes/a.md", "a"),
        ("notes/sub/b.md", "b"),
        ("notes/.obsidian/app.json", "{}"),
        ("notes/.git/config", "secret"),
    ] {
        let file = folder.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let sandbox = Sandbox::open(&folder.path().join("notes")).unwrap();
    (folder, sandbox)
}

#[cfg(unix)]
fn link(folder: &tempfile::TempDir, name: &str, target: &str) {
    std::os::unix::fs::symlink(target, folder.path().join("notes").join(name)).unwrap();
}

#[test]
fn files_are_read_listed_and_missed() {
    let (_folder, sandbox) = vault();
    assert_eq!(sandbox.text(&path("sub/b.md")).unwrap(), "b");
    let names = |folder: Option<&SafePath>| -> Vec<String> {
        sandbox.list(folder).unwrap().iter().map(|entry| entry.path.to_string()).collect()
    };
    assert_eq!((names(None), names(Some(&path("sub")))), (vec!["a.md".into(), "sub".into()], vec!["sub/b.md".into()]));
    let missing = sandbox.read(&path("sub/a.md")).unwrap_err();
    assert!(missing.to_string().starts_with("Note not found: sub/a.md"), "{missing}");
    let near = super::missing(&path("sub/a.md"), &sandbox, &|entry| entry.path.as_str() != "a.md");
    assert_eq!(near.to_string(), "Note not found: sub/a.md (did you mean sub/b.md?)");
    assert_eq!(sandbox.read(&path("sub")).unwrap_err().kind(), ErrorKind::InvalidArguments);
    assert_eq!(sandbox.stat(&path("a.md/x")).unwrap(), None);
    // A name that the system would not take is one that is not there.
    for long in [format!("{}.md", "n".repeat(300)), format!("{}/a.md", "n".repeat(300))] {
        assert_eq!(sandbox.stat(&path(&long)).unwrap(), None);
    }
    assert_eq!(sandbox.obsidian_setting("app.json").unwrap().as_deref(), Some("{}"));
    assert_eq!(sandbox.obsidian_setting("../../secret.md").unwrap(), None);
}

/// People share Obsidian's settings between vaults.
#[cfg(unix)]
#[test]
fn settings_may_lie_behind_a_link() {
    let (folder, sandbox) = vault();
    std::fs::create_dir(folder.path().join("shared")).unwrap();
    std::fs::write(folder.path().join("shared/app.json"), "{\"shared\":1}").unwrap();
    std::fs::remove_dir_all(folder.path().join("notes/.obsidian")).unwrap();
    link(&folder, ".obsidian", "../shared");
    assert_eq!(sandbox.obsidian_setting("app.json").unwrap().as_deref(), Some("{\"shared\":1}"));
    assert_eq!(sandbox.obsidian_setting("daily-notes.json").unwrap(), None);
    assert!(sandbox.list(None).unwrap().iter().all(|entry| !entry.path.as_str().starts_with('.')));
}

/// What is only moved or looked at is not read into memory.
#[cfg(unix)]
#[test]
fn a_file_of_any_size_has_a_hash() {
    let (folder, sandbox) = vault();
    let file = std::fs::File::create(folder.path().join("notes/big.bin")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    assert!(sandbox.is_there(&path("big.bin")).unwrap());
    assert!(matches!(sandbox.found(&path("big.bin")).unwrap(), super::PathState::File(_)));
    assert_eq!(sandbox.read(&path("big.bin")).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_are_not_there() {
    let (folder, sandbox) = vault();
    for (name, target) in [
        ("file.md", "../secret.md"),
        ("abs.md", "/etc/passwd"),
        ("dir", ".."),
        ("evil", "../notes-evil"),
        ("root", "/"),
        ("hidden.md", ".git/config"),
        ("conf.md", ".obsidian/app.json"),
        ("loop.md", "loop.md"),
        ("far.md", "sub/../../secret.md"),
    ] {
        link(&folder, name, target);
    }
    let listed: Vec<String> = sandbox.walk(None).unwrap().iter().map(|entry| entry.path.to_string()).collect();
    assert_eq!(listed, ["a.md", "sub", "sub/b.md"]);
    for attack in [
        "file.md",
        "abs.md",
        "dir/secret.md",
        "dir/notes-evil/x.md",
        "evil/x.md",
        "root/etc/passwd",
        "hidden.md",
        "conf.md",
        "loop.md",
        "far.md",
        "dir/notes/a.md",
        "evil/new.md",
    ] {
        let path = path(attack);
        let refused = sandbox.read(&path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidPath, "{attack}: {refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
        if attack.contains('/') {
            assert!(sandbox.create(&path, &"x".into(), ".t.tmp", &SavedMetadata::default()).is_err(), "{attack}");
            assert!(
                sandbox.make_folder(&path, &SavedMetadata::default()).is_err() && sandbox.remove_file(&path).is_err(),
                "{attack}"
            );
            assert!(
                sandbox.rename(&SafePath::new("a.md").unwrap(), &path, &SavedMetadata::default()).is_err(),
                "{attack}"
            );
        } else {
            assert!(sandbox.replace(&path, &"x".into(), ".t.tmp").is_err(), "{attack}");
        }
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("secret.md")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_note_stands_for_it() {
    let (folder, sandbox) = vault();
    link(&folder, "one.md", "sub/b.md");
    link(&folder, "two.md", "one.md");
    let absolute = sandbox.vault().join("a.md");
    link(&folder, "abs.md", absolute.to_str().unwrap());
    assert_eq!(sandbox.text(&path("two.md")).unwrap(), "b");
    assert_eq!(sandbox.real(&path("two.md")).unwrap(), path("sub/b.md"));
    assert_eq!(sandbox.text(&path("abs.md")).unwrap(), "a");
    assert!(sandbox.stat(&path("one.md")).unwrap().unwrap().symlink);
}

/// Somebody swaps a folder for a link while it is in use.
#[cfg(unix)]
#[test]
fn a_folder_that_becomes_a_link_leads_nowhere() {
    let (folder, sandbox) = vault();
    let sub = folder.path().join("notes/sub");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let parked = folder.path().join("parked");
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::rename(&sub, &parked).unwrap();
                std::os::unix::fs::symlink("../notes-evil", &sub).unwrap();
                std::fs::remove_file(&sub).unwrap();
                std::fs::rename(&parked, &sub).unwrap();
            }
        });
        for round in 0..2000 {
            if let Ok(text) = sandbox.text(&path("sub/x.md")) {
                panic!("read {text:?}");
            }
            let _ = sandbox.create(&path(&format!("sub/{round}.md")), &"x".into(), ".t.tmp", &SavedMetadata::default());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(std::fs::read_dir(folder.path().join("notes-evil")).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_note() {
    let (folder, sandbox) = vault();
    let pipe = folder.path().join("notes/pipe.md");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert!(sandbox.read(&path("pipe.md")).is_err());
    assert_eq!(sandbox.stat(&path("pipe.md")).unwrap(), None);
}

#[test]
fn what_is_written_replaces_nothing_it_should_not() {
    let (folder, sandbox) = vault();
    let on_disk = |name: &str| std::fs::read_to_string(folder.path().join("notes").join(name)).unwrap();
    let refused = sandbox.create(&path("a.md"), &"new".into(), ".t.tmp", &SavedMetadata::default()).unwrap_err();
    assert_eq!((refused.kind(), on_disk("a.md").as_str()), (ErrorKind::Conflict, "a"));
    assert!(sandbox.rename(&path("a.md"), &path("sub/b.md"), &SavedMetadata::default()).is_err());
    assert!(sandbox.rename(&path("a.md"), &path("sub"), &SavedMetadata::default()).is_err());
    sandbox.replace(&path("a.md"), &"new".into(), ".t.tmp").unwrap();
    sandbox.rename(&path("a.md"), &path("sub/c.md"), &SavedMetadata::default()).unwrap();
    assert_eq!(on_disk("sub/c.md"), "new");
    assert!(!sandbox.remove_folder(&path("sub")).unwrap());
    let names = std::fs::read_dir(folder.path().join("notes")).unwrap().count();
    assert_eq!(names, 3, "no temporary file is left");
}

#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, sandbox) = vault();
    let file = folder.path().join("notes/a.md");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    sandbox.replace(&path("a.md"), &"new".into(), ".t.tmp").unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Names that came from a system that takes letters apart.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_composed_are_found() {
    let (folder, sandbox) = vault();
    std::fs::create_dir(folder.path().join("notes/Cafe\u{301}")).unwrap();
    std::fs::write(folder.path().join("notes/Cafe\u{301}/e\u{301}.md"), "x").unwrap();
    let note = path("Caf\u{e9}/\u{e9}.md");
    assert_eq!(sandbox.text(&note).unwrap(), "x");
    sandbox.replace(&note, &Content::from("y"), ".t.tmp").unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("notes/Cafe\u{301}/e\u{301}.md")).unwrap(), "y");
}
