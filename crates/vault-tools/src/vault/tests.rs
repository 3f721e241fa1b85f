//! Changes by example: what is proposed, shown, done and taken back.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::error::{Error, ErrorKind};
use crate::journal::{PruneOptions, TransactionId, TransactionKind};
use crate::sandbox::{SafePath, View};
use crate::*;

/// A vault on the disk, its state folder beside it.
pub(crate) struct Fixture {
    pub folder: tempfile::TempDir,
    pub vault: Vault,
}

pub(crate) fn path(text: &str) -> SafePath {
    SafePath::new(text).unwrap()
}

/// All files below a folder with their bytes, and all folders.
pub(super) fn snapshot(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    fn add(root: &Path, folder: &Path, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.insert(name, Some(target.as_os_str().as_encoded_bytes().to_vec()));
            } else if path.is_dir() {
                found.insert(name, None);
                add(root, &path, found);
            } else {
                found.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    add(folder, folder, &mut found);
    found
}

impl Fixture {
    /// From a text in which a line `//- PATH` begins a file.
    pub fn new(files: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("vault")).unwrap();
        for file in files.split("//- ").skip(1) {
            let (name, text) = file.split_once('\n').unwrap();
            write(&folder.path().join("vault"), name.trim(), text);
        }
        let vault = open(folder.path());
        Self { folder, vault }
    }

    pub fn root(&self) -> &Path {
        self.vault.path()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn snapshot(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        snapshot(self.root())
    }

    /// Applies what `propose` does to an overlay.
    pub fn change<T>(
        &self,
        propose: impl FnOnce(&mut Overlay<'_>) -> Result<T, Error>,
    ) -> Result<(T, Transaction), Error> {
        let mut overlay = self.vault.overlay();
        let done = propose(&mut overlay)?;
        let run = self.vault.apply(&overlay.change(), ApplyOptions::new().label("test"))?;
        Ok((done, run))
    }

    /// Renames, checks that an undo brings all back, and renames again.
    pub fn rename(&self, from: &str, to: &str) -> RenameReport {
        let before = self.snapshot();
        let (renamed, _) = self.change(|overlay| overlay.rename(&path(from), &path(to))).unwrap();
        let after = self.snapshot();
        self.vault.undo(None, Force::No).unwrap();
        assert_eq!(self.snapshot(), before, "undo");
        self.vault.redo(Force::No).unwrap();
        assert_eq!(self.snapshot(), after, "redo");
        renamed
    }
}

pub(super) fn open(folder: &Path) -> Vault {
    // A child that another test is about to start holds whatever locks were held here, until it has started.
    open_waiting(folder, Duration::from_secs(60))
}

fn open_waiting(folder: &Path, wait: Duration) -> Vault {
    let options = VaultOptions {
        state_folder: Some(folder.join("state")),
        use_index: IndexUse::Scan,
        wait,
        ..VaultOptions::default()
    };
    Vault::open(folder.join("vault"), options).unwrap()
}

pub(super) fn write(vault: &Path, name: &str, text: &str) {
    let file = vault.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// One note `s.md` or `d/s.md` with one link in a vault of Obsidian; what a rename makes of it.
fn check(files: &str, ends: (&str, &str), source: &str, before: &str, after: &str) {
    check_in("//- .obsidian/app.json\n{}\n", files, ends, source, before, after);
}

/// The same in a folder that is none.
fn check_plain(files: &str, ends: (&str, &str), source: &str, before: &str, after: &str) {
    check_in("", files, ends, source, before, after);
}

fn check_in(settings: &str, files: &str, (from, to): (&str, &str), source: &str, before: &str, after: &str) {
    let others: String = files.split_whitespace().map(|name| format!("//- {name}\ntext\n")).collect();
    let fixture = Fixture::new(&format!("{settings}{others}//- {source}\n{before}\n"));
    fixture.rename(from, to);
    let now = path(source).moved(&path(from), &path(to)).unwrap_or(path(source));
    assert_eq!(fixture.read(now.as_str()), format!("{after}\n"), "{before} in {source}, {from} -> {to}, among {files}");
}

#[test]
fn links_follow_in_the_style_they_were_written_in() {
    let to_new = ("a.md", "new.md");
    for (before, after) in [
        ("[[a]]", "[[new]]"),
        ("[[A]]", "[[new]]"),
        ("[[a.md]]", "[[new.md]]"),
        ("[[a|shown]] and [[ a ]]", "[[new|shown]] and [[ new ]]"),
        ("[[a#Heading|x]] ![[a#^id]]", "[[new#Heading|x]] ![[new#^id]]"),
        ("[[/a]] [[./a]]", "[[/new]] [[./new]]"),
        ("[t](a.md) [t](a) ![i](a.md)", "[t](new.md) [t](new) ![i](new.md)"),
        ("[t](<a.md> \"title\") [t](a.md#h 'x')", "[t](<new.md> \"title\") [t](new.md#h 'x')"),
        ("[t][r] [r]\n\n[r]: a.md \"t\"", "[t][r] [r]\n\n[r]: new.md \"t\""),
        ("`[[a]]` [[b]] %%[[a]]%% $[[a]]$", "`[[a]]` [[b]] %%[[a]]%% $[[a]]$"),
        ("---\nup: \"[[a]]\"\nl:\n  - '[[a|x]]'\n---\nx", "---\nup: \"[[new]]\"\nl:\n  - '[[new|x]]'\n---\nx"),
        ("| t |\n|---|\n| [[a\\|x]] |", "| t |\n|---|\n| [[new\\|x]] |"),
    ] {
        check("a.md b.md", to_new, "s.md", before, after);
    }
}

#[test]
fn folders_and_paths() {
    check("d/a.md", ("d/a.md", "e/a.md"), "s.md", "[[a]] [[d/a]] [x](d/a.md)", "[[a]] [[e/a]] [x](e/a.md)");
    check("d/a.md", ("d/a.md", "e/f/a.md"), "d/s.md", "[[./a]] [x](a.md)", "[[../e/f/a]] [x](a.md)");
    check("a.md x/b.md", ("a.md", "b.md"), "s.md", "[[a]]", "[[b]]");
    check("x/a.md y/b.md", ("x/a.md", "x/b.md"), "s.md", "[[a]] [[b]]", "[[x/b]] [[y/b]]");
    check("q/n/a.md", ("q/n/a.md", "z/a.md"), "s.md", "[[n/a]]", "[[z/a]]");
    check("d/a.md d/b.md", ("d", "e"), "s.md", "[[a]] [[d/b|x]] [b](d/b.md)", "[[a]] [[e/b|x]] [b](e/b.md)");
    check(
        "p/i.png",
        ("p/i.png", "q/my pic.png"),
        "s.md",
        "![[i.png|100]] ![](p/i.png)",
        "![[my pic.png|100]] ![](q/my%20pic.png)",
    );
    check("v1.md", ("v1.md", "v1.2.md"), "s.md", "[[v1]] [x](v1.md)", "[[v1.2]] [x](v1.2.md)");
    check("a.md", ("a.md", "b.canvas"), "s.md", "[[a]]", "[[b.canvas]]");
    check("f/n.md", ("f", "F"), "s.md", "[t](f/n.md) [[f/n|x]] [[n]] [[/f/n]]", "[t](F/n.md) [[F/n|x]] [[n]] [[/F/n]]");
    check("f/n.md", ("f", "F"), "s.md", "[t](F/N.md)", "[t](F/N.md)");
    check("it's.md", ("it's.md", "b.md"), "s.md", "[x](it&#39;s.md#h) [y](it&apos;s.md)", "[x](b.md#h) [y](b.md)");
    check(
        "a.md",
        ("a.md", "b.md"),
        "s.md",
        "```\n[r]: a.md\n```\n\n[t][r]\n\n- [r]: a.md",
        "```\n[r]: a.md\n```\n\n[t][r]\n\n- [r]: b.md",
    );
    check("a.md p.png", ("a.md", "b.md"), "s.md", "[![[p.png|9]]](a.md \"t\")", "[![[p.png|9]]](b.md \"t\")");
}

#[test]
fn what_moves_takes_its_own_links_along() {
    check("a.md d/b.md", ("s.md", "d/s.md"), "s.md", "[[./a]] [x](d/b.md) [[a]]", "[[../a]] [x](d/b.md) [[a]]");
    check("d/a.md a.md", ("d/s.md", "s.md"), "d/s.md", "[[./a]] [[d/a]] [[a]]", "[[./d/a]] [[d/a]] [[a]]");
    check("x/i.md y/i.md", ("x/s.md", "y/s.md"), "x/s.md", "[[i]]", "[[x/i]]");
    check("", ("s.md", "t.md"), "s.md", "[[s#h]] [[#h]] [x](#h)", "[[t#h]] [[#h]] [x](#h)");
    check("o/a.md", ("o", "p/o"), "o/s.md", "[[./a]] [[o/a]]", "[[./a]] [[p/o/a]]");
}

#[test]
fn destinations_are_relative_where_there_is_no_obsidian() {
    let guide = ("guide.md", "docs/the guide.md");
    check_plain(
        "guide.md",
        guide,
        "README.md",
        "[guide](guide.md) [[guide]]",
        "[guide](docs/the%20guide.md) [[the guide]]",
    );
    check_plain("guide.md", guide, "docs/a.md", "[g](../guide.md#h)", "[g](the%20guide.md#h)");
    check_plain(
        "a.md d/b.md i.png",
        ("s.md", "d/s.md"),
        "s.md",
        "[a](a.md) [b](d/b.md) ![](i.png)",
        "[a](../a.md) [b](b.md) ![](../i.png)",
    );
    check_plain(
        "d/a.md",
        ("d/a.md", "e/f/a.md"),
        "d/s.md",
        "[x](a.md) [y](./a.md)",
        "[x](../e/f/a.md) [y](../e/f/a.md)",
    );
    // The file beside the note, not the one in the root.
    check_plain("a.md d/a.md", ("d/a.md", "d/b.md"), "d/s.md", "[x](a.md) [y](../a.md)", "[x](b.md) [y](../a.md)");
    check_plain(
        "p/i.png",
        ("p", "assets/p"),
        "s.md",
        "![](p/i.png) [x](/p/i.png)",
        "![](assets/p/i.png) [x](/assets/p/i.png)",
    );
    check_plain(
        "a.md",
        ("a.md", "c (1).md"),
        "s.md",
        "[x](a.md) [r]\n\n[r]: a.md",
        "[x](c%20%281%29.md) [r]\n\n[r]: c%20%281%29.md",
    );
    // As Foam writes them: what other programs follow is the definition.
    check_plain(
        "n/a.md",
        ("n/a.md", "m/é b.md"),
        "s.md",
        "[[a]] [[a|x]]\n\n[a]: n/a.md \"A\"\n[a|x]: <n/a.md>\n[other]: ./n/a.md#h",
        "[[é b]] [[é b|x]]\n\n[é b]: m/é%20b.md \"A\"\n[é b|x]: <m/é b.md>\n[other]: ./m/é%20b.md#h",
    );
    check_plain("a.md", ("s.md", "d/s.md"), "s.md", "[[a]]\n\n[a]: a.md", "[[a]]\n\n[a]: ../a.md");
    check_plain("f/r.md", ("f", "x/f2"), "s.md", "[[r]].\n\n[r]: f/r.md 'R'", "[[r]].\n\n[r]: x/f2/r.md 'R'");
}

#[test]
fn links_in_a_vault_with_a_format() {
    for (format, before, after) in [
        ("relative", "[x](a.md)", "[x](../e/a.md)"),
        ("absolute", "[x](a.md)", "[x](a.md)"),
        ("relative", "[x](/d/a.md)", "[x](/e/a.md)"),
    ] {
        let fixture = Fixture::new(&format!(
            "//- .obsidian/app.json\n{{\"newLinkFormat\":\"{format}\"}}\n//- d/a.md\n\n//- d/s.md\n{before}\n"
        ));
        fixture.rename("d/a.md", "e/a.md");
        assert_eq!(fixture.read("d/s.md"), format!("{after}\n"), "{format}");
    }
}

#[test]
fn links_come_back_as_they_were() {
    for (format, link, back) in [
        ("relative", "[[a]] [x](a.md)", "[[a]] [x](a.md)"),
        ("shortest", "[[./a]] [[a]] [x](<a.md>)", "[[./a]] [[a]] [x](<a.md>)"),
        ("shortest", "[[d/a]] [x](d/a.md) [[/d/a]]", "[[d/a]] [x](d/a.md) [[/d/a]]"),
        // What was more than a way needs comes back as the way.
        ("relative", "[[./a]] [[../d/a]]", "[[a]] [[a]]"),
        ("shortest", "[[../d/a]]", "[[./a]]"),
    ] {
        let files = format!("//- .obsidian/app.json\n{{\"newLinkFormat\":\"{format}\"}}\n//- d/a.md\n\n//- d/s.md\n");
        let fixture = Fixture::new(&format!("{files}{link}\n"));
        fixture.rename("d/a.md", "e/f/new.md");
        fixture.rename("e/f/new.md", "d/a.md");
        assert_eq!(fixture.read("d/s.md"), format!("{back}\n"), "{format}");
        fixture.rename("d/s.md", "e/f/s.md");
        fixture.rename("e/f/s.md", "d/s.md");
        assert_eq!(fixture.read("d/s.md"), format!("{back}\n"), "{format}, the note itself");
    }
    let fixture = Fixture::new("//- d/e/a.md\n\n//- d/s.md\n[x](e/a.md) [[e/a]]\n");
    fixture.rename("d/e/a.md", "f/new.md");
    assert_eq!(fixture.read("d/s.md"), "[x](../f/new.md) [[../f/new]]\n");
    fixture.rename("f/new.md", "d/e/a.md");
    assert_eq!(fixture.read("d/s.md"), "[x](e/a.md) [[e/a]]\n");
}

#[test]
fn canvases_are_rewritten_in_place() {
    let canvas = "{\n\t\"nodes\":[\n\t\t{\"id\":\"1\",\"type\":\"file\",\"file\":\"d/a \\\"x\\\".md\",\"x\":1.0},\n\
                  \t\t{\"type\":\"text\",\"text\":\"see [[d/a \\\"x\\\"]]\\nand \\\"[[b]]\\\"\"}\n\t],\"edges\":[]\n}\n";
    let fixture = Fixture::new(&format!("//- d/a \"x\".md\n\n//- b.md\n\n//- c.canvas\n{canvas}"));
    fixture.rename("d/a \"x\".md", "e/a \"x\".md");
    let expected = canvas.replace("\"d/a", "\"e/a").replace("[[d/a", "[[e/a");
    assert_eq!(fixture.read("c.canvas"), expected);
    // What is written in its own way stays so.
    let canvas = r#"{"nodes":[{"type":"text","text":"\u00e9\/[[a]]\ud83d\ude00 [x](d\/a.md#h)"}]}"#;
    let fixture = Fixture::new(&format!("//- d/a.md\n\n//- c.canvas\n{canvas}"));
    fixture.rename("d/a.md", "e/é.md");
    assert_eq!(fixture.read("c.canvas"), canvas.replace("[[a]]", "[[é]]").replace(r"d\/a", "e/é"));
}

#[test]
fn a_new_file_takes_no_links_away() {
    let fixture = Fixture::new("//- x/a.md\n\n//- s.md\n[[a]] [[b]]\n");
    fixture.change(|overlay| overlay.create(&path("a.md"), "new")).unwrap();
    assert_eq!(fixture.read("s.md"), "[[x/a]] [[b]]\n");
    fixture.change(|overlay| overlay.create(&path("b.md"), "new")).unwrap();
    assert_eq!(fixture.read("s.md"), "[[x/a]] [[b]]\n");
}

#[test]
fn dangling_links_are_told() {
    let fixture = Fixture::new("//- a.md\n\n//- s.md\n\n[[b]] [[a]]\n//- x/a.md\n\n");
    let renamed = fixture.rename("a.md", "b.md");
    let satisfied: Vec<(&str, u32, &str)> =
        renamed.satisfied.iter().map(|link| (link.path.as_str(), link.line, link.raw.as_str())).collect();
    assert_eq!(satisfied, [("s.md", 2, "[[b]]")]);
    assert_eq!(renamed.rewritten.len(), 1);
    let (deleted, _) = fixture.change(|overlay| overlay.delete(&path("b.md"), DeleteMode::Trash)).unwrap();
    assert_eq!((deleted.trashed_to.as_deref(), deleted.dangling.len()), (Some(".trash/b.md"), 2));
}

#[test]
fn names_that_links_cannot_bear_are_refused() {
    let fixture = Fixture::new("//- a.md\n\n//- B.md\n\n//- C#/c.md\n\n//- s.md\n[[C#]] [[a]]\n//- x/a.md\n\n");
    let rename = |from: &str, to: &str| {
        fixture.vault.overlay().rename(&path(from), &path(to)).map(drop).map_err(|error| error.kind())
    };
    for (from, to, kind) in [
        ("a.md", "a#b.md", ErrorKind::InvalidPath),
        ("a.md", "x|y/a.md", ErrorKind::InvalidPath),
        ("a.md", "b.md", ErrorKind::Exists),
        ("a.md", "B.md", ErrorKind::Exists),
        ("a.md", "s.md/a.md", ErrorKind::Exists),
        ("a.md", "X/a.md", ErrorKind::Exists),
        ("x", "x/y", ErrorKind::InvalidArguments),
        ("gone.md", "b2.md", ErrorKind::NotFound),
        // `[[C#/a]]` leads elsewhere, and the bare name to two.
        ("a.md", "C#/a.md", ErrorKind::Refused),
    ] {
        assert_eq!(rename(from, to), Err(kind), "{from} -> {to}");
    }
    assert_eq!(rename("a.md", "A.md"), Ok(()));
    assert_eq!(rename("a.md", "a.md"), Ok(()));
}

#[test]
fn only_the_case_changes() {
    let fixture = Fixture::new("//- note.md\n[[note]]\n//- s.md\n[[note]] [[NOTE]]\n");
    fixture.rename("note.md", "Note.md");
    assert_eq!(
        (fixture.read("Note.md").as_str(), fixture.read("s.md").as_str()),
        ("[[Note]]\n", "[[Note]] [[Note]]\n")
    );
}

#[test]
fn what_is_deleted_can_be_restored() {
    let fixture = Fixture::new("//- a.md\none\n//- f/b.md\n\n//- f/g/c.png\n\n//- f/.hidden\n\n");
    let before = fixture.snapshot();
    for (what, deletion) in [
        ("a.md", DeleteMode::Trash),
        ("f", DeleteMode::Trash),
        ("a.md", DeleteMode::Permanent),
        ("f/g", DeleteMode::Permanent),
    ] {
        fixture.change(|overlay| overlay.delete(&path(what), deletion)).unwrap();
        assert!(!fixture.root().join(what).exists(), "{what}");
        fixture.vault.undo(None, Force::No).unwrap();
        assert_eq!(fixture.snapshot(), before, "{what} {deletion:?}");
    }
    // A second file of the same name gets a place of its own.
    fixture.change(|overlay| overlay.delete(&path("a.md"), DeleteMode::Trash)).unwrap();
    fixture.change(|overlay| overlay.create(&path("a.md"), "two")).unwrap();
    fixture.change(|overlay| overlay.delete(&path("a.md"), DeleteMode::Trash)).unwrap();
    assert_eq!((fixture.read(".trash/a.md").as_str(), fixture.read(".trash/a 2.md").as_str()), ("one\n", "two"));
}

#[test]
fn later_steps_see_what_earlier_ones_did() {
    let fixture = Fixture::new("//- a.md\n[[b]]\n//- b.md\n\n");
    let mut overlay = fixture.vault.overlay();
    overlay.write(&path("new/c.md"), "[[a]]").unwrap();
    overlay.rename(&path("a.md"), &path("new/x.md")).unwrap();
    assert_eq!(overlay.text(&path("new/c.md")).unwrap(), "[[x]]");
    overlay.rename(&path("new"), &path("old")).unwrap();
    overlay.write(&path("old/x.md"), "changed").unwrap();
    let names: Vec<String> = overlay.walk(None).unwrap().iter().map(|entry| entry.path.to_string()).collect();
    assert_eq!(names, ["b.md", "old", "old/c.md", "old/x.md"]);
    assert_eq!(overlay.read(&path("a.md")).unwrap_err().kind(), ErrorKind::NotFound);
    overlay.delete(&path("b.md"), DeleteMode::Permanent).unwrap();
    let before = fixture.snapshot();
    fixture.vault.apply(&overlay.change(), ApplyOptions::default()).unwrap();
    assert_eq!((fixture.read("old/x.md").as_str(), fixture.read("old/c.md").as_str()), ("changed", "[[x]]"));
    assert_eq!(fixture.vault.overlay().walk(None).unwrap().len(), 3);
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.snapshot(), before);
}

#[test]
fn a_step_that_failed_leaves_nothing() {
    let fixture = Fixture::new("//- a.md\n[[b]]\n//- b.md\n\n");
    let mut overlay = fixture.vault.overlay();
    overlay.write(&path("a.md"), "one").unwrap();
    let mark = overlay.mark();
    overlay.write(&path("a.md"), "two").unwrap();
    overlay.rename(&path("b.md"), &path("c.md")).unwrap();
    overlay.rollback(mark);
    assert_eq!(overlay.text(&path("a.md")).unwrap(), "one");
    assert!(overlay.exists(&path("b.md")).unwrap() && !overlay.exists(&path("c.md")).unwrap());
    assert_eq!(overlay.change().actions().len(), 1);
    overlay.rollback(0);
    assert!(!overlay.is_changed());
}

#[test]
fn the_preview_tells_file_by_file() {
    let fixture = Fixture::new("//- a.md\none\ntwo\n//- b.md\n[[a]]\n//- c.md\n\n");
    let mut overlay = fixture.vault.overlay();
    overlay.create(&path("f/new.md"), "x\n").unwrap();
    overlay.write(&path("f/new.md"), "y\n").unwrap();
    overlay.rename(&path("a.md"), &path("z.md")).unwrap();
    overlay.write(&path("z.md"), "one\n2\n").unwrap();
    overlay.delete(&path("c.md"), DeleteMode::Trash).unwrap();
    let change = overlay.change();
    let preview = change.preview();
    let lines: Vec<(Kind, &str, Option<&str>, usize, usize)> = preview
        .files
        .iter()
        .map(|file| (file.kind, file.path.as_str(), file.to.as_deref(), file.added, file.removed))
        .collect();
    assert_eq!(
        lines,
        [
            (Kind::Renamed, "a.md", Some("z.md"), 1, 1),
            (Kind::Modified, "b.md", None, 1, 1),
            (Kind::Deleted, "c.md", Some(".trash/c.md"), 0, 0),
            (Kind::Created, "f/new.md", None, 1, 0),
        ]
    );
    let text = preview.to_string();
    for part in
        ["create folder f\n", "rename a.md -> z.md\n", "-two\n+2\n", "--- a/b.md\n+++ b/b.md\n", "-[[a]]\n+[[z]]"]
    {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    assert!(change.deletes() && change.digest().len() == 64);
    overlay.rename(&path("f"), &path("g")).unwrap();
    assert_ne!(change.digest(), overlay.change().digest());
    assert_eq!(change.paths(), ["a.md", "b.md", "c.md", "f", "f/new.md", "z.md"]);
    // What a folder carries along is touched as well.
    let paths = ["a.md", "b.md", "c.md", "f", "f/new.md", "g", "g/new.md", "z.md"];
    assert_eq!(overlay.change().paths(), paths);
    assert!(serde_json::to_value(&preview).unwrap()["files"][0]["diff"].is_string());
}

/// What is written is made of what was read first, not of what somebody wrote meanwhile.
#[test]
fn a_file_that_changes_between_two_looks_is_a_conflict() {
    for theirs in ["one and theirs", "one and mine"] {
        let fixture = Fixture::new("//- a.md\none");
        let mut overlay = fixture.vault.overlay();
        let text = overlay.text(&path("a.md")).unwrap();
        write(fixture.root(), "a.md", theirs);
        let error = overlay.write(&path("a.md"), format!("{text} and mine")).unwrap_err();
        assert_eq!((error.kind(), fixture.read("a.md").as_str()), (ErrorKind::Conflict, theirs));
        assert!(!overlay.is_changed());
    }
}

#[test]
fn what_changed_since_is_a_conflict() {
    let fixture = Fixture::new("//- a.md\none\n//- b.md\n[[a]]\n//- c.md\nread\n");
    let root = fixture.root().to_owned();
    let apply = |propose: &dyn Fn(&mut Overlay<'_>), meanwhile: &dyn Fn()| {
        let before_all = fixture.snapshot();
        let mut overlay = fixture.vault.overlay();
        propose(&mut overlay);
        meanwhile();
        let before = fixture.snapshot();
        let error = fixture.vault.apply(&overlay.change(), ApplyOptions::default()).unwrap_err();
        assert_eq!((error.kind(), fixture.snapshot()), (ErrorKind::Conflict, before), "{error}");
        for name in fixture.snapshot().keys().filter(|name| !before_all.contains_key(*name)) {
            std::fs::remove_file(root.join(name)).unwrap();
        }
        for (name, bytes) in before_all {
            std::fs::write(root.join(name), bytes.unwrap()).unwrap();
        }
    };
    let edit =
        |overlay: &mut Overlay<'_>| assert_eq!(overlay.write(&path("a.md"), "two").unwrap(), WriteOutcome::Overwritten);
    apply(&edit, &|| write(&root, "a.md", "other"));
    apply(&edit, &|| std::fs::remove_file(root.join("a.md")).unwrap());
    apply(&|overlay| overlay.create(&path("n.md"), "x").unwrap(), &|| write(&root, "n.md", "other"));
    let rename = |overlay: &mut Overlay<'_>| drop(overlay.rename(&path("a.md"), &path("z.md")).unwrap());
    apply(&rename, &|| write(&root, "b.md", "[[a]] more"));
    apply(&rename, &|| write(&root, "z.md", "other"));
    // A link that comes, and a name that comes, turn links that nobody has read.
    apply(&rename, &|| write(&root, "d.md", "[[a]]"));
    apply(&|overlay| drop(overlay.rename(&path("a.md"), &path("f/z.md")).unwrap()), &|| write(&root, "z.md", ""));
    apply(&|overlay| overlay.create(&path("f/n.md"), "x").unwrap(), &|| write(&root, "n.md", "other"));
    apply(&|overlay| drop(overlay.delete(&path("a.md"), DeleteMode::Trash).unwrap()), &|| {
        std::fs::remove_file(root.join("a.md")).unwrap();
    });
    // What was only read counts, too.
    apply(
        &|overlay| {
            let text = overlay.text(&path("c.md")).unwrap();
            overlay.create(&path("d.md"), text).unwrap();
        },
        &|| write(&root, "c.md", "other"),
    );
    assert!(fixture.vault.transactions().unwrap().is_empty());
}

#[test]
fn an_undo_that_would_lose_something_is_refused() {
    let fixture = Fixture::new("//- a.md\none\n");
    fixture
        .change(|overlay| {
            overlay.write(&path("a.md"), "two")?;
            overlay.create(&path("f/new.md"), "x")
        })
        .unwrap();
    write(fixture.root(), "a.md", "three");
    std::fs::remove_file(fixture.root().join("f/new.md")).unwrap();
    let before = fixture.snapshot();
    let refused = fixture.vault.undo(None, Force::No).unwrap_err();
    assert_eq!((refused.kind(), fixture.snapshot()), (ErrorKind::Conflict, before.clone()));
    assert!(refused.to_string().contains("a.md was changed; f/new.md is gone"), "{refused}");
    let run = fixture.vault.undo(None, Force::Yes).unwrap();
    assert_eq!((run.lost.len(), fixture.read("a.md").as_str()), (1, "one\n"));
    assert!(!fixture.root().join("f").exists());
    // Even that can be taken back.
    fixture.vault.redo(Force::No).unwrap();
    assert_eq!(fixture.read("a.md"), "three");
}

#[test]
fn runs_are_reverted_one_by_one() {
    let fixture = Fixture::new("//- a.md\n0\n");
    let write = |text: &str| fixture.change(|overlay| overlay.write(&path("a.md"), text)).unwrap().1.id;
    let (one, two) = (write("1"), write("2"));
    let kept = fixture.change(|overlay| overlay.create(&path("b.md"), "b")).unwrap().1.id;
    assert_eq!((one, two, kept), (TransactionId(1), TransactionId(2), TransactionId(3)));
    // In the middle of history: only if nothing was built on it.
    assert_eq!(fixture.vault.undo(Some(one), Force::No).unwrap_err().kind(), ErrorKind::Conflict);
    fixture.vault.undo(Some(two), Force::No).unwrap();
    assert_eq!(fixture.read("a.md"), "1");
    assert_eq!(fixture.vault.undo(Some(two), Force::No).unwrap_err().kind(), ErrorKind::NotFound);
    fixture.vault.undo(None, Force::No).unwrap();
    assert!(!fixture.root().join("b.md").exists());
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.read("a.md"), "0\n");
    assert_eq!(fixture.vault.undo(None, Force::No).unwrap_err().kind(), ErrorKind::NotFound);
    fixture.vault.redo(Force::No).unwrap();
    fixture.vault.redo(Force::No).unwrap();
    fixture.vault.redo(Force::No).unwrap();
    assert_eq!((fixture.read("a.md").as_str(), fixture.read("b.md").as_str()), ("2", "b"));
    assert_eq!(fixture.vault.redo(Force::No).unwrap_err().kind(), ErrorKind::NotFound);
    fixture.vault.undo(Some(two), Force::No).unwrap();
    // The undo of one that was done again, named by its number.
    fixture.vault.undo(Some(two), Force::No).unwrap_err();
    let undo_of_two = fixture.vault.transactions().unwrap()[0].id;
    fixture.vault.undo(Some(undo_of_two), Force::No).unwrap();
    assert_eq!(
        (fixture.read("a.md").as_str(), fixture.vault.transactions().unwrap()[0].kind),
        ("2", TransactionKind::Redo)
    );
    let twice = fixture.vault.undo(Some(undo_of_two), Force::No).unwrap_err();
    assert!(twice.to_string().contains(&format!("transaction {undo_of_two} is undone already")), "{twice}");
    fixture.vault.undo(Some(two), Force::No).unwrap();
    let status: Vec<TransactionStatus> =
        fixture.vault.transactions().unwrap().iter().rev().take(3).map(|run| run.status).collect();
    assert_eq!(status, [TransactionStatus::Done, TransactionStatus::Undone, TransactionStatus::Done]);
}

#[test]
fn folders_of_a_run_go_when_they_are_empty() {
    let fixture = Fixture::new("//- a.md\n\n");
    fixture.change(|overlay| overlay.create(&path("f/g/new.md"), "x")).unwrap();
    write(fixture.root(), "f/mine.md", "mine");
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.snapshot().keys().collect::<Vec<_>>(), ["a.md", "f", "f/mine.md"]);
}

#[test]
fn nothing_of_ours_is_kept_in_the_vault() {
    let fixture = Fixture::new("//- a.md\n0\n");
    let options = VaultOptions { state_folder: Some(fixture.root().join("st/ate")), ..VaultOptions::default() };
    let refused = Vault::open(fixture.root(), options).err().unwrap();
    assert_eq!((refused.kind(), fixture.snapshot().len()), (ErrorKind::Refused, 1));
}

#[test]
fn a_run_can_be_stopped() {
    let fixture = Fixture::new("//- a.md\n0\n");
    let mut overlay = fixture.vault.overlay();
    for name in ["x.md", "y.md", "z.md"] {
        overlay.create(&path(name), name).unwrap();
    }
    let mut progress = |at: ApplyProgress| if at.index == 2 { ControlFlow::Stop } else { ControlFlow::Continue };
    let options = ApplyOptions::new().label("stopped").progress(&mut progress);
    let run = fixture.vault.apply(&overlay.change(), options).unwrap();
    assert_eq!((run.done, run.stopped, fixture.root().join("z.md").exists()), (2, true, false));
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.snapshot().len(), 1);
}

