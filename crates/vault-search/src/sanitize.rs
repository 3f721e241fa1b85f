//! The filter between text from outside and a terminal: nothing in it moves the cursor, hides, or reverses what follows.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

/// Text as it may be shown on a terminal: control characters become pictures, characters that nobody would see are
/// named, tabs become two spaces. Line feeds stay, and the carriage return that ends a line is left out.
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

/// [`sanitize`] for text on one line: line feeds become spaces.
pub fn sanitize_line(text: &str) -> String {
    sanitize(text).replace('\n', " ")
}

/// [`sanitize_line`], cut with `…` behind `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let line = sanitize_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// JSON as it may be shown on a terminal, still JSON of the same value: what [`sanitize`] would replace is escaped.
pub fn escape_json(json: String) -> String {
    if !json.chars().any(is_unsafe) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        match is_unsafe(c) {
            // Serialized JSON has such characters within strings only.
            true => safe.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => safe.push(c),
        }
    }
    safe
}

/// The columns that sanitized text takes on a terminal.
pub fn columns(text: &str) -> usize {
    sanitize(text).width()
}

/// The most columns that one character takes, sanitized. Of a sequence that terminals show as one (emoji that are joined,
/// flags) those of its parts, since not all terminals do; a character that makes an emoji of the one before it takes the
/// column that this gains.
pub fn char_columns(c: char) -> usize {
    match c {
        '\u{fe0f}' => 1,
        c if is_joiner(c) => 0,
        c => columns(c.encode_utf8(&mut [0; 4])),
    }
}

/// The most columns that text takes on a terminal: the sum of [`char_columns`].
pub fn most_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Sanitized text on one line, cut with `…` where it takes more than `width` columns.
pub fn cut_to(text: &str, width: usize) -> String {
    match most_columns(text) <= width {
        true => text.to_owned(),
        false => format!("{}…", text[..fitting(text, width.saturating_sub(1))].trim_end()),
    }
}

/// Sanitized text whose lines take at most `width` columns, broken between words; a word that is wider stays whole. What
/// is broken goes on below, indented.
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

/// How many bytes of a text fit in so many columns.
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

/// `text` and the spaces that fill it up to `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

fn is_unsafe(c: char) -> bool {
    c != '\n' && (c.is_control() || is_direction(c) || is_invisible(c))
}

fn replacement(c: char) -> String {
    match c {
        '\t' => "  ".to_string(),
        // Control pictures: U+241B stands for the escape character, and so on.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}').to_string(),
        '\x7f' => '\u{2421}'.to_string(),
        c if is_invisible(c) || is_joiner(c) => format!("<U+{:04X}>", u32::from(c)),
        _ => '\u{fffd}'.to_string(),
    }
}

/// Characters that turn the direction of what follows, or end a line.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Characters without a glyph, by which a text could say more to a model than to its reader. Those that join letters
/// and choose the look of emoji are not among them, see [`is_stray`]: people write with them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Characters that join letters, and that choose the look of the one before them.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a joiner follows nothing that it could join: a run of them would say any number of things that nobody sees.
/// A selector may stand before a joiner, as in an emoji of several.
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
        // What nobody would see is named; emoji and Persian stay as they are.
        check("do\u{200b}ne\u{e0041}", "do<U+200B>ne<U+E0041>");
        check("👩\u{200d}🌾 ☀\u{fe0f} می\u{200c}خواهم", "👩\u{200d}🌾 ☀\u{fe0f} می\u{200c}خواهم");
        check("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥");
        // A run of them would be a message.
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
