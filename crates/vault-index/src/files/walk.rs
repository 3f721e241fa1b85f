//! The list of a vault's files, with one stat per file; only ignore files and settings are opened.
//!
//! Every regular file that is not hidden is listed; `exclude` says which of them are not indexed. Files and folders
//! whose names begin with a dot are hidden. Pipes, sockets and devices are never listed.
//!
//! Symbolic links are never followed. A link to a file of the same vault is listed as a link target but not indexed,
//! because the file is indexed under its own path. A link to another folder of the vault is skipped silently, as in
//! Obsidian. A link that leads out of the vault, nowhere, or to one of its parent folders gets a warning.
//!
//! Two to four threads share the folders, and the entries of a long one, because many vaults are one flat folder.
//! Memory: about 150 bytes per file.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::exclude::{ExcludeRules, GIT_IGNORE, Layer, OBSIDIAN, VAULT_IGNORE, lossy};
use super::stat::FileStat;
use crate::error::{Error, ErrorKind, Result, Warning, WarningKind};
use crate::path::VaultPath;

/// Folders nested deeper than this are skipped with a warning.
const MAX_DEPTH: usize = 256;

/// The stack of a thread that walks, which is enough for folders nested that deep.
const STACK_BYTES: usize = 16 << 20;

/// The files that the walk excludes from the index, besides those that the vault itself excludes.
#[derive(Debug, Clone, Default)]
pub struct WalkRules {
    /// Globs, as in a line of a `.gitignore` in the vault's root: `drafts/`, `*.tmp.md`, `/a/b.md`. They can only
    /// exclude files: a line that begins with `!` cancels an earlier one of these globs and nothing else.
    pub exclude: Vec<String>,
}

/// A file of the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFile {
    /// Its path.
    pub path: VaultPath,
    /// Its path on disk, relative to the root, if it is not the text of `path`: for names that are not NFC or not
    /// Unicode. Use [`DiskFile::disk_path`].
    pub disk: Option<PathBuf>,
    /// Size and times. For a symbolic link, those of the link itself.
    pub stat: FileStat,
    /// Whether it is indexed; otherwise it is only a link target.
    pub indexed: bool,
    /// Whether it is a symbolic link to another file of the vault. Never indexed.
    pub symlink: bool,
}

impl DiskFile {
    /// Its path on disk, relative to the root.
    pub fn disk_path(&self) -> &Path {
        self.disk.as_deref().unwrap_or(Path::new(self.path.as_str()))
    }

    /// Whether its content is read: an indexed note or canvas.
    pub fn is_read(&self) -> bool {
        self.indexed && self.path.kind().is_note()
    }
}

/// The result of [`walk`].
#[derive(Debug, Clone, Default)]
pub struct Walk {
    /// Every file, ordered by path, each path once.
    pub files: Vec<DiskFile>,
    /// Warnings, each with its path (as text: names on disk need not be Unicode), ordered by path.
    pub warnings: Vec<(String, Warning)>,
    /// Folders that could not be listed and files that could not be checked, as the text of their paths. Their content
    /// is unknown, which is not the same as empty.
    pub unlisted: Vec<String>,
    /// Whether it is an Obsidian vault, which affects the resolution of links.
    pub is_obsidian: bool,
}

/// Lists the files of the vault at `root`. A folder or file that cannot be read gives a warning.
///
/// # Errors
/// [`ErrorKind::Vault`] when `root` is not a readable folder, so that an unplugged disk is not taken for an emptied
/// vault; [`ErrorKind::Query`] for an invalid glob in `rules` or an invalid `.vault.toml`; [`ErrorKind::Cancelled`]
/// soon after `cancel` is set.
pub fn walk(root: &Path, rules: &WalkRules, cancel: &AtomicBool) -> Result<Walk> {
    let root = real_root(root)?;
    let mut walk = Walk { is_obsidian: is_obsidian_vault(&root), ..Walk::default() };
    let exclude = ExcludeRules::new(&root, &rules.exclude, &mut walk.warnings)?;
    let walker = Walker { root: &root, exclude, cancel };
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4));
    // The walk has its own pool: in the shared one it would queue behind other work.
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES).build().map_err(|e| {
            Error::new(ErrorKind::Io, "no threads could be started to list the vault").at(&root).because(e)
        })?;
    let found = pool.install(|| walker.folder(Folder::default())).map_err(|error| vault_error(&root, error))?;
    if cancel.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
    }
    Ok(in_order(walk.with(found)))
}

