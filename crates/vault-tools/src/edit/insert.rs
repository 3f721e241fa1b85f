//! Adds text to a note: at its end, at either end of a section, before or after a block; and replaces a section.
//!
//! The added text is separated by blank lines from the text around it, unless it continues a list, table or quote
//! there. Text is refused where an unclosed block would swallow it, and so is text that would itself swallow the text
//! after it.

use vault_index::likeness::{likeness, nearest};
use vault_index::note::{Block, BlockKind, Note, frontmatter_span};

use super::section::{Section, find_block, find_section, line_start, note, section, title};
use super::spans::{LineEnding, offset_of, position_of};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Position;

/// The level of a new heading that does not specify its own.
const NEW_LEVEL: usize = 2;

const NOTE_IS_OPEN: &str = "the note ends in something that is not closed, which would swallow the added text";
const PLACE_IS_OPEN: &str = "something is open there, which would swallow the added text";
const TEXT_IS_OPEN: &str = "the added text has something that is not closed, which would swallow what follows";

/// The result of [`append_to_end`] and [`append_to_section`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Insertion {
    /// The whole new text.
    pub text: String,
    /// The first new line, from 1.
    pub line: u32,
    /// Whether the heading was missing and was added.
    pub made_heading: bool,
    /// The existing heading that is most similar to the one that was created.
    pub similar_heading: Option<String>,
}

impl Insertion {
    fn at(line: u32, text: String) -> Self {
        Self { text, line, made_heading: false, similar_heading: None }
    }
}

/// The part of a note to which text is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor<'a> {
    /// The note without its frontmatter.
    Note,
    /// The section under a heading, named as for [`find_section`].
    Section(&'a str),
    /// The block with an id, as for [`find_block`].
    Block(&'a str),
}

/// The position at which text is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the block, or before the heading of the section.
    Before,
    /// As the first thing in the section or note.
    Start,
    /// As the last thing in the section or note.
    End,
    /// After the block.
    After,
}

/// The result of [`replace_section`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplacedSection {
    /// The whole new text.
    pub text: String,
    /// The line of the heading, from 1.
    pub line: u32,
    /// Removed headings of the section and removed ids of blocks, as `#Heading` and `#^id`: links to them are now
    /// broken.
    pub gone: Vec<String>,
}

/// Adds lines at the end of a text. The result ends in a newline if the text did.
pub fn append(text: &str, content: &str) -> String {
    if text.trim_start_matches('\u{feff}').is_empty() {
        return format!("{text}{content}");
    }
    let ending = if text.contains('\n') { LineEnding::of(text) } else { LineEnding::of(content) };
    let content = ending.put(content);
    let content = content.trim_end_matches(['\r', '\n']);
    if text.ends_with('\n') {
        format!("{text}{content}{}", ending.as_str())
    } else {
        format!("{text}{}{content}", ending.as_str())
    }
}

/// Adds text at the end of a note: as a separate block, unless it continues the list, table or quote at the end.
///
/// # Errors
/// [`ErrorKind::Refused`] if the note ends in an unclosed code block, comment or similar.
pub fn append_to_end(text: &str, content: &str) -> Result<Insertion> {
    let probe = append(text, "\n# x");
    check_heading(&probe, line_of_end(&probe, "# x"), NOTE_IS_OPEN)?;
    let note = note(text);
    let ends_blank = text.trim_end_matches([' ', '\t']).ends_with("\n\n") || text.ends_with("\n\r\n");
    let needs_gap = !ends_blank && note.blocks.last().is_some_and(|last| !continues(last.kind, content));
    let gap = if needs_gap { LineEnding::of(text).as_str() } else { "" };
    let new = append(text, &format!("{gap}{content}"));
    keeps_frontmatter(text, &new)?;
    let text = new;
    Ok(Insertion::at(line_of_end(&text, content), text))
}

/// Returns whether text that follows a block without a blank line continues it: items continue a list, rows a table,
/// and quoted lines a quote.
fn continues(kind: BlockKind, content: &str) -> bool {
    let first = content.trim_start();
    match kind {
        BlockKind::List => {
            let number = first.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_numbered = number.len() < first.len() && (number.starts_with(". ") || number.starts_with(") "));
            is_numbered || ["- ", "* ", "+ "].iter().any(|mark| first.starts_with(mark))
        }
        // Text that has a head row or callout title itself is another table or callout, which needs a blank line before
        // it.
        BlockKind::Table => first.starts_with('|') && !first.lines().nth(1).is_some_and(is_delimiter_row),
        BlockKind::Quote => first.starts_with('>') && !first[1..].trim_start().starts_with("[!"),
        _ => false,
    }
}

