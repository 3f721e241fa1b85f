//! Exclusion rules: `.gitignore`, `.vaultignore`, `.vault.toml`, Obsidian's excluded files, `--exclude`.
//!
//! An excluded file is listed, so that links lead to it, but not indexed; an excluded folder excludes all files in it.
//! Files whose names begin with a dot are not even listed. Obsidian's filters match the start of a path, or are regular
//! expressions.
//!
//! `.vaultignore` is consulted before `.gitignore`, and its rules are final: for example, `!name/` brings back a folder
//! that git ignores. Within the files of either kind, as in git, a rule in a deeper folder overrides one further up,
//! and the last matching line of a file decides.
//!
//! Git's rules apply whether or not the vault is a repository. Ignore files above the vault, `.git/info/exclude` and
//! the user's global ones are not read, because the same vault must give the same index on every machine.
//!
//! Every walk reads all of these files again. An invalid line of an ignore file is skipped with a warning. An invalid
//! `.vault.toml` is an error, because the files that it was to exclude would be indexed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use regex::RegexSet;
use unicode_normalization::UnicodeNormalization;

use super::vault_toml::{VAULT_TOML, VaultToml};
use crate::error::{Error, ErrorKind, Result, Warning, WarningKind};
use crate::path::VaultPath;

/// The names of the ignore files: git's, and our own with the same syntax.
pub(super) const GIT_IGNORE: &str = ".gitignore";
/// See [`GIT_IGNORE`].
pub(super) const VAULT_IGNORE: &str = ".vaultignore";
/// Obsidian's folder, relative to the vault.
pub(super) const OBSIDIAN: &str = ".obsidian";
/// Obsidian's settings, relative to the vault.
pub(super) const APP_JSON: &str = ".obsidian/app.json";

/// Larger rule files are not read, because people do not write rules of that size by hand.
const MAX_RULE_BYTES: u64 = 1 << 20;

/// The ignore files of one folder, on top of those of its parent folders.
pub(super) struct Layer {
    outer: Option<Arc<Layer>>,
    git: Gitignore,
    vault: Gitignore,
}

impl Layer {
    /// Reads the ignore files of `folder` (relative to `root`); `has` says whether it has a `.gitignore` and a
    /// `.vaultignore`. Invalid lines are skipped with a warning.
    pub fn read(
        root: &Path,
        folder: &Path,
        has: [bool; 2],
        outer: Option<Arc<Layer>>,
        warnings: &mut Vec<(String, Warning)>,
    ) -> Self {
        let mut read = |has: bool, name: &str| {
            if has { ignore_file(root, &folder.join(name), warnings) } else { Gitignore::empty() }
        };
        let (git, vault) = (read(has[0], GIT_IGNORE), read(has[1], VAULT_IGNORE));
        Self { outer, git, vault }
    }

    fn first_match(&self, which: impl Fn(&Layer) -> &Gitignore, path: &Path, is_dir: bool) -> Option<bool> {
        let mut layers = std::iter::successors(Some(self), |layer| layer.outer.as_deref());
        layers.find_map(|layer| match which(layer).matched(path, is_dir) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        })
    }
}

/// The rules that apply to the whole vault.
pub(super) struct ExcludeRules {
    /// The user's globs and those of `.vault.toml`. They are separate, so that a `!` in one does not cancel a rule of
    /// the other.
    globs: [Gitignore; 2],
    obsidian: RegexSet,
}

impl ExcludeRules {
    /// Compiles `globs` (in the syntax of a `.gitignore` line), and reads `.vault.toml` and Obsidian's filters.
    ///
    /// # Errors
    /// `ErrorKind::Query` when a glob or `.vault.toml` is invalid. Obsidian's filters never fail: an invalid one is
    /// skipped with a warning.
    pub fn new(root: &Path, globs: &[String], warnings: &mut Vec<(String, Warning)>) -> Result<Self> {
        let file = root.join(VAULT_TOML);
        let own = VaultToml::read(&file)?.exclude;
        let globs = [compiled(globs)?, compiled(&own).map_err(|error| error.at(&file))?];
        Ok(Self { globs, obsidian: obsidian_filters(root, warnings) })
    }

    /// Whether a file is indexed. `disk` is relative to the root, as on disk; its folder must be indexed.
    pub fn indexes_file(&self, layer: Option<&Layer>, disk: &Path, path: &VaultPath) -> bool {
        self.indexes(layer, disk, false) && !self.obsidian.is_match(path.as_str())
    }

