//! The link graph: who points at whom, read-only, made once from all files and links.

use std::collections::HashMap;

use crate::path::{FileId, FileKind};

/// A link, as the graph takes it. An embed is a link; a link of a note to itself is one too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<'a> {
    /// The file it stands in.
    pub source: FileId,
    /// Where it leads.
    pub target: Target<'a>,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// To a file.
    File(FileId),
    /// To a name that no file has: an [`unresolved_key`](super::unresolved_key).
    Unresolved(&'a str),
}

/// A file at the other end of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The file.
    pub file: FileId,
    /// How many links there are between the two, in this direction; at least 1.
    pub count: u32,
}

/// A name that links want and no file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresolved<'g> {
    /// The name, lower-cased, without `.md`.
    pub name: &'g str,
    /// The files with such links, by number.
    pub sources: &'g [Neighbour],
}

impl Unresolved<'_> {
    /// How many links want it.
    pub fn count(&self) -> u64 {
        self.sources.iter().map(|source| u64::from(source.count)).sum()
    }
}

/// How many files a file is linked with. Each file counts once, however many links there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Degree {
    /// Files it links to.
    pub links: usize,
    /// Files that link to it.
    pub backlinks: usize,
    /// Names it links to that no file has.
    pub unresolved: usize,
}

/// A file met on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The file.
    pub file: FileId,
    /// How many links away it is; at least 1.
    pub distance: u32,
}

/// Which way to walk along links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To what is linked to.
    Links,
    /// To what links here.
    Backlinks,
    /// Both ways.
    Both,
}

/// Which files to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Notes: Markdown and canvas.
    Notes,
    /// Attachments too.
    AllFiles,
}

/// Who points at whom.
///
/// Rows of neighbours lie behind one another in one vector per direction: 16 bytes a pair of linked files,
/// 17 a file. Looking a file up is a binary search; its neighbours are then a slice.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Ascending.
    ids: Vec<FileId>,
    kinds: Vec<FileKind>,
    forward: Rows,
    backward: Rows,
    /// Per file, how many names it wants.
    wants: Vec<u32>,
    /// Ascending; row `i` of `wanted_by` belongs to name `i`.
    names: Vec<Box<str>>,
    wanted_by: Rows,
}

