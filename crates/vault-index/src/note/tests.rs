//! Examples of parsed files; the invariants are in `invariant_tests.rs`.

use super::*;
use crate::error::WarningKind;
use crate::path::VaultPath;

fn note_of(path: &str, bytes: &[u8]) -> Note {
    parse(&VaultPath::new(path).unwrap(), bytes, &ParseOptions::default())
}

fn markdown(text: &str) -> Note {
    note_of("folder/name.md", text.as_bytes())
}

/// `path#subpath|display` of each link, after `!` for an embed and `()` for a Markdown link.
fn links(note: &Note) -> Vec<String> {
    let one = |link: &Link| {
        if !link.span.is_empty() {
            assert_eq!(note.slice(link.span.clone()), link.raw);
        }
        let mark = match link.kind {
            LinkKind::Wikilink => "",
            LinkKind::Markdown => "()",
            LinkKind::Embed => "!",
        };
        let subpath = link.subpath.as_ref().map(|s| format!("#{s}")).unwrap_or_default();
        let display = link.display.as_ref().map(|d| format!("|{d}")).unwrap_or_default();
        format!("{mark}{}{subpath}{display}", link.path)
    };
    note.links.iter().map(one).collect()
}

fn tags(note: &Note) -> Vec<&str> {
    note.tags.iter().map(|tag| tag.shown.as_str()).collect()
}

/// The text at the reported spans of tags.
fn tags_in_place(text: &str) -> Vec<&str> {
    tag_spans(text).into_iter().map(|span| &text[span]).collect()
}

fn kinds(note: &Note) -> Vec<(BlockKind, &str)> {
    note.blocks.iter().map(|block| (block.kind, note.slice(block.span.clone()))).collect()
}

#[track_caller]
fn check_links(text: &str, expected: &[&str]) {
    assert_eq!(links(&markdown(text)), expected, "{text:?}");
}

#[test]
fn links_of_all_kinds() {
    for (text, expected) in [
        ("[[a]]", &["a"][..]),
        ("![[a]]", &["!a"]),
        ("[[a]][[b]]", &["a", "b"]),
        ("[[a_b_c]] [[a*b*]] [[it's]] [[f(x)]] [[a [b] c]]", &["a_b_c", "a*b*", "it's", "f(x)", "a [b] c"]),
        ("[[a|b]] [[a|b *c* `d`]] [[a|b|c]]", &["a|b", "a|b *c* `d`", "a|b|c"]),
        ("[[#h]] [[a#h#i|d]] [[a#^id]]", &["#h", "a#h#i|d", "a#^id"]),
        ("[[]] [[ ]] [[|x]] [[#]] [[a", &[]),
        ("[[a\nb]] [[c]]", &["c"]),
        ("[[a\r\nb]]", &[]),
        ("[[a [[b]] c]]", &["b"]),
        ("[[[a]]] [[b]]]", &["a", "b"]),
        ("[[a]](b) ![[c]](d)", &["a", "!c"]),
        ("[![[c.png]]](a.md) [![[d]]](https://x.y) \\[![[e]]](b.md)", &["()a.md|![[c.png]]", "!c.png", "!d", "!e"]),
        ("![[img.png|640x480]] ![[x.pdf#page=3]]", &["!img.png|640x480", "!x.pdf#page=3"]),
        ("# [[a|b]] and [[c]]\n\n> [!note] [[d]]\n> - [ ] [[e]]\n", &["a|b", "c", "d", "e"]),
        ("| h |\n|---|\n| [[a\\|b]] ![[c\\|100]] |\n", &["a|b", "!c|100"]),
        ("[t](a%20b.md#Head \"title\") [t](<My Note.md>)", &["()a b.md#Head|t", "()My Note.md|t"]),
        ("[r][ref] [ref][] [ref]\n\n[ref]: n.md", &["()n.md|r", "()n.md|ref", "()n.md|ref"]),
        ("![alt|100](i%20j.png) ![](k.png)", &["!i j.png|alt|100", "!k.png"]),
        ("[![x](i.png)](n.md)", &["()n.md|![x](i.png)", "!i.png|x"]),
        ("[a **b** [[c]] d](e)", &["c"]),
        ("[**b** `c`](e) [a\\]](f)", &["()e|**b** `c`", "()f|a\\]"]),
        ("<https://a.b> <a@b.c> https://a.b [t](https://a.b) [t](mailto:a@b.c) [t](obsidian://x) [t]()", &[]),
        ("[t](#h) [t](../x.md) [t](//host/x)", &["()#h|t", "()../x.md|t"]),
        ("\\[[a]] \\![[b]] [\\[c]] \\[\\[d\\]\\]", &["b"]),
        ("[[a&amp;b]] [[a<b>c]] [[😀 ü]]", &["a&amp;b", "a<b>c", "😀 ü"]),
        ("[^1]: see [[a]]\n\nx[^1] ^[inline [[b]]]", &["a", "b"]),
        ("a [[b]] \u{0} [[c]]", &["b", "c"]),
        ("- a\n\t- [[b]]\r\r# [[c]]", &["b", "c"]),
        ("![[](n.md)![[(]]](n.md)](n.md)", &["!n.md|[](n.md)![[(]]](n.md)", "()n.md", "!("]),
        ("![a [[b]](c)](d)", &["b"]),
        ("[[$1 plan]] and [[$2 plan]]", &["$1 plan", "$2 plan"]),
        ("US$5 for [[a]] or US$7", &["a"]),
        ("<b>[[a]]</b> text", &["a"]),
    ] {
        check_links(text, expected);
    }
}

