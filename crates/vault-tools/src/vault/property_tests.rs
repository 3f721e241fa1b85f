//! Laws of changes, on random vaults: undo and redo are exact, links lead where they led, the overlay does not lie.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{Index as Pick, select};
use vault_index::links::{Names, resolve};
use vault_index::note::{ParseOptions, parse};
use vault_index::{FileId, VaultPath};

use super::tests::{Fixture, path};
use super::*;
use crate::sandbox::{EntryKind, View};
use crate::*;

/// A file of a random vault: where, and links as (style, which file, case).
type File = (String, Vec<(u8, Pick, bool)>);

fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "A b", "c.d", "é", "it's", "(x)", "100%"])
}

fn place() -> impl Strategy<Value = String> {
    let folder = select(vec!["", "", "f/", "g/", "f/g/", "g h/", "ab/"]);
    let ending = select(vec![".md", ".md", ".md", ".md", ".png", ".canvas"]);
    (folder, name(), ending).prop_map(|(folder, name, ending)| format!("{folder}{name}{ending}"))
}

fn files() -> impl Strategy<Value = Vec<File>> {
    let links = prop::collection::vec((any::<u8>(), any::<Pick>(), any::<bool>()), 0..5);
    prop::collection::vec((place(), links), 2..9)
}

/// A link to a file, in one of many styles.
fn link(style: u8, target: &VaultPath, source: &str, upper: bool) -> String {
    let depth = source.matches('/').count();
    let bare = target.file_name().strip_suffix(".md").unwrap_or(target.file_name());
    let full = target.as_str().strip_suffix(".md").unwrap_or(target.as_str());
    let up = "../".repeat(depth);
    let encoded = |text: &str| text.replace('%', "%25").replace(' ', "%20").replace('(', "%28").replace(')', "%29");
    let text = match style % 14 {
        0 => format!("[[{bare}]]"),
        1 => format!("[[{full}|shown]]"),
        2 => format!("![[{}]]", target.file_name()),
        3 => format!("[[/{full}#head]]"),
        4 => format!("[[{up}{full}]]"),
        5 => format!("[t]({})", encoded(target.as_str())),
        6 => format!("[t](<{}> \"x\")", target.as_str().replace('%', "%25")),
        7 => format!("![t]({}{})", up, encoded(target.as_str())),
        8 => format!("[t]({}#h)", encoded(bare)),
        9 => format!("[t][r{0}]\n\n[r{0}]: {1}\n", style % 3, encoded(full)),
        10 => format!("`[[{bare}]]` [[nowhere]]"),
        11 => format!("[[./{bare}]]"),
        12 => format!("[[{}#^id|x]]", target.as_str()),
        _ => format!("| t |\n|---|\n| [[{full}\\|x]] |\n"),
    };
    if upper && style % 14 < 3 { text.to_uppercase() } else { text }
}

/// A vault of Obsidian, or a plain folder.
fn fixture(files: &[File], is_obsidian: bool) -> Fixture {
    let mut paths: BTreeMap<String, VaultPath> = BTreeMap::new();
    for (name, _) in files {
        paths.entry(name.to_lowercase()).or_insert_with(|| VaultPath::new(name).unwrap());
    }
    let paths: Vec<VaultPath> = paths.into_values().collect();
    let mut text = if is_obsidian { "//- .obsidian/app.json\n{}\n".to_owned() } else { String::new() };
    for (name, links) in files {
        if !paths.iter().any(|path| path.as_str() == name) {
            continue;
        }
        let body: Vec<String> = links
            .iter()
            .map(|(style, target, upper)| link(*style, &paths[target.index(paths.len())], name, *upper))
            .collect();
        text.push_str(&match name.rsplit('.').next() {
            Some("png") => format!("//- {name}\npixels"),
            Some("canvas") => {
                let node = serde_json::json!({"type": "text", "text": body.join("\n")});
                let file = serde_json::json!({"type": "file", "file": paths[0].as_str()});
                format!("//- {name}\n{{\"nodes\": [{node}, {file}]}}")
            }
            _ => {
                let head = links.first().map_or(String::new(), |(_, target, _)| {
                    let target = &paths[target.index(paths.len())];
                    format!("---\nup: \"[[{target}]]\"\n---\n")
                });
                format!("//- {name}\n{head}{}\n", body.join("\n\n"))
            }
        });
    }
    Fixture::new(&text)
}

/// Where each link of each note leads, in order.
fn targets(view: &dyn View, is_obsidian: bool) -> BTreeMap<String, Vec<Option<String>>> {
    let options = ParseOptions { relative_destinations: !is_obsidian, ..ParseOptions::default() };
    let files: Vec<SafePath> = view
        .walk(None)
        .unwrap()
        .into_iter()
        .filter(|entry| entry.stat.kind == EntryKind::File)
        .map(|entry| entry.path)
        .collect();
    let ids = files.iter().zip(0..);
    let names: Names = ids.map(|(path, id)| (FileId(id), path.vault_path().clone())).collect();
    let notes = files.iter().filter(|path| path.is_note());
    notes
        .map(|path| {
            let content = view.read(path).unwrap();
            let note = parse(path.vault_path(), content.bytes(), &options);
            let lead = |path_of_link: &str| {
                let id = resolve(&names, path_of_link, path.vault_path()).target?;
                Some(names.path(id)?.to_string())
            };
            (path.to_string(), note.links.iter().map(|link| lead(&link.path)).collect())
        })
        .collect()
}

