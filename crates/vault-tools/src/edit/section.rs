//! Finds a section of a note by its heading, and adds text at its end.

use std::ops::Range;

use vault_index::VaultPath;
use vault_index::links::heading_at;
use vault_index::note::{Block, BlockKind, Note, ParseOptions, parse};

use crate::edit::{LineEnding, offset_of, position_of};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Position;

/// The level of a new heading that does not say its own.
const NEW_LEVEL: usize = 2;

/// The most headings or blocks that an error names.
const MAX_NAMED: usize = 20;

/// Where a section lies in its text.
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

/// The result of [`append_to_end`] and [`append_to_section`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The whole new text.
    pub text: String,
    /// The first new line, from 1.
    pub line: u32,
    /// Whether the heading was missing and was added.
    pub made_heading: bool,
}

/// Finds the section of a heading: `Plan`, `## Plan`, or with the headings above it `Work#Plan`.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the headings of the note; [`ErrorKind::Ambiguous`] if several fit, or only one of another
/// level.
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

/// Finds the block with an id, as `[[note#^id]]` names it, with or without `^`.
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
/// [`ErrorKind::InvalidArguments`] for another form, and for lines that all lie after the last.
pub fn find_lines(text: &str, lines: &str) -> Result<Range<usize>> {
    let wrong = || {
        Error::new(ErrorKind::InvalidArguments, format!("`{lines}` are no lines"))
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

/// The headings of a note, one a line: `12: ## Log (340 bytes)`, with the line and the size of its section.
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

/// Adds lines at the end of a text. The text ends in a newline afterwards if it did before.
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

/// Adds text at the end of a note: as a block of its own, unless it goes on with the list, table or quote at the end.
///
/// # Errors
/// [`ErrorKind::Refused`] if the note ends in a code block, comment or the like that is not closed.
pub fn append_to_end(text: &str, content: &str) -> Result<Appended> {
    let probe = append(text, "\n# x");
    check_heading(&probe, line_of_end(&probe, "# x"), "note")?;
    let note = note(text);
    let ends_blank = text.trim_end_matches([' ', '\t']).ends_with("\n\n") || text.ends_with("\n\r\n");
    let needs_gap = !ends_blank && note.blocks.last().is_some_and(|last| !continues(last.kind, content));
    let gap = if needs_gap { LineEnding::of(text).as_str() } else { "" };
    let text = append(text, &format!("{gap}{content}"));
    Ok(Appended { line: line_of_end(&text, content), text, made_heading: false })
}

/// Whether text goes on with a block that it follows without a blank line, and is meant to: items with a list, rows with
/// a table, quoted lines with a quote.
fn continues(kind: BlockKind, content: &str) -> bool {
    let first = content.trim_start();
    match kind {
        BlockKind::List => {
            let number = first.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_numbered = number.len() < first.len() && (number.starts_with(". ") || number.starts_with(") "));
            is_numbered || ["- ", "* ", "+ "].iter().any(|mark| first.starts_with(mark))
        }
        // What has a head of its own is another table or callout, which needs a blank line before it.
        BlockKind::Table => first.starts_with('|') && !first.lines().nth(1).is_some_and(is_delimiter_row),
        BlockKind::Quote => first.starts_with('>') && !first[1..].trim_start().starts_with("[!"),
        _ => false,
    }
}

/// Whether a line is that below the head of a table: `| --- | :-: |`.
fn is_delimiter_row(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// The line, from 1, at which `content` begins, with which a text ends.
fn line_of_end(text: &str, content: &str) -> u32 {
    let lines = text.trim_end().matches('\n').count() - content.trim().matches('\n').count();
    u32::try_from(1 + lines).unwrap_or(u32::MAX)
}

/// Adds text at the end of the section under a heading. A missing heading is added at the end of the text, on the level
/// of its `#`, by default the second.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for a heading that is empty or has several lines; [`ErrorKind::Ambiguous`] if several
/// headings fit, or only one of another level; [`ErrorKind::Refused`] if a code
/// block or comment that is not closed would swallow the new heading or text.
pub fn append_to_section(text: &str, heading: &str, content: &str) -> Result<Appended> {
    if title(heading).is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the heading is empty"));
    }
    if heading.trim().contains(['\n', '\r']) {
        return Err(Error::new(ErrorKind::InvalidArguments, "a heading is one line")
            .with_remedy("put the other lines into the text"));
    }
    let ending = LineEnding::of(text);
    let eol = ending.as_str();
    let note = note(text);
    let Some(section) = section(&note, heading)? else {
        let level = heading.bytes().take_while(|byte| *byte == b'#').count();
        let level = if level == 0 { NEW_LEVEL } else { level.min(6) };
        // Of a path of headings only the last is added: where the others belong is unknown.
        let name = title(heading).rsplit('#').next().unwrap_or_default().trim().to_owned();
        if name.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "the heading is empty"));
        }
        let is_empty = text.trim_start_matches('\u{feff}').is_empty();
        let ends_blank = text.strip_suffix('\n').is_some_and(|text| text.trim_end_matches('\r').ends_with('\n'));
        let gap = if is_empty || ends_blank { "" } else { eol };
        let section = format!("{} {name}{eol}{eol}{content}", "#".repeat(level));
        let new = append(text, &format!("{gap}{section}"));
        check_heading(&new, line_of_end(&new, &section), "note")?;
        return Ok(Appended { line: line_of_end(&new, content), text: new, made_heading: true });
    };
    // After the last line of the section that is not blank.
    let body = &text[section.body.clone()];
    let filled = body.trim_end();
    let at = if filled.is_empty() { section.heading.end } else { section.body.start + filled.len() };
    let end_of_section =
        note.blocks.iter().rfind(|block| block.span.start < at && block.span.start >= section.body.start);
    let goes_on = end_of_section.is_some_and(|last| continues(last.kind, content));
    let gap = if goes_on { "" } else { eol };
    let content = ending.put(content);
    let content = content.trim_matches(['\r', '\n']);
    let (before, after) = text.split_at(at);
    let probe = format!("{before}{eol}{eol}# x{after}");
    check_heading(&probe, line_at(&probe, at + 2 * eol.len()), "section")?;
    // A blank line before what follows, unless there is one or the text ends here.
    let blank = &after[..after.len() - after.trim_start().len()];
    let follows = if after.trim().is_empty() || blank.matches('\n').count() > 1 { "" } else { eol };
    let new = format!("{before}{eol}{gap}{content}{follows}{after}");
    let start = at + eol.len() + gap.len();
    Ok(Appended { line: line_at(&new, start), text: new, made_heading: false })
}

