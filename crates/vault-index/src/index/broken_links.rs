//! Broken links, and their probable targets.
//!
//! | evidence | certainty |
//! | --- | --- |
//! | the file that the link led to was renamed or moved outside of this program, and no other file matches | certain |
//! | the only file of that name is in another folder; the only note with that title or alias | likely |
//! | a name with a typo of one or two letters, and no other name is nearly as similar | likely |
//! | the note has a heading similar to the missing one, and no other heading is nearly as similar | likely |
//! | other similar names and headings; the only note elsewhere that has the heading | possible |
//!
//! A sync detects a renamed file by its inode or its content, see [`settle`](crate::files::settle), and stores its
//! former path. Numbers are never typos: `2024-01-05` does not mean `2024-01-06`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use crate::error::Result;
use crate::index::Index;
use crate::likeness::likeness;
use crate::links::{Names, ranked, slug};
use crate::note::LinkKind;
use crate::path::{FileId, FileKind, VaultPath};
use crate::report::{BrokenLink, Certainty, LinkRow, RepairProposal};
use crate::store::ReadContents;
use crate::terms::name_key;

/// The most proposals for one link.
const MAX_PROPOSALS: usize = 3;

/// The least likeness of a possible name or heading, and of a likely one. One typo in a word of seven letters leaves a
/// likeness of 0.71.
const POSSIBLE: f64 = 0.6;
const LIKELY: f64 = 0.7;

/// How much more similar the best candidate must be than the second to be likely.
const MARGIN: f64 = 0.1;

/// The number of candidates that are compared with a name: those that share most pairs of letters with it.
const MAX_COMPARED: usize = 50;

impl Index {
    /// The links that lead to no file, or to a heading or block that their note lacks, each with its probable targets,
    /// the most certain first. All links of the vault, ordered by source and position, or those of one note (its path,
    /// or a link to it).
    ///
    /// Checks every link, and compares the name in each broken one with the names that have letters in common with it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the nearest names.
    pub fn broken_links(&self, note: Option<&str>) -> Result<Vec<BrokenLink>> {
        let mut broken = Vec::new();
        let mut add = |link: LinkRow| {
            if link.target.is_none() || link.subpath_missing {
                broken.push(link);
            }
        };
        match note {
            Some(note) => self.links(note, 1)?.into_iter().for_each(&mut add),
            None => self.all_links(&mut |link| {
                add(link);
                Ok(())
            })?,
        }
        if broken.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|store| {
            let repair = Repair::new(store)?;
            broken.into_iter().map(|link| Ok(BrokenLink { proposals: repair.proposals(&link)?, link })).collect()
        })
    }
}

/// Headings by key, each with its spelling and the only note that has it; `None` if several notes have it.
type UniqueHeadings = HashMap<String, Option<(FileId, String)>>;

/// The possible targets of links.
struct Repair<'s> {
    store: &'s dyn ReadContents,
    names: Names,
    /// The former paths of files, by number, and the current file of each, where that is certain.
    former: Names,
    now: Vec<Option<FileId>>,
    /// Titles, aliases and names of notes, by key.
    by_key: HashMap<String, BTreeSet<FileId>>,
    /// The names of files and notes.
    listed: Vec<(String, FileId)>,
    /// Those with the same digits that contain a pair of letters. Names with other digits are never alike, and a vault
    /// can have thousands of names that differ only in a number.
    by_pair: HashMap<(u32, [char; 2]), Vec<u32>>,
    /// The numbers of digits as in `by_pair`.
    by_digits: HashMap<String, u32>,
    headings: std::cell::OnceCell<UniqueHeadings>,
}