/// Where each Markdown link of each note leads for a program that only follows paths from the note's folder, in order.
fn followed(view: &dyn View) -> BTreeMap<String, Vec<Option<String>>> {
    let entries = view.walk(None).unwrap().into_iter();
    let files: Vec<String> = entries.map(|entry| entry.path.to_string()).collect();
    let follow = |note: &str, destination: &str| {
        let mut place: Vec<&str> = note.split('/').collect();
        place.pop();
        for name in destination.split('/') {
            match name {
                "." => {}
                ".." => _ = place.pop()?,
                name => place.push(name),
            }
        }
        files.contains(&place.join("/")).then(|| place.join("/"))
    };
    let notes = files.iter().filter(|file| file.ends_with(".md"));
    notes
        .map(|file| {
            let content = view.read(&path(file)).unwrap();
            let note = parse(path(file).vault_path(), content.bytes(), &ParseOptions::default());
            let links = note.links.iter().filter(|link| link.has_destination());
            (file.clone(), links.map(|link| follow(file, &link.path)).collect())
        })
        .collect()
}

/// Where the links in the texts of notes lead, and from where, in no order. Both ways, one note can stand for another.
fn links_as_one(view: &dyn View, is_obsidian: bool, (from, to): (&SafePath, &SafePath)) -> Vec<(String, String)> {
    let options = ParseOptions { relative_destinations: !is_obsidian, ..ParseOptions::default() };
    let entries = view.walk(None).unwrap().into_iter();
    let files: Vec<SafePath> =
        entries.filter(|entry| entry.stat.kind == EntryKind::File).map(|entry| entry.path).collect();
    let ids = files.iter().zip(0..);
    let names: Names = ids.map(|(path, id)| (FileId(id), path.vault_path().clone())).collect();
    let stands_for = |path: &str| if path == from.as_str() { to.to_string() } else { path.to_owned() };
    let mut links = Vec::new();
    for path in files.iter().filter(|path| path.is_note()) {
        let content = view.read(path).unwrap();
        let note = parse(path.vault_path(), content.bytes(), &options);
        for link in note.links.iter().filter(|link| note.body.start <= link.span.start) {
            let target = resolve(&names, &link.path, path.vault_path()).target;
            let target = target.and_then(|id| names.path(id)).map_or("", VaultPath::as_str);
            links.push((stands_for(path.as_str()), stands_for(target)));
        }
    }
    links.sort();
    links
}

/// Follows files to where they moved. A link that led nowhere may lead anywhere.
fn moved(
    targets: BTreeMap<String, Vec<Option<String>>>,
    now: &BTreeMap<String, Vec<Option<String>>>,
    (from, to): (&SafePath, &SafePath),
) -> BTreeMap<String, Vec<Option<String>>> {
    let follow = |name: &str| path(name).moved(from, to).map_or_else(|| name.to_owned(), |path| path.to_string());
    targets
        .into_iter()
        .map(|(source, links)| {
            let source = follow(&source);
            let there = now.get(&source).cloned().unwrap_or_default();
            let links = links.into_iter().enumerate().map(|(at, target)| match target {
                Some(target) => Some(follow(&target)),
                None => there.get(at).cloned().flatten(),
            });
            let links = links.collect();
            (source, links)
        })
        .collect()
}

