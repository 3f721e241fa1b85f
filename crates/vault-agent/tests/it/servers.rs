//! Any number of servers on one vault: one keeps the index up to date, the others read its work, and one of them takes
//! over when it ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stdio::{Client, Era, OLD, Place};

/// Waits until a server finds a note by its words.
fn find(client: &mut Client, query: &str, path: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = client.done("search_notes", json!({ "query": query }));
        let hits = found["result"].as_array().unwrap().clone();
        if hits.iter().any(|hit: &Value| hit["path"] == path) {
            return;
        }
        assert!(Instant::now() < deadline, "{path} was never found: {found}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process that watches the index of the vault, as the index says.
fn watcher(place: &Place) -> Option<String> {
    let index = vault_index::Index::open(place.vault(), index_options(place)).unwrap();
    // Between taking the lock and writing its name, the holder is nobody in particular.
    index.watcher().filter(|holder| holder != "another process")
}

/// The index file of the place.
fn index_options(place: &Place) -> vault_index::Options {
    vault_index::Options::new().index_file(place.home().join("index.db"))
}

fn wait_for<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(got) = get() {
            return got;
        }
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn of_three_servers_one_watches_and_another_takes_over() {
    let place = Place::new("//- a.md\nthe first heron\n");
    let index = place.home().join("index.db").display().to_string();
    let mut clients: Vec<Client> = [Era::New, OLD, Era::New].map(|era| place.client(era, &["--index", &index])).into();
    let first = wait_for("a watcher", || watcher(&place));
    for (number, client) in clients.iter_mut().enumerate() {
        let (path, word) = (format!("note{number}.md"), format!("otter{number}x"));
        place.write(&path, &format!("about an {word}\n"));
        find(client, &word, &path);
    }
    assert_eq!(watcher(&place).as_deref(), Some(&*first), "it is one and the same");
    let of_first = clients.iter().position(|client| first.contains(&client.id().to_string()));
    clients.remove(of_first.expect("the watcher is one of them")).kill();
    let second = wait_for("another watcher", || watcher(&place).filter(|now| *now != first));
    assert!(clients.iter().any(|client| second.contains(&client.id().to_string())), "{second}");
    place.write("late.md", "a late bittern\n");
    find(&mut clients[0], "bittern", "late.md");
    for client in clients {
        assert_eq!(client.end().0, 0);
    }
    assert_eq!(watcher(&place), None);
}

#[test]
fn a_server_ends_with_its_input_and_leaves_nothing_running() {
    let place = Place::new("//- a.md\nx\n");
    for era in [Era::New, OLD] {
        let client = place.client(era, &[]);
        assert_eq!(client.end(), (0, String::new()));
    }
    // Nothing was said to it at all.
    let mut silent = place.command(&["mcp"]);
    let output = silent.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn what_is_not_a_vault_is_an_error_at_the_start() {
    let place = Place::new("//- a.md\nx\n");
    let gone = place.vault().join("gone").display().to_string();
    let output = place.command(&["mcp", "--vault", &gone]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && errors.contains("gone"), "{errors}");
}