    /// Whether anything in a folder is indexed. Its parent folder must be indexed.
    pub fn indexes_folder(&self, layer: Option<&Layer>, disk: &Path) -> bool {
        self.indexes(layer, disk, true)
    }

    fn indexes(&self, layer: Option<&Layer>, disk: &Path, is_dir: bool) -> bool {
        let ignored = layer.is_some_and(|layer| {
            layer
                .first_match(|l| &l.vault, disk, is_dir)
                .or_else(|| layer.first_match(|l| &l.git, disk, is_dir))
                .unwrap_or(false)
        });
        !ignored && !self.globs.iter().any(|globs| globs.matched(disk, is_dir).is_ignore())
    }
}

/// The files that a vault excludes from its index, for callers that check one path after another, which need not exist.
/// The vault's rules are read when this is created; the ignore files of a folder, at the first question about it.
pub struct Exclusion {
    root: PathBuf,
    exclude: ExcludeRules,
    folders: Mutex<HashMap<PathBuf, FolderRules>>,
}

/// The rules of a folder, and whether the whole folder is excluded.
type FolderRules = (Option<Arc<Layer>>, bool);

impl Exclusion {
    /// Reads the rules of the vault at `root`; `globs` are the user's.
    ///
    /// # Errors
    /// When a glob or the `.vault.toml` is invalid.
    pub fn new(root: &Path, globs: &[String]) -> Result<Self> {
        let exclude = ExcludeRules::new(root, globs, &mut Vec::new())?;
        Ok(Self { root: root.to_owned(), exclude, folders: Mutex::default() })
    }

    /// Whether a file is excluded, by itself or through a folder that contains it.
    pub fn covers_file(&self, path: &VaultPath) -> bool {
        on_disk(path).iter().any(|disk| {
            let (layer, excluded) = self.folder(disk.parent().unwrap_or(Path::new("")));
            excluded || !self.exclude.indexes_file(layer.as_deref(), disk, path)
        })
    }

    /// Whether a whole folder is excluded.
    pub fn covers_folder(&self, path: &VaultPath) -> bool {
        let begins_with_it = format!("{path}/");
        self.exclude.obsidian.is_match(&begins_with_it) || on_disk(path).iter().any(|disk| self.folder(disk).1)
    }

    fn folder(&self, disk: &Path) -> FolderRules {
        if let Some(known) = self.folders.lock().unwrap_or_else(PoisonError::into_inner).get(disk) {
            return known.clone();
        }
        let (outer, excluded) = match disk.parent() {
            Some(parent) => {
                let (layer, excluded) = self.folder(parent);
                let excluded = excluded || !self.exclude.indexes_folder(layer.as_deref(), disk);
                (layer, excluded)
            }
            None => (None, false),
        };
        let is_file = |name| fs::symlink_metadata(self.root.join(disk).join(name)).is_ok_and(|file| file.is_file());
        let has = [GIT_IGNORE, VAULT_IGNORE].map(is_file);
        let layer = match has {
            [false, false] => outer,
            _ => Some(Arc::new(Layer::read(&self.root, disk, has, outer, &mut Vec::new()))),
        };
        let asked = (layer, excluded);
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(disk.to_owned(), asked.clone());
        asked
    }
}

/// The ways in which a path may be written on disk, which rules may match.
fn on_disk(path: &VaultPath) -> Vec<PathBuf> {
    let mut ways = vec![PathBuf::from(path.as_str())];
    if !path.as_str().is_ascii() {
        ways.push(path.as_str().nfd().collect::<String>().into());
    }
    ways
}

/// Checks that `globs` are valid.
///
/// # Errors
/// `ErrorKind::Query` with the first invalid one.
pub fn check_globs(globs: &[String]) -> Result<()> {
    compiled(globs).map(drop)
}

fn compiled(globs: &[String]) -> Result<Gitignore> {
    let bad = |glob: &str, error: ignore::Error| {
        Error::new(ErrorKind::Query, format!("the glob `{glob}` is invalid"))
            .because(error)
            .with_remedy("globs are written as in .gitignore, such as `drafts/` or `*.tmp.md`")
    };
    let mut builder = GitignoreBuilder::new("");
    // Otherwise an unclosed `[` would match nothing, and the files that it was to exclude would be indexed.
    builder.allow_unclosed_class(false);
    for glob in globs {
        builder.add_line(None, glob).map_err(|e| bad(glob, e))?;
    }
    builder.build().map_err(|e| bad(&globs.join(", "), e))
}