#[test]
fn a_run_can_be_put_back_to_a_place() {
    let fixture = Fixture::new("//- a.md\n0\n//- s.md\n[[a]]\n");
    let before = fixture.snapshot();
    let mut overlay = fixture.vault.overlay();
    overlay.create(&path("f/x.md"), "x").unwrap();
    let mark = overlay.mark();
    overlay.rename(&path("a.md"), &path("f/b.md")).unwrap();
    let change = overlay.change();
    let last = change.actions().len() - 1;
    let stopped_at = |at: usize, stays: usize| {
        let mut progress =
            |now: ApplyProgress| if now.index == at { ControlFlow::StopAt(stays) } else { ControlFlow::Continue };
        let options = ApplyOptions::new().label("stopped").progress(&mut progress);
        fixture.vault.apply(&change, options).unwrap()
    };
    let run = stopped_at(last, mark);
    assert!(run.stopped && run.done == mark && run.lost.is_empty(), "{run:?}");
    assert_eq!((fixture.read("a.md").as_str(), fixture.read("s.md").as_str()), ("0\n", "[[a]]\n"));
    assert_eq!(fixture.snapshot().len(), before.len() + 2);
    fixture.vault.undo(Some(run.id), Force::No).unwrap();
    assert_eq!(fixture.snapshot(), before);
    // Back to the beginning, nothing was done that could be taken back.
    let run = stopped_at(last, 0);
    assert_eq!((run.id, run.done, fixture.snapshot()), (TransactionId(0), 0, before));
    assert_eq!(fixture.vault.transactions().unwrap()[0].status, TransactionStatus::RolledBack);
}

