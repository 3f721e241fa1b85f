//! What the default list of tools costs in tokens: the README says it, and it is counted again here.

use serde_json::json;

use crate::stdio::{Era, Place};

/// The most that the default list may cost, without the schemas of outputs.
const MOST: usize = 3_600;

#[test]
fn the_default_list_costs_what_the_readme_says() {
    let place = Place::new("//- a.md\nx\n");
    let tokenizer = tiktoken_rs::o200k_base_singleton();
    let count = |args: &[&str]| -> usize {
        let list = place.client(Era::New, args).result("tools/list", json!({}));
        list["tools"].as_array().unwrap().iter().map(|tool| {
            let offered = json!({ "name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"] });
            tokenizer.encode_ordinary(&offered.to_string()).len()
        }).sum()
    };
    let (count, most) = (count(&[]), count(&["--allow-delete"]));
    assert!(most <= MOST, "{most} tokens are more than agreed upon");
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let number = format!("{},{:03}", count / 1000, count % 1000);
    assert!(readme.contains(&format!("{number} tokens")), "README.md does not say {number} tokens");
}