impl Graph {
    /// From all files and all links, in any order. e log e in the links.
    ///
    /// A link from or to a file that is not among the files is left out.
    pub fn new<'a>(
        files: impl IntoIterator<Item = (FileId, FileKind)>,
        links: impl IntoIterator<Item = Edge<'a>>,
    ) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_by_key(|(id, _)| *id);
        files.dedup_by_key(|(id, _)| *id);
        let (ids, kinds): (Vec<_>, Vec<_>) = files.into_iter().unzip();

        let mut pairs = Vec::new();
        let mut wanted: HashMap<&str, Vec<FileId>> = HashMap::new();
        for Edge { source, target } in links {
            let Ok(from) = ids.binary_search(&source) else { continue };
            match target {
                Target::File(target) => {
                    if let Ok(to) = ids.binary_search(&target) {
                        pairs.push((from as u32, to as u32));
                    }
                }
                Target::Unresolved(name) => wanted.entry(name).or_default().push(source),
            }
        }
        let forward = Rows::new(ids.len(), &mut pairs, &ids);
        for (from, to) in &mut pairs {
            std::mem::swap(from, to);
        }
        let backward = Rows::new(ids.len(), &mut pairs, &ids);

        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_unstable_by_key(|(name, _)| *name);
        pairs.clear();
        for (row, (_, sources)) in wanted.iter().enumerate() {
            pairs.extend(sources.iter().filter_map(|id| Some((row as u32, ids.binary_search(id).ok()? as u32))));
        }
        let wanted_by = Rows::new(wanted.len(), &mut pairs, &ids);
        pairs.dedup();
        let mut wants = vec![0; ids.len()];
        for (_, source) in &pairs {
            wants[*source as usize] += 1;
        }
        let names = wanted.into_iter().map(|(name, _)| name.into()).collect();
        Self { ids, kinds, forward, backward, wants, names, wanted_by }
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The files a file links to, by number; itself among them if it links to itself.
    pub fn links(&self, id: FileId) -> &[Neighbour] {
        self.place(id).map_or(&[], |at| self.forward.row(at))
    }

    /// The files that link to a file, by number; itself among them if it links to itself.
    pub fn backlinks(&self, id: FileId) -> &[Neighbour] {
        self.place(id).map_or(&[], |at| self.backward.row(at))
    }

    /// How many files a file is linked with; zeros for one that is not in the graph.
    pub fn degree(&self, id: FileId) -> Degree {
        self.place(id).map_or_else(Degree::default, |at| Degree {
            links: self.forward.row(at).len(),
            backlinks: self.backward.row(at).len(),
            unresolved: self.wants[at] as usize,
        })
    }

    /// The files up to `depth` links away, nearest first, then by number; without the file itself.
    ///
    /// Linear in the links of the files met, times a binary search.
    pub fn walk(&self, id: FileId, depth: u32, direction: Direction) -> Vec<Step> {
        let Some(start) = self.place(id) else { return Vec::new() };
        let mut seen = vec![false; self.ids.len()];
        seen[start] = true;
        let mut steps = Vec::new();
        let mut level = vec![start];
        let mut distance = 0;
        while distance < depth && !level.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for &at in &level {
                let forward = if direction == Direction::Backlinks { &[] } else { self.forward.row(at) };
                let backward = if direction == Direction::Links { &[] } else { self.backward.row(at) };
                for neighbour in forward.iter().chain(backward) {
                    if let Some(at) = self.place(neighbour.file)
                        && !std::mem::replace(&mut seen[at], true)
                    {
                        next.push(at);
                    }
                }
            }
            next.sort_unstable();
            steps.extend(next.iter().map(|&at| Step { file: self.ids[at], distance }));
            level = next;
        }
        steps
    }

    /// The files that no link leads to, by number. As in Obsidian a link to itself counts, and what the
    /// file links to does not matter.
    pub fn orphans(&self, among: Among) -> impl Iterator<Item = FileId> {
        self.files(among).filter(|at| self.backward.row(*at).is_empty()).map(|at| self.ids[at])
    }

    /// The files without a link that leads to a file, by number. As in Obsidian a link to itself counts,
    /// an unresolved one does not.
    pub fn deadends(&self, among: Among) -> impl Iterator<Item = FileId> {
        self.files(among).filter(|at| self.forward.row(*at).is_empty()).map(|at| self.ids[at])
    }

    /// The names that links want and no file has, by name.
    pub fn unresolved(&self) -> impl Iterator<Item = Unresolved<'_>> {
        self.names.iter().enumerate().map(|(at, name)| Unresolved { name, sources: self.wanted_by.row(at) })
    }

    fn place(&self, id: FileId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    fn files(&self, among: Among) -> impl Iterator<Item = usize> {
        (0..self.ids.len()).filter(move |at| among == Among::AllFiles || self.kinds[*at].is_note())
    }
}

/// Rows of neighbours, one behind the other.
#[derive(Debug, Clone, Default)]
struct Rows {
    /// Where each row begins, and the end of the last.
    starts: Vec<u32>,
    /// Ascending by file within a row.
    neighbours: Vec<Neighbour>,
}

impl Rows {
    /// From pairs (row, place of the neighbour in `ids`), which it sorts.
    fn new(rows: usize, pairs: &mut [(u32, u32)], ids: &[FileId]) -> Self {
        pairs.sort_unstable();
        let mut starts = vec![0; rows + 1];
        let mut neighbours = Vec::new();
        for run in pairs.chunk_by(|a, b| a == b) {
            let (row, at) = run[0];
            neighbours.push(Neighbour { file: ids[at as usize], count: run.len() as u32 });
            starts[row as usize + 1] = neighbours.len() as u32;
        }
        // A row without neighbours ends where the one before it ends.
        for row in 1..starts.len() {
            starts[row] = starts[row].max(starts[row - 1]);
        }
        Self { starts, neighbours }
    }

