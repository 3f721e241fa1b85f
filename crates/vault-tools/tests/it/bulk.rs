//! The tools of the toolset `bulk`: what they change, what they leave, and that undo takes all of it back.

use serde_json::{Value, json};
use vault_tools::{Editor, ErrorKind, Force, PolicySettings, Toolbox};

use crate::vault::{TestVault, assert_same, seen};

fn call(toolbox: &mut Toolbox, tool: &str, args: Value) -> Value {
    toolbox.call(tool, args, &mut seen).unwrap_or_else(|error| panic!("{tool}: {error}")).value
}

fn refused(toolbox: &mut Toolbox, tool: &str, args: Value) -> vault_tools::Error {
    toolbox.call(tool, args, &mut seen).expect_err(tool)
}

#[test]
fn the_tags_and_lists_of_a_note() {
    let vault = TestVault::new(
        "//- a.md
        ---
        tags: [Draft, x] # mine
        aliases: One
        ---
        Text #draft/old and #y.
        ",
    );
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let version = call(&mut toolbox, "read_note", json!({ "path": "a.md" }))["version"].clone();
    let change = json!({
        "path": "a.md", "add": ["new", "x"], "remove": ["#Y"], "rename": [{ "from": "draft", "to": "done" }],
        "expected_version": version
    });
    let edited = call(&mut toolbox, "edit_tags", change.clone());
    assert_eq!(edited["tags"], json!(["done", "x", "new", "done/old"]));
    assert_eq!((&edited["added"], &edited["removed"], &edited["renamed"]), (&json!(["new"]), &json!(1), &json!(2)));
    assert_eq!(refused(&mut toolbox, "edit_tags", change).kind(), ErrorKind::Conflict);
    let alias = json!({ "path": "a.md", "property": "Aliases", "add": ["Two"], "remove": ["no"] });
    assert_eq!(call(&mut toolbox, "edit_list_property", alias)["items"], json!(["One", "Two"]));
    assert_eq!(
        vault.read("a.md"),
        "---\ntags: [done, x, new] # mine\naliases:\n  - One\n  - Two\n---\nText #done/old and.\n"
    );
    for nothing in ["edit_tags", "edit_list_property"] {
        let error = refused(&mut toolbox, nothing, json!({ "path": "a.md", "property": "x" }));
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    }
    toolbox.vault().undo(None, Force::No).unwrap();
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undo");
}

