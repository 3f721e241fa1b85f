//! Invariants of every note, for any bytes: property tests over noise and over malformed Markdown.

use proptest::prelude::*;

use super::*;
use crate::path::VaultPath;

/// Pieces with a meaning in Markdown, YAML or links.
const PIECES: &[&str] = &[
    "[[",
    "]]",
    "![[",
    "[",
    "]",
    "(",
    ")",
    "|",
    "\\|",
    "#",
    "# ",
    "## ",
    "^id",
    " ^id",
    "%%",
    "$",
    "$$",
    "`",
    "```\n",
    "~~~\n",
    "---\n",
    "---",
    "===\n",
    "- ",
    "* ",
    "1. ",
    "- [ ] ",
    "> ",
    "> [!note] ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    " ",
    "\\",
    "*",
    "**",
    "_",
    "~~",
    "==",
    "<!--",
    "-->",
    "<div>\n",
    "</div>",
    "<b>",
    "<a@b.c>",
    "<https://x>",
    "&amp;",
    "&#35;",
    "| a | b |\n",
    "|---|---|\n",
    "[^1]",
    "[^1]: ",
    "[r]: x.md\n",
    "[r]",
    "](n.md)",
    "](a%20b.md#h \"t\")",
    "!",
    "a",
    "b.md",
    "word",
    "é",
    "e\u{301}",
    "漢字",
    "🎉",
    "\u{a0}",
    "\u{200d}",
    "\u{feff}",
    "\0",
    "\u{1}",
    "\u{2}",
    "#tag",
    " #t/x ",
    "#t#u",
    "_#t_",
    "a_b",
    "https://x.y/",
    "5",
    "US$5",
    "title: x\n",
    "tags: [a, b]\n",
    "up: \"[[n]]\"\n",
    "aliases:\n  - y\n",
    "&a ",
    "*a",
    "{",
    "}",
    ": ",
    "'",
    "\"",
    "|\n",
    "?",
];

const CANVAS_PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"nodes\"",
    "\"edges\"",
    "\"type\"",
    "\"text\"",
    "\"file\"",
    "\"group\"",
    "\"label\"",
    "\\n",
    "\\\"",
    "\"",
    "\n",
    " ",
    "{\"nodes\":[",
    "{\"type\":\"text\",\"text\":\"# a\\n[[b]] ^c\"}",
    "{\"type\":\"file\",\"file\":\"é.md\"}",
    "{\"type\":\"group\",\"label\":\"g\"}",
    "\\ud800",
    "%%",
    "é",
];

const SAMPLE: &str = "---\ntitle: A note\ntags: [x, y/z]\nup: \"[[Parent|p]]\"\n---\n# A *note*\n\nSee [[One#Two|three]], ![[i.png|100]] and \
[four](five%20six.md#seven). #tag ^first\n\n- [ ] do [[it]]\n  - nested ^n\n1. x\n\n> [!tip]- Title\n> text [[q]]\n> - a\n\n| a | b |\n|---|---|\n\
| [[c\\|d]] | $x$ |\n\n^table\n\n```rust\n[[no]]\n```\n\n%% hidden [[no]] %%\n\n$$\nm\n$$\n\nSetext\n---\n[^1]: foot\n\n[r]: s.md\n";

fn soup(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(proptest::sample::select(pieces), 0..60).prop_map(|parts| parts.concat().into_bytes())
}

/// The sample with some bytes removed, doubled or replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edit = (0..SAMPLE.len(), 0..40usize, proptest::sample::select(PIECES));
    proptest::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        for (at, length, piece) in edits {
            let at = at.min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, piece.bytes());
        }
        bytes
    })
}

fn framed(inner: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    inner.prop_map(|inner| [b"---\n", &inner[..], b"\n---\nbody [[x]] #y"].concat())
}

