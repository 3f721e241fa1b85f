//! Numbers the lines of a note that a model reads, so that it can cite them, and removes the numbers where the model
//! copies them into a note.

use serde_json::Value;

/// The mark after a number. It is rare in notes, and models know it from other programs.
const MARK: char = '→';

/// Tools whose texts are written into notes.
const WRITERS: [&str; 3] = ["edit_note", "append_to_note", "write_note"];

/// Numbers the text of each note in the result of `read_note`, except outlines, which are not the text of a note.
pub(super) fn number_lines(tool: &str, args: &Value, value: &mut Value) {
    if tool != "read_note" || args["outline"] == true {
        return;
    }
    let notes = match value.get_mut("notes").and_then(Value::as_array_mut) {
        Some(notes) => notes.iter_mut().collect(),
        None => vec![value],
    };
    for note in notes {
        let first = note["first_line"].as_u64().unwrap_or(1);
        if let Some(Value::String(text)) = note.get_mut("content") {
            *text = numbered(text, first);
        }
    }
}

/// Adds a number before each line.
pub(super) fn numbered(text: &str, first: u64) -> String {
    let lines = text.split_inclusive('\n').zip(first..);
    lines.map(|(line, number)| format!("{number}{MARK}{line}")).collect()
}

/// Removes line numbers that were copied from the arguments of a tool that writes. Also returns whether there were any.
pub(super) fn without_line_numbers(tool: &str, mut args: Value) -> (Value, bool) {
    let has_changed = WRITERS.contains(&tool) && strip(&mut args);
    (args, has_changed)
}

fn strip(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match plain(text) {
            Some(plain) => {
                *text = plain;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| strip(item) | any),
        Value::Object(fields) => fields.values_mut().fold(false, |any, field| strip(field) | any),
        _ => false,
    }
}

/// Removes the numbers if every line has one and they are consecutive.
fn plain(text: &str) -> Option<String> {
    let (mut plain, mut last) = (String::new(), None);
    for line in text.split_inclusive('\n') {
        let (number, rest) = line.split_once(MARK)?;
        let number: u64 = number.trim_start().parse().ok()?;
        if last.is_some_and(|last| number != last + 1) {
            return None;
        }
        last = Some(number);
        plain.push_str(rest);
    }
    last.map(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_wholly_numbered_is_stripped() {
        for (text, expected) in [
            ("8→a\n9→b\n10→\n", Some("a\nb\n\n")),
            ("  3→ indented", Some(" indented")),
            ("8→a\n10→b", None),
            ("8→a\nb", None),
            ("go → there", None),
            ("1. a\n2. b", None),
            ("", None),
        ] {
            assert_eq!(plain(text).as_deref(), expected, "{text:?}");
        }
        let args = json!({ "path": "a.md", "edits": [{ "old": "2→x", "new": "2→y" }] });
        let (stripped, has) = without_line_numbers("edit_note", args.clone());
        assert_eq!((stripped, has), (json!({ "path": "a.md", "edits": [{ "old": "x", "new": "y" }] }), true));
        assert_eq!(without_line_numbers("search_notes", args.clone()), (args, false));
    }

    proptest! {
        #[test]
        fn numbers_come_off_as_they_went_on(text in "(\\PC{0,12}\n?){1,6}", first in 1_u64..2000) {
            prop_assume!(!text.is_empty());
            prop_assert_eq!(plain(&numbered(&text, first)), Some(text));
        }
    }
}
