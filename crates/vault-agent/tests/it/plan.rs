//! `plan`: from an instruction to a plan that is approved, run, undone, kept, and run again without a model.

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Reply};
use crate::stdio::{Place, at_terminal};
use crate::wire_rules::{KEY, Rules, Wire};

const NOTES: &str = "//- Inbox.md\n# Inbox\n- Fix the shed\n- Plant \"roses\"\n";

fn plan(path: &str) -> Value {
    json!({
        "version": "1.0", "goal": "A note for each bullet", "riskLevel": "writes",
        "steps": [
            { "id": "bullets", "tool": "util.parseMarkdownBullets", "args": { "text": "${selection}" } },
            { "id": "notes", "tool": "vault.createFile", "foreach": { "from": "$steps.bullets.items", "itemName": "item" },
              "args": { "path": path, "content": "From the inbox.\n" } },
        ],
    })
}

fn good() -> Reply {
    Reply::Text(plan("Projects/${item.text}.md").to_string())
}

fn command(place: &Place, model: &ModelServer, args: &[&str]) -> std::process::Command {
    let mut command =
        place.command(&[&["plan", "a note for each bullet", "--selection-from", "Inbox.md:2-3"], args].concat());
    command.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "scripted");
    command
}

#[test]
fn an_instruction_becomes_notes_and_is_undone() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::with([good()]);
    let output = command(&place, &model, &["--yes"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(place.read("Projects/Fix the shed.md"), "From the inbox.\n");
    assert_eq!(place.read("Projects/Plant -roses-.md"), "From the inbox.\n");
    // What the model is told: the tools and the context, and that it answers with JSON alone.
    let system = model.told("system").remove(0);
    for part in ["vault.createFile", "riskLevel", "Fix the shed", "\"activeFile\":\"Inbox.md\""] {
        assert!(system.contains(part), "{part}");
    }
    assert!(model.requests()[0].get("tools").is_none(), "a plan is written, not acted");
    let output = place.command(&["undo", "--yes"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(place.tree(), before);
}

#[test]
fn the_limits_of_a_message_hold_for_repairs_too() {
    for (limit, requests) in [("--max-turns=1", 1), ("--max-total-tokens=200", 2)] {
        let place = Place::new(NOTES);
        let model = ModelServer::that(|_| Reply::text("Here is your plan: {}"));
        let output = command(&place, &model, &["--yes", limit]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), model.requests().len()), (Some(3), requests), "{said}");
        assert!(said.contains("nothing was done") && said.contains("the setting is max_t"), "{said}");
    }
}

#[test]
fn a_plan_that_is_not_valid_is_repaired_at_most_twice() {
    for repairs in 0..=3 {
        let place = Place::new(NOTES);
        let before = place.tree();
        let bad = |number: usize| match number {
            0 => Reply::text("Here is your plan: {}"),
            1 => Reply::Text(
                json!({ "version": "1.0", "goal": "x", "riskLevel": "writes", "steps": [
                { "id": "one", "tool": "vault.createFiles", "args": {} } ] })
                .to_string(),
            ),
            _ => Reply::Text(plan("/etc/${item.text}.md").to_string()),
        };
        let model = ModelServer::with((0..repairs).map(bad).chain([good()]));
        let output = command(&place, &model, &["--yes"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if repairs < 3 {
            assert_eq!((output.status.code(), model.requests().len()), (Some(0), repairs + 1), "{said}");
        } else {
            assert_eq!((output.status.code(), model.requests().len()), (Some(2), 3), "{said}");
            assert!(said.contains("no valid plan") && said.contains("nothing was done"), "{said}");
            assert_eq!(place.tree(), before);
        }
        if repairs == 2 {
            let told = model.told("user");
            assert!(
                told.iter().any(|text| text.contains("vault.createFiles")),
                "the model reads what is wrong: {told:?}"
            );
        }
    }
}

/// With marks of code and braces in its text, and `steps` that are none.
fn noted() -> Value {
    let mut plan = plan("Projects/${item.text}.md");
    plan["steps"][1]["args"]["content"] = "```js\nlet x = {\"steps\": 1;\n```\n~~~\n}\n</think>\n".into();
    plan["steps"][1]["args"]["frontmatter"] = json!({ "steps": [] });
    plan
}

#[test]
fn a_plan_is_taken_from_whatever_stands_around_it() {
    let (json, pretty) = (noted().to_string(), serde_json::to_string_pretty(&noted()).unwrap());
    let draft = json.replace("A note for each bullet", "A draft");
    let answers = [
        format!("```json\n{pretty}\n```"),
        format!("```\n{json}\n```"),
        format!("~~~json\n{pretty}\n~~~"),
        format!("Here is the plan:\n\n```json\n{pretty}\n```"),
        format!("```json\n{pretty}\n```\nIt makes {{item}} notes, one for each."),
        format!("Sure!\n```JSON\n{json}\n```\nShall I run it?"),
        format!("Here it is: {json} Its first arguments are {{\"text\": \"…\"}}."),
        format!("Each `${{item.text}}` in {{x}} or {{\"x\"}} or {{}} becomes a note:\n{pretty}"),
        format!("The arguments are {{\"path\": \"a.md\"}}.\n{json}"),
        format!("<think>\nFirst {draft}, but {{\"steps\": [\n</think>\n\n{json}"),
        format!("I begin with {draft}\nbut better is\n{json}"),
        format!("{{\"plan\": {json}}}"),
        format!("[{json}]"),
    ];
    let place = Place::new(NOTES);
    for answer in answers {
        let model = ModelServer::with([Reply::text(&answer)]);
        let output = command(&place, &model, &["--print"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), model.requests().len()), (Some(0), 1), "{answer}\n{said}");
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), noted(), "{answer}");
    }
}

