//! Vaults as people have them: names that nothing new may have, symbolic links, and folders that are left out of the index.

use serde_json::{Value, json};
use vault_tools::approval::run_plan;
use vault_tools::{Cancel, Editor, ErrorKind, Force, Grants, PolicySettings, Toolbox};

use crate::vault::{TestVault, apply, assert_same, seen};

fn call(toolbox: &mut Toolbox, tool: &str, args: Value) -> Value {
    toolbox.call(tool, args, &mut seen).unwrap_or_else(|error| panic!("{tool}: {error}")).value
}

/// On Windows such files cannot be.
#[cfg(unix)]
#[test]
fn existing_notes_of_any_name_are_read_renamed_and_deleted() {
    let names = [
        "shambhala: the sacred path.md",
        "aux.md",
        "Etc./n.md",
        "back\\slash.md",
        "end /n.md",
        "new\nline.md",
        "C:/x.md",
        "~/n.md",
    ];
    for name in names {
        let vault = TestVault::new("//- Links.md\n");
        vault.write(name, "secret garden [[Links]]\n");
        vault.write("Links.md", format!("[[{}]]\n", name.trim_end_matches(".md")));
        let mut toolbox = vault.toolbox_with(Editor::default(), &{
            let mut policy = PolicySettings::default();
            policy.allow_delete = true;
            policy
        });
        let before = vault.tree();
        let read = call(&mut toolbox, "read_note", json!({ "path": name }));
        assert_eq!(read["content"], "secret garden [[Links]]\n", "{name:?}");
        let found = call(&mut toolbox, "search_notes", json!({ "query": "secret garden" }));
        assert!(found.as_array().unwrap().iter().any(|note| note["path"] == name), "{found}");
        let backlinks = call(&mut toolbox, "list_backlinks", json!({ "path": "Links.md" }));
        assert_eq!(backlinks[0]["source_path"], name);
        // A line break ends a link, so none can lead to that name.
        if name != "new\nline.md" {
            let links = call(&mut toolbox, "list_forward_links", json!({ "path": "Links.md" }));
            assert_eq!(links[0]["target_path"], name);
        }
        call(&mut toolbox, "append_to_note", json!({ "path": name, "content": "more" }));
        call(&mut toolbox, "rename_note", json!({ "path": name, "new_path": "Plain.md" }));
        assert!(vault.read("Plain.md").ends_with("more\n"), "{name:?}");
        if name != "new\nline.md" {
            assert_eq!(vault.read("Links.md"), "[[Plain]]\n", "{name:?}");
        }
        toolbox.vault().undo(None, Force::No).unwrap();
        call(&mut toolbox, "delete_note", json!({ "path": name }));
        assert!(!vault.root().join(name).exists());
        for _ in 0..2 {
            toolbox.vault().undo(None, Force::No).unwrap();
        }
        assert_same(&vault.tree(), &before, name);
        // What is new has a plain name, also beside such a file.
        for new in [format!("{name}2: x.md"), format!("x/{name}"), "aux/n.md".to_owned(), "d:/n.md".to_owned()] {
            let refused = toolbox.propose("write_note", json!({ "path": new, "content": "x" }), Cancel::default());
            let refused = refused.expect_err(&new);
            assert_eq!(refused.kind(), ErrorKind::InvalidPath, "{new:?}: {refused}");
        }
    }
    let vault = TestVault::new("//- .obsidian/app.json\n{}\n//- Etc./n.md\nx\n");
    let mut toolbox = vault.toolbox();
    call(
        &mut toolbox,
        "vault.createFile",
        json!({ "path": "Etc./n.md", "content": "y", "collisionStrategy": "create-unique" }),
    );
    assert_eq!(vault.read("Etc./n 1.md"), "y");
    for hidden in [".obsidian/app.json", "../vault/Etc./n.md", "/Etc./n.md", "Etc./../Etc./n.md"] {
        let refused = toolbox.call("vault.readFile", json!({ "path": hidden }), &mut seen).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidPath, "{hidden}");
    }
}

