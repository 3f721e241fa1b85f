//! The toolset `library`, and what a call expects to touch.

use serde_json::{Value, json};
use vault_tools::{Editor, PolicySettings, Toolbox};

use crate::tools::{call, garden, refused};
use crate::vault::TestVault;

fn paths(found: &Value) -> Vec<&str> {
    found.as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect()
}

#[test]
fn tags_are_listed_with_counts() {
    let vault = garden();
    let found = call(&mut vault.toolbox(), "list_tags", json!({}));
    let expected = json!([
        { "tag": "garden", "notes": 1, "nested": 2 },
        { "tag": "garden/flowers", "notes": 1, "nested": 1 },
        { "tag": "todo", "notes": 2, "nested": 2 },
    ]);
    assert_eq!(found, expected);
    let below = call(&mut vault.toolbox(), "list_tags", json!({ "below": "garden", "offset": 1 }));
    assert_eq!(below[0]["tag"], "garden/flowers");
}

#[test]
fn a_broken_link_is_repaired_with_its_proposal() {
    let vault = TestVault::new(
        "//- .obsidian/app.json
        {}
        //- Log.md
        # Log

        See [[Compost|the heap]] and [soil](Garden/Soil.md#Drainige).
        //- Garden/Soil.md
        ## Drainage
        //- Compost.md
        A heap.
        ",
    );
    let mut toolbox = vault.toolbox();
    call(&mut toolbox, "list_broken_links", json!({}));
    std::fs::rename(vault.root().join("Compost.md"), vault.root().join("Garden/Hot compost.md")).unwrap();
    let mut toolbox = vault.toolbox();
    let broken = call(&mut toolbox, "list_broken_links", json!({}));
    let first = &broken[0];
    assert_eq!(first["link"], "[[Compost|the heap]]", "{broken}");
    assert_eq!(first["proposals"][0]["certainty"], "certain");
    for link in broken.as_array().unwrap() {
        let to = &link["proposals"][0];
        let args = json!({ "path": link["path"], "line": link["line"], "text": link["link"], "target": to["target"],
            "heading": to["heading"], "expect": { "notes": 1, "links": 1 } });
        call(&mut toolbox, "set_link", args);
    }
    let expected = "# Log\n\nSee [[Hot compost|the heap]] and [soil](Garden/Soil.md#Drainage).\n";
    assert_eq!(vault.read("Log.md"), expected);
    assert_eq!(call(&mut vault.toolbox(), "list_broken_links", json!({ "path": "Log" })), json!([]));
}

#[test]
fn a_suggestion_becomes_a_link() {
    let vault = TestVault::new(
        "//- .obsidian/app.json
        {}
        //- Log.md
        Turned the hot compost, `hot compost`.
        //- Garden/Hot compost.md
        x
        //- Other.md
        [[Hot compost]]
        ",
    );
    let mut toolbox = vault.toolbox();
    let found = call(&mut toolbox, "suggest_links", json!({ "path": "Log" }));
    let first = found.as_array().unwrap().iter().find(|found| found["target"] == "Garden/Hot compost.md").unwrap();
    assert_eq!(first["text"], "hot compost", "{found}");
    let args =
        json!({ "path": first["path"], "line": first["line"], "text": first["text"], "target": first["target"] });
    let set = call(&mut toolbox, "set_link", args);
    assert_eq!(set["now"], "Turned the [[Hot compost|hot compost]], `hot compost`.");
    let args = json!({ "path": "Log", "line": 1, "target": "Other" });
    assert_eq!(
        call(&mut toolbox, "set_link", args)["now"],
        "Turned the [[Hot compost|hot compost]], `hot compost`. [[Other]]"
    );
    let error =
        refused(&mut toolbox, "set_link", json!({ "path": "Log", "line": 1, "target": "Other", "text": "heap" }));
    assert!(error.contains("no such link or words of prose") && error.contains("heap"), "{error}");
}

#[test]
fn plain_folders_get_relative_links() {
    let vault = TestVault::new(
        "//- docs/guide.md
        See [home](../README.md) and the setup page.
        //- docs/more/setup.md
        # Setup
        //- README.md
        x
        ",
    );
    let args = json!({ "path": "docs/guide.md", "line": 1, "text": "setup page", "target": "docs/more/setup.md", "heading": "Setup" });
    let set = call(&mut vault.toolbox(), "set_link", args);
    assert_eq!(set["now"], "See [home](../README.md) and the [setup page](more/setup.md#Setup).");
}

#[test]
fn orphans_hubs_and_neighbors() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    assert_eq!(paths(&call(&mut toolbox, "list_orphans", json!({}))), ["Index.md", "Tag only.md"]);
    let none = call(&mut toolbox, "list_orphans", json!({ "without": "both" }));
    assert_eq!(paths(&none), ["Tag only.md"]);
    let hubs = call(&mut toolbox, "list_hubs", json!({ "limit": 2 }));
    assert_eq!(hubs[0], json!({ "path": "Garden/Roses.md", "backlinks": 1, "links": 2 }), "{hubs}");
    let near = call(&mut toolbox, "list_neighbors", json!({ "path": "Soil", "depth": 2 }));
    assert_eq!(near[0], json!({ "path": "Garden/Roses.md", "distance": 1 }), "{near}");
    assert_eq!(paths(&near), ["Garden/Roses.md", "Index.md"]);
}

