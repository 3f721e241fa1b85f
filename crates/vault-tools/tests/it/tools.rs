//! The tools through the toolbox: arguments in, answers out, nothing changed before it is applied.

use serde_json::{Value, json};
use vault_tools::approval::{Answer, AutoApprover, HeadlessApprover, PreparedChange};
use vault_tools::{Approval, Cancel, Editor, ErrorKind, Grants, PolicySettings, Toolbox, Toolset};

use crate::vault::{TestVault, apply, assert_same, says_no, seen};

pub(crate) fn garden() -> TestVault {
    TestVault::new(
        "//- Garden/Roses.md
        ---
        tags: [garden/flowers, todo]
        aliases: Rosa
        created: 2025-05-01
        ---
        # Roses

        Cut the stems back to an outward-facing bud in late winter. See [[Soil]] and [[Missing]].
        //- Garden/Soil.md
        # Soil

        Clay keeps water. #garden
        ## Log
        - dug
        //- Index.md
        [[Garden/Roses|the roses]], [soil](Garden/Soil.md), ![[Soil#Log]]
        //- Tag only.md
        ---
        tags: todo
        ---
        ",
    )
}

pub(crate) fn call(toolbox: &mut Toolbox, tool: &str, args: Value) -> Value {
    toolbox.call(tool, args, &mut seen).unwrap_or_else(|error| panic!("{tool}: {error}")).value
}

pub(crate) fn refused(toolbox: &mut Toolbox, tool: &str, args: Value) -> String {
    toolbox.call(tool, args, &mut seen).expect_err(tool).to_string()
}

#[test]
fn the_toolsets_have_16_2_18_9_and_16_tools() {
    let vault = garden();
    let toolbox = vault.toolbox();
    let count = |toolset| toolbox.specs(Some(toolset)).len();
    assert_eq!((count(Toolset::Notes), count(Toolset::Chat), count(Toolset::Actions)), (16, 2, 18));
    assert_eq!((count(Toolset::Bulk), count(Toolset::Library)), (9, 16));
    assert_eq!(toolbox.spec("vault_createFile").unwrap().name, "vault.createFile");
    let error = toolbox.spec("read_notes").unwrap_err().to_string();
    assert!(error.contains("Unknown tool: read_notes (did you mean read_note or "), "{error}");
}

/// References inlined, no `$schema`, `title` or number formats; every field described; names that providers take.
#[test]
fn schemas_are_portable() {
    fn walk(schema: &Value, at: &str) {
        let Some(object) = schema.as_object() else { return };
        for keyword in ["$schema", "$ref", "$defs", "title", "x-vault-path", "x-any-fields"] {
            assert!(!object.contains_key(keyword), "{at}: {keyword}");
        }
        let format = object.get("format").and_then(Value::as_str).unwrap_or_default();
        assert!(!format.contains("int") && format != "float" && format != "double", "{at}: {format}");
        for (name, below) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            assert!(below.get("description").is_some(), "{at}/{name}: no description");
            walk(below, &format!("{at}/{name}"));
        }
        if let Some(items) = object.get("items") {
            walk(items, &format!("{at}/items"));
        }
    }
    /// Some providers refuse a whole request for one object without properties.
    fn has_properties(schema: &Value, at: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_empty = properties.is_none_or(serde_json::Map::is_empty);
        assert!(schema["type"] != "object" || !is_empty, "{at}: no properties");
        properties.into_iter().flatten().for_each(|(name, below)| has_properties(below, &format!("{at}/{name}")));
        schema.get("items").into_iter().for_each(|items| has_properties(items, &format!("{at}/items")));
    }
    let vault = garden();
    for spec in vault.toolbox().specs(None) {
        let name = spec.alias.as_ref().unwrap_or(&spec.name);
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 64, "{name}");
        assert!(spec.description.len() > 40 && !spec.description.contains("  "), "{name}: {}", spec.description);
        assert_eq!(spec.input_schema["type"], "object", "{name}");
        assert_eq!(spec.input_schema["additionalProperties"], false, "{name}");
        walk(&spec.input_schema, name);
        for (field, schema) in spec.input_schema["properties"].as_object().into_iter().flatten() {
            has_properties(schema, &format!("{name}/{field}"));
        }
        walk(&spec.output_schema, &format!("{name} output"));
    }
    walk(&vault_tools::plan::plan_schema(), "plan");
}

