//! Properties change, and nothing else does.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(text: &str, updates: Value, expected: &str) {
    let Value::Object(updates) = updates else { panic!("updates are an object") };
    assert_eq!(update(text, &updates).unwrap(), expected, "{text:?} {updates:?}");
}

fn refused(text: &str, updates: Value) -> Error {
    let Value::Object(updates) = updates else { panic!("updates are an object") };
    update(text, &updates).unwrap_err()
}

/// In a text of several lines `#` begins no comment.
#[test]
fn lines_that_look_like_comments_belong_to_the_text_they_stand_in() {
    for (value, rest) in [
        ("|\n  text\n  # not a comment", ""),
        ("|\n  # first\n  # all", ""),
        (">-\n  text\n\n  # not\n  # a comment", ""),
        ("|+\n  text\n\n", ""),
        ("\"one\n  # two\"", ""),
        ("|\n    text\n    # in", "  # a comment\n# another\n"),
        ("1", "# a comment\n\n"),
    ] {
        let text = format!("---\nb: 0\ndesc: {value}\n{rest}next: 1\n---\nbody");
        check(&text, json!({"desc": null}), &format!("---\nb: 0\n{rest}next: 1\n---\nbody"));
        check(&text, json!({"desc": "new"}), &format!("---\nb: 0\ndesc: new\n{rest}next: 1\n---\nbody"));
    }
    let list = "---\nl:\n  - |\n    # a\n  - b\n---\n";
    check(list, json!({"l": ["b"]}), "---\nl:\n  - b\n---\n");
}

#[test]
fn items_between_brackets_keep_how_they_are_written() {
    check(
        "---\nl: ['a', [\"b\", 'c']]\n---\n",
        json!({"l": ["a", ["b", "c"], "d"]}),
        "---\nl: ['a', [\"b\", 'c'], 'd']\n---\n",
    );
    // Of a long list, too.
    let list = (0..2_000).map(|n| format!("'i{n}'")).collect::<Vec<_>>();
    let mut items: Vec<Value> = (0..2_000).map(|n| json!(format!("i{n}"))).collect();
    items.insert(0, json!("new"));
    let expected = format!("---\nl: ['new', {}]\n---\n", list.join(", "));
    check(&format!("---\nl: [{}]\n---\n", list.join(", ")), json!({"l": items}), &expected);
}

#[test]
fn numbers_and_blocks_that_could_not_be_kept_are_refused() {
    let long: Value = serde_json::from_str("{\"n\": 123456789012345678901234567890}").unwrap();
    assert_eq!(refused("", long).kind(), ErrorKind::InvalidArguments);
    check("", json!({"size": 18446744073709551615_u64}), "---\nsize: 18446744073709551615\n---\n");
    check("", json!({"size": 1.5}), "---\nsize: 1.5\n---\n");
    let open = refused("---\na: 1\n\ntext\n", json!({"b": 2}));
    assert!(open.kind() == ErrorKind::Frontmatter && open.to_string().contains("not closed"), "{open}");
    // A line across the page at the head of a note is none.
    check("---\n\na: 1\n", json!({"b": 2}), "---\nb: 2\n---\n---\n\na: 1\n");
    check("---\ntext\n", json!({"b": 2}), "---\nb: 2\n---\n---\ntext\n");
}

#[test]
fn scalars_keep_their_style_and_comments() {
    check("---\na: 1 # one\nb: 2\n---\nbody", json!({"a": 3}), "---\na: 3 # one\nb: 2\n---\nbody");
    check("---\na: 'x'\n---\n", json!({"a": "it's"}), "---\na: 'it''s'\n---\n");
    check("---\na: \"x # y\" # z\n---\n", json!({"a": "q"}), "---\na: \"q\" # z\n---\n");
    check("---\nStatus: draft\n---\n", json!({"status": "done"}), "---\nStatus: done\n---\n");
    check("---\n\"a b\": x\n---\n", json!({"a b": true}), "---\n\"a b\": true\n---\n");
    check("---\na:\n---\n", json!({"a": "x"}), "---\na: x\n---\n");
    check("---\na: |\n  long\n  text\n# c\nb: 1\n---\n", json!({"a": "x"}), "---\na: x\n# c\nb: 1\n---\n");
    check("---\na: >-\n  x\n\nb: 1\n---\n", json!({"b": 2}), "---\na: >-\n  x\n\nb: 2\n---\n");
}

#[test]
fn values_are_quoted_where_they_must_be() {
    for (value, written) in [
        (json!("plain text"), "plain text"),
        (json!("2024-01-15"), "2024-01-15"),
        (json!("[[Link]]"), "\"[[Link]]\""),
        (json!("123"), "\"123\""),
        (json!("true"), "\"true\""),
        (json!("no"), "\"no\""),
        (json!("a: b"), "\"a: b\""),
        (json!("a #b"), "\"a #b\""),
        (json!("two\nlines"), "\"two\\nlines\""),
        (json!(""), "\"\""),
        (json!("- x"), "\"- x\""),
        (json!(1.5), "1.5"),
        (json!(null), ""),
        (json!({"k": ["a, b", 1]}), "{k: [\"a, b\", 1]}"),
        (json!([]), "[]"),
    ] {
        let expected =
            if value.is_null() { "---\nb: 1\n---\n".to_owned() } else { format!("---\nb: 1\nx: {written}\n---\n") };
        check("---\nb: 1\n---\n", json!({ "x": value }), &expected);
    }
}

