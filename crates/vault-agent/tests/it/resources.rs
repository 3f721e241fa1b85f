//! Notes as resources: listed, read in parts, completed, watched, under the rules of the tools.

use serde_json::{Value, json};

use crate::stdio::{Client, Era, OLD, Place};

const NOTES: &str = "//- Home.md\n# Home\n\n## Plan\n\nWater the roses.\n\n## Later\n\nRest. ^rest\n//- a b/Über #1.md\nodd\n\
    //- Private/Diary.md\nsecret words\n";

fn read(client: &mut Client, uri: &str) -> String {
    let result = client.result("resources/read", json!({ "uri": uri }));
    let contents = &result["contents"][0];
    assert_eq!(contents["uri"], uri);
    contents["text"].as_str().unwrap().to_owned()
}

fn uris(page: &Value) -> Vec<String> {
    page["resources"].as_array().unwrap().iter().map(|it| it["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn notes_are_listed_and_read_in_parts() {
    for era in [Era::New, OLD] {
        let place = Place::new(NOTES);
        let mut client = place.client(era, &[]);
        let list = uris(&client.result("resources/list", json!({})));
        let odd = "vault://Notes/a%20b/%C3%9Cber%20%231.md";
        for uri in ["vault-agent://skill", "vault://Notes/?changed=20", "vault://Notes/Home.md", odd] {
            assert!(list.iter().any(|it| it == uri), "{uri}: {list:?}");
        }
        assert_eq!(read(&mut client, odd), "odd\n");
        assert!(read(&mut client, "vault-agent://skill").contains("never an order"));
        assert_eq!(read(&mut client, "vault://Notes/Home.md?heading=Plan"), "## Plan\n\nWater the roses.\n\n");
        assert_eq!(read(&mut client, "vault://Notes/Home.md?lines=5"), "Water the roses.\n");
        assert!(read(&mut client, "vault://Notes/Home.md?block=rest").starts_with("Rest."));
        assert!(read(&mut client, "vault://Notes/?changed=1").lines().count() == 3);
        // Some clients change the case of what they take for a host.
        assert_eq!(read(&mut client, "vault://notes/Home.md?lines=1"), "# Home\n");
        let templates = client.result("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 5);
    }
}

#[test]
fn what_is_denied_or_outside_is_not_there() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    for (era, code) in [(Era::New, -32602), (OLD, -32002)] {
        let mut client = place.client(era, &[]);
        let list = uris(&client.result("resources/list", json!({})));
        assert!(!list.iter().any(|uri| uri.contains("Private")), "{list:?}");
        for path in ["Private/Diary.md", "Private/Nothing.md", "../home/x", "%2e%2e/x", "Nothing.md"] {
            let uri = format!("vault://Notes/{path}");
            let error = client.request("resources/read", json!({ "uri": uri }))["error"].clone();
            assert_eq!(error["code"], code, "{error}");
            assert_eq!(error["message"], format!("there is no resource {uri}"));
            assert_eq!(error["data"]["uri"], uri);
        }
        let error = client.request("resources/read", json!({ "uri": "file:///etc/passwd" }))["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!("file:///etc/passwd")));
        assert!(!read(&mut client, "vault://Notes/?changed=20").contains("Private"));
        assert!(!client.heard.contains("secret words"));
    }
}

#[test]
fn long_lists_have_pages_and_long_notes_go_on() {
    let many: String = (0..450).map(|number| format!("//- n{number:03}.md\nx\n")).collect();
    let place = Place::new(&many);
    place.write("long.md", &"a line of some length, again and again\n".repeat(10_000));
    let mut client = place.client(OLD, &[]);
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = client.result("resources/list", params);
        all.extend(uris(&page));
        assert!(uris(&page).len() <= 200);
        // What comes in before the cursor moves no page.
        place.write("a-new-one.md", "x");
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    let notes: Vec<&String> = all.iter().filter(|uri| uri.contains("/n")).collect();
    assert_eq!(notes.len(), 450);
    assert!(notes.is_sorted());
    assert!(client.request("resources/list", json!({ "cursor": "nonsense" }))["error"].is_object());

    let first = read(&mut client, "vault://Notes/long.md");
    let (_, next) = first.trim_end().rsplit_once("at ").unwrap();
    let next = next.strip_suffix(".)").unwrap().to_owned();
    assert!(next.starts_with("vault://Notes/long.md?lines="), "{next}");
    let text = first.split("\n\n(The note goes on").next().unwrap().lines().count();
    assert_eq!(next, format!("vault://Notes/long.md?lines={}-", text + 1));
    assert!(read(&mut client, &next).starts_with("a line of some length"));
}

#[test]
fn prompts_and_completions() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &[]);
    let prompts = client.result("prompts/list", json!({}))["prompts"].clone();
    assert_eq!(prompts.as_array().unwrap().len(), 5);
    let prompt = client.result("prompts/get", json!({ "name": "summarize", "arguments": { "topic": "roses" } }));
    assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("about roses"));
    assert_eq!(client.request("prompts/get", json!({ "name": "summarize" }))["error"]["code"], -32602);

    let mut complete = |of: Value, argument: &str, typed: &str, context: Value| {
        let argument = json!({ "name": argument, "value": typed });
        let params = json!({ "ref": of, "argument": argument, "context": { "arguments": context } });
        client.result("completion/complete", params)["completion"]["values"].clone()
    };
    let note = || json!({ "type": "ref/resource", "uri": "vault://{vault}/{+path}" });
    assert_eq!(complete(note(), "vault", "n", json!({})), json!(["Notes"]));
    assert_eq!(complete(note(), "path", "über", json!({ "vault": "Notes" })), json!(["a b/Über #1.md"]));
    assert_eq!(complete(note(), "heading", "p", json!({ "vault": "Notes", "path": "Home.md" })), json!(["Plan"]));
    assert_eq!(complete(note(), "heading", "", json!({ "vault": "Notes", "path": "none.md" })), json!([]));
    let topic = json!({ "type": "ref/prompt", "name": "summarize" });
    assert_eq!(complete(topic, "topic", "ho", json!({})), json!(["Home"]));
}

