//! Text without its markup: as a model reads it, and as a person sees it.
//!
//! It works line by line, so that plain text of a part is a part of the plain text.

/// Formulas up to this many bytes are shown to a person; longer ones are shortened to `$…$`.
const FORMULA: usize = 24;

/// The mark before a heading in text for people.
pub const HEADING_MARK: &str = "› ";

/// The mark between the cells of a table in text for people.
const CELL: &str = "·";

/// The reader of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Model,
    Person,
}

/// The text without heading, list, quote, table and emphasis marks, fences, rules, link brackets and targets, HTML
/// tags, block ids, comments, addresses and badges. Blank lines and white space at the ends of lines are removed. Code
/// keeps everything except its fence. Linear in the text.
pub(super) fn plain(text: &str) -> String {
    without_markup(text, Reader::Model)
}

/// The text as a reader of the note sees it: links as their display text, without emphasis marks, rules, fences and
/// comments. Markup that conveys the layout is kept or replaced: list marks and task boxes stay, a heading gets a mark
/// before it ([`HEADING_MARK`]), and the cells of a table get one between them. A long formula becomes `$…$`. Lines
/// that are empty after this are left out.
///
/// ```
/// let text = "## Soil\n\n- [[Soil types|clay]] holds *water*\n\n---\n\n| Bed | pH |\n|---|---|\n| Rose | 6.5 |";
/// assert_eq!(vault_index::readable(text), "› Soil\n- clay holds water\nBed · pH\nRose · 6.5");
/// ```
pub fn readable(text: &str) -> String {
    without_markup(text, Reader::Person)
}