#[test]
fn what_is_denied_is_in_no_list() {
    let vault = garden();
    let mut settings = PolicySettings::default();
    settings.denied_paths.push("Garden".into());
    let mut toolbox = vault.toolbox_with(Editor::default(), &settings);
    for (tool, args) in [
        ("list_tags", json!({})),
        ("suggest_links", json!({})),
        ("list_orphans", json!({ "without": "both" })),
        ("list_hubs", json!({})),
        ("list_neighbors", json!({ "path": "Index" })),
        ("find_duplicates", json!({ "least": 0.1 })),
        ("query_notes", json!({})),
        ("list_history", json!({})),
    ] {
        let found = call(&mut toolbox, tool, args).to_string();
        assert!(!found.contains("Garden/") && !found.contains("flowers"), "{tool}: {found}");
    }
    // What is denied counts as not there: the links to it are broken, as those to nothing are.
    let broken = call(&mut toolbox, "list_broken_links", json!({}));
    assert_eq!(broken.as_array().unwrap().len(), 3, "{broken}");
    for link in broken.as_array().unwrap() {
        assert_eq!((&link["target"], &link["proposals"]), (&Value::Null, &json!([])), "{broken}");
    }
}

#[test]
fn notes_are_queried_by_several_conditions() {
    let vault = TestVault::new(
        "//- a.md
        ---
        status: open
        rating: 5
        tags: [book]
        ---
        //- b.md
        ---
        status: open
        rating: 2
        ---
        //- c/c.md
        ---
        status: done
        rating: 5
        ---
        ",
    );
    let mut toolbox = vault.toolbox();
    let found = call(
        &mut toolbox,
        "query_notes",
        json!({ "properties": ["rating>=3"], "show": ["status", "author"], "sort": "path" }),
    );
    assert_eq!(paths(&found), ["a.md", "c/c.md"]);
    assert_eq!(found[0]["properties"], json!({ "status": "open", "author": null }));
    let both =
        call(&mut toolbox, "query_notes", json!({ "properties": ["rating>=3", "status=open"], "tags": ["book"] }));
    assert_eq!(paths(&both), ["a.md"]);
    assert_eq!(call(&mut toolbox, "query_notes", json!({ "untouched_days": 1 })), json!([]));
    let error = refused(&mut toolbox, "query_notes", json!({ "properties": ["status=open", "=x"] }));
    assert!(error.contains("/properties/1"), "{error}");
}

