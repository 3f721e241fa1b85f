//! The link graph: which files link to which. Read-only, built once from all links that lead to a file.

use std::collections::HashSet;

use crate::path::FileId;

/// A file that [`Graph::walk`] reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The file.
    pub file: FileId,
    /// Its distance in links; at least 1.
    pub distance: u32,
}

/// The direction in which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From a file to those it links to.
    Links,
    /// From a file to those that link to it.
    Backlinks,
}

/// The graph of which files link to which. Embeds count as links, and so do links of a note to itself.
///
/// Each pair of linked files is stored once in each direction, 16 bytes in all. The neighbours of a file are a slice,
/// found by binary search.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// (source, target), sorted.
    links: Vec<(FileId, FileId)>,
    /// (target, source), sorted.
    backlinks: Vec<(FileId, FileId)>,
}

impl Graph {
    /// Builds the graph from the sources and targets of all links, in any order. O(e log e) in the number of links.
    pub fn new(links: impl IntoIterator<Item = (FileId, FileId)>) -> Self {
        let sorted = |mut pairs: Vec<(FileId, FileId)>| {
            pairs.sort_unstable();
            pairs.dedup();
            pairs
        };
        let links = sorted(links.into_iter().collect());
        let backlinks = sorted(links.iter().map(|&(source, target)| (target, source)).collect());
        Self { links, backlinks }
    }

    /// The files that a file links to, or that link to it, by number. They include the file itself if it links to
    /// itself.
    pub fn neighbours(&self, id: FileId, direction: Direction) -> impl Iterator<Item = FileId> {
        let pairs = match direction {
            Direction::Links => &self.links,
            Direction::Backlinks => &self.backlinks,
        };
        let start = pairs.partition_point(|(from, _)| *from < id);
        pairs[start..].iter().take_while(move |(from, _)| *from == id).map(|(_, to)| *to)
    }

    /// The files up to `depth` links away, nearest first, then by number, without the file itself.
    ///
    /// Linear in the number of links of the files that are reached, times a binary search.
    pub fn walk(&self, id: FileId, depth: u32, direction: Direction) -> Vec<Step> {
        let mut seen = HashSet::from([id]);
        let mut steps = Vec::new();
        let mut level = vec![id];
        let mut distance = 0;
        while distance < depth && !level.is_empty() {
            distance += 1;
            let neighbours = level.iter().flat_map(|&from| self.neighbours(from, direction));
            level = neighbours.filter(|file| seen.insert(*file)).collect();
            level.sort_unstable();
            steps.extend(level.iter().map(|&file| Step { file, distance }));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Graph {
        let links = [(10, 20), (20, 40), (10, 20), (10, 30), (50, 50), (40, 10)];
        Graph::new(links.map(|(from, to)| (FileId(from), FileId(to))))
    }

    #[test]
    fn neighbours_are_listed_once_by_number() {
        let graph = sample();
        let of = |id, direction| graph.neighbours(FileId(id), direction).map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(of(10, Direction::Links), [20, 30]);
        assert_eq!(of(20, Direction::Backlinks), [10]);
        assert_eq!(of(50, Direction::Links), [50]);
        assert_eq!(of(30, Direction::Links), [0; 0]);
        assert_eq!(of(99, Direction::Backlinks), [0; 0]);
        assert!(Graph::new([]).walk(FileId(1), 5, Direction::Links).is_empty());
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
        assert_eq!(walk(30, u32::MAX, Direction::Backlinks), [(10, 1), (40, 2), (20, 3)]);
        assert_eq!(walk(10, 0, Direction::Links), []);
        assert_eq!(walk(50, 3, Direction::Links), []);
    }
}