#[test]
fn nothing_in_code_math_or_comments_is_a_link_or_tag() {
    for text in [
        "`[[a]] #t`",
        "```\n[[a]] #t\n```",
        "~~~md\n[[a]]\n\n#t",
        "    [[a]] #t",
        "- x\n\n      [[a]] #t",
        "> ```\n> [[a]] #t\n> ```",
        "$[[a]] #t$",
        "$$\n[[a]]\n#t\n$$",
        "x %%[[a]] #t%% y",
        "%%\n[[a]]\n\n# [[b]]\n\n#t\n%%",
        "x %% [[a]] #t\n\n[[b]]",
        "%%\n```\n%%\n\n%% [[a]] %%",
        "<!-- [[a]] #t -->",
        "x <!-- [[a]]\n#t --> y",
        "<div>\n[[a]] #t\n</div>",
        "[x](https://a.b/ \"[[a]] #t\")",
    ] {
        let note = markdown(text);
        assert_eq!((links(&note), tags(&note)), (vec![], vec![]), "{text:?}");
    }
    check_links("%%\n```\n%%\n[[a]]", &["a"]);
    check_links("`%%` [[a]] `%%`", &["a"]);
    check_links("%% a %% [[b]] %% c %%", &["b"]);
    check_links("- %% a %%\n- [[b]]", &["b"]);
}

#[test]
fn inline_tags() {
    for (text, expected) in [
        ("#a", &["a"][..]),
        ("x #a #b/c, #d. (#e) x#f", &["a", "b/c", "d"]),
        ("#a #A #a/b", &["a", "a/b"]),
        ("#1984 #y1984", &["y1984"]),
        ("\\#a x \\#b", &[]),
        ("# Head #t", &["t"]),
        ("## #t", &["t"]),
        ("- #a\n- [ ] #b\n> #c\n>#d", &["a", "b", "c", "d"]),
        ("x\n#a\ty\t#b", &["a", "b"]),
        ("#snake_case_x #a*b* **#c**", &["snake_case_x", "a", "c"]),
        ("##a #1984#b x#c#d", &[]),
        ("https://a.b/#c <https://a.b/#d> [[f#g|#h]]", &[]),
        ("#日本 #✅/x #élan", &["日本", "✅/x", "élan"]),
        ("| h |\n|---|\n| #a |", &["a"]),
        ("&#35;a", &[]),
        ("#a%%b%% %%c%%#d", &["a"]),
        ("x\u{3000}#a é#b é #c: héh #d", &["a", "c", "d"]),
        ("see https://x.y/#a and http#b h #c http://x/ #d", &["c", "d"]),
    ] {
        assert_eq!(tags(&markdown(text)), expected, "{text:?}");
    }
}