impl<'s> Repair<'s> {
    fn new(store: &'s dyn ReadContents) -> Result<Self> {
        let paths = store.paths()?;
        let mut former = Names::new();
        let mut now = Vec::new();
        for (path, file) in store.former_paths()? {
            former.insert(FileId(now.len() as u32), &path);
            now.push(file);
        }
        let mut by_key: HashMap<String, BTreeSet<FileId>> = HashMap::new();
        let mut listed: Vec<(String, FileId)> = Vec::new();
        for (file, name) in store.all_names()? {
            by_key.entry(name.key).or_default().insert(file);
            listed.push((name.text, file));
        }
        listed.extend(paths.iter().map(|(file, path)| (name_of(path).to_owned(), *file)));
        listed.sort();
        listed.dedup();
        let mut by_pair: HashMap<(u32, [char; 2]), Vec<u32>> = HashMap::new();
        let mut by_digits: HashMap<String, u32> = HashMap::new();
        for (at, (name, _)) in listed.iter().enumerate() {
            let next = by_digits.len() as u32;
            let same_digits = *by_digits.entry(digits(name)).or_insert(next);
            for pair in pairs(name) {
                by_pair.entry((same_digits, pair)).or_default().push(at as u32);
            }
        }
        let names = paths.iter().map(|(file, path)| (*file, path)).collect();
        Ok(Self { store, names, former, now, by_key, listed, by_pair, by_digits, headings: std::cell::OnceCell::new() })
    }

    fn proposals(&self, link: &LinkRow) -> Result<Vec<RepairProposal>> {
        let mut found = match &link.target {
            Some(target) => self.headings_like(link, target)?,
            None => self.files_meant(link),
        };
        found.truncate(MAX_PROPOSALS);
        Ok(found)
    }

    /// The files that an unresolved link may mean.
    fn files_meant(&self, link: &LinkRow) -> Vec<RepairProposal> {
        let propose = |file: FileId, certainty, reason: String| {
            let target = self.names.path(file)?.clone();
            // A note does not link to itself by its name, and the name of a note does not mean a picture.
            let fits = target != link.source && self.fits(link, &target);
            fits.then(|| RepairProposal { target, subpath: link.subpath.clone(), certainty, reason })
        };
        let former: Vec<Option<FileId>> =
            ranked(&self.former, &link.path, &link.source).iter().map(|id| self.now[id.0 as usize]).collect();
        // The first is the file that the link led to, if all files were at their former paths at the same time.
        if let Some(Some(file)) = former.first()
            && let Some(target) = self.names.path(*file)
        {
            let is_only = former.iter().all(|other| *other == Some(*file));
            let certainty = if is_only { Certainty::Certain } else { Certainty::Likely };
            let (target, subpath, reason) = (target.clone(), link.subpath.clone(), "the file was renamed".to_owned());
            return vec![RepairProposal { target, subpath, certainty, reason }];
        }
        let name = link.path.rsplit('/').next().unwrap_or(&link.path);
        let elsewhere = ranked(&self.names, name, &link.source);
        let certainty = if elsewhere.len() == 1 { Certainty::Likely } else { Certainty::Possible };
        let moved = |file| propose(file, certainty, "has this name, in another folder".into());
        let found: Vec<RepairProposal> = elsewhere.into_iter().filter_map(moved).collect();
        if !found.is_empty() {
            return found;
        }
        let name = name_in(link);
        let called = self.by_key.get(&name_key(name)).into_iter().flatten();
        let called: Vec<FileId> = called.copied().collect();
        let certainty = if called.len() == 1 { Certainty::Likely } else { Certainty::Possible };
        let titled = |file| propose(file, certainty, "has this title or alias".into());
        let found: Vec<RepairProposal> = called.into_iter().filter_map(titled).collect();
        if !found.is_empty() {
            return found;
        }
        let mut alike: Vec<(f64, &str, FileId)> = Vec::new();
        for (score, at) in self.names_like(name) {
            let (name, file) = &self.listed[at];
            if alike.iter().all(|(.., other)| other != file)
                && propose(*file, Certainty::Possible, String::new()).is_some()
            {
                alike.push((score, name, *file));
            }
        }
        let scores: Vec<f64> = alike.iter().map(|(score, ..)| *score).collect();
        let proposals = alike.into_iter().enumerate().filter_map(|(at, (_, name, file))| {
            propose(file, certainty_of(&scores, at), format!("{name:?} is similar to {:?}", name_in(link)))
        });
        proposals.collect()
    }