#[test]
fn read_tools_return_notes_and_change_nothing() {
    let vault = garden();
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let text = call(&mut toolbox, "read_note", json!({ "path": "Index.md" }));
    assert!(text["content"].as_str().unwrap().starts_with("[[Garden/Roses"));
    let error = refused(&mut toolbox, "read_note", json!({ "path": "Garden/Rose.md" }));
    assert!(error.starts_with("Note not found: Garden/Rose.md") && error.contains("Garden/Roses.md"), "{error}");
    let error = refused(&mut toolbox, "read_note", json!({ "path": "../x.md" }));
    assert!(error.starts_with("Invalid path: must be within vault directory"), "{error}");

    let backlinks = call(&mut toolbox, "list_backlinks", json!({ "path": "Garden/Soil.md" }));
    let rows: Vec<(&str, &str, &str)> = backlinks
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap();
            (text("source_title"), text("link_text"), text("link_type"))
        })
        .collect();
    assert_eq!(rows, [("Index", "soil", "markdown"), ("Index", "Soil#Log", "embed"), ("Roses", "Soil", "wikilink")]);

    let links = call(&mut toolbox, "list_forward_links", json!({ "path": "Garden/Roses.md" }));
    assert_eq!(links[0]["target_path"], "Garden/Soil.md");
    assert_eq!((&links[1]["target_path"], &links[1]["target"]), (&Value::Null, &json!("Missing")));

    let paths = |found: Value| -> Vec<String> {
        found.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_string()).collect()
    };
    let tagged = |toolbox: &mut Toolbox, args| paths(call(toolbox, "search_by_tag", args));
    assert_eq!(tagged(&mut toolbox, json!({ "tags": ["#GARDEN"] })), ["Garden/Roses.md", "Garden/Soil.md"]);
    assert_eq!(tagged(&mut toolbox, json!({ "tags": ["garden", "todo"] })), ["Garden/Roses.md"]);
    let any = json!({ "tags": ["garden/flowers", "todo"], "match": "any" });
    assert_eq!(tagged(&mut toolbox, any), ["Garden/Roses.md", "Tag only.md"]);

    let metadata = call(&mut toolbox, "get_note_metadata", json!({ "path": "Garden/Roses.md" }));
    assert_eq!((&metadata["title"], &metadata["created"]), (&json!("Roses"), &json!("2025-05-01")));
    assert_eq!((&metadata["forward_links"], &metadata["backlinks"]), (&json!(2), &json!(1)));
    assert_eq!(metadata["aliases"], json!(["Rosa"]));
    let born = std::fs::metadata(vault.root().join("Index.md")).unwrap().created().is_ok();
    let metadata = call(&mut toolbox, "get_note_metadata", json!({ "path": "Index.md" }));
    assert_eq!(metadata["created"].is_string(), born);

    let found = call(&mut toolbox, "search_notes", json!({ "query": "stems bud winter", "top_k": 2 }));
    assert_eq!((&found[0]["path"], &found[0]["heading"]), (&json!("Garden/Roses.md"), &json!("Roses")));
    let filtered =
        json!({ "query": "water", "filter": { "tags": ["garden"], "path": "Garden", "date_after": "2020-01-01" } });
    assert_eq!(paths(call(&mut toolbox, "search_notes", filtered)), ["Garden/Soil.md", "Garden/Roses.md"]);

    let random = |toolbox: &mut Toolbox, seed: u64| call(toolbox, "get_random_note", json!({ "seed": seed }));
    assert_eq!(random(&mut toolbox, 7), random(&mut toolbox, 7));
    let seen: std::collections::BTreeSet<String> =
        (0..40).map(|seed| random(&mut toolbox, seed)["path"].as_str().unwrap().to_string()).collect();
    assert_eq!(seen.len(), 4);
    assert_same(&vault.tree(), &before, "reading changed something");
}

#[test]
fn writing_is_proposed_first() {
    let vault = garden();
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let args = json!({ "path": "New/Note.md", "content": "# New\n" });
    let proposal = toolbox.propose("write_note", args.clone(), Cancel::default()).unwrap();
    assert_eq!(proposal.output["message"], "Note created successfully: New/Note.md");
    assert_eq!(proposal.preview().files[0].path, "New/Note.md");
    assert_same(&vault.tree(), &before, "a proposal changed something");
    assert_eq!(
        apply(&mut toolbox, proposal.clone(), &Grants::default(), &mut says_no).unwrap_err().kind(),
        ErrorKind::Denied
    );
    assert_eq!(
        apply(&mut toolbox, proposal.clone(), &Grants::default(), &mut HeadlessApprover).unwrap_err().kind(),
        ErrorKind::Denied
    );
    let output = apply(&mut toolbox, proposal, &Grants::default(), &mut seen).unwrap();
    assert_eq!(output.value["message"], "Note created successfully: New/Note.md");
    assert_eq!(vault.read("New/Note.md"), "# New\n");
    let found = call(&mut toolbox, "search_notes", json!({ "query": "New", "filter": { "path": "New" } }));
    assert_eq!(found[0]["path"], "New/Note.md", "a note just written is found by the next call");
    let again = call(&mut toolbox, "write_note", json!({ "path": "New/Note.md", "content": "x" }));
    assert!(again["message"].as_str().unwrap().starts_with("Note overwritten"), "{again}");
    let error = refused(&mut toolbox, "write_note", json!({ "path": "New/Note", "content": "x" }));
    assert!(error.contains("New/Note.md"), "{error}");
}

#[test]
fn a_proposal_of_what_has_changed_is_a_conflict() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let args = json!({ "path": "Index.md", "content": "x" });
    let proposal = toolbox.propose("append_to_note", args, Cancel::default()).unwrap();
    vault.write("Index.md", "somebody else\n");
    assert_eq!(apply(&mut toolbox, proposal, &Grants::default(), &mut seen).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(vault.read("Index.md"), "somebody else\n");
}

#[test]
fn edit_tools_change_notes_and_report_where() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let edited = json!({ "path": "Garden/Soil.md", "old_text": "Clay", "new_text": "Loam" });
    assert_eq!(call(&mut toolbox, "edit_note", edited)["first_line"], 3);
    let error =
        refused(&mut toolbox, "edit_note", json!({ "path": "Garden/Soil.md", "old_text": "e", "new_text": "x" }));
    assert!(error.contains("Garden/Soil.md"), "{error}");
    let log = json!({ "path": "Garden/Soil.md", "content": "- watered", "heading": "Log" });
    let added = call(&mut toolbox, "append_to_note", log);
    assert_eq!((&added["line"], &added["made_heading"]), (&json!(6), &json!(false)));
    let updates = json!({ "path": "Garden/Soil.md", "updates": { "status": "done" } });
    let said = call(&mut toolbox, "update_frontmatter", updates);
    assert_eq!(said["message"], "Frontmatter updated for Garden/Soil.md: {\"status\":\"done\"}");
    assert_eq!(
        vault.read("Garden/Soil.md"),
        "---\nstatus: done\n---\n# Soil\n\nLoam keeps water. #garden\n## Log\n- dug\n- watered\n"
    );
}

