//! Makes one link, or points one elsewhere: `set_link`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::note::{ParseOptions, opaque_spans, parse};

use super::make_link::link_to;
use super::{locate, obsidian_settings, version};
use crate::edit::{TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{LinkFormat, NewTarget, retarget};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The note that has the link, or is to have it.
    path: PathArg,
    /// Where the link is to lead: a path, or a name as in a link.
    target: PathArg,
    /// A heading or `^block` of it.
    heading: Option<String>,
    /// The line, from 1.
    line: u32,
    /// A link as it stands there, which is to lead elsewhere; or words, which become the link. Without it a link is added at
    /// the end of the line.
    text: Option<String>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// The link.
#[derive(Serialize, JsonSchema)]
pub(super) struct SetLink {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The line, from 1.
    line: u32,
    /// The line as it is now.
    now: String,
    /// The note's new version.
    version: String,
}

pub(super) fn set_link(args: Args, context: &mut Context<'_, '_>) -> Result<SetLink> {
    let path = locate::markdown(&args.path, "links are set in Markdown notes only", context)?;
    version::require(args.expected_version.as_deref(), &path, context)?;
    let (target, in_link) = locate::linked(&args.target, context)?;
    let subpath = args.heading.as_deref().or(in_link.as_deref()).map(|subpath| subpath.trim_start_matches('#'));
    let text = context.overlay.text(&path)?;
    let options = context.vault.sandbox().parse_options();
    let format = format(&options, context)?;
    let to = NewTarget { file: target.vault_path(), subpath };
    let given = args.text.as_deref().unwrap_or_default();
    let is_link = given.starts_with(['[', '!']) && given.ends_with([']', ')']);
    let edit = match is_link {
        true => retarget(&text, (path.vault_path(), args.line, given), &to, (context.names()?, format, &options))
            .ok_or_else(|| not_there(given, &path))?,
        false => {
            let span = match given {
                "" => end_of_line(&text, args.line, &path)?,
                words => words_in(&text, words, args.line, &path, &options)?,
            };
            let shown = if given.is_empty() { None } else { Some(given) };
            let link = link_to(&PathArg(target.to_string()), Some(&path), subpath, shown, context)?;
            TextEdit { text: if given.is_empty() { format!(" {link}") } else { link }, span }
        }
    };
    let start = edit.span.start;
    let new = apply_edits(&text, &[edit])?;
    let line = new[..start].matches('\n').count();
    let now = new.lines().nth(line).unwrap_or_default().to_owned();
    context.overlay.write(&path, new)?;
    Ok(SetLink { version: version::of(&path, context)?, path: path.to_string(), line: line as u32 + 1, now })
}

/// The format of new links: that of the settings, but relative ones where viewers know no others.
fn format(options: &ParseOptions, context: &Context<'_, '_>) -> Result<LinkFormat> {
    let settings = obsidian_settings::read(context.vault, "app.json")?;
    Ok(match options.relative_destinations {
        true => LinkFormat::Relative,
        false => LinkFormat::named(obsidian_settings::text(&settings, "newLinkFormat")),
    })
}

fn not_there(what: &str, path: &SafePath) -> Error {
    Error::new(ErrorKind::NotFound, format!("the note has no such link or words, or they cannot lead there: {what}"))
        .at(path)
        .with_remedy("read the note again")
}

/// The end of a line of prose.
fn end_of_line(text: &str, line: u32, path: &SafePath) -> Result<std::ops::Range<usize>> {
    let mut start = 0;
    for (number, content) in (1..).zip(text.split_inclusive('\n')) {
        if number == line {
            let end = start + content.trim_end().len();
            return Ok(end..end);
        }
        start += content.len();
    }
    Err(Error::new(ErrorKind::NotFound, format!("the note has no line {line}")).at(path))
}

/// Where words stand as prose: in the line, or, where they do not, nearest to it.
fn words_in(
    text: &str,
    words: &str,
    line: u32,
    path: &SafePath,
    options: &ParseOptions,
) -> Result<std::ops::Range<usize>> {
    let note = parse(path.vault_path(), text.as_bytes(), options);
    let opaque = opaque_spans(&note);
    let is_prose = |at: &usize| {
        let end = at + words.len();
        note.body.start <= *at && !opaque.iter().any(|span| span.start < end && *at < span.end)
    };
    let places = text.match_indices(words).map(|(at, _)| at).filter(is_prose);
    let nearest = places.min_by_key(|at| note.lines.line_at(*at).abs_diff(line));
    nearest.map(|at| at..at + words.len()).ok_or_else(|| not_there(words, path))
}
