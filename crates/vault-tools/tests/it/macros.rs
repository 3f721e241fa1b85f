//! Macros: saved, run again, carried to another vault.

use serde_json::{Value, json};
use vault_tools::approval::run_plan;
use vault_tools::{Cancel, ErrorKind, IfExists, Macros, ParameterKind, SaveOptions};

use crate::vault::{TestVault, says_no, seen};

fn plan() -> Value {
    json!({
        "version": "1.0", "goal": "a note in a folder", "riskLevel": "writes",
        "steps": [{
            "id": "make", "tool": "vault.createFile",
            "args": { "path": "${folderName}/${date}.md", "content": "${selection} ${who}" }
        }]
    })
}

fn untried() -> SaveOptions {
    SaveOptions::default().allow_untried()
}

#[test]
fn saved_listed_renamed_and_deleted() {
    let vault = TestVault::new("//- a.md\nx\n");
    let toolbox = vault.toolbox();
    let macros = Macros::new(toolbox.vault().state());
    let saved = macros.save(&toolbox, "daily", &plan(), &untried().default_for("folderName", "Inbox")).unwrap();
    let parameters: Vec<(&str, ParameterKind, Option<&str>)> =
        saved.parameters.iter().map(|p| (p.name.as_str(), p.kind, p.default.as_deref())).collect();
    assert_eq!(
        parameters,
        [
            ("folderName", ParameterKind::Folder, Some("Inbox")),
            ("selection", ParameterKind::Selection, None),
            ("who", ParameterKind::Text, None),
        ]
    );
    let taken = macros.save(&toolbox, "daily", &plan(), &untried()).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Exists);
    macros.save(&toolbox, "daily", &plan(), &untried().if_exists(IfExists::Replace)).unwrap();
    macros.rename("daily", "every day").unwrap();
    assert!(macros.get("daily").unwrap_err().to_string().contains("every day"));
    assert!(macros.save(&toolbox, "../x", &plan(), &untried()).is_err());
    let faulty = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [] });
    assert_eq!(macros.save(&toolbox, "x", &faulty, &untried()).unwrap_err().kind(), ErrorKind::Plan);
    macros.delete("every day").unwrap();
    assert!(macros.list().unwrap().is_empty());
}

#[test]
fn exported_and_imported() {
    let (from, to) = (TestVault::new("//- a.md\nx\n"), TestVault::new("//- a.md\nx\n"));
    let toolbox = from.toolbox();
    let macros = Macros::new(toolbox.vault().state());
    macros.save(&toolbox, "one", &plan(), &untried().description("first")).unwrap();
    macros.save(&toolbox, "two", &plan(), &untried()).unwrap();
    let mut export = serde_json::to_value(macros.export(&[]).unwrap()).unwrap();
    assert_eq!(export["version"], "1.0");
    export["macros"].as_array_mut().unwrap().push(json!({ "name": "bad", "plan": { "version": "1.0" } }));
    export["macros"].as_array_mut().unwrap().push(json!(3));

    let toolbox = to.toolbox();
    let macros = Macros::new(toolbox.vault().state());
    let imported = macros.import(&toolbox, &export, IfExists::Refuse).unwrap();
    assert_eq!(imported.imported, ["one", "two"]);
    let rejected: Vec<&str> = imported.rejected.iter().map(|rejected| rejected.entry.as_str()).collect();
    assert_eq!(rejected, ["bad", "#4"]);
    assert_eq!(macros.get("one").unwrap().description, "first");
    assert_eq!(macros.import(&toolbox, &export, IfExists::Refuse).unwrap().rejected.len(), 4);
    assert!(macros.import(&toolbox, &json!({ "macros": [] }), IfExists::Refuse).is_err());
}

#[test]
fn a_macro_runs_as_any_plan() {
    use vault_tools::plan::{Parameters, dry_run, validate};
    let vault = TestVault::new("//- a.md\nx\n");
    let mut toolbox = vault.toolbox();
    let saved = Macros::new(toolbox.vault().state()).save(&toolbox, "daily", &plan(), &untried()).unwrap();
    let checked = validate(&saved.plan, &toolbox).unwrap();
    let mut parameters = Parameters::of(&toolbox.editor().unwrap(), &toolbox.now());
    let error = dry_run(&mut toolbox, &checked, &parameters, Cancel::default()).unwrap_err().to_string();
    assert!(error.contains("folderName") && error.contains("selection") && error.contains("who"), "{error}");
    for (name, value) in [("folderName", "In"), ("selection", "S"), ("who", "me")] {
        parameters.set(name, value);
    }
    let shown = dry_run(&mut toolbox, &checked, &parameters, Cancel::default()).unwrap();
    let save = |toolbox: &vault_tools::Toolbox| {
        let options = SaveOptions::default().if_exists(IfExists::Replace);
        Macros::new(toolbox.vault().state()).save(toolbox, "tried", &plan(), &options)
    };
    // A preview is no trial, neither is a run that was refused or failed.
    assert_eq!(save(&toolbox).unwrap_err().kind(), ErrorKind::Refused);
    run_plan(&mut toolbox, shown.clone(), &mut says_no, Cancel::default(), &mut |_| {}).unwrap_err();
    let cancelled = std::sync::atomic::AtomicBool::new(true);
    run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::on(&cancelled), &mut |_| {}).unwrap();
    assert_eq!(save(&toolbox).unwrap_err().kind(), ErrorKind::Refused);
    run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!(vault.read("In/2026-03-02.md"), "S me");
    save(&toolbox).unwrap();
}