#[test]
fn renaming_and_deleting() {
    let vault = garden();
    let mut allowed = PolicySettings::default();
    allowed.allow_delete = true;
    let mut toolbox = vault.toolbox_with(Editor::default(), &allowed);
    let moved = json!({ "path": "Garden/Soil.md", "new_path": "Earth.md" });
    let moved = call(&mut toolbox, "rename_note", moved);
    assert_eq!(
        (&moved["links_updated"], &moved["notes_updated"]),
        (&json!(3), &json!(["Garden/Roses.md", "Index.md"]))
    );
    assert_eq!(vault.read("Index.md"), "[[Garden/Roses|the roses]], [soil](Earth.md), ![[Earth#Log]]\n");
    let deleted = call(&mut toolbox, "delete_note", json!({ "path": "Earth.md" }));
    assert_eq!(deleted["dangling_links"].as_array().unwrap().len(), 3);
    assert!(vault.root().join(deleted["trashed_to"].as_str().unwrap()).exists());
    let mut careful = vault.toolbox();
    let error = careful.call("delete_note", json!({ "path": "Index.md" }), &mut seen).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[test]
fn daily_notes_are_as_obsidian_has_them() {
    let vault = garden();
    let settings = r#"{"folder": "Daily", "format": "YYYY/MM/YYYY-MM-DD", "template": "Templates/Day"}"#;
    vault.write(".obsidian/daily-notes.json", settings);
    vault.write("Templates/Day.md", "# {{title}}\n{{date:dddd}}\n");
    let mut toolbox = vault.toolbox();
    let made = call(&mut toolbox, "create_daily_note", json!({}));
    assert_eq!((&made["path"], &made["created"]), (&json!("Daily/2026/03/2026-03-02.md"), &json!(true)));
    assert_eq!(vault.read("Daily/2026/03/2026-03-02.md"), "# 2026-03-02\nMonday\n");
    let added = call(&mut toolbox, "create_daily_note", json!({ "date": "2026-03-02", "content": "- a" }));
    assert_eq!((&added["created"], &added["appended"]), (&json!(false), &json!(true)));
    assert_eq!(vault.read("Daily/2026/03/2026-03-02.md"), "# 2026-03-02\nMonday\n\n- a\n");
    let error = refused(&mut toolbox, "create_daily_note", json!({ "date": "soon" }));
    assert!(error.contains("YYYY-MM-DD"), "{error}");
    vault.write(".obsidian/daily-notes.json", r#"{"format": "YYYY of MM"}"#);
    assert!(refused(&mut toolbox, "create_daily_note", json!({})).contains("`o` is not a token"));
}

#[test]
fn the_chat_tools() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let error = toolbox.call("vault_search", json!({ "query": "soil" }), &mut HeadlessApprover).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "reads of this toolset ask");
    let found = call(&mut toolbox, "vault_search", json!({ "query": "SOIL" }));
    let rows: Vec<(&str, u64)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["path"].as_str().unwrap(), row["matches"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, [("Garden/Soil.md", 2), ("Index.md", 3), ("Garden/Roses.md", 1)]);
    let near = call(&mut toolbox, "vault_search", json!({ "query": "soil water clay" }));
    assert_eq!(near[0]["path"], "Garden/Soil.md", "words need not stand side by side");
    assert!(near[0]["preview"].as_str().unwrap().contains("Clay keeps water"), "{near}");
    let files = call(&mut toolbox, "file_read", json!({ "filePaths": ["no.md", "Index.md"] }));
    assert_eq!(files[0], json!({ "path": "no.md", "content": "File not found: no.md", "size": 0 }));
    assert_eq!(files[1]["size"], vault.read("Index.md").len());
    let output = toolbox.call("vault_search", json!({ "query": "x", "limit": 51 }), &mut seen).unwrap();
    assert!(output.notices[0].contains("50 files at most"), "{:?}", output.notices);
}

/// What overwrites a file that is not text is shown as a whole.
#[test]
fn a_new_text_is_shown_beside_whatever_was_there() {
    let vault = garden();
    vault.write("latin.md", b"caf\xe9 clay");
    let mut shown = String::new();
    let mut ask = |change: &PreparedChange| {
        shown = change.preview().to_string();
        Answer::Yes
    };
    let args = json!({ "path": "latin.md", "content": "new\nlines\n" });
    vault.toolbox().call("write_note", args, &mut ask).unwrap();
    assert!(shown.contains("modify latin.md") && shown.contains("\n+new\n+lines\n"), "{shown}");
}

/// One file that cannot be looked into keeps nobody from finding the others.
#[test]
fn a_file_that_cannot_be_searched_is_passed_over() {
    let vault = garden();
    vault.write("latin.md", b"caf\xe9 clay");
    vault.write("needle.md", "x");
    std::fs::File::create(vault.root().join("needle.md")).unwrap().set_len(11_000_000).unwrap();
    std::fs::File::create(vault.root().join("film.mp4")).unwrap().set_len((1 << 30) + 1).unwrap();
    let mut toolbox = vault.toolbox();
    let found = call(&mut toolbox, "vault_search", json!({ "query": "clay" }));
    assert!(found.to_string().contains("Garden/Soil.md"), "{found}");
    let output = toolbox.call("vault.searchText", json!({ "query": "clay" }), &mut HeadlessApprover).unwrap();
    assert_eq!(output.notices, ["files that could not be searched (2): latin.md, needle.md"]);
    let found = output.value;
    assert_eq!(found["matches"].as_array().unwrap().len(), 1);
    let skipped: Vec<&str> =
        found["skipped"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["latin.md", "needle.md"]);
    let listed = call(&mut toolbox, "vault.listFiles", json!({ "extensions": ["mp4", "md"] }));
    let etags: Vec<bool> = listed["items"].as_array().unwrap().iter().map(|item| item["etag"].is_string()).collect();
    assert_eq!(etags, [true, true, false, true, true], "{listed}");
    let moved = json!({ "fromPath": "film.mp4", "toPath": "Films/film.mp4" });
    call(&mut toolbox, "vault.rename", moved);
    assert!(vault.root().join("Films/film.mp4").exists());
}

#[test]
fn exact_text_is_found_in_either_case_without_overlap() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let mut counted = |text: &str, query: &str| {
        vault.write("case.md", text);
        let found = call(&mut toolbox, "vault.searchText", json!({ "query": query, "paths": ["case.md"] }));
        found["matches"].as_array().unwrap().len()
    };
    assert_eq!(counted("aXa xA", "xa"), 2);
    assert_eq!(counted("ÄÖ äö", "äö"), 2);
    assert_eq!(counted("İx x", "x"), 2);
    assert_eq!(counted("aaaa", "aa"), 2);
    assert_eq!(counted("a.b axb", "a.b"), 1, "a query is text, not a pattern");
    let long = "Käse, ".repeat(3000);
    assert_eq!(counted(&long, &long.to_uppercase()), 1);
}