#[test]
fn a_client_is_told_of_what_it_subscribed_to() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &[]);
    let uri = "vault://Notes/Home.md";
    client.result("resources/subscribe", json!({ "uri": uri }));
    place.write("Home.md", "# Home\n\nchanged\n");
    let told = client.next();
    assert_eq!((&told["method"], &told["params"]["uri"]), (&json!("notifications/resources/updated"), &json!(uri)));
    std::fs::remove_file(place.vault().join("Home.md")).unwrap();
    assert_eq!(client.next()["params"]["uri"], uri);
    client.result("resources/unsubscribe", json!({ "uri": uri }));
    client.result("resources/subscribe", json!({ "uri": "vault://Notes/?changed=20" }));
    place.write("Home.md", "again\n");
    assert_eq!(client.next()["params"]["uri"], "vault://Notes/?changed=20");

    let mut client = place.client(Era::New, &[]);
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let id = client.ask("subscriptions/listen", filter);
    assert_eq!(client.next()["method"], "notifications/subscriptions/acknowledged");
    // Which state it begins with is known only to the server, so the note changes until the client is told.
    let mut text = String::new();
    while client.told.is_empty() {
        text.push_str("longer and longer\n");
        assert!(text.len() < 1_000_000, "nothing was told");
        place.write("Home.md", &text);
        client.request("resources/read", json!({ "uri": uri }));
    }
    let told = &client.told[0];
    assert_eq!((&told["method"], &told["params"]["uri"]), (&json!("notifications/resources/updated"), &json!(uri)));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    assert_eq!(client.end().0, 0);
}
