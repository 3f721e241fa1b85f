//! Queries about links and tags: links and backlinks of a note, unresolved links, orphans, dead ends.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::Result;
use crate::files::{DiskFile, FileStat, MAX_NOTE_BYTES, read_note};
use crate::index::Index;
use crate::links::{Direction, Graph, Names, Rule, block_at, heading_at, ranked, resolve, slug_at, unresolved_key};
use crate::note::{LinkKind, LinkText, ParseOptions, TagKey, parse, split_link};
use crate::path::{FileId, FileKind, VaultPath};
use crate::report::{LinkRow, NoteWarning, ResolvedLink, SkippedNote, TagCount, UnresolvedName};
use crate::search::find_note;
use crate::store::{Anchors, NoteMeta, PassageText, ReadContents, StoredLink};

/// The result of [`Index::graph`]: the whole link graph, ready to be drawn.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct GraphData {
    /// Files and names, notes first; edges refer to them by position.
    pub nodes: Vec<GraphNode>,
    /// (from, to, number of links).
    pub edges: Vec<(usize, usize, usize)>,
}

/// A node of [`GraphData`].
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct GraphNode {
    /// The file's path; for an unresolved name, the name.
    pub path: String,
    /// The note's title; the file's name for attachments.
    pub title: String,
    /// `note`, `attachment` or `unresolved`.
    pub kind: String,
    /// The note's tags, without `#`.
    pub tags: Vec<String>,
}

/// A file of the vault, as [`Index::files`] gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VaultFile {
    /// The path of the file.
    pub path: VaultPath,
    /// Whether it is an indexed note, so that the index knows its links.
    pub is_indexed: bool,
}

type Paths = HashMap<FileId, VaultPath>;

impl Index {
    /// Calls `each` with every link of the vault, ordered by source and position. Memory grows with the number of
    /// headings in linked notes, not with the number of links.
    ///
    /// # Errors
    /// If the index cannot be read, and the errors of `each`.
    pub fn all_links(&self, each: &mut dyn FnMut(LinkRow) -> Result<()>) -> Result<()> {
        self.read(|store| {
            let mut files = store.paths()?;
            files.sort_by(|a, b| a.1.cmp(&b.1));
            let paths: Paths = files.iter().cloned().collect();
            let mut places = AnchorCache::new(store);
            for (source, _) in &files {
                for link in store.links_from(*source)? {
                    let subpath_missing = places.lack(&paths, &link)?;
                    each(LinkRow { subpath_missing, ..row(&paths, link) })?;
                }
            }
            Ok(())
        })
    }

    /// The links of a note (its path, or a link to it), with the text around them. With a `depth` above 1, also the
    /// links of the notes that they lead to, and so on. Breadth first, each note once.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the nearest names.
    pub fn links(&self, note: &str, depth: usize) -> Result<Vec<LinkRow>> {
        self.walk_links(note, depth, Direction::Links)
    }

    /// The links that lead to a note or attachment; otherwise like [`Index::links`].
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the nearest names.
    pub fn backlinks(&self, note: &str, depth: usize) -> Result<Vec<LinkRow>> {
        self.walk_links(note, depth, Direction::Backlinks)
    }

    fn walk_links(&self, note: &str, depth: usize, direction: Direction) -> Result<Vec<LinkRow>> {
        self.read(|store| {
            let start = find_note(store, note)?;
            // Only the paths that occur: a vault has many more.
            let mut paths = Paths::new();
            let mut steps = vec![(start, 0)];
            if depth > 1 {
                let reach = u32::try_from(depth - 1).unwrap_or(u32::MAX);
                let mut further: Vec<_> = graph(store)?.walk(start, reach, direction).into_iter().collect();
                add_paths(store, &mut paths, further.iter().map(|step| step.file))?;
                further.sort_by_key(|step| (step.distance, paths.get(&step.file)));
                steps.extend(further.into_iter().map(|s| (s.file, s.distance as usize)));
            }
            let mut rows = Vec::new();
            let mut places = AnchorCache::new(store);
            let mut passages: Option<(FileId, Vec<PassageText>)> = None;
            for (id, before) in steps {
                let mut links = match direction {
                    Direction::Links => store.links_from(id)?,
                    Direction::Backlinks => store.links_to(id)?,
                };
                add_paths(store, &mut paths, links.iter().flat_map(|link| [Some(link.source), link.target]).flatten())?;
                if direction == Direction::Backlinks {
                    links.sort_by(|a, b| paths.get(&a.source).cmp(&paths.get(&b.source)).then(a.id.cmp(&b.id)));
                }
                for link in links {
                    let (_, texts) = match passages.take().filter(|(source, _)| *source == link.source) {
                        Some(known) => passages.insert(known),
                        None => passages.insert((link.source, store.passage_texts(link.source)?)),
                    };
                    let text = line_in(texts, &link).or_else(|| self.line_in_file(&paths, &link));
                    let subpath_missing = places.lack(&paths, &link)?;
                    let depth = (depth > 1).then_some(before + 1);
                    rows.push(LinkRow { subpath_missing, text, depth, ..row(&paths, link) });
                }
            }
            Ok(rows)
        })
    }

