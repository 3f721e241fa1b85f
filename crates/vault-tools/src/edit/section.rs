//! Finds parts of a note: a section by its heading, a block by its id, lines; and lists the headings.

use std::collections::BTreeSet;
use std::ops::Range;

use vault_index::VaultPath;
use vault_index::links::heading_at;
use vault_index::note::{BlockKind, Note, ParseOptions, parse};

use crate::error::{Error, ErrorKind, Result};

/// The maximum number of headings or blocks that an error lists.
const MAX_NAMED: usize = 20;

/// The position of a section in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// 1 to 6.
    pub level: u8,
    /// The line of its heading, from 1.
    pub line: u32,
    /// The heading, without its line ending.
    pub heading: Range<usize>,
    /// Everything after the heading's line, up to the next heading of the same or a higher level.
    pub body: Range<usize>,
}

/// Finds the section of a heading: `Plan`, `## Plan`, or with the headings above it, `Work#Plan`.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the headings of the note; [`ErrorKind::Ambiguous`] if several headings match, or only
/// one of another level.
pub fn find_section(text: &str, heading: &str) -> Result<Section> {
    let note = note(text);
    section(&note, heading)?.ok_or_else(|| {
        let mut there: Vec<String> = note.headings.iter().map(|heading| format!("{:?}", heading.text)).collect();
        there.truncate(MAX_NAMED);
        let error = Error::new(ErrorKind::NotFound, format!("there is no heading {:?}", title(heading)));
        match there.is_empty() {
            true => error.with_remedy("the note has no headings"),
            false => error.with_remedy(format!("the headings are {}", there.join(", "))),
        }
    })
}

/// Finds the block with an id as written in `[[note#^id]]`, with or without `^`.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the ids of the note.
pub fn find_block(text: &str, id: &str) -> Result<Range<usize>> {
    let note = note(text);
    let id = id.trim().trim_start_matches('^');
    let found = note.block_ids.iter().find(|block| block.id.eq_ignore_ascii_case(id));
    found.map(|block| block.span.clone()).ok_or_else(|| {
        let ids: Vec<String> = note.block_ids.iter().take(MAX_NAMED).map(|block| format!("^{}", block.id)).collect();
        let error = Error::new(ErrorKind::NotFound, format!("there is no block ^{id}"));
        match ids.is_empty() {
            true => error.with_remedy("the note has no block ids"),
            false => error.with_remedy(format!("the blocks are {}", ids.join(", "))),
        }
    })
}

/// Finds lines, counted from 1: `3-9`, `3-` up to the end, or `3`. Lines after the last are ignored.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for another form, and for lines that are all after the last one.
pub fn find_lines(text: &str, lines: &str) -> Result<Range<usize>> {
    let wrong = || {
        Error::new(ErrorKind::InvalidArguments, format!("`{lines}` is not a range of lines"))
            .with_remedy("write 3-9, 3- or 3; lines count from 1")
    };
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let (first, last) = match lines.split_once('-') {
        Some((first, last)) if last.trim().is_empty() => (number(first)?, usize::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(lines)?, number(lines)?),
    };
    if first == 0 || last < first {
        return Err(wrong());
    }
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts.by_ref().nth(first - 1).filter(|start| *start < text.len() || first == 1);
    let Some(start) = start else {
        let there = text.lines().count();
        return Err(Error::new(ErrorKind::InvalidArguments, format!("the note has only {there} lines")));
    };
    Ok(start..starts.nth(last - first).unwrap_or(text.len()))
}

/// Lists the headings of a note, one per line: `12: ## Log (340 bytes)`, with the line and the size of its section.
pub fn outline(text: &str) -> String {
    let note = note(text);
    let mut lines = String::new();
    for (at, heading) in note.headings.iter().enumerate() {
        let section = section_at(&note, at);
        let marks = "#".repeat(usize::from(heading.level));
        let bytes = section.body.end - section.heading.start;
        lines.push_str(&format!("{}: {marks} {} ({bytes} bytes)\n", heading.line, heading.text));
    }
    lines
}

/// Parses a Markdown text, without a size limit.
pub(crate) fn note(text: &str) -> Note {
    match VaultPath::new("-.md") {
        Some(path) => parse(&path, text.as_bytes(), &ParseOptions { max_bytes: usize::MAX, ..ParseOptions::default() }),
        None => Note::default(),
    }
}

/// The structure that an edit of lines or words must preserve: headings by their levels, link targets, and the number
/// of code blocks.
pub(super) fn structure(text: &str) -> (Vec<u8>, Vec<String>, usize) {
    let note = note(text);
    let code = note.blocks.iter().filter(|block| block.kind == BlockKind::Code).count();
    let levels = note.headings.iter().map(|heading| heading.level).collect();
    (
        levels,
        note.links.into_iter().map(|link| format!("{}#{}", link.path, link.subpath.unwrap_or_default())).collect(),
        code,
    )
}