/// One such note in a loop does not end the loop, nor does its path in a plan.
#[cfg(unix)]
#[test]
fn plans_work_on_notes_of_any_name() {
    use vault_tools::plan::{Parameters, dry_run, validate};
    let vault = TestVault::new("//- N/plain.md\nx\n");
    vault.write("N/a: b..md", "x\n");
    vault.write("con.md", "x\n");
    let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [
        { "id": "list", "tool": "vault.listFiles", "args": { "prefix": "N" } },
        { "id": "mark", "tool": "append_to_note", "foreach": { "from": "$steps.list.items", "itemName": "f" },
          "args": { "path": "${f.path}", "content": "done" } },
        { "id": "one", "tool": "append_to_note", "args": { "path": "con.md", "content": "done" } },
    ] });
    let mut toolbox = vault.toolbox();
    let checked = validate(&plan, &toolbox).unwrap();
    let shown = dry_run(&mut toolbox, &checked, &Parameters::default(), Cancel::default()).unwrap();
    run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut |_| {}).unwrap();
    for name in ["N/plain.md", "N/a: b..md", "con.md"] {
        assert_eq!(vault.read(name), "x\n\ndone\n", "{name}");
    }
}

/// Whatever names the folder that is to be left out.
#[test]
fn what_the_index_leaves_out_is_in_no_list_and_no_search() {
    for (file, rule) in [
        (".vaultignore", "Private/\n"),
        (".gitignore", "/Private\n"),
        (".vault.toml", "exclude = ['Private']\n"),
        (".obsidian/app.json", r#"{"userIgnoreFilters": ["Private/"]}"#),
    ] {
        let vault = TestVault::new(
            "//- a.md
            clay [[diary]]
            //- Private/diary.md
            clay secret #hidden [[a]]
            //- Private/deep/b.md
            clay
            //- Private/scan.png
            x
            ",
        );
        vault.write(file, rule);
        let mut toolbox = vault.toolbox();
        for (tool, args) in [
            ("search_notes", json!({ "query": "clay secret" })),
            ("vault_search", json!({ "query": "clay secret" })),
            ("search_by_tag", json!({ "tags": ["hidden"] })),
            ("vault.searchText", json!({ "query": "clay" })),
            ("vault.searchText", json!({ "query": "clay", "paths": ["Private"] })),
            ("vault.searchText", json!({ "query": "clay", "paths": ["Private/deep"] })),
            ("vault.listFiles", json!({})),
            ("vault.listFiles", json!({ "recursive": true })),
            ("vault.listFiles", json!({ "prefix": "Private", "recursive": true })),
            ("list_backlinks", json!({ "path": "a.md" })),
        ] {
            let output = toolbox.call(tool, args.clone(), &mut seen).unwrap();
            assert!(!output.value.to_string().contains("Private"), "{file}: {tool} {args}: {}", output.value);
            // A list of what is named and left out is empty, and says why.
            let is_named = args.to_string().contains("Private");
            assert_eq!(output.notices.iter().any(|notice| notice.contains("leave out")), is_named, "{tool} {args}");
        }
        for _ in 0..20 {
            assert_eq!(call(&mut toolbox, "get_random_note", json!({}))["path"], "a.md");
        }
        let missing = toolbox.call("read_note", json!({ "path": "diaries.md" }), &mut seen).unwrap_err();
        assert!(!missing.to_string().contains("Private"), "{missing}");
        // Who knows the path, as from a link, reads and writes the note; links to it are kept.
        assert_eq!(
            call(&mut toolbox, "read_note", json!({ "path": "Private/diary.md" }))["content"],
            "clay secret #hidden [[a]]\n"
        );
        let found = call(&mut toolbox, "vault.searchText", json!({ "query": "clay", "paths": ["Private/diary.md"] }));
        assert_eq!(found["matches"][0]["line"], 1);
        call(&mut toolbox, "rename_note", json!({ "path": "Private/diary.md", "new_path": "Private/journal.md" }));
        assert_eq!(vault.read("a.md"), "clay [[journal]]\n");
    }
}

/// With and without a denied note, the same call gives the same answer and does the same to what is not denied.
#[test]
fn links_to_and_from_denied_notes_tell_nothing() {
    let visible = "//- pub.md\n[[salary]] [[other]]\n//- other.md\nx\n//- F/c.md\n[[salary]]\n";
    let mut policy = PolicySettings::default();
    (policy.denied_paths, policy.allow_delete) = (vec!["Private".into()], true);
    for (tool, args) in [
        ("write_note", json!({ "path": "salary.md", "content": "x" })),
        ("rename_note", json!({ "path": "pub.md", "new_path": "salary.md" })),
        ("rename_note", json!({ "path": "other.md", "new_path": "salary.md" })),
        ("rename_note", json!({ "path": "other.md", "new_path": "moved.md" })),
        ("rename_note", json!({ "path": "F/c.md", "new_path": "c.md" })),
        ("vault.rename", json!({ "fromPath": "F", "toPath": "G" })),
        ("delete_note", json!({ "path": "other.md" })),
    ] {
        let [with, without] = [true, false].map(|has_denied| {
            let vault = TestVault::new(visible);
            if has_denied {
                vault.write("Private/salary.md", "[[other]] [[pub]] [[moved]] [[F/c]]\n");
            }
            let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
            let proposal = toolbox.propose(tool, args.clone(), Cancel::default()).unwrap();
            let shown = proposal.preview().to_string();
            let output = apply(&mut toolbox, proposal, &Grants::default(), &mut seen).unwrap();
            let mut tree = vault.tree();
            let private = tree.remove("Private/salary.md");
            assert!(private.is_none_or(|text| text == b"[[other]] [[pub]] [[moved]] [[F/c]]\n"));
            tree.remove("Private/");
            ((shown, output.value, output.notices), tree)
        });
        assert_eq!(with.0, without.0, "{tool} {args}");
        assert_same(&with.1, &without.1, &format!("{tool} {args}"));
        let says = with.0.2.iter().any(|notice| notice.contains("settings deny are unchanged"));
        assert_eq!(says, tool != "write_note", "{:?}", with.0.2);
    }
}

#[test]
fn an_editor_tells_nothing_of_a_denied_file() {
    let vault = TestVault::new("//- Private/salary.md\n1000\n//- a.md\nx\n");
    let path = |text: &str| vault_tools::SafePath::new(text).unwrap();
    let editor = Editor {
        active_file: Some(path("Private/salary.md")),
        open: vec![path("Private/salary.md"), path("a.md")],
        selection: Some(vault_tools::Selection { text: "1000".into(), span: None }),
        cursor: None,
    };
    let mut policy = PolicySettings::default();
    policy.denied_paths = vec!["Private".into()];
    let mut toolbox = vault.toolbox_with(editor, &policy);
    for tool in ["editor.getSelection", "editor.getActiveFilePath", "workspace.getContext"] {
        let answer = call(&mut toolbox, tool, json!({})).to_string();
        assert!(!answer.contains("salary") && !answer.contains("1000"), "{tool}: {answer}");
    }
    let context = call(&mut toolbox, "workspace.getContext", json!({}));
    assert_eq!(context["openLeaves"], json!(["a.md"]));
}

#[cfg(unix)]
#[test]
fn symbolic_links_that_lead_nowhere_now_are_named() {
    let mut policy = PolicySettings::default();
    policy.allow_delete = true;
    for (tool, args) in [
        ("rename_note", json!({ "path": "F/Real.md", "new_path": "F/New.md" })),
        ("vault.rename", json!({ "fromPath": "F", "toPath": "G" })),
        ("delete_note", json!({ "path": "F/Real.md" })),
        ("vault.delete", json!({ "path": "F" })),
    ] {
        let vault = TestVault::new("//- F/Real.md\nx\n//- Other.md\n[[Alias]]\n");
        std::os::unix::fs::symlink("F/Real.md", vault.root().join("Alias.md")).unwrap();
        std::os::unix::fs::symlink("Other.md", vault.root().join("Kept.md")).unwrap();
        let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
        let output = toolbox.call(tool, args.clone(), &mut seen).unwrap();
        let [notice] = &output.notices[..] else { panic!("{tool} {args}: {:?}", output.notices) };
        assert!(notice.starts_with("Alias.md is a symbolic link that leads nowhere now"), "{notice}");
    }
    // A link to a file elsewhere is none of them, nor one that is deleted along with it.
    let vault = TestVault::new("//- F/Real.md\nx\n//- Other.md\nx\n");
    std::os::unix::fs::symlink("Real.md", vault.root().join("F/Alias.md")).unwrap();
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    let output = toolbox.call("vault.delete", json!({ "path": "F" }), &mut seen).unwrap();
    assert_eq!(output.notices, Vec::<String>::new());
}

#[test]
fn daily_notes_are_made_as_periodic_notes_and_templater_are_set_up() {
    let vault = TestVault::new(
        "//- T/Day.md
        # {{title}}
        {{yesterday}} <% tp.date.now() %> {{date:dddd}}
        //- .obsidian/daily-notes.json
        {\"folder\": \"Core\", \"template\": \"Day\"}
        //- .obsidian/templates.json
        {\"folder\": \"T\"}
        //- .obsidian/plugins/periodic-notes/data.json
        {\"daily\": {\"enabled\": true, \"folder\": \"Days\", \"format\": \"DD.MM.YYYY\", \"template\": \"T/Day.md\"}}
        ",
    );
    let mut toolbox = vault.toolbox();
    // The plugin is not switched on.
    assert_eq!(call(&mut toolbox, "create_daily_note", json!({}))["path"], "Core/2026-03-02.md");
    assert_eq!(vault.read("Core/2026-03-02.md"), "# 2026-03-02\n{{yesterday}} <% tp.date.now() %> Monday\n");
    vault.write(".obsidian/community-plugins.json", r#"["periodic-notes"]"#);
    let output = toolbox.call("create_daily_note", json!({ "content": "- x" }), &mut seen).unwrap();
    assert_eq!(output.value["path"], "Days/02.03.2026.md");
    assert_eq!(vault.read("Days/02.03.2026.md"), "# 02.03.2026\n01.03.2026 <% tp.date.now() %> Monday\n\n- x\n");
    assert!(output.notices[0].starts_with("T/Day.md has commands of Templater"), "{:?}", output.notices);
    vault.write(".obsidian/plugins/periodic-notes/data.json", "{");
    let broken = toolbox.call("create_daily_note", json!({}), &mut seen).unwrap_err().to_string();
    assert!(broken.contains(".obsidian/plugins/periodic-notes/data.json"), "{broken}");
}

#[test]
fn a_file_is_made_from_a_template() {
    let vault = TestVault::new(
        "//- Meta/Book.md
        ---
        type: book
        ---
        # {{title}}
        read {{date}}
        //- Templates/Person.md
        Met {{time}}
        //- .obsidian/templates.json
        {\"folder\": \"/Templates/\", \"timeFormat\": \"HH\"}
        //- .obsidian/plugins/templater-obsidian/data.json
        {\"templates_folder\": \"Meta\"}
        //- .obsidian/community-plugins.json
        [\"templater-obsidian\"]
        ",
    );
    let mut toolbox = vault.toolbox();
    let mut make = |args: Value| {
        let made = toolbox.call("vault.createFile", args, &mut seen);
        made.map(|made| vault.read(made.value["path"].as_str().unwrap())).map_err(|error| error.to_string())
    };
    let book = json!({ "path": "Dune.md", "content": "Sand.", "template": "Book", "frontmatter": { "by": "Herbert" } });
    assert_eq!(make(book).unwrap(), "---\ntype: book\nby: Herbert\n---\n# Dune\nread 2026-03-02\n\nSand.\n");
    let person = json!({ "path": "P/Ada.md", "content": "", "template": "Templates/Person.md" });
    assert_eq!(make(person).unwrap(), "Met 15\n");
    let missing = make(json!({ "path": "x.md", "content": "", "template": "Perso" })).unwrap_err();
    assert!(missing.contains("Perso.md") && missing.contains("in Templates or Meta"), "{missing}");
    assert!(make(json!({ "path": "x.md", "content": "", "template": "../x" })).unwrap_err().contains("Invalid path"));
}

#[test]
fn attachments_are_listed_with_what_uses_them() {
    let vault = TestVault::new(
        "//- Home.md
        ---
        cover: \"[[Cover.png]]\"
        banner: img/Banner.PNG
        ---
        ![[scan.pdf#page=2]] ![](img/my%20pic.png) ![[gone.png|100]] [[later.png]] ![x](https://example.org/a.png)
        <img src='img/in%20html.png'>
        //- Board.canvas
        {\"nodes\": [{\"id\": \"a\", \"type\": \"file\", \"file\": \"clip.mp4\", \"x\": 0, \"y\": 0, \"width\": 1, \"height\": 1}]}
        //- Left out/n.md
        ![[archived.ogg]]
        //- Left out/own.png
        x
        //- .vaultignore
        Left out/
        //- .obsidian/app.json
        {\"attachmentFolderPath\": \"./img\"}
        //- Query.base
        x
        ",
    );
    for file in [
        "Cover.png",
        "img/Banner.PNG",
        "scan.pdf",
        "img/my pic.png",
        "img/in html.png",
        "clip.mp4",
        "archived.ogg",
        "lost.zip",
    ] {
        vault.write(file, "12345");
    }
    let mut toolbox = vault.toolbox();
    let all = call(&mut toolbox, "list_attachments", json!({}));
    let line = |file: &Value| {
        let notes = |key: &str| file[key].as_array().unwrap().len();
        let path = file["path"].as_str().unwrap();
        format!("{path} {} {} {}", file["type"].as_str().unwrap(), notes("used_by"), notes("named_in"))
    };
    let lines: Vec<String> = all["attachments"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "Cover.png image 1 0",
            "archived.ogg audio 0 1",
            "clip.mp4 video 1 0",
            "img/Banner.PNG image 0 1",
            "img/in html.png image 0 1",
            "img/my pic.png image 1 0",
            "lost.zip other 0 0",
            "scan.pdf pdf 1 0",
        ]
    );
    assert_eq!(all["attachments"][7]["used_by"], json!([{ "path": "Home.md", "line": 5, "link_type": "embed" }]));
    assert_eq!((&all["count"], &all["bytes"], &all["new_go_to"]), (&json!(8), &json!(40), &json!("./img")));
    // A link that is no embed leads to what may come yet.
    let broken = json!([{ "path": "Home.md", "line": 5, "target": "gone.png" }]);
    assert_eq!((&all["broken_count"], &all["broken_embeds"]), (&json!(1), &broken));
    let unused = call(&mut toolbox, "list_attachments", json!({ "show": "unused" }));
    assert_eq!((unused["attachments"][0]["path"].as_str(), &unused["count"]), (Some("lost.zip"), &json!(1)));
    let some = call(&mut toolbox, "list_attachments", json!({ "folder": "img", "type": "image", "limit": 2 }));
    assert_eq!((some["attachments"].as_array().unwrap().len(), &some["next_offset"]), (2, &json!(2)));
    let rest = call(&mut toolbox, "list_attachments", json!({ "folder": "img", "offset": 2, "limit": 2 }));
    assert_eq!(
        (line(&rest["attachments"][0]).as_str(), &rest["next_offset"]),
        ("img/my pic.png image 1 0", &Value::Null)
    );
    let only_broken = call(&mut toolbox, "list_attachments", json!({ "show": "broken" }));
    assert_eq!((&only_broken["count"], &only_broken["broken_embeds"]), (&json!(0), &broken));

    // What is denied is as if it were not there, and that this may mislead is said.
    let mut policy = PolicySettings::default();
    policy.denied_paths = vec!["Home.md".into(), "clip.mp4".into()];
    let mut toolbox = vault.toolbox_with(Editor::default(), &policy);
    let output = toolbox.call("list_attachments", json!({}), &mut seen).unwrap();
    let text = output.value.to_string();
    assert!(!text.contains("Home") && !text.contains("\"path\":\"clip.mp4"), "{text}");
    assert_eq!(output.value["broken_embeds"][0]["target"], "clip.mp4");
    assert!(output.notices[0].contains("settings deny are not checked"), "{:?}", output.notices);
}

#[test]
fn links_are_written_as_the_vault_writes_them() {
    let vault = TestVault::new(
        "//- A/Note.md
        x
        //- B/Note.md
        x
        //- A/Only one.md
        x
        //- img/p [1].png
        x
        //- img/q.png
        x
        ",
    );
    let mut toolbox = vault.toolbox();
    for (settings, path, args, expected) in [
        ("{}", "A/Only one.md", json!({}), "[[Only one]]"),
        ("{}", "A/Only one.md", json!({ "text": "the [only] one" }), "[[Only one|the  only  one]]"),
        ("{}", "A/Note.md", json!({ "from": "A/x.md" }), "[[A/Note]]"),
        ("{}", "img/q.png", json!({ "embed": true }), "![[q.png]]"),
        (r#"{"newLinkFormat":"absolute"}"#, "A/Only one.md", json!({}), "[[A/Only one]]"),
        (r#"{"newLinkFormat":"relative"}"#, "A/Only one.md", json!({ "from": "B/x.md" }), "[[../A/Only one]]"),
        (r#"{"newLinkFormat":"relative"}"#, "A/Note.md", json!({ "from": "A/x.md" }), "[[Note]]"),
        (r#"{"useMarkdownLinks":true}"#, "A/Only one.md", json!({}), "[Only one](Only%20one.md)"),
        (r#"{"useMarkdownLinks":true}"#, "img/p [1].png", json!({ "text": "a]b" }), "[a\\]b](p%20%5B1%5D.png)"),
        (
            r#"{"useMarkdownLinks":true,"newLinkFormat":"relative"}"#,
            "img/q.png",
            json!({ "from": "A/new.md", "embed": true }),
            "![q.png](../img/q.png)",
        ),
    ] {
        vault.write(".obsidian/app.json", settings);
        let mut call_args = args.clone();
        call_args["path"] = path.into();
        let link = call(&mut toolbox, "make_link", call_args)["link"].as_str().unwrap().to_owned();
        assert_eq!(link, expected, "{settings} {path} {args}");
        // It leads there.
        let from = args["from"].as_str().unwrap_or("root.md");
        call(&mut toolbox, "write_note", json!({ "path": from, "content": link }));
        let links = call(&mut toolbox, "list_forward_links", json!({ "path": from }));
        assert_eq!(links[0]["target_path"], path, "{link}");
        toolbox.vault().undo(None, Force::No).unwrap();
    }
    vault.write(".obsidian/app.json", "{}");
    let refused = toolbox.call("make_link", json!({ "path": "img/p [1].png" }), &mut seen).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
}

#[test]
fn weekly_notes_are_made_as_periodic_notes_is_set_up() {
    let vault = TestVault::new(
        "//- T/Week.md
        # {{title}}
        {{monday:ddd DD}} to {{sunday:ddd DD}}
        //- .obsidian/community-plugins.json
        [\"periodic-notes\"]
        //- .obsidian/plugins/periodic-notes/data.json
        {\"weekly\": {\"enabled\": true, \"folder\": \"Weeks\", \"format\": \"GGGG-[W]WW\", \"template\": \"T/Week\"}}
        ",
    );
    let mut toolbox = vault.toolbox();
    let args = json!({ "period": "week", "date": "2026-03-04", "content": "- review" });
    let output = toolbox.call("create_periodic_note", args, &mut seen).unwrap();
    assert_eq!((&output.value["path"], &output.notices[..]), (&json!("Weeks/2026-W10.md"), &[][..]));
    assert_eq!(vault.read("Weeks/2026-W10.md"), "# 2026-W10\nMon 02 to Sun 08\n\n- review\n");
    let month = toolbox.call("create_periodic_note", json!({ "period": "month" }), &mut seen).unwrap();
    assert_eq!(month.value["path"], "2026-03.md");
    assert!(month.notices[0].contains("not set to make monthly notes"), "{:?}", month.notices);
    let day = call(&mut toolbox, "create_periodic_note", json!({ "period": "day" }));
    assert_eq!(day["path"], "2026-03-02.md");
}
