//! Any bytes become a note whose spans are within its text and match its contents. Seeds: notes and canvases.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use vault_index::note::{Note, ParseOptions, parse};
use vault_index::{FileKind, VaultPath};

fuzz_target!(|bytes: &[u8]| {
    let name = if bytes.starts_with(b"{") { "a.canvas" } else { "a.md" };
    let path = VaultPath::new(name).unwrap();
    let note = parse(&path, bytes, &ParseOptions::default());
    check(&note);
    if path.kind() == FileKind::Markdown {
        assert_eq!(note.text, String::from_utf8_lossy(bytes));
        assert_eq!(note.body.end, note.text.len());
    }
});

fn check(note: &Note) {
    let within = |span: &Range<usize>| note.text.get(span.clone()).is_some();
    assert!(within(&note.body) && note.frontmatter.as_ref().is_none_or(within));
    assert!(!note.title.text.is_empty());

    let mut at = note.body.start;
    for block in &note.blocks {
        assert!(within(&block.span) && !block.span.is_empty());
        assert!(at <= block.span.start, "blocks ascend and do not overlap");
        assert!(note.text[at..block.span.start].trim_ascii().is_empty(), "nothing is lost between blocks");
        assert!(block.seams.is_sorted_by(|a, b| a < b));
        assert!(
            block
                .seams
                .iter()
                .all(|&seam| { block.span.start < seam && seam < block.span.end && note.text.is_char_boundary(seam) })
        );
        at = block.span.end;
    }
    assert!(at <= note.body.end && note.text[at..note.body.end].trim_ascii().is_empty());

    for link in note.links.iter().filter(|link| !link.span.is_empty()) {
        assert_eq!(note.text.get(link.span.clone()), Some(link.raw.as_str()));
        assert_eq!(link.line, note.lines.line_at(link.span.start));
    }
    assert!(note.links.is_sorted_by_key(|link| link.span.start));

    for (index, heading) in note.headings.iter().enumerate() {
        assert!(within(&heading.span) && (1..=6).contains(&heading.level));
        assert!(heading.parent.is_none_or(|up| up < index && note.headings[up].level < heading.level));
        note.heading_source(index);
    }
    assert!(note.headings.is_sorted_by(|a, b| a.span.end <= b.span.start));
    assert!(note.block_ids.iter().all(|id| within(&id.span) && !id.id.is_empty()));
}