#[test]
fn searches_return_ten_results_unless_told_otherwise() {
    let vault = TestVault::new("");
    for number in 0..12 {
        let (before, after) = ("left ".repeat(60), " right".repeat(60));
        vault.write(&format!("n{number}.md"), format!("{before}water {number}{after}\n"));
    }
    let mut toolbox = vault.toolbox();
    for (tool, most) in [("search_notes", "top_k"), ("vault_search", "limit")] {
        let mut found = |more: Value| {
            let mut args = json!({ "query": "water" });
            args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(&mut toolbox, tool, args).as_array().unwrap().len()
        };
        assert_eq!([found(json!({})), found(json!({ most: 12 })), found(json!({ most: 3 }))], [10, 12, 3], "{tool}");
    }
    // 200 characters with the match in their middle.
    for row in call(&mut toolbox, "vault_search", json!({ "query": "water" })).as_array().unwrap() {
        let preview = row["preview"].as_str().unwrap().strip_prefix("...").and_then(|text| text.strip_suffix("..."));
        let (before, after) = preview.unwrap().split_once("water").unwrap();
        let (before, after) = (before.chars().count(), after.chars().count());
        assert!((90..=100).contains(&before) && (90..=100).contains(&after), "{before} and {after}: {row}");
    }
}

#[test]
fn a_file_is_read_up_to_max_bytes() {
    let vault = TestVault::new("");
    let text = "bye äöü, and more\n";
    vault.write("n.md", text);
    let mut toolbox = vault.toolbox();
    let mut read = |args: Value| call(&mut toolbox, "vault.readFile", args);
    let whole = read(json!({ "path": "n.md" }));
    let is_whole = json!({ "content": text, "truncated": false, "nextOffset": null });
    is_whole.as_object().unwrap().iter().for_each(|(name, value)| assert_eq!(&whole[name], value, "{name}"));
    // Never between the bytes of a character.
    for (most, content) in [(4, "bye "), (5, "bye "), (6, "bye ä")] {
        let part = read(json!({ "path": "n.md", "maxBytes": most }));
        let next = json!(content.len());
        assert_eq!(
            (&part["content"], &part["truncated"], &part["nextOffset"], &part["etag"]),
            (&json!(content), &json!(true), &next, &whole["etag"]),
            "{most}"
        );
        let rest = read(json!({ "path": "n.md", "offset": next, "maxBytes": 1000 }));
        assert_eq!((&rest["content"], &rest["truncated"]), (&json!(text[content.len()..]), &json!(false)), "{most}");
    }
}

#[test]
fn a_slug_has_100_characters_at_most_unless_told_otherwise() {
    let vault = TestVault::new("");
    let mut toolbox = vault.toolbox();
    let title = "a".repeat(150);
    for (args, length) in [
        (json!({ "title": title }), 100),
        (json!({ "title": title, "maxLength": 120 }), 120),
        (json!({ "title": title, "maxLength": 10 }), 10),
    ] {
        let slug = call(&mut toolbox, "util.slugifyTitle", args)["slug"].as_str().unwrap().to_owned();
        assert_eq!(slug.len(), length);
    }
}

