//! What the settings deny is neither shown nor changed.

use serde_json::{Value, json};
use vault_tools::approval::HeadlessApprover;
use vault_tools::{Cancel, Editor, ErrorKind, Grants, PolicySettings, Toolbox};

use crate::tools::{call, garden, refused};
use crate::vault::{TestVault, apply, assert_same, seen};

#[test]
fn denied_paths_are_not_shown() {
    let vault = garden();
    let mut policy = PolicySettings::default();
    policy.denied_paths = vec!["Garden".into()];
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    let text = |toolbox: &mut Toolbox, tool: &str, args: Value| call(toolbox, tool, args).to_string();
    for (tool, args) in [
        ("search_notes", json!({ "query": "stems bud winter soil water" })),
        ("search_by_tag", json!({ "tags": ["garden"] })),
        ("vault_search", json!({ "query": "e" })),
        ("vault.searchText", json!({ "query": "clay" })),
        ("vault.listFiles", json!({ "recursive": true, "extensions": ["md"] })),
    ] {
        let found = text(&mut toolbox, tool, args);
        assert!(!found.contains("\"path\":\"Garden"), "{tool}: {found}");
    }
    for (tool, args) in [
        ("read_note", json!({ "path": "Garden/Soil.md" })),
        ("file_read", json!({ "filePaths": ["garden/soil.md"] })),
        ("rename_note", json!({ "path": "Index.md", "new_path": "Garden/Index.md" })),
    ] {
        let error = toolbox.call(tool, args, &mut seen).expect_err(tool);
        assert_eq!(error.kind(), ErrorKind::Denied, "{tool}: {error}");
    }
}

