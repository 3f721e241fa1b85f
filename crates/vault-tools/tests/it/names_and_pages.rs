//! What a tool's path means when it is no path, and how long its answer gets.

use serde_json::{Value, json};
use vault_tools::{Editor, ErrorKind, PolicySettings, Toolbox};

use crate::tools::call;
use crate::vault::{TestVault, seen};

fn error(toolbox: &mut Toolbox, tool: &str, args: Value) -> vault_tools::Error {
    toolbox.call(tool, args, &mut seen).unwrap_err()
}

#[test]
fn notes_are_named_as_in_links() {
    let vault = TestVault::new(
        "//- Garden/Compost.md
        # Compost
        rot
        ## Turning
        weekly ^when
        //- Log.md
        root
        //- Work/Log.md
        [[Compost]] [x](../Garden/Compost.md)
        //- Other/Old.md
        a
        //- Work/Old.md
        b
        //- Compost/pic.png
        x
        //- Private/Secret.md
        hidden
        ",
    );
    let mut policy = PolicySettings::default();
    policy.denied_paths = vec!["Private".into()];
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    let whole = vault.read("Garden/Compost.md");
    for (name, content) in [
        ("Compost", whole.as_str()),
        ("compost.MD", &whole),
        ("[[Compost|heap]]", &whole),
        ("Garden/Compost", &whole),
        (" [[garden/compost]] ", &whole),
        ("Compost#Turning", "## Turning\nweekly ^when\n"),
        ("[[Compost#^when]]", "weekly ^when"),
    ] {
        let read = call(&mut toolbox, "read_note", json!({ "path": name }));
        assert_eq!(
            (read["path"].as_str(), read["content"].as_str()),
            (Some("Garden/Compost.md"), Some(content)),
            "{name}"
        );
    }
    // What the call says goes before what the name says.
    let read = call(&mut toolbox, "read_note", json!({ "path": "Compost#Turning", "lines": "2" }));
    assert_eq!(read["content"], "rot\n");
    for tool in ["get_note_metadata", "vault.readFile"] {
        assert_eq!(call(&mut toolbox, tool, json!({ "path": "compost" }))["path"], "Garden/Compost.md", "{tool}");
    }
    assert_eq!(call(&mut toolbox, "list_backlinks", json!({ "path": "[[Compost]]" })).as_array().unwrap().len(), 2);
    // Of several, the one to which a link leads; to be changed, one has to be named.
    assert_eq!(call(&mut toolbox, "read_note", json!({ "path": "log" }))["content"], "root\n");
    assert_eq!(call(&mut toolbox, "read_note", json!({ "path": "Old" }))["path"], "Work/Old.md");
    let append = |name: &str| json!({ "path": name, "content": "more" });
    let several = error(&mut toolbox, "append_to_note", append("Old"));
    assert_eq!(several.kind(), ErrorKind::Ambiguous, "{several}");
    assert!(several.message().contains("Other/Old.md") && several.message().contains("Work/Old.md"), "{several}");
    assert_eq!(call(&mut toolbox, "append_to_note", append("[[compost]]"))["path"], "Garden/Compost.md");
    assert!(vault.read("Garden/Compost.md").ends_with("more\n"));
    // What may not be read has no name, and nothing leads out.
    for tool in ["read_note", "append_to_note"] {
        for (name, kind) in [
            ("Secret", ErrorKind::NotFound),
            ("[[Secret]]", ErrorKind::NotFound),
            ("Private/Secret.md", ErrorKind::Denied),
            ("[[Private/Secret]]", ErrorKind::NotFound),
            ("../Log", ErrorKind::InvalidPath),
            ("[[../Log]]", ErrorKind::InvalidPath),
            ("/etc/passwd", ErrorKind::InvalidPath),
            ("Work", ErrorKind::InvalidArguments),
            ("Nowhere", ErrorKind::NotFound),
        ] {
            let args = if tool == "read_note" { json!({ "path": name }) } else { append(name) };
            let found = error(&mut toolbox, tool, args);
            assert_eq!(found.kind(), kind, "{tool} {name}: {found}");
        }
    }
}

#[test]
fn answers_have_a_bound_and_say_what_is_left() {
    let vault = TestVault::new("//- Hub.md\n");
    for note in 0..250 {
        vault.write(&format!("n{note:03}.md"), "#daily [[Hub]]\n");
    }
    vault.write("Hub.md", (0..250).map(|note| format!("[[n{note:03}]]\n")).collect::<String>());
    vault.write("Long.md", "word ".repeat(20_000));
    let mut toolbox = vault.toolbox();
    for (tool, args) in [
        ("list_backlinks", json!({ "path": "Hub" })),
        ("list_forward_links", json!({ "path": "Hub" })),
        ("search_by_tag", json!({ "tags": ["daily"] })),
    ] {
        let mut all = Vec::new();
        for (offset, left) in [(0, 150), (100, 50), (200, 0)] {
            let mut args = args.clone();
            args["offset"] = offset.into();
            let page = toolbox.call(tool, args, &mut seen).unwrap();
            let items = page.value.as_array().unwrap().clone();
            assert_eq!(items.len(), if left == 0 { 50 } else { 100 }, "{tool}");
            let said = page
                .notices
                .iter()
                .any(|said| said.contains("250 ") && said.contains(&format!("offset {}", offset + 100)));
            assert_eq!(said, left > 0, "{tool}: {:?}", page.notices);
            assert!(page.text().len() < 50_000, "{tool}");
            all.extend(items);
        }
        let mut whole = args.clone();
        whole["limit"] = 1000.into();
        assert_eq!(call(&mut toolbox, tool, whole), Value::Array(all), "{tool}");
    }
    let read = toolbox.call("read_note", json!({ "path": "Long" }), &mut seen).unwrap();
    assert_eq!((&read.value["next_offset"], &read.value["bytes_left"]), (&json!(40_000), &json!(60_000)));
    assert!(read.notices.iter().any(|said| said.contains("60000 bytes are left")), "{:?}", read.notices);
    let rest = call(&mut toolbox, "read_note", json!({ "path": "Long", "offset": 40_000, "max_bytes": 100_000 }));
    assert_eq!((rest["content"].as_str().unwrap().len(), &rest["next_offset"]), (60_000, &Value::Null));
}