#[test]
fn a_file_that_exists_is_left_as_it_is_unless_told_otherwise() {
    let vault = garden();
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let create = |more: Value| {
        let mut args = json!({ "path": "Index.md", "content": "x" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    for args in [create(json!({})), create(json!({ "ifNotExists": true }))] {
        let output = toolbox.call("vault.createFile", args, &mut seen).unwrap();
        assert_eq!(output.value["created"], false);
        assert!(output.notices.iter().any(|notice| notice.contains("left unchanged")), "{:?}", output.notices);
    }
    let args = create(json!({ "ifNotExists": false }));
    let error = toolbox.call("vault.createFile", args.clone(), &mut AutoApprover).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    let old = json!({ "ifNotExists": false, "expectedEtag": "0" });
    let error = toolbox.call("vault.createFile", create(old), &mut seen).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_same(&vault.tree(), &before, "nothing is replaced");
    // By who saw what goes, or knows the file as it is.
    toolbox.call("vault.createFile", args, &mut seen).unwrap();
    assert_eq!(vault.read("Index.md"), "x");
    let etag = call(&mut toolbox, "vault.readFile", json!({ "path": "Index.md" }))["etag"].clone();
    let args = create(json!({ "content": "y", "ifNotExists": false, "expectedEtag": etag }));
    toolbox.call("vault.createFile", args, &mut AutoApprover).unwrap();
    assert_eq!(vault.read("Index.md"), "y");
}

/// A part is read by what names it, and read on from where it was cut.
#[test]
fn parts_of_a_note_can_be_read() {
    let vault = garden();
    vault.write("n.md", "# Top\nintro\n## Log\n- one ^a\n- two\n# End\nbye äöü");
    let mut toolbox = vault.toolbox();
    let mut read = |args: Value| {
        let args = json!({ "path": "n.md" })
            .as_object()
            .unwrap()
            .iter()
            .chain(args.as_object().unwrap())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<serde_json::Map<_, _>>();
        toolbox.call("read_note", args.into(), &mut HeadlessApprover).map(|output| output.value)
    };
    let whole = read(json!({})).unwrap();
    assert_eq!(
        (&whole["first_line"], &whole["bytes_left"], &whole["next_offset"]),
        (&json!(1), &json!(0), &Value::Null)
    );
    for (args, content, line) in [
        (json!({ "heading": "Log" }), "## Log\n- one ^a\n- two\n", 3),
        (json!({ "heading": "# Top" }), "# Top\nintro\n## Log\n- one ^a\n- two\n", 1),
        (json!({ "block": "^a" }), "- one ^a", 4),
        (json!({ "lines": "2-3" }), "intro\n## Log\n", 2),
        (json!({ "lines": "7-" }), "bye äöü", 7),
        (json!({ "lines": "6-99" }), "# End\nbye äöü", 6),
        (json!({ "outline": true }), "1: # Top (34 bytes)\n3: ## Log (22 bytes)\n6: # End (16 bytes)\n", 1),
    ] {
        let part = read(args.clone()).unwrap();
        assert_eq!(part["content"].as_str().unwrap().trim_end(), content.trim_end(), "{args}");
        assert_eq!((&part["first_line"], &part["version"]), (&json!(line), &whole["version"]), "{args}");
    }
    let (mut text, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let part = read(json!({ "heading": "End", "offset": offset, "max_bytes": 1 })).unwrap();
        text.push_str(part["content"].as_str().unwrap());
        offset = part["next_offset"].clone();
    }
    assert_eq!(text, "# End\nbye äöü");
    for (args, error) in [
        (json!({ "heading": "No" }), "there is no heading \"No\""),
        (json!({ "block": "b" }), "the blocks are ^a"),
        (json!({ "lines": "9" }), "the note has only 7 lines"),
        (json!({ "lines": "0-2" }), "write 3-9"),
        (json!({ "lines": "2", "heading": "Log" }), "exclude each other"),
        (json!({ "heading": "### Log" }), "of level 2"),
    ] {
        let refused = read(args.clone()).unwrap_err().to_string();
        assert!(refused.contains(error), "{args}: {refused}");
    }
}

/// A write that expects a version is refused where the note has another one, and says what changed.
#[test]
fn a_write_on_an_old_version_is_a_conflict() {
    let vault = garden();
    let mut settings = PolicySettings::default();
    settings.allow_delete = true;
    let mut toolbox = vault.toolbox_with(Editor::default(), &settings);
    let read = call(&mut toolbox, "read_note", json!({ "path": "Garden/Soil.md" }));
    vault.write("Garden/Soil.md", vault.read("Garden/Soil.md").replace("keeps", "holds"));
    let old = read["version"].as_str().unwrap();
    for (tool, args) in [
        ("edit_note", json!({ "old_text": "Clay", "new_text": "Loam" })),
        ("append_to_note", json!({ "content": "x" })),
        ("update_frontmatter", json!({ "updates": { "a": 1 } })),
        ("write_note", json!({ "content": "x", "mode": "replace" })),
        ("rename_note", json!({ "new_path": "x.md" })),
        ("delete_note", json!({})),
    ] {
        let mut args = args;
        args["path"] = "Garden/Soil.md".into();
        args["expected_version"] = old.into();
        let error = toolbox.call(tool, args, &mut seen).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{tool}: {error}");
        let lines = "removed line 3 \"Clay keeps water. #garden\", added line 3 \"Clay holds water. #garden\"";
        assert!(error.to_string().contains(lines), "{tool}: {error}");
    }
    let version = call(&mut toolbox, "read_note", json!({ "path": "Garden/Soil.md" }))["version"].clone();
    let log = json!({ "path": "Garden/Soil.md", "content": "- x", "expected_version": version });
    let appended = call(&mut toolbox, "append_to_note", log);
    let again = json!({ "path": "Garden/Soil.md", "old_text": "- x", "new_text": "- y", "expected_version": appended["version"] });
    let edited = call(&mut toolbox, "edit_note", again);
    let now = call(&mut toolbox, "read_note", json!({ "path": "Garden/Soil.md" }));
    assert_eq!(edited["version"], now["version"]);
}

/// The text of a note is replaced only by somebody who says so or who sees what is lost.
#[test]
fn a_note_is_not_replaced_by_accident() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let write = |more: Value| {
        let mut args = json!({ "path": "Index.md", "content": "x" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let proposal = toolbox.propose("write_note", write(json!({})), Cancel::default()).unwrap();
    let mut granted = Grants::default();
    granted.grant("write_note");
    for grants in [Grants::default(), granted] {
        let error = apply(&mut toolbox, proposal.clone(), &grants, &mut AutoApprover).unwrap_err();
        assert!(error.kind() == ErrorKind::Exists && error.to_string().contains("mode: replace"), "{error}");
    }
    let mut trusting = PolicySettings::default();
    trusting.confirm_writes = false;
    let mut unasked = vault.toolbox_with(Editor::default(), &trusting);
    assert_eq!(
        unasked.call("write_note", write(json!({})), &mut HeadlessApprover).unwrap_err().kind(),
        ErrorKind::Exists
    );
    let created = unasked.call("write_note", write(json!({ "mode": "create" })), &mut seen);
    assert_eq!(created.unwrap_err().kind(), ErrorKind::Exists);
    let missing = json!({ "path": "Indx.md", "content": "x", "mode": "replace" });
    assert!(refused(&mut unasked, "write_note", missing).contains("did you mean Index.md"));
    unasked.call("write_note", write(json!({ "mode": "replace" })), &mut HeadlessApprover).unwrap();
    assert_eq!(vault.read("Index.md"), "x");
    // The same text takes nothing away.
    unasked.call("write_note", write(json!({})), &mut AutoApprover).unwrap();
}

#[test]
fn a_file_that_exists_is_left_as_it_is_and_that_is_said() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let mut args = json!({ "path": "Index.md", "content": "x" });
    let output = toolbox.call("vault.createFile", args.clone(), &mut seen).unwrap();
    assert_eq!(
        (output.transaction, &output.notices[..]),
        (None, &["Index.md exists and is left unchanged".to_owned()][..])
    );
    args["expectedEtag"] = output.value["etag"].clone();
    let error = refused(&mut toolbox, "vault.createFile", args.clone());
    assert!(error.contains("add ifNotExists: false"), "{error}");
    args["collisionStrategy"] = json!("overwrite");
    call(&mut toolbox, "vault.createFile", args);
    assert_eq!(vault.read("Index.md"), "x");
}

#[test]
fn a_new_file_that_is_no_note_for_want_of_an_ending_is_said() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    for (tool, path, is_said) in [
        ("vault.createFile", "Log", true),
        ("vault.writeFile", "v1.2/LICENSE", true),
        ("vault.createFile", "a.txt", false),
        ("vault.writeFile", "b.md", false),
    ] {
        let proposal = toolbox.propose(tool, json!({ "path": path, "content": "x" }), Cancel::default()).unwrap();
        let said = format!("{path} is not a note, because its name does not end in .md");
        assert_eq!(proposal.preview().notices.contains(&said), is_said, "{path}");
    }
}

/// What a person approves cannot be shaped by carriage returns in a text or line breaks in the name of a file.
#[test]
#[cfg(unix)]
fn control_characters_do_not_shape_a_diff() {
    let vault = garden();
    vault.write("new\nline.md", "[[Soil]]\n");
    let mut toolbox = vault.toolbox();
    let args = json!({ "path": "cr.md", "content": "harmless\r-old\r@@ -1 +1 @@\rEVIL\nend\n" });
    let shown = toolbox.propose("write_note", args, Cancel::default()).unwrap().preview();
    let diff = shown.files[0].diff.as_deref().unwrap();
    let rows: Vec<&str> = diff.split('\n').collect();
    assert_eq!(rows[3..5], ["+harmless\r-old\r@@ -1 +1 @@\rEVIL", "+end"], "{diff:?}");
    let renamed = json!({ "path": "Garden/Soil.md", "new_path": "Garden/Earth.md" });
    let shown = toolbox.propose("rename_note", renamed, Cancel::default()).unwrap().preview();
    let linking = shown.files.iter().find(|file| file.path == "new\nline.md").unwrap();
    assert!(linking.diff.as_deref().unwrap().starts_with("--- a/new line.md\n+++ b/new line.md\n"), "{linking:?}");
}

#[test]
fn frontmatter_keeps_the_order_given_and_stays_in_notes() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let create = |path: &str| json!({ "path": path, "content": "x\n", "frontmatter": { "title": "T", "date": "2026-01-02", "b": 1, "a": 2 } });
    call(&mut toolbox, "vault.createFile", create("n.md"));
    assert_eq!(vault.read("n.md"), "---\ntitle: T\ndate: 2026-01-02\nb: 1\na: 2\n---\nx\n");
    let error = refused(&mut toolbox, "vault.createFile", create("n.json"));
    assert!(error.contains("only Markdown notes have frontmatter"), "{error}");
    vault.write("flow.md", "---\ntags: [a, \"b c\", 'd, e'] # mine\n---\n");
    let tags = json!({ "path": "flow.md", "updates": { "tags": ["b c", "a", "f", "d, e"] } });
    call(&mut toolbox, "update_frontmatter", tags);
    assert_eq!(vault.read("flow.md"), "---\ntags: [\"b c\", a, f, 'd, e'] # mine\n---\n");
}

/// As many notes as match, the doubtful ones marked; a limit that is too high is lowered with a word.
#[test]
fn a_search_returns_k_notes_and_marks_weak_ones() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let found =
        toolbox.call("search_notes", json!({ "query": "clay water", "top_k": 101 }), &mut HeadlessApprover).unwrap();
    assert!(found.notices.iter().any(|notice| notice.contains("100 notes at most")), "{:?}", found.notices);
    let weak: Vec<bool> = found.value.as_array().unwrap().iter().map(|note| note["weak"] == true).collect();
    assert!(!weak[0] && weak.contains(&true) && weak.is_sorted(), "{}", found.value);
    // Good and weak notes come from two searches, which read the same word in the same other way.
    let slip = toolbox.call("search_notes", json!({ "query": "clay wintre" }), &mut HeadlessApprover).unwrap();
    let read_as = slip.notices.iter().filter(|notice| notice.contains("wintre is in no note"));
    assert_eq!(read_as.count(), 1, "{:?}", slip.notices);
}

#[test]
fn what_the_index_leaves_out_has_links_all_the_same() {
    let vault = garden();
    vault.write(".vaultignore", "drafts/\n");
    vault.write("drafts/d.md", "[[Soil]] [[Index]]");
    let mut toolbox = vault.toolbox();
    let links = call(&mut toolbox, "list_forward_links", json!({ "path": "drafts/d.md" }));
    assert_eq!((&links[0]["target_path"], &links[1]["target_path"]), (&json!("Garden/Soil.md"), &json!("Index.md")));
    let metadata = call(&mut toolbox, "get_note_metadata", json!({ "path": "drafts/d.md" }));
    assert_eq!(metadata["forward_links"], 2);
}

#[test]
fn errors_say_each_thing_once() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let error = refused(&mut toolbox, "get_note_metadata", json!({}));
    assert_eq!(error, "INVALID_ARGUMENTS: /path: is missing; expected a text (arguments of get_note_metadata)");
    let error = refused(&mut toolbox, "get_note_metadata", json!([]));
    assert_eq!(error, "INVALID_ARGUMENTS: /: expected an object, found a list (arguments of get_note_metadata)");
    let error = refused(&mut toolbox, "get_note_metadata", json!({ "x": 1 }));
    assert!(error.starts_with("INVALID_ARGUMENTS: arguments of get_note_metadata: /path: is missing"), "{error}");
    assert!(error.contains("; /x: "), "{error}");
    let long = format!("{}.md", "n".repeat(300));
    let error = refused(&mut toolbox, "write_note", json!({ "path": long, "content": "" }));
    assert!(error.contains("at most 255 bytes"), "{error}");
    let heading = json!({ "path": "Index.md", "content": "x", "heading": "a\n# b" });
    assert!(refused(&mut toolbox, "append_to_note", heading).contains("one line"));
}

