//! Tests of parsed queries: operators, text that only looks like them, limits, and invariants for any text.

use jiff::Zoned;
use proptest::prelude::*;

use super::Query;

fn now() -> Zoned {
    "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap()
}

fn parse(text: &str) -> Query {
    Query::parse_at(text, &now()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn shown(query: &Query) -> String {
    query.condition.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The words to rank by, and the condition as it is written.
fn check(input: &str, text: &str, condition: &str) {
    let query = parse(input);
    assert_eq!((query.text.as_str(), shown(&query).as_str()), (text, condition), "{input:?}");
}

#[test]
fn words_and_phrases() {
    check("how to prune", "how to prune", "");
    check("a \"exact phrase\" b", "a exact phrase b", "\"exact phrase\"");
    check("a \"unclosed phrase", "a unclosed phrase", "\"unclosed phrase\"");
    check(r#""they said \"hello\" to" x"#, "they said \"hello\" to x", r#""they said \"hello\" to""#);
    check("rose -thorn", "rose", "-\"thorn\"");
    check("rose -\"two thorns\" --foo", "rose", "-\"two thorns\" -\"-foo\"");
    check("\"\" \" \"", "", "");
    check("  ", "", "");
    let query = parse("obsidian canv* x -templ*");
    assert_eq!((query.text.as_str(), query.prefixes.as_slice()), ("obsidian canv x", &["canv".to_string()][..]));
    assert_eq!(shown(&query), "-templ*");
}

#[test]
fn operators_become_conditions() {
    check("tag:garden how to prune", "how to prune", "tag:garden");
    check("tag:#日本/東京 x", "x", "tag:日本/東京");
    check("TAG:x note", "note", "tag:x");
    check("tag:(a OR b) -tag:c", "", "(tag:a OR tag:b) -tag:c");
    check("path:\"My notes/*\" x", "x", "path:\"My notes/*\"");
    check("path:Daily x path:Work", "x", "path:Daily OR path:Work");
    check("path:a -path:b path:c y", "y", "(path:a OR path:c) -path:b");
    check(r"path:/\d{4}/", "", r"path:/\d{4}/");
    check("file:plan file:.canvas -file:/^x/", "", "file:\"plan\" file:\".canvas\" -file:/^x/");
    check("link:a -linked-from:\"b c\" is:ORPHAN x", "x", "link:a -linked-from:\"b c\" is:orphan");
    check("LINK:[[a/b c#d|e]] link:(f OR g)", "", "link:\"a/b c\" (link:f OR link:g)");
    check("line:(mix flour)", "mix flour", "line:(\"mix\" \"flour\")");
    check("line:mix flour", "mix flour", "line:\"mix\"");
    check(
        "section:(dog -cat \"big bird\" OR /b.g/)",
        "dog big bird",
        "section:(\"dog\" -\"cat\" \"big bird\" OR /b.g/)",
    );
    check("block:(a b) content:\"happy cat\"", "a b happy cat", "block:(\"a\" \"b\") content:\"happy cat\"");
    check(
        "task:call task-todo:(call OR mail) task-done:\"\"",
        "call call mail",
        "task:\"call\" task-todo:(\"call\" OR \"mail\") task-done:\"\"",
    );
    check("match-case:HappyCat ignore-case:ikea", "HappyCat ikea", "match-case:\"HappyCat\" \"ikea\"");
    check("line:(match-case:Ann bob)", "Ann bob", "line:(match-case:\"Ann\" \"bob\")");
    check(r"/\d{4}-\d\d/ x", "x", r"/\d{4}-\d\d/");
    check(r"-/a b\/c/", "", r"-/a b\/c/");
    check("date:2023-12 date:>=2026-01", "", "date:2023-12 date:>=2026-01");
    check("-date:\"last friday\"", "", "-date:\"last friday\"");
    check("x -- -not tag:syntax \"at all", "x -not tag:syntax \"at all", "");
    check("(a -- b) tag:c", "a b) tag:c", "");
}

#[test]
fn brackets_become_conditions_on_properties() {
    check("[status]", "", "[status]");
    check("[status:draft]", "", "[status:~\"draft\"]");
    check("[status: Draft OR Published]", "", "[status:~\"Draft\"] OR [status:~\"Published\"]");
    check("[status:\"In Progress\"] x", "x", "[status:\"In Progress\"]");
    check("[by:(ann bob)]", "", "[by:~\"ann\"] [by:~\"bob\"]");
    check("[due:<2026-03] [rating:>=4]", "", "[due:<2026-03] [rating:>=4]");
    check("[due:>\"last week\"]", "", "[due:>\"last week\"]");
    check("[my key:/[a-z]/ OR x]", "", "[my key:/[a-z]/] OR [my key:~\"x\"]");
    check("[\"a:b\":c]", "", "[\"a:b\":~\"c\"]");
    check("-[draft] [n:-1] [n:<] [k:]", "", "-[draft] [n:~\"-1\"] [n:~\"<\"] [k]");
    check("[a:b] OR word", "word", "[a:~\"b\"] OR \"word\"");
}

/// Adjacent items bind more tightly than OR; plain words are conditions only beside a condition.
#[test]
fn alternatives_and_groups() {
    check("meeting OR work", "meeting work", "");
    check("meeting (work OR meetup) personal", "meeting work meetup personal", "");
    check("meeting work OR tag:x y", "meeting work y", "\"meeting\" \"work\" OR tag:x \"y\"");
    check("a (b OR tag:x) c", "a b c", "\"b\" OR tag:x");
    check("-(a b)", "", "-(\"a\" \"b\")");
    check("-(a OR -tag:b) c", "c", "-(\"a\" OR -tag:b)");
    check("(\"a\" (\"b\" (\"c\" tag:d)))", "a b c", "\"a\" \"b\" \"c\" tag:d");
    check("(tag:a OR (tag:b OR tag:c))", "", "tag:a OR tag:b OR tag:c");
    check("(tag:a OR tag:b", "", "tag:a OR tag:b");
    check("-(-x)", "", "-(-\"x\")");
    // If a side is empty, OR is a word.
    check("OR", "OR", "");
    check("OR tag:x", "OR", "tag:x");
    check("tag:x OR", "OR", "tag:x");
    check("(tag:x OR) y", "OR y", "tag:x");
    check("tag:a OR OR tag:b", "OR", "tag:a OR \"OR\" tag:b");
    check("tag:a or tag:b", "or", "tag:a tag:b");
}

#[test]
fn what_people_type_is_words() {
    for text in [
        "5\" pipe",
        "a - b",
        "- path:",
        ":-) :( ;-)",
        ":)",
        "a/b/c",
        "/etc/passwd",
        "/ a / b",
        "and/or /x",
        "C:\\path",
        "12:30",
        "https://a.b/c?d=(e)#f",
        "std::vec::Vec",
        "[[wikilink]] x",
        "[[My note|shown]]",
        "- [ ] todo",
        "- [x] done",
        "* [X] done",
        "[text](https://a.b)",
        "see [2] and [^1]",
        "> [!note] x",
        "f(x) = y",
        "a) first",
        "foo) bar",
        "C++ and c#",
        "what? -",
        "-> =>",
        "...",
        "héé:x",
        "10:00-11:30",
        "a*b **bold** *",
        "don't",
        "2 * 3",
        "//",
        "/ /",
        "[]",
        "[ ]",
        "[",
        "]",
        ")",
        "\u{0}",
        "x\u{feff}y",
        "$HOME/%x%",
        "a\\",
        "~tilde~",
        "`code`",
        "<b>",
        "#tag",
        "@ann",
    ] {
        let query = parse(text);
        assert_eq!((query.text.as_str(), shown(&query).as_str()), (text, ""), "{text:?}");
        assert!(query.unknown_operators.is_empty(), "{text:?}: {:?}", query.unknown_operators);
    }
    check("tasks - [x]", "tasks - [x]", "");
    check("rose [x]", "rose", "[x]");
    check("f(x) (y)", "f(x) y", "");
    check("a \" b", "a b", "\"b\"");
}

#[test]
fn unknown_operators_are_words_and_said() {
    let said = |text: &str| {
        let query = parse(text);
        assert_eq!((query.text.as_str(), query.condition), (text, None));
        query.unknown_operators
    };
    assert_eq!(said("foo:bar x"), ["foo:bar"]);
    assert_eq!(said("title:\"late winter\" intitle:x"), ["title:\"late winter\"", "intitle:x"]);
    assert_eq!(said("a AND b"), ["AND"]);
    assert_eq!(said("Tag: garden note: this"), ["Tag:"]);
    let query = parse("foo:(a b)");
    assert_eq!((query.text.as_str(), query.unknown_operators), ("foo:(a b)", vec!["foo:(…)".to_string()]));
    let query = parse("line:(tag:x y)");
    assert_eq!(
        (shown(&query).as_str(), query.unknown_operators),
        ("line:(\"tag:x\" \"y\")", vec!["tag:x".to_string()])
    );
}

#[test]
fn errors_name_what_cannot_be_understood() {
    for (text, says) in [
        ("path:[", "not a path pattern"),
        ("tag:#", "not a tag"),
        ("-tag:#", "not a tag"),
        ("path:/", "names no folder"),
        ("-path:/", "names no folder"),
        ("/a(/", "unclosed group, at character 2"),
        ("[k:/a(/]", "unclosed group"),
        ("file:/[/", "unclosed character class"),
        ("date:soon", "`soon` is not a date"),
        ("date:1/2/2023", "1 February 2023 or 2 January 2023"),
    ] {
        let error = Query::parse_at(text, &now()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn queries_beyond_a_limit_are_refused_or_taken_literally() {
    let many = "-a ".repeat(201);
    let error = Query::parse_at(&many, &now()).unwrap_err().to_string();
    assert!(error.contains("more than 200 conditions") && error.contains("`-- `"), "{error}");
    assert_eq!(parse(&format!("-- {many}")).condition, None);
    assert_eq!(parse(&"word ".repeat(20_000)).text.len(), 99_999);
    let patterns = format!("{}/(/", "/x/ ".repeat(201));
    assert!(Query::parse_at(&patterns, &now()).unwrap_err().to_string().contains("more than 200 conditions"));
    // Parentheses deeper than the limit are characters.
    let deep = format!("{}tag:x", "(".repeat(17));
    check(&deep, "(tag:x", "");
    check(&format!("{}tag:x", "(".repeat(16)), "", "tag:x");
    for noise in
        ["(", "[", "[a:", "-(", "\"", "()", "/", "line:(", "OR ", "a OR ", "[\"", "-[", "match-case:", "\\", "*"]
    {
        parse(&noise.repeat(30_000));
    }
}

/// Texts that are mostly syntax.
fn any_query() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "word",
        "OR",
        "-",
        "--",
        "(",
        ")",
        "\"",
        "\\",
        "/",
        "[",
        "]",
        "[k",
        ":",
        "tag:",
        "path:",
        "file:",
        "line:",
        "section:(",
        "task-todo:",
        "link:",
        "linked-from:[[",
        "is:orphan",
        "match-case:",
        "date:",
        "2023-12",
        ">=",
        "<",
        "~",
        "=",
        "*",
        " ",
        " ",
        " ",
        "\n",
        "x",
        "日本",
        "é",
        "k:",
        "\"b c\"",
        "/d/",
        "[k:v]",
        ".",
        "👍",
    ];
    prop_oneof![
        proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_read(text in any_query()) {
        let Ok(query) = Query::parse_at(&text, &now()) else { return Ok(()) };
        prop_assert_eq!(query.text.trim(), &query.text);
        let literal = parse(&format!("-- {text}"));
        prop_assert_eq!((literal.text.as_str(), literal.condition), (text.trim(), None));
        // A condition is parsed back from its text.
        if let Some(condition) = query.condition {
            let written = condition.to_string();
            let again = Query::parse_at(&written, &now());
            prop_assert!(again.is_ok(), "{:?}: {:?}", written, again);
            prop_assert_eq!(again.unwrap().condition, Some(condition), "{}", written);
        }
    }
}
