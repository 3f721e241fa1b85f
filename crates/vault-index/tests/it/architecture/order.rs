//! The order of modules, in `lib.rs` and in every folder, and that no files use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Crate, NamedKind, Use, example};
use super::{crates, no_problems};

/// What breaks the order of modules: a file, what it uses, and why it may not.
fn disorder(crate_: &Crate) -> Vec<String> {
    let mut problems = BTreeSet::new();
    for (path, module) in &crate_.modules {
        for (target, _) in crate_.uses(path) {
            let shared = path.iter().zip(&target).take_while(|(here, there)| here == there).count();
            let (Some(here), Some(there)) = (path.get(shared), target.get(shared)) else { continue };
            let siblings = &crate_.modules[&path[..shared]].children;
            let position = |name: &String| siblings.iter().position(|sibling| sibling == name);
            if position(here) < position(there) {
                let parent = &crate_.modules[&path[..shared]].file;
                let used = &crate_.modules[&target].file;
                problems.insert(format!("{} uses {used}, but {parent} lists {there} below {here}", module.file));
            }
        }
    }
    problems.into_iter().collect()
}

/// The circles of files: each as the shortest way from its first file back to it.
fn cycles(crate_: &Crate) -> Vec<String> {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, module) in &crate_.modules {
        let is_edge = |(target, named): &Use| match named {
            NamedKind::Module => false,
            // The types that children share are defined in the file of their parent.
            NamedKind::Item => !path.starts_with(target),
            NamedKind::Function => true,
        };
        let items = crate_.uses(path).into_iter().filter(is_edge);
        edges.insert(&module.file, items.map(|(target, _)| crate_.modules[&target].file.as_str()).collect());
    }
    let mut cycles = Vec::new();
    let mut reported = BTreeSet::new();
    for start in edges.keys().copied() {
        if reported.contains(start) {
            continue;
        }
        if let Some(way) = way_back(start, &edges) {
            reported.extend(way.iter().copied());
            cycles.push(format!("cycle: {} -> {start}", way.join(" -> ")));
        }
    }
    cycles
}

/// Breadth first from a file back to itself.
fn way_back<'a>(start: &'a str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut ways = vec![vec![start]];
    let mut visited = BTreeSet::new();
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        for target in &edges[way[way.len() - 1]] {
            if *target == start {
                return Some(way);
            }
            if visited.insert(*target) {
                ways.push(way.iter().copied().chain([*target]).collect());
            }
        }
    }
    None
}

#[test]
fn a_file_uses_only_what_stands_above_it() {
    let mut problems = Vec::new();
    for (name, crate_) in crates() {
        let found = [disorder(&crate_), cycles(&crate_)].concat();
        problems.extend(found.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    no_problems(&problems);
}

#[test]
fn disorder_and_cycles_are_found() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use b::B;"),
        ("a.rs", "use crate::B;"),
        ("b/mod.rs", "mod one; mod two; mod three; pub use three::three; pub struct B; fn f() { one::one() }"),
        ("b/one.rs", "use super::{B, f}; use super::two::two; pub fn one() {}"),
        ("b/two.rs", "use super::one; pub fn two() { one::one() }"),
        ("b/three.rs", "pub fn three() -> super::B {}"),
    ];
    assert_eq!(
        disorder(&example(&files)),
        ["a.rs uses b/mod.rs, but lib.rs lists b below a", "b/one.rs uses b/two.rs, but b/mod.rs lists two below one"]
    );
    assert_eq!(
        cycles(&example(&files)),
        ["cycle: b/mod.rs -> b/one.rs -> b/mod.rs", "cycle: b/two.rs -> b/one.rs -> b/two.rs"]
    );
}