/// What is typed ends its lines as the file does.
#[test]
fn typing_keeps_line_endings() {
    use vault_tools::{Leaf, Position, SafePath, Selection, Span};
    let vault = garden();
    vault.write("w.md", "one\r\ntwo\r\nthree\r\n");
    let mut editor = Editor::default();
    editor.show(&SafePath::new("w.md").unwrap(), Leaf::Current);
    let at = |line, ch| Position { line, ch };
    editor.selection = Some(Selection { text: "one\ntwo".into(), span: Some(Span { from: at(0, 0), to: at(1, 3) }) });
    let mut toolbox = vault.toolbox_with(editor, &PolicySettings::default());
    let typed = call(&mut toolbox, "editor.replaceSelection", json!({ "text": "1\n2\n3" }));
    assert_eq!(vault.read("w.md"), "1\r\n2\r\n3\r\nthree\r\n");
    assert_eq!(typed["range"]["to"], json!({ "line": 2, "ch": 1 }));
    call(&mut toolbox, "editor.insertAtCursor", json!({ "text": "\n4" }));
    assert_eq!(vault.read("w.md"), "1\r\n2\r\n3\r\n4\r\nthree\r\n");
}

#[test]
fn a_line_of_the_log_has_time_arguments_result_and_duration() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let (begun, started) = (jiff::Timestamp::now(), std::time::Instant::now());
    let value = call(&mut toolbox, "read_note", json!({ "path": "Index.md" }));
    refused(&mut toolbox, "read_note", json!({ "path": "no.md" }));
    let (took, ended) = (started.elapsed().as_millis(), jiff::Timestamp::now());
    let [read, failed] = &vault_tools::read_log(toolbox.vault().state()).unwrap()[..] else { panic!("two lines") };
    assert_eq!((&read.arguments, &failed.arguments), (&json!({ "path": "Index.md" }), &json!({ "path": "no.md" })));
    assert_eq!((&read.result, &read.error, &failed.result), (&Some(value), &None, &None));
    assert!(failed.error.as_ref().unwrap().contains("no.md"), "{failed:?}");
    for record in [read, failed] {
        let at: jiff::Timestamp = record.timestamp.parse().unwrap();
        assert!(begun <= at && at <= ended, "{at}");
    }
    assert!(u128::from(read.duration_ms + failed.duration_ms) <= took, "{read:?} {failed:?} {took}");
}

