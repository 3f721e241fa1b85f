//! Messages of the commands for people: turns outputs and errors of tools into sentences that fit the command.

use serde_json::Value;

use crate::{Failure, counted};

/// Returns the output of a tool as a sentence. `changes` is false if nothing changes.
pub(super) fn sentence(tool: &str, args: &Value, output: &Value, changes: bool) -> String {
    let text = |name: &str| output[name].as_str().unwrap_or_default();
    let count = |name: &str| output[name].as_u64().map_or(0, |count| count as usize);
    let many = |name: &str, noun: &str| counted(output[name].as_array().map_or(0, Vec::len), noun);
    let list = |name: &str| {
        let items = output[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(", ")
    };
    let links = || match count("links_updated") {
        0 => String::new(),
        links => format!(", {} updated in {}", counted(links, "link"), many("notes_updated", "note")),
    };
    match tool {
        // Print only the path, because other programs use it, whether the note is new or not.
        "create_daily_note" => text("path").to_owned(),
        _ if !changes => "nothing to change".to_owned(),
        "rename_note" => format!("renamed {} to {}{}", text("path"), text("new_path"), links()),
        "delete_note" => match text("trashed_to") {
            "" => format!("deleted {}", text("path")),
            place => format!("deleted {}, which is in {place} now", text("path")),
        },
        "merge_notes" => format!("merged {} into {}{}", text("path"), text("into"), links()),
        "edit_tags" => match list("tags").as_str() {
            "" => format!("{} has no tags now", text("path")),
            tags => format!("{} has the tags {tags}", text("path")),
        },
        "rename_tag" => {
            let notes = many("notes_updated", "note");
            format!("renamed {} to {} in {notes}", text("tag"), text("new_tag"))
        }
        "update_frontmatter" => {
            let updates = args["updates"].as_object().into_iter().flatten();
            let each = updates.map(|(key, value)| match value {
                Value::Null => format!("removed {key} of {}", text("path")),
                value => format!("set {key} of {} to {value}", text("path")),
            });
            each.collect::<Vec<_>>().join("; ")
        }
        "append_to_note" => format!("added to {}, line {}", text("path"), count("line")),
        "vault.createFile" => format!("created {}", text("path")),
        _ => text("path").to_owned(),
    }
}

/// Advice about arguments and flags of a tool, with the advice that replaces it for the user of a command.
const ADVICE: [(&str, &str); 7] = [
    (
        "deleting is not allowed (set allow_delete = true in tools.toml, or add --allow-delete)",
        "deleting unasked is not allowed (leave out --yes and answer in a terminal, or set allow_delete = true in tools.toml)",
    ),
    ("User cancelled tool execution (nothing was done)", "not approved; nothing was done"),
    ("User cancelled overwrite (nothing was done)", "not approved; nothing was done"),
    ("choose another name, or another collisionStrategy: create-unique or overwrite", "choose another name"),
    ("search_by_tag finds the notes with a tag", "vault-index tags lists all tags"),
    ("give it as a text", "to take it as text, add --text"),
    ("list or search the vault for the note's path", "vault-search finds notes by what is in them"),
];

/// Rewrites an error for the user of `command`: without its code, without the name of an argument of the tool, and with
/// advice that they can follow.
pub(super) fn failure(failure: Failure, command: &str) -> Failure {
    match failure {
        Failure::Error(text) => Failure::Error(in_words(&text, command)),
        Failure::Refused(text) => Failure::Refused(in_words(&text, command)),
        Failure::Interrupted(text) => Failure::Interrupted(in_words(&text, command)),
        other => other,
    }
}

fn in_words(text: &str, command: &str) -> String {
    let is_code = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_argument = |word: &str| ["/path", "/new_path", "/into", "/tag", "/new_tag", "/date"].contains(&word);
    let mut rest = text;
    for is_left_out in [&is_code as &dyn Fn(&str) -> bool, &is_argument] {
        rest = rest.split_once(": ").filter(|(word, _)| is_left_out(word)).map_or(rest, |(_, rest)| rest);
    }
    // A step is one of the notes, which the rest names.
    if let Some((_, of_step)) = rest.split_once("): ").filter(|_| rest.starts_with("the step note-")) {
        rest = of_step;
    }
    const UNASKED: &str = " needs approval, and there is no terminal";
    let words = match rest.split_once(UNASKED) {
        Some((_, rest)) => format!("{command}{UNASKED}{rest}"),
        None => rest.to_owned(),
    };
    ADVICE.iter().fold(words, |words, (of_tool, of_command)| words.replace(of_tool, of_command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_neither_codes_nor_arguments_of_tools() {
        for (text, expected) in [
            ("EXISTS: a b/C.md: is there already", "a b/C.md: is there already"),
            ("INVALID_ARGUMENTS: /date: `x` is not a day", "`x` is not a day"),
            ("IO: /home/ada/x: cannot be read", "/home/ada/x: cannot be read"),
            ("Note not found: x (did you mean y?)", "Note not found: x (did you mean y?)"),
            ("DENIED: the step note-2 (rename_note): x.md: is denied", "x.md: is denied"),
            (
                "DENIED: rename_note needs approval, and there is no terminal",
                "rename needs approval, and there is no terminal",
            ),
        ] {
            assert_eq!(in_words(text, "rename"), expected);
        }
    }
}
