//! The list of community plugins: downloaded from an address that a person gives, and searched on this machine.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::editor::Editor;
use super::vault::{refused, result};
use crate::stdio::Place;

/// Serves one answer, and returns its address.
fn served(status: &str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/community-plugins.json", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all((head + &body).as_bytes());
    });
    address
}

fn plugin(id: &str, name: &str, description: &str) -> Value {
    json!({ "id": id, "name": name, "author": "A. Author", "description": description, "repo": "a/b" })
}

fn fitting(editor: &mut Editor, instruction: &str) -> Vec<String> {
    let found = result(editor, "_vault/plugins", json!({ "instruction": instruction, "limit": 3 }));
    found["plugins"].as_array().unwrap().iter().map(|plugin| plugin["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn plugins_that_fit_an_instruction_are_found_in_the_list_that_was_downloaded() {
    let place = Place::new("//- Home.md\nBirds.\n");
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let before = result(&mut editor, "_vault/plugins", json!({ "instruction": "a board for my tasks" }));
    assert_eq!(before, json!({ "list": null, "plugins": [] }));

    let list = json!([
        plugin("kanban", "Kanban", "Create markdown-backed boards of cards to track the state of tasks."),
        plugin("weather", "Weather", "Insert the weather forecast of a city into the daily note."),
        plugin("KANBAN", "Kanban again", "Create markdown-backed boards of cards to track the state of tasks."),
        plugin("../../escape", "Escape", "A board of cards for tasks."),
        plugin("", "Nameless", "A board of cards for tasks."),
    ]);
    let address = served("200 OK", list.to_string());
    let downloaded = result(&mut editor, "_vault/download_plugins", json!({ "address": address }));
    assert_eq!((&downloaded["count"], &downloaded["address"]), (&json!(2), &json!(address)));
    // By meaning: no word of the question is in the description.
    assert_eq!(fitting(&mut editor, "rain and temperature outside"), ["weather"]);
    assert_eq!(fitting(&mut editor, "a board of cards for my tasks"), ["kanban"]);
    // What looks like syntax of a query is words.
    assert_eq!(fitting(&mut editor, "-weather tag:x (forecast of a city"), ["weather"]);
    assert_eq!(fitting(&mut editor, "  "), [""; 0]);

    // A plugin that has gone from the list is not found any more.
    let list = json!([plugin("weather", "Weather", "Insert the weather forecast of a city into the daily note.")]);
    let address = served("200 OK", list.to_string());
    result(&mut editor, "_vault/download_plugins", json!({ "address": address }));
    assert_eq!(fitting(&mut editor, "a board of cards for my tasks"), [""; 0]);

    // What cannot be downloaded leaves the list as it was.
    for (address, code) in [
        (served("200 OK", "<html>".to_owned()), "IO"),
        (served("404 Not Found", String::new()), "IO"),
        (served("302 Found\r\nlocation: http://127.0.0.1:9/", String::new()), "IO"),
        ("http://example.com/list.json".to_owned(), "INVALID_ARGUMENTS"),
        ("file:///etc/passwd".to_owned(), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(refused(&mut editor, "_vault/download_plugins", json!({ "address": address })), code, "{address}");
    }
    assert_eq!(fitting(&mut editor, "rain and temperature outside"), ["weather"]);
}
