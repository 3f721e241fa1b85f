//! How tools, places and changes are shown in the editor. Text from notes and models is never sent as Markdown that a
//! client would interpret: it is in code spans, code blocks or the fields of a diff.

use std::path::{Path, PathBuf};

use serde_json::Value;
use vault_search::{sanitize_line, shortened};
use vault_tools::{FilePreview, Kind, Preview, Risk, SafePath};

use super::wire::{Diff, ToolCallContent, ToolCallLocation, ToolKind, location, text};
use crate::workspace::Workspace;

/// The maximum characters of an argument in a title, and of a text that a tool returned.
const LONGEST_ARGUMENT: usize = 100;
const LONGEST_TEXT: usize = 8_000;

/// The maximum number of places named for one call.
const MOST_PLACES: usize = 50;

/// The maximum total bytes of both texts of a diff. Above it, only the changed lines are sent.
const LONGEST_DIFF: usize = 512 * 1024;

/// The most informative arguments, in order of preference.
const TELLING: [&str; 7] = ["query", "path", "fromPath", "tags", "filePaths", "text", "prefix"];

/// The arguments that name notes.
const PATHS: [&str; 8] = ["path", "new_path", "fromPath", "toPath", "source_path", "target_path", "from", "to"];

/// The folders of the vaults by their names.
#[derive(Debug, Clone)]
pub(super) struct Places(Vec<(String, PathBuf)>);

impl Places {
    pub fn of(workspace: &Workspace) -> Self {
        Self(workspace.vaults().iter().map(|open| (open.name.clone(), open.vault.path().to_owned())).collect())
    }

    /// Returns the file of a note that a tool named. With several vaults, its path begins with the name of the vault.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        let (folder, below) = match &self.0[..] {
            [(_, folder)] => (folder, path),
            several => {
                let (vault, below) = path.split_once('/')?;
                (&several.iter().find(|(name, _)| name == vault)?.1, below)
            }
        };
        Some(folder.join(SafePath::new(below).ok()?.as_str()))
    }

    /// Returns the file of a note in the vault with this number.
    fn file_in(&self, vault: usize, path: &str) -> Option<PathBuf> {
        Some(self.0.get(vault)?.1.join(SafePath::new(path).ok()?.as_str()))
    }

    /// Returns the places in the arguments of a call.
    pub fn named_in(&self, arguments: &Value) -> Vec<ToolCallLocation> {
        let line = ["line", "start_line"].iter().find_map(|name| arguments.get(name)?.as_u64());
        let line = line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
        let paths = PATHS.iter().filter_map(|name| arguments.get(name)?.as_str());
        paths.filter_map(|path| Some(location(&self.file(path)?, line))).take(MOST_PLACES).collect()
    }

    /// Returns the places in the items of a result.
    pub fn found_in(&self, items: &[String]) -> Vec<ToolCallLocation> {
        let mut found: Vec<ToolCallLocation> = Vec::new();
        let values = items.iter().filter_map(|item| serde_json::Deserializer::from_str(item).into_iter().next()?.ok());
        for value in values.take(MOST_PLACES) {
            let value: Value = value;
            let line = ["line", "start_line"].iter().find_map(|name| value.get(name)?.as_u64());
            let line = line.and_then(|line| u32::try_from(line).ok());
            let file = value.get("path").and_then(Value::as_str).and_then(|path| self.file(path));
            let place = file.map(|file| location(&file, line));
            found.extend(place.filter(|place| !found.contains(place)));
        }
        found
    }

    /// Returns the places that a change of a vault touches.
    pub fn changed_by(&self, vault: usize, preview: &Preview) -> Vec<ToolCallLocation> {
        let files = preview.files.iter().filter_map(|file| Some((self.file_in(vault, &file.path)?, first_line(file))));
        files.map(|(file, line)| location(&file, line)).take(MOST_PLACES).collect()
    }

    /// Shows a change of a vault: a diff for each changed file, and a summary. It is never cut, whatever its length,
    /// because it is what the person approves.
    pub fn change(&self, vault: usize, preview: &Preview) -> Vec<ToolCallContent> {
        let mut content = vec![text(whole(&summary(preview)))];
        for file in &preview.files {
            let path = file.to.as_deref().filter(|_| file.kind == Kind::Renamed).unwrap_or(&file.path);
            let Some(diff) = &file.diff else { continue };
            let size = |content: &Option<vault_tools::Content>| content.as_ref().map_or(0, vault_tools::Content::len);
            let texts = |content: &Option<vault_tools::Content>| content.as_ref()?.text().map(str::to_owned);
            let is_short = size(&file.before) + size(&file.after) <= LONGEST_DIFF;
            // A file outside of the vault's paths cannot be opened in an editor, so its diff is shown as text.
            content.push(match self.file_in(vault, path).filter(|_| is_short) {
                Some(path) => {
                    Diff::new(path, texts(&file.after).unwrap_or_default()).old_text(texts(&file.before)).into()
                }
                None => text(whole(diff)),
            });
        }
        content
    }
}

