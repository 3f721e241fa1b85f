//! Masks text that the Markdown parser must not see: `%% comments %%` and misleading characters.
//!
//! The masked text has the same length as the original, so that all offsets stay valid.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// The mask for a byte of a comment inside a line: not white space, not markup, not part of a word.
pub(super) const HIDDEN: u8 = 1;

/// The mask for a `$` in a wikilink, which must not open a formula.
pub(super) const DOLLAR: u8 = 2;

/// Parsing takes time linear in the length times the depth of nested quotes and lists. Deeper markers are treated as
/// text, in notes that are long enough for it to matter.
const MAX_DEPTH: usize = 100;

/// The length from which [`MAX_DEPTH`] applies.
const LONG: usize = 4 << 10;

/// The number of times that a note is parsed to find its comments; see [`find_comments`].
const ROUNDS: usize = 8;

/// A text as the Markdown parser should see it.
pub(super) struct MaskedText<'t> {
    pub(super) text: Cow<'t, str>,
    /// The comments, with their `%%`, in order.
    pub(super) comments: Vec<Range<usize>>,
}

/// Masks one body; borrows it if there is nothing to mask.
pub(super) fn mask(body: &str, options: pulldown_cmark::Options) -> MaskedText<'_> {
    let mut text = Cow::Borrowed(body);
    if body.len() > LONG {
        let markers = deep_markers(body);
        if !markers.is_empty() {
            overwrite(&mut text, |bytes| markers.into_iter().for_each(|marker| bytes[marker].fill(HIDDEN)));
        }
    }
    let mut comments = Vec::new();
    if body.contains("%%") {
        comments = find_comments(&mut text, options);
    }
    if body.contains('$') && body.contains("[[") {
        let dollars = dollars_in_links(&text);
        if !dollars.is_empty() {
            overwrite(&mut text, |bytes| dollars.iter().for_each(|&at| bytes[at] = DOLLAR));
        }
    }
    MaskedText { text, comments }
}

/// Finds comments and masks them. `%%` opens a comment wherever the Markdown parser sees plain text, so not in code or
/// math. It ends at the next `%%`, whatever is between, or at the end of the text.
///
/// The content of a comment can mislead the parser about the following text; for example, it may contain a single
/// fence. So after such a comment, the text is parsed again with the comment masked.
fn find_comments(text: &mut Cow<'_, str>, options: pulldown_cmark::Options) -> Vec<Range<usize>> {
    let mut comments: Vec<Range<usize>> = Vec::new();
    for round in 1..=ROUNDS {
        let (found, complete) = visible_comments(text, options, round == ROUNDS);
        if found.is_empty() {
            break;
        }
        overwrite(text, |bytes| found.iter().for_each(|comment| hide(bytes, comment.clone())));
        comments.extend(found);
        if complete {
            break;
        }
    }
    comments.sort_unstable_by_key(|comment| comment.start);
    comments
}

/// The comments up to the first that may mislead the parser, and whether these are all comments.
fn visible_comments(text: &str, options: pulldown_cmark::Options, last: bool) -> (Vec<Range<usize>>, bool) {
    let mut found = Vec::new();
    let mut resume = 0;
    let mut in_code = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(_) if !in_code => {
                let mut at = range.start.max(resume);
                if at == range.start && text[..at].ends_with('\\') {
                    // Escaped; the byte is ASCII, because only ASCII characters can be escaped.
                    at += 1;
                }
                while at < range.end
                    && let Some(open) = text.get(at..range.end).and_then(|rest| rest.find("%%"))
                {
                    let start = at + open;
                    let end = text[start + 2..].find("%%").map_or(text.len(), |len| start + len + 4);
                    found.push(start..end);
                    (at, resume) = (end, end);
                    if !last && text[start..end].contains(['`', '~', '$', '<']) {
                        return (found, false);
                    }
                }
            }
            _ => {}
        }
    }
    (found, true)
}

/// A comment alone on its lines becomes blank lines; one inside a line becomes a single opaque word.
fn hide(bytes: &mut [u8], comment: Range<usize>) {
    let before = bytes[..comment.start].iter().rev().find(|b| !matches!(b, b' ' | b'\t'));
    let after = bytes[comment.end..].iter().find(|b| !matches!(b, b' ' | b'\t'));
    let edge = |byte: Option<&u8>| byte.is_none_or(|b| matches!(b, b'\n' | b'\r'));
    if edge(before) && edge(after) {
        for byte in &mut bytes[comment] {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    } else {
        bytes[comment].fill(HIDDEN);
    }
}

/// The positions of `$` in a `[[…]]` on one line. Links take precedence over math, because text is read from left to
/// right.
fn dollars_in_links(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut dollars = Vec::new();
    let mut open: Option<usize> = None;
    let mut pending = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'[' if bytes.get(at + 1) == Some(&b'[') => {
                dollars.truncate(pending);
                open = Some(at);
                at += 1;
            }
            b']' if open.is_some() && bytes.get(at + 1) == Some(&b']') => {
                pending = dollars.len();
                open = None;
                at += 1;
            }
            b'\n' | b'\r' => {
                dollars.truncate(pending);
                open = None;
            }
            b'$' if open.is_some() => dollars.push(at),
            _ => {}
        }
        at += 1;
    }
    dollars.truncate(pending);
    dollars
}