/// Whether a folder is an Obsidian vault: it has a folder `.obsidian`.
pub fn is_obsidian_vault(root: &Path) -> bool {
    root.join(OBSIDIAN).is_dir()
}

/// The canonical path of a vault's root.
///
/// # Errors
/// [`ErrorKind::Vault`] when the folder does not exist.
pub(super) fn real_root(root: &Path) -> Result<PathBuf> {
    let real = fs::canonicalize(root).map_err(|e| vault_error(root, e))?;
    if real.is_dir() { Ok(real) } else { Err(vault_error(root, io::ErrorKind::NotADirectory.into())) }
}

fn vault_error(root: &Path, error: io::Error) -> Error {
    let (message, remedy) = match error.kind() {
        io::ErrorKind::NotFound => ("there is no such folder", "name the vault's folder with --vault or VAULT_DIR"),
        io::ErrorKind::NotADirectory => {
            ("is a file; a vault is a folder", "name the vault's folder with --vault or VAULT_DIR")
        }
        _ => ("the vault's folder cannot be read", "check that the disk is there and that you may read the folder"),
    };
    let vault = Error::new(ErrorKind::Vault, message).at(root).with_remedy(remedy);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => vault,
        _ => vault.because(error),
    }
}

/// Sorts the files. If several files have the same `VaultPath`, keeps the one whose name on disk is that path, because
/// opening the path finds it; if there is no such file, the one whose name comes first.
fn in_order(Walk { mut files, mut warnings, unlisted, is_obsidian }: Walk) -> Walk {
    let name = |file: &DiskFile| (file.disk.is_some(), file.disk_path().as_os_str().as_encoded_bytes().to_owned());
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path).then_with(|| name(a).cmp(&name(b))));
    files.dedup_by(|later, kept| {
        let clash = later.path == kept.path;
        if clash {
            let message = format!(
                "two files on disk have this name once it is normalised: {:?} is used, {:?} is left out; rename one",
                kept.disk_path(),
                later.disk_path()
            );
            warnings.push((kept.path.as_str().to_owned(), Warning::new(WarningKind::NameClash, message)));
        }
        clash
    });
    warnings.sort_by(|a, b| (&a.0, a.1.line, &a.1.message).cmp(&(&b.0, b.1.line, &b.1.message)));
    Walk { files, warnings, unlisted, is_obsidian }
}

/// A folder to be read.
#[derive(Default)]
struct Folder {
    /// Relative to the root; empty for the root.
    disk: PathBuf,
    layer: Option<Arc<Layer>>,
    /// Whether the folder is excluded, so that warnings about it are dropped.
    excluded: bool,
    depth: usize,
}

struct Walker<'a> {
    root: &'a Path,
    exclude: ExcludeRules,
    cancel: &'a AtomicBool,
}