#[test]
fn lists_keep_theirs() {
    check("---\ntags: [a, b] # t\n---\n", json!({"tags": ["b", "c"]}), "---\ntags: [b, c] # t\n---\n");
    check(
        "---\ntags:\n  # first\n  - a # it\n  - \"b\"\n---\n",
        json!({"tags": ["a", "c", "b"]}),
        "---\ntags:\n  # first\n  - a # it\n  - c\n  - \"b\"\n---\n",
    );
    check("---\ntags:\n- a\nx: 1\n---\n", json!({"tags": ["b"]}), "---\ntags:\n- b\nx: 1\n---\n");
    check("---\ntags: a\n---\n", json!({"tags": ["a", "b"]}), "---\ntags:\n  - a\n  - b\n---\n");
    check("---\ntags:\n  - a\n---\n", json!({"tags": "a"}), "---\ntags: a\n---\n");
    check("---\na: [1,\n  2]\nb: 1\n---\n", json!({"b": 2}), "---\na: [1,\n  2]\nb: 2\n---\n");
    for (old, items, new) in [
        ("[one,\n  two]   # c", json!(["one", "two", "three"]), "[one,\n  two, three]   # c"),
        ("[one,\n  two]   # c", json!(["two"]), "[two]   # c"),
        ("[\n  one,\n  two,\n]", json!(["one", "two", "x"]), "[\n  one,\n  two, x,\n]"),
        ("[one, # 1\n  two]", json!(["one", "two", "3"]), "[one, # 1\n  two, \"3\"]"),
        ("[\"ln\",\"x\"]", json!(["l", "x"]), "[\"l\",\"x\"]"),
        ("[a,b]", json!(["a", "b", "c"]), "[a,b,c]"),
        ("[a,b,c]", json!(["a", "c"]), "[a,c]"),
        ("['a' , b]", json!(["b", "a"]), "[b , 'a']"),
        ("[]", json!(["a", "b"]), "[a, b]"),
        ("[ ] # [x]", json!(["a"]), "[a] # [x]"),
        ("[a, \"]\"] # ]", json!(["a", "]", "b"]), "[a, \"]\", b] # ]"),
        ("[a]", json!([]), "[]"),
    ] {
        check(&format!("---\nl: {old}\nb: 1\n---\n"), json!({ "l": items }), &format!("---\nl: {new}\nb: 1\n---\n"));
    }
    for items in [json!(["two"]), json!(["one", "2"])] {
        let comment = refused("---\nl: [one, # 1\n  two]\n---\n", json!({ "l": items }));
        assert!(comment.to_string().contains("a comment within \"l\" would be lost"), "{comment}");
    }
}

#[test]
fn a_text_for_a_list_is_read_as_one() {
    let read = |updates: Value| {
        let Value::Object(mut updates) = updates else { panic!("updates are an object") };
        let notices = read_lists("---\nl: [a]\ns: x\n---\n", &mut updates)?;
        Ok::<_, Error>((Value::Object(updates), notices))
    };
    for (given, meant) in [
        (json!({"tags": "[\"theme/a\",\"theme/b\"]"}), json!({"tags": ["theme/a", "theme/b"]})),
        (json!({"Tag": "a, #b"}), json!({"Tag": ["a", "#b"]})),
        (json!({"aliases": "[\"A, B\"]"}), json!({"aliases": ["A, B"]})),
        (json!({"l": "[1]"}), json!({"l": [1]})),
    ] {
        let (updates, notices) = read(given).unwrap();
        assert_eq!((updates, notices.len()), (meant, 1));
    }
    for kept in [
        json!({"tags": "one", "aliases": "A, B", "l": "b", "s": "[1]", "new": "[1]"}),
        json!({"tags": ["two words", 42, {"k": 1}]}),
        json!({"tags": null}),
        json!({"tags": ""}),
    ] {
        assert_eq!(read(kept.clone()).unwrap(), (kept, Vec::new()));
    }
    for dead in ["two words", "a, two words", "1984", "[a, b]"] {
        let refused = read(json!({ "tags": dead })).unwrap_err().to_string();
        assert!(refused.contains("/tags: ") && refused.contains("give a list of tags"), "{refused}");
    }
}

#[test]
fn a_property_without_a_value_can_be_made() {
    let properties = json!({"due": null, "a": "x", "l": [null]});
    let made = set("---\nold: 1\na: y\n---\nbody", properties.as_object().unwrap()).unwrap();
    assert_eq!(made, "---\nold: 1\na: x\ndue:\nl:\n  - null\n---\nbody");
    assert_eq!(set("body", json!({"due": null}).as_object().unwrap()).unwrap(), "---\ndue:\n---\nbody");
}