#[test]
fn every_call_leaves_a_line() {
    let vault = garden();
    let mut toolbox = vault.toolbox();
    call(&mut toolbox, "read_note", json!({ "path": "Index.md" }));
    call(&mut toolbox, "write_note", json!({ "path": "a.md", "content": "a" }));
    refused(&mut toolbox, "read_note", json!({ "path": "no.md" }));
    refused(&mut toolbox, "delete_note", json!({ "path": "a.md" }));
    let records = vault_tools::read_log(toolbox.vault().state()).unwrap();
    let lines: Vec<(&str, bool, Approval, bool)> = records
        .iter()
        .map(|record| (record.tool.as_str(), record.error.is_some(), record.decision, record.transaction.is_some()))
        .collect();
    assert_eq!(
        lines,
        [
            ("read_note", false, Approval::Allowed, false),
            ("write_note", false, Approval::Approved, true),
            ("read_note", true, Approval::Allowed, false),
            ("delete_note", true, Approval::Denied, false),
        ]
    );
}

/// What a plan reads after it wrote is what it wrote, whichever tool it asks.
#[test]
fn a_plan_reads_what_it_wrote() {
    use vault_tools::plan::{Parameters, dry_run, validate};
    let vault = garden();
    let mut toolbox = vault.toolbox();
    let plan = json!({
        "version": "1.0", "goal": "g", "riskLevel": "writes",
        "steps": [
            { "id": "new", "tool": "write_note", "args": { "path": "Missing.md", "content": "#garden [[Index]]\n" } },
            { "id": "move", "tool": "rename_note", "args": { "path": "Index.md", "new_path": "Home/Start.md" }, "dependsOn": ["new"] },
            { "id": "back", "tool": "list_backlinks", "args": { "path": "Home/Start.md" }, "dependsOn": ["move"] },
            { "id": "to", "tool": "list_backlinks", "args": { "path": "Missing.md" }, "dependsOn": ["move"] },
            { "id": "tags", "tool": "search_by_tag", "args": { "tags": ["garden"] }, "dependsOn": ["move"] },
            { "id": "links", "tool": "list_forward_links", "args": { "path": "Home/Start.md" }, "dependsOn": ["move"] }
        ]
    });
    let checked = validate(&plan, &toolbox).unwrap();
    let shown = dry_run(&mut toolbox, &checked, &Parameters::default(), Cancel::default()).unwrap();
    let output = |id: &str| shown.steps.iter().find(|step| step.id == id).unwrap().output.clone();
    assert_eq!(output("back")[0]["source_path"], "Missing.md");
    assert_eq!(output("back").as_array().unwrap().len(), 1);
    assert_eq!(output("to")[0]["source_path"], "Garden/Roses.md");
    let tagged: Vec<Value> = output("tags").as_array().unwrap().iter().map(|row| row["path"].clone()).collect();
    assert_eq!(tagged, ["Garden/Roses.md", "Garden/Soil.md", "Missing.md"]);
    assert_eq!(output("links").as_array().unwrap().len(), 3);
}

/// The answers of a plan's steps, each of which waits for the one before.
fn answers(toolbox: &mut Toolbox, steps: &[(&str, Value)]) -> Vec<Value> {
    use vault_tools::plan::{Parameters, dry_run, validate};
    let steps: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(at, (tool, args))| {
            let before: Vec<String> = at.checked_sub(1).map(|before| format!("s{before}")).into_iter().collect();
            json!({ "id": format!("s{at}"), "tool": tool, "args": args, "dependsOn": before })
        })
        .collect();
    let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps });
    let checked = validate(&plan, toolbox).unwrap();
    let shown = dry_run(toolbox, &checked, &Parameters::default(), Cancel::default()).unwrap();
    shown.steps.into_iter().map(|step| step.output).collect()
}

