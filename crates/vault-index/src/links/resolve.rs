//! Resolves a wikilink: from the path of a link and its note to the file that the link leads to.
//!
//! # The rules
//!
//! They are those of Obsidian, for wikilinks, embeds, Markdown links and images alike. The caller has removed display
//! text and subpath and decoded percent signs; the rest is the *link path*.
//!
//! 0. No-break spaces become spaces, the ends are trimmed, the text is NFC.
//! 1. An empty path is the source note itself: `[[#Heading]]`.
//! 2. Everything is compared in lower case. The last segment is a file name. If it contains a dot, it is looked up
//!    unchanged among all files, including attachments. If that finds nothing, or it has no dot, `.md` is appended to
//!    the link path and it is looked up again. After that, unlike Obsidian, `.markdown` is tried, and last a name
//!    without a dot unchanged, such as `LICENSE`. The files of that name are the *candidates*. Their folders are not
//!    compared at this point, so a candidate in the wrong folder still keeps `.md` from being tried. Without a
//!    candidate, the link is unresolved.
//! 3. A bare name with one candidate leads there.
//! 4. A path that begins with `./` or `../` is followed from the source's folder, never above the vault's root. A
//!    candidate at exactly that path wins. Otherwise the leading dots are dropped and the rest is treated as if written
//!    without them.
//! 5. One leading `/` is dropped. A candidate at exactly the remaining path, from the vault's root, wins: for a bare
//!    name, a note in the root precedes one beside the source. If there was a `/` and no such candidate, the link is
//!    unresolved.
//! 6. The candidates that remain are those whose path ends with the link path, *as text* (`b/x` is the end of
//!    `ab/x.md`). Those in the source's folder or below it precede all others; among equals the shorter path (in UTF-16
//!    units) comes first, then alphabetical order. Without such a candidate, the link is unresolved.
//!
//! Aliases are never link targets.
//!
//! # Costs
//!
//! Rules 1 to 5 are hash look-ups. Rule 6 scans the files of the name. A [`Resolver`] keeps the files of frequent names
//! sorted by preference, so that it stops at the first one below the source's folder.

use std::collections::HashMap;
use std::fmt;

use super::names::{Names, last_segment};
use crate::note::tidy;
use crate::path::{FileId, VaultPath};

/// Up to this number of files of one name are not sorted in advance.
const FEW: usize = 8;

/// The target of a link, and the rule that decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution {
    /// The file; `None` when the link is unresolved.
    pub target: Option<FileId>,
    /// The rule that decided.
    pub rule: Rule,
}

/// The rule that decided the target of a link; `Display` describes it in plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The path is empty: the note itself (without a target if the source is not in the table).
    SelfNote,
    /// The only file with a bare name.
    OnlyCandidate,
    /// `./` or `../`, followed from the source's folder.
    RelativePath,
    /// The link path is the file's path from the vault's root.
    ExactPath,
    /// The path ends with the link path: the best file in or below the source's folder.
    UnderSourceFolder,
    /// The path ends with the link path, and no such file is below the source's folder: the best of the rest.
    Elsewhere,
    /// Unresolved: no file has this name.
    NoSuchName,
    /// Unresolved: files have this name, but not the path in the link.
    NoSuchPath,
    /// An address outside the vault, which is not looked up by name.
    External,
}

impl Rule {
    /// All rules that look up a name.
    pub const ALL: [Self; 8] = [
        Self::SelfNote,
        Self::OnlyCandidate,
        Self::RelativePath,
        Self::ExactPath,
        Self::UnderSourceFolder,
        Self::Elsewhere,
        Self::NoSuchName,
        Self::NoSuchPath,
    ];