#[test]
fn what_is_said_instead_of_a_plan_is_an_answer() {
    let place = Place::new(NOTES);
    for (answer, shown) in [
        ("I cannot do that: which bullets?", "I cannot do that: which bullets?\n"),
        ("<think>{} is too much</think>\nNo.", "No.\n"),
    ] {
        let model = ModelServer::with([Reply::text(answer)]);
        let output = command(&place, &model, &["--print"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), model.requests().len()), (Some(1), 1), "{answer}\n{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown);
        assert!(said.contains("nothing was done"), "{said}");
    }
}

#[test]
fn a_model_is_told_why_there_is_no_plan_in_its_answer() {
    let plan = plan("a.md");
    let (json, pretty) = (plan.to_string(), serde_json::to_string_pretty(&plan).unwrap());
    let cases = [
        (format!("<think>{json}, but"), "no JSON object that has a list `steps`\n".to_owned()),
        ("For {x}: {\"goal\": \"a\"}".to_owned(), "no JSON object that has a list `steps`; ".to_owned()),
        (format!("Here:\n```json\n{}", &pretty[..pretty.len() - 20]), "JSON is cut off".to_owned()),
        (format!("{json}\nNo, rather:\n{}", &json[..json.len() - 1]), "JSON is cut off".to_owned()),
        (
            format!("{{x}} {} {{\"steps\": 1}} {{y}}", pretty.replace("  ]\n}", "  ],\n}")),
            format!("trailing comma at line {}", pretty.lines().count()),
        ),
        (json.replace("writes", "brave"), "riskLevel".to_owned()),
    ];
    let place = Place::new(NOTES);
    for (answer, reason) in cases {
        let model = ModelServer::with([Reply::text(&answer), good()]);
        let output = command(&place, &model, &["--print"]).output().unwrap();
        assert_eq!((output.status.code(), model.requests().len()), (Some(0), 2), "{answer}");
        let told = model.told("user").pop().unwrap();
        assert!(told.starts_with("The plan cannot be used:\n") && told.contains(&reason), "{answer}\n{told}");
    }
}