impl Walker<'_> {
    /// Lists a folder recursively. If it cannot be read completely, this is an error: an entry that was not listed may
    /// be an ignore file, and the files that it excludes must not be read.
    fn folder(&self, folder: Folder) -> io::Result<Walk> {
        let mut walk = Walk::default();
        let (mut has_git, mut has_vault) = (false, false);
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.root.join(&folder.disk))? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.as_encoded_bytes().starts_with(b".") {
                entries.push(entry);
            } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                has_git |= name == GIT_IGNORE;
                has_vault |= name == VAULT_IGNORE;
            }
        }
        let layer = (has_git || has_vault).then(|| {
            Layer::read(self.root, &folder.disk, [has_git, has_vault], folder.layer.clone(), &mut walk.warnings)
        });
        let folder = Folder { layer: layer.map(Arc::new).or(folder.layer), ..folder };
        let inside = entries.into_par_iter().fold(Walk::default, |mut walk, entry| {
            if !self.cancel.load(Ordering::Relaxed) {
                self.entry(&folder, &entry, &mut walk);
            }
            walk
        });
        Ok(walk.with(inside.reduce(Walk::default, Walk::with)))
    }

    fn entry(&self, folder: &Folder, entry: &DirEntry, walk: &mut Walk) {
        let disk = folder.disk.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => self.sub_folder(folder, disk, walk),
            Ok(kind) if kind.is_file() || kind.is_symlink() => self.file(folder, entry, disk, walk),
            Ok(_) => {}
            Err(error) => walk.unreadable(folder.excluded, &disk, "its metadata cannot be read", &error),
        }
    }

    fn sub_folder(&self, folder: &Folder, disk: PathBuf, walk: &mut Walk) {
        let excluded = folder.excluded || !self.exclude.indexes_folder(folder.layer.as_deref(), &disk);
        if folder.depth == MAX_DEPTH {
            let message = "nested too deep; its contents are skipped";
            return walk.warn(excluded, &disk, WarningKind::Unreadable, message);
        }
        let inner = Folder { disk: disk.clone(), layer: folder.layer.clone(), excluded, depth: folder.depth + 1 };
        match self.folder(inner) {
            Ok(found) => *walk = std::mem::take(walk).with(found),
            Err(error) => walk.unreadable(excluded, &disk, "the folder cannot be read", &error),
        }
    }

    fn file(&self, folder: &Folder, entry: &DirEntry, disk: PathBuf, walk: &mut Walk) {
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) => return walk.unreadable(folder.excluded, &disk, "its metadata cannot be read", &error),
        };
        let symlink = metadata.is_symlink();
        if symlink
            && !self.leads_to_a_file(&disk).unwrap_or_else(|message| {
                walk.warn(folder.excluded, &disk, WarningKind::Symlink, message);
                false
            })
        {
            return;
        }
        let Some(path) = VaultPath::from_disk(&disk) else { return };
        let indexed = !symlink && !folder.excluded && self.exclude.indexes_file(folder.layer.as_deref(), &disk, &path);
        let disk = (Path::new(path.as_str()) != disk).then_some(disk);
        walk.files.push(DiskFile { path, disk, stat: FileStat::of(&metadata), indexed, symlink });
    }

    /// Whether a symbolic link leads to a file of this vault; the error is the message of the warning.
    fn leads_to_a_file(&self, disk: &Path) -> std::result::Result<bool, String> {
        let link = self.root.join(disk);
        let target = fs::canonicalize(&link)
            .map_err(|error| format!("this symbolic link is broken or circular and is not followed: {error}"))?;
        if !target.starts_with(self.root) {
            return Err("this symbolic link leads out of the vault and is not followed; move the files into the vault, or index the other folder as a vault of its own".to_owned());
        }
        if link.starts_with(&target) {
            return Err("this symbolic link leads to one of its parent folders and is not followed".to_owned());
        }
        Ok(target.is_file())
    }
}

impl Walk {
    fn with(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        self.warnings.extend(other.warnings);
        self.unlisted.extend(other.unlisted);
        self
    }

    fn warn(&mut self, excluded: bool, disk: &Path, kind: WarningKind, message: impl Into<String>) {
        if !excluded {
            self.warnings.push((lossy(disk), Warning::new(kind, message)));
        }
    }