fn without_markup(text: &str, reader: Reader) -> String {
    let mut out = String::with_capacity(text.len());
    // Its mark and length, and whether it is in a quote, whose end also ends the fence.
    let mut fence: Option<(u8, usize, bool)> = None;
    // The end mark of the comment that this line is in.
    let mut comment: Option<&str> = None;
    for line in text.lines() {
        let mut content = line.trim();
        if let Some(end) = comment {
            let Some(at) = content.find(end) else { continue };
            comment = None;
            content = content[at + end.len()..].trim_start();
        } else if fence.is_none() {
            let after = &text[line.as_ptr() as usize - text.as_ptr() as usize + line.len()..];
            comment = comment_end(content, after);
            if comment.is_none() && reader == Reader::Person && is_formula_begun(content, after) {
                comment = Some("$$");
                out.push_str("$…$\n");
            }
            if comment.is_some() {
                continue;
            }
        }
        if content.is_empty() {
            continue;
        }
        let before = out.len();
        let quoted = content.starts_with('>');
        fence = fence.filter(|open| quoted || !open.2);
        if let Some(open) = fence {
            match fence_of(without_marks(content)) {
                Some((mark, length, "")) if mark == open.0 && length >= open.1 => fence = None,
                _ => out.push_str(content),
            }
        } else {
            let marked = content;
            let content = without_marks(content);
            if let Some((mark, length, info)) = fence_of(content) {
                fence = Some((mark, length, quoted));
                if reader == Reader::Model {
                    out.push_str(info);
                }
            } else if !(is_rule(content) || reader == Reader::Person && is_unseen(content)) {
                let table = content.starts_with('|');
                let line = if table { content.trim_matches(['|', ' ', '\t']) } else { without_id(content) };
                if reader == Reader::Person {
                    push_marks(&marked[..marked.len() - content.len()], &mut out);
                }
                let inside = out.len();
                InlineReader { line, at: 0, table, reader, out: &mut out }.run();
                if reader == Reader::Model {
                    remove_addresses(&mut out, before);
                }
                if table {
                    // Authors align columns with spaces.
                    let mut cells: Vec<&str> = out[before..].split_whitespace().collect();
                    cells.dedup_by(|cell, last| *cell == CELL && *last == CELL);
                    let cells = cells.join(" ");
                    out.replace_range(before.., &cells);
                } else if out[inside..].trim().is_empty() {
                    out.truncate(before);
                }
            }
        }
        let end = before + out[before..].trim_end().len();
        out.truncate(end);
        if end > before {
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The end mark of the comment that begins on this line and ends on a later one.
fn comment_end(line: &str, after: &str) -> Option<&'static str> {
    let (begin, end) = match line {
        _ if line.starts_with("%%") => ("%%", "%%"),
        _ if line.starts_with("<!--") => ("<!--", "-->"),
        _ => return None,
    };
    (!line[begin.len()..].contains(end) && after.contains(end)).then_some(end)
}

/// Whether a formula begins on this line and ends on a later one.
fn is_formula_begun(line: &str, after: &str) -> bool {
    line.strip_prefix("$$").is_some_and(|rest| !rest.contains("$$")) && after.contains("$$")
}

/// Appends the marks at the beginning of a line as a person sees them, without those of quotes.
fn push_marks(marks: &str, out: &mut String) {
    let marks = marks.trim_start_matches(['>', ' ', '\t']).trim_end();
    match marks.as_bytes().first() {
        Some(b'#') => out.push_str(HEADING_MARK),
        Some(b'-' | b'*' | b'+') => {
            out.push('-');
            out.push_str(&marks[1..]);
            out.push(' ');
        }
        _ => {}
    }
}

/// Removes `scheme://…` from the text after `from`.
fn remove_addresses(out: &mut String, from: usize) {
    if !out[from..].contains("://") {
        return;
    }
    let line = out.split_off(from);
    let mut rest = line.as_str();
    while let Some(found) = rest.find("://") {
        let before = rest[..found].trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        let address = &rest[before.len()..];
        rest = address.trim_start_matches(|c: char| c.is_ascii_graphic());
    }
    out.push_str(rest);
}

/// A line without the marks of quotes, lists, tasks, callouts and headings at its beginning.
fn without_marks(line: &str) -> &str {
    let mut rest = line;
    loop {
        let bytes = rest.as_bytes();
        let marks = match bytes {
            [b'>', ..] => 1,
            [b'-' | b'*' | b'+', b' ' | b'\t', ..] => match &bytes[1..] {
                [_, b'[', state, b']', b' ', ..] if state.is_ascii() => 6,
                _ => 1,
            },
            [b'[', b'!', ..] => match rest.find(']') {
                Some(end) if !rest[2..end].contains('[') => {
                    end + 1 + usize::from(rest[end + 1..].starts_with(['+', '-']))
                }
                _ => return rest,
            },
            [b'#', ..] => {
                let marks = bytes.iter().take_while(|b| **b == b'#').count();
                match bytes.get(marks) {
                    None | Some(b' ' | b'\t') if marks <= 6 => marks,
                    _ => return rest,
                }
            }
            _ => return rest,
        };
        rest = rest[marks..].trim_start();
    }
}

/// The mark, its length and the words after it, if the line opens or closes a fence.
fn fence_of(line: &str) -> Option<(u8, usize, &str)> {
    let mark = *line.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = line.bytes().take_while(|b| *b == mark).count();
    let info = line[length..].trim();
    (length >= 3 && !(mark == b'`' && info.contains('`'))).then_some((mark, length, info))
}

/// Whether a line is a rule, or the line under a setext heading or under the head of a table.
fn is_rule(line: &str) -> bool {
    line.len() >= 2 && line.bytes().all(|b| matches!(b, b'-' | b'=' | b'*' | b'_' | b'|' | b':' | b' ' | b'\t'))
}

/// Whether a line shows nothing: the target of links (`[name]: address`), or an item without text.
fn is_unseen(line: &str) -> bool {
    let is_target = || {
        line.starts_with('[')
            && !line.starts_with("[^")
            && line.find(']').is_some_and(|end| line[end + 1..].starts_with(": "))
    };
    matches!(line, "-" | "*" | "+") || is_target()
}

/// A line without the `^id` at its end.
fn without_id(line: &str) -> &str {
    let rest = line.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    match rest.strip_suffix('^') {
        Some(before) if rest.len() < line.len() && (before.is_empty() || before.ends_with([' ', '\t'])) => before,
        _ => line,
    }
}

/// The bytes that can start or end markup within a line.
const IS_SPECIAL: [bool; 256] = {
    let (marks, mut table, mut at) = (b"\\`![]<*_=~%#|$", [false; 256], 0);
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// Whether a `[` opens a link to an address.
fn opens_link(rest: &str) -> bool {
    let close = rest[1..].find(['[', ']']).map(|at| &rest[1 + at..]);
    close.is_some_and(|close| close.starts_with("]("))
}

/// Reads the markup of one line and appends its text.
struct InlineReader<'a> {
    line: &'a str,
    at: usize,
    table: bool,
    reader: Reader,
    out: &'a mut String,
}

impl<'a> InlineReader<'a> {
    fn run(mut self) {
        // A search that failed once on a line is not repeated, so the time is linear.
        let (mut tags, mut targets, mut wikilinks, mut code, mut badges, mut comments) =
            (true, true, true, true, true, true);
        let is_shown = self.reader == Reader::Person;
        let mut formulas = is_shown;
        let mut open = 0_usize;
        let bytes = self.line.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            let rest = &self.line[self.at..];
            match byte {
                b'\\' if bytes.get(self.at + 1).is_some_and(u8::is_ascii_punctuation) => {
                    self.at += 1;
                    self.copy(1);
                }
                b'`' if code => code = self.code(),
                b'!' if rest.starts_with("![") => self.at += 1,
                b'[' if wikilinks && rest.starts_with("[[") => wikilinks = self.wikilink(),
                b'[' if badges && rest.starts_with("[![") => badges = self.badge(),
                b'[' if rest.starts_with("[^") => self.footnote(),
                // A person sees brackets that do not belong to a link.
                b'[' if is_shown && !opens_link(rest) => self.copy(1),
                b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b']' if is_shown && open == 0 => self.copy(1),
                b']' => {
                    open = open.saturating_sub(1);
                    match targets && rest.starts_with("](") {
                        true => targets = self.target(),
                        false => self.at += 1,
                    }
                }
                b'<' if comments && rest.starts_with("<!--") => comments = self.comment("<!--", "-->"),
                b'<' if tags => tags = self.tag(),
                b'*' | b'_' => self.emphasis(1),
                b'=' | b'~' => self.emphasis(2),
                b'%' if comments && rest.starts_with("%%") => comments = self.comment("%%", "%%"),
                b'%' if rest.starts_with("%%") => self.at += 2,
                b'#' if !is_shown && self.opens_tag() => self.at += 1,
                b'$' if formulas => formulas = self.formula(),
                b'|' if self.table => {
                    self.out.push(' ');
                    if is_shown {
                        self.out.push_str(CELL);
                        self.out.push(' ');
                    }
                    self.at += 1;
                }
                _ => {
                    let special = |byte: &u8| IS_SPECIAL[usize::from(*byte)];
                    let plain = bytes[self.at + 1..].iter().position(special).unwrap_or(rest.len() - 1);
                    self.copy(plain + 1);
                }
            }
        }
    }

    /// Copies `length` bytes.
    fn copy(&mut self, length: usize) {
        self.out.push_str(&self.line[self.at..self.at + length]);
        self.at += length;
    }

    /// `` `code` ``, as it is. False if it is not closed.
    fn code(&mut self) -> bool {
        let rest = &self.line[self.at..];
        let ticks = rest.bytes().take_while(|b| *b == b'`').count();
        let mut at = ticks;
        while let Some(next) = rest[at..].find('`') {
            let end = at + next;
            let closing = rest[end..].bytes().take_while(|b| *b == b'`').count();
            if closing == ticks {
                self.out.push_str(rest[ticks..end].trim());
                self.at += end + ticks;
                return true;
            }
            at = end + closing;
        }
        self.at += ticks;
        false
    }

    /// `$formula$` or `$$formula$$`, as it is or shortened. False if none ends on this line.
    fn formula(&mut self) -> bool {
        let rest = &self.line[self.at..];
        let mark = if rest.starts_with("$$") { "$$" } else { "$" };
        let inside = &rest[mark.len()..];
        // `$5 and $6` are sums of money.
        let is_end = |at: usize| {
            let (before, after) = (&inside[..at], &inside[at + mark.len()..]);
            mark == "$$" || (!before.ends_with(char::is_whitespace) && !after.starts_with(|c: char| c.is_ascii_digit()))
        };
        let Some(end) = inside.find(mark) else {
            self.copy(mark.len());
            return false;
        };
        if (mark == "$" && inside.starts_with(char::is_whitespace)) || !is_end(end) {
            self.copy(mark.len());
        } else if end <= FORMULA {
            self.copy(end + 2 * mark.len());
        } else {
            self.out.push_str("$…$");
            self.at += end + 2 * mark.len();
        }
        true
    }

    /// `[[path#subpath|display]]`. False if no link ends on this line.
    fn wikilink(&mut self) -> bool {
        let rest = &self.line[self.at + 2..];
        let embed = self.line[..self.at].ends_with('!');
        let Some(end) = rest.as_bytes().windows(2).position(|two| two == b"]]" || two == b"[[") else {
            self.at += 2;
            return false;
        };
        if rest[end..].starts_with("[[") {
            self.at += 2;
            return true;
        }
        let (path, display) = rest[..end].split_once('|').unwrap_or((&rest[..end], ""));
        // The size of an image is not text.
        let is_size = embed && display.bytes().all(|b| b.is_ascii_digit() || b == b'x');
        if display.trim().is_empty() || is_size {
            // A backslash keeps the bar from ending the cell of a table.
            let mut parts = path.trim_end_matches('\\').split('#');
            let file = parts.next().unwrap_or_default();
            self.out.push_str(file.rsplit('/').next().unwrap_or_default().trim());
            for part in parts.filter(|part| !part.starts_with('^')) {
                if !file.is_empty() {
                    self.out.push_str(if self.reader == Reader::Person { " > " } else { " " });
                }
                self.out.push_str(part.trim());
            }
        } else {
            self.out.push_str(display.trim());
        }
        self.at += 2 + end + 2;
        true
    }

    /// `%%comment%%`, `<!-- comment -->`. False if it does not end on this line.
    fn comment(&mut self, begin: &str, end: &str) -> bool {
        let inside = self.at + begin.len();
        let found = self.line[inside..].find(end);
        self.at = found.map_or(inside, |found| inside + found + end.len());
        found.is_some()
    }

    /// `[![text](image)](target)`. False if this is not a badge.
    fn badge(&mut self) -> bool {
        let target = |at: usize| {
            let open = at + self.line[at..].find("](")? + 2;
            Some(open + self.line[open..].find(')')? + 1)
        };
        let end = target(self.at).filter(|end| self.line[*end..].starts_with("](")).and_then(target);
        self.at = end.unwrap_or(self.at + 1);
        end.is_some()
    }

    /// `[^1]`, a footnote.
    fn footnote(&mut self) {
        let rest = &self.line[self.at + 2..];
        let name = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')).count();
        match rest.as_bytes().get(name) {
            Some(b']') if name > 0 => {
                let is_text = self.at == 0 && self.reader == Reader::Person && rest[name + 1..].starts_with(": ");
                self.at += 2 + name + 1 + if is_text { 2 } else { 0 };
            }
            _ => self.at += 1,
        }
    }

    /// `](target "title")`. False if none ends on this line.
    fn target(&mut self) -> bool {
        let mut depth = 0;
        for (offset, byte) in self.line.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => continue,
            }
            if depth == 0 {
                self.at += offset + 1;
                return true;
            }
        }
        self.at += 1;
        false
    }

    /// `<tag>`, or `<address>`, which stays. False if none ends on this line.
    fn tag(&mut self) -> bool {
        let rest = &self.line[self.at + 1..];
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!') {
            self.copy(1);
            return true;
        }
        let Some(end) = rest.find('>') else {
            self.copy(1);
            return false;
        };
        let inside = &rest[..end];
        if !inside.contains(' ') && (inside.contains("://") || inside.contains('@')) {
            self.out.push_str(inside);
        } else if !self.out.is_empty() && !self.out.ends_with(char::is_whitespace) {
            self.out.push(' ');
        }
        self.at += 1 + end + 1;
        true
    }

    /// A run of `*`, `_`, `==` or `~~`: removed where it opens or closes emphasis, kept between letters and between
    /// spaces.
    fn emphasis(&mut self, least: usize) {
        let bytes = self.line.as_bytes();
        let mark = bytes[self.at];
        let length = bytes[self.at..].iter().take_while(|b| **b == mark).count();
        let before = self.line[..self.at].chars().next_back();
        let after = self.line[self.at + length..].chars().next();
        // `2*3` and `snake_case`, but 日本*語*です.
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && (c.is_ascii() || mark == b'_'));
        let space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let word = mark == b'_' || length < 2;
        let kept = length < least || (letter(before) && letter(after) && word) || (space(before) && space(after));
        if kept {
            self.copy(length);
        } else {
            self.at += length;
        }
    }

    /// Whether this is the `#` of a `#tag`.
    fn opens_tag(&self) -> bool {
        let before = self.line[..self.at].chars().next_back();
        let after = self.line[self.at + 1..].chars().next();
        before.is_none_or(char::is_whitespace) && after.is_some_and(char::is_alphanumeric)
    }
}