/// From cyanheads/obsidian-mcp-server#140, #138 and the tests for them: the contents of Obsidian's own cache.
#[test]
fn inline_tags_are_where_obsidian_has_them() {
    for (text, expected) in [
        // Link texts; not destinations, titles, labels, alternative texts, and the display text of a wikilink.
        ("[Discord #a](https://x.y) [b #b][ref] [#c](u) [**#d**](u)\n\n[ref]: u", &["#a", "#b", "#c", "#d"][..]),
        ("[x](<a #b.md>) [x](u \"#b\") [x](#b) ![x #b](u) [![x #b](u)](v) ![[x|#b]] [x [[y|a #b]]](u)", &[]),
        ("[x](https://a.b/#c) [x][#b]\n\n[#b]: u", &[]),
        ("[`#b` $#b$](u) <a_b_#c@d.e> <mailto:a_b_#c>", &[]),
        // One directly after another.
        ("#a#b #c/#d #e_#f #g#1#h", &["#a", "#b", "#c", "#d", "#e_", "#f", "#g"]),
        // Emphasis, also inside a word, where Markdown has none.
        ("x _#a_ y __#b__ z **#c** ~~#d~~ ***#e***", &["#a", "#b", "#c", "#d", "#e"]),
        ("snake_case_#a, a_b #c_ y, x_#d_ y", &["#a", "#c", "#d"]),
        ("a**#b**", &["#b"]),
        ("a__#b__", &["#b"]),
        ("a~~#b~~ ==#c==", &["#b", "#c"]),
        ("a*#b*c", &["#b"]),
        ("a_b \\_ c_#d", &["#d"]),
        ("*a*#b *a #c_d*", &["#b", "#c_d"]),
        ("#_a_ #b_c_ #d_", &["#_a_", "#b_c_", "#d_"]),
        ("x_#a *#b ==#c **#d", &[]),
        ("x _#a_b", &[]),
        ("a_ _#b", &[]),
        // Table cells without spaces.
        ("|#a|b|\n|-|-|\n|#c|x\\|#d|\n|y|#e|", &["#a", "#c", "#d", "#e"]),
        ("a|#b|c", &[]),
        // Brackets, escapes, and other text that does not count.
        ("[#a] x[#b] [c]#d [e [#f] g] [ ]#h", &["#a", "#b", "#d", "#f", "#h"]),
        ("[#a [(#b)] ]#c []#d [^#e] [[#f]] [#g]] [[#h", &[]),
        ("\\*#a \\\\#b \\]#c", &["#a", "#b", "#c"]),
        ("\\#a \\\\\\#b \\—#c `x`\\#d", &[]),
        ("[[a]]#b [a](b)#c `a`#d $a$#e a<br>#f <!-- a -->#g", &["#b", "#c", "#d", "#e", "#f", "#g"]),
        ("(#a) \"#b\" .#c &amp;#d a—#e >#f", &[]),
        // Bare URLs, whatever Markdown reads in them.
        ("https://a.b/_c_#d https://a.b/c_d_#e (http://a.b/c_(d)e_f_#g)", &[]),
        ("**https://a.b**#c [https://a.b]#d (https://a.b)_c_#e", &["#c", "#d", "#e"]),
    ] {
        assert_eq!(tags_in_place(text), expected, "{text:?}");
        let shown: Vec<String> = tags(&markdown(text)).into_iter().map(|tag| format!("#{tag}")).collect();
        assert_eq!(shown, expected, "{text:?}");
    }
}

#[test]
fn many_marks_without_a_partner_are_read_in_one_pass() {
    for piece in ["a_b ", "**a ", "==a ", "_ ", "[#t ", "a_ _ * ** == "] {
        let text = piece.repeat(400_000 / piece.len());
        assert_eq!(tags(&markdown(&format!("{text} #end"))).last(), Some(&"end"), "{piece:?}");
    }
}

#[test]
fn headings_have_text_level_line_and_parent() {
    let text = "# One\n\n## See [[A|b]] and *c* ##\ntext\n\nTwo\nlines\n---\n\n### [[A]] `x` ![[i.png|20]] &amp; [t](u)\n> # not here\n\n# #\n## a #b\n###### ^id";
    let note = markdown(text);
    let found: Vec<_> = note.headings.iter().map(|h| (h.level, h.text.as_str(), h.line, h.parent)).collect();
    assert_eq!(
        found,
        [
            (1, "One", 1, None),
            (2, "See b and c", 3, Some(0)),
            (2, "Two lines", 6, Some(0)),
            (3, "A x  & t", 10, Some(2)),
            (1, "", 13, None),
            (2, "a #b", 14, Some(4)),
            (6, "^id", 15, Some(5)),
        ]
    );
    let sources: Vec<_> = (0..note.headings.len()).map(|index| note.heading_source(index)).collect();
    let written =
        ["One", "See [[A|b]] and *c*", "Two\nlines", "[[A]] `x` ![[i.png|20]] &amp; [t](u)", "", "a #b", "^id"];
    assert_eq!(sources, written);
    assert_eq!(note.heading_path(3), ["One", "Two lines", "A x  & t"]);
    assert_eq!(note.slice(note.headings[2].span.clone()), "Two\nlines\n---");
    assert_eq!(markdown("Head [[x]]\n===").headings[0].text, "Head x");
    assert_eq!(markdown("# a %%b%% $5 [[c$|d$]]").headings[0].text, "a  $5 d$");
}

