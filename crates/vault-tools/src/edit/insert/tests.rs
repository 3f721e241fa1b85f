//! What is added stands where it was meant to, and nothing else changes.

use proptest::prelude::*;

use super::*;

#[test]
fn what_is_appended_stands_on_its_own_line() {
    for (text, content, expected) in [
        ("", "x", "x"),
        ("a", "x", "a\nx"),
        ("a\n", "x", "a\nx\n"),
        ("a\r\nb\r\n", "x\ny", "a\r\nb\r\nx\r\ny\r\n"),
        ("a\n", "x\n\n", "a\nx\n"),
        ("\u{feff}", "x", "\u{feff}x"),
    ] {
        assert_eq!(append(text, content), expected, "{text:?}");
    }
}

#[test]
fn sections_are_found_and_added_to() {
    let text = "# Top\n\n## Log\n\n- a\n\n### Sub\n\ntext\n\n## Next\n\nend\n```\n# no\n```";
    let section = find_section(text, "Log").unwrap();
    assert_eq!((section.level, section.line, &text[section.heading.clone()]), (2, 3, "## Log"));
    assert!(text[section.body].ends_with("text\n\n"));
    let sub = find_section(text, "Log#Sub").unwrap();
    assert_eq!(&text[sub.body], "\ntext\n\n");
    let missing = find_section(text, "no").unwrap_err();
    assert!(missing.to_string().contains("\"Next\""), "{missing}");

    for (heading, content, expected, line) in [
        ("Sub", "more", text.replace("text\n", "text\n\nmore\n"), 11),
        ("## Next", "x", format!("{text}\n\nx"), 18),
        ("Log#Sub", "x\n\n", text.replace("text\n", "text\n\nx\n"), 11),
    ] {
        let done = append_to_section(text, heading, content).unwrap();
        assert_eq!((done.text, done.line, done.made_heading), (expected, line, false), "{heading}");
    }
}

/// A paragraph is no part of the table, list or quote before it, and an item goes on with its list.
#[test]
fn what_is_appended_to_a_note_is_what_it_says() {
    for (text, content, expected, line) in [
        ("| a |\n| - |\n| b |\n", "New", "| a |\n| - |\n| b |\n\nNew\n", 5),
        ("| a |\n| - |\n", "| b |", "| a |\n| - |\n| b |\n", 3),
        ("| a |\n| - |\n", "| b |\n|:-:|\n| c |", "| a |\n| - |\n\n| b |\n|:-:|\n| c |\n", 4),
        ("> a\n", "> b", "> a\n> b\n", 2),
        ("> [!note]\n> a\n", "> [!tip]\n> b", "> [!note]\n> a\n\n> [!tip]\n> b\n", 4),
        ("> [!note]\n> a", "New", "> [!note]\n> a\n\nNew", 4),
        ("- a\n", "New", "- a\n\nNew\n", 3),
        ("- a\n  - b\n", "* [ ] c", "- a\n  - b\n* [ ] c\n", 3),
        ("1. a\n", "2. b\n3. c", "1. a\n2. b\n3. c\n", 2),
        ("a\r\n", "b", "a\r\n\r\nb\r\n", 3),
        ("a\n\n", "b", "a\n\nb\n", 3),
        ("# A\n", "b", "# A\n\nb\n", 3),
        ("---\nk: 1\n---\n", "b", "---\nk: 1\n---\nb\n", 4),
        ("", "b", "b", 1),
    ] {
        let done = append_to_end(text, content).unwrap();
        assert_eq!((done.text.as_str(), done.line), (expected, line), "{text:?}");
    }
    for open in ["a\n```\nb", "a\n\n%%\nb\n"] {
        assert_eq!(append_to_end(open, "New").unwrap_err().kind(), ErrorKind::Refused, "{open:?}");
    }
    for (text, content, expected) in
        [("# A\n- a\n# B\n", "- b", "# A\n- a\n- b\n\n# B\n"), ("# A\n| a |\n| - |\n", "b", "# A\n| a |\n| - |\n\nb\n")]
    {
        assert_eq!(append_to_section(text, "A", content).unwrap().text, expected);
    }
}

