//! `vault-tools rename`, `move`, `delete`, `merge`, `tag`, `prop`, `new`, `append` and `daily` as calls of tools.
//!
//! This module only translates. One call runs like `vault-tools call`; several calls become a plan, so that they are
//! shown, approved and undone together.

use serde_json::{Map, Value, json};
use vault_index::note::frontmatter_properties;
use vault_tools::{Error, ErrorKind, Result, Toolbox};

use crate::{CliResult, Out, sanitize_line};

use super::args::CallArgs;
use super::call;
use super::context::{standard_input, with_toolbox};
use super::note_args::{NoteCommand, PropCommand, SetArgs, TagCommand};
use super::note_name::{NamedNotes, join};
use super::note_words::{failure, sentence};
use super::plan;
use super::plan_args::{ContextArgs, ExecutionArgs};
use crate::VaultArgs;

pub(super) fn run(vault_args: &VaultArgs, command: &NoteCommand, out: &mut Out) -> CliResult {
    let change = command.change();
    let deletes = matches!(command, NoteCommand::Delete(_) | NoteCommand::Merge(_));
    let context = ContextArgs { asks_to_delete: deletes && !change.yes, ..ContextArgs::default() };
    let done = with_toolbox(vault_args, &context, |toolbox| {
        let Calls { tool, mut args, goal } = calls(command, toolbox)?;
        let (yes, dry_run, json) = (change.yes, change.dry_run, change.json);
        if args.len() == 1 {
            let (given, context) = (args.remove(0), context.clone());
            let call = CallArgs { tool: tool.into(), args: String::new(), yes, dry_run, json, typed: true, context };
            let said = |output: &Value, changes| sentence(tool, &given, output, changes);
            return call::typed(toolbox, &call, given.clone(), said, out);
        }
        let running = ExecutionArgs { yes, dry_run, jsonl: json, context: context.clone(), ..ExecutionArgs::default() };
        plan::run_value(toolbox, &plan_of(tool, &goal, args), &running, &[], out)
    });
    done.map_err(|error| failure(error, command.name()))
}

/// The calls of a tool to which a command translates.
struct Calls {
    tool: &'static str,
    /// The arguments of each call.
    args: Vec<Value>,
    /// The goal of the plan, if there are several calls.
    goal: String,
}

impl Calls {
    fn one(tool: &'static str, args: Value) -> Self {
        Self { tool, args: vec![args], goal: String::new() }
    }
}

