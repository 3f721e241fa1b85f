//! Reads a canvas (JSON Canvas 1.0) as a note: its text nodes are the text, its file nodes are links.

use std::ops::Range;

use serde_json::Value;

use super::body::{self, BodyContents, trimmed};
use super::wikilink::tidy;
use super::{Block, BlockKind, LineMap, Link, LinkKind, Note};
use crate::error::{Warning, WarningKind};

/// Reads the JSON of a canvas into a note without a title. Invalid parts are skipped with a warning.
pub(super) fn read(json: &str) -> (Note, BodyContents) {
    let mut note = Note::default();
    let mut found = BodyContents::default();
    let json = json.strip_prefix('\u{feff}').unwrap_or(json);
    // Obsidian creates an empty file for an empty canvas.
    if json.trim().is_empty() {
        return (note, found);
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(json) {
        let message = format!("the canvas is not valid JSON; the part before the error is indexed: {error}");
        note.warnings.push(Warning::new(WarningKind::Canvas, message).on_line(error.line().max(1) as u32));
    } else if !json.trim_start().starts_with('{') {
        let message = "the canvas is not a JSON object with nodes and edges, so only its name is indexed";
        note.warnings.push(Warning::new(WarningKind::Canvas, message).on_line(1));
    }
    let file_lines = LineMap::of(json);
    let nodes = elements(json, "nodes", &file_lines, &mut note.warnings);
    let edges = elements(json, "edges", &file_lines, &mut note.warnings);

    let mut parts = Parts::default();
    for (node, line) in &nodes {
        if let (Some("text"), Some(text)) = (text_of(node, "type"), text_of(node, "text")) {
            parts.add(text, *line);
        }
    }
    let texts = parts.spans.len();
    let labels_and_addresses = nodes.iter().filter(|(node, _)| matches!(text_of(node, "type"), Some("group" | "link")));
    parts.add_labels(labels_and_addresses.chain(&edges));

    note.lines = LineMap::from_pairs(parts.lines);
    for span in &parts.spans[..texts] {
        let first = found.blocks.len();
        body::read(&parts.text, span.clone(), &note.lines, &mut found);
        join_blocks(&mut found.blocks, first, trimmed(&parts.text, span.clone()));
    }
    for span in &parts.spans[texts..] {
        join_blocks(&mut found.blocks, usize::MAX, trimmed(&parts.text, span.clone()));
    }
    for (node, line) in &nodes {
        let file = match text_of(node, "type") {
            Some("file") => text_of(node, "file"),
            Some("group") => text_of(node, "background"),
            _ => None,
        };
        if let Some(file) = file {
            found.links.push(file_link(file, text_of(node, "subpath"), *line, parts.text.len()));
        }
    }
    note.body = 0..parts.text.len();
    note.searched = note.body.clone();
    note.text = parts.text;
    (note, found)
}

fn text_of<'v>(node: &'v Value, key: &str) -> Option<&'v str> {
    node.get(key)?.as_str()
}

/// The combined text, and the positions of its parts.
#[derive(Default)]
struct Parts {
    text: String,
    spans: Vec<Range<usize>>,
    lines: Vec<(usize, u32)>,
}

impl Parts {
    fn add(&mut self, part: &str, line: u32) {
        if part.trim_ascii().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        let start = self.text.len();
        self.text.push_str(part);
        self.spans.push(start..self.text.len());
        self.lines.push((start, line));
    }

    /// Adds all labels, and the addresses of web page cards, as one part.
    fn add_labels<'n>(&mut self, labelled: impl Iterator<Item = &'n (Value, u32)>) {
        let mut start = None;
        for (node, line) in labelled {
            let label = text_of(node, "label").or(text_of(node, "url")).unwrap_or_default().trim_ascii();
            if label.is_empty() {
                continue;
            }
            match start {
                None if self.text.is_empty() => {}
                None => self.text.push_str("\n\n"),
                Some(_) => self.text.push('\n'),
            }
            start.get_or_insert(self.text.len());
            self.lines.push((self.text.len(), *line));
            self.text.push_str(label);
        }
        self.spans.extend(start.map(|start| start..self.text.len()));
    }
}

/// Joins the blocks from index `first` on into one, with seams where they start.
fn join_blocks(blocks: &mut Vec<Block>, first: usize, span: Range<usize>) {
    let inner = blocks.split_off(first.min(blocks.len()));
    let mut seams: Vec<usize> = Vec::new();
    for block in inner {
        seams.extend(std::iter::once(block.span.start).chain(block.seams).filter(|&seam| seam > span.start));
    }
    if !span.is_empty() {
        blocks.push(Block { kind: BlockKind::Node, span, seams, id: None });
    }
}

fn file_link(file: &str, subpath: Option<&str>, line: u32, at: usize) -> Link {
    let subpath = subpath.map(|subpath| subpath.trim().trim_start_matches('#').trim());
    // A path may contain `#` or `|` here, so it is not split.
    Link {
        kind: LinkKind::Embed,
        line,
        span: at..at,
        raw: file.to_owned(),
        path: tidy(file),
        subpath: subpath.filter(|subpath| !subpath.is_empty()).map(str::to_owned),
        display: None,
        definition: None,
    }
}

/// The readable objects of the array `key` of the top-level object, with their lines.
fn elements(json: &str, key: &str, lines: &LineMap, warnings: &mut Vec<Warning>) -> Vec<(Value, u32)> {
    let mut values = Vec::new();
    for span in element_spans(json.as_bytes(), key) {
        let line = lines.line_at(span.start);
        match serde_json::from_str::<Value>(&json[span]) {
            Ok(value) => values.push((value, line)),
            Err(error) if warnings.is_empty() => {
                let message = format!("one of the canvas's {key} is left out: {error}");
                warnings.push(Warning::new(WarningKind::Canvas, message).on_line(line));
            }
            Err(_) => {}
        }
    }
    values
}

/// The spans of the objects of the array `key`. This scans only brackets and strings, so that a truncated file still
/// gives its complete objects.
fn element_spans(json: &[u8], key: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut depth = 0usize;
    let mut last_string = 0..0;
    let mut inside = false;
    let mut start = 0;
    let mut at = 0;
    while at < json.len() {
        match json[at] {
            b'"' => {
                let from = at + 1;
                at = from;
                while at < json.len() && json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                if depth == 1 {
                    last_string = from..at.min(json.len());
                }
            }
            b'{' | b'[' => {
                if depth == 1 && json[at] == b'[' {
                    inside = json[last_string.clone()] == *key.as_bytes();
                }
                if depth == 2 {
                    start = at;
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 2 && inside && json[start] == b'{' {
                    spans.push(start..at + 1);
                }
                inside &= depth > 1;
            }
            _ => {}
        }
        at += 1;
    }
    spans
}