    /// The names similar to one, the most similar first.
    fn names_like(&self, name: &str) -> Vec<(f64, usize)> {
        let Some(same_digits) = self.by_digits.get(&digits(name)) else { return Vec::new() };
        let mut shared: HashMap<u32, usize> = HashMap::new();
        for pair in pairs(name) {
            for at in self.by_pair.get(&(*same_digits, pair)).into_iter().flatten() {
                *shared.entry(*at).or_default() += 1;
            }
        }
        let mut shared: Vec<(Reverse<usize>, u32)> =
            shared.into_iter().map(|(at, count)| (Reverse(count), at)).collect();
        shared.sort_unstable();
        shared.truncate(MAX_COMPARED);
        let mut alike: Vec<(f64, usize)> =
            shared.into_iter().map(|(_, at)| (likeness(name, &self.listed[at as usize].0), at as usize)).collect();
        alike.retain(|(score, _)| *score >= POSSIBLE);
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        alike
    }

    /// Whether a link can mean a file of this kind: a link with an attachment's extension means a file with the same
    /// extension; every other link means a note.
    fn fits(&self, link: &LinkRow, target: &VaultPath) -> bool {
        match VaultPath::new(&link.path).as_ref().and_then(extension_of_attachment) {
            Some(wanted) => target.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted)),
            None => target.kind().is_note(),
        }
    }

    /// The headings that a link to a missing one may mean. Block ids are arbitrary, so they are not compared.
    fn headings_like(&self, link: &LinkRow, target: &VaultPath) -> Result<Vec<RepairProposal>> {
        let Some(wanted) = link.subpath.as_deref().and_then(|subpath| subpath.rsplit('#').next()).map(str::trim) else {
            return Ok(Vec::new());
        };
        let Some(anchors) = self.names.id(target).map_or(Ok(None), |file| self.store.anchors(file))? else {
            return Ok(Vec::new());
        };
        if wanted.starts_with('^') || wanted.is_empty() {
            return Ok(Vec::new());
        }
        let is_slug = link.kind == LinkKind::Markdown && slug(wanted) == wanted;
        let words = if is_slug { wanted.replace('-', " ") } else { wanted.to_owned() };
        let written = |heading: &str| if is_slug { slug(heading) } else { heading.to_owned() };
        let mut like: Vec<(f64, &str)> =
            anchors.headings.iter().map(|(_, heading, _)| (alike(&words, heading), heading.as_str())).collect();
        like.retain(|(score, _)| *score >= crate::likeness::LEAST);
        like.sort_by(|a, b| b.0.total_cmp(&a.0));
        like.dedup_by(|a, b| a.1 == b.1);
        let scores: Vec<f64> = like.iter().map(|(score, _)| *score).collect();
        let propose = |(at, (_, heading)): (usize, (f64, &str))| RepairProposal {
            target: target.clone(),
            subpath: Some(written(heading)),
            certainty: certainty_of(&scores, at),
            reason: format!("the note has the heading {heading:?}"),
        };
        let mut found: Vec<RepairProposal> = like.into_iter().enumerate().map(propose).collect();
        let elsewhere = self.headings()?.get(&name_key(&words)).and_then(Option::as_ref);
        if let Some((file, heading)) = elsewhere
            && let Some(target) = self.names.path(*file)
        {
            let reason = format!("only this note has the heading {heading:?}");
            let certainty = Certainty::Possible;
            found.push(RepairProposal { target: target.clone(), subpath: Some(written(heading)), certainty, reason });
        }
        Ok(found)
    }

    fn headings(&self) -> Result<&UniqueHeadings> {
        if let Some(known) = self.headings.get() {
            return Ok(known);
        }
        let mut headings = UniqueHeadings::new();
        for (file, ..) in self.store.notes()? {
            for (_, heading, _) in self.store.anchors(file)?.unwrap_or_default().headings {
                let entry = headings.entry(name_key(&heading)).or_insert_with(|| Some((file, heading)));
                if entry.as_ref().is_some_and(|(only, _)| *only != file) {
                    *entry = None;
                }
            }
        }
        Ok(self.headings.get_or_init(|| headings))
    }
}

