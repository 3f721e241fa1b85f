//! The parts of a body that are not prose, where names are not words and links cannot be added.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use super::Note;
use super::body::OPTIONS;
use super::mask::mask;

/// Links and their definitions, code, formulas and HTML of a note's body, ordered by their starts; they may overlap.
pub(crate) fn opaque_spans(note: &Note) -> Vec<Range<usize>> {
    let start = note.body.start;
    let masked = mask(&note.text[note.body.clone()], OPTIONS);
    let is_opaque = |event: &Event<'_>| {
        matches!(
            event,
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::CodeBlock(_) | Tag::HtmlBlock)
                | Event::Code(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_)
                | Event::Html(_)
                | Event::InlineHtml(_)
        )
    };
    let parser = Parser::new_ext(&masked.text, OPTIONS);
    let definitions: Vec<Range<usize>> =
        parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone()).collect();
    let events = parser.into_offset_iter();
    let mut spans: Vec<Range<usize>> = events
        .filter(|(event, _)| is_opaque(event))
        .map(|(_, span)| span)
        .chain(definitions)
        .map(|span| start + span.start..start + span.end)
        .chain(note.links.iter().map(|link| link.span.clone()))
        .collect();
    spans.sort_by_key(|span| span.start);
    spans
}

/// The blocks of code in a body.
pub(crate) fn code_blocks(body: &str) -> Vec<Range<usize>> {
    let masked = mask(body, OPTIONS);
    let events = Parser::new_ext(&masked.text, OPTIONS).into_offset_iter();
    events.filter(|(event, _)| matches!(event, Event::Start(Tag::CodeBlock(_)))).map(|(_, span)| span).collect()
}