/// Returns the labels of the footnotes that a text defines.
pub(super) fn footnotes(text: &str) -> BTreeSet<String> {
    let note = note(text);
    let others = note.blocks.iter().filter(|block| block.kind == BlockKind::Other);
    let lines = others.flat_map(|block| text[block.span.clone()].lines());
    let label = |line: &str| line.trim_start().strip_prefix("[^")?.split_once("]:").map(|(label, _)| label.to_owned());
    lines.filter_map(label).collect()
}

/// Returns a heading without the `#` characters before it.
pub(super) fn title(heading: &str) -> &str {
    heading.trim().trim_start_matches('#').trim()
}

pub(super) fn section(note: &Note, heading: &str) -> Result<Option<Section>> {
    let (all, of_level) = fitting(note, heading);
    let name = title(heading);
    let line = |at: &usize| note.headings[*at].line.to_string();
    let (several, message) = match (&all[..], &of_level[..]) {
        ([], _) => return Ok(None),
        (_, [at]) => return Ok(Some(section_at(note, *at))),
        (others, []) => {
            let others = &others[..others.len().min(MAX_NAMED)];
            let levels = others
                .iter()
                .map(|at| format!("the one in line {} is of level {}", line(at), note.headings[*at].level));
            (others, format!("no heading of this level is {name:?}: {}", levels.collect::<Vec<_>>().join(", ")))
        }
        (_, several) => {
            let shown = &several[..several.len().min(MAX_NAMED)];
            let lines: Vec<String> = shown.iter().map(line).collect();
            (shown, format!("{} headings are {name:?}, in the lines {}", several.len(), lines.join(", ")))
        }
    };
    let spelled = several.iter().map(|at| (at, spelled(note, *at)));
    let (unique, alike): (Vec<_>, Vec<_>) = spelled.partition(|(at, name)| fitting(note, name).1 == [**at]);
    let mut remedies = Vec::new();
    if !unique.is_empty() {
        let names: Vec<String> = unique.iter().map(|(_, name)| format!("`{name}`")).collect();
        remedies.push(format!("write {}", names.join(" or ")));
    }
    if !alike.is_empty() {
        let lines: Vec<String> = alike.iter().map(|(at, _)| line(at)).collect();
        remedies.push(format!("nothing tells apart those in the lines {}: use edit_note there", lines.join(", ")));
    }
    Err(Error::new(ErrorKind::Ambiguous, message).with_remedy(remedies.join("; ")))
}

/// Returns the headings that match a name, by their index, and those of them that also have its level, if it has one.
fn fitting(note: &Note, heading: &str) -> (Vec<usize>, Vec<usize>) {
    let all = named(note, title(heading));
    let level = heading.trim().bytes().take_while(|byte| *byte == b'#').count();
    let is_of_level = |at: &usize| level == 0 || usize::from(note.headings[*at].level) == level;
    let of_level = all.iter().copied().filter(is_of_level).collect();
    (all, of_level)
}

/// Returns the headings with exactly this text; or else the first of those that a link with this subpath can
/// refer to.
fn named(note: &Note, wanted: &str) -> Vec<usize> {
    let is_exact = |at: &usize| note.heading_source(*at) == wanted || note.headings[*at].text == wanted;
    let mut found: Vec<usize> = (0..note.headings.len()).filter(is_exact).collect();
    if !found.is_empty() {
        return found;
    }
    let mut sources: Vec<(u8, &str)> =
        note.headings.iter().enumerate().map(|(at, heading)| (heading.level, note.heading_source(at))).collect();
    // Longer than `wanted`, so that the heading that was found does not match again, and still has others below it.
    let other = format!("{wanted}x");
    while found.len() < MAX_NAMED
        && let Some(at) = heading_at(&sources, wanted)
    {
        found.push(at);
        sources[at].1 = &other;
    }
    found
}

/// Writes a heading with its level and all headings above it: `### Work#2026#Log`.
fn spelled(note: &Note, at: usize) -> String {
    let mut level = note.headings[at].level;
    let mut path = vec![note.heading_source(at)];
    for (above, heading) in note.headings[..at].iter().enumerate().rev() {
        if heading.level < level {
            level = heading.level;
            path.insert(0, note.heading_source(above));
        }
    }
    format!("{} {}", "#".repeat(usize::from(note.headings[at].level)), path.join("#"))
}

/// Returns the section of a note's heading, by its index.
fn section_at(note: &Note, at: usize) -> Section {
    let found = &note.headings[at];
    let next = note.headings[at + 1..].iter().find(|next| next.level <= found.level);
    let line_end = note.text[found.span.end..].find('\n').map_or(note.text.len(), |end| found.span.end + end + 1);
    let heading = found.span.start..note.text[..found.span.end].trim_end_matches(['\r', '\n']).len();
    let end = next.map_or(note.text.len(), |next| line_start(&note.text, next.span.start));
    let body = if found.span.end > heading.end { found.span.end..end } else { line_end.min(end)..end };
    Section { level: found.level, line: found.line, heading, body }
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}
