//! Edits the notes that link to moved files, so that every link still leads to the same file.
//!
//! Three things can redirect a link: its file was moved or renamed; the note that contains it was moved; or a file with
//! the name in the link was created or removed. Only links with the keys of those files, and those in moved notes, are
//! checked. Each is resolved before and after. It is rewritten in its style if it would otherwise lead elsewhere, if
//! its file was renamed, or if it gave the path of its file and would now find it only by its name. All others stay
//! byte for byte. Links that led nowhere are left unchanged. If text moves from one note to another, its links are
//! preserved like those of a note that is moved, and the links that lead to it follow it.

use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;
use serde::Serialize;
use vault_index::FileId;
use vault_index::links::{Names, Resolver, link_key};
use vault_index::note::ParseOptions;

use super::index::{CarriedText, Delta, LinkIndex};
use super::occurrences::{Fragment, LinkEncoding, LinkOccurrence, edit_in_json, fragments};
use super::style::{LinkFormat, LinkRewrite, encode};
use crate::change::Notice;
use crate::content::Content;
use crate::edit::{TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::SafePath;

/// Returns whether a path may be read.
pub(crate) type PathFilter = dyn Fn(&str) -> bool + Send + Sync;

/// A link and its position after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LinkAt {
    /// The note.
    pub path: SafePath,
    /// The line, from 1.
    pub line: u32,
    /// The link as written.
    pub raw: String,
}

/// A link that was rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RewrittenLink {
    /// The path of the note after the change.
    pub path: SafePath,
    /// The line, from 1.
    pub line: u32,
    /// The old path in the link.
    pub before: String,
    /// The new path in the link.
    pub after: String,
}

/// The effects on links when names change.
#[derive(Debug, Default)]
pub(crate) struct LinkChanges {
    /// Edited notes, by their paths after the change, with their text before and after.
    pub edits: Vec<(SafePath, Content, String)>,
    pub rewritten: Vec<RewrittenLink>,
    /// Links that were broken and now lead to a file.
    pub satisfied: Vec<LinkAt>,
    /// Links to deleted files.
    pub dangling: Vec<LinkAt>,
    /// Links to deleted files that now lead to other files.
    pub redirected: Vec<LinkAt>,
    /// The text that moved to another note, with its links rewritten.
    pub carried: Option<String>,
    /// Links to that text that have a subpath, and the subpath; by their positions after the change.
    pub led_along: Vec<(LinkAt, String)>,
    /// Links to the destination note of the text that have a subpath, and the subpath; by their positions after the
    /// change.
    pub to_its_note: Vec<(LinkAt, String)>,
    /// Notices about links that are left unchanged or could not be checked.
    pub notices: Vec<Notice>,
}

impl LinkChanges {
    fn extend(&mut self, other: Self) {
        self.edits.extend(other.edits);
        self.rewritten.extend(other.rewritten);
        self.satisfied.extend(other.satisfied);
        self.dangling.extend(other.dangling);
        self.redirected.extend(other.redirected);
        self.carried = self.carried.take().or(other.carried);
        self.led_along.extend(other.led_along);
        self.to_its_note.extend(other.to_its_note);
        self.notices.extend(other.notices);
    }

    /// Returns the size of the contents in its edits.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.edits.iter().map(|(_, before, after)| (before.len() + after.len()) as u64).sum()
    }
}

/// A note that may contain such links.
struct Source {
    before: SafePath,
    after: SafePath,
    content: Content,
    text: String,
    fragments: Vec<Fragment>,
    /// The current target of each link of each fragment.
    targets: Vec<Vec<Option<FileId>>>,
    /// Whether it is the text that moves from one note to another.
    is_carried: bool,
}

/// The names before and after the change.
struct Sides<'a> {
    after: &'a Names,
    resolver: Resolver<'a>,
    /// The old paths of files that are moved or deleted.
    old: &'a HashMap<FileId, SafePath>,
    deleted: &'a BTreeSet<FileId>,
    /// The source and the destination of a text that moves, and its content.
    carried: Option<(FileId, FileId, &'a CarriedText)>,
    format: LinkFormat,
    options: &'a ParseOptions,
    permits: &'a PathFilter,
}

impl Sides<'_> {
    /// Returns the file that a link must lead to after the change, if it leads to `target` now.
    fn wanted(&self, link: &LinkOccurrence, target: FileId) -> FileId {
        match self.carried {
            Some((from, to, carried)) if from == target && carried.takes(link.subpath.as_deref()) => to,
            _ => target,
        }
    }
}

/// Returns the target of a link, if the target may be read.
fn leads_to(
    names: &Names,
    resolver: &Resolver<'_>,
    permits: &PathFilter,
    link: &str,
    source: &SafePath,
) -> Option<FileId> {
    let target = resolver.resolve(link, source.vault_path()).target;
    target.filter(|id| names.path(*id).is_none_or(|path| permits(path.as_str())))
}

