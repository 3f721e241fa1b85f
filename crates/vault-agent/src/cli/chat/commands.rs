//! The commands of a conversation: lines that begin with `/`.

use crate::known_providers::meant;

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Changes the model, or shows the current one.
    Model(Option<String>),
    Tools,
    Plan(String),
    /// The number of a transaction; by default the last one.
    Undo(Option<u64>),
    Save(String),
    New,
    Resume(Option<String>),
    Compact,
    /// The number of the permission to revoke; by default they are listed.
    Permissions(Option<usize>),
    Thoughts,
    Status,
    Help,
    Quit,
}

/// A command in the list of commands, which is ordered by use.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandHelp {
    pub name: &'static str,
    pub argument: &'static str,
    pub does: &'static str,
}

const fn help(name: &'static str, argument: &'static str, does: &'static str) -> CommandHelp {
    CommandHelp { name, argument, does }
}

pub(super) const COMMANDS: [CommandHelp; 13] = [
    help("/model", "[[PROVIDER] NAME]", "continue with another model; without a name, choose from a list"),
    help("/tools", "", "list the tools, and which of them ask first"),
    help("/plan", "INSTRUCTION", "have a plan written; it runs once you have approved it"),
    help("/undo", "[TRANSACTION]", "undo the last change to the notes, or the one of this number"),
    help("/save", "NOTE", "write this conversation into a note, with its sources"),
    help("/new", "", "start a new conversation; this one stays saved"),
    help("/resume", "[ID]", "continue a saved conversation; without an id, list them"),
    help("/compact", "", "make the conversation shorter before the next message"),
    help("/permissions", "[revoke N]", "list the lasting permissions, or revoke one"),
    help("/thoughts", "", "show the model's reasoning before its last answer"),
    help("/status", "", "show vaults, model, session and tokens"),
    help("/help", "", "show this list, and the keys"),
    help("/quit", "", "leave (Ctrl-D)"),
];

/// Whether a command has this name, without its `/`.
pub(super) fn is_command(name: &str) -> bool {
    name == "exit" || COMMANDS.iter().any(|help| &help.name[1..] == name)
}

/// Parses a line. Returns `None` for a message, and an error for an unknown command.
pub(super) fn parse(line: &str) -> Option<Result<Command, String>> {
    let line = line.trim();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // A path such as `/home/me` is not a command.
    if !name.starts_with('/') || name[1..].contains('/') || name.len() < 2 {
        return None;
    }
    let argument = argument.trim().to_owned();
    let optional = || Some(argument.clone()).filter(|argument| !argument.is_empty());
    let required = |what: &str| optional().ok_or_else(|| format!("{name} needs {what}"));
    Some(Ok(match name {
        "/model" => Command::Model(optional()),
        "/tools" => Command::Tools,
        "/plan" => return Some(required("an instruction").map(Command::Plan)),
        "/undo" => match argument.parse() {
            Ok(id) => Command::Undo(Some(id)),
            Err(_) if argument.is_empty() => Command::Undo(None),
            Err(_) => return Some(Err(format!("/undo expects a transaction number, not {argument:?}"))),
        },
        "/save" => return Some(required("the path of a note").map(Command::Save)),
        "/new" => Command::New,
        "/resume" => Command::Resume(optional()),
        "/compact" => Command::Compact,
        "/permissions" => match argument.strip_prefix("revoke ").map(|number| number.trim().parse()) {
            Some(Ok(number)) => Command::Permissions(Some(number)),
            None if argument.is_empty() => Command::Permissions(None),
            _ => return Some(Err(format!("/permissions expects revoke and a number, not {argument:?}"))),
        },
        "/thoughts" => Command::Thoughts,
        "/status" => Command::Status,
        "/help" => Command::Help,
        "/quit" | "/exit" => Command::Quit,
        _ => {
            let meant = meant(name, COMMANDS.iter().map(|help| help.name));
            let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            return Some(Err(format!("{name} is not a command{meant} (/help lists the commands)")));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        assert_eq!(parse("how do I prune?"), None);
        assert_eq!(parse("/usr/bin/env is a path"), None);
        assert_eq!(parse("/"), None);
        assert_eq!(parse("/model"), Some(Ok(Command::Model(None))));
        assert_eq!(parse(" /model  qwen3 "), Some(Ok(Command::Model(Some("qwen3".to_owned())))));
        assert_eq!(parse("/save Log/Talk.md"), Some(Ok(Command::Save("Log/Talk.md".to_owned()))));
        assert_eq!(parse("/save"), Some(Err("/save needs the path of a note".to_owned())));
        let unknown = parse("/stat").unwrap().unwrap_err();
        assert_eq!(unknown, "/stat is not a command; did you mean /status? (/help lists the commands)");
        assert_eq!(parse("/undo 7"), Some(Ok(Command::Undo(Some(7)))));
        assert!(parse("/undo it").unwrap().is_err());
        assert_eq!(parse("/permissions revoke 2"), Some(Ok(Command::Permissions(Some(2)))));
        assert!(parse("/permissions 2").unwrap().is_err());
        for help in COMMANDS {
            let argument = if help.argument.contains("revoke") { "revoke 1" } else { "1" };
            assert!(parse(&format!("{} {argument}", help.name)).unwrap().is_ok(), "{}", help.name);
        }
        // README lists the same.
        let readme = include_str!("../../../README.md");
        let usages = COMMANDS.map(|help| format!("`{}`", format!("{} {}", help.name, help.argument).trim_end()));
        assert!(readme.contains(&format!("**Commands**: {}.", usages.join(", "))), "{usages:?}");
    }
}
