//! Invariants of chunking, and the texts that models get.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::plain::plain;
use super::*;
use crate::note::BlockKind;
use crate::note::{ParseOptions, parse};
use crate::path::VaultPath;

/// Counts words between white space.
struct Words;
/// Counts a token for every started four bytes.
struct Fours;
/// Counts a token per byte, which is the maximum.
struct Bytes;
/// Counts more tokens for joined parts than for separate ones.
struct Clingy;
/// Adds up the bytes that are counted.
struct Work(AtomicUsize);

impl TokenCount for Words {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

impl TokenCount for Fours {
    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }
}

impl TokenCount for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }
}

impl TokenCount for Clingy {
    fn count(&self, text: &str) -> usize {
        let words = text.split_whitespace().count();
        if words > 20 { (words * 3 / 2).min(text.len()) } else { words }
    }
}

impl TokenCount for Work {
    fn count(&self, text: &str) -> usize {
        self.0.fetch_add(text.len(), Ordering::Relaxed);
        text.len().div_ceil(4)
    }
}

fn note(text: &str) -> Note {
    note_at("Folder/File name.md", text)
}

fn note_at(path: &str, text: &str) -> Note {
    parse(&VaultPath::new(path).unwrap(), text.as_bytes(), &ParseOptions::default())
}

fn options(max_tokens: usize) -> ChunkOptions {
    ChunkOptions { max_tokens, max_context_tokens: max_tokens / 4, min_tokens: max_tokens / 10 }
}

fn embedded(note: &Note, chunk: &Chunk, tokens: &dyn TokenCount, options: &ChunkOptions) -> String {
    let title = (note.title.source != TitleSource::FileName).then_some(note.title.text.as_str());
    embedded_text(title, &chunk.headings, note.slice(chunk.span.clone()), tokens, options)
}

/// Checks that hold for all chunks of all notes.
fn check_laws(note: &Note, tokens: &dyn TokenCount, options: &ChunkOptions) -> Vec<Chunk> {
    let chunks = chunk(note, tokens, options);
    let body = note.slice(note.searched.clone());
    assert_eq!(chunks.is_empty(), body.trim().is_empty());
    let mut at = note.searched.start;
    for chunk in &chunks {
        assert_eq!(chunk.span.start, at);
        assert!(chunk.span.end > at);
        at = chunk.span.end;
        let first = note.lines.line_at(chunk.span.start);
        let last = note.lines.line_at(chunk.span.end - 1);
        assert!(first <= chunk.lines.0 && chunk.lines.0 <= chunk.lines.1 && chunk.lines.1 <= last);
        let text = embedded(note, chunk, tokens, options);
        assert!(tokens.count(&text) <= options.window(), "{} tokens: {text:?}", tokens.count(&text));
    }
    if !chunks.is_empty() {
        assert_eq!(at, note.searched.end);
    }
    assert_eq!(chunks, chunk(note, tokens, options));
    chunks
}

/// Chunks with a window of this number of words, each on its line: `headings | text`, with spaces for line breaks.
fn check(window: usize, text: &str, expected: &[&str]) {
    let note = note(text);
    let shown: Vec<String> = check_laws(&note, &Words, &options(window))
        .iter()
        .map(|c| {
            let text: Vec<&str> = note.slice(c.span.clone()).split_whitespace().collect();
            format!("{} | {}", c.headings.join(" > "), text.join(" "))
        })
        .collect();
    assert_eq!(shown, expected, "{text:?}");
}