    /// The line of a link that is not in a passage, for example in frontmatter.
    fn line_in_file(&self, paths: &Paths, link: &StoredLink) -> Option<String> {
        let path = paths.get(&link.source).filter(|path| path.kind() == FileKind::Markdown)?.clone();
        let file = DiskFile { path, disk: None, stat: FileStat::default(), indexed: true, symlink: false };
        // A note that has changed or was deleted since cannot show the line of this link.
        let content = read_note(&self.vault, &file, MAX_NOTE_BYTES).ok()?;
        line_with(link, &String::from_utf8_lossy(&content.bytes), 1)
    }

    /// Names of missing files that links lead to, those with the most links first.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn unresolved(&self) -> Result<Vec<UnresolvedName>> {
        self.read(|store| {
            let paths = paths(store)?;
            let mut names = UnresolvedNames::default();
            for (source, target, path) in edges_by_path(store, &paths)? {
                let (None, Some(source)) = (target, paths.get(&source)) else { continue };
                let path = from_root(&path, source);
                names.add(unresolved_key(&path), &path, None, source);
            }
            Ok(names.into_list())
        })
    }

    /// Headings and blocks that links lead to but the linked note lacks, those with the most links first.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn unresolved_subpaths(&self) -> Result<Vec<UnresolvedName>> {
        self.read(|store| {
            let paths = paths(store)?;
            let mut anchors = AnchorCache::new(store);
            let mut missing = Vec::new();
            for link in store.links_with_subpath()? {
                if anchors.lack(&paths, &link)? {
                    missing.push(row(&paths, link));
                }
            }
            // A name is shown as the first note spells it.
            missing.sort_by(|a, b| a.source.cmp(&b.source));
            let mut names = UnresolvedNames::default();
            for link in missing {
                let (Some(target), Some(subpath)) = (link.target, link.subpath) else { continue };
                let path = if link.path.is_empty() { target.stem() } else { &link.path };
                let name = format!("{path}#{subpath}");
                names.add(format!("{target}#{}", subpath.to_lowercase()), &name, Some(&target), &link.source);
            }
            Ok(names.into_list())
        })
    }

    /// The notes that have no links to them.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn orphans(&self) -> Result<Vec<VaultPath>> {
        self.read(|store| unlinked(store, Direction::Backlinks))
    }

    /// The notes that have no links.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn deadends(&self) -> Result<Vec<VaultPath>> {
        self.read(|store| unlinked(store, Direction::Links))
    }

    /// Every tag with the number of its notes, ordered by name.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn tags(&self) -> Result<Vec<TagCount>> {
        self.read(|store| store.tag_counts())
    }

    /// The names of the properties that have a value in some note, in lower case, sorted.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn properties(&self) -> Result<Vec<String>> {
        self.read(|store| store.property_keys())
    }

    /// The target of a link from a note (from the vault's root if none is given), and the rule that decided it. The
    /// link may be written as in a note, `[[path#heading|shown]]` or `[shown](path%20encoded.md)`, or be its path
    /// alone.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when `from` is not a note.
    pub fn resolve(&self, link: &str, from: Option<&str>) -> Result<ResolvedLink> {
        Ok(self.resolve_all(&[link], from)?.remove(0))
    }

    /// [`Self::resolve`] for several links, in their order. The names of all files are read once.
    ///
    /// # Errors
    /// Those of [`Self::resolve`].
    pub fn resolve_all(&self, links: &[&str], from: Option<&str>) -> Result<Vec<ResolvedLink>> {
        self.read(|store| {
            let paths = paths(store)?;
            let source = match from {
                Some(note) => paths[&find_note(store, note)?].clone(),
                None => VaultPath::new("-").expect("a path"),
            };
            let mut names = Names::new();
            paths.iter().for_each(|(id, path)| names.insert(*id, path));
            let is_there = |path: &str| resolve(&names, path, &source).target.is_some();
            let mut places = AnchorCache::new(store);
            let mut resolved = |link: &str| {
                let Some(parts) = link_parts(link, &ParseOptions::of_vault(&self.vault), &is_there) else {
                    let (target, line, candidates) = (None, None, Vec::new());
                    return Ok(ResolvedLink { target, line, subpath_missing: false, rule: Rule::External, candidates });
                };
                let resolution = resolve(&names, &parts.path, &source);
                let candidates =
                    ranked(&names, &parts.path, &source).into_iter().filter_map(|id| paths.get(&id).cloned()).collect();
                let anchors = places.of(resolution.target)?.zip(parts.subpath.as_deref());
                let kind = if link.contains("](") { LinkKind::Markdown } else { LinkKind::Wikilink };
                let line = anchors.and_then(|(anchors, subpath)| line_of(anchors, subpath, kind));
                let subpath_missing = anchors.is_some() && line.is_none();
                let target = resolution.target.and_then(|id| paths.get(&id).cloned());
                Ok(ResolvedLink { target, line, subpath_missing, rule: resolution.rule, candidates })
            };
            links.iter().map(|link| resolved(link)).collect()
        })
    }

    /// How many notes there are, without the other counts of [`Self::status`].
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn note_count(&self) -> Result<usize> {
        self.read(|store| store.note_count())
    }

    /// All notes with titles and tags, ordered by path, including those without text, which searches do not find.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn notes(&self) -> Result<Vec<GraphNode>> {
        self.read(|store| Ok(store.note_metas()?.into_iter().map(node).collect()))
    }

    /// The notes that have at least one of these tags, or one nested below it, ordered by path, with all of their tags.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn notes_tagged<'t>(&self, tags: impl IntoIterator<Item = &'t TagKey>) -> Result<Vec<GraphNode>> {
        self.read(|store| {
            let mut ids = BTreeSet::new();
            for tag in tags {
                ids.extend(store.notes_with_tag(tag.as_str())?);
            }
            let heads = ids.into_iter().filter_map(|id| store.note_meta(id).transpose());
            let mut notes: Vec<GraphNode> = heads.map(|head| head.map(node)).collect::<Result<_>>()?;
            notes.sort_by(|a, b| a.path.cmp(&b.path));
            Ok(notes)
        })
    }

    /// The notes that could not be indexed, as of the last sync.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn skipped(&self) -> Result<Vec<SkippedNote>> {
        self.read(|store| Ok(store.warnings()?.0))
    }

    /// The warnings about notes that are indexed, as of the last sync.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn warnings(&self) -> Result<Vec<NoteWarning>> {
        self.read(|store| Ok(store.warnings()?.1))
    }

    /// The notes at some paths with their titles and tags, in that order, without those that are not in the index.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn notes_at<'p>(&self, paths: impl IntoIterator<Item = &'p VaultPath>) -> Result<Vec<GraphNode>> {
        self.read(|store| {
            let mut notes = Vec::new();
            for path in paths {
                let id = store.file_id(path)?;
                notes.extend(id.map_or(Ok(None), |id| store.note_meta(id))?.map(node));
            }
            Ok(notes)
        })
    }

    /// Every file that a link can lead to, in no particular order.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn files(&self) -> Result<Vec<VaultFile>> {
        self.read(|store| {
            let read: std::collections::HashSet<FileId> = store.notes()?.into_iter().map(|(id, ..)| id).collect();
            Ok(store
                .paths()?
                .into_iter()
                .map(|(id, path)| VaultFile { path, is_indexed: read.contains(&id) })
                .collect())
        })
    }

    /// The notes with a link whose [`link_key`](crate::links::link_key) is one of `keys`, each once. When a file is
    /// added, removed or moved, only links under [its keys](crate::links::keys_leading_to) can lead elsewhere. The
    /// result may include a note without such a link.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn notes_linking_by<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Result<Vec<VaultPath>> {
        self.read(|store| {
            let mut sources = std::collections::HashSet::new();
            for key in keys {
                sources.extend(store.links_by_name(key)?.into_iter().map(|link| link.source));
            }
            if sources.is_empty() {
                return Ok(Vec::new());
            }
            let paths = paths(store)?;
            let mut found: Vec<VaultPath> = sources.iter().filter_map(|source| paths.get(source).cloned()).collect();
            found.sort();
            Ok(found)
        })
    }

    /// The whole link graph: all notes, the linked attachments, and the names that links lead to but that do not exist.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn graph(&self) -> Result<GraphData> {
        self.read(|store| {
            let paths = paths(store)?;
            let mut nodes = Vec::new();
            let mut at: HashMap<FileId, usize> = HashMap::new();
            for note in store.note_metas()? {
                at.insert(note.id, nodes.len());
                nodes.push(node(note));
            }
            let mut unresolved: HashMap<String, usize> = HashMap::new();
            let mut edges: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for (source, target, path) in edges_by_path(store, &paths)? {
                let Some(&from) = at.get(&source) else { continue };
                let to = match target {
                    Some(target) => *at.entry(target).or_insert_with(|| {
                        let path = paths.get(&target).map(ToString::to_string).unwrap_or_default();
                        let title = path.rsplit('/').next().unwrap_or(&path).to_string();
                        nodes.push(GraphNode { path, title, kind: "attachment".into(), tags: Vec::new() });
                        nodes.len() - 1
                    }),
                    None => {
                        let path = paths.get(&source).map_or(path.clone(), |source| from_root(&path, source));
                        *unresolved.entry(unresolved_key(&path)).or_insert_with(|| {
                            let kind = "unresolved".into();
                            nodes.push(GraphNode { path: path.clone(), title: path.clone(), kind, tags: Vec::new() });
                            nodes.len() - 1
                        })
                    }
                };
                *edges.entry((from, to)).or_default() += 1;
            }
            Ok(GraphData { nodes, edges: edges.into_iter().map(|((from, to), n)| (from, to, n)).collect() })
        })
    }
}