    /// A short name for programs, such as `exact-path`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SelfNote => "self-note",
            Self::OnlyCandidate => "only-candidate",
            Self::RelativePath => "relative-path",
            Self::ExactPath => "exact-path",
            Self::UnderSourceFolder => "under-source-folder",
            Self::Elsewhere => "elsewhere",
            Self::NoSuchName => "no-such-name",
            Self::NoSuchPath => "no-such-path",
            Self::External => "external",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SelfNote => "the link names no file, so it leads to its own note",
            Self::OnlyCandidate => "it is the only file of this name",
            Self::RelativePath => "it is at the path that the `./` or `../` of the link gives from the source's folder",
            Self::ExactPath => "the link is its path from the vault's root",
            Self::UnderSourceFolder => {
                "among the files whose path ends with the link, it has the shortest path in the source's folder or below it"
            }
            Self::Elsewhere => {
                "among the files whose path ends with the link, none is in the source's folder or below it, and this one has the shortest path"
            }
            Self::NoSuchName => "no file has this name",
            Self::NoSuchPath => "files have this name, but none is at the path of the link",
            Self::External => "the link leads out of the vault",
        })
    }
}

/// Resolves one link. For more than a few, create a [`Resolver`] and keep it.
///
/// Costs a few hash look-ups. A path with an ambiguous name costs time linear in the number of files of that name.
///
/// ```
/// use vault_index::links::{Names, resolve};
/// use vault_index::{FileId, VaultPath};
///
/// let path = |text| VaultPath::new(text).expect("a path");
/// let mut names = Names::new();
/// names.insert(FileId(1), &path("Garden/Roses.md"));
/// names.insert(FileId(2), &path("Archive/Roses.md"));
///
/// let resolution = resolve(&names, "roses", &path("Archive/Log.md"));
/// assert_eq!(resolution.target, Some(FileId(2)), "{}", resolution.rule);
/// ```
pub fn resolve(names: &Names, link_path: &str, source: &VaultPath) -> Resolution {
    Resolver { names, sorted: HashMap::new() }.resolve(link_path, source)
}

/// The files that a link could mean, best first: if the first did not exist, the link would lead to the second.
///
/// Empty if the link is unresolved; the first is the [`resolve`]d target. O(n log n) in the number of files of the
/// name.
pub fn ranked(names: &Names, link_path: &str, source: &VaultPath) -> Vec<FileId> {
    let path = tidy(link_path);
    if path.is_empty() {
        return names.id(source).into_iter().collect();
    }
    let Some(wanted) = NameCandidates::new(names, &path) else { return Vec::new() };
    let folder = source.folder().to_lowercase();
    let search = wanted.search_from(&folder);
    let class = |id: FileId| {
        let lower = names.lower(id);
        if search.relative.as_deref() == Some(lower) {
            Some(0)
        } else if lower == search.path {
            Some(1)
        } else if search.rooted || !lower.ends_with(search.path) {
            None
        } else {
            Some(if is_under(lower, &folder) { 2 } else { 3 })
        }
    };
    let mut found: Vec<_> = wanted.candidates.iter().filter_map(|id| Some((class(*id)?, *id))).collect();
    found.sort_unstable_by_key(|(class, id)| (*class, names.preference(*id)));
    found.into_iter().map(|(_, id)| id).collect()
}

/// Resolves links in one state of the name table. Creating it is linear in the number of files; several threads may use
/// it.
#[derive(Debug)]
pub struct Resolver<'n> {
    names: &'n Names,
    /// Lower-cased file name -> its files with their lower-cased paths, best first; for names with more than a few
    /// files.
    sorted: HashMap<&'n str, Vec<(&'n str, FileId)>>,
}

impl<'n> Resolver<'n> {
    /// Sorts the files of names with many files.
    pub fn new(names: &'n Names) -> Self {
        let sort = |(name, files): (&'n str, &[FileId])| {
            let mut files = files.to_vec();
            files.sort_by_cached_key(|id| names.preference(*id));
            (name, files.into_iter().map(|id| (names.lower(id), id)).collect())
        };
        let sorted = names.by_name().filter(|(_, files)| files.len() > FEW).map(sort).collect();
        Self { names, sorted }
    }

