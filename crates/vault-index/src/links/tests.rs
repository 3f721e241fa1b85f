//! Tests the resolver against its rules: the examples of the spec, an oracle that follows the rules literally, and
//! invariants.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::path::{FileId, VaultPath};

/// The rules as they are written, over a plain list of files.
fn oracle(files: &[(FileId, VaultPath)], link_path: &str, source: &VaultPath) -> Resolution {
    use unicode_normalization::UnicodeNormalization;
    // 0
    let path: String = link_path.replace('\u{a0}', " ").trim().nfc().collect();
    // 1
    if path.is_empty() {
        let own = files.iter().find(|(_, path)| path == source);
        return Resolution { target: own.map(|(id, _)| *id), rule: Rule::SelfNote };
    }
    // 2
    let named = |link: &str| -> Vec<&(FileId, VaultPath)> {
        let name = link.rsplit('/').next().unwrap();
        files.iter().filter(|(_, path)| path.file_name().to_lowercase() == name).collect()
    };
    let mut link = path.to_lowercase();
    let has_dot = link.rsplit('/').next().unwrap().contains('.');
    let mut candidates = if has_dot { named(&link) } else { Vec::new() };
    if candidates.is_empty() {
        link = format!("{path}.md").to_lowercase();
        candidates = named(&link);
    }
    if candidates.is_empty() {
        link = format!("{path}.markdown").to_lowercase();
        candidates = named(&link);
    }
    if candidates.is_empty() {
        link = path.to_lowercase();
        candidates = named(&link);
    }
    if candidates.is_empty() {
        return Resolution { target: None, rule: Rule::NoSuchName };
    }
    let lower = |path: &VaultPath| path.as_str().to_lowercase();
    candidates.sort_by_cached_key(|(_, path)| (path.as_str().encode_utf16().count(), lower(path), path.clone()));
    let found = |id, rule| Resolution { target: Some(id), rule };
    // 3
    if candidates.len() == 1 && !link.contains('/') {
        return found(candidates[0].0, Rule::OnlyCandidate);
    }
    // 4
    let folder = source.folder().to_lowercase();
    if link.starts_with("./") || link.starts_with("../") {
        let mut base: Vec<&str> = folder.split('/').filter(|s| !s.is_empty()).collect();
        let mut segments: Vec<&str> = link.split('/').collect();
        while segments.len() > 1 && (segments[0] == "." || segments[0] == "..") {
            if segments.remove(0) == ".." {
                base.pop();
            }
        }
        base.extend(&segments);
        let full = base.join("/");
        if let Some((id, _)) = candidates.iter().find(|(_, path)| lower(path) == full) {
            return found(*id, Rule::RelativePath);
        }
        link = segments.join("/");
    }
    // 5
    let rooted = link.starts_with('/');
    let link = link.strip_prefix('/').unwrap_or(&link);
    if let Some((id, _)) = candidates.iter().find(|(_, path)| lower(path) == link) {
        return found(*id, Rule::ExactPath);
    }
    if rooted {
        return Resolution { target: None, rule: Rule::NoSuchPath };
    }
    // 6
    candidates.retain(|(_, path)| lower(path).ends_with(link));
    let is_under = |path: &VaultPath| folder.is_empty() || lower(path).starts_with(&format!("{folder}/"));
    let (under, rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|(_, path)| is_under(path));
    match (under.first(), rest.first()) {
        (Some((id, _)), _) => found(*id, Rule::UnderSourceFolder),
        (None, Some((id, _))) => found(*id, Rule::Elsewhere),
        (None, None) => Resolution { target: None, rule: Rule::NoSuchPath },
    }
}

/// Few words, so that names collide, including the special cases of case, dots, suffixes and normal forms.
fn word() -> impl Strategy<Value = &'static str> {
    select(vec![
        "x", "X", "b", "ab", "a", "index", "Index", "x.md", "v1.2", "v1", "İ", "i\u{307}", "ß", "ẞ", "SS", "ΟΔΟΣ",
        "οδος", "οδοσ", "Σ", "ς", "é", "e\u{301}", "x y", "𝒳", "a\u{a0}b",
    ])
}

fn ending() -> impl Strategy<Value = &'static str> {
    select(vec![".md", ".md", ".md", ".MD", ".markdown", ".png", ".canvas", ".md.md", ""])
}

fn folder() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => select(vec!["a", "b", "ab", "B", "x", "bab", "İ"]), 1 => word()]
}