/// Unresolved names by a key that is equal for the same name, with the number of links to each.
#[derive(Default)]
struct UnresolvedNames(BTreeMap<String, UnresolvedName>);

impl UnresolvedNames {
    fn add(&mut self, key: String, name: &str, target: Option<&VaultPath>, source: &VaultPath) {
        let new = || UnresolvedName { name: name.into(), target: target.cloned(), count: 0, sources: Vec::new() };
        let entry = self.0.entry(key).or_insert_with(new);
        entry.count += 1;
        if !entry.sources.contains(source) {
            entry.sources.push(source.clone());
        }
    }

    /// Those with the most links first.
    fn into_list(self) -> Vec<UnresolvedName> {
        let mut names: Vec<_> = self.0.into_values().collect();
        names.iter_mut().for_each(|name| name.sources.sort());
        names.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        names
    }
}

/// The headings and blocks of linked notes.
struct AnchorCache<'s> {
    store: &'s dyn ReadContents,
    known: HashMap<FileId, Option<Anchors>>,
}

impl<'s> AnchorCache<'s> {
    fn new(store: &'s dyn ReadContents) -> Self {
        Self { store, known: HashMap::new() }
    }

    /// Those of a target. `None` if it is not an indexed note: `#page=3` of a PDF is not a heading.
    fn of(&mut self, target: Option<FileId>) -> Result<Option<&Anchors>> {
        let Some(target) = target else { return Ok(None) };
        Ok(match self.known.entry(target) {
            Entry::Occupied(known) => known.into_mut().as_ref(),
            Entry::Vacant(slot) => slot.insert(self.store.anchors(target)?).as_ref(),
        })
    }