/// What is added is never hidden by what is open before it, and never lands in a section that was not meant.
#[test]
fn what_is_open_or_ambiguous_is_refused() {
    for open in ["%%\nopen\n", "<!-- open\n", "$$\nx\n", "text\n\n```\nx\n"] {
        let error = append_to_section(&format!("# A\n{open}"), "A", "x").unwrap_err();
        let told = error.to_string();
        assert!(
            error.kind() == ErrorKind::Refused && told.contains("swallow the added text (first close"),
            "{open:?}: {told}"
        );
    }
    for closed in ["%%\na\n%%\n", "<!-- a -->\n", "$$\nx\n$$\n", "%% a %%\n"] {
        append_to_section(&format!("# A\n{closed}\n# B\n"), "A", "x").unwrap();
    }
    let twice = "# W\n## Log\na\n## Log\nb\n# V\n## Log\nc\n### log\n";
    for (heading, told) in [
        ("W#Log", "nothing tells apart those in the lines 2, 4: use edit_note"),
        ("Log", "write `## V#Log`; nothing tells apart those in the lines 2, 4"),
        ("LOG", "write `## V#Log` or `### V#Log#log`; nothing tells apart those in the lines 2, 4"),
        ("# Log", "no heading of this level is \"Log\": the one in line 2 is of level 2, the one in line 4"),
    ] {
        let error = find_section(twice, heading).unwrap_err();
        assert!(error.kind() == ErrorKind::Ambiguous && error.to_string().contains(told), "{heading}: {error}");
    }
    assert_eq!(find_section(twice, "## V#Log").unwrap().line, 7);
    let other = find_section("# A\n", "## A").unwrap_err().to_string();
    assert!(other.contains("(write `# A`)"), "{other}");
}

#[test]
fn empty_sections_and_missing_ones() {
    for (text, heading, expected, line) in [
        ("## A\n## B\n", "A", "## A\n\nx\n\n## B\n", 3),
        ("## A", "A", "## A\n\nx", 3),
        ("## A\n", "A", "## A\n\nx\n", 3),
        ("text\n", "New", "text\n\n## New\n\nx\n", 5),
        ("text\n\n", "# New", "text\n\n# New\n\nx\n", 5),
        ("", "New", "## New\n\nx", 3),
        ("A\r\n===\r\nb\r\n", "A", "A\r\n===\r\nb\r\n\r\nx\r\n", 5),
    ] {
        let done = append_to_section(text, heading, "x").unwrap();
        assert_eq!((done.text.as_str(), done.line), (expected, line), "{text:?}");
    }
    for (text, line) in [
        ("# A\n```\n## S\nunclosed\n", "line 2"),
        ("a\n\n~~~md\nb", "line 3"),
        ("a\r\n\r\n```\r\nb\r\n", "line 3"),
        ("a\n\n%%\nb\n", "line 3"),
        ("# S\n\n```\nunclosed\n", "line 3"),
        ("a\n# S\r\n> b\r\n\r\n~~~\r\nunclosed", "line 5"),
    ] {
        let refused = append_to_section(text, "S", "x").unwrap_err();
        assert!(refused.kind() == ErrorKind::Refused && refused.to_string().contains(line), "{refused}");
    }
    for text in ["```\na\n```", "%% a %%\n", "\u{feff}", "\u{feff}a", "- a\n  ```\n  b\n", "a", "---\nk: 1\n---"] {
        assert!(append_to_section(text, "S", "\n").unwrap().made_heading, "{text:?}");
    }
    for text in ["# S\n```\na\n```\n", "# S\n```\na\n```\n\n# T\n```\nb", "# S\n\n    a\n"] {
        let done = append_to_section(text, "S", "    x").unwrap();
        assert!(done.text.contains("    x"), "{text:?}");
    }
    assert!(append_to_section("", " # ", "x").is_err());
    assert!(append_to_section("", "a\n# injected", "x").is_err());
}

