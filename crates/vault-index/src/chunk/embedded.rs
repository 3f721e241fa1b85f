//! What a model reads of a chunk: title, headings, text. Not the file's path, so that a move needs no embedding.
//!
//! The text is made plain line by line, so that the parts of a text give the parts of its words.

use super::{ChunkOptions, TokenCount};
use crate::note::{Note, TitleSource};
use crate::path::VaultPath;
use crate::terms::name_key;

/// Bytes of a line that are read at most.
const LINE: usize = 1024;

/// The text that is embedded for a chunk: the title, then its headings, then its text, one a line.
///
/// `title` is the title that the note contains; one that is only the file's name is left out here, so
/// that a rename costs no embedding ([`file_title_text`] is embedded for it instead). A line that would
/// be said twice is said once: the H1 that is the title, the heading that the text begins with. When
/// title and headings are over [`ChunkOptions::max_context_tokens`], the outer headings are left out,
/// then the title, then the end of the innermost heading.
///
/// The text is without what is only markup: heading, list, quote, table and emphasis marks, fences,
/// rules, brackets and targets of links (`[[a|b]]` is b, `[[a#b]]` is a b, `[a](b)` is a), HTML tags,
/// block ids; and without what is not what the note says: comments (`%%…%%`, `<!--…-->`), addresses, and badges, which
/// are images that are links. Code is left as it is but for addresses in a line of text. Empty if nothing is left, as of
/// a rule.
///
/// A pure function: with the counts and options the chunk was made with, it fits the window.
pub fn embedded_text(
    title: Option<&str>,
    headings: &[String],
    text: &str,
    tokens: &dyn TokenCount,
    options: &ChunkOptions,
) -> String {
    with_context(title, headings, text, tokens, options).0
}

/// [`embedded_text`], and where in it the text begins, behind the title and the headings.
pub(super) fn with_context(
    title: Option<&str>,
    headings: &[String],
    text: &str,
    tokens: &dyn TokenCount,
    options: &ChunkOptions,
) -> (String, usize) {
    let text = plain(text);
    let mut whole = context(title, headings, &text, tokens, options);
    if !whole.is_empty() && !text.is_empty() {
        whole.push('\n');
    }
    let start = whole.len();
    whole.push_str(&text);
    (whole, start)
}

/// The name of a note's file where the note does not say it: as its title, or as its first heading in other words. It is
/// embedded by itself, so that a rename embeds one short text at most, and what is embedded depends on no other note.
pub fn file_title_text(note: &Note, path: &VaultPath) -> Option<String> {
    let is_said = match note.title.source {
        TitleSource::FileName => false,
        TitleSource::Heading => name_key(&note.title.text) == name_key(path.stem()),
        TitleSource::Frontmatter => true,
    };
    (!is_said).then(|| path.stem().to_owned())
}