/// Denied stays denied: whatever carries it along, stands for it, names it or tells of it.
#[test]
fn there_is_no_way_round_a_denial() {
    let vault = TestVault::new(
        "//- Area/Private/secret.md
        TOPSECRET [[public]]
        //- Area/Private/empty/.keep
        //- Pub/public.md
        [[secret]] [[nowhere]]
        ",
    );
    vault.write(".obsidian/daily-notes.json", r#"{"template":"Area/Private/secret"}"#);
    #[cfg(unix)]
    std::os::unix::fs::symlink("../Area/Private/secret.md", vault.root().join("Pub/link.md")).unwrap();
    let before = vault.tree();
    let denied_paths = vec!["Area/Private".into()];
    let mut policy = PolicySettings::default();
    (policy.denied_paths, policy.allow_delete) = (denied_paths, true);
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    for (tool, args) in [
        ("vault.rename", json!({ "fromPath": "Area", "toPath": "B" })),
        ("vault.delete", json!({ "path": "Area" })),
        ("vault.delete", json!({ "path": "Area", "trash": false })),
        ("vault.rename", json!({ "fromPath": "Pub/public.md", "toPath": "Area", "collisionStrategy": "overwrite" })),
        ("create_daily_note", json!({})),
        ("read_note", json!({ "path": "Area/private/secret.md" })),
        #[cfg(unix)]
        ("read_note", json!({ "path": "Pub/link.md" })),
        #[cfg(unix)]
        ("write_note", json!({ "path": "Pub/link.md", "content": "x" })),
        #[cfg(unix)]
        ("vault.searchText", json!({ "query": "TOP", "paths": ["Pub/link.md"] })),
    ] {
        let error = toolbox.call(tool, args.clone(), &mut seen).expect_err(tool);
        assert_eq!(error.kind(), ErrorKind::Denied, "{tool} {args}: {error}");
    }
    let near = refused(&mut toolbox, "read_note", json!({ "path": "secret.md" }));
    let gone = refused(&mut toolbox, "vault.delete", json!({ "path": "secrets.md" }));
    let moved = refused(&mut toolbox, "vault.rename", json!({ "fromPath": "secret.md", "toPath": "x.md" }));
    for (tool, args) in [
        ("vault_search", json!({ "query": "e" })),
        ("vault.searchText", json!({ "query": "TOP" })),
        ("vault.listFiles", json!({ "recursive": true })),
        ("list_forward_links", json!({ "path": "Pub/public.md" })),
        ("list_backlinks", json!({ "path": "Pub/public.md" })),
        ("search_notes", json!({ "query": "TOPSECRET" })),
    ] {
        let found = call(&mut toolbox, tool, args).to_string();
        assert!(!found.contains("Private/") && !found.contains("TOPSECRET"), "{tool}: {found}");
        assert!(!found.contains("Pub/link.md"), "{tool}: {found}");
    }
    assert!(![near, gone, moved].iter().any(|error| error.contains("Private")));
    assert_same(&vault.tree(), &before, "something was done");
    let deleted = call(&mut toolbox, "delete_note", json!({ "path": "Pub/public.md" }));
    assert_eq!(deleted["dangling_links"], json!([]), "the note that links to it is denied");
}

/// A setting says how far a tool may go by itself, and not that a rename may delete.
#[test]
fn a_rename_that_deletes_asks_although_renames_do_not() {
    use vault_tools::{Permission, ToolSetting};
    let vault = garden();
    let tools = [("vault.rename".to_string(), ToolSetting::NeverAsk)].into();
    let mut policy = PolicySettings::default();
    (policy.tools, policy.allow_delete) = (tools, true);
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    let over = json!({ "fromPath": "Index.md", "toPath": "Tag only.md", "collisionStrategy": "overwrite" });
    let mut granted = Grants::default();
    granted.grant("vault.rename");
    for grants in [Grants::default(), granted] {
        assert_eq!(toolbox.permission("vault.rename", &over, &grants).unwrap(), Permission::Ask);
        let proposal = toolbox.propose("vault.rename", over.clone(), Cancel::default()).unwrap();
        let error = apply(&mut toolbox, proposal, &grants, &mut HeadlessApprover).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    let free = json!({ "fromPath": "Index.md", "toPath": "Start.md" });
    toolbox.call("vault.rename", free, &mut HeadlessApprover).unwrap();
    let over = json!({ "fromPath": "Start.md", "toPath": "Tag only.md", "collisionStrategy": "overwrite" });
    toolbox.call("vault.rename", over, &mut seen).unwrap();
}

/// What is denied is not shown to be there: the answer is the same where it is and where it is not.
#[test]
fn a_denied_file_is_not_shown_to_exist() {
    let policy = || {
        let mut policy = PolicySettings::default();
        policy.denied_paths = vec!["Private".into(), "Übung".into()];
        policy.allow_delete = true;
        policy
    };
    let with = TestVault::new(
        "//- a.md\nx [[b]]\n//- b.md\nx\n//- Private/n.md\nx\n//- Private/f/m.md\nx\n//- Übung/n.md\nx\n",
    );
    let without = TestVault::new("//- a.md\nx [[b]]\n//- b.md\nx\n");
    for path in ["Private/n.md", "private/N.md", "Private/f", "Private", "Private/f/m", "Übung/n.md", "übung/N.md"] {
        let note = if path.ends_with(".md") { path.to_owned() } else { format!("{path}.md") };
        for (tool, args) in [
            ("read_note", json!({ "path": path })),
            ("write_note", json!({ "path": note, "content": "x" })),
            ("append_to_note", json!({ "path": note, "content": "x" })),
            ("edit_note", json!({ "path": path, "old_text": "x", "new_text": "y" })),
            ("get_note_metadata", json!({ "path": path })),
            ("list_backlinks", json!({ "path": path })),
            ("delete_note", json!({ "path": path })),
            ("rename_note", json!({ "path": "a.md", "new_path": note })),
            ("rename_note", json!({ "path": note, "new_path": "c.md" })),
            ("vault.rename", json!({ "fromPath": "a.md", "toPath": path, "collisionStrategy": "overwrite" })),
            ("vault.createFile", json!({ "path": path, "content": "x" })),
            ("vault.createFile", json!({ "path": note, "content": "x", "collisionStrategy": "create-unique" })),
            ("vault.writeFile", json!({ "path": path, "content": "x", "expectedEtag": "0" })),
            ("vault.ensureFolder", json!({ "path": path })),
            ("vault.listFiles", json!({ "prefix": path })),
            ("vault.delete", json!({ "path": path, "requireExists": false })),
            ("file_read", json!({ "filePaths": [path] })),
            ("workspace.openFile", json!({ "path": path })),
        ] {
            let answers = [&with, &without].map(|vault| {
                let mut toolbox = vault.toolbox_with(Editor::default(), &policy());
                toolbox.call(tool, args.clone(), &mut seen).map_err(|error| error.to_string())
            });
            assert_eq!(answers[0], answers[1], "{tool} {args}");
        }
    }
}

/// Of denied notes that a change bears upon, neither preview nor error nor answer tells the names.
#[test]
fn denied_notes_are_not_named_by_what_bears_on_them() {
    let vault = TestVault::new(
        "//- a.md\nx\n//- gone.md\nx\n//- Private/secret.md\n[[gone]] [[later]]\n//- Private/linker.md\n[[a]]\n",
    );
    let mut policy = PolicySettings::default();
    (policy.denied_paths, policy.allow_delete) = (vec!["Private".into()], true);
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    // A link in it would have to be written anew.
    let renamed = toolbox.propose("rename_note", json!({ "path": "a.md", "new_path": "b.md" }), Cancel::default());
    assert!(!format!("{renamed:?}").contains("[[a]]"));
    // Links in it dangle, or lead to something.
    for (tool, args) in [
        ("delete_note", json!({ "path": "gone.md" })),
        ("vault.delete", json!({ "path": "gone.md" })),
        ("rename_note", json!({ "path": "gone.md", "new_path": "Private/gone.md" })),
    ] {
        let Ok(proposal) = toolbox.propose(tool, args, Cancel::default()) else { continue };
        let told = format!("{} {}", proposal.output, serde_json::to_string(&proposal.preview()).unwrap());
        assert!(!told.contains("secret"), "{tool}: {told}");
    }
    let mut later = vault.toolbox_with(Editor::default(), &policy);
    vault.write("free.md", "x\n");
    let proposal =
        later.propose("rename_note", json!({ "path": "free.md", "new_path": "later.md" }), Cancel::default());
    let told = format!("{:?}", proposal.map(|proposal| (proposal.preview(), proposal.output)));
    assert!(!told.contains("secret"), "{told}");
    // One came meanwhile that bears on it.
    let proposal =
        later.propose("rename_note", json!({ "path": "free.md", "new_path": "new.md" }), Cancel::default()).unwrap();
    vault.write("Private/f/free.md", "x\n");
    let error = apply(&mut later, proposal, &Grants::default(), &mut seen).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && !error.to_string().contains("Private"), "{error}");
    let log = format!("{:?}", vault_tools::read_log(vault.open().state()).unwrap());
    assert!(!log.contains("linker") && !log.contains("f/free"), "{log}");
}