#[test]
fn text_is_inserted_at_each_side() {
    let text = "---\nk: 1\n---\nintro\n\n## Log\n- a\n- b ^b\n  - c ^c\n\n## Empty\n## End\n\ntext ^t\nmore\n";
    let note = |side| insert(text, Anchor::Note, side, "new").unwrap();
    assert_eq!(note(Side::Start).text, text.replace("intro", "new\n\nintro"));
    assert_eq!(note(Side::End).text, format!("{text}\nnew\n"));
    for (heading, side, content, old, new, line) in [
        ("Log", Side::Start, "- 0", "Log\n- a", "Log\n- 0\n- a", 7),
        ("Log", Side::Start, "new", "Log\n- a", "Log\nnew\n\n- a", 7),
        ("Log", Side::End, "- d", "  - c ^c\n", "  - c ^c\n- d\n", 10),
        ("Log", Side::Before, "new", "\n## Log", "\nnew\n\n## Log", 6),
        ("Empty", Side::Start, "new", "Empty\n", "Empty\n\nnew\n\n", 13),
        ("End", Side::Start, "new\n", "End\n\n", "End\n\nnew\n\n", 14),
        ("End", Side::End, "new", "more\n", "more\n\nnew\n", 17),
    ] {
        let done = insert(text, Anchor::Section(heading), side, content).unwrap();
        assert_eq!((done.text, done.line), (text.replace(old, new), line), "{heading} {side:?}");
    }
    let text = text.replace("\nmore", "");
    for (id, side, content, old, new) in [
        ("b", Side::Before, "- x", "- b", "- x\n- b"),
        ("^b", Side::After, "- x", "^c\n", "^c\n- x\n"),
        ("c", Side::Before, "- x\n  - y", "  - c", "  - x\n    - y\n  - c"),
        ("c", Side::After, "- x", "^c\n", "^c\n  - x\n"),
        ("t", Side::Before, "new", "text", "new\n\ntext"),
        ("t", Side::After, "new", "^t\n", "^t\n\nnew\n"),
    ] {
        let done = insert(&text, Anchor::Block(id), side, content).unwrap();
        assert_eq!(done.text, text.replace(old, new), "{id} {side:?}");
    }
    assert_eq!(insert("", Anchor::Note, Side::Start, "x").unwrap().text, "x");
    let windows = insert("# A\r\ntext\r\n", Anchor::Section("A"), Side::Start, "x\ny").unwrap();
    assert_eq!(windows.text, "# A\r\nx\r\ny\r\n\r\ntext\r\n");
    for (text, anchor) in [
        ("text", Anchor::Note),
        ("# A\ntext\n", Anchor::Section("A")),
        ("text ^b\n", Anchor::Block("b")),
        ("- text ^b\n", Anchor::Block("b")),
    ] {
        let side = if matches!(anchor, Anchor::Note) { Side::Start } else { Side::Before };
        let bom = insert(&format!("\u{feff}{text}"), anchor, side, "x").unwrap();
        assert_eq!(bom.text, format!("\u{feff}x\n\n{text}"));
    }
}

#[test]
fn what_would_swallow_or_be_swallowed_is_not_inserted() {
    for (text, anchor, side, content) in [
        ("# A\ntext\n# B\n", Anchor::Section("A"), Side::Start, "```\nopen"),
        ("# A\ntext\n# B\n", Anchor::Section("A"), Side::End, "%% open"),
        ("text", Anchor::Note, Side::Start, "<!-- open"),
        ("text", Anchor::Note, Side::Start, "---\na: 1\n---"),
        ("---\ntext", Anchor::Note, Side::End, "---\n"),
        ("> text ^q\n>\n> more\n", Anchor::Block("q"), Side::Before, "x"),
    ] {
        let refused = insert(text, anchor, side, content).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{text:?} {content:?}: {refused}");
    }
    for (anchor, side) in
        [(Anchor::Note, Side::After), (Anchor::Section("A"), Side::After), (Anchor::Block("a"), Side::Start)]
    {
        let error = insert("# A\ntext ^a\n", anchor, side, "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{anchor:?}");
    }
}