/// Places are those of the change, whatever exists now.
#[test]
fn a_folder_that_is_there_by_now_shifts_nothing() {
    let fixture = Fixture::new("//- a.md\n0\n");
    let mut overlay = fixture.vault.overlay();
    overlay.create(&path("f/x.md"), "x").unwrap();
    let mark = overlay.mark();
    overlay.create(&path("f/y.md"), "y").unwrap();
    let change = overlay.change();
    std::fs::create_dir(fixture.root().join("f")).unwrap();
    let mut seen = Vec::new();
    let mut progress = |now: ApplyProgress| {
        seen.push((now.index, now.total));
        if now.index == mark { ControlFlow::StopAt(mark) } else { ControlFlow::Continue }
    };
    let options = ApplyOptions::new().label("stopped").progress(&mut progress);
    let run = fixture.vault.apply(&change, options).unwrap();
    assert_eq!((seen, run.done), (vec![(1, 3), (2, 3)], 1));
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.snapshot().keys().collect::<Vec<_>>(), ["a.md", "f"]);
}

#[test]
fn line_endings_marks_and_missing_newlines_stay() {
    let fixture = Fixture::new("//- a.md\n\n");
    for text in ["\u{feff}[[a]]\r\nlast", "[[a]]\r\n\r\n", "[[a]]\n\n\n", "[[a]]"] {
        write(fixture.root(), "s.md", text);
        let renamed = fixture.rename("a.md", "b.md");
        assert_eq!(renamed.rewritten.len(), 1);
        assert_eq!(fixture.read("s.md"), text.replace("[[a]]", "[[b]]"));
        fixture.vault.undo(None, Force::No).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_note_is_written_through() {
    let fixture = Fixture::new("//- real/a.md\none\n//- s.md\n[[l]]\n");
    std::os::unix::fs::symlink("real/a.md", fixture.root().join("l.md")).unwrap();
    let before = fixture.snapshot();
    fixture.change(|overlay| overlay.write(&path("l.md"), "two")).unwrap();
    assert_eq!(fixture.read("real/a.md"), "two");
    assert!(fixture.root().join("l.md").is_symlink());
    fixture.rename("l.md", "m.md");
    assert_eq!((fixture.read("s.md").as_str(), fixture.read("m.md").as_str()), ("[[m]]\n", "two"));
    let elsewhere = fixture.vault.overlay().rename(&path("m.md"), &path("f/m.md")).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::Refused);
    fixture.vault.undo(None, Force::No).unwrap();
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.snapshot(), before);
}