    fn row(&self, at: usize) -> &[Neighbour] {
        &self.neighbours[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: FileKind = FileKind::Markdown;

    fn graph(files: &[(u32, FileKind)], links: &[(u32, u32)], wants: &[(u32, &str)]) -> Graph {
        let resolved = links.iter().map(|(from, to)| Edge { source: FileId(*from), target: Target::File(FileId(*to)) });
        let wanted = wants.iter().map(|(from, name)| Edge { source: FileId(*from), target: Target::Unresolved(name) });
        Graph::new(files.iter().map(|(id, kind)| (FileId(*id), *kind)), resolved.chain(wanted))
    }

    fn sample() -> Graph {
        let files =
            [(50, NOTE), (10, NOTE), (20, FileKind::Canvas), (30, FileKind::Attachment), (40, NOTE), (60, NOTE)];
        let links = [(10, 20), (20, 40), (10, 20), (10, 30), (50, 50), (40, 10), (10, 99), (99, 10)];
        graph(&files, &links, &[(10, "zebra"), (60, "zebra"), (60, "apple"), (60, "zebra"), (99, "lost")])
    }

    fn numbers(ids: impl Iterator<Item = FileId>) -> Vec<u32> {
        ids.map(|id| id.0).collect()
    }

    #[test]
    fn links_and_backlinks_are_counted() {
        let graph = sample();
        let n = |file, count| Neighbour { file: FileId(file), count };
        assert_eq!(graph.links(FileId(10)), [n(20, 2), n(30, 1)]);
        assert_eq!(graph.backlinks(FileId(20)), [n(10, 2)]);
        assert_eq!(graph.links(FileId(50)), [n(50, 1)]);
        assert_eq!((graph.links(FileId(99)), graph.len()), (&[][..], 6));
        assert_eq!(graph.degree(FileId(10)), Degree { links: 2, backlinks: 1, unresolved: 1 });
        assert_eq!(graph.degree(FileId(60)), Degree { links: 0, backlinks: 0, unresolved: 2 });
        assert_eq!(graph.degree(FileId(99)), Degree::default());
    }

    #[test]
    fn orphans_deadends_and_unresolved() {
        let graph = sample();
        assert_eq!(numbers(graph.orphans(Among::Notes)), [60]);
        assert_eq!(numbers(graph.orphans(Among::AllFiles)), [60]);
        assert_eq!(numbers(graph.deadends(Among::Notes)), [60]);
        assert_eq!(numbers(graph.deadends(Among::AllFiles)), [30, 60]);
        let wanted: Vec<_> = graph.unresolved().map(|u| (u.name, u.count(), u.sources.len())).collect();
        assert_eq!(wanted, [("apple", 1, 1), ("zebra", 3, 2)]);
        let empty = Graph::new([], []);
        assert!(empty.is_empty() && empty.unresolved().next().is_none());
        assert!(empty.walk(FileId(1), 5, Direction::Both).is_empty());
    }

    #[test]
    fn walks_are_breadth_first() {
        let graph = sample();
        let walk = |id, depth, direction| -> Vec<_> {
            graph.walk(FileId(id), depth, direction).into_iter().map(|s| (s.file.0, s.distance)).collect()
        };
        assert_eq!(walk(10, 1, Direction::Links), [(20, 1), (30, 1)]);
        assert_eq!(walk(10, 9, Direction::Links), [(20, 1), (30, 1), (40, 2)]);
        assert_eq!(walk(30, 2, Direction::Backlinks), [(10, 1), (40, 2)]);
        assert_eq!(walk(30, u32::MAX, Direction::Both), [(10, 1), (20, 2), (40, 2)]);
        assert_eq!(walk(10, 0, Direction::Both), []);
        assert_eq!(walk(50, 3, Direction::Both), []);
    }
}