#[test]
fn lines_that_end_in_a_carriage_return_alone_are_refused() {
    let refused = refused("---\ra: 1\r---\rbody\r", json!({"b": 1}));
    assert!(refused.to_string().contains("carriage return alone"), "{refused}");
}

#[test]
fn blocks_that_are_missing_empty_or_from_windows() {
    check("body", json!({"a": 1}), "---\na: 1\n---\nbody");
    check("", json!({"a": 1}), "---\na: 1\n---\n");
    check("", json!({"a": null}), "");
    check("\u{feff}body\r\n", json!({"a": ["x"]}), "\u{feff}---\r\na:\r\n  - x\r\n---\r\nbody\r\n");
    check("---\n---\nbody", json!({"a": 1}), "---\na: 1\n---\nbody");
    check("---\r\na: 1\r\n---\r\nb\r\n", json!({"a": 2, "c": 3}), "---\r\na: 2\r\nc: 3\r\n---\r\nb\r\n");
    check("---\na: 1\n---", json!({"a": null}), "---\n---");
    check("---\n# only\n---\n", json!({"a": 1}), "---\n# only\na: 1\n---\n");
}

#[test]
fn comments_within_a_value_stay_when_the_value_goes() {
    let list = "---\ntags:\n# all\n  - a # its own\n  # inner\n  - b\nk: 1\n---\n";
    check(list, json!({"tags": null}), "---\n# all\n  # inner\nk: 1\n---\n");
    check(list, json!({"tags": "x"}), "---\ntags: x\n# all\n  # inner\nk: 1\n---\n");
    check(list, json!({"tags": ["b"]}), "---\ntags:\n  # inner\n  - b\n# all\nk: 1\n---\n");
    check("---\nl: [1,\n# two\n  2]\n---\n", json!({"l": null}), "---\n# two\n---\n");
    // In a text, `#` begins no comment.
    check("---\nc: |\n  # A heading\nk: 1\n---\n", json!({"c": null}), "---\nk: 1\n---\n");
}

#[test]
fn what_cannot_be_kept_is_refused() {
    for (text, updates) in [
        ("---\na: [\n---\n", json!({"b": 1})),
        ("---\na: 1\na: 2\n---\n", json!({"a": 3})),
        ("---\n{a: 1}\n---\n", json!({"b": 1})),
        ("---\na: &x 1\nb: *x\n---\n", json!({"a": 2})),
        ("---\n- a\n---\n", json!({"b": 1})),
        ("---\njust text\n---\n", json!({"b": 1})),
    ] {
        assert_eq!(refused(text, updates).kind(), ErrorKind::Frontmatter, "{text}");
    }
    assert_eq!(refused("", json!({" ": 1})).kind(), ErrorKind::InvalidArguments);
    let broken = refused("---\na: 1\nb: [\n---\n", json!({"a": 1}));
    assert!(broken.to_string().contains("line "), "{broken}");
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a: 1",
        "b: 'x y' # c",
        "tags: [a, \"b\"]",
        "tags:",
        "  - one",
        "  - \"two\" # t",
        "- three",
        "# note",
        "",
        "c: |",
        "  text: more",
        "d: \"q\\\"#\" # e",
        "\"e f\": g",
        "  nested: 1",
        "x:y: z",
        "k: {a: 1}",
        "l: [1,",
        "  2]",
        "date: 2024-01-01",
        "é: ü",
        "n: null",
        "long: a b: c",
        "*x: 1",
        "y: &x 2",
    ])
}

proptest! {
    #[test]
    fn nothing_else_changes(
        lines in prop::collection::vec(line(), 0..8),
        windows in any::<bool>(),
        key in prop::sample::select(vec!["a", "tags", "c", "new key", "é", "e f"]),
        value in prop::sample::select(vec![
            json!(null), json!("x"), json!(["one", "two: 3"]), json!(7), json!({"k": "v"}), json!("a\nb"), json!([]), json!([[1], {"a": "b"}]),
        ]),
    ) {
        let eol = if windows { "\r\n" } else { "\n" };
        let body = format!("body {eol}---{eol}a: 1{eol}");
        let text = format!("---{eol}{}---{eol}{body}", lines.iter().map(|line| format!("{line}{eol}")).collect::<String>());
        let updates: Map<String, Value> = [(key.to_owned(), value.clone())].into_iter().collect();
        if let Ok(new) = update(&text, &updates) {
            prop_assert!(new.ends_with(&body));
            let span = frontmatter_span(&new).unwrap();
            let (yaml, _) = inside(&new, &span);
            let read = frontmatter_properties(&new[yaml]).unwrap();
            prop_assert_eq!(read.get(key).cloned(), (!value.is_null()).then(|| property(&value)));
            // Comments stay.
            let comments = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
            prop_assert_eq!(comments(&new), comments(&text));
            prop_assert!(!windows || !new.replace("\r\n", "").contains('\n'));
            // Done twice is done once.
            prop_assert_eq!(update(&new, &updates).unwrap(), new);
        }
    }
}