    /// Whether a link leads to a note that lacks its heading or block. In a canvas `#` may name a card.
    fn lack(&mut self, paths: &Paths, link: &StoredLink) -> Result<bool> {
        let Some(subpath) = &link.subpath else { return Ok(false) };
        let is_markdown = |id: &FileId| paths.get(id).is_some_and(|path| path.kind() == FileKind::Markdown);
        Ok(self
            .of(link.target.filter(is_markdown))?
            .is_some_and(|anchors| line_of(anchors, subpath, link.kind).is_none()))
    }
}

/// The line of the heading or block that a subpath names.
fn line_of(anchors: &Anchors, subpath: &str, kind: LinkKind) -> Option<u32> {
    let headings: Vec<(u8, &str)> = anchors.headings.iter().map(|(level, text, _)| (*level, text.as_str())).collect();
    let blocks: Vec<&str> = anchors.blocks.iter().map(|(id, _)| id.as_str()).collect();
    let slug = || if kind == LinkKind::Markdown { slug_at(&headings, subpath) } else { None };
    let heading = heading_at(&headings, subpath).or_else(slug);
    let block = || block_at(&blocks, subpath).map(|at| anchors.blocks[at].1);
    heading.map(|at| anchors.headings[at].2).or_else(block)
}

/// The parts of a link as a person typed it; `None` for an address outside the vault.
fn link_parts(link: &str, options: &ParseOptions, is_there: &dyn Fn(&str) -> bool) -> Option<LinkText> {
    let link = link.trim();
    let bare = link.strip_prefix('!').unwrap_or(link);
    if bare.starts_with('[') && !bare.starts_with("[[") {
        // Parsed like the text of a note.
        let note = parse(&VaultPath::new("-.md").expect("a path"), link.as_bytes(), options);
        if let Some(link) = note.links.into_iter().next() {
            return Some(LinkText { path: link.path, subpath: link.subpath, display: link.display });
        }
        if bare.contains("](") {
            return None;
        }
    }
    if bare.contains("://") || bare.starts_with("mailto:") {
        return None;
    }
    let parts = split_link(bare.trim_start_matches("[[").trim_end_matches("]]"));
    if bare.contains('%') && !bare.starts_with("[[") && !is_there(&parts.path) {
        let decoded = percent_encoding::percent_decode_str(bare).decode_utf8();
        return Some(decoded.map_or(parts, |decoded| split_link(&decoded)));
    }
    Some(parts)
}