/// The markers of quotes and list items that would nest deeper than [`MAX_DEPTH`].
fn deep_markers(body: &str) -> Vec<Range<usize>> {
    let bytes = body.as_bytes();
    let mut deep = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let mut column = 0;
        let mut depth = 0;
        loop {
            let marker = at;
            match bytes.get(at) {
                Some(b' ') => column += 1,
                Some(b'\t') => column += 4,
                Some(b'>') => depth += 1,
                Some(b'-' | b'+' | b'*') if spaced(bytes, at + 1) => depth += 1,
                Some(b'0'..=b'9') => {
                    let digits = bytes[at..].iter().take(10).take_while(|b| b.is_ascii_digit()).count();
                    let close = at + digits;
                    if !matches!(bytes.get(close), Some(b'.' | b')')) || !spaced(bytes, close + 1) {
                        break;
                    }
                    depth += 1;
                    at = close;
                }
                _ => break,
            }
            at += 1;
            // An item is indented by at least two columns.
            let too_deep = depth > MAX_DEPTH || (column / 2 > MAX_DEPTH && depth > 0);
            if too_deep && !matches!(bytes[marker], b' ' | b'\t') {
                deep.push(marker..at);
            }
        }
        at += bytes[at..].iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(bytes.len() - at);
        at += 1;
    }
    deep
}

fn spaced(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(u8::is_ascii_whitespace)
}

/// Edits the bytes in place. Only whole characters are overwritten, with ASCII, so the text stays valid.
fn overwrite(text: &mut Cow<'_, str>, edit: impl FnOnce(&mut [u8])) {
    let mut bytes = std::mem::take(text.to_mut()).into_bytes();
    edit(&mut bytes);
    *text = Cow::Owned(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::body::OPTIONS;

    #[test]
    fn comments_are_found_where_text_is() {
        for (body, expected) in [
            ("a %%b%% c", vec!["%%b%%"]),
            ("%%a%% %%b%%", vec!["%%a%%", "%%b%%"]),
            ("a %%b", vec!["%%b"]),
            ("%%\na\n\nb\n%%\nc", vec!["%%\na\n\nb\n%%"]),
            ("`%%a%%` b", vec![]),
            ("```\n%%\n```\na", vec![]),
            ("    %% code\n", vec![]),
            ("$%%$ a", vec![]),
            (r"\%% a", vec![]),
            (r"\\%% a", vec!["%% a"]),
            (r"\%%% a", vec!["%% a"]),
            ("%%\n```\n%%\n[[a]]\n%% b %%\n", vec!["%%\n```\n%%", "%% b %%"]),
            ("%% ` %% a ` b %% c %%", vec!["%% ` %%", "%% c %%"]),
            ("%% a ` %% b %%", vec!["%% a ` %%", "%%"]),
            ("> %%\n> a\n> %%\n", vec!["%%\n> a\n> %%"]),
            ("100%%é", vec!["%%é"]),
        ] {
            let masked = mask(body, OPTIONS);
            let found: Vec<&str> = masked.comments.iter().map(|range| &body[range.clone()]).collect();
            assert_eq!(found, expected, "{body:?}");
            assert_eq!(masked.text.len(), body.len());
        }
    }

    #[test]
    fn dollars_in_links_open_no_formula() {
        for (text, expected) in [
            ("[[$1]] and [[$2]]", vec![2, 13]),
            ("[[$1 and $2", vec![]),
            ("[[$1\n]] $2", vec![]),
            ("$a$ [[b]]", vec![]),
            ("[[$a [[$b]]", vec![7]),
        ] {
            assert_eq!(dollars_in_links(text), expected, "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for (line, markers) in [
            (">".repeat(150), 50),
            ("- ".repeat(150), 50),
            ("1. ".repeat(101), 1),
            (format!("{}- a", " ".repeat(202)), 1),
            (format!("{}- a", " ".repeat(150)), 0),
            (format!("{}a", " ".repeat(500)), 0),
            ("-".repeat(500), 0),
        ] {
            assert_eq!(deep_markers(&line).len(), markers, "{line:?}");
        }
    }
}