fn words(prefix: &str, count: usize) -> String {
    (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_note_that_fits_is_one_chunk() {
    check(16, "One.\n\n# A\n\ntext\n\n## B\n\nmore\n", &[" | One. # A text ## B more"]);
    check(16, "# A\n\ntext\n\n## B\n\nmore", &["A | # A text ## B more"]);
    check(16, "---\ntitle: x\n---\n\ntext", &[" | text"]);
    check(16, "", &[]);
    check(16, "---\na: 1\n---\n \n\n", &[]);
}

#[test]
fn sections_are_chunks() {
    let (a, b, c) = (words("a", 12), words("b", 12), words("c", 12));
    check(
        20,
        &format!("# T\n\n## A\n\n{a}\n\n## B\n\n{b}\n\n### C\n\n{c}\n"),
        &[&format!("T | # T ## A {a}"), &format!("T > B | ## B {b}"), &format!("T > B > C | ### C {c}")],
    );
    // A section that fits with its subsections is one chunk.
    check(
        30,
        &format!("# T\n\nintro words here\n\n## A\n\n{a}\n\n## B\n\n{b}\n\n### C\n\nc1 c2\n"),
        &["T | # T intro words here", &format!("T > A | ## A {a}"), &format!("T > B | ## B {b} ### C c1 c2")],
    );
}

#[test]
fn small_sections_are_joined() {
    let (a, b) = (words("a", 20), words("b", 24));
    check(
        30,
        &format!("# T\n\n## A\n\n{a}\n\n## S\n\ns\n\n## R\n\nr\n\n## B\n\n{b}\n\n## Z\n\nz\n"),
        &[&format!("T | # T ## A {a}"), "T | ## S s ## R r", &format!("T | ## B {b} ## Z z")],
    );
}

#[test]
fn long_sections_are_cut_evenly_between_blocks() {
    let (a, b, c, d) = (words("a", 10), words("b", 10), words("c", 10), words("d", 4));
    check(26, &format!("# T\n\n{a}\n\n{b}\n\n{c}\n\n{d}\n"), &[&format!("T | # T {a} {b}"), &format!("T | {c} {d}")]);
}

#[test]
fn blocks_are_cut_at_their_seams() {
    let items = |n: usize| (0..n).map(|i| format!("- i{i} x y z\n")).collect::<String>();
    let shown = |from: usize, to: usize| (from..to).map(|i| format!("- i{i} x y z")).collect::<Vec<_>>().join(" ");
    check(16, &items(6), &[&format!(" | {}", shown(0, 3)), &format!(" | {}", shown(3, 6))]);
    check(
        16,
        "- a b c d e\n  - f g h\n  - i j k l\n- m n o p\n  - q r\n- s t\n",
        &[" | - a b c d e - f g h - i j k l", " | - m n o p - q r - s t"],
    );
    check(
        16,
        "One two three four five six. Seven eight nine ten eleven. Twelve e.g. thirteen fourteen 1. fifteen sixteen! Seventeen.",
        &[
            " | One two three four five six. Seven eight nine ten eleven.",
            " | Twelve e.g. thirteen fourteen 1. fifteen sixteen! Seventeen.",
        ],
    );
    check(
        16,
        "```rust\na b c d\ne f g h\n\ni j k l\nm n o p\nq r s t\n```\n",
        &[" | ```rust a b c d e f g h", " | i j k l m n o p q r s t ```"],
    );
}

#[test]
fn code_that_fits_is_not_torn_for_its_heading() {
    let code = words("c", 14);
    check(
        16,
        &format!("# T\n\n{}\n\n```\n{code}\n```\n\nend\n", words("a", 14)),
        &[&format!("T | # T {}", words("a", 14)), &format!("T | ``` {code} ``` end")],
    );
}

#[test]
fn text_without_borders_is_cut_between_characters() {
    let word = "日本語".repeat(40);
    let note = note(&word);
    let chunks = check_laws(&note, &Fours, &options(16));
    assert!(chunks.len() <= 8, "{}", chunks.len());
}

#[test]
fn nodes_of_a_canvas_share_no_chunk() {
    let canvas = r##"{"nodes":[
        {"id":"1","type":"text","text":"# One\n\ntext","x":0,"y":0,"width":1,"height":1},
        {"id":"2","type":"text","text":"Two","x":0,"y":0,"width":1,"height":1}],"edges":[]}"##;
    let note = note_at("a.canvas", canvas);
    let texts: Vec<&str> =
        check_laws(&note, &Words, &options(100)).iter().map(|c| note.slice(c.span.clone()).trim()).collect();
    assert_eq!(texts, ["# One\n\ntext", "Two"]);
}