/// The line of a link, from the passages of its note.
fn line_in(passages: &[PassageText], link: &StoredLink) -> Option<String> {
    let here = || passages.iter().filter(|passage| passage.line <= link.line && link.line <= passage.end_line);
    // All lines of a canvas's text have the number of its node.
    let any = || here().flat_map(|passage| passage.text.lines()).find(|line| line.contains(first_line(link)));
    here()
        .find_map(|passage| line_with(link, passage.text.trim_start(), passage.line))
        .or_else(|| any().map(|line| line.trim().to_string()))
}

/// The line of a link, if it is in a text that begins with line `first`.
fn line_with(link: &StoredLink, text: &str, first: u32) -> Option<String> {
    let line = text.lines().nth(link.line.checked_sub(first)? as usize)?;
    line.contains(first_line(link)).then(|| line.trim().to_string())
}

/// A link may continue over several lines; this is the first.
fn first_line(link: &StoredLink) -> &str {
    link.raw.lines().next().unwrap_or_default()
}

fn paths(store: &dyn ReadContents) -> Result<Paths> {
    Ok(store.paths()?.into_iter().collect())
}

/// Adds the missing paths of files.
fn add_paths(store: &dyn ReadContents, paths: &mut Paths, ids: impl IntoIterator<Item = FileId>) -> Result<()> {
    for id in ids {
        if let Entry::Vacant(slot) = paths.entry(id)
            && let Some(path) = store.path_of(id)?
        {
            slot.insert(path);
        }
    }
    Ok(())
}

fn node(note: NoteMeta) -> GraphNode {
    GraphNode { path: note.path.to_string(), title: note.title, kind: "note".into(), tags: note.tags }
}

/// All edges ordered by the paths of their sources and their positions. Ids would reveal the order in which notes were
/// added.
fn edges_by_path(
    store: &dyn ReadContents,
    paths: &HashMap<FileId, VaultPath>,
) -> Result<Vec<(FileId, Option<FileId>, String)>> {
    let mut edges = store.edges()?;
    edges.sort_by_key(|(source, _, _)| paths.get(source));
    Ok(edges)
}

fn graph(store: &dyn ReadContents) -> Result<Graph> {
    Ok(Graph::new(store.edges()?.into_iter().filter_map(|(source, target, _)| Some((source, target?)))))
}

/// The notes without links in one direction, ordered by path. Excluded notes are link targets, but are not listed
/// themselves. As in Obsidian, a link of a note to itself counts.
fn unlinked(store: &dyn ReadContents, direction: Direction) -> Result<Vec<VaultPath>> {
    let graph = graph(store)?;
    let notes = store.notes()?.into_iter().filter(|(id, ..)| graph.neighbours(*id, direction).next().is_none());
    let mut found: Vec<VaultPath> = notes.map(|(_, path, _)| path).collect();
    found.sort();
    Ok(found)
}

/// Converts a path that begins with `./` or `../` to a path from the vault's root; returns others as they are.
fn from_root(path: &str, source: &VaultPath) -> String {
    let has_dots = path.starts_with("./") || path.starts_with("../");
    let place = VaultPath::new(&format!("{}/{path}", source.folder())).filter(|_| has_dots);
    place.map_or_else(|| path.to_owned(), |place| place.to_string())
}

fn row(paths: &Paths, link: StoredLink) -> LinkRow {
    // The writers of the schema make sure that a link's source is a file; a damaged row shows as an impossible path.
    let path_of = |id: FileId| paths.get(&id).cloned();
    LinkRow {
        source: path_of(link.source).unwrap_or_else(|| VaultPath::new("?").expect("a path")),
        line: link.line,
        kind: link.kind,
        // As it is written, even if it is read as a path relative to the folder.
        path: match link.path.strip_prefix("./") {
            Some(path) if !link.raw.contains("./") => path.to_owned(),
            _ => link.path,
        },
        raw: link.raw,
        subpath: link.subpath,
        target: link.target.and_then(path_of),
        subpath_missing: false,
        text: None,
        depth: None,
    }
}
