//! Sanitizes untrusted text for a terminal: nothing in it moves the cursor, is invisible, or reverses other text.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

/// Makes text safe for a terminal: control characters become control pictures, invisible characters become their code
/// such as `<U+200B>`, tabs become two spaces. Line feeds stay, and a carriage return at the end of a line is removed.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_unsafe(c) || is_joiner(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        match is_unsafe(c) || is_stray(before, c) {
            true if c == '\r' && matches!(chars.peek(), None | Some('\n')) => {}
            true => safe.push_str(&replacement(c)),
            false => safe.push(c),
        }
        before = Some(c);
    }
    Cow::Owned(safe)
}

/// [`sanitize`], with line feeds replaced by spaces.
pub fn sanitize_line(text: &str) -> String {
    sanitize(text).replace('\n', " ")
}

/// [`sanitize_line`], truncated with `…` after `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let line = sanitize_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Makes JSON safe for a terminal without changing its value: escapes the characters that [`sanitize`] would replace.
pub fn escape_json(json: String) -> String {
    if !json.chars().any(is_unsafe) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        match is_unsafe(c) {
            // Serialized JSON contains such characters only within strings.
            true => safe.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => safe.push(c),
        }
    }
    safe
}

/// Returns the number of columns that text takes on a terminal once it is sanitized.
pub fn columns(text: &str) -> usize {
    sanitize(text).width()
}

/// Returns the maximum number of columns that one character takes once it is sanitized. The parts of a sequence that is
/// shown as one glyph, such as a joined emoji or a flag, count on their own, because not all terminals join them. The
/// variation selector U+FE0F counts 1, because it can turn the character before it into an emoji that is wider by 1.
pub fn char_columns(c: char) -> usize {
    match c {
        '\u{fe0f}' => 1,
        c if is_joiner(c) => 0,
        c => columns(c.encode_utf8(&mut [0; 4])),
    }
}

/// Returns the maximum number of columns that text takes on a terminal: the sum of [`char_columns`].
pub fn most_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Truncates a line of sanitized text with `…` if it takes more than `width` columns.
pub fn cut_to(text: &str, width: usize) -> String {
    match most_columns(text) <= width {
        true => text.to_owned(),
        false => format!("{}…", text[..fitting(text, width.saturating_sub(1))].trim_end()),
    }
}

/// Wraps sanitized text between words to lines of at most `width` columns; a wider word stays whole. Continuation lines
/// are indented.
pub fn wrapped(text: &str, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut lines: Vec<String> = Vec::new();
    for whole in text.split('\n') {
        let mut line = String::new();
        for word in whole.split_inclusive(' ') {
            let is_begun = !line.trim().is_empty();
            if is_begun && most_columns(&line) + most_columns(word.trim_end()) > width {
                lines.push(std::mem::replace(&mut line, INDENT.to_owned()).trim_end().to_owned());
            }
            line.push_str(word);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Returns the number of bytes of a text that fit in `width` columns.
pub(crate) fn fitting(text: &str, width: usize) -> usize {
    let mut columns = 0;
    for (at, c) in text.char_indices() {
        columns += char_columns(c);
        if columns > width {
            return at;
        }
    }
    text.len()
}

/// Pads `text` with spaces to `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

fn is_unsafe(c: char) -> bool {
    c != '\n' && (c.is_control() || is_direction(c) || is_invisible(c))
}

fn replacement(c: char) -> String {
    match c {
        '\t' => "  ".to_string(),
        // Control pictures: for example, U+241B shows the escape character.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}').to_string(),
        '\x7f' => '\u{2421}'.to_string(),
        c if is_invisible(c) || is_joiner(c) => format!("<U+{:04X}>", u32::from(c)),
        _ => '\u{fffd}'.to_string(),
    }
}

/// Whether a character changes the direction of the text after it, or ends a line.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character has no glyph, so that a text could tell a model more than its reader sees. Joiners and variation
/// selectors are not included, because ordinary text and emoji use them; see [`is_stray`].
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character joins letters (U+200C, U+200D) or selects the variation of the character before it.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a joiner follows a character that it cannot join. Stray joiners are shown, because a run of them could hide
/// a message. A selector may come before a joiner, as in an emoji that consists of several.
fn is_stray(before: Option<char>, c: char) -> bool {
    let is_selector = |c: char| is_joiner(c) && c >= '\u{fe00}';
    match before {
        _ if !is_joiner(c) => false,
        None => true,
        Some(before) if is_selector(before) => is_selector(c),
        Some(before) => before.is_whitespace() || is_unsafe(before) || is_joiner(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        fn check(text: &str, expected: &str) {
            assert_eq!(wrapped(text, 12), expected, "{text:?}");
        }
        check("", "");
        check("a short line", "a short line");
        check("a line that is longer", "a line that\n  is longer");
        check("see https://x.y/a-long-name now", "see\n  https://x.y/a-long-name\n  now");
        check("two\n  lines of some words\n", "two\n  lines of\n  some words\n");
        check("日本語 日本語 x", "日本語\n  日本語 x");
    }

    #[test]
    fn nothing_escapes() {
        fn check(input: &str, expected: &str) {
            assert_eq!(sanitize(input), expected, "{input:?}");
        }
        check("plain ž 日本 🚲\nnext", "plain ž 日本 🚲\nnext");
        check("\x1b[31mred\x1b]0;title\x07", "␛[31mred␛]0;title␇");
        check("a\u{9b}31m\u{202e}gpj.exe", "a\u{fffd}31m\u{fffd}gpj.exe");
        check("a\r\nb\x7f\tc\r", "a\nb␡  c");
        check("a\rb\r\r\n", "a␍b␍\n");
        // Invisible characters are shown by their code; emoji and Persian stay unchanged.
        check("do\u{200b}ne\u{e0041}", "do<U+200B>ne<U+E0041>");
        check("👩\u{200d}🌾 ☀\u{fe0f} می\u{200c}خواهم", "👩\u{200d}🌾 ☀\u{fe0f} می\u{200c}خواهم");
        check("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥");
        // A run of them could hide a message.
        check("😀\u{fe00}\u{fe0e}\u{fe01}", "😀\u{fe00}<U+FE0E><U+FE01>");
        check("a\u{200d}\u{200c}\u{200d} \u{fe0f}", "a\u{200d}<U+200C><U+200D> <U+FE0F>");
        check("\u{200c}x\u{1bca0}\u{2065}", "<U+200C>x<U+1BCA0><U+2065>");
        assert_eq!(sanitize_line("a\nb"), "a b");
    }

    #[test]
    fn escaped_json_is_safe_and_of_the_same_value() {
        let text = "\u{1b}[31m\u{9b}x\u{7f}é\u{202e}\u{e0041}\n";
        let safe = escape_json(serde_json::to_string(text).unwrap());
        assert_eq!(safe, r#""\u001b[31m\u009bx\u007fé\u202e\udb40\udc41\n""#);
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn cut_to_a_width() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 5, "日本…"),
            ("a b c", 3, "a…"),
            ("☀\u{fe0f}☀\u{fe0f}", 3, "☀\u{fe0f}…"),
        ] {
            assert_eq!(cut_to(text, width), expected);
        }
    }

    #[test]
    fn columns_are_those_of_a_terminal() {
        assert_eq!(columns("日本x"), 5);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(padded("日", 4), "日  ");
        assert_eq!((char_columns('\t'), char_columns('\u{200b}')), (2, 8));
    }
}