/// Returns whether a line is the delimiter row of a table: `| --- | :-: |`.
fn is_delimiter_row(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// Returns the line, from 1, at which `content` begins, which is the end of `text`.
fn line_of_end(text: &str, content: &str) -> u32 {
    let lines = text.trim_end().matches('\n').count() - content.trim().matches('\n').count();
    u32::try_from(1 + lines).unwrap_or(u32::MAX)
}

/// Adds text at the end of the section under a heading. A missing heading is added at the end of the text, with the
/// level given by its `#` characters, by default level 2.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for a heading that is empty or has several lines; [`ErrorKind::Ambiguous`] if
/// several headings match, only one of another level, or one that differs in case, punctuation or a block id;
/// [`ErrorKind::Refused`] if an unclosed code block or comment would swallow the new heading or text.
pub fn append_to_section(text: &str, heading: &str, content: &str) -> Result<Insertion> {
    if title(heading).is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the heading is empty"));
    }
    if heading.trim().contains(['\n', '\r']) {
        return Err(Error::new(ErrorKind::InvalidArguments, "a heading is one line")
            .with_remedy("put the other lines into the text"));
    }
    let note = note(text);
    let Some(section) = section(&note, heading)? else { return append_with_heading(text, &note, heading, content) };
    let (new, start) = put_after(text, &note, end_of_section(text, &section), content, "")?;
    Ok(Insertion::at(line_at(&new, start), new))
}

/// Adds a missing heading, and text under it.
fn append_with_heading(text: &str, note: &Note, heading: &str, content: &str) -> Result<Insertion> {
    let eol = LineEnding::of(text).as_str();
    let (line, name) = new_heading(heading);
    if name.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the heading is empty"));
    }
    let similar_heading = similar_heading(note, name)?;
    let is_empty = text.trim_start_matches('\u{feff}').is_empty();
    let ends_blank = text.strip_suffix('\n').is_some_and(|text| text.trim_end_matches('\r').ends_with('\n'));
    let gap = if is_empty || ends_blank { "" } else { eol };
    let section = format!("{line}{eol}{eol}{content}");
    let new = append(text, &format!("{gap}{section}"));
    check_heading(&new, line_of_end(&new, &section), NOTE_IS_OPEN)?;
    keeps_frontmatter(text, &new)?;
    Ok(Insertion { made_heading: true, similar_heading, ..Insertion::at(line_of_end(&new, content), new) })
}

/// Returns the line of a heading to create, and its text. If a path of headings is given, only the last one is created,
/// because it is unknown where the others belong.
fn new_heading(heading: &str) -> (String, &str) {
    let level = heading.trim().bytes().take_while(|byte| *byte == b'#').count();
    let level = if level == 0 { NEW_LEVEL } else { level.min(6) };
    let name = title(heading).rsplit('#').next().unwrap_or_default().trim();
    (format!("{} {name}", "#".repeat(level)), name)
}

/// Returns the heading that is most similar to a missing one.
///
/// # Errors
/// [`ErrorKind::Ambiguous`] for a heading with the same letters, because it is most likely the one that was meant.
fn similar_heading(note: &Note, name: &str) -> Result<Option<String>> {
    let named = |at: usize| note.heading_source(at).rsplit_once(" ^").map_or(note.heading_source(at), |(name, _)| name);
    let Some(at) = nearest(name, (0..note.headings.len()).map(|at| (named(at), at))).into_iter().next() else {
        return Ok(None);
    };
    let (heading, source) = (&note.headings[at], note.heading_source(at));
    if likeness(name, named(at)) < 1.0 {
        return Ok(Some(source.to_owned()));
    }
    Err(Error::new(
        ErrorKind::Ambiguous,
        format!("there is no heading {name:?}, but line {} has {source:?}", heading.line),
    )
    .with_remedy(format!("write {source:?}; for a new heading, put it into the text and leave out the argument")))
}