/// Returns the first line that differs, from 1.
fn first_line(file: &FilePreview) -> Option<u32> {
    let before = file.before.as_ref().map_or(Some(""), vault_tools::Content::text)?;
    let after = file.after.as_ref()?.text()?;
    let same = before.lines().zip(after.lines()).take_while(|(before, after)| before == after).count();
    u32::try_from(same + 1).ok()
}

/// Summarizes a change, one line per file or folder.
fn summary(preview: &Preview) -> String {
    let mut lines = Vec::new();
    for folder in &preview.folders {
        let what = if folder.kind == Kind::Created { "create" } else { "remove" };
        lines.push(format!("{what} folder {}", sanitize_line(&folder.path)));
    }
    for FilePreview { kind, path, to, added, removed, .. } in &preview.files {
        let path = sanitize_line(path);
        let to = to.as_deref().map(sanitize_line);
        let lines_changed = if added + removed > 0 { format!(" (+{added} -{removed})") } else { String::new() };
        lines.push(match (kind, to) {
            (Kind::Created, _) => format!("create {path}{lines_changed}"),
            (Kind::Modified, _) => format!("modify {path}{lines_changed}"),
            (Kind::Renamed, to) => format!("rename {path} -> {}{lines_changed}", to.unwrap_or_default()),
            (Kind::Deleted, Some(to)) => format!("delete {path} -> {to}"),
            (Kind::Deleted, None) => format!("delete {path} for good"),
        });
    }
    lines.extend(preview.notices.iter().map(|notice| format!("note: {}", sanitize_line(notice))));
    if lines.is_empty() { "nothing changes".to_owned() } else { lines.join("\n") }
}

/// Returns the kind of a tool, from which the client chooses an icon.
pub(super) fn kind(tool: &str, risk: Option<Risk>) -> ToolKind {
    let says = |word: &str| tool.to_lowercase().contains(word);
    match risk {
        None => ToolKind::Other,
        Some(Risk::Read) if says("search") || says("list") || says("find") => ToolKind::Search,
        Some(Risk::Read) => ToolKind::Read,
        Some(Risk::Write) if says("rename") || says("move") => ToolKind::Move,
        Some(Risk::Write) => ToolKind::Edit,
        Some(Risk::Delete) => ToolKind::Delete,
        Some(Risk::Command) => ToolKind::Execute,
    }
}

/// Returns a one-line title of a call: the tool and its most informative argument.
pub(super) fn title(tool: &str, arguments: &Value) -> String {
    let argument = TELLING.iter().find_map(|name| arguments.get(name)).map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let tool = sanitize_line(tool);
    match argument {
        Some(argument) => format!("{tool} {}", code(&argument)),
        None => tool,
    }
}

