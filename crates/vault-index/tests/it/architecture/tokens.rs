//! Rust source as tokens, without comments, strings and what is compiled for tests only.

/// The words and signs of a file's code; `::` is one token, any other sign one character.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => quote(rest),
            'r' | 'b' | 'c' if prefixed_string(rest).is_some() => prefixed_string(rest).unwrap_or(1),
            c if is_word(c) => {
                let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                tokens.push(&rest[..word]);
                word
            }
            c => {
                let length = if rest.starts_with("::") { 2 } else { c.len_utf8() };
                if !c.is_whitespace() {
                    tokens.push(&rest[..length]);
                }
                length
            }
        };
        rest = &rest[length..];
    }
    without_tests(&tokens)
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The position behind the bracket that closes the one at `open`.
pub(super) fn behind_group(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of the string or character that begins a text, with its quotes.
fn string(text: &str) -> usize {
    let quote = text.chars().next();
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if Some(c) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character, or of the quote that begins a lifetime.
fn quote(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => string(text),
        _ => 1,
    }
}

/// `b"…"`, `r#"…"#`, `b'x'` and their mixtures.
fn prefixed_string(text: &str) -> Option<usize> {
    let prefix = text.find(|c: char| !matches!(c, 'r' | 'b' | 'c'))?;
    let rest = &text[prefix..];
    if prefix > 2 {
        return None;
    }
    if text[..prefix].contains('r') {
        let hashes = rest.find(|c| c != '#')?;
        let body = rest[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(prefix + hashes + 1 + body.find(&end)? + end.len());
    }
    rest.starts_with(['"', '\'']).then(|| prefix + string(rest))
}

/// Leaves out the items behind `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut left = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if !(rest.starts_with(&["#", "[", "cfg", "(", "test", ")"])
            || rest.starts_with(&["#", "[", "cfg", "(", "all", "(", "test"]))
        {
            left.push(tokens[at]);
            at += 1;
            continue;
        }
        // Its other attributes, then up to the end of its body or to its `;`.
        while tokens.get(at) == Some(&"#") {
            at = behind_group(tokens, at + 1);
        }
        while let Some(token) = tokens.get(at) {
            match *token {
                ";" => {
                    at += 1;
                    break;
                }
                "{" => {
                    at = behind_group(tokens, at);
                    break;
                }
                "(" | "[" => at = behind_group(tokens, at),
                _ => at += 1,
            }
        }
    }
    left
}

#[test]
fn only_code_is_left() {
    let text = r##"//! crate::no
use a::b; /* c /* d */ */ let x = "e \" f"; 'g'; b'\''; fn h<'i>() -> r#"j"# { k::<l>() }
#[cfg(test)] #[path = "m.rs"] mod tests;
#[cfg(all(test, unix))] fn n() -> [u8; 3] { o; { p } }
fn q() {}"##;
    let expected = "use a :: b ; let x = ; ; ; fn h < i > ( ) - > { k :: < l > ( ) } fn q ( ) { }";
    assert_eq!(tokens(text), expected.split(' ').collect::<Vec<_>>());
}
