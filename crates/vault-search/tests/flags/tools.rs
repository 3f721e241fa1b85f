//! The flags of `vault-tools`.

use crate::harness::{Place, Program, Walk, product, walk};
use crate::write_vaults;

pub const PROGRAM: Program = Program {
    name: "vault-tools",
    path: env!("CARGO_BIN_EXE_vault-tools"),
    environment: &[("VAULT_MODEL", "hashed")],
    prepare,
};

fn plan(step: &str) -> String {
    format!(r#"{{ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [{{ "id": "s", {step} }}] }}"#)
}

fn prepare(state: &str, place: &Place) {
    write_vaults(place);
    let made = r#""tool": "vault.createFile", "args": { "path": "Made.md", "content": "${name}" }"#;
    place.write("made.json", &plan(made));
    place.write("editor.json", &plan(r#""tool": "editor.insertAtCursor", "args": { "text": "inserted" }"#));
    place.write("selected.json", &plan(&made.replace("name", "selection")));
    place.write("delete.json", &plan(r#""tool": "delete_note", "args": { "path": "Lost.md" }"#));
    place.write("vault/.obsidian/templates.json", r#"{ "folder": "Templates" }"#);
    place.write("vault/Templates/T.md", "From a template\n");
    // Names without links, links with slips, and a heading that is not there.
    place.write("vault/Loose.md", "Roses stand in Soil, see [[Rosess]], [[Rosse]] and [[Soil#Nothing]].\n");
    place.write("vault/Named.md", "The Soil is named here.\n");
    if state == "bad-settings" {
        place.write("other/.vault.toml", "unknown = 1\n");
    }
    if state == "moved" {
        place.done(r#"call search_notes '{"query":"pruning"}' --vault ../other"#);
        place.done("append Other more --yes --vault ../other");
        std::fs::rename(place.root().join("other"), place.root().join("moved")).unwrap();
        return;
    }
    place.done("append Soil 'One.' --yes");
    place.done("plan run ../made.json --set name=n --yes");
    place.done("macro save made");
    for name in ["editor", "selected", "delete"] {
        place.done(&format!("macro save {name} ../{name}.json --untried"));
    }
    let exported = place.done("macro export made");
    place.write("macros.json", &exported);
    place.done("undo --yes");
    match state {
        "redone" => drop(place.done("redo --yes")),
        "edited" => {
            place.done("redo --yes");
            place.write("vault/Made.md", "edited\n");
        }
        "made-since" => place.write("vault/Made.md", "edited\n"),
        _ => {}
    }
}

#[test]
fn each_flag_has_an_effect() {
    let changes = [
        "rename Soil Earth",
        "move Soil Garden",
        "tag add Soil earth",
        "tag remove Roses garden/pruning",
        "tag rename garden/pruning cut",
        "prop set Soil rating 3",
        "prop remove Roses rating",
        "new Fresh text",
        "append Soil more",
        "daily 2026-01-02",
    ];
    let yes: Vec<String> = changes.iter().map(|change| format!("{change} --yes")).collect();
    let yes: Vec<&str> = yes.iter().map(String::as_str).collect();
    let append = r#"call append_to_note '{"path":"Soil.md","content":"x"}'"#;
    let append_yes = format!("{append} --yes");
    let insert = r#"call editor.insertAtCursor '{"text":"inserted"}' --yes"#;
    let insert_in_soil = format!("{insert} --active-file Soil.md");
    let runs = ["plan preview ../X.json", "plan run ../X.json --yes", "macro run X --yes"];
    let on = |name: &str| runs.map(|run| run.replace('X', name));
    let (made, editor, selected, delete) = (on("made"), on("editor"), on("selected"), on("delete"));
    fn texts(lines: &[String; 3]) -> [&str; 3] {
        lines.each_ref().map(String::as_str)
    }
    let at_cursor = editor.each_ref().map(|line| format!("{line} --cursor 1:0"));
    let in_soil = editor.each_ref().map(|line| format!("{line} --active-file Soil.md"));
    let named = made.each_ref().map(|line| format!("{line} --set name=n"));
    let asking = ["plan run ../made.json --set name=n", "macro run made --set name=n"];
    let rows = [
        product(&changes, &["--yes", "--dry-run"]),
        product(&yes, &["--json"]),
        product(&["delete Lost", "merge Lost Soil"], &["--yes", "--dry-run"]),
        product(&["delete Lost --dry-run", "merge Lost Soil --dry-run"], &["--json"]),
        product(&["@bad-settings plan check ../made.json"], &["--vault ../other"]),
        product(&["prop set Soil rating 3 --yes"], &["--text"]),
        product(&["new Fresh --yes"], &["--template T"]),
        product(&["append Soil more --yes"], &["--heading Newer"]),
        product(&["links suggest", "links repair"], &["--limit 1", "--plan", "--json", "--jsonl", "--schema"]),
        product(&["links repair --plan"], &["--least certain"]),
        product(&["lint"], &["--rule broken-link", "--json", "--jsonl", "--schema"]),
        product(&["list"], &["--toolset bulk", "--tokens", "--json", "--jsonl", "--schema"]),
        product(&["schema"], &["--for openai", "--toolset bulk"]),
        product(&[append], &["--yes", "--dry-run"]),
        product(&[&append_yes], &["--json"]),
        product(&["call editor.getActiveFilePath"], &["--active-file Soil.md"]),
        product(&[&insert_in_soil], &["--cursor 1:0"]),
        product(&["call editor.getSelection"], &["--selection text", "--selection-from Soil.md:1-2"]),
        product(&[r#"call delete_note '{"path":"Lost.md"}' --yes"#], &["--allow-delete"]),
        product(&["plan check ../made.json"], &["--json"]),
        product(&[&named[0]], &["--json"]),
        product(&texts(&made), &["--set name=n"]),
        product(&texts(&at_cursor), &["--active-file Soil.md"]),
        product(&texts(&in_soil), &["--cursor 1:0"]),
        product(&texts(&selected), &["--selection text", "--selection-from Soil.md:1-2"]),
        product(&texts(&delete), &["--allow-delete"]),
        product(&asking, &["--yes", "--dry-run", "--digest 0"]),
        product(&[&named[1], &named[2]], &["--jsonl"]),
        product(&["@redone undo"], &["--yes", "--dry-run", "--list"]),
        product(&["undo"], &["--recover", "--keep"]),
        product(&["@redone undo --list"], &["--json", "--jsonl", "--schema"]),
        product(&["@edited undo --yes"], &["--force"]),
        product(&["redo"], &["--yes", "--dry-run"]),
        product(&["redo --yes"], &["--json"]),
        product(&["@made-since redo --yes"], &["--force"]),
        product(&["macro save new --untried ../made.json"], &["--description text", "--default name=n"]),
        product(&["macro save new ../editor.json"], &["--untried"]),
        product(&["macro save new"], &["--run 1"]),
        product(&["macro save editor"], &["--force"]),
        product(&["macro list"], &["--shipped", "--json", "--jsonl", "--schema"]),
        product(&["macro delete made"], &["--yes"]),
        product(&["macro import ../macros.json"], &["--force", "--json"]),
        product(&["log"], &["--stats", "--limit 1", "--json", "--jsonl", "--schema"]),
        product(&["prune --max-size 1"], &["--older-than 0"]),
        product(&["prune --older-than 9"], &["--max-size 0"]),
        product(&["prune --older-than 0"], &["--yes"]),
        product(&["journal reset", "forget"], &["--yes"]),
        product(&["forget --yes"], &["--index-only"]),
    ]
    .concat();
    let shared = &[("--vault", "../other"), ("--index", "../other.db")];
    let others = [
        "delete Lost --dry-run",
        "merge Lost Soil --dry-run",
        "links suggest Loose",
        "links repair Loose",
        "lint",
        "list",
        "schema",
        r#"call search_notes '{"query":"pruning"}'"#,
        "plan check ../made.json",
        "plan preview ../made.json --set name=n",
        "plan run ../made.json --set name=n --yes",
        "undo --yes",
        "redo --yes",
        "macro save new ../made.json",
        "macro list",
        "macro show made",
        "macro run made --set name=n --yes",
        "macro rename made other",
        "macro delete made --yes",
        "macro export",
        "macro import ../macros.json",
        "log",
        "prune --older-than 0 --yes",
        "journal reset --yes",
        "forget --yes",
        "@moved adopt ../other",
        "completions bash",
        "man",
    ];
    walk(PROGRAM, &Walk { rows: &rows, shared, plain: &[&yes[..], &others].concat() });
}