#[test]
fn the_title_is_the_first_there_is() {
    for (text, expected, source) in [
        ("---\ntitle: T\n---\n# H", "T", TitleSource::Frontmatter),
        ("---\nTitle: 2024\n---\n# H", "2024", TitleSource::Frontmatter),
        ("---\ntitle: 2024-01-01\n---\n# H", "2024-01-01", TitleSource::Frontmatter),
        ("---\ntitle: |\n  a\n  b\n---\n", "a b", TitleSource::Frontmatter),
        ("---\ntitle: ' '\n---\n# H", "H", TitleSource::Heading),
        ("---\ntitle: [a]\n---\n# H", "H", TitleSource::Heading),
        ("text\n# \n# H *i*\n# I", "H i", TitleSource::Heading),
        ("## h\n# H", "name", TitleSource::FileName),
        ("H\n=", "H", TitleSource::Heading),
        ("## h", "name", TitleSource::FileName),
        ("", "name", TitleSource::FileName),
    ] {
        let title = markdown(text).title;
        assert_eq!((title.text.as_str(), title.source), (expected, source), "{text:?}");
    }
}

#[test]
fn blocks_of_all_kinds() {
    use BlockKind::*;
    for (text, expected) in [
        ("a\nb\n\nc\n", vec![(Paragraph, "a\nb"), (Paragraph, "c")]),
        ("# h #\na", vec![(Heading, "# h #"), (Paragraph, "a")]),
        ("- a\n  - b\n\n\n- c\n\n\nd", vec![(List, "- a\n  - b\n\n\n- c"), (Paragraph, "d")]),
        ("```\na\n```\n\n    b\n    c\n", vec![(Code, "```\na\n```"), (Code, "    b\n    c")]),
        ("|a|\n|-|\n|b|\n", vec![(Table, "|a|\n|-|\n|b|")]),
        ("> [!note]- t\n> x\nlazy\n\n> y", vec![(Quote, "> [!note]- t\n> x\nlazy"), (Quote, "> y")]),
        ("$$\nx\n$$\n\n$$x$$ y", vec![(Math, "$$\nx\n$$"), (Paragraph, "$$x$$ y")]),
        ("a\n\n%%\nx\n\n- y\n%%\nb", vec![(Paragraph, "a"), (Comment, "%%\nx\n\n- y\n%%"), (Paragraph, "b")]),
        ("%%a%% %%b%%\n\nc %%d%%", vec![(Comment, "%%a%% %%b%%"), (Paragraph, "c %%d%%")]),
        ("%%a%%\n---\n", vec![(Comment, "%%a%%"), (Other, "---")]),
        ("[r]: x\n%%c%%\n[s]: y\n", vec![(Other, "[r]: x"), (Comment, "%%c%%"), (Other, "[s]: y")]),
        ("***\n<div>\nx\n</div>\n\n[^1]: n\n", vec![(Other, "***"), (Other, "<div>\nx\n</div>"), (Other, "[^1]: n")]),
        (" \n\t\n", vec![]),
    ] {
        assert_eq!(kinds(&markdown(text)), expected, "{text:?}");
    }
}

#[test]
fn seams_are_starts_of_lines() {
    for (text, expected) in [
        ("- a\n  - b\n- c", vec!["  - b\n- c", "- c"]),
        (
            "- a\n\t- b\n\t\t- c\n\t- d\n- e",
            vec!["\t- b\n\t\t- c\n\t- d\n- e", "\t\t- c\n\t- d\n- e", "\t- d\n- e", "- e"],
        ),
        ("- a\r\n\t- b\r\n- c", vec!["\t- b\r\n- c", "- c"]),
        ("x\n\n1. a\n\n   p\n2. b", vec!["2. b"]),
        ("|a|\n|-|\n|b|\n|c|", vec!["|b|\n|c|", "|c|"]),
        ("> a\n>\n> b\n> - c\n> - d", vec!["> b\n> - c\n> - d", "> - c\n> - d", "> - d"]),
        ("- - a\n  - b", vec!["  - b"]),
        ("a\nb", vec![]),
    ] {
        let note = markdown(text);
        let block = note.blocks.last().unwrap();
        let rests: Vec<&str> = block.seams.iter().map(|&seam| &note.text[seam..]).collect();
        assert_eq!(rests, expected, "{text:?}");
    }
}