/// Computes the effect of a name change on links: they are resolved before it and rewritten after it.
pub(crate) struct Relinker<'d> {
    delta: &'d Delta,
    sources: Vec<Source>,
    options: ParseOptions,
    permits: &'d PathFilter,
}

impl<'d> Relinker<'d> {
    /// Reads some notes, given by their current paths with content and text, while the names are still those before the
    /// change. A link to a file that `permits` denies counts as broken. `options` control how links are parsed.
    pub fn new(
        delta: &'d Delta,
        notes: Vec<(SafePath, Content, String)>,
        names: &Names,
        options: ParseOptions,
        permits: &'d PathFilter,
    ) -> Self {
        let new_paths: HashMap<&SafePath, &SafePath> = delta.moves.iter().map(|(from, to)| (from, to)).collect();
        let resolver = Resolver::new(names);
        let source = |(before, content, text): (SafePath, Content, String)| {
            let after = new_paths.get(&before).map_or(&before, |to| *to).clone();
            let fragments = fragments(&before, &text, &options);
            let target = |link: &LinkOccurrence| leads_to(names, &resolver, permits, &link.path, &before);
            let targets = fragments.iter().map(|fragment| fragment.links.iter().map(target).collect()).collect();
            Source { before, after, content, text, fragments, targets, is_carried: false }
        };
        let carried = delta.carried.as_ref().map(|carried| {
            let text = source((carried.from.clone(), Content::from(""), carried.text.clone()));
            Source { after: carried.to.clone(), is_carried: true, ..text }
        });
        let mut sources: Vec<Source> = notes.into_par_iter().map(source).collect();
        sources.extend(carried);
        Self { delta, sources, options, permits }
    }

    /// Returns the keys of the links within notes that move.
    pub fn keys_within_moved(&self) -> BTreeSet<String> {
        let moved = self.sources.iter().filter(|source| source.before != source.after);
        let links = moved.flat_map(|source| &source.fragments).flat_map(|fragment| &fragment.links);
        links.map(|link| link_key(&link.path)).collect()
    }

    /// Rewrites the links that need it, and updates the names.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if a link could not be preserved.
    pub fn finish(self, index: &mut LinkIndex, format: LinkFormat) -> Result<LinkChanges> {
        let delta = self.delta;
        let id = |path: &SafePath| index.names.id(path.vault_path());
        let deleted: BTreeSet<FileId> = delta.deleted.iter().filter_map(id).collect();
        let left = delta.moves.iter().map(|(from, _)| from).chain(&delta.deleted);
        let old: HashMap<FileId, SafePath> = left.filter_map(|path| Some((id(path)?, path.clone()))).collect();
        let ends = delta.carried.as_ref().map(|carried| (id(&carried.from), id(&carried.to), carried));
        let carried = ends.and_then(|(from, to, carried)| Some((from?, to?, carried)));
        index.apply(delta);
        let resolver = Resolver::new(&index.names);
        let (after, options, permits) = (&index.names, &self.options, self.permits);
        let names = Sides { after, resolver, old: &old, deleted: &deleted, carried, format, options, permits };
        let of_each: Vec<Result<LinkChanges>> =
            self.sources.into_par_iter().map(|source| source.relink(&names)).collect();
        let mut all = LinkChanges::default();
        for relinked in of_each {
            all.extend(relinked?);
        }
        Ok(all)
    }
}

impl Source {
    fn relink(self, names: &Sides<'_>) -> Result<LinkChanges> {
        let mut relinked = LinkChanges::default();
        let mut file_edits = Vec::new();
        for (fragment, targets) in self.fragments.iter().zip(&self.targets) {
            let mut edits: Vec<TextEdit> = Vec::new();
            for (link, target) in fragment.links.iter().zip(targets) {
                let Some(edit) = self.rewrite(fragment, link, *target, names, &mut relinked)? else { continue };
                // Links that share a definition produce the same edit.
                if !edits.contains(&edit) {
                    edits.push(edit);
                }
            }
            if edits.is_empty() {
                continue;
            }
            edits.sort_by_key(|edit| edit.span.start);
            match &fragment.json {
                None => file_edits.extend(edits),
                Some(whole) => {
                    file_edits.extend(edits.iter().filter_map(|edit| edit_in_json(&self.text, whole, edit)));
                }
            }
        }
        if file_edits.is_empty() && !self.is_carried {
            return Ok(relinked);
        }
        let text = apply_edits(&self.text, &file_edits)?;
        self.check(&text, names)?;
        match self.is_carried {
            true => relinked.carried = Some(text),
            false => relinked.edits.push((self.after, self.content, text)),
        }
        Ok(relinked)
    }

