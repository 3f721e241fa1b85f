//! A move edits the notes that link to what moved, so that every link leads to the file it led to before.
//!
//! Three things can turn a link: its file moved or got another name; the note it stands in moved; or a file came
//! or went whose name it bears. Only links under the keys of those files, and those in moved notes, are looked at.
//! Each is resolved before and after. One that would lead elsewhere is written anew in its style; so is one whose
//! file got another name, and one that gave the way to its file and would now find it by its name only. All others
//! stay byte for byte. What led nowhere is left alone.

use std::collections::{BTreeSet, HashMap};

use vault_index::FileId;
use vault_index::links::{Names, Resolver, keys_leading_to, link_key};

use crate::change::json_text::span_in_json;
use crate::change::place_of_links::{Fragment, Site, fragments, link_keys};
use crate::change::propose::{LinkAt, Rewritten};
use crate::change::sources::{Delta, Sources, lossy, not_looked_through, readable};
use crate::change::spell::{LinkFormat, Spelling, encode};
use crate::change::{Notice, Overlay};
use crate::content::Content;
use crate::edit::{TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::SafePath;

/// What comes of a change of names.
#[derive(Debug, Default)]
pub(super) struct Relinked {
    /// Notes, where they lie afterwards, their text before and after.
    pub edits: Vec<(SafePath, Content, String)>,
    pub rewritten: Vec<Rewritten>,
    /// Links that led nowhere and now lead to something.
    pub satisfied: Vec<LinkAt>,
    /// Links whose file is gone.
    pub dangling: Vec<LinkAt>,
    /// Links whose file is gone and that now lead to another.
    pub redirected: Vec<LinkAt>,
    /// What could not be looked at, in words.
    pub unread: Vec<Notice>,
}

impl Relinked {
    /// Bytes of the contents in its edits.
    pub(super) fn content_bytes(&self) -> u64 {
        self.edits.iter().map(|(_, before, after)| (before.len() + after.len()) as u64).sum()
    }
}

/// A note that may hold such links.
struct Source {
    before: SafePath,
    after: SafePath,
    content: Content,
    text: String,
    fragments: Vec<Fragment>,
    /// Where each link of each fragment leads now.
    targets: Vec<Vec<Option<FileId>>>,
}

/// The names on both sides of the change.
struct Sides<'a> {
    after: &'a Names,
    resolver: Resolver<'a>,
    /// Paths before, of files that moved or are gone.
    old: &'a HashMap<FileId, SafePath>,
    gone: &'a BTreeSet<FileId>,
    format: LinkFormat,
}