#[test]
fn a_context_that_is_too_long_ends_with_nothing_done() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::that(|_| Reply::Error(400, "This model's maximum context length is 10 tokens.".into()));
    let output = command(&place, &model, &["--yes"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // There is nothing to leave out: it is one instruction.
    assert_eq!((output.status.code(), model.requests().len()), (Some(2), 1), "{said}");
    for part in ["maximum context length is 10 tokens", "it could not be made shorter", "nothing was done"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(place.tree(), before);
}

#[test]
fn nothing_runs_without_a_yes() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let (shown, code) = at_terminal(command(&place, &ModelServer::with([good()]), &[]), "n");
    assert_eq!((code, place.tree() == before), (3, true), "{shown}");
    assert!(shown.contains("create Projects/Fix the shed.md"), "{shown}");
    // Nobody is there to ask.
    let output = command(&place, &ModelServer::with([good()]), &[]).output().unwrap();
    assert_eq!((output.status.code(), place.tree() == before), (Some(3), true));
    // Only shown, or only printed.
    let output = command(&place, &ModelServer::with([good()]), &["--dry-run"]).output().unwrap();
    assert_eq!((output.status.code(), place.tree() == before), (Some(0), true));
    let output = command(&place, &ModelServer::with([good()]), &["--print"]).output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["steps"][1]["id"], "notes");
    assert_eq!(place.tree(), before);
}

#[test]
fn a_plan_is_kept_as_a_macro_and_runs_again_without_a_model() {
    let place = Place::new(NOTES);
    let output = command(&place, &ModelServer::with([good()]), &["--yes"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let run = |args: &[&str]| place.command(args).output().unwrap().status.code();
    assert_eq!(run(&["macro", "save", "bullets"]), Some(0));
    assert_eq!(run(&["undo", "--yes"]), Some(0));
    assert_eq!(run(&["macro", "run", "bullets", "--yes", "--selection", "- Other"]), Some(0));
    assert_eq!(place.read("Projects/Other.md"), "From the inbox.\n");
}

#[test]
fn without_a_model_it_says_how_to_set_one_up() {
    let place = Place::new(NOTES);
    let output = place.command(&["plan", "anything"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("vault-agent config set model"));
}

#[test]
fn vectors_are_made_while_the_model_writes() {
    let place = Place::new(NOTES);
    let text = "Prune roses in late winter, when the buds swell and the frost is over. ".repeat(8);
    (0..300).for_each(|n| {
        place.write(&format!("Note {n}.md"), &format!("# Rose {n}\n\n{}", text.replace("roses", &format!("rose {n}"))))
    });
    let file = place.home().join("index.db");
    let index = vault_index::Index::open(place.vault(), vault_index::Options::new().index_file(file.clone())).unwrap();
    index.sync_with(&vault_index::SyncOptions::new().without_vectors()).unwrap();
    let pending = index.status().unwrap().pending;
    let model = ModelServer::with([Reply::Slowly(plan("Projects/${item.text}.md").to_string(), 20)]);
    let output = command(&place, &model, &["--print", "--index", file.to_str().unwrap()]).output().unwrap();
    let left = index.status().unwrap().pending;
    assert!(output.status.success() && left < pending, "{left} of {pending}: {output:?}");
}

#[test]
fn a_plan_over_anthropic_is_the_arguments_of_a_tool_with_its_schema() {
    let rules = Rules { wire: Wire::Anthropic, target: "/v1/messages", has_key: true };
    for reply in [Reply::call("answer", plan("Projects/${item.text}.md")), good()] {
        let place = Place::new(NOTES);
        let model = ModelServer::with_rules(rules, [reply]);
        let mut command = command(&place, &model, &["--yes"]);
        let base = model.address.trim_end_matches("/v1");
        command.env("VAULT_AGENT_PROVIDER", "anthropic").env("VAULT_AGENT_BASE_URL", format!("{base}/v1"));
        let output = command.env("ANTHROPIC_API_KEY", KEY).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(place.read("Projects/Fix the shed.md"), "From the inbox.\n");
        let tools = model.requests()[0]["tools"].clone();
        assert_eq!(tools[0]["input_schema"], vault_tools::plan::plan_schema(), "{tools}");
    }
}