    /// Returns the edit that a link needs, if any.
    fn rewrite(
        &self,
        fragment: &Fragment,
        link: &LinkOccurrence,
        target: Option<FileId>,
        names: &Sides<'_>,
        relinked: &mut LinkChanges,
    ) -> Result<Option<TextEdit>> {
        let now = leads_to(names.after, &names.resolver, names.permits, &link.path, &self.after);
        let at = || LinkAt { path: self.after.clone(), line: link.line, raw: link.raw.clone() };
        let Some(target) = target else {
            if now.is_some() {
                relinked.satisfied.push(at());
            }
            return Ok(None);
        };
        let id = names.wanted(link, target);
        if let (Some(subpath), Some((_, to, _))) = (&link.subpath, names.carried)
            && id == to
        {
            let links = if target == to { &mut relinked.to_its_note } else { &mut relinked.led_along };
            links.push((at(), subpath.clone()));
        }
        if names.deleted.contains(&id) {
            let list = if now.is_some() { &mut relinked.redirected } else { &mut relinked.dangling };
            list.push(at());
            return Ok(None);
        }
        let Some(to) = names.after.path(id) else { return Ok(None) };
        let from = names.old.get(&target).map(SafePath::vault_path).or_else(|| names.after.path(target)).unwrap_or(to);
        // An empty path refers to the note itself, whatever its path.
        let is_renamed = from.file_name() != to.file_name() && !link.path.is_empty();
        let unkept = || {
            Error::new(ErrorKind::Refused, format!("the link {} in line {} could not be kept", link.raw, link.line))
                .at(&self.before)
                .with_remedy(format!(
                    "no link of its kind can lead to {}; choose another name, or change the link first",
                    SafePath::visible(to.as_str())
                ))
        };
        let is_right = now == Some(id) && !is_renamed;
        let location = match &link.location {
            Some(location) => location,
            None if is_right => return Ok(None),
            None => return Err(unkept()),
        };
        let rewrite = LinkRewrite {
            written: &link.path,
            encoding: location.encoding,
            source: (self.before.vault_path(), self.after.vault_path()),
            target: (from, to),
            id,
            names: names.after,
            format: names.format,
        };
        if is_right && (link.path.is_empty() || !rewrite.loses_its_exact_path()) {
            return Ok(None);
        }
        let path = rewrite.new_path().ok_or_else(unkept)?;
        if path == link.path {
            return Ok(None);
        }
        let old = &fragment.text[location.span.clone()];
        // If destinations are relative by default, a relative path needs no `./`.
        let is_plain = names.options.relative_destinations
            && fragment.json.is_none()
            && matches!(location.encoding, LinkEncoding::Destination | LinkEncoding::Pointed)
            && !old.starts_with("./");
        let path = path.strip_prefix("./").filter(|_| is_plain).map_or(path.as_str(), |plain| plain);
        let edit = TextEdit { span: location.span.clone(), text: encode(path, location.encoding, old) };
        relinked.rewritten.push(RewrittenLink {
            path: self.after.clone(),
            line: link.line,
            before: old.to_owned(),
            after: edit.text.clone(),
        });
        Ok(Some(edit))
    }

    /// Checks on the resulting text that each link leads to the same file as before.
    fn check(&self, text: &str, names: &Sides<'_>) -> Result<()> {
        let fragments = fragments(&self.after, text, names.options);
        let links = |fragments: &[Fragment]| -> Vec<(u32, String)> {
            fragments.iter().flat_map(|f| &f.links).map(|link| (link.line, link.path.clone())).collect()
        };
        let (before, after) = (links(&self.fragments), links(&fragments));
        let occurrences = self.fragments.iter().flat_map(|fragment| &fragment.links);
        let targets: Vec<Option<FileId>> = occurrences
            .zip(self.targets.iter().flatten())
            .map(|(link, target)| target.map(|target| names.wanted(link, target)))
            .collect();
        let leads_right = |path: &str, target: Option<FileId>| match target {
            Some(id) if names.deleted.contains(&id) => true,
            Some(id) => names.resolver.resolve(path, self.after.vault_path()).target == Some(id),
            None => true,
        };
        // Lines do not change, so if the lines of two links differ, a link was lost or added.
        let is_kept = |at: usize| match (before.get(at), after.get(at)) {
            (Some(before), Some(after)) => before.0 == after.0 && leads_right(&after.1, targets[at]),
            _ => false,
        };
        let Some(wrong) = (0..before.len().max(after.len())).find(|at| !is_kept(*at)) else { return Ok(()) };
        let line = [before.get(wrong), after.get(wrong)].into_iter().flatten().map(|link| link.0).min();
        let location = line.map_or_else(String::new, |line| format!(" in line {line}"));
        Err(Error::new(
            ErrorKind::Refused,
            format!("a link{location} could not be written so that it still leads to its note"),
        )
        .at(&self.before)
        .with_remedy("change that link by hand first, or choose another name"))
    }
}