/// All that a view shows.
fn shown(view: &dyn View) -> BTreeMap<String, Option<Vec<u8>>> {
    let entries = view.walk(None).unwrap();
    let content = |path: &SafePath, kind| match kind {
        EntryKind::File => Some(view.read(path).unwrap().bytes().to_vec()),
        EntryKind::Folder => None,
    };
    entries.iter().map(|entry| (entry.path.to_string(), content(&entry.path, entry.stat.kind))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_link_leads_where_it_led(
        files in files(), obsidian in any::<bool>(), which in any::<Pick>(), folder in any::<bool>(), to in place(),
    ) {
        let fixture = fixture(&files, obsidian);
        let entries = fixture.vault.sandbox().walk(None).unwrap();
        let wanted: Vec<&SafePath> = entries
            .iter()
            .filter(|entry| (entry.stat.kind == EntryKind::Folder) == folder)
            .map(|entry| &entry.path)
            .collect();
        prop_assume!(!wanted.is_empty());
        let from = wanted[which.index(wanted.len())].clone();
        let to = if folder { path(&to.replace('.', "_")) } else { path(&to) };
        // A note that is no longer one has no links.
        prop_assume!(from != to && (folder || from.extension() == to.extension()));
        let before = targets(fixture.vault.sandbox(), obsidian);
        let before_followed = followed(fixture.vault.sandbox());
        let snapshot = fixture.snapshot();
        let mut overlay = fixture.vault.overlay();
        if overlay.rename(&from, &to).is_ok() {
            let as_shown = shown(&overlay);
            fixture.vault.apply(&overlay.change(), ApplyOptions::default()).unwrap();
            prop_assert_eq!(shown(fixture.vault.sandbox()), as_shown);
            let after = targets(fixture.vault.sandbox(), obsidian);
            prop_assert_eq!(&moved(before, &after, (&from, &to)), &after, "{} -> {}", from, to);
            if !obsidian {
                let after = followed(fixture.vault.sandbox());
                prop_assert_eq!(&moved(before_followed, &after, (&from, &to)), &after, "{} -> {}", from, to);
            }
            fixture.vault.undo(None, Force::No).unwrap();
        } else {
            prop_assert!(!overlay.is_changed());
        }
        prop_assert_eq!(fixture.snapshot(), snapshot);
    }

    #[test]
    fn what_is_done_can_be_undone_and_redone(
        files in files(),
        steps in prop::collection::vec((0u8..7, any::<Pick>(), place(), any::<bool>()), 1..10),
    ) {
        let fixture = fixture(&files, true);
        let before = fixture.snapshot();
        let mut overlay = fixture.vault.overlay();
        for (step, which, to, flag) in &steps {
            let entries = overlay.walk(None).unwrap();
            if entries.is_empty() {
                break;
            }
            let some = entries[which.index(entries.len())].path.clone();
            let to = path(to);
            // What cannot be done is refused, and changes nothing.
            let (shown_before, actions) = (shown(&overlay), overlay.change());
            let deletion = if *flag { DeleteMode::Trash } else { DeleteMode::Permanent };
            let done = match step {
                0 => overlay.create(&to, "[[a]] [[f/b]]").is_ok(),
                1 => overlay.write(&some, "[[A b]] new").is_ok(),
                2 | 3 => overlay.rename(&some, &to).is_ok(),
                4 => overlay.delete(&some, deletion).is_ok(),
                5 => overlay.make_folder(&path(&to.as_str().replace('.', "_"))).is_ok(),
                _ => {
                    let mark = overlay.mark();
                    let _ = overlay.rename(&some, &to);
                    let _ = overlay.write(&to, "x");
                    overlay.rollback(mark);
                    false
                }
            };
            if !done {
                prop_assert_eq!(shown(&overlay), shown_before);
                prop_assert_eq!(overlay.change().actions().to_vec(), actions.actions().to_vec());
            }
        }
        let as_shown = shown(&overlay);
        let change = overlay.change();
        let _ = change.preview().to_string();
        fixture.vault.apply(&change, ApplyOptions::default()).unwrap();
        prop_assert_eq!(shown(fixture.vault.sandbox()), as_shown);
        let after = fixture.snapshot();
        if !change.is_empty() {
            fixture.vault.undo(None, Force::No).unwrap();
            prop_assert_eq!(fixture.snapshot(), before);
            fixture.vault.redo(Force::No).unwrap();
            prop_assert_eq!(fixture.snapshot(), after);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn links_are_kept_when_text_goes_to_another_note(
        files in files(), obsidian in any::<bool>(), from in any::<Pick>(), to in any::<Pick>(), merges in any::<bool>(),
        deletes in any::<bool>(),
    ) {
        let fixture = fixture(&files, obsidian);
        let entries = fixture.vault.sandbox().walk(None).unwrap();
        let notes: Vec<&SafePath> =
            entries.iter().map(|entry| &entry.path).filter(|path| path.is_markdown()).collect();
        prop_assume!(notes.len() > 1);
        let from = notes[from.index(notes.len())].clone();
        let others: Vec<&&SafePath> = notes.iter().filter(|note| **note != &from).collect();
        let to = (*others[to.index(others.len())]).clone();
        let before = links_as_one(fixture.vault.sandbox(), obsidian, (&from, &to));
        let mut overlay = fixture.vault.overlay();
        let join = |part: &str, text: &str| {
            let merged = edit::merge(text, part, None)?;
            Ok(overlay::JoinedText { text: merged.text, added: merged.added })
        };
        let done = if merges {
            let mode = if deletes { DeleteMode::Permanent } else { DeleteMode::Trash };
            overlay.merge(&from, &to, mode, &join).is_ok()
        } else {
            let text = overlay.text(&from).unwrap();
            let taken = edit::take_lines(&text, &(0..text.len()), &(0..0), &|line| line.contains("[[")).unwrap();
            // A link by a label has its definition elsewhere; that is said.
            prop_assume!(!taken.loses_labels);
            overlay.move_text((&from, &taken.left), &to, (&taken.taken, taken.blocks), &join).is_ok()
        };
        match done {
            true => prop_assert_eq!(links_as_one(&overlay, obsidian, (&from, &to)), before),
            false => prop_assert!(!overlay.is_changed()),
        }
    }
}
