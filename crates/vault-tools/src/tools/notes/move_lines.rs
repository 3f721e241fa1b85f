//! Moves matching lines to another note or section: `move_lines`.

use std::cell::RefCell;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::{self, Insertion, LineEnding, TakenLines};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Position;
use crate::overlay::JoinedText;
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The note that the lines are in.
    path: PathArg,
    /// The note that they go to, which is created if missing; it can be the same one.
    to_path: PathArg,
    /// Which tasks go.
    tasks: Option<Tasks>,
    /// A regular expression that a line must match, such as `#archive` or `(?i)idea`; with tasks, both must hold.
    #[schemars(length(min = 1))]
    pattern: Option<String>,
    /// Only lines in this section, subsections included.
    from_heading: Option<String>,
    /// The section at whose end they are added, which is created if missing; default: the end of the note.
    to_heading: Option<String>,
    /// The version that read_note gave of the note that the lines are in: if it has changed since, nothing is done.
    expected_version: Option<String>,
    /// The same of the note that they go to.
    expected_to_version: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tasks {
    /// Those that are ticked.
    Done,
    /// Those that are not.
    Open,
}

/// The result of a move.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct MovedLines {
    /// The note that the lines were in.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The note that they are in.
    #[schemars(extend("x-vault-path" = true))]
    to_path: String,
    /// How many lines matched; what is nested in them went along. With 0 nothing was changed.
    moved: usize,
    /// Their first line in the other note, from 1.
    line: Option<u32>,
    /// The number of rewritten links.
    links_updated: usize,
    /// The new version of the note that they were in.
    version: String,
    /// The new version of the note that they are in; null if there is none.
    to_version: Option<String>,
}

pub(in crate::tools) fn move_lines(args: Args, context: &mut Context<'_, '_>) -> Result<MovedLines> {
    let from = locate::markdown(&args.path, "only lines of Markdown notes can be moved", context)?;
    let to = context.path(&args.to_path)?;
    let to = if context.overlay.exists(&to)? {
        locate::markdown(&args.to_path, "lines can be moved to Markdown notes only", context)?
    } else {
        locate::new_note(&args.to_path, context)?
    };
    expected_version::require(args.expected_version.as_deref(), &from, context)?;
    expected_version::require(args.expected_to_version.as_deref(), &to, context)?;
    let heading = args.to_heading.as_deref().map(str::trim).filter(|heading| !heading.is_empty());
    let text = context.overlay.text(&from)?;
    let is_same = from == to;
    if is_same && heading.is_none() {
        return Err(Error::new(ErrorKind::InvalidArguments, "within one note, lines are moved to a section")
            .at("/to_heading")
            .with_remedy("give to_heading, or another to_path"));
    }
    let part = match &args.from_heading {
        Some(heading) => edit::find_section(&text, heading).map_err(|error| error.at(&from))?.body,
        None => 0..text.len(),
    };
    // Lines in the destination section are already in place.
    let there = heading.filter(|_| is_same).and_then(|heading| edit::find_section(&text, heading).ok());
    let except = there.map_or(0..0, |section| section.body);
    let matches = filter(args.tasks, args.pattern.as_deref())?;
    let taken = edit::take_lines(&text, &part, &except, &matches).map_err(|error| error.at(&from))?;
    say_what_is_odd(&from, &taken, context);
    let mut moved = MovedLines {
        path: from.to_string(),
        to_path: to.to_string(),
        moved: taken.count,
        line: None,
        links_updated: 0,
        version: String::new(),
        to_version: None,
    };
    if taken.count > 0 {
        let line = RefCell::new(None);
        let join = |part: &str, text: &str| {
            let mut added = added_to(text, part, heading).map_err(|error| error.at(&to))?;
            if text.is_empty() {
                added.text.push_str(LineEnding::of(part).as_str());
            }
            line.replace(Some(added.line));
            let start = edit::offset_of(&added.text, Position { line: added.line - 1, ch: 0 })?;
            let end = start + LineEnding::of(&added.text).put(part).len();
            Ok(JoinedText { added: start..end.min(added.text.len()), text: added.text })
        };
        match is_same {
            true => drop(context.overlay.write(&from, join(&taken.taken, &taken.left)?.text)?),
            false => {
                let what = (taken.taken.as_str(), taken.blocks);
                let links = context.overlay.move_text((&from, &taken.left), &to, what, &join)?;
                moved.links_updated = links.rewritten.len();
            }
        }
        moved.line = line.into_inner();
    }
    moved.version = expected_version::of(&from, context)?;
    if context.overlay.exists(&to)? {
        moved.to_version = Some(expected_version::of(&to, context)?);
    }
    Ok(moved)
}

fn filter(tasks: Option<Tasks>, pattern: Option<&str>) -> Result<impl Fn(&str) -> bool> {
    if tasks.is_none() && pattern.is_none() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the lines to move are not specified")
            .with_remedy("give tasks, pattern or both"));
    }
    let pattern = pattern.map(Regex::new).transpose().map_err(|error| {
        Error::new(ErrorKind::InvalidArguments, format!("not a regular expression: {error}")).at("/pattern")
    })?;
    Ok(move |line: &str| {
        let mark = edit::item::check_mark(line);
        let is_of_tasks = match tasks {
            None => true,
            Some(Tasks::Done) => matches!(mark, Some('x' | 'X')),
            Some(Tasks::Open) => mark == Some(' '),
        };
        is_of_tasks && !line.trim().is_empty() && pattern.as_ref().is_none_or(|pattern| pattern.is_match(line))
    })
}

fn added_to(text: &str, part: &str, heading: Option<&str>) -> Result<Insertion> {
    match heading {
        Some(heading) => edit::append_to_section(text, heading, part),
        None => edit::append_to_end(text, part),
    }
}

fn say_what_is_odd(path: &SafePath, taken: &TakenLines, context: &mut Context<'_, '_>) {
    let mut say = |what: String| context.overlay.notice(format!("{path}: {what}"));
    if taken.open_tasks > 0 {
        say(format!("{} open tasks go along, nested in lines that are moved", taken.open_tasks));
    }
    if taken.passed_over > 0 {
        say(format!("{} lines in quotes, tables and headings match and stay", taken.passed_over));
    }
    if taken.loses_labels {
        say("links by a label, or references to footnotes, are moved without the definition of the label".to_owned());
    }
}
