//! The first line of a list item: its marker, its check box, its content.

/// Returns the number of columns of white space; a tab advances to the next multiple of four.
pub(crate) fn columns(space: &str) -> usize {
    space.chars().fold(0, |at, c| if c == '\t' { (at / 4 + 1) * 4 } else { at + 1 })
}

/// Returns the number of columns before an item's content, and the content.
pub(crate) fn marker(line: &str) -> Option<(usize, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let width = match line.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let content = &line[width..];
    // `---` and `**bold**` are not items, `-` alone is an empty item.
    let is_item = content.is_empty() || content.starts_with([' ', '\t']);
    (is_item && !is_rule(line)).then_some((width + 1, content))
}

/// Returns whether a line is a thematic break, such as `* * *` and `- - -`.
fn is_rule(line: &str) -> bool {
    let marks: Vec<char> = line.chars().filter(|c| !c.is_whitespace()).collect();
    marks.len() >= 3 && matches!(marks[0], '-' | '*') && marks.iter().all(|c| *c == marks[0])
}

pub(crate) fn without_box(content: &str) -> &str {
    let content = content.trim_start();
    let mut chars = content.chars();
    let is_box = chars.next() == Some('[') && chars.next().is_some() && chars.next() == Some(']');
    let rest = chars.as_str();
    if is_box && (rest.is_empty() || rest.starts_with([' ', '\t'])) { rest } else { content }
}

/// Returns the character in the check box of a task; `None` for a line that is not a task.
pub(crate) fn check_mark(line: &str) -> Option<char> {
    let (_, content) = marker(line.trim_start())?;
    let content = content.trim_start();
    (without_box(content).len() < content.len()).then(|| content.chars().nth(1)).flatten()
}