#[test]
fn embedded_texts() {
    fn check(text: &str, expected: &[&str]) {
        let note = note(text);
        let options = ChunkOptions { max_tokens: 16, max_context_tokens: 5, min_tokens: 2 };
        let texts: Vec<String> = check_laws(&note, &Words, &options)
            .iter()
            .map(|chunk| embedded(&note, chunk, &Words, &options).replace('\n', " / "))
            .collect();
        assert_eq!(texts, expected, "{text:?}");
    }
    check("only text", &["only text"]);
    check("# Title\n\ntext", &["Title / text"]);
    check("Title\n=====\n\ntext", &["Title / text"]);
    check("---\ntitle: Other\n---\n# Title\n\ntext", &["Other / Title / text"]);
    check("---\ntitle: Title\n---\n# Title\n\ntext", &["Title / text"]);
    let (a, b) = (words("a", 11), words("b", 11));
    check(&format!("# Title\n\n{a}\n\n## Sub\n\n{b}\n"), &[&format!("Title / {a}"), &format!("Title / Sub / {b}")]);
    // The title is left out before the innermost heading, the outer headings before the title.
    check(
        &format!("# T1 t2 t3\n\n## Outer o2\n\n### In i2\n\n{a} a a\n\n{b} b b\n"),
        &[
            "T1 t2 t3 / Outer o2 / In i2 / a0 a1 a2 a3",
            "T1 t2 t3 / In i2 / a4 a5 a6 a7 a8 a9 a10 a a / b0 b1",
            "T1 t2 t3 / In i2 / b2 b3 b4 b5 b6 b7 b8 b9 b10 b b",
        ],
    );
    check("---\n", &[""]);
}

#[test]
fn a_title_of_the_file_has_its_own_text() {
    let path = VaultPath::new("Folder/File name.md").unwrap();
    let own_text = |text: &str| file_title_text(&note(text), &path);
    assert_eq!(own_text("text").as_deref(), Some("File name"));
    assert_eq!(own_text("# Title").as_deref(), Some("File name"));
    for said in ["# File name", "# file-name", "---\ntitle: Title\n---\n# Another"] {
        assert_eq!(own_text(said), None, "{said}");
    }
}

#[test]
fn markup_is_left_out() {
    for (text, expected) in [
        ("## Heading\n\ntext **bold** *it* _it_ ~~gone~~ ==mark==", "Heading\ntext bold it it gone mark"),
        ("[[a|b]] [[a]] [[a#b]] [[x/a#^id]] [[#h]] ![[i.png|100]] ![[n|shown]]", "b a a b a h i.png shown"),
        ("[a](http://x.y/z_(w)) ![alt](i.png \"t\") [a][b] <https://x.y> https://x.y/a_b", "a alt ab"),
        ("- [ ] task\n- item\n  1. one\n> [!note]- Title\n> > deep", "task\nitem\n1. one\nTitle\ndeep"),
        ("| a | b |\n| --- | :-: |\n| [[x\\|y]] | 2 |", "a b\ny 2"),
        ("a<br>b <span class=\"x\">c</span> 1 < 2 > 1", "a b c  1 < 2 > 1"),
        ("```rust\nlet a = b[0]; // **x**\n```\nafter *it*", "rust\nlet a = b[0]; // **x**\nafter it"),
        ("use `a[0] **b**` now", "use a[0] **b** now"),
        ("2*3 a * b snake_case __init__ a == b ~5", "2*3 a * b snake_case init a == b ~5"),
        ("text ^id-1\n%%hidden%% #tag C# \\*no\\*", "text\n tag C# *no*"),
        ("a %%b%% c %% d\n%%\ne\n\nf\n%% g\n<!-- h > i --> j\n<!--\nk\n-->\n%% l", "a  c  d\ng\n j\n l"),
        ("```\n%%a%%\n%%\n```\n%%", "%%a%%\n%%"),
        (
            "[![Build](https://b.c/d.svg)](https://b.c) see (https://x.y/z), httpd://日本 `curl ftp://a`",
            " see ( 日本 curl",
        ),
        ("[![a](b) c](d) [![e]", "a c e"),
        ("a[^1] b [^ c\n***\n---", "a b ^ c"),
        ("日本*語*です", "日本語です"),
        ("", ""),
        ("\n \n", ""),
    ] {
        assert_eq!(plain(text), expected, "{text:?}");
    }
}