/// What was worked out for one call of a plan is no longer used when something was written since.
#[test]
fn links_are_those_of_the_moment_they_are_asked_for() {
    let vault = garden();
    let to = |path: &str| ("list_backlinks", json!({ "path": path }));
    let of = |path: &str| ("list_forward_links", json!({ "path": path }));
    let about = |path: &str| ("get_note_metadata", json!({ "path": path }));
    let steps = [
        of("Garden/Roses.md"),
        ("write_note", json!({ "path": "Missing.md", "content": "[[Index]]\n" })),
        to("Missing.md"),
        to("Index.md"),
        of("Garden/Roses.md"),
        ("write_note", json!({ "path": "More.md", "content": "[[Missing]]\n" })),
        to("Missing.md"),
        to("Missing.md"),
        about("Missing.md"),
        ("edit_note", json!({ "path": "More.md", "old_text": "[[Missing]]", "new_text": "[[Index]]" })),
        to("Missing.md"),
        to("Index.md"),
        about("Missing.md"),
        ("rename_note", json!({ "path": "Missing.md", "new_path": "Home/Gone.md" })),
        to("Home/Gone.md"),
        to("Index.md"),
        of("Garden/Roses.md"),
        of("Home/Gone.md"),
    ];
    let answers = answers(&mut vault.toolbox(), &steps);
    let named = |at: usize, field: &str| -> Vec<&str> {
        answers[at].as_array().unwrap().iter().map(|row| row[field].as_str().unwrap_or("-")).collect()
    };
    let (sources, targets) = (|at| named(at, "source_path"), |at| named(at, "target_path"));
    assert_eq!(targets(0), ["Garden/Soil.md", "-"]);
    assert_eq!((sources(2), sources(3)), (vec!["Garden/Roses.md"], vec!["Missing.md"]));
    assert_eq!(targets(4), ["Garden/Soil.md", "Missing.md"]);
    assert_eq!(sources(6), ["More.md", "Garden/Roses.md"]);
    assert_eq!(answers[7], answers[6]);
    assert_eq!((&answers[8]["backlinks"], &answers[8]["forward_links"]), (&json!(2), &json!(1)));
    assert_eq!((sources(10), sources(11)), (vec!["Garden/Roses.md"], vec!["Missing.md", "More.md"]));
    assert_eq!(answers[12]["backlinks"], 1);
    assert_eq!((sources(14), sources(15)), (vec!["Garden/Roses.md"], vec!["Home/Gone.md", "More.md"]));
    assert_eq!(targets(16), ["Garden/Soil.md", "Home/Gone.md"]);
    assert_eq!(targets(17), ["Index.md"]);
}

#[test]
fn pages_of_a_list_are_those_of_the_moment_they_are_asked_for() {
    let vault = garden();
    let page = |prefix: &str, offset: usize| {
        ("vault.listFiles", json!({ "prefix": prefix, "recursive": true, "offset": offset, "limit": 2 }))
    };
    let steps = [
        page("", 0),
        page("", 2),
        page("", 4),
        ("write_note", json!({ "path": "Garden/Bed.md", "content": "1\n" })),
        page("", 0),
        page("", 4),
        page("Garden/B", 0),
        ("edit_note", json!({ "path": "Garden/Bed.md", "old_text": "1", "new_text": "123" })),
        page("Garden", 0),
        page("Garden", 9),
        ("rename_note", json!({ "path": "Garden/Bed.md", "new_path": "Beds/Bed.md" })),
        page("", 0),
        page("", 2),
        page("Garden", 0),
    ];
    let answers = answers(&mut vault.toolbox(), &steps);
    let check = |at: usize, paths: &[&str], next: Value| {
        let page = &answers[at];
        let found: Vec<&str> =
            page["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
        assert_eq!(found, paths, "{at}");
        assert_eq!((&page["nextOffset"], &page["truncated"]), (&next, &json!(!next.is_null())), "{at}");
    };
    check(0, &["Garden", "Garden/Roses.md"], json!(2));
    check(1, &["Garden/Soil.md", "Index.md"], json!(4));
    check(2, &["Tag only.md"], Value::Null);
    check(4, &["Garden", "Garden/Bed.md"], json!(2));
    check(5, &["Index.md", "Tag only.md"], Value::Null);
    check(6, &["Garden/Bed.md"], Value::Null);
    check(8, &["Garden/Bed.md", "Garden/Roses.md"], json!(2));
    check(9, &[], Value::Null);
    check(11, &["Beds", "Beds/Bed.md"], json!(2));
    check(12, &["Garden", "Garden/Roses.md"], json!(4));
    check(13, &["Garden/Roses.md", "Garden/Soil.md"], Value::Null);
    let item = |at: usize, of: usize| &answers[at]["items"][of];
    assert_eq!((&item(4, 1)["sizeBytes"], &item(8, 0)["sizeBytes"]), (&json!(2), &json!(4)));
    assert_ne!(item(4, 1)["etag"], item(8, 0)["etag"]);
    assert_eq!((&item(0, 0)["kind"], &item(0, 0)["sizeBytes"]), (&json!("folder"), &json!(0)));
    assert!(item(0, 1)["mtimeMs"].is_i64() && item(8, 0)["mtimeMs"].is_null());
}

#[test]
fn files_that_end_in_markdown_are_notes_that_can_be_changed() {
    let vault = TestVault::new(
        "//- a/Old.markdown\n# Old\n\ntext\n//- Home.md\n[[Old]] [[a/Old.markdown]] [x](a/Old.markdown)\n",
    );
    let mut toolbox = vault.toolbox();
    let read = call(&mut toolbox, "read_note", json!({ "path": "a/Old.markdown" }));
    assert!(read["content"].as_str().unwrap().contains("# Old"), "{read}");
    let mut change = |tool: &str, args: Value| {
        toolbox.call(tool, args, &mut AutoApprover).unwrap_or_else(|error| panic!("{tool}: {error}"))
    };
    change("update_frontmatter", json!({ "path": "a/Old.markdown", "updates": { "k": 1 } }));
    change("append_to_note", json!({ "path": "a/Old.markdown", "content": "more" }));
    change("rename_note", json!({ "path": "a/Old.markdown", "new_path": "a/New.markdown" }));
    assert_eq!(vault.read("Home.md"), "[[New.markdown]] [[a/New.markdown]] [x](a/New.markdown)\n");
    change("rename_note", json!({ "path": "a/New.markdown", "new_path": "a/New.md" }));
    assert_eq!(vault.read("Home.md"), "[[New.md]] [[a/New.md]] [x](a/New.md)\n");
    assert_eq!(vault.read("a/New.md"), "---\nk: 1\n---\n# Old\n\ntext\n\nmore\n");
}