/// Every other file shares one name, so that rule 6 and its tables are in use.
fn file() -> impl Strategy<Value = VaultPath> {
    let name = prop_oneof![
        select(vec!["x.md", "X.md", "x.MD"]).prop_map(str::to_owned),
        (word(), ending()).prop_map(|(name, ending)| format!("{name}{ending}")),
    ];
    (vec(folder(), 0..5), name)
        .prop_map(|(folders, name)| VaultPath::new(&format!("{}/{name}", folders.join("/"))).expect("a name"))
}

fn link() -> impl Strategy<Value = String> {
    let front =
        select(vec!["", "", "", "", "/", "./", "../", "./../", "../../", "../../../", "//", ".//", " ", "\u{a0}"]);
    let end = select(vec!["", "", "", ".md", ".MD", ".png", ".canvas", ".md.md", " ", "/", "/..", "/."]);
    let name = prop_oneof![Just("x"), word()];
    prop_oneof![
        9 => (front, vec(folder(), 0..4), name, end)
            .prop_map(|(front, folders, name, end)| format!("{front}{}{end}", [&folders[..], &[name]].concat().join("/"))),
        1 => select(vec!["", " ", "/", ".", "..", "./", "../", ".md", "/.md", "../..", "a//x"]).prop_map(str::to_owned),
    ]
}

/// Files without duplicates, with gaps in their numbers.
fn vault(files: Vec<VaultPath>) -> Vec<(FileId, VaultPath)> {
    let mut seen = HashSet::new();
    let new = files.into_iter().filter(|path| seen.insert(path.clone()));
    new.zip(0..).map(|(path, n)| (FileId(n * 37 % 1009), path)).collect()
}

/// Links that match a vault: ends of its paths, cut anywhere, some in another case or without `.md`.
fn fitting(files: &[(FileId, VaultPath)], cuts: &[(usize, usize, u8)]) -> Vec<String> {
    let cut = |&(file, at, change): &(usize, usize, u8)| {
        let path = files[file % files.len()].1.as_str();
        let at = (0..=at % (path.len() + 1)).rev().find(|at| path.is_char_boundary(*at)).unwrap_or(0);
        let end = &path[at..];
        match change % 4 {
            0 => end.to_owned(),
            1 => end.to_uppercase(),
            2 => end.trim_end_matches(".md").to_owned(),
            _ => format!("../{end}"),
        }
    };
    cuts.iter().map(cut).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_quick_resolver_follows_the_rules(
        files in vec(file(), 1..60),
        links in vec(link(), 1..30),
        cuts in vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..40),
        elsewhere in vec(file(), 1..8),
    ) {
        let files = vault(files);
        let names: Names = files.iter().cloned().collect();
        let resolver = Resolver::new(&names);
        let links: Vec<_> = links.into_iter().chain(fitting(&files, &cuts)).collect();
        for source in files.iter().map(|(_, path)| path).take(5).chain(&elsewhere) {
            for link in &links {
                let expected = oracle(&files, link, source);
                prop_assert_eq!(resolver.resolve(link, source), expected, "{} from {}", link, source);
                prop_assert_eq!(ranked(&names, link, source).first().copied(), expected.target, "{} from {}", link, source);
            }
        }
    }

    #[test]
    fn what_ranks_next_is_next(files in vec(file(), 1..40), cuts in vec((any::<usize>(), any::<usize>(), any::<u8>()), 1..10), from in any::<usize>()) {
        let files = vault(files);
        let source = &files[from % files.len()].1;
        for link in fitting(&files, &cuts) {
            let mut names: Names = files.iter().cloned().collect();
            let ranked = ranked(&names, &link, source);
            for id in &ranked {
                prop_assert_eq!(resolve(&names, &link, source).target, Some(*id), "{} from {}", &link, source);
                names.remove(*id);
            }
        }
    }

    #[test]
    fn only_links_with_a_files_key_change_with_it(
        files in vec(file(), 1..30),
        changed in file(),
        links in vec(link(), 1..20),
        cuts in vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..20),
    ) {
        let files: Vec<_> = vault(files).into_iter().filter(|(_, path)| *path != changed).collect();
        prop_assume!(!files.is_empty());
        let without: Names = files.iter().cloned().collect();
        let all: Vec<_> = files.iter().cloned().chain([(FileId(5000), changed.clone())]).collect();
        let with: Names = all.iter().cloned().collect();
        let keys: HashSet<String> = keys_leading_to(&changed).collect();
        for link in links.into_iter().chain(fitting(&all, &cuts)) {
            for (_, source) in files.iter().take(5) {
                if resolve(&without, &link, source).target != resolve(&with, &link, source).target {
                    prop_assert!(keys.contains(&link_key(&link)), "{} from {}: {:?}", link, source, keys);
                }
            }
        }
    }

    #[test]
    fn a_table_that_was_changed_is_the_table_made_anew(files in vec(file(), 1..40), steps in vec((any::<usize>(), file()), 0..40)) {
        let mut names: Names = vault(files).into_iter().collect();
        for (at, path) in steps {
            let mut ids: Vec<_> = names.iter().map(|(id, _)| id).collect();
            ids.sort();
            match ids.get(at % (ids.len() + 2)) {
                Some(id) if at % 3 == 0 => drop(names.remove(*id)),
                Some(id) => names.insert(*id, &path),
                None => names.insert(FileId(6000 + at as u32 % 1000), &path),
            }
        }
        let files: Vec<_> = names.iter().map(|(id, path)| (id, path.clone())).collect();
        for (id, path) in &files {
            prop_assert_eq!(names.id(path), Some(*id));
            for link in [path.file_name(), path.stem(), path.as_str()] {
                prop_assert_eq!(resolve(&names, link, path), oracle(&files, link, path), "{} from {}", link, path);
            }
        }
    }

    #[test]
    fn unresolved_names_become_notes(files in vec(file(), 0..20), words in vec(word(), 1..3), source in file()) {
        let link = words.join("/");
        let mut names: Names = vault(files).into_iter().collect();
        if resolve(&names, &link, &source).rule == Rule::NoSuchName
            && let Some(path) = VaultPath::new(&format!("{}.md", unresolved_key(&link)))
        {
            names.insert(FileId(5000), &path);
            prop_assert_eq!(resolve(&names, &link, &source).target, Some(FileId(5000)), "{}", link);
        }
    }
}