/// The longest extension. For example, the text after the dot in `Dr. Smith's list` is not an extension.
const MAX_EXTENSION: usize = 5;

fn extension_of_attachment(path: &VaultPath) -> Option<&str> {
    let extension = path.extension().filter(|_| path.kind() == FileKind::Attachment)?;
    let is_one = extension.len() <= MAX_EXTENSION && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    // `Release v1.2` does not have one.
    Some(extension).filter(|extension| is_one && extension.contains(char::is_alphabetic))
}

/// The name in a link, without the extension of a note.
fn name_in(link: &LinkRow) -> &str {
    let name = link.path.rsplit('/').next().unwrap_or(&link.path);
    name.strip_suffix(".md").or_else(|| name.strip_suffix(".markdown")).unwrap_or(name)
}

/// The name of a file in links; for a note, without its extension.
fn name_of(path: &VaultPath) -> &str {
    if path.kind() == FileKind::Markdown { path.stem() } else { path.file_name() }
}

/// The likeness of two headings; 0 if their numbers differ.
fn alike(a: &str, b: &str) -> f64 {
    if digits(a) == digits(b) { likeness(a, b) } else { 0.0 }
}

fn digits(name: &str) -> String {
    name.chars().filter(char::is_ascii_digit).collect()
}

/// The certainty of a candidate, from all scores in order: likely only if the first score is high and the second is not
/// nearly as high.
fn certainty_of(scores: &[f64], at: usize) -> Certainty {
    let is_alone = scores.get(1).is_none_or(|second| scores[0] - second >= MARGIN);
    if at == 0 && scores[0] >= LIKELY && is_alone { Certainty::Likely } else { Certainty::Possible }
}

