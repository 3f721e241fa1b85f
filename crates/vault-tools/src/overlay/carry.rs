//! Moves text, with its links, from one note to another: two notes are merged, or lines are moved.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use vault_index::links::{block_at, heading_at, resolve};
use vault_index::note::{Link, Note, ParseOptions, parse};

use super::Overlay;
use crate::action::DeleteMode;
use crate::edit::{TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{CarriedText, Delta, LinkAt, LinkChanges, RewrittenLink};
use crate::sandbox::{SafePath, View};

/// A note after a text was added to it.
#[derive(Debug, Clone)]
pub(crate) struct JoinedText {
    /// The whole new text of the note.
    pub text: String,
    /// The span of the added text in it.
    pub added: Range<usize>,
}

/// The result of carrying text from one note to another.
#[derive(Debug)]
pub(crate) struct CarryReport {
    /// Links that were rewritten.
    pub rewritten: Vec<RewrittenLink>,
    /// The new path of the merged note, unless it was deleted permanently.
    pub trashed_to: Option<String>,
}

impl Overlay<'_> {
    /// Merges a note into another and deletes it. `join` combines the texts of the merged note and of the remaining
    /// one, in this order. Links to the merged note then lead to the remaining one, and its own links keep their
    /// targets.
    ///
    /// # Errors
    /// The errors of `join` and of [`Overlay::delete`]; [`ErrorKind::Refused`] if a link could not be preserved.
    pub(crate) fn merge(
        &mut self,
        from: &SafePath,
        into: &SafePath,
        mode: DeleteMode,
        join: &dyn Fn(&str, &str) -> Result<JoinedText>,
    ) -> Result<CarryReport> {
        let text = self.text(from)?;
        let carried = CarriedText { from: from.clone(), to: into.clone(), text: text.clone(), blocks: None };
        self.all_or_nothing(|overlay| {
            let delta = Delta { deleted: vec![from.clone()], carried: Some(carried), ..Delta::default() };
            let (relinked, trashed_to) = overlay.remove(from, mode, delta)?;
            overlay.put(into, &text, relinked, join).map(|carried| CarryReport { trashed_to, ..carried })
        })
    }

    /// Moves a part of a note to another one, which is created if it is missing. `left` is the remaining text of the
    /// note. `blocks` are the ids in the part, and links to those follow it; `join` is as for [`Overlay::merge`].
    ///
    /// # Errors
    /// The errors of `join` and of [`Overlay::write`]; [`ErrorKind::Refused`] if a link could not be preserved.
    pub(crate) fn move_text(
        &mut self,
        (from, left): (&SafePath, &str),
        to: &SafePath,
        (part, blocks): (&str, BTreeSet<String>),
        join: &dyn Fn(&str, &str) -> Result<JoinedText>,
    ) -> Result<CarryReport> {
        let before = self.text(from)?;
        let carried = CarriedText { from: from.clone(), to: to.clone(), text: part.to_owned(), blocks: Some(blocks) };
        self.all_or_nothing(|overlay| {
            if !overlay.exists(to)? {
                overlay.create(to, "")?;
            }
            overlay.write(from, left)?;
            let relinked = overlay.relink(&Delta { carried: Some(carried), ..Delta::default() })?;
            overlay.put(to, &before, relinked, join)
        })
    }

    fn all_or_nothing<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mark = self.mark();
        change(self).inspect_err(|_| {
            self.rollback(mark);
        })
    }

    /// Rewrites the links, and adds the carried text to its new note; `source` is the text that it comes from.
    fn put(
        &mut self,
        note: &SafePath,
        source: &str,
        relinked: LinkChanges,
        join: &dyn Fn(&str, &str) -> Result<JoinedText>,
    ) -> Result<CarryReport> {
        let LinkChanges { edits, carried, rewritten, led_along, to_its_note, dangling, redirected, notices, .. } =
            relinked;
        self.edit_all(edits);
        let (carried, text) = (carried.unwrap_or_default(), self.text(note)?);
        let joined = join(&carried, &text)?;
        check_links(note, &carried, &text, &joined)?;
        check_own_subpaths(note, &text, &to_its_note, &joined)?;
        self.write(note, joined.text.as_str())?;
        self.check_subpaths(note, source, &led_along, &joined)?;
        self.add_link_notices(&dangling, "leads nowhere now");
        self.add_link_notices(&redirected, "leads to another note of that name now");
        notices.into_iter().for_each(|notice| self.add_notice(notice));
        Ok(CarryReport { rewritten, trashed_to: None })
    }

    /// Makes links lead to their previous heading or block, which is now in the joined note. A link to a heading whose
    /// name occurs twice there gets the headings above it.
    fn check_subpaths(
        &mut self,
        path: &SafePath,
        source: &str,
        links: &[(LinkAt, String)],
        joined: &JoinedText,
    ) -> Result<()> {
        if links.is_empty() {
            return Ok(());
        }
        let (before, after) = (parsed(path, source), parsed(path, &joined.text));
        let mut places: HashMap<&str, (Option<usize>, Option<usize>)> = HashMap::new();
        let mut within: Vec<TextEdit> = Vec::new();
        for (link, subpath) in links {
            let find = || (place_of(&before, subpath), place_of(&after, subpath));
            let (Some(was), now) = *places.entry(subpath).or_insert_with(find) else { continue };
            if now.is_some_and(|at| joined.added.contains(&at)) {
                continue;
            }
            if now.is_some() && subpath.contains('^') {
                let what =
                    format!("{path} has a block with the id {subpath}, too, and {} links to the other", link.path);
                return Err(Error::new(ErrorKind::Refused, what).with_remedy("give one of the two another id first"));
            }
            let number = before.headings.iter().position(|heading| heading.span.start == was);
            let longer = number.and_then(|number| longer_subpath(&after, &joined.added, number));
            let edits = match &longer {
                Some(longer) if link.path == *path => edits_within(&after, &joined.added, subpath, longer),
                Some(longer) => self.edit_of_line(path, link, subpath, longer)?,
                None => Vec::new(),
            };
            if edits.is_empty() {
                let where_now =
                    if now.is_some() { "leads to the other heading of that name" } else { "leads to the note only" };
                self.notice(format!("{}: the link {} {where_now}", link.path, link.raw));
            } else if link.path == *path {
                within.extend(edits);
            } else {
                let text = apply_edits(&self.text(&link.path)?, &edits)?;
                self.write(&link.path, text)?;
            }
        }
        within.sort_by_key(|edit| edit.span.start);
        within.dedup();
        if !within.is_empty() {
            self.write(path, apply_edits(&joined.text, &within)?)?;
        }
        Ok(())
    }

    /// Returns the edit that gives a link another subpath. The link is found by its line; no edits if it is uncertain
    /// which link it is.
    fn edit_of_line(&self, target: &SafePath, link: &LinkAt, subpath: &str, new: &str) -> Result<Vec<TextEdit>> {
        let Some(names) = self.links.as_ref().map(|index| &index.names) else { return Ok(Vec::new()) };
        let id = names.id(target.vault_path());
        let note = parsed(&link.path, &self.text(&link.path)?);
        let leads_there = |found: &&Link| resolve(names, &found.path, link.path.vault_path()).target == id;
        let edits: Vec<TextEdit> = note
            .links
            .iter()
            .filter(|found| found.line == link.line && found.subpath.as_deref() == Some(subpath))
            .filter(leads_there)
            .filter_map(|found| edit_of(&note, found, new))
            .collect();
        Ok(if edits.len() == 1 { edits } else { Vec::new() })
    }
}