#[test]
fn block_ids_name_what_they_end() {
    for (text, expected) in [
        ("a ^One\n\nb\n^two", vec![("one", "a ^One"), ("two", "b\n^two")]),
        (
            "- a ^i1\n  - b ^i2\n- c\n\n^list",
            vec![("list", "- a ^i1\n  - b ^i2\n- c\n\n^list"), ("i1", "- a ^i1\n  - b ^i2"), ("i2", "- b ^i2")],
        ),
        ("- a\n\n  p ^p\n- b\n^b", vec![("p", "p ^p"), ("b", "- b\n^b")]),
        ("> a ^a\n>\n> b ^b", vec![("b", "> a ^a\n>\n> b ^b"), ("a", "a ^a")]),
        ("> a\n\n^q", vec![("q", "> a\n\n^q")]),
        ("|a|\n|-|\n|b ^no|\n^t", vec![("t", "|a|\n|-|\n|b ^no|\n^t")]),
        ("|a|\n|-|\n\n^t", vec![("t", "|a|\n|-|\n\n^t")]),
        ("```\nx\n```\n^c", vec![("c", "```\nx\n```\n^c")]),
        ("# h ^h\n\n^alone", vec![("h", "# h ^h"), ("alone", "^alone")]),
        ("a^b\n\n`x ^y`\n\n2 ^ 3", vec![]),
    ] {
        let note = markdown(text);
        let ids: Vec<_> = note.block_ids.iter().map(|id| (id.id.as_str(), note.slice(id.span.clone()))).collect();
        assert_eq!(ids, expected, "{text:?}");
    }
    let note = markdown("- a\n- b\n\n^list\n\nc");
    assert_eq!(note.blocks[0].id.as_deref(), Some("list"));
    assert_eq!(note.blocks.len(), 2);
}

#[test]
fn frontmatter_is_only_at_the_beginning() {
    for (text, head, body) in [
        ("---\na: 1\n---\nb", Some("---\na: 1\n---\n"), "b"),
        ("---\r\na: 1\r\n---\r\nb", Some("---\r\na: 1\r\n---\r\n"), "b"),
        ("---\ra: 1\r---\rb", Some("---\ra: 1\r---\r"), "b"),
        ("---  \na: 1\n--- \t\nb", Some("---  \na: 1\n--- \t\n"), "b"),
        ("---\n---", Some("---\n---"), ""),
        ("---\na: 1\nb", None, "---\na: 1\nb"),
        ("\n---\na: 1\n---\n", None, "\n---\na: 1\n---\n"),
        ("----\na: 1\n---\n", None, "----\na: 1\n---\n"),
        ("\u{feff}---\na: 1\n---\nb", Some("---\na: 1\n---\n"), "b"),
        ("\u{feff}b", None, "b"),
        ("", None, ""),
    ] {
        let note = markdown(text);
        assert_eq!(note.frontmatter.clone().map(|span| note.slice(span)), head, "{text:?}");
        assert_eq!(note.slice(note.body.clone()), body, "{text:?}");
        assert_eq!(note.warnings, [], "{text:?}");
    }
}