fn check(name: &str, bytes: &[u8]) {
    let path = VaultPath::new(name).unwrap();
    let options = ParseOptions::default();
    let note = parse(&path, bytes, &options);
    assert_eq!(note, parse(&path, bytes, &options), "the same bytes give the same note");
    let text = note.text.as_str();
    let within = |span: &Range<usize>| text.get(span.clone()).is_some();

    assert!(within(&note.body));
    if path.kind() == crate::path::FileKind::Markdown {
        assert_eq!(text, String::from_utf8_lossy(bytes));
        let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let head = note.frontmatter.clone().unwrap_or(bom..bom);
        assert_eq!((head.start, head.end, note.body.end), (bom, note.body.start, text.len()));
        assert!(within(&note.searched) && (bom..=note.body.start).contains(&note.searched.start));
    }
    assert!(!note.title.text.is_empty() && !note.title.text.contains(['\n', '\r']));

    let mut at = note.body.start;
    for block in &note.blocks {
        assert!(within(&block.span) && !block.span.is_empty());
        assert!(block.span.start >= at, "blocks ascend and do not overlap");
        assert!(text[at..block.span.start].trim_ascii().is_empty(), "only white space lies between blocks");
        let seams: Vec<usize> = [block.span.start].into_iter().chain(block.seams.iter().copied()).collect();
        assert!(seams.is_sorted_by(|a, b| a < b) && seams.iter().all(|&seam| seam < block.span.end));
        assert!(seams.iter().all(|&seam| text.is_char_boundary(seam)));
        at = block.span.end;
    }
    assert!(at <= note.body.end && text[at..note.body.end].trim_ascii().is_empty());

    assert!(note.links.windows(2).all(|pair| pair[0].span != pair[1].span || pair[0].span.is_empty()), "each once");
    let mut at = 0;
    for link in &note.links {
        assert!(link.span.start >= at, "links ascend");
        at = link.span.start;
        if link.span.is_empty() {
            assert_eq!(link.span.start, text.len());
            continue;
        }
        assert_eq!(text.get(link.span.clone()), Some(link.raw.as_str()));
        assert!(!link.path.is_empty() || link.subpath.is_some());
        assert_eq!(link.path.trim(), link.path);
        assert_eq!(link.line, note.lines.line_at(link.span.start));
    }
    for (index, heading) in note.headings.iter().enumerate() {
        assert!(within(&heading.span) && (1..=6).contains(&heading.level));
        assert!(heading.parent.is_none_or(|up| up < index && note.headings[up].level < heading.level));
        assert_eq!(heading.line, note.lines.line_at(heading.span.start));
        note.heading_source(index);
        assert_eq!(note.heading_path(index).last(), Some(&heading.text.as_str()));
    }
    assert!(note.headings.is_sorted_by(|a, b| a.span.end <= b.span.start));
    assert!(note.block_ids.iter().all(|id| within(&id.span) && !id.id.is_empty()));
    let mut keys: Vec<TagKey> = note.tags.iter().map(Tag::key).collect();
    keys.sort();
    assert!(keys.is_sorted_by(|a, b| a < b), "each tag once");
    if path.kind() == crate::path::FileKind::Markdown {
        let spans = tag_spans(text);
        assert!(
            spans.is_sorted_by(|a, b| a.end <= b.start) && spans.iter().all(|span| text[span.clone()].starts_with('#'))
        );
        let inline: std::collections::BTreeSet<TagKey> =
            spans.iter().map(|span| TagKey::new(&text[span.clone()])).collect();
        assert!(inline.iter().all(|key| keys.binary_search(key).is_ok()), "each is a tag of the note");
        assert!(note.frontmatter.is_some() || inline.len() == keys.len(), "and each tag stands somewhere");
        let mut line = 1;
        for at in 0..text.len() {
            assert_eq!(note.lines.line_at(at), line);
            let rest = &text.as_bytes()[at..];
            line += u32::from(rest[0] == b'\n' || (rest[0] == b'\r' && rest.get(1) != Some(&b'\n')));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check("a.md", &bytes);
        check("a.canvas", &bytes);
    }

    #[test]
    fn markdown_soup(bytes in soup(PIECES)) {
        check("a.md", &bytes);
    }

    #[test]
    fn frontmatter_soup(bytes in framed(soup(PIECES))) {
        check("a.md", &bytes);
    }

    #[test]
    fn a_note_gone_wrong(bytes in mutated()) {
        check("a.md", &bytes);
        let text = serde_json::to_string(&String::from_utf8_lossy(&bytes)).unwrap();
        let json = format!(r#"{{"nodes":[{{"type":"text","text":{text}}},{{"type":"text","text":{text}}}]}}"#);
        check("a.canvas", json.as_bytes());
    }

    #[test]
    fn canvas_soup(bytes in soup(CANVAS_PIECES)) {
        check("a.canvas", &bytes);
    }
}
