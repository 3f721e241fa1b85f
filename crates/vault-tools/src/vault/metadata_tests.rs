//! What a rename or deletion has to keep, or tell, beside the links that it finds.

use super::tests::{Fixture, path, write};
use super::*;
use crate::error::ErrorKind;
use crate::*;

/// What a folder would carry along was looked at: for links, and by whoever approved it.
#[test]
fn a_folder_that_got_another_file_is_a_conflict() {
    let fixture = Fixture::new("//- f/a.md\none\n//- g/b.md\n[[a]]\n");
    for deletion in [None, Some(DeleteMode::Trash), Some(DeleteMode::Permanent)] {
        let mut overlay = fixture.vault.overlay();
        match deletion {
            None => drop(overlay.rename(&path("f"), &path("h")).unwrap()),
            Some(deletion) => drop(overlay.delete(&path("f"), deletion).unwrap()),
        }
        write(fixture.root(), "f/new.md", "");
        let error = fixture.vault.apply(&overlay.change(), ApplyOptions::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("f/new.md"), "{error}");
        std::fs::remove_file(fixture.root().join("f/new.md")).unwrap();
    }
    write(fixture.root(), "g/c.md", "nothing of it");
    fixture.rename("f", "h");
    // What the links of a moved note would find where it goes.
    let mut overlay = fixture.vault.overlay();
    overlay.rename(&path("g/b.md"), &path("k/b.md")).unwrap();
    write(fixture.root(), "k/a.md", "");
    let error = fixture.vault.apply(&overlay.change(), ApplyOptions::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("k/a.md"), "{error}");
}

#[test]
fn what_takes_the_place_of_another_gets_its_links() {
    let fixture = Fixture::new("//- a.md\none\n//- b.md\ntwo\n//- s.md\n[[a]] [[b]]\n");
    let before = fixture.snapshot();
    let mut overlay = fixture.vault.overlay();
    overlay.rename_over(&path("a.md"), &path("b.md")).unwrap();
    let change = overlay.change();
    let notices = change.preview().notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with("s.md:1: the link [[b]] led to the replaced file"), "{notices:?}");
    assert!(change.deletes());
    fixture.vault.apply(&change, ApplyOptions::default()).unwrap();
    assert_eq!((fixture.read("b.md").as_str(), fixture.read("s.md").as_str()), ("one\n", "[[b]] [[b]]\n"));
    assert_eq!(fixture.read(".trash/b.md"), "two\n");
    fixture.vault.undo(None, Force::No).unwrap();
    let left = fixture.snapshot().into_iter().filter(|(name, _)| !name.starts_with(".trash")).collect();
    assert_eq!(before, left);
    let inside = fixture.vault.overlay().rename_over(&path("a.md"), &path("a.md/x.md"));
    assert!(inside.is_err());
}

/// One note that cannot be read keeps nobody from renaming another, but somebody says so.
#[test]
fn notes_whose_links_could_not_be_kept_are_told() {
    let fixture = Fixture::new("//- a.md\n\n//- s.md\n[[a]]\n");
    std::fs::write(fixture.root().join("latin.md"), b"caf\xe9 [[a]]").unwrap();
    std::fs::write(fixture.root().join("other.md"), b"caf\xe9 [[q]]").unwrap();
    std::fs::File::create(fixture.root().join("huge.md")).unwrap().set_len(100_000_001).unwrap();
    let long = format!("{}\n\n[[a]]\n", "x".repeat(11_000_000));
    write(fixture.root(), "long.md", &long);
    let mut overlay = fixture.vault.overlay();
    let renamed = overlay.rename(&path("a.md"), &path("b.md")).unwrap();
    let links: Vec<&str> = renamed.rewritten.iter().map(|link| link.path.as_str()).collect();
    assert_eq!(links, ["long.md", "s.md"], "what is too large for the index is kept");
    let notices = overlay.change().preview().notices;
    let told: Vec<&str> = notices.iter().filter_map(|notice| notice.split_once(": links in it")).map(|n| n.0).collect();
    assert_eq!(told, ["huge.md", "latin.md"], "{notices:?}");
}
