//! Splits a query into words, quotes, operators and brackets.

use unicode_normalization::char::is_combining_mark;

/// The most bytes of an operator's key.
const MAX_KEY: usize = 64;

/// The most bytes between `[` and `]`.
const MAX_PROPERTY: usize = 1000;

/// The word at the start of a text, up to white space or a `)` that it has not opened. Quotes after `:` belong to the
/// word.
pub(super) fn word_at(text: &str, in_group: bool) -> &str {
    let (mut in_quotes, mut open, mut before) = (false, 0_usize, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '"' if in_quotes => in_quotes = false,
            '"' if before == ':' => in_quotes = true,
            _ if in_quotes => {}
            c if c.is_whitespace() => return &text[..at],
            '(' => open += 1,
            ')' if open > 0 => open -= 1,
            ')' if in_group => return &text[..at],
            _ => {}
        }
        before = c;
    }
    text
}

/// The key of an operator with a value at the start of a text, and the text from the value on.
pub(super) fn key_at(text: &str) -> Option<(&str, &str)> {
    let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let length = text.bytes().take(MAX_KEY + 1).position(|byte| !is_of_key(byte))?;
    let (key, behind) = (&text[..length], text[length..].strip_prefix(':')?);
    let is_key = length > 1 && key.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_key && behind.starts_with(|c: char| !c.is_whitespace())).then_some((key, behind))
}

/// The text up to the closing quote, and the rest. `\"` is a quote and `\\` a backslash.
pub(super) fn quoted_at(text: &str) -> (String, &str) {
    let mut quoted = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (quoted, &text[at + 1..]),
            '\\' => {
                quoted.push(characters.next_if(|(_, next)| matches!(next, '"' | '\\')).map_or('\\', |(_, next)| next))
            }
            c => quoted.push(c),
        }
    }
    (quoted, "")
}

/// The regular expression at the start of a text, without its slashes. It has no white space at its ends and no
/// unescaped slash inside, and is followed by white space or the end. For example, `/etc/passwd` and `a / b / c` are
/// not regular expressions.
pub(super) fn regex_at(text: &str, in_group: bool) -> Option<&str> {
    let inside = text.strip_prefix('/')?;
    let pattern = &inside[..slash_at(inside)?];
    let is_end = |c: char| c.is_whitespace() || (in_group && c == ')');
    let ends = inside[pattern.len() + 1..].chars().next().is_none_or(is_end);
    (ends && !pattern.is_empty() && pattern.trim() == pattern).then_some(pattern)
}

/// The position of the first unescaped slash.
fn slash_at(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let found = byte == b'/' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        found
    })
}

/// `[key]` or `[key:value]` at the start of a text: key, value and length. Other common uses of brackets do not count:
/// `[[link]]`, `[text](address)`, `[^1]`, `[!note]`, `[ ]`, `[2]`.
pub(super) fn property_at(text: &str) -> Option<(String, Option<&str>, usize)> {
    let inside = text.strip_prefix('[')?;
    let (mut in_quotes, mut is_escaped, mut before) = (false, false, '[');
    let (mut colon, mut skip_to) = (None, 0);
    for (at, c) in inside.char_indices() {
        if at > MAX_PROPERTY {
            return None;
        }
        if at < skip_to {
            continue;
        }
        match c {
            '"' if in_quotes && !is_escaped => in_quotes = false,
            '"' if !in_quotes && "[:( <".contains(before) => in_quotes = true,
            _ if in_quotes => {}
            '/' if colon.is_some() && ":( ".contains(before) => {
                skip_to = at + slash_at(&inside[at + 1..]).map_or(1, |length| length + 2);
            }
            ':' if colon.is_none() => colon = Some(at),
            '[' | '\n' => return None,
            ']' => {
                let ends = inside[at + 1..].chars().next().is_none_or(|c| c.is_whitespace() || c == ')');
                let key = inside[..colon.unwrap_or(at)].trim();
                let key = match key.strip_prefix('"') {
                    Some(quoted) => quoted_at(quoted).0.trim().to_string(),
                    None => key.to_string(),
                };
                let is_key = key.chars().any(char::is_alphabetic) && !key.starts_with(['^', '!']);
                return (ends && is_key).then(|| (key, colon.map(|colon| &inside[colon + 1..at]), at + 2));
            }
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        // The signs of a comparison are between the start of a value and its quotes.
        let is_sign = matches!(c, '<' | '>' | '~') && ":( <".contains(before) || c == '=' && before == '<';
        before = match c {
            _ if is_sign => '<',
            '<' => '>',
            c => c,
        };
    }
    None
}

/// The prefix that `canv*` means.
pub(super) fn prefix(word: &str) -> Option<&str> {
    let start = word.strip_suffix('*')?;
    let is_plain = |c: char| c.is_alphanumeric() || is_combining_mark(c) || "-_.'’".contains(c);
    (start.chars().any(char::is_alphanumeric) && start.chars().all(is_plain)).then_some(start)
}