/// Formats a text as a code span on one line.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", shortened(text, LONGEST_ARGUMENT).replace('`', "'"))
}

/// Formats a text as a code block that the text cannot end, cut if it is long.
pub(super) fn fenced(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST_TEXT).collect();
    let missing = text.chars().count().saturating_sub(LONGEST_TEXT);
    let more = if missing > 0 { format!("\n… ({missing} more characters)") } else { String::new() };
    whole(&format!("{}{more}", shown.trim_end_matches('\n')))
}

/// Formats a text as [`fenced`] does, but never cuts it, because a person approves it as a whole.
pub(super) fn whole(text: &str) -> String {
    let shown = vault_search::sanitize(text);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{}\n{fence}", shown.trim_end_matches('\n'))
}

/// Converts a file on the disk to the path of a note; `None` if it is outside of the vault.
pub(super) fn below(folder: &Path, file: &Path) -> Option<String> {
    let real = |path: &Path| path.canonicalize().ok();
    let below = file.strip_prefix(folder).map(Path::to_path_buf).ok();
    let below = below.or_else(|| real(file)?.strip_prefix(real(folder)?).map(Path::to_path_buf).ok())?;
    let names: Option<Vec<&str>> = below.components().map(|name| name.as_os_str().to_str()).collect();
    Some(names?.join("/")).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn places(names: &[&str]) -> Places {
        Places(names.iter().map(|name| ((*name).to_owned(), PathBuf::from("/v").join(name))).collect())
    }

    #[test]
    fn a_path_is_below_its_vault_or_nowhere() {
        let one = places(&["Notes"]);
        assert_eq!(one.file("a/b.md").unwrap(), Path::new("/v/Notes/a/b.md"));
        assert_eq!((one.file("../b.md"), one.file("/etc/passwd").filter(|file| !file.starts_with("/v"))), (None, None));
        let two = places(&["Home", "Work"]);
        assert_eq!(two.file("Work/b.md").unwrap(), Path::new("/v/Work/b.md"));
        assert_eq!((two.file("b.md"), two.file("Play/b.md"), two.file("Work/../../x")), (None, None, None));
    }

    #[test]
    fn places_come_from_arguments_and_results() {
        let one = places(&["Notes"]);
        let named = one.named_in(&json!({ "path": "a.md", "line": 7, "new_path": "b.md", "query": "c.md" }));
        assert_eq!(
            named,
            [location(Path::new("/v/Notes/a.md"), Some(7)), location(Path::new("/v/Notes/b.md"), Some(7))]
        );
        let items = [
            r#"{"path":"a.md","line":3,"text":"x"}"#,
            r#"{"path":"a.md","line":3}"#,
            "{\"path\":\"b.md\",\"version\":\"1\"}\n\nthe content",
            "note: the list was cut",
            "{",
        ];
        let found = one.found_in(&items.map(str::to_owned));
        assert_eq!(found, [location(Path::new("/v/Notes/a.md"), Some(3)), location(Path::new("/v/Notes/b.md"), None)]);
    }

    #[test]
    fn titles_and_blocks_hold_no_markdown_of_others() {
        let title = title("edit_note", &json!({ "path": "a`![x](https://evil.example)\n# b.md" }));
        assert_eq!(title, "edit_note `a'![x](https://evil.example) # b.md`");
        assert_eq!(fenced("a ```` b\n"), "`````\na ```` b\n`````");
        assert!(fenced(&"x".repeat(LONGEST_TEXT + 5)).contains("… (5 more characters)"));
    }

    proptest! {
        #[test]
        fn a_block_ends_only_where_we_end_it(text in "(`{1,6}|\n|[a-z ]|~~~){0,60}") {
            let block = fenced(&text);
            let fence = block.lines().next().unwrap();
            prop_assert!(fence.chars().all(|c| c == '`') && fence.len() >= 3);
            prop_assert_eq!(block.matches(fence).count(), 2, "{}", block);
        }
    }
}