impl Overlay<'_> {
    /// Finds what has to be edited when files come, go or move, and brings the names up to date. The overlay's files
    /// are still where they were.
    pub(super) fn relink(&mut self, delta: &Delta) -> Result<Relinked> {
        let mut sources = match self.sources.take() {
            Some(sources) => sources,
            None => {
                self.touched = self.nodes.keys().cloned().collect();
                Sources::new(self)?
            }
        };
        self.seen.looked(sources.version());
        // On an error the names are lost, and made anew when they are next needed.
        let relinked = self.relink_with(delta, &mut sources)?;
        self.check_size(delta.made_bytes + relinked.content_bytes())?;
        self.sources = Some(sources);
        Ok(relinked)
    }

    fn relink_with(&mut self, delta: &Delta, sources: &mut Sources) -> Result<Relinked> {
        let moves = delta.moves.iter().flat_map(|(from, to)| [from, to]);
        let keys: BTreeSet<String> =
            moves.chain(&delta.made).chain(&delta.gone).flat_map(|path| keys_leading_to(path.vault_path())).collect();
        let has_rivals = delta.made.iter().any(|path| sources.is_name_taken(path));
        self.seen.add_names(sources.named(keys.iter()));
        if !has_rivals && delta.moves.is_empty() && delta.gone.is_empty() {
            sources.apply(delta);
            return Ok(Relinked::default());
        }
        let touched = std::mem::take(&mut self.touched);
        sources.look_at(self, &touched);
        let (mut notes, linking) = sources.notes_linking_by(self, &keys)?;
        self.seen.keys.extend(keys);
        self.seen.linking.extend(linking);
        notes.extend(delta.moves.iter().map(|(from, _)| from).filter(|from| from.is_note()).cloned());
        let gone_paths: BTreeSet<&SafePath> = delta.gone.iter().collect();
        notes.retain(|note| !gone_paths.contains(note));

        let new_places: HashMap<&SafePath, &SafePath> = delta.moves.iter().map(|(from, to)| (from, to)).collect();
        let mut relinked = Relinked { unread: sources.unread(), ..Relinked::default() };
        let resolver = Resolver::new(&sources.names);
        let mut read = Vec::new();
        let mut names_within = BTreeSet::new();
        for before in notes {
            let after = new_places.get(&before).map_or(&before, |to| *to).clone();
            // A link to a note has its text elsewhere, and is no note of its own.
            if self.real(&before)? != before {
                continue;
            }
            let Some((content, text)) = self.looked_into(&before, &mut relinked) else { continue };
            let fragments = fragments(&before, &text);
            if new_places.contains_key(&before) {
                names_within.extend(fragments.iter().flat_map(|f| &f.sites).map(|site| link_key(&site.path)));
            }
            let lead = |site: &Site| resolver.resolve(&site.path, before.vault_path()).target;
            let targets = fragments.iter().map(|fragment| fragment.sites.iter().map(lead).collect()).collect();
            read.push(Source { before, after, content, text, fragments, targets });
        }

        drop(resolver);
        self.seen.add_names(sources.named(names_within.iter()));

        let id = |path: &SafePath| sources.names.id(path.vault_path());
        let gone: BTreeSet<FileId> = delta.gone.iter().filter_map(id).collect();
        let left = delta.moves.iter().map(|(from, _)| from).chain(&delta.gone);
        let old: HashMap<FileId, SafePath> = left.filter_map(|path| Some((id(path)?, path.clone()))).collect();
        sources.apply(delta);

        let settings = self.vault.sandbox().obsidian_setting("app.json").unwrap_or_else(|error| {
            let what = "Obsidian's link format is not known, so links are written in the shortest form";
            relinked.unread.push(format!("{what}: {}", error.message()).into());
            None
        });
        let format = LinkFormat::of(settings.as_deref());
        let resolver = Resolver::new(&sources.names);
        let names = Sides { after: &sources.names, resolver, old: &old, gone: &gone, format };
        for source in read {
            source.relink(&names, &mut relinked)?;
        }
        Ok(relinked)
    }

    /// A note's content and text. One that cannot be read, or written anew, keeps nobody from renaming another.
    fn looked_into(&self, note: &SafePath, relinked: &mut Relinked) -> Option<(Content, String)> {
        let content = match readable(self, note) {
            Ok(content) => content,
            Err(error) => {
                relinked.unread.push(not_looked_through(note, error.message()));
                return None;
            }
        };
        if let Some(text) = content.text().map(str::to_owned) {
            return Some((content, text));
        }
        if !link_keys(note, &lossy(&content)).is_empty() {
            relinked.unread.push(not_looked_through(note, "it is not text in UTF-8"));
        }
        None
    }
}

impl Source {
    fn relink(self, names: &Sides<'_>, relinked: &mut Relinked) -> Result<()> {
        let mut file_edits = Vec::new();
        for (fragment, targets) in self.fragments.iter().zip(&self.targets) {
            let mut edits: Vec<TextEdit> = Vec::new();
            for (site, target) in fragment.sites.iter().zip(targets) {
                let Some(edit) = self.rewrite(fragment, site, *target, names, relinked)? else { continue };
                // Links that share a definition.
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
                Some(whole) => file_edits.extend(edits.iter().filter_map(|edit| {
                    let span = span_in_json(&self.text[whole.clone()], &edit.span)?;
                    let text = serde_json::Value::String(edit.text.clone()).to_string();
                    Some(TextEdit {
                        span: whole.start + span.start..whole.start + span.end,
                        text: text[1..text.len() - 1].to_owned(),
                    })
                })),
            }
        }
        if file_edits.is_empty() {
            return Ok(());
        }
        let text = apply_edits(&self.text, &file_edits)?;
        self.check(&text, names)?;
        relinked.edits.push((self.after, self.content, text));
        Ok(())
    }