#[test]
fn what_a_person_sees() {
    for (text, expected) in [
        ("## Heading\n\ntext **bold** [[a|b]] [[a#b]] [c](http://x.y) ==mark==", "› Heading\ntext bold b a > b c mark"),
        ("- [ ] task\n* item\n  1. one\n> [!note]- Title\n> > deep", "- [ ] task\n- item\n1. one\nTitle\ndeep"),
        ("| a | b |\n| --- | :-: |\n| [[x\\|y]] | | 2 |", "a · b\ny · 2"),
        (
            "```rust\nlet a = b[0]; // **x**\n```\n---\n***\n- \n#tag https://x.y",
            "let a = b[0]; // **x**\n#tag https://x.y",
        ),
        (
            "$a_1 * b_1$ for $5 and $6, %%no%% $$\\frac{a}{b} = \\sqrt{c^2 + d^2}$$ so",
            "$a_1 * b_1$ for $5 and $6,  $…$ so",
        ),
        ("so\n$$\n\\sqrt{x}\n$$\nthen $$", "so\n$…$\nthen $$"),
        ("a $b", "a $b"),
        ("[a] b[0] ![c](d) [e](f) [x](", "[a] b[0] c e x("),
        ("-\n[a]: b.md \"A\"\n[^1]: note\n- [ ]", "note\n- [ ]"),
        ("", ""),
    ] {
        assert_eq!(readable(text), expected, "{text:?}");
    }
}

#[test]
fn time_is_linear_in_the_text() {
    let long = 1_000_000;
    for (name, text) in [
        ("one word", "a".repeat(long)),
        ("one line", "word ".repeat(long / 5)),
        ("one character", "字".repeat(long / 3)),
        ("sentences", "A sentence here. ".repeat(long / 17)),
        ("headings", (0..10_000).map(|i| format!("# Heading {i}\n")).collect()),
        ("deep headings", (0..10_000).map(|i| format!("{} H{i}\n\ntext {i}\n\n", "#".repeat(i % 6 + 1))).collect()),
        ("headings of nothing", format!("{}\n{}", words("a", 2000), "#\n".repeat(10_000))),
        ("a long heading", format!("# {}\n\n{}", "word ".repeat(100_000), "text ".repeat(50_000))),
        ("a flat list", "- item\n".repeat(long / 7)),
        ("a nested list", (0..500).map(|i| format!("{}- item\n", "  ".repeat(i))).collect()),
        ("a list on one line", "- ".repeat(20_000) + "item"),
        ("quotes", "> a\n>\n".repeat(50_000)),
        ("a table", "| a | b |\n|---|---|\n".to_owned() + &"| cell | cell |\n".repeat(50_000)),
        ("open brackets", "[[".repeat(long / 4)),
        ("links to nowhere", "](".repeat(long / 4)),
        ("tags that do not end", "<a ".repeat(long / 4)),
        ("ticks", (1..1200).map(|i| "`".repeat(i) + " ").collect()),
        ("blank lines", format!("a{}b", "\n".repeat(long / 2))),
        ("dollars", "$a ".repeat(long / 3)),
        ("short paragraphs", "a\n\n".repeat(100_000)),
    ] {
        let note = note(&text);
        let work = Work(AtomicUsize::new(0));
        let chunks = chunk(&note, &work, &ChunkOptions::default());
        let counted = work.0.into_inner();
        assert!(counted <= 12 * text.len() + 100_000, "{name}: {counted} bytes counted of {}", text.len());
        check_tiling(&note, &chunks);
    }
}

fn check_tiling(note: &Note, chunks: &[Chunk]) {
    let mut at = note.searched.start;
    for chunk in chunks {
        assert_eq!(chunk.span.start, at);
        at = chunk.span.end;
    }
    assert_eq!(at, note.searched.end);
}