#[test]
fn one_note_is_restored_through_its_renames() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let edit = |toolbox: &mut Toolbox, old: &str, new: &str| {
        call(toolbox, "edit_note", json!({ "path": "Garden/Soil.md", "old_text": old, "new_text": new }))
    };
    let before = vault.read("Garden/Soil.md");
    edit(&mut toolbox, "Clay", "Loam");
    edit(&mut toolbox, "Loam", "Sand");
    call(&mut toolbox, "rename_note", json!({ "path": "Garden/Soil.md", "new_path": "Earth.md" }));
    let history = call(&mut toolbox, "list_history", json!({ "path": "Earth.md" }));
    let by: Vec<&str> = history.as_array().unwrap().iter().map(|change| change["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["rename_note", "edit_note", "edit_note"], "{history}");
    let first = &history[2]["transaction"];
    let restored = call(&mut toolbox, "restore_note", json!({ "path": "Earth.md", "transaction": first }));
    assert_eq!((&restored["path"], &restored["created"]), (&json!("Earth.md"), &json!(false)));
    assert_eq!(vault.read("Earth.md"), before);
    let error = refused(&mut toolbox, "restore_note", json!({ "path": "Index.md", "transaction": first }));
    assert!(error.contains("did not change this note"), "{error}");
    let error = refused(&mut toolbox, "restore_note", json!({ "path": "Earth.md", "transaction": 999 }));
    assert!(error.contains("there is no transaction 999"), "{error}");
}

#[test]
fn a_deleted_note_is_restored_alone() {
    let vault = garden();
    let mut settings = PolicySettings::default();
    settings.allow_delete = true;
    let mut toolbox = vault.toolbox_with(Editor::default(), &settings);
    let before = vault.read("Garden/Soil.md");
    call(&mut toolbox, "vault.delete", json!({ "path": "Garden" }));
    let history = call(&mut toolbox, "list_history", json!({ "path": "Garden/Soil.md" }));
    let args = json!({ "path": "Garden/Soil.md", "transaction": history[0]["transaction"] });
    let restored = call(&mut toolbox, "restore_note", args);
    assert_eq!((&restored["path"], &restored["created"]), (&json!("Garden/Soil.md"), &json!(true)));
    assert_eq!(vault.read("Garden/Soil.md"), before);
    assert!(!vault.root().join("Garden/Roses.md").exists());
}

#[test]
fn templates_are_listed_and_used() {
    let vault = TestVault::new(
        "//- .obsidian/templates.json
        {\"folder\": \"Templates\"}
        //- Templates/Meeting.md
        # {{title}}
        //- a.md
        x
        ",
    );
    let mut toolbox = vault.toolbox();
    let found = call(&mut toolbox, "list_templates", json!({}));
    assert_eq!(found, json!([{ "path": "Templates/Meeting.md", "name": "Meeting" }]));
    let args = json!({ "template": "Meeting", "path": "Notes/Kickoff.md", "frontmatter": { "with": "Ann" } });
    call(&mut toolbox, "create_from_template", args.clone());
    assert_eq!(vault.read("Notes/Kickoff.md"), "---\nwith: Ann\n---\n# Kickoff\n");
    assert!(refused(&mut toolbox, "create_from_template", args).contains("exists"));
}

#[test]
fn folders_and_attachments_move_with_their_links() {
    let vault = TestVault::new(
        "//- .obsidian/app.json
        {}
        //- a.md
        ![[img/pic.png]] [[Old/b]]
        //- img/pic.png
        x
        //- Old/b.md
        y
        ",
    );
    let mut toolbox = vault.toolbox();
    call(&mut toolbox, "move_file", json!({ "path": "img/pic.png", "new_path": "files/photo.png" }));
    let args = json!({ "path": "Old", "new_path": "New", "expect": { "notes": 2, "links": 1 } });
    call(&mut toolbox, "move_file", args);
    assert_eq!(vault.read("a.md"), "![[files/photo.png]] [[New/b]]\n");
}

#[test]
fn what_was_not_expected_is_not_done() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let rename = |notes: usize, links: usize| json!({ "path": "Garden/Soil.md", "new_path": "Garden/Earth.md", "expect": { "notes": notes, "links": links } });
    let error = refused(&mut toolbox, "rename_note", rename(1, 3));
    assert!(error.contains("touches 3 notes and 3 links, and 1 notes and 3 links were expected"), "{error}");
    assert!(vault.root().join("Garden/Soil.md").exists());
    call(&mut toolbox, "rename_note", rename(3, 3));
    assert!(vault.root().join("Garden/Earth.md").exists());
    let error = refused(&mut toolbox, "read_note", json!({ "path": "Index.md", "expect": { "notes": 1 } }));
    assert!(error.contains("expect"), "{error}");
}

#[test]
fn a_vault_is_checked() {
    let files = "//- .obsidian/app.json
        {}
        //- .vault.toml
        [lint]
        off = [\"unused-attachment\"]
        ignore = [\"Drafts\"]
        //- Log.md
        ---
        tags: [Garden]
        ---
        [[Nowhere]] [[Soil#Drainige]] [[Soil#^x]] [[Plan]]
        //- Soil.md
        ## Drainage
        #garden
        //- More.md
        #garden
        //- Broken.md
        ---
        title: a: b
        ---
        //- Work/Plan.md
        x
        //- Home/Plan.md
        x
        //- Drafts/d.md
        [[Nowhere]]
        //- unused.png
        x
        ";
    let vault = TestVault::new(files);
    let found = |args: Value| -> Vec<String> {
        let found = call(&mut vault.toolbox(), "lint_vault", args);
        let line = |finding: &Value| {
            let rule = finding["rule"].as_str().unwrap();
            format!("{}:{} {rule}", finding["path"].as_str().unwrap(), finding["line"])
        };
        found.as_array().unwrap().iter().map(line).collect()
    };
    let expected = [
        "Broken.md:2 frontmatter",
        "Log.md:null tag-case",
        "Log.md:4 broken-link",
        "Log.md:4 broken-heading",
        "Log.md:4 broken-block",
        "Log.md:4 ambiguous-link",
    ];
    assert_eq!(found(json!({})), expected);
    assert_eq!(found(json!({ "rules": ["unused-attachment"] })), ["unused.png:null unused-attachment"]);
    vault.write(".vault.toml", "[lint]\noff = [\"tag-cases\"]\n");
    let error = refused(&mut vault.toolbox(), "lint_vault", json!({}));
    assert!(error.contains("there is no rule \"tag-cases\"") && error.contains("broken-link, "), "{error}");
}

/// Each is what somebody who took suggestions at their word would lose.
#[test]
fn links_are_set_in_prose_only() {
    let text = "---\ntitle: Hot bed\n---\n| the hot bed | b |\n|---|---|\n| c | d |\n\n%% hot bed %% and hot bed. ^id1\n\n`hot bed`, a hot bedding.\n\n<% hot bed %>\n";
    let vault = TestVault::new("//- .obsidian/app.json\n{}\n//- Hot bed.md\nx\n");
    vault.write("Log.md", text);
    let set = |line: u32, words: Option<&str>| {
        vault.write("Log.md", text);
        let args = json!({ "path": "Log.md", "line": line, "text": words, "target": "Hot bed.md" });
        let done = vault.toolbox().call("set_link", args, &mut crate::vault::seen);
        done.map(|done| done.value["now"].as_str().unwrap().to_owned()).map_err(|error| error.to_string())
    };
    assert_eq!(set(4, Some("hot bed")).unwrap(), "| the [[Hot bed\\|hot bed]] | b |");
    assert_eq!(set(8, Some("hot bed")).unwrap(), "%% hot bed %% and [[Hot bed|hot bed]]. ^id1");
    assert_eq!(set(8, None).unwrap(), "%% hot bed %% and hot bed. [[Hot bed]] ^id1");
    for (line, words) in [
        (2, None),
        (4, None),
        (6, None),
        (7, None),
        (10, Some("hot bed")),
        (12, Some("hot bed")),
        (8, Some("d hot")),
        (8, Some(" ")),
    ] {
        let refused = set(line, words).unwrap_err();
        assert!(refused.contains("is not prose") || refused.contains("no such link"), "{line} {words:?}: {refused}");
    }
}

/// Conformance as section 11 of version 0.2 has it.
#[test]
fn a_folder_is_checked_against_the_open_knowledge_format() {
    let vault = TestVault::new(
        "//- index.md
        ---
        okf_version: \"0.2\"
        ---
        # Tables
        * [Orders](tables/orders.md) - rows
        //- tables/orders.md
        ---
        type: Table
        unknown: [key]
        ---
        [gone](gone.md)
        //- tables/index.md
        ---
        title: x
        ---
        * [Orders](orders.md)

        # Later
        //- tables/bare.md
        text
        //- tables/empty.md
        ---
        type:
        ---
        //- tables/broken.md
        ---
        type: a: b
        ---
        //- log.md
        # Log
        ## 2026-05-22
        * x
        ## 2026-05-23
        ## May
        ",
    );
    let found = |args: Value| -> Vec<String> {
        let found = call(&mut vault.toolbox(), "lint_vault", args);
        let shown = |finding: &Value| format!("{}:{}", finding["path"].as_str().unwrap(), finding["line"]);
        found.as_array().unwrap().iter().filter(|finding| finding["rule"] == "okf").map(shown).collect()
    };
    let expected = [
        "log.md:4",
        "log.md:5",
        "tables/bare.md:null",
        "tables/broken.md:null",
        "tables/empty.md:null",
        "tables/index.md:1",
        "tables/index.md:4",
    ];
    assert_eq!(found(json!({ "rules": ["okf"] })), expected);
    assert!(found(json!({})).is_empty(), "it is off unless it is named");
    vault.write(".vault.toml", "[lint]\non = [\"okf\"]\n");
    assert_eq!(found(json!({})), expected);
}