#[test]
fn a_name_that_thousands_share() {
    let files: Vec<_> = (0..3000)
        .map(|n| {
            let path = format!("{}area{}/dir{n}/index.md", if n % 2 == 0 { "deep/er/" } else { "" }, n % 7);
            (FileId(n), VaultPath::new(&path).unwrap())
        })
        .collect();
    let names: Names = files.iter().cloned().collect();
    let resolver = Resolver::new(&names);
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (files, resolver) = (&files, &resolver);
            scope.spawn(move || {
                for (n, (_, source)) in files.iter().enumerate().skip(part * 13).step_by(97) {
                    for link in ["index", "../index", "area3/index"].map(str::to_owned).into_iter().chain([
                        format!("dir{n}/index"),
                        format!("../dir{}/index", n + 7),
                        format!("r{n}/index"),
                        format!("nowhere{n}/index"),
                    ]) {
                        assert_eq!(
                            resolver.resolve(&link, source),
                            oracle(files, &link, source),
                            "{link} from {source}"
                        );
                    }
                }
            });
        }
    });
}

/// Every example of `testdata/specs/resolve.txt`; its first lines describe the format.
#[test]
fn the_spec() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/specs/resolve.txt");
    let text = std::fs::read_to_string(file).expect("the spec is part of the repository");
    let mut files: Vec<(FileId, VaultPath)> = Vec::new();
    let mut in_links = false;
    let mut rules = HashSet::new();
    let mut examples = 0;
    for (line, number) in text.lines().zip(1..) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let Some(link) = line.strip_prefix('`') else {
            if std::mem::take(&mut in_links) {
                files.clear();
            }
            let path = VaultPath::new(line.trim()).unwrap_or_else(|| panic!("line {number}: not a path"));
            files.push((FileId(number), path));
            continue;
        };
        in_links = true;
        examples += 1;
        let (link, rest) = link.split_once("` from ").unwrap_or_else(|| panic!("line {number}: `LINK` from ..."));
        let (source, rest) = rest.split_once(" -> ").unwrap_or_else(|| panic!("line {number}: -> TARGET"));
        let (target, rule) = rest.trim_end().rsplit_once(" (").unwrap_or_else(|| panic!("line {number}: (rule)"));
        let link = link.replace("{nbsp}", "\u{a0}");
        let source = VaultPath::new(source.trim()).expect("a source");
        let names: Names = files.iter().cloned().collect();
        let found = resolve(&names, &link, &source);
        assert_eq!(found, oracle(&files, &link, &source), "line {number}: {line}");
        let found_path = found.target.map_or("unresolved", |id| names.path(id).expect("a file").as_str());
        assert_eq!(
            (found_path, found.rule.name()),
            (target.trim(), rule.trim_end_matches(')')),
            "line {number}: {line}"
        );
        rules.insert(found.rule);
    }
    assert_eq!(rules.len(), Rule::ALL.len(), "every rule has examples");
    assert!(examples >= 60, "{examples} examples");
}

#[test]
fn rules_have_names_and_say_why() {
    let names: HashSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    let words: HashSet<_> = Rule::ALL.iter().map(ToString::to_string).collect();
    assert_eq!((names.len(), words.len()), (Rule::ALL.len(), Rule::ALL.len()));
}