/// Where a math block begins that is open at an offset. For the parser it ends with its paragraph, for Obsidian with the
/// next `$$`.
fn open_math(note: &Note, at: usize) -> Option<usize> {
    let mut open = None;
    for (start, _) in note.text[..at].match_indices("$$") {
        let is_text =
            blocks_around(note, start + 1).all(|block| !matches!(block.kind, BlockKind::Code | BlockKind::Comment));
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

/// The blocks that begin before an offset and end after it.
fn blocks_around(note: &Note, at: usize) -> impl Iterator<Item = &Block> {
    note.blocks.iter().filter(move |block| block.span.start < at && at < block.span.end)
}

/// Checks that a line, from 1, which was added as a heading at the end of a note or section, is parsed as one.
fn check_heading(text: &str, line: u32, part: &str) -> Result<()> {
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
    let error = Error::new(
        ErrorKind::Refused,
        format!("the {part} ends in something that is not closed, which would swallow the added text"),
    );
    Err(match math.or(open) {
        Some((what, start)) => {
            error.with_remedy(format!("first close {what} that begins in line {}", line_at(text, start)))
        }
        None => error.with_remedy("first close the code block or comment that is open at its end"),
    })
}

/// The line of an offset, from 1.
fn line_at(text: &str, at: usize) -> u32 {
    position_of(text, at).line + 1
}

/// A Markdown text, parsed, however large.
pub(super) fn note(text: &str) -> Note {
    match VaultPath::new("-.md") {
        Some(path) => parse(&path, text.as_bytes(), &ParseOptions { max_bytes: usize::MAX }),
        None => Note::default(),
    }
}

/// A heading without the marks before it.
fn title(heading: &str) -> &str {
    heading.trim().trim_start_matches('#').trim()
}

fn section(note: &Note, heading: &str) -> Result<Option<Section>> {
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

/// The headings that a name fits, by their index, and those of them that are of its level, if it says one.
fn fitting(note: &Note, heading: &str) -> (Vec<usize>, Vec<usize>) {
    let all = named(note, title(heading));
    let level = heading.trim().bytes().take_while(|byte| *byte == b'#').count();
    let is_of_level = |at: &usize| level == 0 || usize::from(note.headings[*at].level) == level;
    let of_level = all.iter().copied().filter(is_of_level).collect();
    (all, of_level)
}

/// The headings of exactly this text; if there are none, the first of those that a link with this subpath can mean.
fn named(note: &Note, wanted: &str) -> Vec<usize> {
    let is_exact = |at: &usize| note.heading_source(*at) == wanted || note.headings[*at].text == wanted;
    let mut found: Vec<usize> = (0..note.headings.len()).filter(is_exact).collect();
    if !found.is_empty() {
        return found;
    }
    let mut sources: Vec<(u8, &str)> =
        note.headings.iter().enumerate().map(|(at, heading)| (heading.level, note.heading_source(at))).collect();
    // Longer than what is wanted, so that what was found does not fit again, and still has others below it.
    let other = format!("{wanted}x");
    while found.len() < MAX_NAMED
        && let Some(at) = heading_at(&sources, wanted)
    {
        found.push(at);
        sources[at].1 = &other;
    }
    found
}

/// A heading with its level and all headings above it: `### Work#2026#Log`.
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

/// The section of a note's heading, by its index.
fn section_at(note: &Note, at: usize) -> Section {
    let found = &note.headings[at];
    let next = note.headings[at + 1..].iter().find(|next| next.level <= found.level);
    let line_end = note.text[found.span.end..].find('\n').map_or(note.text.len(), |end| found.span.end + end + 1);
    let heading = found.span.start..note.text[..found.span.end].trim_end_matches(['\r', '\n']).len();
    let end = next.map_or(note.text.len(), |next| line_start(&note.text, next.span.start));
    let body = if found.span.end > heading.end { found.span.end..end } else { line_end.min(end)..end };
    Section { level: found.level, line: found.line, heading, body }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_stands_on_its_own_line() {
        for (text, content, expected) in [
            ("", "x", "x"),
            ("a", "x", "a\nx"),
            ("a\n", "x", "a\nx\n"),
            ("a\r\nb\r\n", "x\ny", "a\r\nb\r\nx\r\ny\r\n"),
            ("a\n", "x\n\n", "a\nx\n"),
            ("\u{feff}", "x", "\u{feff}x"),
        ] {
            assert_eq!(append(text, content), expected, "{text:?}");
        }
    }

    #[test]
    fn sections_are_found_and_added_to() {
        let text = "# Top\n\n## Log\n\n- a\n\n### Sub\n\ntext\n\n## Next\n\nend\n```\n# no\n```";
        let section = find_section(text, "Log").unwrap();
        assert_eq!((section.level, section.line, &text[section.heading.clone()]), (2, 3, "## Log"));
        assert!(text[section.body].ends_with("text\n\n"));
        let sub = find_section(text, "Log#Sub").unwrap();
        assert_eq!(&text[sub.body], "\ntext\n\n");
        let missing = find_section(text, "no").unwrap_err();
        assert!(missing.to_string().contains("\"Next\""), "{missing}");

        for (heading, content, expected, line) in [
            ("Sub", "more", text.replace("text\n", "text\n\nmore\n"), 11),
            ("## Next", "x", format!("{text}\n\nx"), 18),
            ("Log#Sub", "x\n\n", text.replace("text\n", "text\n\nx\n"), 11),
        ] {
            let done = append_to_section(text, heading, content).unwrap();
            assert_eq!((done.text, done.line, done.made_heading), (expected, line, false), "{heading}");
        }
    }

    /// A paragraph is no part of the table, list or quote before it, and an item goes on with its list.
    #[test]
    fn what_is_appended_to_a_note_is_what_it_says() {
        for (text, content, expected, line) in [
            ("| a |\n| - |\n| b |\n", "New", "| a |\n| - |\n| b |\n\nNew\n", 5),
            ("| a |\n| - |\n", "| b |", "| a |\n| - |\n| b |\n", 3),
            ("| a |\n| - |\n", "| b |\n|:-:|\n| c |", "| a |\n| - |\n\n| b |\n|:-:|\n| c |\n", 4),
            ("> a\n", "> b", "> a\n> b\n", 2),
            ("> [!note]\n> a\n", "> [!tip]\n> b", "> [!note]\n> a\n\n> [!tip]\n> b\n", 4),
            ("> [!note]\n> a", "New", "> [!note]\n> a\n\nNew", 4),
            ("- a\n", "New", "- a\n\nNew\n", 3),
            ("- a\n  - b\n", "* [ ] c", "- a\n  - b\n* [ ] c\n", 3),
            ("1. a\n", "2. b\n3. c", "1. a\n2. b\n3. c\n", 2),
            ("a\r\n", "b", "a\r\n\r\nb\r\n", 3),
            ("a\n\n", "b", "a\n\nb\n", 3),
            ("# A\n", "b", "# A\n\nb\n", 3),
            ("---\nk: 1\n---\n", "b", "---\nk: 1\n---\nb\n", 4),
            ("", "b", "b", 1),
        ] {
            let done = append_to_end(text, content).unwrap();
            assert_eq!((done.text.as_str(), done.line), (expected, line), "{text:?}");
        }
        for open in ["a\n```\nb", "a\n\n%%\nb\n"] {
            assert_eq!(append_to_end(open, "New").unwrap_err().kind(), ErrorKind::Refused, "{open:?}");
        }
        for (text, content, expected) in [
            ("# A\n- a\n# B\n", "- b", "# A\n- a\n- b\n\n# B\n"),
            ("# A\n| a |\n| - |\n", "b", "# A\n| a |\n| - |\n\nb\n"),
        ] {
            assert_eq!(append_to_section(text, "A", content).unwrap().text, expected);
        }
    }

    /// What is added is never hidden by what is open before it, and never lands in a section that was not meant.
    #[test]
    fn what_is_open_or_ambiguous_is_refused() {
        for open in ["%%\nopen\n", "<!-- open\n", "$$\nx\n", "text\n\n```\nx\n"] {
            let error = append_to_section(&format!("# A\n{open}"), "A", "x").unwrap_err();
            let told = error.to_string();
            assert!(error.kind() == ErrorKind::Refused && told.contains("the section ends in"), "{open:?}: {told}");
        }
        for closed in ["%%\na\n%%\n", "<!-- a -->\n", "$$\nx\n$$\n", "%% a %%\n"] {
            append_to_section(&format!("# A\n{closed}\n# B\n"), "A", "x").unwrap();
        }
        let twice = "# W\n## Log\na\n## Log\nb\n# V\n## Log\nc\n### log\n";
        for (heading, told) in [
            ("W#Log", "nothing tells apart those in the lines 2, 4: use edit_note"),
            ("Log", "write `## V#Log`; nothing tells apart those in the lines 2, 4"),
            ("LOG", "write `## V#Log` or `### V#Log#log`; nothing tells apart those in the lines 2, 4"),
            ("# Log", "no heading of this level is \"Log\": the one in line 2 is of level 2, the one in line 4"),
        ] {
            let error = find_section(twice, heading).unwrap_err();
            assert!(error.kind() == ErrorKind::Ambiguous && error.to_string().contains(told), "{heading}: {error}");
        }
        assert_eq!(find_section(twice, "## V#Log").unwrap().line, 7);
        let other = find_section("# A\n", "## A").unwrap_err().to_string();
        assert!(other.contains("(write `# A`)"), "{other}");
    }

    #[test]
    fn empty_sections_and_missing_ones() {
        for (text, heading, expected, line) in [
            ("## A\n## B\n", "A", "## A\n\nx\n\n## B\n", 3),
            ("## A", "A", "## A\n\nx", 3),
            ("## A\n", "A", "## A\n\nx\n", 3),
            ("text\n", "New", "text\n\n## New\n\nx\n", 5),
            ("text\n\n", "# New", "text\n\n# New\n\nx\n", 5),
            ("", "New", "## New\n\nx", 3),
            ("A\r\n===\r\nb\r\n", "A", "A\r\n===\r\nb\r\n\r\nx\r\n", 5),
        ] {
            let done = append_to_section(text, heading, "x").unwrap();
            assert_eq!((done.text.as_str(), done.line), (expected, line), "{text:?}");
        }
        for (text, line) in [
            ("# A\n```\n## S\nunclosed\n", "line 2"),
            ("a\n\n~~~md\nb", "line 3"),
            ("a\r\n\r\n```\r\nb\r\n", "line 3"),
            ("a\n\n%%\nb\n", "line 3"),
            ("# S\n\n```\nunclosed\n", "line 3"),
            ("a\n# S\r\n> b\r\n\r\n~~~\r\nunclosed", "line 5"),
        ] {
            let refused = append_to_section(text, "S", "x").unwrap_err();
            assert!(refused.kind() == ErrorKind::Refused && refused.to_string().contains(line), "{refused}");
        }
        for text in ["```\na\n```", "%% a %%\n", "\u{feff}", "\u{feff}a", "- a\n  ```\n  b\n", "a", "---\nk: 1\n---"] {
            assert!(append_to_section(text, "S", "\n").unwrap().made_heading, "{text:?}");
        }
        for text in ["# S\n```\na\n```\n", "# S\n```\na\n```\n\n# T\n```\nb", "# S\n\n    a\n"] {
            let done = append_to_section(text, "S", "    x").unwrap();
            assert!(done.text.contains("    x"), "{text:?}");
        }
        assert!(append_to_section("", " # ", "x").is_err());
        assert!(append_to_section("", "a\n# injected", "x").is_err());
    }
}