/// The lines that go before `text`, which is plain.
pub(super) fn context(
    title: Option<&str>,
    headings: &[String],
    text: &str,
    tokens: &dyn TokenCount,
    options: &ChunkOptions,
) -> String {
    let limit = options.max_context_tokens.min(options.window() / 2);
    let first_line = text.lines().next().unwrap_or_default();
    let mut lines: Vec<&str> = Vec::with_capacity(headings.len() + 1);
    for line in title.into_iter().chain(headings.iter().map(String::as_str)) {
        let line = line[..line.floor_char_boundary(LINE)].trim();
        if !line.is_empty() && line != first_line && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let titles = usize::from(title.is_some_and(|title| lines.first() == Some(&title.trim())));
    let fits = |lines: &[&str]| {
        let text = lines.join("\n");
        (text.len() <= limit || tokens.count(&text) <= limit).then_some(text)
    };
    loop {
        if let Some(context) = fits(&lines) {
            return context;
        }
        match lines.len() {
            0 => return String::new(),
            1 => break,
            many => _ = lines.remove(if many > titles + 1 { titles } else { 0 }),
        }
    }
    // One line alone is too long.
    let mut line = lines[0];
    while !line.is_empty() {
        let cut = &line[..line.floor_char_boundary(line.len() * 3 / 4)];
        line = cut.rfind(char::is_whitespace).map_or(cut, |at| cut[..at].trim_end());
        if let Some(context) = fits(&[line]) {
            return context;
        }
    }
    String::new()
}

/// The text without heading, list, quote, table and emphasis marks, fences, rules, link brackets and
/// targets, HTML tags, block ids, comments, addresses and badges; blank lines and white space at the ends of lines are gone. Code
/// keeps everything but its fence. Linear.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Its mark and length, and whether it is in a quote, whose end also ends it.
    let mut fence: Option<(u8, usize, bool)> = None;
    // What ends the comment that this line is in.
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
            let content = without_marks(content);
            if let Some((mark, length, info)) = fence_of(content) {
                fence = Some((mark, length, quoted));
                out.push_str(info);
            } else if !is_rule(content) {
                let table = content.starts_with('|');
                let line = if table { content.trim_matches(['|', ' ', '\t']) } else { without_id(content) };
                Inline { line, at: 0, table, out: &mut out }.run();
                remove_addresses(&mut out, before);
                if table {
                    // Columns are lined up with spaces.
                    let cells = out[before..].split_whitespace().collect::<Vec<_>>().join(" ");
                    out.replace_range(before.., &cells);
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

/// What ends the comment that begins with this line and ends on one of those after it.
fn comment_end(line: &str, after: &str) -> Option<&'static str> {
    let (begin, end) = match line {
        _ if line.starts_with("%%") => ("%%", "%%"),
        _ if line.starts_with("<!--") => ("<!--", "-->"),
        _ => return None,
    };
    (!line[begin.len()..].contains(end) && after.contains(end)).then_some(end)
}

/// Removes `scheme://…` from what stands behind `from`.
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

/// A line without the marks of quotes, lists, tasks, callouts and headings it begins with.
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

/// A rule, the line under a setext heading or under the head of a table.
fn is_rule(line: &str) -> bool {
    line.len() >= 2 && line.bytes().all(|b| matches!(b, b'-' | b'=' | b'*' | b'_' | b'|' | b':' | b' ' | b'\t'))
}

/// A line without the `^id` at its end.
fn without_id(line: &str) -> &str {
    let rest = line.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    match rest.strip_suffix('^') {
        Some(before) if rest.len() < line.len() && (before.is_empty() || before.ends_with([' ', '\t'])) => before,
        _ => line,
    }
}

/// The bytes that can begin or end markup within a line.
const IS_SPECIAL: [bool; 256] = {
    let (marks, mut table, mut at) = (b"\\`![]<*_=~%#|", [false; 256], 0);
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// One line on its way out.
struct Inline<'a> {
    line: &'a str,
    at: usize,
    table: bool,
    out: &'a mut String,
}

impl<'a> Inline<'a> {
    fn run(mut self) {
        // What was searched for once in vain on a line is not searched for again, which keeps this linear.
        let (mut tags, mut targets, mut wikilinks, mut code, mut badges, mut comments) =
            (true, true, true, true, true, true);
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
                b'[' => self.at += 1,
                b']' if targets && rest.starts_with("](") => targets = self.target(),
                b']' => self.at += 1,
                b'<' if comments && rest.starts_with("<!--") => comments = self.comment("<!--", "-->"),
                b'<' if tags => tags = self.tag(),
                b'*' | b'_' => self.emphasis(1),
                b'=' | b'~' => self.emphasis(2),
                b'%' if comments && rest.starts_with("%%") => comments = self.comment("%%", "%%"),
                b'%' if rest.starts_with("%%") => self.at += 2,
                b'#' if self.opens_tag() => self.at += 1,
                b'|' if self.table => {
                    self.out.push(' ');
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

    /// Copies so many bytes.
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
                    self.out.push(' ');
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

    /// `[![text](image)](target)`. False if it is none.
    fn badge(&mut self) -> bool {
        let target = |at: usize| {
            let open = at + self.line[at..].find("](")? + 2;
            Some(open + self.line[open..].find(')')? + 1)
        };
        let end = target(self.at).filter(|end| self.line[*end..].starts_with("](")).and_then(target);
        self.at = end.unwrap_or(self.at + 1);
        end.is_some()
    }

    /// `[^1]`
    fn footnote(&mut self) {
        let rest = &self.line[self.at + 2..];
        let name = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')).count();
        match rest.as_bytes().get(name) {
            Some(b']') if name > 0 => self.at += 2 + name + 1,
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

    /// A run of `*`, `_`, `==` or `~~`: gone where it opens or closes, kept between letters and between spaces.
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

    /// Is this the `#` of a `#tag`?
    fn opens_tag(&self) -> bool {
        let before = self.line[..self.at].chars().next_back();
        let after = self.line[self.at + 1..].chars().next();
        before.is_none_or(char::is_whitespace) && after.is_some_and(char::is_alphanumeric)
    }
}
