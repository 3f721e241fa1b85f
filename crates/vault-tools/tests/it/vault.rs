//! A vault in a temporary folder with its state and index beside it, and all that is in it, to be compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use vault_index::HashedEmbedder;
use vault_tools::approval::{Answer, AppliedChange, Approver, PreparedChange, settle};
use vault_tools::{
    Cancel, Editor, Error, ErrorKind, Grants, Headless, Output, PolicySettings, Proposal, Result, Toolbox, Vault,
    VaultOptions,
};

/// What every test takes for now.
pub const NOW: &str = "2026-03-02T15:04:09+01:00[Europe/Zurich]";

/// A vault that is deleted when dropped.
pub struct TestVault {
    folder: TempDir,
}

/// Paths and contents; folders end in `/` and have none.
pub type Tree = BTreeMap<String, Vec<u8>>;

impl TestVault {
    /// From one text: a line `//- path` begins a file.
    pub fn new(files: &str) -> Self {
        let vault = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(vault.root()).unwrap();
        for file in files.split("//- ").skip(1) {
            let (path, content) = file.split_once('\n').unwrap_or((file, ""));
            let lines = content.lines().map(|line| format!("{}\n", line.trim_start()));
            vault.write(path.trim(), lines.collect::<String>().trim_end_matches(['\n', ' ']).to_string() + "\n");
        }
        vault
    }

    /// From a tree.
    pub fn of(tree: &Tree) -> Self {
        let vault = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(vault.root()).unwrap();
        for (path, content) in tree {
            match path.strip_suffix('/') {
                Some(folder) => std::fs::create_dir_all(vault.root().join(folder)).unwrap(),
                None => vault.write(path, content),
            }
        }
        vault
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.root().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn tree(&self) -> Tree {
        tree(&self.root())
    }

    pub fn open(&self) -> Vault {
        let index = vault_index::Options::new()
            .index_file(self.folder.path().join("index/index.db"))
            .embedder(Arc::new(HashedEmbedder::new()));
        let options = VaultOptions::new().index(index).state_folder(self.folder.path().join("state"));
        Vault::open(self.root(), options).unwrap()
    }

    /// The tools with a headless host and the default settings.
    pub fn toolbox(&self) -> Toolbox {
        self.toolbox_with(Editor::default(), &PolicySettings::default())
    }

    pub fn toolbox_with(&self, editor: Editor, policy: &PolicySettings) -> Toolbox {
        let host = Box::new(Headless { editor });
        let mut toolbox = Toolbox::new(Arc::new(self.open()), host, policy.compile().unwrap());
        toolbox.set_now(NOW.parse().unwrap());
        toolbox
    }
}

/// All files and folders below a folder. `.keep` stands for a folder with nothing in it.
pub fn tree(root: &Path) -> Tree {
    fn walk(root: &Path, folder: &Path, tree: &mut Tree) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            if path.is_dir() {
                tree.insert(format!("{name}/"), Vec::new());
                walk(root, &path, tree);
            } else if !name.ends_with(".keep") {
                tree.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = Tree::new();
    walk(root, root, &mut found);
    found
}

/// Two trees are the same; if not, says where they differ.
#[track_caller]
pub fn assert_same(actual: &Tree, expected: &Tree, what: &str) {
    let text = |content: Option<&Vec<u8>>| content.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let paths: std::collections::BTreeSet<&String> = actual.keys().chain(expected.keys()).collect();
    let differences: Vec<String> = paths
        .into_iter()
        .filter(|path| actual.get(*path) != expected.get(*path))
        .map(|path| format!("{path}: {:?} instead of {:?}", text(actual.get(path)), text(expected.get(path))))
        .collect();
    assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
}

/// A person who has seen a change and approves it.
pub fn seen(_: &PreparedChange) -> Answer {
    Answer::Yes
}

/// A person who refuses.
pub fn says_no(_: &PreparedChange) -> Answer {
    Answer::No(Error::new(ErrorKind::Denied, "refused"))
}

/// Carries out a call that was proposed, if it is granted or approved.
pub fn apply(
    toolbox: &mut Toolbox,
    proposal: Proposal,
    grants: &Grants,
    approver: &mut dyn Approver,
) -> Result<Output> {
    let change = PreparedChange::of_call(proposal, toolbox.policy());
    let approved = settle(change, grants, approver).map_err(|refused| refused.log(toolbox))?;
    match approved.carry_out(toolbox, Cancel::default(), &mut |_| {})? {
        AppliedChange::Call(output) => Ok(output),
        other => panic!("{other:?}"),
    }
}