/// Returns content for a section without the section's heading, if it begins with it, because models repeat the
/// heading.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] if it contains nothing else; [`ErrorKind::Ambiguous`] as for [`append_to_section`].
pub fn without_repeated_heading<'c>(text: &str, heading: &str, content: &'c str) -> Result<Option<&'c str>> {
    let found = section(&note(text), heading)?;
    let line = found.as_ref().map_or_else(|| new_heading(heading).0, |found| text[found.heading.clone()].to_owned());
    let rest = without_heading(content, &line);
    if rest.len() == content.len() {
        return Ok(None);
    }
    if rest.trim().is_empty() && found.is_some() {
        let what = "the text is nothing but the heading, which is there already";
        return Err(Error::new(ErrorKind::InvalidArguments, what));
    }
    Ok(Some(rest.trim_start_matches(['\n', '\r'])))
}

/// Returns the end of the last line of a section that is not blank.
fn end_of_section(text: &str, section: &Section) -> usize {
    let filled = text[section.body.clone()].trim_end();
    if filled.is_empty() { section.heading.end } else { section.body.start + filled.len() }
}

/// Adds text at one side of a note, section or block. The first new line is counted from 1.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for a side that the anchor does not have; the errors of [`find_section`] and
/// [`find_block`]; [`ErrorKind::Refused`] if an unclosed block would swallow the text or the text after it, and for a
/// block in a quote.
pub fn insert(text: &str, anchor: Anchor<'_>, side: Side, content: &str) -> Result<Insertion> {
    let done = |(text, start): (String, usize)| Insertion::at(line_at(&text, start), text);
    let note = note(text);
    // A byte order mark stays where it is.
    let line_start = |at: usize| line_start(text, at).max(note.body.start);
    match (anchor, side) {
        (Anchor::Note, Side::End) => append_to_end(text, content),
        (Anchor::Note, Side::Start) => match note.blocks.first() {
            Some(first) => put_before(text, &note, line_start(first.span.start), content, "").map(done),
            None => append_to_end(text, content),
        },
        (Anchor::Section(heading), Side::Before) => {
            let section = find_section(text, heading)?;
            put_before(text, &note, line_start(section.heading.start), content, "").map(done)
        }
        (Anchor::Section(heading), Side::Start) => {
            let section = find_section(text, heading)?;
            let first = note.blocks.iter().find(|block| block.span.start >= section.body.start);
            match first.filter(|first| section.body.contains(&first.span.start)) {
                Some(first) => put_before(text, &note, line_start(first.span.start), content, "").map(done),
                None => put_after(text, &note, section.heading.end, content, "").map(done),
            }
        }
        (Anchor::Section(heading), Side::End) => {
            put_after(text, &note, end_of_section(text, &find_section(text, heading)?), content, "").map(done)
        }
        (Anchor::Block(id), Side::Before | Side::After) => {
            let block = find_block(text, id)?;
            let indent = &text[line_start(block.start)..block.start];
            if !indent.trim().is_empty() {
                return Err(Error::new(ErrorKind::Refused, format!("the block ^{id} is in a quote or another block"))
                    .with_remedy("use edit_note there"));
            }
            match side {
                Side::Before => put_before(text, &note, line_start(block.start), content, indent).map(done),
                _ => put_after(text, &note, text[..block.end].trim_end().len(), content, indent).map(done),
            }
        }
        (Anchor::Note, _) => Err(wrong_side("a note has a start and an end")),
        (Anchor::Section(_), Side::After) => Err(wrong_side("text is added before a section, or at its start or end")),
        (Anchor::Block(_), _) => Err(wrong_side("text is added before or after a block")),
    }
}

fn wrong_side(what: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, what).at("/position")
}