/// The distinct pairs of neighbouring letters of a name.
fn pairs(name: &str) -> BTreeSet<[char; 2]> {
    let letters: Vec<char> = name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
    letters.windows(2).map(|pair| [pair[0], pair[1]]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::embed::HashedEmbedder;
    use crate::index::Options;

    fn vault(notes: &[(&str, &str)]) -> (tempfile::TempDir, Index) {
        let folder = tempfile::tempdir().unwrap();
        let vault = folder.path().join("vault");
        write(&vault, notes);
        fs::create_dir_all(vault.join(".obsidian")).unwrap();
        let options =
            Options::new().index_file(folder.path().join("index.db")).embedder(Arc::new(HashedEmbedder::new()));
        let index = Index::open(vault, options).unwrap();
        index.sync().unwrap();
        (folder, index)
    }

    fn write(vault: &std::path::Path, notes: &[(&str, &str)]) {
        for (path, text) in notes {
            fs::create_dir_all(vault.join(path).parent().unwrap()).unwrap();
            fs::write(vault.join(path), text).unwrap();
        }
    }

    /// `link -> target#subpath certainty`, for each proposal.
    fn proposals(index: &Index) -> Vec<String> {
        let shown = |proposal: &RepairProposal| {
            let subpath = proposal.subpath.as_ref().map(|subpath| format!("#{subpath}")).unwrap_or_default();
            format!("{}{subpath} {}", proposal.target, format!("{:?}", proposal.certainty).to_lowercase())
        };
        let broken = index.broken_links(None).unwrap().into_iter();
        broken
            .map(|link| {
                let found: Vec<String> = link.proposals.iter().map(shown).collect();
                format!("{} -> {}", link.link.raw, found.join(", "))
            })
            .collect()
    }

    #[test]
    fn a_typo_is_found_beside_many_names_that_differ_in_a_number() {
        let numbered: Vec<String> = (0..MAX_COMPARED + 10).map(|n| format!("{n:02} Meeting.md")).collect();
        let mut notes: Vec<(&str, &str)> = numbered.iter().map(|path| (path.as_str(), "Text.")).collect();
        notes.extend([("Meeting.md", "How we meet."), ("Index.md", "[[Meetng]] [[07 Meetng]]")]);
        let (_folder, index) = vault(&notes);
        let expected = ["[[Meetng]] -> Meeting.md likely", "[[07 Meetng]] -> 07 Meeting.md likely"];
        assert_eq!(proposals(&index), expected);
    }

    #[test]
    fn what_was_renamed_outside_is_certain() {
        let (_folder, index) = vault(&[
            ("Log.md", "[[Compost]] [[Compost#Heat|heap]] [b](Bins.md)"),
            ("Compost.md", "A warm heap of leaves and kitchen scraps, turned twice a month in summer.\n\n## Heat\n"),
            ("Bins.md", "Bins."),
        ]);
        let at = |name: &str| index.vault().join(name);
        fs::create_dir(at("Garden")).unwrap();
        // A copy, which is another file on disk.
        fs::write(at("Garden/Hot heap.md"), fs::read(at("Compost.md")).unwrap()).unwrap();
        fs::remove_file(at("Compost.md")).unwrap();
        fs::rename(at("Bins.md"), at("Boxes.md")).unwrap();
        index.sync().unwrap();
        fs::rename(at("Garden/Hot heap.md"), at("Warm heap.md")).unwrap();
        index.sync().unwrap();
        let expected = [
            "[[Compost]] -> Warm heap.md certain",
            "[[Compost#Heat|heap]] -> Warm heap.md#Heat certain",
            "[b](Bins.md) -> Boxes.md certain",
        ];
        assert_eq!(proposals(&index), expected);
        index.rebuild(&crate::SyncOptions::default()).unwrap();
        assert_eq!(proposals(&index), expected, "a rebuild knows it, too");
    }

    #[test]
    fn what_may_be_another_file_is_not_certain() {
        let (_folder, index) =
            vault(&[("Log.md", "[[One]] [[Two]] [[Gone]]"), ("One.md", "same"), ("Two.md", "same"), ("Gone.md", "x")]);
        let at = |name: &str| index.vault().join(name);
        fs::remove_file(at("One.md")).unwrap();
        fs::remove_file(at("Two.md")).unwrap();
        write(index.vault(), &[("Alpha.md", "same"), ("Beta.md", "same")]);
        fs::rename(at("Gone.md"), at("First.md")).unwrap();
        index.sync().unwrap();
        // Another note takes the name, has the link, and is deleted.
        fs::write(at("Gone.md"), "y").unwrap();
        index.sync().unwrap();
        fs::remove_file(at("Gone.md")).unwrap();
        index.sync().unwrap();
        assert_eq!(proposals(&index), ["[[One]] -> ", "[[Two]] -> ", "[[Gone]] -> "]);
    }

    #[test]
    fn names_and_headings_that_are_alike() {
        let (_folder, index) = vault(&[
            (
                "Log.md",
                "[[Old/Roses]] [[Heap]] [[Comopst]] [[2024-01-05]] ![[plna.png]] [[Roses#Prunning]] [[Roses#^x]] [[Roses#Feeding]]",
            ),
            ("Garden/Roses.md", "## Pruning\n\n## Notes\n"),
            ("Garden/Compost.md", "---\naliases: [Heap]\n---\n## Feeding\n"),
            ("Daily/2024-01-06.md", "x"),
            ("plan.png", ""),
            ("Plan.md", ""),
        ]);
        let expected = [
            "[[Old/Roses]] -> Garden/Roses.md likely",
            "[[Comopst]] -> Garden/Compost.md likely",
            "[[2024-01-05]] -> ",
            "![[plna.png]] -> plan.png likely",
            "[[Roses#Prunning]] -> Garden/Roses.md#Pruning likely",
            "[[Roses#^x]] -> ",
            "[[Roses#Feeding]] -> Garden/Compost.md#Feeding possible",
        ];
        let found = proposals(&index);
        assert_eq!(
            found.iter().filter(|line| !line.starts_with("[[Heap]]")).collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
        assert!(found.contains(&"[[Heap]] -> Garden/Compost.md likely".to_owned()), "{found:?}");
    }

    #[test]
    fn a_path_that_two_files_had_tells_nothing_certain() {
        let long = |text: &str| format!("{text}: {}\n", "more than a few words of text. ".repeat(4));
        let (one, two) = (long("one"), long("two"));
        let (_folder, index) =
            vault(&[("Log.md", "[[A]] [[2026-01-01]] [[B]]"), ("A.md", &one), ("2026-01-01.md", &two), ("B.md", "b")]);
        let at = |name: &str| index.vault().join(name);
        // Another file takes the name, and is renamed, too.
        fs::rename(at("A.md"), at("First.md")).unwrap();
        fs::write(at("A.md"), long("three")).unwrap();
        // The note of another day, from the same template.
        fs::remove_file(at("2026-01-01.md")).unwrap();
        fs::write(at("2026-01-05.md"), &two).unwrap();
        index.sync().unwrap();
        fs::rename(at("A.md"), at("Second.md")).unwrap();
        fs::rename(at("B.md"), at("C.md")).unwrap();
        index.sync().unwrap();
        // A link that is added to the old name later means another file.
        fs::rename(at("First.md"), at("Third.md")).unwrap();
        index.sync().unwrap();
        fs::write(at("Log.md"), "[[A]] [[2026-01-01]] [[B]] [[First]]").unwrap();
        index.sync().unwrap();
        assert_eq!(proposals(&index), ["[[A]] -> ", "[[2026-01-01]] -> ", "[[B]] -> C.md certain", "[[First]] -> "]);
    }

    #[test]
    fn of_several_files_the_one_is_meant_that_the_link_led_to() {
        let notes = [
            ("F1/S.md", "[[A]]"),
            ("F2/S.md", "[[A]]"),
            ("F1/A.md", "one"),
            ("F2/A.md", "two"),
            ("v1.2 notes.md", "[[Release v1.2]] [[v1.2 notes]]"),
            ("Release v1.2.md", "x"),
        ];
        let (_folder, index) = vault(&notes);
        let at = |name: &str| index.vault().join(name);
        fs::rename(at("F1/A.md"), at("F1/X.md")).unwrap();
        fs::rename(at("F2/A.md"), at("F2/Y.md")).unwrap();
        fs::rename(at("Release v1.2.md"), at("Release one.md")).unwrap();
        fs::rename(at("v1.2 notes.md"), at("Notes.md")).unwrap();
        index.sync().unwrap();
        let expected = [
            "[[A]] -> F1/X.md likely",
            "[[A]] -> F2/Y.md likely",
            "[[Release v1.2]] -> Release one.md certain",
            "[[v1.2 notes]] -> Notes.md certain",
        ];
        assert_eq!(proposals(&index), expected);
    }

    /// Of many files that are renamed outside, each with unique content is found as certain, and no other.
    #[test]
    fn certain_repairs_are_right_in_a_large_vault() {
        let mut notes: Vec<(String, String)> = Vec::new();
        for n in 0..120 {
            // Every fourth note is a copy of the one before.
            let of = if n % 4 == 3 { n - 1 } else { n };
            notes.push((
                format!("Folder {}/Note {n}.md", n % 5),
                format!("Text of note {of}: {}\n", "as long as a real one. ".repeat(4)),
            ));
        }
        let links: String = (0..120).map(|n| format!("[[Note {n}]]\n")).collect();
        notes.push(("Index.md".into(), links));
        let notes: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let (_folder, index) = vault(&notes);
        let at = |name: &str| index.vault().join(name);
        for n in (0..120).filter(|n| n % 3 != 0) {
            let (old, new) = (at(&format!("Folder {}/Note {n}.md", n % 5)), at(&format!("Renamed {n}.md")));
            // Written as by another program: a new file with its own inode and time.
            let text = fs::read(&old).unwrap();
            fs::remove_file(old).unwrap();
            fs::write(new, text).unwrap();
        }
        index.sync().unwrap();
        let (mut certain, mut unique) = (0, 0);
        for broken in index.broken_links(None).unwrap() {
            let n: usize = broken.link.path.trim_start_matches("Note ").parse().unwrap();
            unique += usize::from(n % 4 < 2);
            let Some(found) = broken.proposals.first().filter(|found| found.certainty == Certainty::Certain) else {
                continue;
            };
            assert_eq!(found.target.as_str(), format!("Renamed {n}.md"), "{n}");
            certain += 1;
        }
        assert_eq!((certain, unique), (40, 40));
    }
}
