//! The lines about a turn: a call and its result, an item of a result, the usage of the turn.

use agent_loop::{RunUsage, Status, ToolCall, ToolResult};
use serde_json::Value;
use vault_search::{counted, sanitize_line, shortened};

/// The maximum characters of an argument, and of an error.
const LONGEST_ARGUMENT: usize = 60;
const LONGEST_ERROR: usize = 200;

/// The maximum characters of the arguments that are sent to another program.
const LONGEST_SENT: usize = 400;

/// The prefix of a tool's notices among the items of its result.
pub(crate) const NOTICE: &str = "note: ";

/// The text of a denied call before its reason, as the loop writes it.
const DENIED_FOR: &str = "Tool call denied: ";

/// The beginning of the reason if a person declined a call. Clients compare it.
pub(crate) const DECLINED: &str = "User cancelled tool execution";

/// How the reasons begin that a person's own answer gives the model.
const BY_PERSON: [&str; 2] = [DECLINED, "the person "];

/// The most informative arguments, in order of preference.
const TELLING: [&str; 8] = ["query", "path", "fromPath", "tags", "filePaths", "text", "prefix", "id"];

/// Describes a call in one line, for example `search_notes "how to prune": 8 results`.
pub(crate) fn call_line(call: Option<&ToolCall>, result: &ToolResult) -> String {
    let argument = call.and_then(telling).map(|text| format!(" {text}")).unwrap_or_default();
    let ended = match result.status {
        Status::Ok => match result.items.iter().filter(|item| !item.starts_with(NOTICE)).count() {
            0 | 1 if result.text() == "[]" => ": nothing found".to_owned(),
            0 | 1 => String::new(),
            count => format!(": {}", counted(count, "result")),
        },
        Status::Error => format!(": {}", shortened(without_code(&result.text()), LONGEST_ERROR)),
        Status::Denied => format!(": denied{}", why_denied(&result.text())),
        Status::Cancelled => ": cancelled".to_owned(),
    };
    format!("{}{argument}{ended}", sanitize_line(&result.name))
}

/// Describes an item of a result in one line, for a note by its path and a preview.
pub(crate) fn item_line(item: &str) -> String {
    // The fields of a file are followed by its text.
    let fields = serde_json::Deserializer::from_str(item).into_iter::<Value>().next().and_then(Result::ok);
    let field = |name: &str| fields.as_ref()?.get(name)?.as_str().map(str::to_owned);
    let Some(path) = field("path") else { return shortened(item.trim(), LONGEST_ARGUMENT) };
    let line = ["line", "start_line"].into_iter().find_map(|name| fields.as_ref()?.get(name)?.as_u64());
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let preview = ["preview", "chunk", "snippet", "content", "title"].into_iter().find_map(field);
    let preview = preview.map(|text| format!("  {}", shortened(text.trim(), LONGEST_ARGUMENT))).unwrap_or_default();
    format!("{}{line}{preview}", sanitize_line(&path))
}

/// Returns the items of a result that a person can withhold, which are all but the notices.
pub(crate) fn shared_items(items: &[String]) -> Vec<usize> {
    (0..items.len()).filter(|at| !items[*at].starts_with(NOTICE)).collect()
}

/// Returns the tokens of a turn, and its cost if the provider reports it.
pub(crate) fn spent_text(spent: &RunUsage) -> String {
    let cost = spent.cost.map(|millionths| format!(", ${:.4}", millionths as f64 / 1e6)).unwrap_or_default();
    format!("{}{cost}", counted(spent.tokens as usize, "token"))
}

/// Returns the reason of a denied call after a colon, unless a person gave it: they know it.
fn why_denied(text: &str) -> String {
    match text.split_once(DENIED_FOR).map(|(_, reason)| reason) {
        Some(reason) if !BY_PERSON.iter().any(|known| reason.starts_with(known)) => {
            format!(": {}", shortened(reason, LONGEST_ERROR))
        }
        _ => String::new(),
    }
}

/// Removes the error code at the beginning of an error, which is only for programs.
fn without_code(error: &str) -> &str {
    let is_code = |code: &str| code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    error.split_once(": ").filter(|(code, _)| is_code(code)).map_or(error, |(_, said)| said)
}

fn telling(call: &ToolCall) -> Option<String> {
    // Tools of other programs have names `server__tool`. Show all of their arguments, because all of them are sent.
    if call.name.contains("__") {
        return Some(shortened(&call.arguments.to_string(), LONGEST_SENT));
    }
    TELLING
        .into_iter()
        .find_map(|name| call.arguments.get(name))
        .map(|value| shortened(&value.to_string(), LONGEST_ARGUMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_its_path_and_what_says_most() {
        for (item, line) in [
            (r#"{"path": "a/B.md", "preview": "Prune\nroses"}"#, "a/B.md  Prune roses"),
            ("{\"path\":\"Inbox.md\",\"size\":103}\n---\ntags: x\n---\nBuy seed", "Inbox.md"),
            (r#"{"path": "a/B.md", "line": 7, "title": "B", "chunk": "Prune"}"#, "a/B.md:7  Prune"),
            ("no file", "no file"),
        ] {
            assert_eq!(item_line(item), line);
        }
    }
}