    /// The edit that one link needs, if any.
    fn rewrite(
        &self,
        fragment: &Fragment,
        site: &Site,
        target: Option<FileId>,
        names: &Sides<'_>,
        relinked: &mut Relinked,
    ) -> Result<Option<TextEdit>> {
        let now = names.resolver.resolve(&site.path, self.after.vault_path()).target;
        let at = || LinkAt { path: self.after.clone(), line: site.line, raw: site.raw.clone() };
        let Some(id) = target else {
            if now.is_some() {
                relinked.satisfied.push(at());
            }
            return Ok(None);
        };
        if names.gone.contains(&id) {
            let list = if now.is_some() { &mut relinked.redirected } else { &mut relinked.dangling };
            list.push(at());
            return Ok(None);
        }
        let Some(to) = names.after.path(id) else { return Ok(None) };
        let from = names.old.get(&id).map_or(to, SafePath::vault_path);
        // An empty path is the note itself, wherever it lies.
        let is_renamed = from.file_name() != to.file_name() && !site.path.is_empty();
        let unkept = || {
            Error::new(ErrorKind::Refused, format!("the link {} in line {} could not be kept", site.raw, site.line))
                .at(&self.before)
                .remedy(format!(
                    "no link of its kind can lead to {}; choose another name, or change the link first",
                    SafePath::visible(to.as_str())
                ))
        };
        let is_right = now == Some(id) && !is_renamed;
        let place = match &site.place {
            Some(place) => place,
            None if is_right => return Ok(None),
            None => return Err(unkept()),
        };
        let spelling = Spelling {
            written: &site.path,
            code: place.code,
            source: (self.before.vault_path(), self.after.vault_path()),
            target: (from, to),
            id,
            names: names.after,
            format: names.format,
        };
        if is_right && (site.path.is_empty() || !spelling.is_by_chance()) {
            return Ok(None);
        }
        let path = spelling.new_path().ok_or_else(unkept)?;
        if path == site.path {
            return Ok(None);
        }
        let old = &fragment.text[place.span.clone()];
        let edit = TextEdit { span: place.span.clone(), text: encode(&path, place.code, old) };
        relinked.rewritten.push(Rewritten {
            path: self.after.clone(),
            line: site.line,
            before: old.to_owned(),
            after: edit.text.clone(),
        });
        Ok(Some(edit))
    }

    /// The law, on the text as it will be: each link leads where it led.
    fn check(&self, text: &str, names: &Sides<'_>) -> Result<()> {
        let fragments = fragments(&self.after, text);
        let sites = |fragments: &[Fragment]| -> Vec<(u32, String)> {
            fragments.iter().flat_map(|f| &f.sites).map(|site| (site.line, site.path.clone())).collect()
        };
        let (before, after) = (sites(&self.fragments), sites(&fragments));
        let targets: Vec<Option<FileId>> = self.targets.iter().flatten().copied().collect();
        let leads = |(path, target): (&String, &Option<FileId>)| match target {
            Some(id) if names.gone.contains(id) => true,
            Some(id) => names.resolver.resolve(path, self.after.vault_path()).target == Some(*id),
            None => true,
        };
        let wrong = after.iter().zip(&targets).position(|((_, path), target)| !leads((path, target)));
        if wrong.is_none() && before.len() == after.len() {
            return Ok(());
        }
        let line = if before.len() == after.len() {
            wrong.map(|at| after[at].0)
        } else {
            // Lines do not change, so where they part a link is gone, or one too many.
            let lines = |at: usize| [before.get(at).map(|site| site.0), after.get(at).map(|site| site.0)];
            let parted = (0..before.len().max(after.len())).map(lines).find(|[before, after]| before != after);
            parted.and_then(|lines| lines.into_iter().flatten().min())
        };
        let place = line.map_or_else(String::new, |line| format!(" in line {line}"));
        Err(Error::new(
            ErrorKind::Refused,
            format!("a link{place} could not be written so that it still leads to its note"),
        )
        .at(&self.before)
        .remedy("change that link by hand first, or choose another name"))
    }
}