fn calls(command: &NoteCommand, toolbox: &Toolbox) -> Result<Calls> {
    let named = || NamedNotes::new(toolbox);
    let path_of = |name: &str| named()?.find(name);
    Ok(match command {
        NoteCommand::Rename(args) => {
            let named = named()?;
            let old = named.find(&args.old)?;
            let (folder, name) = old.rsplit_once('/').unwrap_or(("", &old));
            let new = match args.new.strip_suffix('/') {
                Some(folder) => join(&named.folder(folder), name),
                None => named.new_path(&args.new, folder, extension(name)),
            };
            Calls::one("rename_note", json!({ "path": old, "new_path": new }))
        }
        NoteCommand::Move(args) => {
            let named = named()?;
            let folder = named.folder(&args.folder);
            if folder.to_lowercase().ends_with(".md") {
                let message = format!("`{folder}` is the name of a note, but move takes a folder");
                let remedy = "vault-tools rename gives a note another name";
                return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy(remedy));
            }
            let notes = found(&args.notes, &named)?;
            let goal = match folder.as_str() {
                "" => format!("Move {} notes to the vault's root", notes.len()),
                folder => format!("Move {} notes to {folder}", notes.len()),
            };
            let call = |path: &String| {
                let name = path.rsplit('/').next().unwrap_or(path);
                json!({ "path": path, "new_path": join(&folder, name) })
            };
            Calls { tool: "rename_note", args: notes.iter().map(call).collect(), goal }
        }
        NoteCommand::Delete(args) => {
            let notes = found(&args.notes, &named()?)?;
            let goal = format!("Delete {} notes", notes.len());
            let args = notes.iter().map(|path| json!({ "path": path })).collect();
            Calls { tool: "delete_note", args, goal }
        }
        NoteCommand::Merge(args) => {
            let named = named()?;
            let into = named.find(&args.into)?;
            let notes = found(&args.sources, &named)?;
            let goal = format!("Merge {} notes into {into}", notes.len());
            let args = notes.iter().map(|path| json!({ "path": path, "into": into })).collect();
            Calls { tool: "merge_notes", args, goal }
        }
        NoteCommand::Tag(TagCommand::Add(args)) => {
            Calls::one("edit_tags", json!({ "path": path_of(&args.note)?, "add": args.tags }))
        }
        NoteCommand::Tag(TagCommand::Remove(args)) => {
            Calls::one("edit_tags", json!({ "path": path_of(&args.note)?, "remove": args.tags }))
        }
        NoteCommand::Tag(TagCommand::Rename(args)) => {
            Calls::one("rename_tag", json!({ "tag": args.old, "new_tag": args.new }))
        }
        NoteCommand::Prop(PropCommand::Set(args)) => {
            let updates = Map::from_iter([(args.key.clone(), value(args)?)]);
            Calls::one("update_frontmatter", json!({ "path": path_of(&args.note)?, "updates": updates }))
        }
        NoteCommand::Prop(PropCommand::Remove(args)) => {
            let updates = Map::from_iter([(args.key.clone(), Value::Null)]);
            Calls::one("update_frontmatter", json!({ "path": path_of(&args.note)?, "updates": updates }))
        }
        NoteCommand::New(args) => {
            let named = named()?;
            let is_canvas = args.path.to_lowercase().ends_with(".canvas");
            let path = named.new_path(&args.path, "", if is_canvas { "canvas" } else { "md" });
            let content = args.text.as_deref().map(text).transpose()?.unwrap_or_default();
            let mut call = json!({ "path": path, "content": content, "collisionStrategy": "error" });
            if let Some(template) = &args.template {
                // If no note has this name, the tool looks it up in the templates folders.
                call["template"] = named.find(template).unwrap_or_else(|_| template.clone()).into();
            }
            Calls::one("vault.createFile", call)
        }
        NoteCommand::Append(args) => {
            let content = text(&args.text)?;
            if content.is_empty() {
                return Err(Error::new(ErrorKind::InvalidArguments, "standard input is empty, so nothing is added"));
            }
            let mut call = json!({ "path": path_of(&args.note)?, "content": content });
            if let Some(heading) = &args.heading {
                call["heading"] = heading.as_str().into();
            }
            Calls::one("append_to_note", call)
        }
        NoteCommand::Daily(args) => {
            let now = toolbox.now();
            let day = match args.date.as_deref().map(str::trim) {
                Some("yesterday") => now.yesterday().ok().map(|day| day.date().to_string()),
                Some("tomorrow") => now.tomorrow().ok().map(|day| day.date().to_string()),
                None | Some("today") => Some(now.date().to_string()),
                Some(date) => Some(date.to_owned()),
            };
            Calls::one("create_daily_note", json!({ "date": day }))
        }
    })
}

/// Returns the paths of notes, without duplicates.
fn found(names: &[String], named: &NamedNotes<'_>) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for name in names {
        let path = named.find(name)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Returns the extension of a name; `md` if it has none.
fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("md", |(_, extension)| extension)
}

/// Returns a text from the command line, with a line feed at the end. `-` reads standard input, without adding one.
fn text(typed: &str) -> Result<String> {
    match typed {
        "-" => standard_input(),
        typed if typed.ends_with('\n') => Ok(typed.to_owned()),
        typed => Ok(format!("{typed}\n")),
    }
}

/// Parses the value of a property in the same way as frontmatter.
fn value(args: &SetArgs) -> Result<Value> {
    if args.text {
        return Ok(args.value.as_str().into());
    }
    let wrong = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    // A value of several lines must not add other keys.
    let read = frontmatter_properties(&format!("value: {}\n", args.value)).ok().filter(|read| read.iter().count() == 1);
    let value = read.as_ref().and_then(|read| read.get("value")).and_then(|value| serde_json::to_value(value).ok());
    match value {
        None => Err(wrong(format!("`{}` is not valid YAML", sanitize_line(&args.value)))
            .with_remedy("to take it as text, add --text")),
        Some(Value::Null) => Err(wrong(format!("`{}` is not a value", sanitize_line(&args.value)))
            .with_remedy("vault-tools prop remove removes a property; for a text, add --text")),
        Some(value) => Ok(value),
    }
}

/// Returns a plan of several calls.
fn plan_of(tool: &str, goal: &str, calls: Vec<Value>) -> Value {
    let step = |(number, mut args): (usize, Value)| {
        let note = args["path"].clone();
        let texts = args.as_object_mut().into_iter().flat_map(Map::values_mut);
        texts.for_each(|text| *text = literal(text.as_str().unwrap_or_default()).into());
        json!({ "id": format!("note-{}", number + 1), "tool": tool, "preview": note, "args": args })
    };
    let steps: Vec<Value> = calls.into_iter().enumerate().map(step).collect();
    json!({ "version": "1.0", "goal": goal, "riskLevel": "writes", "steps": steps })
}

/// Escapes a text so that a plan finds no references in it.
pub(super) fn literal(text: &str) -> String {
    let is_reference = text.starts_with("$steps.") || text.starts_with("$vars.");
    format!("{}{}", if is_reference { "$" } else { "" }, text.replace("${", "$${"))
}