#[test]
fn frontmatter_values() {
    let note = markdown(
        "---\nTAGS: [a, '#b/c', two words, 7, A]\ntag: d\nalias: One\naliases:\n  - Two\n  - One\n  - 3\n\
         cssclass: wide\nyes: yes\non: true\nempty:\nn: 2024\nf: 1.5\nzip: 007\nday: 2024-02-29\n\
         at: 2024-02-29T10:00\nlist: [1, x, null]\nmap: {k: v}\nbig: 12345678901234567890\nnan: .nan\n\
         kind: !x y\n{{t}}: z\n---\n#e",
    );
    assert_eq!(note.warnings, []);
    assert_eq!(tags(&note), ["a", "b/c", "d", "e"]);
    assert_eq!(note.aliases, ["One", "Two"]);
    assert_eq!(
        serde_json::to_string(&note.properties).unwrap(),
        r#"{"yes":"yes","on":true,"empty":null,"n":2024,"f":1.5,"zip":"007","day":"2024-02-29","at":"2024-02-29T10:00","list":[1,"x",null],"map":{"k":"v"},"big":"12345678901234567890","nan":".nan","kind":"y","tags":["a","b/c","A","d"],"aliases":["One","Two"],"cssclasses":["wide"]}"#
    );
    assert!(matches!(note.properties.get("DAY"), Some(Property::Date(_))));
    assert!(matches!(note.properties.get("at"), Some(Property::DateTime(_))));
    for (yaml, expected) in [
        ("tags: a", vec!["a"]),
        ("tags: a, b,#c", vec!["a", "b", "c"]),
        ("tags: two words", vec!["two", "words"]),
        ("tags:", vec![]),
        ("tags: 5", vec![]),
        ("tags:\n- a\n- b", vec!["a", "b"]),
        ("Tag: a\nTags: b", vec!["a", "b"]),
    ] {
        let note = markdown(&format!("---\n{yaml}\n---\n"));
        assert_eq!((tags(&note), &note.warnings[..]), (expected, &[][..]), "{yaml:?}");
    }
}

#[test]
fn broken_frontmatter_is_a_warning_and_the_body_is_read() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]";
    let wide = format!("a: &a {}\nb: [{}]", "x".repeat(20_000), vec!["*a"; 10_000].join(","));
    for (yaml, line) in [
        ("a: [1\nb: 2".to_owned(), Some(3)),
        ("a: b: c".to_owned(), Some(2)),
        ("a: 1\n\tb: 2".to_owned(), Some(3)),
        ("just text".to_owned(), Some(2)),
        ("- a\n- b".to_owned(), Some(2)),
        ("a: *nope".to_owned(), Some(2)),
        ("a: \"open".to_owned(), None),
        ("x: 1\na: 1\nb: 2\na: 3".to_owned(), Some(5)),
        (format!("a: {}", "[".repeat(10_000)), Some(2)),
        (format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000)), Some(2)),
        (format!("a: {}", "{a: ".repeat(10_000)), Some(2)),
        ("- ".repeat(10_000), Some(2)),
        ("? ".repeat(10_000), Some(2)),
        ("a: |\n".to_owned() + &"  x\n".repeat(20_000), Some(1)),
        (bomb.to_owned(), None),
        (wide, None),
    ] {
        let note = markdown(&format!("---\n{yaml}\n---\n# H\n[[l]] #t"));
        let start: String = yaml.chars().take(30).collect();
        assert_eq!(note.warnings.len(), 1, "{start:?}: {:?}", note.warnings);
        assert_eq!(note.warnings[0].kind, WarningKind::Frontmatter);
        assert!(line.is_none() || note.warnings[0].line == line, "{start:?}: {:?}", note.warnings);
        assert!(note.warnings[0].line.is_some(), "{start:?}");
        assert_eq!((links(&note), tags(&note), note.title.text.as_str()), (vec!["l".into()], vec!["t"], "H"));
    }
}

