//! Text that goes from one note to another, and the links with it: two notes merged, lines moved.

use std::collections::BTreeSet;
use std::ops::Range;

use vault_index::links::{block_at, heading_at};
use vault_index::note::{Note, ParseOptions, parse};

use super::Overlay;
use crate::action::DeleteMode;
use crate::error::{Error, ErrorKind, Result};
use crate::links::{CarriedText, Delta, LinkAt, Relinked, Rewritten};
use crate::sandbox::{SafePath, View};

/// A note with a text that went to it.
#[derive(Debug, Clone)]
pub(crate) struct Joined {
    /// The whole new text of the note.
    pub text: String,
    /// Where in it the text lies.
    pub added: Range<usize>,
}

/// What was done to carry text from one note to another.
#[derive(Debug)]
pub(crate) struct Carried {
    /// Links that were written anew.
    pub rewritten: Vec<Rewritten>,
    /// Where the note is that was merged, unless it is gone for good.
    pub trashed_to: Option<String>,
}

impl Overlay<'_> {
    /// Merges a note into another: `join` makes of the texts of both, the merged one first, that of the one which stays.
    /// Links to the merged note lead to that one, its own links lead where they led, and it is deleted.
    ///
    /// # Errors
    /// Those of `join`; those of [`Overlay::delete`]; [`ErrorKind::Refused`] when a link could not be kept.
    pub(crate) fn merge(
        &mut self,
        from: &SafePath,
        into: &SafePath,
        mode: DeleteMode,
        join: &dyn Fn(&str, &str) -> Result<Joined>,
    ) -> Result<Carried> {
        let text = self.text(from)?;
        let carried = CarriedText { from: from.clone(), to: into.clone(), text: text.clone(), blocks: None };
        self.all_or_nothing(|overlay| {
            let delta = Delta { deleted: vec![from.clone()], carried: Some(carried), ..Delta::default() };
            let (relinked, trashed_to) = overlay.remove(from, mode, delta)?;
            overlay.put(into, &text, relinked, join).map(|carried| Carried { trashed_to, ..carried })
        })
    }

    /// Moves a part of a note to another one, which is made if it is missing. `left` is what stays of the note, `blocks` are
    /// the ids in the part, and links to those lead along; `join` is as for [`Overlay::merge`].
    ///
    /// # Errors
    /// Those of `join` and of [`Overlay::write`]; [`ErrorKind::Refused`] when a link could not be kept.
    pub(crate) fn move_text(
        &mut self,
        (from, left): (&SafePath, &str),
        to: &SafePath,
        (part, blocks): (&str, BTreeSet<String>),
        join: &dyn Fn(&str, &str) -> Result<Joined>,
    ) -> Result<Carried> {
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

    /// Rewrites the links, and puts the text that goes along into its new note; `source` is the text it comes from.
    fn put(
        &mut self,
        note: &SafePath,
        source: &str,
        relinked: Relinked,
        join: &dyn Fn(&str, &str) -> Result<Joined>,
    ) -> Result<Carried> {
        let Relinked { edits, carried, rewritten, led_along, dangling, redirected, notices, .. } = relinked;
        self.edit_all(edits);
        let joined = join(&carried.unwrap_or_default(), &self.text(note)?)?;
        self.write(note, joined.text.as_str())?;
        self.check_subpaths(note, source, &led_along, &joined)?;
        self.add_link_notices(&dangling, "leads nowhere now");
        self.add_link_notices(&redirected, "leads to another note of that name now");
        notices.into_iter().for_each(|notice| self.add_notice(notice));
        Ok(Carried { rewritten, trashed_to: None })
    }

    /// Looks whether links lead to the heading or block to which they led, which is now in the joined note.
    fn check_subpaths(
        &mut self,
        path: &SafePath,
        source: &str,
        links: &[(LinkAt, String)],
        joined: &Joined,
    ) -> Result<()> {
        if links.is_empty() {
            return Ok(());
        }
        let (before, after) = (parsed(path, source), parsed(path, &joined.text));
        for (link, subpath) in links {
            if place_of(&before, subpath).is_none() {
                continue;
            }
            match place_of(&after, subpath) {
                Some(at) if joined.added.contains(&at) => {}
                Some(_) if subpath.contains('^') => {
                    return Err(Error::new(
                        ErrorKind::Refused,
                        format!("{path} has a block with the id {subpath}, too, and {} links to the other", link.path),
                    )
                    .with_remedy("give one of the two another id first"));
                }
                Some(_) => {
                    let what = "leads to the heading of that name which was there before";
                    self.notice(format!("{}: the link {} {what}", link.path, link.raw));
                }
                None => self.notice(format!("{}: the link {} leads to the note only", link.path, link.raw)),
            }
        }
        Ok(())
    }
}

fn parsed(path: &SafePath, text: &str) -> Note {
    parse(path.vault_path(), text.as_bytes(), &ParseOptions { max_bytes: usize::MAX })
}

/// Where the heading or block begins to which a link with this subpath leads.
fn place_of(note: &Note, subpath: &str) -> Option<usize> {
    let headings: Vec<(u8, &str)> =
        note.headings.iter().enumerate().map(|(at, heading)| (heading.level, note.heading_source(at))).collect();
    let ids: Vec<&str> = note.block_ids.iter().map(|block| block.id.as_str()).collect();
    let heading = heading_at(&headings, subpath).map(|at| note.headings[at].span.start);
    heading.or_else(|| block_at(&ids, subpath).map(|at| note.block_ids[at].span.start))
}