#[test]
fn a_section_is_replaced_with_its_subsections() {
    let text = "# T\n\n## Log\n\nold ^o\n\n### Sub\n\nx\n\n## End\nend\n";
    let done = replace_section(text, "Log", "## Log\n\nnew\n").unwrap();
    assert_eq!((done.text.as_str(), done.line), ("# T\n\n## Log\n\nnew\n\n## End\nend\n", 3));
    assert_eq!(done.gone, ["#Sub", "#^o"]);
    for (text, heading, content, expected) in [
        ("## A\na\n## B\nb", "A", "x", "## A\nx\n\n## B\nb"),
        ("## A\na\n## B\nb", "B", "x\n", "## A\na\n## B\nx"),
        ("## A\r\n\r\na\r\n", "A", "x\ny", "## A\r\n\r\nx\r\ny\r\n"),
        ("## A\na\n## B\n", "A", "", "## A\n\n## B\n"),
        ("A\n===\na\n", "A", "# A\nx", "A\n===\nx\n"),
        ("## A", "A", "x", "## A\n\nx"),
    ] {
        assert_eq!(replace_section(text, heading, content).unwrap().text, expected, "{text:?}");
    }
    assert_eq!(replace_section(text, "Log", "```\nopen").unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(replace_section("## A\n## A\n", "A", "x").unwrap_err().kind(), ErrorKind::Ambiguous);
}

proptest! {
    /// All that stood there still does, as what it was, and the new text stands there once.
    #[test]
    fn inserting_leaves_the_rest_as_it_is(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "# A\n", "## B\n", "text\n", "text ^b\n", "- a\n", "  - b ^b\n", "\n", "\r\n", "```\n", "%%\n", "> q\n",
            "| a |\n| - |\n", "    code\n", "$$\n", "<!--\n", "-->\n", "---\n", "[[x]]\n", "1. n\n", "A\n===\n", "x",
        ]), 0..16),
        content in prop::sample::select(vec!["new text", "- new", "```\nnew\n```", "```\nnew", "%% new", "> new", "| new |", "---", "1. new"]),
        side in prop::sample::select(vec![Side::Before, Side::Start, Side::End, Side::After]),
        anchor in prop::sample::select(vec![Anchor::Note, Anchor::Section("A"), Anchor::Section("B"), Anchor::Block("b")]),
    ) {
        let text = pieces.concat();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let parts = |text: &str| {
            let note = note(text);
            let levels: Vec<_> = note.headings.iter().map(|heading| (heading.level, heading.text.clone())).collect();
            (levels, note.links.iter().map(|link| link.raw.clone()).collect::<Vec<_>>())
        };
        if let Ok(done) = insert(&text, anchor, side, content) {
            prop_assert_eq!(parts(&done.text), parts(&text));
            let at = offset_of(&done.text, Position { line: done.line - 1, ch: 0 }).unwrap();
            let added = done.text[at..].lines().next().unwrap_or_default();
            prop_assert_eq!(added.trim(), content.lines().next().unwrap_or_default());
            let (mut all, mut expected) = (words(&done.text), [words(&text), words(content)].concat());
            all.sort();
            expected.sort();
            prop_assert_eq!(all, expected);
        }
        if let Ok(done) = replace_section(&text, "A", content) {
            prop_assert!(done.text.contains("new") || content == "---");
            prop_assert_eq!(frontmatter_span(&done.text).is_some(), frontmatter_span(&text).is_some());
        }
    }
}

#[test]
fn a_heading_is_not_made_twice() {
    for (text, heading, content, expected) in [
        ("## Testing\nold\n", "Testing", "## Testing\n\nnew", Some("new")),
        ("## Testing\nold\n", "testing", "# Testing\nnew", Some("new")),
        ("# Work\n## Log\n", "Work#Log", "## Log\n- x", Some("- x")),
        ("text\n", "Testing", "## Testing\nnew", Some("new")),
        ("text\n", "### Testing", "### Testing\n", Some("")),
        ("## Log\n", "log", "## LOG\nnew", Some("new")),
        // A section below, another heading, no heading.
        ("## Log\n", "Log", "---\nstatus: done\n---\n\n# Log\n\nnew", None),
        ("## Testing\n", "Testing", "### Testing\nnew", None),
        ("## Testing\n", "Testing", "## Other\nnew", None),
        ("## Testing\n", "Testing", "text\n## Testing\nnew", None),
    ] {
        assert_eq!(without_repeated_heading(text, heading, content).unwrap(), expected, "{text:?} {content:?}");
    }
    let empty = without_repeated_heading("## Testing\n", "Testing", "## Testing\n").unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::InvalidArguments);

    for (text, heading, shown) in [
        ("a\n\n## 📝 Notes\n", "Notes", "line 3 has \"📝 Notes\""),
        ("## Sub ^abc\n", "sub", "line 1 has \"Sub ^abc\""),
        ("## To-do:\n", "To do", "line 1 has \"To-do:\""),
        ("# A\n## Log\n", "B#Log", "line 2 has \"Log\""),
    ] {
        let refused = append_to_section(text, heading, "x").unwrap_err();
        assert!(refused.kind() == ErrorKind::Ambiguous && refused.to_string().contains(shown), "{refused}");
    }
    let made = append_to_section("## Meetings\n", "Meeting", "x").unwrap();
    assert_eq!((made.made_heading, made.similar_heading.as_deref()), (true, Some("Meetings")));
    let made = append_to_section("## Meetings\n## 📝\n", "🎉", "x").unwrap();
    assert_eq!((made.made_heading, made.similar_heading), (true, None));
}