/// Returns the headings above the heading with this number within a part of a note, and itself, if these identify it.
fn longer_subpath(note: &Note, part: &Range<usize>, number: usize) -> Option<String> {
    let within = (0..note.headings.len()).filter(|at| part.contains(&note.headings[*at].span.start));
    let at = within.into_iter().nth(number)?;
    let segment = |text: &str| text.replace(['#', '|', '^', '[', ']'], " ").trim().to_owned();
    let longer = note.heading_path(at).into_iter().map(segment).collect::<Vec<_>>().join("#");
    (place_of(note, &longer) == Some(note.headings[at].span.start)).then_some(longer)
}

/// Returns the edits that give links from a part of a note to itself another subpath.
fn edits_within(note: &Note, part: &Range<usize>, subpath: &str, new: &str) -> Vec<TextEdit> {
    let links = note.links.iter().filter(|link| part.contains(&link.span.start) && link.path.is_empty());
    let meant = links.filter(|link| link.subpath.as_deref() == Some(subpath));
    meant.filter_map(|link| edit_of(note, link, new)).collect()
}

/// Returns the edit that gives a wikilink in the text of a note another subpath.
fn edit_of(note: &Note, link: &Link, subpath: &str) -> Option<TextEdit> {
    let inner = link.raw.trim_start_matches('!').strip_prefix("[[")?.strip_suffix("]]")?;
    let start = link.span.end - "]]".len() - inner.len();
    let from = inner.find('#')? + 1;
    let to = inner.find('|').unwrap_or(inner.len());
    let to = if inner[..to].ends_with('\\') { to - 1 } else { to };
    let is_in_text = note.body.contains(&link.span.start) && from <= to;
    is_in_text.then(|| TextEdit { span: start + from..start + to, text: subpath.to_owned() })
}