/// Replaces the content under a heading, including subsections. The heading stays, and is not duplicated if the new
/// content begins with it.
///
/// # Errors
/// The errors of [`find_section`]; [`ErrorKind::Refused`] if an unclosed block in the content would swallow the text
/// after it.
pub fn replace_section(text: &str, heading: &str, content: &str) -> Result<ReplacedSection> {
    let before = note(text);
    let section = find_section(text, heading)?;
    let ending = LineEnding::of(text);
    let eol = ending.as_str();
    let content = ending.put(without_heading(content, &text[section.heading.clone()]));
    let content = content.trim_end().trim_start_matches(['\n', '\r']);
    let (head, after) = (&text[..section.heading.end], &text[section.body.end..]);
    let body = &text[section.heading.end..section.body.end];
    let blank = &body[..body.len() - body.trim_start_matches([' ', '\t', '\n', '\r']).len()];
    // The same distance from the heading as the old text had.
    let gap = if body.trim().is_empty() || blank.matches('\n').count() > 1 { eol } else { "" };
    let filled = if content.is_empty() { String::new() } else { format!("{eol}{gap}{content}") };
    let tail = match after.is_empty() {
        true if text.ends_with('\n') => eol.to_owned(),
        true => String::new(),
        false => format!("{eol}{eol}"),
    };
    let new = format!("{head}{filled}{tail}{after}");
    if !after.is_empty() {
        check_closed(&format!("{head}{filled}{eol}{eol}"), &format!("{eol}{eol}{after}"))?;
    }
    keeps_frontmatter(text, &new)?;
    let is_inside = |at: usize| section.body.contains(&at);
    let now = note(&new);
    let headings = before.headings.iter().filter(|heading| is_inside(heading.span.start)).map(|heading| &heading.text);
    let ids = before.block_ids.iter().filter(|block| is_inside(block.span.start)).map(|block| &block.id);
    let gone = headings
        .filter(|text| !now.headings.iter().any(|heading| heading.text == **text))
        .map(|text| format!("#{text}"))
        .chain(ids.filter(|id| !now.block_ids.iter().any(|block| block.id == **id)).map(|id| format!("#^{id}")));
    Ok(ReplacedSection { gone: gone.collect(), line: section.line, text: new })
}

/// Returns content without a heading at its beginning, if that is the heading of its section or one above with the same
/// name.
fn without_heading<'c>(content: &'c str, heading: &str) -> &'c str {
    let (new, old) = (note(content), note(heading));
    match (new.blocks.first(), new.headings.first(), old.headings.first()) {
        (Some(block), Some(first), Some(heading))
            if block.kind == BlockKind::Heading
                && first.level <= heading.level
                && first.text.to_lowercase() == heading.text.to_lowercase()
                // Apparent frontmatter before it is plain text here.
                && content[..block.span.start].trim().is_empty() =>
        {
            &content[block.span.end..]
        }
        _ => content,
    }
}

/// Adds text after the line that ends at an offset. Returns the new text, and the offset of the added text.
fn put_after(text: &str, old: &Note, at: usize, content: &str, indent: &str) -> Result<(String, usize)> {
    let ending = LineEnding::of(text);
    let eol = ending.as_str();
    let before_it = old.blocks.iter().rfind(|block| block.span.start < at);
    let gap = if before_it.is_some_and(|last| continues(last.kind, content)) { "" } else { eol };
    let (before, after) = text.split_at(at);
    let added = lines_of(content, ending, indent);
    // A blank line before the text after it, unless there is one or the note ends here.
    let blank = &after[..after.len() - after.trim_start().len()];
    let stands_apart = after.trim().is_empty() || blank.matches('\n').count() > 1;
    let follows = if stands_apart || goes_on_with(content, after.trim_start()) { "" } else { eol };
    check_place(&format!("{before}{eol}{eol}"), &format!("{eol}{after}"))?;
    let new = format!("{before}{eol}{gap}{added}{follows}{after}");
    if !after.trim().is_empty() {
        check_closed(&format!("{before}{eol}{gap}{added}{eol}{eol}"), &format!("{eol}{after}"))?;
    }
    keeps_frontmatter(text, &new)?;
    Ok((new, at + eol.len() + gap.len()))
}

/// Adds text before the line that begins at an offset, which is not blank. Returns the same as [`put_after`].
fn put_before(text: &str, old: &Note, at: usize, content: &str, indent: &str) -> Result<(String, usize)> {
    let ending = LineEnding::of(text);
    let eol = ending.as_str();
    let (before, after) = text.split_at(at);
    let added = lines_of(content, ending, indent);
    let before_it = old.blocks.iter().rfind(|block| block.span.start < at);
    let stands_apart = before.trim_end_matches([' ', '\t']).ends_with("\n\n") || before.ends_with("\n\r\n");
    let needs_gap = !stands_apart
        && before_it.is_some_and(|last| last.kind != BlockKind::Heading && !continues(last.kind, content));
    let gap = if needs_gap { eol } else { "" };
    let follows = if goes_on_with(content, after.trim_start()) { "" } else { eol };
    check_place(&format!("{before}{eol}"), &format!("{eol}{eol}{after}"))?;
    check_closed(&format!("{before}{gap}{added}{eol}{eol}"), &format!("{eol}{eol}{after}"))?;
    let new = format!("{before}{gap}{added}{eol}{follows}{after}");
    keeps_frontmatter(text, &new)?;
    Ok((new, at + gap.len()))
}

