//! The tools beside an index in a database: it ranks, and links and changes have an index file of this folder.

use serde_json::{Value, json};

use super::Team;
use super::server::Server;

fn call(team: &Team, tool: &str, args: Value, flags: &[&str]) -> Value {
    let args = args.to_string();
    let text = team.stdout("vault-tools", &[&["call", tool, &args, "--json"], flags].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_database_ranks_and_changes_follow_the_links_of_the_folder() {
    let Some(mut server) = Server::new() else { return };
    let team = Team::new(&server);
    std::fs::write(team.vault().join("Quince.md"), "# Quince\n\nMake jelly of the quince.").unwrap();
    team.stdout("vault-index", &["sync"]);
    let synced = team.stdout("vault-index", &["status", "--json"]);
    // The owner of the database has not read this yet, and what it has is another's note.
    std::fs::write(team.vault().join("Pantry.md"), "Quince jelly of [[Quince]].").unwrap();
    let search = json!({ "query": "quince jelly" });
    let found = call(&team, "search_notes", search.clone(), &[]).to_string();
    assert!(found.contains("Quince.md") && !found.contains("Pantry.md"), "{found}");
    let linking = call(&team, "list_backlinks", json!({ "path": "Quince.md" }), &[]).to_string();
    assert!(linking.contains("Pantry.md"), "{linking}");
    let rename = json!({ "path": "Quince.md", "new_path": "Medlar.md" });
    let args = rename.to_string();
    let renamed = team.run("vault-tools", Some(&team.address), &["call", "rename_note", &args, "--yes"]);
    assert!(renamed.status.success(), "{renamed:?}");
    assert_eq!(std::fs::read_to_string(team.vault().join("Pantry.md")).unwrap(), "Quince jelly of [[Medlar]].");
    let without_times = |status: &str| {
        let mut status: Value = serde_json::from_str(status).unwrap();
        status.as_object_mut().unwrap().remove("index_bytes");
        status
    };
    let now = team.stdout("vault-index", &["status", "--json"]);
    assert_eq!(without_times(&now), without_times(&synced), "no tool wrote to the database");
    team.told("vault-tools", None, &["undo", "--yes"]);

    // Without the server, only what ranks fails.
    server.kill();
    let args = search.to_string();
    let error = team.refused("vault-tools", &["call", "search_notes", &args]);
    assert!(error.contains("cannot be reached"), "{error}");
    team.stdout("vault-tools", &["rename", "Quince", "Medlar", "--yes"]);
    assert_eq!(std::fs::read_to_string(team.vault().join("Pantry.md")).unwrap(), "Quince jelly of [[Medlar]].");
}