/// Checks that the joined text has the links of both texts, because a label that both define would redirect some.
fn check_links(path: &SafePath, carried: &str, text: &str, joined: &JoinedText) -> Result<()> {
    let links = |text: &str| -> Vec<(usize, String, Option<String>)> {
        let note = parsed(path, text);
        let of_body = note.links.into_iter().filter(|link| note.body.contains(&link.span.start));
        of_body.map(|link| (link.span.start, link.path, link.subpath)).collect()
    };
    let (added, own): (Vec<_>, Vec<_>) =
        links(&joined.text).into_iter().partition(|link| joined.added.contains(&link.0));
    let same = |a: &[(usize, String, Option<String>)], b: &[(usize, String, Option<String>)]| {
        a.iter().map(|link| (&link.1, &link.2)).eq(b.iter().map(|link| (&link.1, &link.2)))
    };
    match same(&added, &links(carried)) && same(&own, &links(text)) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Refused,
            "links would lead elsewhere, since both texts use the same label for a link",
        )
        .at(path)
        .with_remedy("give the label another name in one of the two first")),
    }
}

/// Checks that links to a heading or block of the note still lead to it, because the added text above it can contain
/// one with the same name.
fn check_own_subpaths(path: &SafePath, text: &str, links: &[(LinkAt, String)], joined: &JoinedText) -> Result<()> {
    if links.is_empty() {
        return Ok(());
    }
    let (before, after) = (parsed(path, text), parsed(path, &joined.text));
    for (link, subpath) in links {
        let Some(was) = place_of(&before, subpath) else { continue };
        let is_kept = place_of(&after, subpath).is_some_and(|now| match now < joined.added.start {
            // Before the added text only properties can have been added; after it nothing can have changed.
            true => now - after.body.start == was - before.body.start,
            false => now >= joined.added.end && joined.text.len() - now == text.len() - was,
        });
        if !is_kept {
            let what = format!("the link {} in {} would no longer lead to its part of {path}", link.raw, link.path);
            let remedy = "add the text at the end of the note, or give one of the two headings or blocks another name";
            return Err(Error::new(ErrorKind::Refused, what).with_remedy(remedy));
        }
    }
    Ok(())
}

fn parsed(path: &SafePath, text: &str) -> Note {
    parse(path.vault_path(), text.as_bytes(), &ParseOptions { max_bytes: usize::MAX, ..ParseOptions::default() })
}

/// Returns the start of the heading or block that a link with this subpath leads to.
fn place_of(note: &Note, subpath: &str) -> Option<usize> {
    let headings: Vec<(u8, &str)> =
        note.headings.iter().enumerate().map(|(at, heading)| (heading.level, note.heading_source(at))).collect();
    let ids: Vec<&str> = note.block_ids.iter().map(|block| block.id.as_str()).collect();
    let heading = heading_at(&headings, subpath).map(|at| note.headings[at].span.start);
    heading.or_else(|| block_at(&ids, subpath).map(|at| note.block_ids[at].span.start))
}
