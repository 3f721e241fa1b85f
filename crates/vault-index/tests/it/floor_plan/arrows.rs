//! A room uses only the rooms above it in its crate's list of modules.

use std::collections::HashMap;

use super::source::{Source, declared, word};
use super::{Package, no_faults, packages};

/// The crate's modules, in the order of lib.rs.
fn rooms(lib: &Source) -> Vec<&str> {
    lib.code.lines().filter(|line| !line.starts_with(' ')).filter_map(declared).collect()
}

/// What lib.rs re-exports, and from which room.
fn front_door(lib: &Source) -> HashMap<&str, &str> {
    let mut names = HashMap::new();
    for statement in lib.code.split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else { continue };
        let path = path.trim_start().trim_start_matches("crate::");
        let room = word(path);
        let rest = &path[room.len()..];
        // A re-export is known by the last of its words: `available as models`.
        let items = rest.split([',', '{', '}', ':']).filter_map(|item| item.split_whitespace().last());
        names.extend(items.map(|name| (name, room)));
    }
    names
}

fn room_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    match word(rest) {
        "lib" | "main" | "bin" => None,
        room => Some(room),
    }
}

/// Every arrow of a package that points down, as room, used room and file.
fn wrong_arrows(package: &Package) -> Vec<(String, String, String)> {
    let Some(lib) = package.source("src/lib.rs") else { return Vec::new() };
    let (rooms, front_door) = (rooms(lib), front_door(lib));
    let place = |room: &str| rooms.iter().position(|known| *known == room);
    let mut wrong = Vec::new();
    for source in package.sources.iter().filter(|source| !source.is_test) {
        let Some(room) = room_of(&source.path) else { continue };
        let here = place(room).unwrap_or_else(|| panic!("{} {}: lib.rs has no such room", package.name, source.path));
        for name in source.crate_names() {
            // What is neither a room nor re-exported from one is defined in lib.rs itself.
            let used = front_door.get(name.as_str()).copied().unwrap_or(&name);
            if place(used).is_some_and(|there| there > here) {
                wrong.push((room.to_string(), used.to_string(), source.path.clone()));
            }
        }
    }
    wrong
}

#[test]
fn a_room_uses_only_rooms_above_it() {
    let mut faults = Vec::new();
    for package in packages() {
        for (room, used, path) in wrong_arrows(&package) {
            faults.push(format!("{} {path}: {room} uses {used}, which is below it", package.name));
        }
    }
    no_faults(&faults);
}

/// A room's own file is one level below the root, so `super::` there is a way around the list.
#[test]
fn rooms_name_each_other_from_the_root() {
    let mut faults = Vec::new();
    for package in packages() {
        for source in package.sources.iter().filter(|source| !source.is_test && room_of(&source.path).is_some()) {
            let inside = source.path.matches('/').count() - usize::from(source.path.ends_with("/mod.rs"));
            let chain = "super::".repeat(inside);
            if source.code.contains(&chain) {
                faults.push(format!("{} {}: {chain} is the crate's root; write crate::", package.name, source.path));
            }
        }
    }
    no_faults(&faults);
}

#[test]
fn arrows_are_seen() {
    const LIB: &str = "//! x\npub mod a;\nmod b;\nmod c;\npub use b::{One, sub::two as three};\npub use c::Four;
pub const SIX: u8 = 6;\n";
    let file = |path: &str, text: &str| Source::new(path.into(), text);
    let package = Package {
        name: "p".into(),
        sources: vec![
            file("src/lib.rs", LIB),
            file("src/a.rs", "use crate::b::x;\n"),
            file("src/b/mod.rs", "use crate::{a, b, SIX};\n"),
            file("src/b/deep.rs", "fn f() -> crate::Four {}\n"),
            file("src/c.rs", "use crate::{One, three};\n"),
        ],
    };
    let wrong = wrong_arrows(&package);
    let wrong: Vec<_> = wrong.iter().map(|(from, to, path)| (from.as_str(), to.as_str(), path.as_str())).collect();
    assert_eq!(wrong, [("a", "b", "src/a.rs"), ("b", "c", "src/b/deep.rs")]);
}