#[test]
fn a_tag_is_renamed_in_all_notes() {
    let vault = TestVault::new(
        "//- a.md
        #Project and #project/garden, `#project`
        //- b.md
        ---
        tags: project, other
        ---
        //- c.md
        ---
        tags:
          - work
        ---
        //- broken.md
        ---
        tags: [project
        ---
        #project
        //- broken too.md
        ---
        projects: [
        ---
        no tag
        //- projects.md
        #projects [[a#project]]
        ",
    );
    let text = r##"{"nodes":[{"type":"text","text":"\u00e9\n#project \/ `#project` #Project/x"},{"type":"file","file":"a #project.md"}]}"##;
    vault.write("board.canvas", text);
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let output = toolbox.call("rename_tag", json!({ "tag": "#project", "new_tag": "work" }), &mut seen).unwrap();
    assert_eq!(
        (&output.value["notes_updated"], &output.value["renamed"]),
        (&json!(["a.md", "b.md", "board.canvas"]), &json!(5))
    );
    let left: Vec<&str> =
        output.value["left_out"].as_array().unwrap().iter().map(|left| left["path"].as_str().unwrap()).collect();
    assert_eq!(left, ["broken.md"]);
    let board = vault.read("board.canvas");
    assert!(board.contains(r##""\u00e9\n#work \/ `#project` #work/x""##) && board.contains("a #project.md"), "{board}");
    assert!(output.notices.iter().any(|notice| notice.starts_with("broken.md keeps #project: ")), "{output:?}");
    assert!(output.notices.iter().any(|notice| notice.starts_with("#work: 1 more notes have")), "{output:?}");
    assert_eq!(vault.read("a.md"), "#work and #work/garden, `#project`\n");
    assert_eq!(vault.read("b.md"), "---\ntags: work, other\n---\n");
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undo");
    for (tag, new, kind) in [
        ("nowhere", "x", ErrorKind::NotFound),
        ("project", "two words", ErrorKind::InvalidArguments),
        ("#", "x", ErrorKind::InvalidArguments),
    ] {
        assert_eq!(refused(&mut toolbox, "rename_tag", json!({ "tag": tag, "new_tag": new })).kind(), kind);
    }
}

#[test]
fn every_occurrence_of_a_passage() {
    let vault = TestVault::new("//- a.md\nred, red\nred\n");
    let mut toolbox = vault.toolbox();
    let all = json!({ "path": "a.md", "old_text": "red", "new_text": "blue", "all": true });
    let edited = call(&mut toolbox, "edit_note", all.clone());
    assert_eq!((&edited["count"], &edited["first_line"], &edited["last_line"]), (&json!(3), &json!(1), &json!(2)));
    assert_eq!(vault.read("a.md"), "blue, blue\nblue\n");
    assert_eq!(refused(&mut toolbox, "edit_note", all).kind(), ErrorKind::NotFound);
}

#[test]
fn a_snippet_is_what_edit_note_takes() {
    let vault = TestVault::new("//- a.md\n");
    vault.write("a.md", "- [ ] buy\n\t- [ ]  milk\n");
    let mut toolbox = vault.toolbox();
    let found = call(&mut toolbox, "vault.searchText", json!({ "query": "milk" }));
    let snippet = found["matches"][0]["snippet"].clone();
    let args = json!({ "path": "a.md", "old_text": snippet, "new_text": "\t- [x] milk" });
    call(&mut toolbox, "edit_note", args);
    assert_eq!(vault.read("a.md"), "- [ ] buy\n\t- [x] milk\n");
}

#[test]
fn text_under_a_heading() {
    let vault = TestVault::new("//- a.md\n# A\n## Log\n- one ^one\n## End\n//- b.md\n[[a#^one]]\n");
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let top = json!({ "path": "a.md", "heading": "Log", "position": "start", "content": "- zero" });
    let added = call(&mut toolbox, "insert_in_note", top);
    assert_eq!(added["line"], 3);
    let after = json!({
        "path": "a.md", "block": "one", "position": "after", "content": "- two", "expected_version": added["version"]
    });
    call(&mut toolbox, "insert_in_note", after.clone());
    assert_eq!(vault.read("a.md"), "# A\n## Log\n- zero\n- one ^one\n- two\n\n## End\n");
    assert_eq!(refused(&mut toolbox, "insert_in_note", after).kind(), ErrorKind::Conflict);
    let replace = json!({ "path": "a.md", "heading": "Log", "content": "none" });
    let output = toolbox.call("replace_section", replace, &mut seen).unwrap();
    assert_eq!(output.value["gone"], json!(["#^one"]));
    assert!(output.notices[0].starts_with("a.md: #^one no longer exist"), "{:?}", output.notices);
    assert_eq!(vault.read("a.md"), "# A\n## Log\nnone\n\n## End\n");
    let missing = json!({ "path": "a.md", "heading": "Lo", "content": "x" });
    assert_eq!(refused(&mut toolbox, "replace_section", missing).kind(), ErrorKind::NotFound);
    let both = json!({ "path": "a.md", "heading": "Log", "block": "one", "position": "end", "content": "x" });
    assert_eq!(refused(&mut toolbox, "insert_in_note", both).kind(), ErrorKind::InvalidArguments);
    for _ in 0..3 {
        toolbox.vault().undo(None, Force::No).unwrap();
    }
    assert_same(&vault.tree(), &before, "undo");
}

fn may_delete(vault: &TestVault) -> Toolbox {
    let mut settings = PolicySettings::default();
    settings.allow_delete = true;
    vault.toolbox_with(Editor::default(), &settings)
}

#[test]
fn links_to_a_merged_note_lead_to_what_is_left() {
    let vault = TestVault::new(
        "//- Old/Draft.md
        ---
        tags: [x, z]
        status: new
        up: \"[[Index]]\"
        ---
        # Draft

        See [[#Plan]], [[Draft#Plan|here]], [[Home]], [rel](../Home.md), [side](Side.md) and ![[#^one]].

        ## Plan

        text ^one
        //- Old/Side.md
        [[Draft]] [[Old/Draft#Plan]] [d](Draft.md#Plan) ![[Draft#^one]] [[draft|D]]
        //- Home.md
        ---
        tags: x
        status: done
        ---
        # Home
        [[Old/Draft]] [[Home]] `[[Draft]]`
        //- Index.md
        [[Draft]] [[Home]] [[Old/Side]]
        //- Board.canvas
        {\"nodes\":[{\"id\":\"1\",\"type\":\"file\",\"file\":\"Old/Draft.md\"},{\"id\":\"2\",\"type\":\"text\",\"text\":\"[[Draft#Plan]]\"}]}
        ",
    );
    let before = vault.tree();
    assert_eq!(
        refused(&mut vault.toolbox(), "merge_notes", json!({ "path": "Old/Draft.md", "into": "Home.md" })).kind(),
        ErrorKind::Denied,
        "it deletes a note"
    );
    let mut toolbox = may_delete(&vault);
    let version = |toolbox: &mut Toolbox, path| call(toolbox, "read_note", json!({ "path": path }))["version"].clone();
    let (old, into) = (version(&mut toolbox, "Old/Draft.md"), version(&mut toolbox, "Home.md"));
    let wrong = json!({ "path": "Old/Draft.md", "into": "Home.md", "expected_into_version": old });
    assert_eq!(refused(&mut toolbox, "merge_notes", wrong).kind(), ErrorKind::Conflict);
    let args = json!({
        "path": "Old/Draft.md", "into": "Home.md", "expected_version": old, "expected_into_version": into
    });
    let output = toolbox.call("merge_notes", args, &mut seen).unwrap();
    assert_eq!(output.value["dropped_properties"], json!(["status"]));
    assert!(output.notices.iter().any(|notice| notice.contains("keeps its status") && notice.contains("\"new\"")));
    assert_eq!(
        vault.read("Home.md"),
        "---\ntags:\n  - x\n  - z\nstatus: done\nup: \"[[Index]]\"\n---\n# Home\n[[Home]] [[Home]] `[[Draft]]`\n\n# Draft\n\n\
         See [[#Plan]], [[Home#Plan|here]], [[Home]], [rel](Home.md), [side](Old/Side.md) and ![[#^one]].\n\n\
         ## Plan\n\ntext ^one\n"
    );
    assert_eq!(vault.read("Old/Side.md"), "[[Home]] [[Home#Plan]] [d](../Home.md#Plan) ![[Home#^one]] [[Home|D]]\n");
    assert_eq!(vault.read("Index.md"), "[[Home]] [[Home]] [[Old/Side]]\n");
    let board = vault.read("Board.canvas");
    assert!(board.contains("\"file\":\"Home.md\"") && board.contains("[[Home#Plan]]"), "{board}");
    assert!(!vault.root().join("Old/Draft.md").exists());
    assert!(vault.root().join(output.value["trashed_to"].as_str().unwrap()).exists());
    assert_eq!(output.value["notes_updated"], json!(["Board.canvas", "Home.md", "Index.md", "Old/Side.md"]));
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undo");
}

#[test]
fn a_merge_says_which_links_it_cannot_keep() {
    let vault = TestVault::new(
        "//- a.md
        ## Log
        one ^id
        //- b.md
        ## Log
        two ^other
        //- c.md
        [[b#Log]]
        //- d.md
        three ^id
        //- e.md
        [[d#^id]]
        ",
    );
    let before = vault.tree();
    let mut toolbox = may_delete(&vault);
    let output = toolbox.call("merge_notes", json!({ "path": "b.md", "into": "a.md" }), &mut seen).unwrap();
    assert!(
        output
            .notices
            .iter()
            .any(|said| said.starts_with("c.md: the link [[b#Log]] leads to the other heading of that name"))
    );
    toolbox.vault().undo(None, Force::No).unwrap();
    let same_id = refused(&mut toolbox, "merge_notes", json!({ "path": "d.md", "into": "a.md" }));
    assert!(
        same_id.kind() == ErrorKind::Refused && same_id.to_string().contains("e.md links to the other"),
        "{same_id}"
    );
    for (path, into, kind) in [
        ("a.md", "a.md", ErrorKind::InvalidArguments),
        ("no.md", "a.md", ErrorKind::NotFound),
        ("a.md", "no.md", ErrorKind::NotFound),
    ] {
        assert_eq!(refused(&mut toolbox, "merge_notes", json!({ "path": path, "into": into })).kind(), kind);
    }
    vault.write("broken.md", "---\nk: [\n---\n");
    for (path, into) in [("broken.md", "a.md"), ("a.md", "broken.md")] {
        let broken = refused(&mut toolbox, "merge_notes", json!({ "path": path, "into": into }));
        assert!(broken.to_string().contains("broken.md: line 3"), "{broken}");
    }
    std::fs::remove_file(vault.root().join("broken.md")).unwrap();
    let under = json!({ "path": "d.md", "into": "c.md", "heading": "# From d" });
    assert_eq!(call(&mut toolbox, "merge_notes", under)["links_updated"], 1);
    assert_eq!(
        (vault.read("c.md"), vault.read("e.md")),
        ("[[b#Log]]\n\n# From d\n\nthree ^id\n".into(), "[[c#^id]]\n".into())
    );
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undo");

    // Below a heading of its own, the second heading of a name can be told from the first.
    vault.write("b.md", "## Log\ntwo [[#Log]] [[#Log|x]]\n");
    vault.write("c.md", "[[b#Log]] ![[b#log|t]] [x](b.md#Log)\n[[a#Log]]\n");
    let under = json!({ "path": "b.md", "into": "a.md", "heading": "# From b" });
    let output = toolbox.call("merge_notes", under, &mut seen).unwrap();
    assert_eq!(vault.read("a.md"), "## Log\none ^id\n\n# From b\n\n## Log\ntwo [[#From b#Log]] [[#From b#Log|x]]\n");
    assert_eq!(vault.read("c.md"), "[[a#From b#Log]] ![[a#From b#Log|t]] [x](a.md#Log)\n[[a#Log]]\n");
    assert_eq!(output.notices.len(), 1, "{:?}", output.notices);
    assert!(output.notices[0].starts_with("c.md: the link [x](b.md#Log) leads to the other heading"));
}

#[test]
fn lines_move_with_what_is_nested_and_their_links() {
    let vault = TestVault::new(
        "//- Work/Log.md\nx\n//- Work/Side.md\nx\n//- Index.md\n[[Log#^t]] [[Work/Log#^other]] ![t](Work/Log.md#^t)\n",
    );
    let text = "# Log\n- [ ] open [[#^t]]\n  - [x] inner\n    - [ ] left\n- [x] done [s](Side.md) [[#Log]] [[Side]] ^t\n\t- sub\n\nend ^other\n";
    vault.write("Work/Log.md", text);
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let args = json!({ "path": "Work/Log.md", "to_path": "Archive/Done.md", "tasks": "done", "to_heading": "Done" });
    let output = toolbox.call("move_lines", args.clone(), &mut seen).unwrap();
    assert_eq!(
        (&output.value["moved"], &output.value["line"], &output.value["links_updated"]),
        (&json!(2), &json!(3), &json!(5))
    );
    assert!(output.notices.iter().any(|said| said.contains("1 open tasks go along")), "{:?}", output.notices);
    assert_eq!(vault.read("Work/Log.md"), "# Log\n- [ ] open [[Done#^t]]\n\nend ^other\n");
    assert_eq!(
        vault.read("Archive/Done.md"),
        "## Done\n\n- [x] inner\n  - [ ] left\n- [x] done [s](../Work/Side.md) [[Log#Log]] [[Side]] ^t\n\t- sub\n"
    );
    assert_eq!(vault.read("Index.md"), "[[Done#^t]] [[Work/Log#^other]] ![t](Archive/Done.md#^t)\n");
    let again = call(&mut toolbox, "move_lines", args);
    assert_eq!((&again["moved"], &again["line"]), (&json!(0), &Value::Null));
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undo");

    // Within one note, and only what is not there yet.
    let within = json!({
        "path": "Work/Log.md", "to_path": "Work/Log.md", "pattern": "^- .x.|^end", "to_heading": "# Done"
    });
    assert_eq!(call(&mut toolbox, "move_lines", within.clone())["moved"], 2);
    let moved = vault.read("Work/Log.md");
    assert!(
        moved.ends_with("\n# Done\n\n- [x] done [s](Side.md) [[#Log]] [[Side]] ^t\n\t- sub\n\nend ^other\n"),
        "{moved}"
    );
    assert_eq!(call(&mut toolbox, "move_lines", within)["moved"], 0);
    assert_eq!(vault.read("Work/Log.md"), moved);
    for (change, kind) in [
        (json!({}), ErrorKind::InvalidArguments),
        (json!({ "pattern": "(" }), ErrorKind::InvalidArguments),
        (json!({ "tasks": "done", "to_path": "Work/Log.md" }), ErrorKind::InvalidArguments),
        (json!({ "tasks": "done", "from_heading": "No" }), ErrorKind::NotFound),
        (json!({ "tasks": "done", "expected_version": "0" }), ErrorKind::Conflict),
    ] {
        let mut args = json!({ "path": "Work/Log.md", "to_path": "Index.md" });
        args.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert_eq!(refused(&mut toolbox, "move_lines", args).kind(), kind, "{change}");
    }
}

#[test]
fn what_a_rename_of_a_tag_and_a_merge_pass_over_is_said() {
    let mut policy = PolicySettings::default();
    (policy.denied_paths, policy.allow_delete) = (vec!["Private".into()], true);
    // The same whether a denied note has the tag or not.
    for denied in ["#t\n", "x\n"] {
        let vault = TestVault::new("//- a.md\n#t\n//- b.md\nx\n");
        vault.write("Private/s.md", denied);
        vault.write("broken.md", "---\nk: [\n---\nx\n");
        let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
        let renamed = toolbox.call("rename_tag", json!({ "tag": "t", "new_tag": "z" }), &mut seen).unwrap();
        let said = "notes that your settings deny are not checked, and keep the tag if they have it";
        assert_eq!(renamed.notices, [said]);
        assert_eq!((vault.read("a.md"), vault.read("Private/s.md")), ("#z\n".to_owned(), denied.to_owned()));
        vault.write(".vaultignore", "Archive\n");
        vault.write("Archive/old.md", "#z\n");
        let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
        let renamed = toolbox.call("rename_tag", json!({ "tag": "z", "new_tag": "y" }), &mut seen).unwrap();
        let said = "notes that are excluded from the index (1) are not checked, and keep the tag if they have it";
        assert!(renamed.notices.iter().any(|notice| notice == said), "{:?}", renamed.notices);
        assert_eq!((vault.read("a.md"), vault.read("Archive/old.md")), ("#y\n".to_owned(), "#z\n".to_owned()));
        // The note whose frontmatter is broken is named, and not the one that it is merged into.
        let error = refused(&mut toolbox, "merge_notes", json!({ "path": "broken.md", "into": "b.md" })).to_string();
        assert!(error.contains("broken.md: line 3") && !error.contains("b.md: broken"), "{error}");
    }
}

#[test]
fn text_that_is_added_above_turns_no_link_to_its_note() {
    for (into, other, link) in [
        ("# A\n\n# Tasks\n\nmine\n", "## Tasks\n\ntheirs\n", "[[into#Tasks]]"),
        ("# A\n\n# B\n\n- [ ] mine ^one\n", "- [x] theirs ^one\n", "[t](into.md#^one)"),
        ("# A\n\n[[#Tasks]]\n\n# Tasks\n", "## Tasks\n", ""),
        ("# Top\n\n## A\n\n## Tasks\n", "# Other\n", "[[into#Top#Tasks]]"),
    ] {
        let vault = TestVault::new("");
        vault.write("into.md", into);
        vault.write("other.md", other);
        vault.write("links.md", link);
        let before = vault.tree();
        let mut toolbox = may_delete(&vault);
        let merge = json!({ "path": "other.md", "into": "into.md", "heading": "A" });
        assert_eq!(refused(&mut toolbox, "merge_notes", merge).kind(), ErrorKind::Refused, "{into}");
        if other.starts_with("- [x]") {
            let lines = json!({ "path": "other.md", "to_path": "into.md", "tasks": "done", "to_heading": "A" });
            assert_eq!(refused(&mut toolbox, "move_lines", lines).kind(), ErrorKind::Refused, "{into}");
        }
        assert_same(&vault.tree(), &before, "refused");
    }
    // What comes before it, and what only grows by properties, is found as before.
    let vault = TestVault::new("");
    vault.write("into.md", "\u{feff}# Top\r\n\r\n## A ^id\r\n\r\n## Tasks\r\n");
    vault.write("other.md", "---\nk: v\n---\n### Other\n");
    vault.write("links.md", "[[into#Top]] [[into#A]] [[into#Top#Tasks]] [[into#^id]] [[into#Missing]]\n");
    let merge = json!({ "path": "other.md", "into": "into.md", "heading": "Top#A ^id" });
    call(&mut may_delete(&vault), "merge_notes", merge);
}
