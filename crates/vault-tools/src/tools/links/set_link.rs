//! Creates one link, or changes the target of one: `set_link`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::links::{block_at, heading_at};
use vault_index::note::{ParseOptions, Prose, parse};

use super::make_link::link_to;
use crate::edit::{TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{LinkFormat, NewTarget, plain_subpath, retarget};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::obsidian::settings;
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
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
pub(in crate::tools) struct NewLink {
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

pub(in crate::tools) fn set_link(args: Args, context: &mut Context<'_, '_>) -> Result<NewLink> {
    let path = locate::markdown(&args.path, "links are set in Markdown notes only", context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
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
            let note = parse(path.vault_path(), text.as_bytes(), &options);
            let prose = Prose::of(&note);
            let span = match given {
                "" => {
                    let end = prose.end_of_line(args.line).ok_or_else(|| {
                        Error::new(
                            ErrorKind::Refused,
                            format!("line {} is not prose, so no link is added to it", args.line),
                        )
                        .at(&path)
                        .with_remedy("name a line of text, or give the words that are to be the link")
                    })?;
                    end..end
                }
                words => words_in(&text, words, args.line, &path, &prose)?,
            };
            say_if_missing(&target, subpath, context)?;
            let shown = if given.is_empty() { None } else { Some(given) };
            let link = link_to(&PathArg(target.to_string()), Some(&path), subpath, shown, context)?;
            // In a row of a table, a vertical bar would end a cell.
            let link = if is_row(&text, span.start) { link.replace('|', "\\|") } else { link };
            TextEdit { text: if given.is_empty() { format!(" {link}") } else { link }, span }
        }
    };
    let start = edit.span.start;
    let new = apply_edits(&text, &[edit])?;
    let line = new[..start].matches('\n').count();
    let now = new.lines().nth(line).unwrap_or_default().to_owned();
    context.overlay.write(&path, new)?;
    Ok(NewLink { version: expected_version::of(&path, context)?, path: path.to_string(), line: line as u32 + 1, now })
}

/// Returns the format of new links: that of the settings, but relative if viewers support no others.
fn format(options: &ParseOptions, context: &Context<'_, '_>) -> Result<LinkFormat> {
    let settings = settings::read(context.vault, "app.json")?;
    Ok(match options.relative_destinations {
        true => LinkFormat::Relative,
        false => LinkFormat::named(settings::text(&settings, "newLinkFormat")),
    })
}

fn not_there(what: &str, path: &SafePath) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("the line has no such link or words of prose, or they cannot lead there: {what}"),
    )
    .at(path)
    .with_remedy("read the note again")
}

/// Adds a notice if the note has no such heading; the link still leads to the note.
fn say_if_missing(target: &SafePath, subpath: Option<&str>, context: &mut Context<'_, '_>) -> Result<()> {
    let Some(subpath) = subpath.filter(|_| target.is_markdown()) else { return Ok(()) };
    let note = locate::parsed(target, &context.overlay.read(target)?);
    let headings: Vec<(u8, &str)> =
        note.headings.iter().map(|heading| (heading.level, heading.text.as_str())).collect();
    let blocks: Vec<&str> = note.block_ids.iter().map(|block| block.id.as_str()).collect();
    if heading_at(&headings, &plain_subpath(subpath)).is_none() && block_at(&blocks, subpath).is_none() {
        context.overlay.notice(format!("{target} has no heading or block {subpath:?}"));
    }
    Ok(())
}

/// Returns whether an offset is in a row of a table, or in a line that could be one.
fn is_row(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    line.trim_start_matches(['>', ' ', '\t']).starts_with('|') || line.matches('|').count() > 1
}

/// Finds words in prose: in the given line, or elsewhere only if there is exactly one occurrence.
fn words_in(text: &str, words: &str, line: u32, path: &SafePath, prose: &Prose<'_>) -> Result<std::ops::Range<usize>> {
    let is_name = words.trim() == words && !words.contains('\n') && !words.starts_with(['#', '>', '|', '-', '*', '+']);
    let at_line = |at: usize| text[..at].matches('\n').count() as u32 + 1;
    let places = text.match_indices(words).map(|(at, _)| at..at + words.len());
    let places: Vec<std::ops::Range<usize>> = places.filter(|place| is_name && prose.holds(place)).collect();
    let here = places.iter().find(|place| at_line(place.start) == line);
    match (here, &places[..]) {
        (Some(place), _) | (None, [place]) => Ok(place.clone()),
        _ => Err(not_there(words, path)),
    }
}
