//! Forty things that people ask of an assistant, each with the tool of the default list that answers it.

use serde_json::{Value, json};

use crate::stdio::{OLD, Place, yes};

const NOTES: &str = "//- Index.md\nSee [[Garden/Roses]], [[Garden/Soil|soil]] and [[Nowhere]].\n\
    //- Garden/Roses.md\n---\ntags: [garden]\nstatus: open\n---\n# Roses\nCut the stems back in late winter. ^cut\n\n## Log\n- planted 2024-03-01\n\
    //- Garden/Soil.md\n---\ntags: [garden, todo]\n---\n# Soil\nCompost feeds the soil.\n\
    //- Kitchen/Bread.md\n# Bread\nSourdough needs time and warmth. #baking\n";

/// What is asked, the tool, its arguments, and what the answer holds; of a change, what the note holds then.
type Request = (&'static str, &'static str, Value, &'static str);

fn reading() -> Vec<Request> {
    vec![
        ("What is in my vault?", "list_folder", json!({}), r#""folders":["Garden","Kitchen"]"#),
        ("List the garden folder.", "list_folder", json!({ "path": "Garden" }), "Garden/Soil.md"),
        ("List everything.", "list_folder", json!({ "recursive": true }), "Kitchen/Bread.md"),
        ("The first file only.", "list_folder", json!({ "path": "Garden/", "limit": 1 }), "offset 1 goes on"),
        ("What do I know about pruning?", "search_notes", json!({ "query": "pruning roses" }), "Garden/Roses.md"),
        (
            "Where do I write exactly 'feeds the soil'?",
            "search_notes",
            json!({ "query": "\"feeds the soil\"" }),
            "Soil.md",
        ),
        ("Find dates like 2024-03-01.", "search_notes", json!({ "query": r"/\d{4}-\d\d-\d\d/" }), "planted 2024"),
        ("Soil, but not compost.", "search_notes", json!({ "query": "soil -compost" }), r#""result":["#),
        (
            "Open garden notes.",
            "search_notes",
            json!({ "query": "", "filter": { "property": "status=open" } }),
            "Roses.md",
        ),
        ("Search in the kitchen.", "search_notes", json!({ "query": "warmth path:Kitchen" }), "Bread.md"),
        ("Notes tagged garden.", "search_by_tag", json!({ "tags": ["garden"] }), "Garden/Soil.md"),
        ("Garden or baking.", "search_by_tag", json!({ "tags": ["garden", "baking"], "match": "any" }), "Bread.md"),
        ("Read the roses note.", "read_note", json!({ "path": "Roses" }), "late winter"),
        ("Read roses and soil.", "read_note", json!({ "paths": ["Roses", "Garden/Soil.md"] }), "Compost feeds"),
        ("Read roses and a missing one.", "read_note", json!({ "paths": ["Roses", "Nope"] }), "Note not found: Nope"),
        ("Only the log.", "read_note", json!({ "path": "Roses", "heading": "Log" }), "planted"),
        ("The paragraph ^cut.", "read_note", json!({ "path": "Roses", "block": "cut" }), "late winter"),
        ("Which headings has it?", "read_note", json!({ "path": "Roses", "outline": true }), "## Log"),
        ("Lines 1 to 3.", "read_note", json!({ "path": "Garden/Soil.md", "lines": "1-3" }), "todo"),
        ("What links to soil?", "list_backlinks", json!({ "path": "Soil" }), "Index.md"),
        ("What does the index link to?", "list_forward_links", json!({ "path": "Index" }), "Nowhere"),
        ("Its properties?", "get_note_metadata", json!({ "path": "Roses" }), r#""status":"open""#),
        ("Surprise me.", "get_random_note", json!({ "seed": 1 }), ".md"),
        ("A random garden note.", "get_random_note", json!({ "filter": { "path": "Garden" } }), "Garden/"),
        ("How is a plan written?", "plan_preview", json!({}), "riskLevel"),
    ]
}

fn writing() -> Vec<Request> {
    let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [
        { "id": "a", "tool": "vault.createFile", "args": { "path": "New.md", "content": "x" } }] });
    vec![
        ("Make a note about tea.", "write_note", json!({ "path": "Kitchen/Tea.md", "content": "# Tea\n" }), "# Tea\n"),
        (
            "Note the watering.",
            "append_to_note",
            json!({ "path": "Roses", "heading": "Log", "content": "- watered" }),
            "03-01\n- watered\n",
        ),
        (
            "Put it first in the log.",
            "append_to_note",
            json!({ "path": "Roses", "heading": "Log", "position": "start", "content": "- fed" }),
            "## Log\n- fed\n",
        ),
        (
            "After ^cut.",
            "append_to_note",
            json!({ "path": "Roses", "block": "cut", "content": "And feed." }),
            "^cut\n\nAnd feed.\n",
        ),
        (
            "At the top.",
            "append_to_note",
            json!({ "path": "Bread", "position": "start", "content": "Draft." }),
            "Draft.\n\n# Bread",
        ),
        (
            "Before the log.",
            "append_to_note",
            json!({ "path": "Roses", "heading": "Log", "position": "before", "content": "Intro." }),
            "Intro.\n\n## Log",
        ),
        (
            "Correct the season.",
            "edit_note",
            json!({ "path": "Roses", "old_text": "late winter", "new_text": "spring" }),
            "in spring.",
        ),
        (
            "Two corrections.",
            "edit_note",
            json!({ "path": "Bread", "edits": [
            { "old_text": "time", "new_text": "patience" }, { "old_text": "patience and", "new_text": "patience," }] }),
            "patience, warmth",
        ),
        ("Tag bread.", "edit_tags", json!({ "path": "Bread", "add": ["kitchen"] }), "- kitchen\n"),
        ("Soil is done.", "edit_tags", json!({ "path": "Soil", "remove": ["todo"] }), "tags: [garden]"),
        (
            "Call baking bread.",
            "edit_tags",
            json!({ "path": "Bread", "rename": [{ "from": "baking", "to": "bread" }] }),
            "#bread",
        ),
        (
            "Close roses.",
            "update_frontmatter",
            json!({ "path": "Roses", "updates": { "status": "done" } }),
            "status: done",
        ),
        (
            "Rename soil.",
            "rename_note",
            json!({ "path": "Garden/Soil.md", "new_path": "Garden/Earth.md" }),
            "[[Garden/Earth|soil]]",
        ),
        ("Start today's note.", "create_daily_note", json!({ "content": "- up" }), "- up"),
        ("Delete the bread note.", "delete_note", json!({ "path": "Kitchen/Bread.md" }), "Sourdough"),
        ("Do this plan.", "plan_preview", json!({ "plan": plan }), "create New.md"),
    ]
}

#[test]
fn forty_requests_are_answered_by_tools_of_the_default_list() {
    assert!(reading().len() + writing().len() >= 40);
    let place = Place::new(NOTES);
    let mut client = place.asking_client(OLD, &["--allow-delete"]);
    client.answer = Some(yes());
    for (asked, tool, args, holds) in reading() {
        let answer = client.done(tool, args).to_string();
        assert!(
            answer.contains(holds) || answer.contains(&holds.replace('"', "\\\"")),
            "{asked}: {holds} is not in {answer}"
        );
    }
    assert!(client.asked.is_empty(), "what reads asks nobody");
    for (asked, tool, args, holds) in writing() {
        let place = Place::new(NOTES);
        let mut client = place.asking_client(OLD, &["--allow-delete"]);
        client.answer = Some(yes());
        let answer = client.done(tool, args).to_string();
        let texts: Vec<String> =
            place.tree().values().map(|content| String::from_utf8_lossy(content).into_owned()).collect();
        let is_there = texts.iter().any(|text| text.contains(holds)) || answer.contains(holds);
        assert!(is_there, "{asked}: {holds:?} is not in {texts:#?} {answer}");
    }
}

/// A slip in one of several edits changes nothing, and what excludes each other is said.
#[test]
fn several_edits_are_made_all_or_not_at_all() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(OLD, &[]);
    client.answer = Some(yes());
    let edits = json!([{ "old_text": "time", "new_text": "x" }, { "old_text": "nope", "new_text": "y" }]);
    let error = client.error("edit_note", json!({ "path": "Bread", "edits": edits }));
    assert!(
        error["message"].as_str().unwrap().starts_with("edit 2: the text to be replaced does not occur"),
        "{error}"
    );
    assert!(place.read("Kitchen/Bread.md").contains("needs time"));
    for (tool, args, message) in [
        (
            "edit_note",
            json!({ "path": "Bread", "old_text": "a", "new_text": "b", "edits": edits }),
            "exclude each other",
        ),
        ("edit_note", json!({ "path": "Bread", "old_text": "a" }), "new_text is missing"),
        ("edit_note", json!({ "path": "Bread" }), "old_text and new_text are missing"),
        ("read_note", json!({ "path": "Bread", "paths": ["Soil"] }), "exclude each other"),
        ("read_note", json!({ "paths": ["Bread"], "heading": "Bread" }), "a part is read of one note"),
        ("read_note", json!({}), "is missing"),
        (
            "append_to_note",
            json!({ "path": "Roses", "content": "x", "heading": "Log", "block": "cut" }),
            "exclude each other",
        ),
        ("list_folder", json!({ "path": "Gardn" }), "no folder has this path"),
        ("search_notes", json!({ "query": "/(/" }), "regular expression"),
    ] {
        let error = client.error(tool, args);
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
    }
    // Several notes share the bytes of one answer.
    let notes = client.done("read_note", json!({ "paths": ["Roses", "Soil"], "max_bytes": 40 }))["notes"].clone();
    assert_eq!((notes[0]["content"].as_str().unwrap().len(), &notes[1]["content"]), (40, &json!("")));
    assert!(notes[1]["bytes_left"].as_u64().unwrap() > 0 && notes[1]["version"].is_string(), "{notes}");
}
