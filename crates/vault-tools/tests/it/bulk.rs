//! The tools of the toolset `bulk`: what they change, what they leave, and that undo takes all of it back.

use serde_json::{Value, json};
use vault_tools::{Approval, ErrorKind, Force, Toolbox};

use crate::vault::{TestVault, assert_same};

fn call(toolbox: &mut Toolbox, tool: &str, args: Value) -> Value {
    toolbox.call(tool, args, Approval::Approved).unwrap_or_else(|error| panic!("{tool}: {error}")).value
}

fn refused(toolbox: &mut Toolbox, tool: &str, args: Value) -> vault_tools::Error {
    toolbox.call(tool, args, Approval::Approved).expect_err(tool)
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
        //- board.canvas
        {\"nodes\":[{\"id\":\"1\",\"type\":\"text\",\"text\":\"#project\"}]}
        ",
    );
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let output =
        toolbox.call("rename_tag", json!({ "tag": "#project", "new_tag": "work" }), Approval::Approved).unwrap();
    assert_eq!((&output.value["notes_updated"], &output.value["renamed"]), (&json!(["a.md", "b.md"]), &json!(3)));
    let left: Vec<&str> =
        output.value["left_out"].as_array().unwrap().iter().map(|left| left["path"].as_str().unwrap()).collect();
    assert_eq!(left, ["board.canvas", "broken.md"]);
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
    let output = toolbox.call("replace_section", replace, Approval::Approved).unwrap();
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