    /// Warns about a file or folder, unless it was deleted after its parent folder was listed.
    fn unreadable(&mut self, excluded: bool, disk: &Path, what: &str, error: &io::Error) {
        if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            self.unlisted.push(lossy(disk));
            let message = format!("{what} (a sync keeps its rows in the index, a rebuild does not): {error}");
            self.warn(excluded, disk, WarningKind::Unreadable, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exclude::{APP_JSON, Exclusion};
    use super::*;
    use crate::path::FileKind;

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// A vault of the files that `text` names, each on a line `//- path` with its content below.
    fn vault(text: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in text.split("//- ").skip(1) {
            let (path, content) = file.split_once('\n').unwrap();
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn list(root: &Path, exclude: &[&str]) -> Walk {
        let rules = WalkRules { exclude: exclude.iter().map(|&glob| glob.to_owned()).collect() };
        let walk = walk(root, &rules, &NEVER).unwrap();
        // A check of a single path gives the same result.
        let exclusion = Exclusion::new(&real_root(root).unwrap(), &rules.exclude).unwrap();
        for file in walk.files.iter().filter(|file| !file.symlink && file.disk.is_none()) {
            assert_eq!(exclusion.covers_file(&file.path), !file.indexed, "{}", file.path);
        }
        walk
    }

    /// One line per file: its path, in brackets if it is not indexed.
    fn names(walk: &Walk) -> Vec<String> {
        let name = |f: &DiskFile| if f.indexed { f.path.to_string() } else { format!("({})", f.path) };
        walk.files.iter().map(name).collect()
    }

    fn check(text: &str, exclude: &[&str], expected: &[&str]) {
        let root = vault(text);
        let walk = list(root.path(), exclude);
        assert_eq!(names(&walk), expected);
        assert_eq!(walk.warnings, []);
    }

    /// The warnings as `path kind`.
    fn odd(walk: &Walk) -> Vec<String> {
        walk.warnings.iter().map(|(path, warning)| format!("{path} {:?}", warning.kind)).collect()
    }

    #[test]
    fn all_that_is_not_hidden_is_listed_in_order() {
        check(
            "//- b.md\n//- a/b.md\n//- a/.x.md\n//- a.md\n//- .trash/c.md\n//- .obsidian/app.json\n{}//- a b/\u{1f331} \"q\" 'q'.md\n//- p.png\n//- none\n//- c.canvas\n",
            &[],
            &["a b/\u{1f331} \"q\" 'q'.md", "a.md", "a/b.md", "b.md", "c.canvas", "none", "p.png"],
        );
        check("", &[], &[]);
    }

    #[test]
    fn stamps_and_kinds() {
        let root = vault("//- a.md\nfive\n//- p.png\n");
        let walk = list(root.path(), &[]);
        let metadata = fs::metadata(root.path().join("a.md")).unwrap();
        assert_eq!(walk.files[0].stat, FileStat::of(&metadata));
        assert_eq!((walk.files[0].stat.size, walk.files[0].path.kind()), (5, FileKind::Markdown));
        assert_eq!((walk.files[1].path.kind(), walk.files[1].is_read()), (FileKind::Attachment, false));
        let modified = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(i128::from(walk.files[0].stat.mtime_ns), modified.as_nanos() as i128);
    }

    #[test]
    fn gitignore_excludes_folders_and_files() {
        check(
            "//- .gitignore\n*.log.md\n/out/\nnode_modules/\n//- a.log.md\n//- b.md\n//- out/x.md\n//- sub/out/x.md\n//- sub/node_modules/m/README.md\n",
            &[],
            &["(a.log.md)", "b.md", "(out/x.md)", "(sub/node_modules/m/README.md)", "sub/out/x.md"],
        );
        // Braces are literal, escaped or not.
        check(
            "//- .gitignore\n{a,b}.md\n\\{c\\}.md\n//- a.md\n//- {a,b}.md\n//- {c}.md\n//- c.md\n",
            &[],
            &["a.md", "c.md", "({a,b}.md)", "({c}.md)"],
        );
        // Nested: the inner file takes precedence and is relative to its own folder; a byte order mark is not part of a
        // rule.
        check(
            "//- .gitignore\n\u{feff}*.tmp.md\n//- a/.gitignore\n!keep.tmp.md\n/x.md\n//- a/keep.tmp.md\n//- a/b/keep.tmp.md\n//- a/x.md\n//- a/b/x.md\n//- b/keep.tmp.md\n",
            &[],
            &["a/b/keep.tmp.md", "a/b/x.md", "a/keep.tmp.md", "(a/x.md)", "(b/keep.tmp.md)"],
        );
    }

    #[test]
    fn vaultignore_goes_before_gitignore_and_lists() {
        check(
            "//- .gitignore\nprivate/\nold/\nx.md\n//- .vaultignore\n!private/\nold/\ndrafts/\n!x.md\n//- private/a.md\n//- old/a.md\n//- drafts/deep/a.md\n//- drafts/.vaultignore\n!*.md\n//- x.md\n",
            &[],
            &["(drafts/deep/a.md)", "(old/a.md)", "private/a.md", "x.md"],
        );
    }

    #[test]
    fn obsidian_filters_are_beginnings_or_expressions() {
        check(
            "//- .obsidian/app.json\n{\"userIgnoreFilters\":[\"Arch\",\"Caf\u{65}\\u0301/\",\"/^\\\\d{4}\\\\.md$/\",\"/(\",\"\",\"/\",7]}//- Archive/a.md\n//- archive.md\n//- x/Archive.md\n//- Caf\u{e9}/a.md\n//- 1984.md\n//- x/1984.md\n",
            &[],
            &["(1984.md)", "(Archive/a.md)", "(Caf\u{e9}/a.md)", "(archive.md)", "x/1984.md", "x/Archive.md"],
        );
    }

    #[cfg(unix)]
    #[test]
    fn obsidians_settings_may_lie_behind_a_link() {
        let outside = vault("//- app.json\n{\"userIgnoreFilters\":[\"b\"]}");
        let root = vault("//- .obsidian/x\n//- a.md\n//- b.md\n");
        std::os::unix::fs::symlink(outside.path().join("app.json"), root.path().join(APP_JSON)).unwrap();
        assert_eq!(names(&list(root.path(), &[])), ["a.md", "(b.md)"]);
    }

    #[test]
    fn rules_that_cannot_be_understood_are_left_out_with_a_warning() {
        let root = vault(
            "//- .obsidian/app.json\n{\"userIgnoreFilters\":[\"/a(?=b)/\",\"b\"]}//- .gitignore\n[z-a]\nb.md\n//- a.md\n//- b.md\n",
        );
        let walk = list(root.path(), &[]);
        assert_eq!(names(&walk), ["a.md", "(b.md)"]);
        assert_eq!(odd(&walk), [".gitignore Unreadable", ".obsidian/app.json Unreadable"]);
        assert_eq!(walk.warnings[0].1.line, Some(1));
        let root = vault("//- .obsidian/app.json\n{nonsense//- a.md\n");
        let walk = list(root.path(), &[]);
        assert_eq!((names(&walk), walk.warnings.len()), (vec!["a.md".to_owned()], 1));
    }

    #[test]
    fn excluded_globs() {
        let text = "//- a.md\n//- drafts/a.md\n//- x/drafts/b.md\n//- x/c.tmp.md\n";
        check(text, &["drafts/", "*.tmp.md"], &["a.md", "(drafts/a.md)", "(x/c.tmp.md)", "(x/drafts/b.md)"]);
        check(text, &["/drafts", "x/**"], &["a.md", "(drafts/a.md)", "(x/c.tmp.md)", "(x/drafts/b.md)"]);
        let error = walk(vault(text).path(), &WalkRules { exclude: vec!["{a".into()] }, &NEVER).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Query);
        // It can only exclude files.
        check("//- .gitignore\na.md\n//- a.md\n", &["!a.md"], &["(a.md)"]);
    }

    #[test]
    fn the_vaults_own_file_leaves_out_more_and_does_nothing_else() {
        let text = "//- .vault.toml\nexclude = ['Private/', '!a.md']\n//- Private/b.md\n//- a.md\n//- c.md\n";
        check(text, &["a.md"], &["(Private/b.md)", "(a.md)", "c.md"]);
        check("//- sub/.vault.toml\nexclude = ['a.md']\n//- sub/a.md\n", &[], &["sub/a.md"]);
        for (text, expected) in [
            ("\nmodel = 'openai:x'\n", "line 2: unknown field `model`"),
            ("base_url = 'http://x'", "nothing else"),
            ("exclude = 'x'", "line 1: invalid type"),
            ("exclude = [", "nothing else"),
            ("exclude = ['{a']", "the glob `{a`"),
            ("exclude = ['private[']", "the glob `private[`"),
        ] {
            let root = vault(&format!("//- .vault.toml\n{text}"));
            let error = walk(root.path(), &WalkRules::default(), &NEVER).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Query);
            let message = error.to_string();
            assert!(message.contains(expected) && message.contains(".vault.toml: "), "{message}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_vaults_own_file_is_no_link() {
        let outside = vault("//- other.toml\nexclude = ['a.md']\n");
        let root = vault("//- a.md\n");
        std::os::unix::fs::symlink(outside.path().join("other.toml"), root.path().join(".vault.toml")).unwrap();
        let error = walk(root.path(), &WalkRules::default(), &NEVER).unwrap_err();
        assert!(error.to_string().contains(".vault.toml: is a symbolic link"), "{error}");
    }

    #[test]
    fn no_folder_is_an_error() {
        let root = vault("//- a.md\n");
        for path in ["none", "a.md"] {
            let error = walk(&root.path().join(path), &WalkRules::default(), &NEVER).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Vault);
            assert!(error.to_string().contains("--vault"), "{error}");
        }
    }

    #[test]
    fn it_can_be_cancelled() {
        let root = vault("//- a.md\n");
        let error = walk(root.path(), &WalkRules::default(), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn a_long_folder_is_shared_out_and_loses_nothing() {
        let root = tempfile::tempdir().unwrap();
        let count = 1000;
        for n in 0..count {
            fs::write(root.path().join(format!("{n:05}.md")), "").unwrap();
        }
        fs::create_dir(root.path().join("sub")).unwrap();
        fs::write(root.path().join("sub/a.md"), "").unwrap();
        let walk = list(root.path(), &[]);
        assert_eq!(walk.files.len(), count + 1);
        assert!(walk.files.windows(2).all(|pair| pair[0].path < pair[1].path));
    }

    #[test]
    fn too_deep_folders_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("d/".repeat(MAX_DEPTH + 2));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("lost.md"), "").unwrap();
        fs::write(root.path().join("a.md"), "").unwrap();
        let walk = list(root.path(), &[]);
        assert_eq!((names(&walk), walk.warnings.len()), (vec!["a.md".to_owned()], 1));
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let outside = vault("//- secret.md\n");
        let root = vault("//- a.md\n//- folder/b.md\n");
        let at = |name: &str| root.path().join(name);
        symlink("a.md", at("same.md")).unwrap();
        symlink("folder", at("same folder")).unwrap();
        symlink("none.md", at("broken.md")).unwrap();
        symlink("circle.md", at("circle.md")).unwrap();
        symlink("..", at("folder/up")).unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink(outside.path().join("secret.md"), at("out.md")).unwrap();
        let walk = list(root.path(), &[]);
        assert_eq!(names(&walk), ["a.md", "folder/b.md", "(same.md)"]);
        assert_eq!(
            odd(&walk),
            ["broken.md Symlink", "circle.md Symlink", "folder/up Symlink", "out Symlink", "out.md Symlink"]
        );
        assert!(walk.files[2].symlink);
        // Where nothing is indexed, there are no warnings.
        fs::write(at(".vaultignore"), "folder/\n").unwrap();
        let walk = list(root.path(), &[]);
        assert_eq!(names(&walk), ["a.md", "(folder/b.md)", "(same.md)"]);
        assert_eq!(odd(&walk), ["broken.md Symlink", "circle.md Symlink", "out Symlink", "out.md Symlink"]);
        // The vault itself may be reached through a link.
        let link = outside.path().join("link");
        symlink(root.path(), &link).unwrap();
        assert_eq!(names(&list(&link, &[])).len(), 3);
    }

    // Other systems reject such names, or normalise them.
    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_are_not_normal() {
        use std::os::unix::ffi::OsStrExt;
        let root = vault("");
        for name in
            [&b"line\nbreak.md"[..], b"bad\xff.md", b"bad\xfe.md", "e\u{301}.md".as_bytes(), "\u{e9}.md".as_bytes()]
        {
            fs::write(root.path().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
        }
        let walk = list(root.path(), &[]);
        assert_eq!(names(&walk), ["bad\u{fffd}.md", "line\nbreak.md", "\u{e9}.md"]);
        assert_eq!(odd(&walk), ["bad\u{fffd}.md NameClash", "\u{e9}.md NameClash"]);
        let disk: Vec<&[u8]> = walk.files.iter().map(|f| f.disk_path().as_os_str().as_bytes()).collect();
        assert_eq!(disk, [&b"bad\xfe.md"[..], b"line\nbreak.md", "\u{e9}.md".as_bytes()]);
        for file in &walk.files {
            let content = super::super::read_note(root.path(), file, 100).unwrap();
            assert_eq!(content.bytes, file.disk_path().as_os_str().as_bytes());
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_read_gives_a_warning_and_what_is_no_file_is_passed_over() {
        use std::os::unix::fs::PermissionsExt;
        let root = vault("//- a.md\n//- closed/b.md\n");
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket.md")).unwrap();
        assert_eq!(names(&list(root.path(), &[])), ["a.md", "closed/b.md"]);
        let closed = root.path().join("closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        // Permissions do not apply to the superuser, who can read everything.
        let binds = fs::read_dir(&closed).is_err();
        let walk = list(root.path(), &[]);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        if binds {
            assert_eq!((names(&walk), odd(&walk)), (vec!["a.md".to_owned()], vec!["closed Unreadable".to_owned()]));
        }
    }
}