#[test]
fn broken_frontmatter_is_text_and_its_entries_are_read_one_by_one() {
    for (yaml, tags_read, aliases, title) in [
        ("title: Dotty: a life\ntags: [family, dotty]", vec!["family", "dotty"], vec![], "Dotty: a life"),
        (
            "a: b: c\ntags:\n  - family\n  - '#dotty'\naliases:\n- Aunt D",
            vec!["family", "dotty"],
            vec!["Aunt D"],
            "name",
        ),
        ("a: b: c\ntags: family, dotty\nalias: 'D'", vec!["family", "dotty"], vec!["D"], "name"),
        ("a: b: c\ntags: #family #dotty", vec!["family", "dotty"], vec![], "name"),
        ("tags: [@home, work", vec!["@home", "work"], vec![], "name"),
        ("tags:\n  - @home\n  - work\ntitle: \"A\" house", vec!["@home", "work"], vec![], "A\" house"),
        ("aliases: [One, `Two`]\nTags: x\r\n\tb: 2", vec!["x"], vec!["One", "`Two`"], "name"),
        ("5 Harbour Street\nTel: 555\nDear tags: no", vec![], vec![], "name"),
    ] {
        let note = markdown(&format!("---\n{yaml}\n---\ntext"));
        let read: Vec<&str> = note.aliases.iter().map(String::as_str).collect();
        assert_eq!((tags(&note), read), (tags_read, aliases), "{yaml:?}");
        assert_eq!(note.title.text, title, "{yaml:?}");
        assert_eq!(note.warnings.len(), 1, "{yaml:?}");
        assert_eq!(note.slice(note.searched.clone()), format!("{yaml}\n---\ntext"));
        assert_eq!(note.slice(note.body.clone()), "text");
    }
    let note = markdown("---\nstatus: done\nup: \"[[Home]]\"\nwhat: a: b\n---\n");
    assert_eq!(serde_json::to_string(&note.properties).unwrap(), r#"{"status":"done","up":"[[Home]]","what":"a: b"}"#);
    assert_eq!(links(&note), [""; 0], "none that a tool could rewrite");
}

#[test]
fn inline_fields() {
    let note = markdown(
        "---\nrating: 1\n---\n# Log [of:: x]\n\nrating:: 5\ntext\n**Due**:: 2024-05-01 ^id\n\n- mood:: fine %%not%%\n  - [ ] place:: [[Pond]]\n\
         > quoted:: yes\n> again:: `a::b`\n\nA line [k:: v] (n:: 2).\n\n| a:: b | [cell:: c] |\n|---|---|\n| [d:: `e`] | f:: g |\n\n\
         `no:: code` [`no:: code`] $no:: m$ [no:: l](a.md) %%no:: c%%\n\n```\nno:: code\n[no:: code]\n```\n\n    no:: code\n\n<b a='no:: x'>",
    );
    let fields = serde_json::to_string(&note.fields).unwrap();
    assert_eq!(
        fields,
        r#"{"of":"x","rating":"5","Due":"2024-05-01","mood":"fine","place":"[[Pond]]","quoted":"yes","again":"`a::b`","k":"v","n":"2","cell":"c","d":"`e`"}"#
    );
    assert!(matches!(note.fields.get("due"), Some(Property::Date(_))));
}

#[test]
fn quoted_links_in_frontmatter() {
    for (yaml, expected) in [
        ("up: \"[[a]]\"", &["a"][..]),
        ("up: '[[a#h|b]]'", &["a#h|b"]),
        ("up: [\"[[a]]\", '[[b]]']", &["a", "b"]),
        ("up:\n  - \"[[a]]\"\n  - '[[b]]'", &["a", "b"]),
        ("m: {k: \"[[a]]\"}", &["a"]),
        ("up: [[a]]", &[]),
        ("up: \"see [[a]]\"", &[]),
        ("up: \"[[a]] [[b]]\"", &[]),
        ("# up: \"[[a]]\"\nx: \"[[b]]\" # \"[[b]]\"", &["b"]),
        ("x: it's \"[[a]]\"", &[]),
        ("x: |\n  y: \"[[a]]\"", &[]),
        ("x: '[[it''s]]'", &["it's"]),
        ("x: \"[[caf\\u00e9]]\"", &["café"]),
        ("\"[[k]]\": v", &[]),
        ("a: [\nb: \"[[a]]\"", &[]),
        ("tags: \"[[a]]\"\ntitle: '[[t]]'", &["a", "t"]),
    ] {
        assert_eq!(links(&markdown(&format!("---\n{yaml}\n---\n"))), expected, "{yaml:?}");
    }
    let note = markdown("---\nx: 1\nup: \"[[a]]\"\n---\n\n[[b]]");
    assert_eq!(note.links.iter().map(|link| link.line).collect::<Vec<_>>(), [3, 6]);
}

#[test]
fn bytes_that_are_not_text() {
    let note = note_of("a.md", b"one\r\n[[b]] \xff\xfe\nthree [[c]]");
    assert_eq!(links(&note), ["b", "c"]);
    assert_eq!(note.warnings.len(), 1);
    assert_eq!((note.warnings[0].kind, note.warnings[0].line), (WarningKind::Encoding, Some(2)));
    let note =
        parse(&VaultPath::new("a.md").unwrap(), b"12345", &ParseOptions { max_bytes: 4, ..ParseOptions::default() });
    assert_eq!((note.text.as_str(), note.title.text.as_str()), ("", "a"));
    assert_eq!(note.warnings[0].kind, WarningKind::TooLarge);
}

#[test]
fn lines_are_those_of_the_file() {
    let note = markdown("---\na: 1\n---\r\n\r[[b]]\r\n\n# c\n[[d]]");
    assert_eq!(note.links.iter().map(|link| link.line).collect::<Vec<_>>(), [5, 8]);
    assert_eq!(note.headings[0].line, 7);
}

#[test]
fn a_canvas_is_a_note() {
    let json = r###"{
  "nodes": [
    {"id": "1", "type": "text", "text": "# One\n\n[[a]] #t\n\n- x ^id\n- y"},
    {"id": "2", "type": "file", "file": "f/é#c.md", "subpath": "#Head"},
    {"id": "3", "type": "group", "label": "Group", "background": "bg.png"},
    {"id": "4", "type": "text", "text": "```\nopen"},
    {"id": "5", "type": "text", "text": "## Two\n![[c]]"},
    {"id": "6", "type": "link", "url": "https://a.b"},
    {"id": "7", "type": "text", "text": " "}
  ],
  "edges": [
    {"id": "8", "label": "to [[no]]", "fromNode": "1", "toNode": "2"}
  ]
}"###;
    let note = note_of("Board.canvas", json.as_bytes());
    assert_eq!(note.warnings, []);
    assert_eq!(
        note.text,
        "# One\n\n[[a]] #t\n\n- x ^id\n- y\n\n```\nopen\n\n## Two\n![[c]]\n\nGroup\nhttps://a.b\nto [[no]]"
    );
    assert_eq!(note.body, 0..note.text.len());
    assert_eq!((note.title.text.as_str(), note.title.source), ("Board", TitleSource::FileName));
    assert_eq!(links(&note), ["a", "!c", "!f/é#c.md#Head", "!bg.png"]);
    assert_eq!(note.links.iter().map(|link| link.line).collect::<Vec<_>>(), [3, 7, 4, 5]);
    assert_eq!(tags(&note), ["t"]);
    let headings: Vec<_> = note.headings.iter().map(|h| (h.text.as_str(), h.line, h.parent)).collect();
    assert_eq!(headings, [("One", 3, None), ("Two", 7, None)]);
    assert!(note.blocks.iter().all(|block| block.kind == BlockKind::Node));
    assert_eq!(note.blocks.len(), 4);
    let seams: Vec<_> = note.blocks[0].seams.iter().map(|&seam| &note.text[seam..seam + 3]).collect();
    assert_eq!(seams, ["[[a", "- x", "- y"]);
    assert_eq!(note.block_ids[0].id, "id");
    assert_eq!(note.lines.line_at(note.text.len() - 1), 12);
}