/// Notes with all kinds of blocks, some of them too long for a small window.
fn markdown() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "word",
        "two",
        "e.g.",
        "end.",
        "Ende!",
        "[[link|shown]]",
        "**bold**",
        "日本語。",
        "日本語です",
        "https://example.org/a/b",
        "`code`",
        "é",
        "🚀",
        "#tag",
        "long-and-dashed-word",
        "[a](b)",
        "<br>",
        "\\*",
        "…",
    ]);
    let line = prop::collection::vec(word, 1..30).prop_map(|words| words.join(" ")).boxed();
    let lines = |prefix: &'static str| {
        prop::collection::vec(line.clone(), 1..6)
            .prop_map(move |lines| lines.iter().map(|line| format!("{prefix}{line}\n")).collect::<String>())
    };
    let block = prop_oneof![
        3 => (1..7usize, line.clone()).prop_map(|(level, line)| format!("{} {}\n", "#".repeat(level), &line[..line.floor_char_boundary(20)])),
        4 => line.clone(),
        2 => lines("- "),
        1 => lines("  - "),
        1 => lines("> "),
        1 => lines("").prop_map(|code| format!("```\n{code}```\n")),
        1 => lines("| ").prop_map(|rows| format!("| a | b |\n| --- | --- |\n{rows}")),
        1 => "\\PC{0,80}",
        1 => "[ \\t\\n#>|*-]{0,20}",
        1 => "[ #>|`*-]{0,9}",
        1 => "[a-z]{100,300}",
        1 => Just("---\n".to_owned()),
        1 => Just("%%\nhidden\n%%\n".to_owned()),
    ];
    let title = prop_oneof![
        Just(String::new()),
        Just("---\ntitle: A title of words\n---\n".to_owned()),
        Just("\u{feff}".to_owned())
    ];
    (title, prop::collection::vec((block, prop::sample::select(vec!["\n", "\n\n", "\n\n\n", "\r\n\r\n"])), 0..14))
        .prop_map(|(title, blocks)| title + &blocks.into_iter().map(|(block, gap)| block + gap).collect::<String>())
}

proptest! {
    #[test]
    fn chunks_tile_the_body_and_fit_the_window(text in markdown(), window in 16..120usize) {
        let note = note(&text);
        for tokens in [&Words as &dyn TokenCount, &Fours, &Bytes, &Clingy] {
            check_laws(&note, tokens, &options(window));
        }
    }

    #[test]
    fn only_what_is_too_long_is_torn(text in markdown(), window in 16..120usize) {
        let note = note(&text);
        let options = options(window);
        let room = options.window() - options.max_context_tokens.min(options.window() / 2);
        for border in chunk(&note, &Words, &options).iter().skip(1).map(|chunk| chunk.span.start) {
            let Some(block) = note.blocks.iter().find(|b| b.span.start < border && border < b.span.end) else {
                continue;
            };
            let start = block.seams.iter().rfind(|seam| **seam < border).map_or(block.span.start, |seam| *seam);
            let end = block.seams.iter().find(|seam| **seam >= border).map_or(block.span.end, |seam| *seam);
            let at_seam = block.seams.iter().any(|seam| note.text[border.min(*seam)..*seam].trim_matches([' ', '\t', '>']).is_empty() && *seam >= border);
            let torn = match block.kind {
                BlockKind::Code | BlockKind::Table | BlockKind::Math => block.span.clone(),
                BlockKind::List if !at_seam => start..end,
                BlockKind::Heading => block.span.clone(),
                _ => continue,
            };
            let tokens = Words.count(&plain(note.slice(torn.clone())));
            prop_assert!(tokens > room, "{:?} has {} tokens, room is {}", note.slice(torn), tokens, room);
        }
    }

    #[test]
    fn parts_have_the_words_of_the_whole(text in markdown()) {
        // Only a parser can tell whether indented ticks are a fence, or signs in a line begin a comment that ends on
        // another line; the counts may be off then.
        let is_alone = |line: &str, mark: &str| line == mark || !line.contains(&mark[..2]);
        prop_assume!(text.lines().all(|line| is_alone(line, "```") && is_alone(line, "%%")));
        let note = note(&text);
        let words = |text: &str| plain(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut parts = Vec::new();
        for part in parts_spans(&note) {
            parts.extend(words(note.slice(part)));
        }
        prop_assert_eq!(parts, words(note.slice(note.searched.clone())));
    }
}

fn parts_spans(note: &Note) -> Vec<Range<usize>> {
    let options = ChunkOptions::default();
    let chunker = Chunker::new(note, &Words, &options);
    (0..chunker.parts.len()).map(|at| chunker.span(&(at..at + 1))).collect()
}
