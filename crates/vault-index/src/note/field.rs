//! Inline fields, as Dataview reads them: `key:: value` on a line, `[key:: value]` and `(key:: value)` within one.

use std::ops::Range;

/// A longer text before `::` is not a key.
const MAX_KEY: usize = 64;

/// Calls `each` with the key and the value of every field in a line, without the marks of a list or quote before it.
/// `is_text` says whether a byte belongs to the text, not to code or similar. If `may_be_one`, and no field is in
/// brackets, the whole line may be a field. A field without a value does not count.
pub(super) fn fields<'t>(
    line: &'t str,
    may_be_one: bool,
    is_text: &dyn Fn(usize) -> bool,
    each: &mut dyn FnMut(&'t str, &'t str),
) {
    let mut is_one = may_be_one;
    let mut at = 0;
    while let Some(colons) = line[at..].find("::").map(|found| at + found) {
        at = colons + 2;
        if !is_text(colons) {
            continue;
        }
        if let Some((key, value)) = in_brackets(line, colons) {
            each(key, line[value.clone()].trim());
            at = value.end;
            is_one = false;
        }
    }
    let Some(colons) = line.find("::").filter(|colons| is_one && is_text(*colons)) else { return };
    let value = &line[colons + 2..];
    // `std::move` is not a field.
    if let Some(key) = name(&line[..colons]).filter(|_| value.starts_with(char::is_whitespace))
        && !value.trim().is_empty()
    {
        each(key, value.trim());
    }
}

/// The key before the colons and the position of its value, if both are in one pair of brackets.
fn in_brackets(line: &str, colons: usize) -> Option<(&str, Range<usize>)> {
    let open = line[..colons].rfind(['[', '('])?;
    let key = name(&line[open + 1..colons])?;
    let (start, end) = if line[open..].starts_with('[') { ('[', ']') } else { ('(', ')') };
    let value = &line[colons + 2..];
    // `(std::move)` is not a field either.
    if start == '(' && !value.starts_with(char::is_whitespace) {
        return None;
    }
    let mut depth = 1;
    let length = value.find(|c| {
        depth += i32::from(c == start) - i32::from(c == end);
        depth == 0
    })?;
    (!value[..length].trim().is_empty()).then_some((key, colons + 2..colons + 2 + length))
}

/// A key: letters, digits and characters that may join them, without surrounding marks of bold or italic text.
fn name(key: &str) -> Option<&str> {
    let key = key.trim().trim_matches(['*', '_', '~']).trim();
    let joins = |c: char| matches!(c, ' ' | '-' | '_' | '/' | '\'' | '\u{fe0f}' | '\u{200d}');
    let is_key = |c: char| c.is_alphanumeric() || joins(c) || !(c.is_ascii() || c.is_whitespace());
    (key.chars().any(|c| !joins(c)) && key.len() <= MAX_KEY && key.chars().all(is_key)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_line() {
        for (line, expected) in [
            ("rating:: 5", vec!["rating=5"]),
            ("**Due Date**:: 2024-05-01 ", vec!["Due Date=2024-05-01"]),
            ("🕒:: late", vec!["🕒=late"]),
            ("from:: [[A]], [[B|b]]", vec!["from=[[A]], [[B|b]]"]),
            ("a [mood:: fine] b (place::  the [[Pond]]) c", vec!["mood=fine", "place=the [[Pond]]"]),
            ("[mood::fine]", vec!["mood=fine"]),
            ("[of:: f(x)[1]] (n:: (a) b)", vec!["of=f(x)[1]", "n=(a) b"]),
            ("key:: a [x:: 1]", vec!["x=1"]),
            ("std::move is", vec![]),
            ("(std::move) [](a:: b)", vec!["a=b"]),
            ("see https://x:: y", vec![]),
            ("a, b:: c", vec![]),
            ("rating::", vec![]),
            ("[rating:: ]", vec![]),
            ("[rating:: 5", vec![]),
            (":: x", vec![]),
            ("-:: x", vec![]),
            ("", vec![]),
        ] {
            let mut found = Vec::new();
            fields(line, true, &|_| true, &mut |key, value| found.push(format!("{key}={value}")));
            assert_eq!(found, expected, "{line:?}");
        }
        fields("a:: b [c:: d]", true, &|at| at > 3, &mut |key, _| assert_eq!(key, "c"));
        fields("a:: b", false, &|_| true, &mut |_, _| panic!("it is a cell or a heading"));
    }
}