/// Formats content as lines of a text, without a line ending at its end.
fn lines_of(content: &str, ending: LineEnding, indent: &str) -> String {
    let content = ending.put(content);
    let lines = content.trim_matches(['\r', '\n']).split('\n');
    let indented = lines.map(|line| match line.trim().is_empty() {
        true => line.to_owned(),
        false => format!("{indent}{line}"),
    });
    indented.collect::<Vec<_>>().join("\n")
}

/// Returns whether the following text continues the last block of some content.
fn goes_on_with(content: &str, following: &str) -> bool {
    note(content.trim()).blocks.last().is_some_and(|last| continues(last.kind, following))
}

/// Checks that text can be inserted between two parts of a note.
fn check_place(before: &str, after: &str) -> Result<()> {
    check_heading(&format!("{before}# x{after}"), line_at(before, before.len()), PLACE_IS_OPEN)
}

/// Checks that the end of `before`, which was added, leaves no block open.
fn check_closed(before: &str, after: &str) -> Result<()> {
    check_heading(&format!("{before}# x{after}"), line_at(before, before.len()), TEXT_IS_OPEN)
}

/// Checks that the frontmatter of a note is unchanged, because a line `---` can begin or end it.
fn keeps_frontmatter(text: &str, new: &str) -> Result<()> {
    let block = |text: &str| frontmatter_span(text).map(|span| text[span].trim_end().to_owned());
    match block(text) == block(new) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Refused,
            "with a line --- of the added text the note would begin with frontmatter",
        )
        .with_remedy("write *** for a line across the page")),
    }
}

/// Returns the start of a math block that is open at an offset. For the parser such a block ends with its paragraph,
/// for Obsidian with the next `$$`.
fn open_math(note: &Note, at: usize) -> Option<usize> {
    let mut open = None;
    // There are few of these blocks, whereas those with math may be many.
    let is_opaque = |block: &&Block| matches!(block.kind, BlockKind::Code | BlockKind::Comment);
    let opaque: Vec<&Block> = note.blocks.iter().filter(is_opaque).collect();
    for (start, _) in note.text[..at].match_indices("$$") {
        let is_text = !opaque.iter().any(|block| block.span.start <= start && start + 1 < block.span.end);
        let line = &note.text[line_start(&note.text, start)..];
        let stands_alone = line.lines().next().is_some_and(|line| line.trim() == "$$");
        open = match open {
            _ if !is_text => open,
            Some(_) => None,
            None => stands_alone.then_some(start),
        };
    }
    open
}

/// Returns the blocks that begin before an offset and end after it.
fn blocks_around(note: &Note, at: usize) -> impl Iterator<Item = &Block> {
    note.blocks.iter().filter(move |block| block.span.start < at && at < block.span.end)
}

/// Checks that a line, from 1, which was added as a heading, is parsed as one; `what` is the message of the error.
fn check_heading(text: &str, line: u32, what: &str) -> Result<()> {
    let note = note(text);
    let at = offset_of(text, Position { line: line - 1, ch: 0 })?;
    let math = open_math(&note, at).map(|start| ("the math block", start));
    if math.is_none() && note.headings.iter().any(|heading| heading.line == line) {
        return Ok(());
    }
    let inside = blocks_around(&note, at).next().map(|block| (block.kind, block.span.start));
    let open = match (inside, text[..at].rfind("%%")) {
        (Some((BlockKind::Code, start)), _) => Some(("the code block", start)),
        (Some((BlockKind::Math, start)), _) => Some(("the math block", start)),
        (Some((BlockKind::Other, start)), comment) if comment.is_none_or(|comment| comment < start) => {
            Some(("the block", start))
        }
        (_, Some(comment)) => Some(("the comment", comment)),
        _ => None,
    };
    let error = Error::new(ErrorKind::Refused, what);
    Err(match math.or(open) {
        Some((what, start)) => {
            error.with_remedy(format!("first close {what} that begins in line {}", line_at(text, start)))
        }
        None => error.with_remedy("first close the code block or comment that is open there"),
    })
}

/// Returns the line of an offset, from 1.
fn line_at(text: &str, at: usize) -> u32 {
    position_of(text, at).line + 1
}

#[cfg(test)]
mod tests;