#[test]
fn the_journal_can_be_pruned() {
    let fixture = Fixture::new("//- a.md\n0\n");
    for text in ["1", "2", "3"] {
        fixture.change(|overlay| overlay.write(&path("a.md"), text)).unwrap();
    }
    let none =
        fixture.vault.prune(&PruneOptions { older_than: Some(Duration::from_secs(60)), max_bytes: None }).unwrap();
    assert_eq!((none.transactions, none.left), (0, 3));
    let some = fixture.vault.prune(&PruneOptions { older_than: None, max_bytes: Some(1000) }).unwrap();
    assert_eq!((some.transactions, some.left), (2, 1));
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.read("a.md"), "2");
    assert_eq!(fixture.vault.undo(None, Force::No).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn one_writer_at_a_time() {
    let fixture = Fixture::new("//- a.md\n0\n");
    let other = open(fixture.folder.path());
    let held = other.store.lock().unwrap();
    let hasty = open_waiting(fixture.folder.path(), Duration::ZERO);
    let mut overlay = hasty.overlay();
    overlay.write(&path("a.md"), "1").unwrap();
    let refused = hasty.apply(&overlay.change(), ApplyOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    drop(held);
    fixture.change(|overlay| overlay.write(&path("a.md"), "1")).unwrap();
    // The other one sees what was done, and takes it back.
    other.undo(None, Force::No).unwrap();
    assert_eq!(fixture.read("a.md"), "0\n");
}