fn ignore_file(root: &Path, file: &Path, warnings: &mut Vec<(String, Warning)>) -> Gitignore {
    let Some(text) = rule_text(root, file, warnings) else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(file.parent().unwrap_or(Path::new("")));
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if let Err(error) = builder.add_line(None, &without_alternatives(line)) {
            let warning =
                Warning::new(WarningKind::Unreadable, format!("this line is invalid and is ignored: {error}"));
            warnings.push((lossy(file), warning.on_line(u32::try_from(index + 1).unwrap_or(u32::MAX))));
        }
    }
    builder.build().unwrap_or_else(|error| {
        let message = format!("these rules are too large and are ignored: {error}");
        warnings.push((lossy(file), Warning::new(WarningKind::Unreadable, message)));
        Gitignore::empty()
    })
}

/// A line in which `{a,b}` is literal, as it is in git; the matcher would read it as a or b.
fn without_alternatives(line: &str) -> Cow<'_, str> {
    if !line.contains(['{', '}']) {
        return line.into();
    }
    let (mut text, mut escaped) = (String::with_capacity(line.len() + 4), false);
    for c in line.chars() {
        if matches!(c, '{' | '}') && !escaped {
            text.push('\\');
        }
        escaped = c == '\\' && !escaped;
        text.push(c);
    }
    text.into()
}

/// Reads `userIgnoreFilters`: `/…/` is a regular expression that is searched anywhere in the path. Any other filter is
/// a literal prefix of the path; for example, `Arch` covers `Archive/a.md`. Both ignore case.
fn obsidian_filters(root: &Path, warnings: &mut Vec<(String, Warning)>) -> RegexSet {
    let file = Path::new(APP_JSON);
    // It may be behind a symbolic link, because people share settings between vaults.
    if !fs::metadata(root.join(file)).is_ok_and(|m| m.is_file()) {
        return RegexSet::empty();
    }
    let Some(text) = rule_text(root, file, warnings) else { return RegexSet::empty() };
    let mut warn = |message: String| {
        warnings.push((APP_JSON.to_owned(), Warning::new(WarningKind::Unreadable, message)));
    };
    let settings: serde_json::Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(settings) => settings,
        Err(error) => {
            warn(format!("not valid JSON, so Obsidian's excluded files are ignored: {error}"));
            return RegexSet::empty();
        }
    };
    let mut patterns = Vec::new();
    for filter in settings["userIgnoreFilters"].as_array().into_iter().flatten().filter_map(|f| f.as_str()) {
        let expression = filter.strip_prefix('/').and_then(|f| f.strip_suffix('/'));
        let pattern = match expression {
            Some("") => continue,
            Some(expression) => format!("(?i){expression}"),
            None if filter.is_empty() || filter == "/" => continue,
            None => {
                format!("(?i)^{}", regex::escape(&filter.nfc().collect::<String>()))
            }
        };
        match regex::Regex::new(&pattern) {
            Ok(_) => patterns.push(pattern),
            Err(_) => warn(format!("the excluded-files filter `{filter}` is invalid and is ignored")),
        }
    }
    RegexSet::new(&patterns).unwrap_or_else(|error| {
        warn(format!("Obsidian's excluded-files filters are too large and are ignored: {error}"));
        RegexSet::empty()
    })
}

/// Returns the text of a file of rules. `None` if the file does not exist, or, with a warning, if it cannot be read.
fn rule_text(root: &Path, file: &Path, warnings: &mut Vec<(String, Warning)>) -> Option<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        fs::File::open(root.join(file))?.take(MAX_RULE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let message = match read() {
        Ok(bytes) if bytes.len() as u64 <= MAX_RULE_BYTES => {
            return Some(
                String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
            );
        }
        Ok(_) => format!("over {MAX_RULE_BYTES} bytes; its rules are ignored"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => format!("cannot be read, so its rules are ignored: {error}"),
    };
    warnings.push((lossy(file), Warning::new(WarningKind::Unreadable, message)));
    None
}

/// A relative path as text for people, `/`-separated.
pub(super) fn lossy(relative: &Path) -> String {
    VaultPath::from_disk(relative).map_or_else(String::new, |path| path.as_str().to_owned())
}
