//! Recognizes calls of another family in a reply that was parsed as text.

use crate::message::Message;
use crate::model::Request;
use crate::tool::ToolSpec;

use super::fence::Fences;

/// The text before a tool's name in the calls of the families, in lower case.
pub(super) const MARKS: [&str; 29] = [
    "<tool_call>",
    "<tool_calls>",
    "<toolcall>",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<functioncall>",
    "<invoke ",
    "<minimax:tool_call>",
    "<|tool_call|>",
    "<|tool_call>",
    "<|tool_calls|>",
    "<|tool_call_start|>",
    "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜dsml｜invoke ",
    "<|python_tag|>",
    "<|python_start|>",
    "<|start_action|>",
    "<start_function_call>",
    "<|channel|>commentary to=",
    "<|start|>assistant to=",
    "[tool_calls]",
    "[tool_call]",
    "functools[",
    "||call:",
];
/// How many bytes after the mark the name may end.
const WINDOW: usize = 160;
/// How many marks of a line are checked. The number is bounded because more would make the time quadratic.
const MOST_MARKS: usize = 100;

/// Returns the tool that a text without calls seems to call: its name follows a mark, outside of code, quotes and
/// sentences.
pub(super) fn foreign_call<'t>(text: &str, tools: &'t [ToolSpec]) -> Option<&'t str> {
    let lower = text.to_ascii_lowercase();
    let mut fences = Fences::default();
    let mut line_at = 0;
    for line in text.split_inclusive('\n') {
        let is_code = fences.is_inside();
        line.bytes().for_each(|byte| fences.take(byte));
        let is_quote = line.trim_start().starts_with("> ");
        if !is_code && !fences.is_inside() && !is_quote {
            let marks = MARKS.iter().flat_map(|mark| {
                lower[line_at..line_at + line.len()].match_indices(mark).map(|(at, _)| (line_at + at, mark.len()))
            });
            let outside = marks.take(MOST_MARKS).filter(|(at, _)| !is_quoted(&text[line_at..*at]));
            let found = outside.filter_map(|(at, length)| called(&text[at + length..], tools)).next();
            if found.is_some() {
                return found;
            }
        }
        line_at += line.len();
    }
    None
}

/// Returns whether the model was told this since the person's last message.
pub(super) fn was_told(request: &Request, what: &str) -> bool {
    let since = request.messages.iter().rev().take_while(|message| !message.is_of_person());
    since.into_iter().any(|message| match &**message {
        Message::Results { results } => results.iter().any(|result| result.text().contains(what)),
        _ => false,
    })
}

/// Returns whether a text after this beginning of a line is inline code, or directly after a quotation mark.
fn is_quoted(before: &str) -> bool {
    before.matches('`').count() % 2 == 1 || before.ends_with(['"', '\'', '“', '‘', '«', '„'])
}

/// Returns the tool whose name follows a mark, without words before it.
fn called<'t>(behind: &str, tools: &'t [ToolSpec]) -> Option<&'t str> {
    let behind = &behind[..behind.floor_char_boundary(WINDOW)];
    let is_word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    tools.iter().map(|tool| tool.name.as_str()).find(|name| {
        behind.match_indices(name).any(|(at, _)| {
            let (before, after) = (&behind[..at], &behind[at + name.len()..]);
            let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "_-".contains(c));
            begins && !after.starts_with(is_word) && !is_prose(before)
        })
    })
}

/// Returns whether a text has a word with a space after it.
fn is_prose(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0].is_ascii_alphabetic() && pair[1] == b' ')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::Effect;

    #[test]
    fn a_name_counts_close_behind_a_mark_and_time_is_linear() {
        let look = ToolSpec {
            name: "look".into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effect: Effect::Read,
            time_limit: None,
        };
        let tools = [look];
        for (text, is_call) in [
            ("[TOOL_CALLS] look{}", true),
            ("||call: look(a)", true),
            ("<function=lookup>", false),
            ("<function=a.look>", true),
            ("<function=re-look>", false),
            ("«<function=look>»", false),
            ("``<function=look>", true),
        ] {
            assert_eq!(foreign_call(text, &tools).is_some(), is_call, "{text}");
        }
        let far = format!("<function={}look", "ü".repeat(200));
        assert_eq!(foreign_call(&far, &tools), None);
        // A million marks would take hours if the check of each one read the rest of the text.
        let many = "`<function=".repeat(200_000);
        assert_eq!(foreign_call(&many, &tools), None);
    }
}