    /// The target of a link from `source`, and the rule that decided it.
    ///
    /// `link_path` is the link without display text and subpath, decoded.
    pub fn resolve(&self, link_path: &str, source: &VaultPath) -> Resolution {
        let path = tidy(link_path);
        if path.is_empty() {
            return Resolution { target: self.names.id(source), rule: Rule::SelfNote };
        }
        let Some(wanted) = NameCandidates::new(self.names, &path) else {
            return Resolution { target: None, rule: Rule::NoSuchName };
        };
        if let ([only], false) = (wanted.candidates, wanted.lower.contains('/')) {
            return Resolution { target: Some(*only), rule: Rule::OnlyCandidate };
        }
        let folder = source.folder().to_lowercase();
        let search = wanted.search_from(&folder);
        if let Some(id) = search.relative.as_deref().and_then(|path| self.first_at(path)) {
            return Resolution { target: Some(id), rule: Rule::RelativePath };
        }
        if let Some(id) = self.first_at(search.path) {
            return Resolution { target: Some(id), rule: Rule::ExactPath };
        }
        let best = if search.rooted { None } else { self.best_ending_with(search.path, wanted.candidates, &folder) };
        match best {
            None => Resolution { target: None, rule: Rule::NoSuchPath },
            Some(id) if is_under(self.names.lower(id), &folder) => {
                Resolution { target: Some(id), rule: Rule::UnderSourceFolder }
            }
            Some(id) => Resolution { target: Some(id), rule: Rule::Elsewhere },
        }
    }

    /// The preferred file at a lower-cased path. It is a candidate whenever the path ends with the segment that was
    /// looked up.
    fn first_at(&self, lower_path: &str) -> Option<FileId> {
        self.names.at(lower_path).iter().copied().min_by_key(|id| self.names.preference(*id))
    }

    /// Applies rule 6.
    fn best_ending_with(&self, path: &str, candidates: &[FileId], folder: &str) -> Option<FileId> {
        let names = self.names;
        if let Some(sorted) = self.sorted.get(last_segment(names.lower(candidates[0]))) {
            let mut ending = sorted.iter().filter(|(lower, _)| lower.ends_with(path)).peekable();
            let (_, best) = **ending.peek()?;
            return Some(ending.find(|(lower, _)| is_under(lower, folder)).map_or(best, |(_, id)| *id));
        }
        let ending = candidates.iter().copied().filter(|id| names.lower(*id).ends_with(path));
        ending.min_by_key(|id| (!is_under(names.lower(*id), folder), names.preference(*id)))
    }
}

/// The result of rule 2 for a link path.
struct NameCandidates<'n> {
    /// The link path in lower case, with the extension that it was looked up with.
    lower: String,
    /// The files of that name; at least one.
    candidates: &'n [FileId],
}

/// The paths at which rules 4 to 6 look for the candidates.
struct PathSearch<'w> {
    /// The path that `./` and `../` lead to.
    relative: Option<String>,
    /// The link path without leading dots and slash.
    path: &'w str,
    /// Whether there was a slash.
    rooted: bool,
}

impl<'n> NameCandidates<'n> {
    /// `None` if no file has this name.
    fn new(names: &'n Names, path: &str) -> Option<Self> {
        let look_up = |lower: String| {
            let candidates = names.named(last_segment(&lower));
            (!candidates.is_empty()).then_some(Self { lower, candidates })
        };
        let literal = || look_up(path.to_lowercase());
        let has_dot = last_segment(path).contains('.');
        // The extension is added before lower-casing, because a sigma at the end of a word is another letter.
        let with = |ending: &str| look_up(format!("{path}{ending}").to_lowercase());
        let first = if has_dot { literal() } else { None };
        first.or_else(|| with(".md")).or_else(|| with(".markdown")).or_else(literal)
    }

    fn search_from(&self, folder: &str) -> PathSearch<'_> {
        let (mut base, mut rest) = (folder, self.lower.as_str());
        loop {
            if let Some(after) = rest.strip_prefix("./") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix("../") {
                rest = after;
                base = parent(base);
            } else {
                break;
            }
        }
        let has_dots = rest.len() < self.lower.len();
        let relative = has_dots.then(|| if base.is_empty() { rest.to_owned() } else { format!("{base}/{rest}") });
        match rest.strip_prefix('/') {
            Some(path) => PathSearch { relative, path, rooted: true },
            None => PathSearch { relative, path: rest, rooted: false },
        }
    }
}

/// The folder of a path; empty for the root and for files in it.
fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

/// Whether a path is in a folder or below it. All paths are below the root.
fn is_under(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}