#[test]
fn a_broken_canvas_gives_what_it_has() {
    for (json, text, warnings) in [
        ("", "", 0),
        (" \n", "", 0),
        ("{}", "", 0),
        ("\u{feff}{\"nodes\":[]}", "", 0),
        ("[]", "", 1),
        ("not json", "", 1),
        (r#"{"nodes":[{"type":"text","text":"a"},{"type":"text","te"#, "a", 1),
        (r#"{"nodes":[{"type":"text","text":"\ud800"},{"type":"text","text":"b"}]}"#, "b", 1),
        (r#"{"nodes":{"type":"text","text":"a"}}"#, "", 0),
        (r#"{"nodes":[[{"type":"text","text":"a"}],7,null,{"type":"text"}]}"#, "", 0),
        (r#"{"x":{"nodes":[{"type":"text","text":"a"}]},"nodes":[{"type":"text","text":"b]}"}]}"#, "b]}", 0),
    ] {
        let note = note_of("a.canvas", json.as_bytes());
        assert_eq!((note.text.as_str(), note.warnings.len()), (text, warnings), "{json:?} {:?}", note.warnings);
        assert!(note.warnings.iter().all(|w| w.kind == WarningKind::Canvas && w.line == Some(1)));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(note_of("a.canvas", deep.as_bytes()).warnings.len(), 1);
}

#[test]
fn a_canvas_that_is_none_says_so() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_node = format!("{{\"nodes\":[{{\"id\":{}1{}}}]}}", "[".repeat(1_000), "]".repeat(1_000));
    for json in ["[1, 2]", "1", "\"text\"", &deep, &deep_node] {
        let note = parse(&VaultPath::new("c.canvas").unwrap(), json.as_bytes(), &ParseOptions::default());
        assert_eq!(note.warnings.len(), 1, "{}", &json[..json.len().min(40)]);
        assert_eq!(note.warnings[0].kind, WarningKind::Canvas);
    }
}
