//! Generates the files and links of a vault without its texts, as input of the resolver.

use crate::random::Random;

/// The plan of a table of links.
#[derive(Debug, Clone)]
pub struct LinkPlan {
    /// The number of notes. One in fifty is the `index.md` of its folder.
    pub notes: usize,
    /// The number of links. One in twenty is unresolved, three in twenty are paths.
    pub links: usize,
    /// The seed. The same seed and plan give the same table.
    pub seed: u64,
}

/// The files of a vault, and the links in them.
#[derive(Debug, Clone)]
pub struct LinkTable {
    /// The paths of the notes.
    pub paths: Vec<String>,
    /// The links: the note, as an index into `paths`, and the path as written.
    pub links: Vec<(usize, String)>,
}

/// Generates the table, in time linear in notes and links.
pub fn make_links(plan: &LinkPlan) -> LinkTable {
    let mut random = Random(plan.seed);
    let folders = (plan.notes / 50).max(1);
    let folder = |note: usize| format!("area {}/topic {}", note % folders % 12, note % folders);
    // The first note of each folder is its index, so that many files have the same name.
    let name = |note: usize| if note < folders { "index".to_string() } else { format!("Note {note}") };
    let paths = (0..plan.notes).map(|note| format!("{}/{}.md", folder(note), name(note))).collect();
    let links = (0..plan.links).map(|_| {
        let (source, target) = (random.below(plan.notes), random.below(plan.notes));
        let link = match random.below(20) {
            0 => format!("Not yet {}", random.below(500)),
            1 => format!("{}/{}", folder(target), name(target)),
            2 => format!("topic {}/index", random.below(folders)),
            3 => format!("../topic {}/{}", target % folders, name(target)),
            _ => name(target),
        };
        (source, link)
    });
    let links = links.collect();
    LinkTable { paths, links }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_all_different_and_names_are_not() {
        let table = make_links(&LinkPlan { notes: 500, links: 3000, seed: 1 });
        assert_eq!((table.paths.len(), table.links.len()), (500, 3000));
        let different: std::collections::HashSet<&String> = table.paths.iter().collect();
        assert_eq!(different.len(), 500);
        assert_eq!(table.paths.iter().filter(|path| path.ends_with("/index.md")).count(), 10);
        assert!(table.links.iter().any(|(_, link)| link.starts_with("../")));
    }
}
