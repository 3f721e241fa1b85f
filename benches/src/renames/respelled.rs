//! The differences after renames forth and back: only links that were not spelled like their file's name may differ.

use vault_index::links::{Names, ranked};
use vault_index::note::{Link, ParseOptions, parse};
use vault_index::{FileId, FileKind, VaultPath};

use super::tree::Tree;

/// A link whose spelling has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respelled {
    /// The note.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The link before the renames.
    pub before: String,
    /// The link after the renames.
    pub after: String,
    /// How its spelling differed from the exact name of its file.
    pub why: &'static str,
}

/// The facts on which the spelling of links depends.
struct Spelled {
    names: Names,
    /// Whether new links are relative, by Obsidian's setting. Then a name counts as a relative path.
    is_relative: bool,
}

fn is_relative(tree: &Tree) -> bool {
    let settings = tree.0.get(".obsidian/app.json").and_then(|bytes| bytes.as_deref());
    let settings = settings.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok());
    settings.is_some_and(|settings| settings["newLinkFormat"] == "relative")
}

/// Returns the links that differ between two trees with the same files.
///
/// # Errors
/// Anything else that differs, and a link that differs without a reason.
pub fn respelled(before: &Tree, after: &Tree) -> Result<Vec<Respelled>, String> {
    let names: Names =
        (0..).zip(before.files()).filter_map(|(id, (path, _))| Some((FileId(id), VaultPath::new(path)?))).collect();
    let mut found = Vec::new();
    let vault = Spelled { names, is_relative: is_relative(before) };
    for path in before.differences(after) {
        let (Some(Some(old)), Some(Some(new))) = (before.0.get(path), after.0.get(path)) else {
            // A folder that a rename created remains when the note leaves it.
            if matches!((before.0.get(path), after.0.get(path)), (None, Some(None))) {
                continue;
            }
            return Err(format!("{path} is on one side only"));
        };
        let note = VaultPath::new(path).filter(|path| path.kind().is_note()).ok_or(format!("{path} differs"))?;
        of_note(&note, old, new, &vault, &mut found)?;
    }
    Ok(found)
}

fn of_note(
    note: &VaultPath,
    old: &[u8],
    new: &[u8],
    vault: &Spelled,
    found: &mut Vec<Respelled>,
) -> Result<(), String> {
    let links = |bytes: &[u8]| parse(note, bytes, &ParseOptions::default()).links;
    let (was, now) = (links(old), links(new));
    if was.len() != now.len() {
        return Err(format!("{note} has {} links instead of {}", now.len(), was.len()));
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let pairs: Vec<(&Link, &Link)> = was.iter().zip(&now).collect();
    let expected = match note.kind() {
        FileKind::Canvas => in_canvas(&old, &pairs),
        _ => in_text(&old, &pairs),
    };
    if !is_same_but_definitions(&expected, &new) {
        return Err(format!("{note} differs in more than the paths of links"));
    }
    for (was, now) in pairs.iter().filter(|(was, now)| was.raw != now.raw || was.path != now.path) {
        let lead = |link: &Link| ranked(&vault.names, &link.path, note).first().and_then(|id| vault.names.path(*id));
        let target = lead(was);
        if target != lead(now) || was.subpath != now.subpath {
            return Err(format!("{note}:{}: {} became {}, which is another link", was.line, was.raw, now.raw));
        }
        let why = target.and_then(|target| why(was, now, note, target, vault));
        let Some(why) = why else {
            return Err(format!("{note}:{}: {} became {} for no reason", was.line, was.raw, now.raw));
        };
        let shown = |link: &Link| if was.raw == now.raw { link.path.clone() } else { link.raw.clone() };
        let (before, after) = (shown(was), shown(now));
        found.push(Respelled { path: note.to_string(), line: was.line, before, after, why });
    }
    Ok(())
}

/// Returns a text with each link in its new spelling. Links in the text of other links are replaced with them.
fn in_text(old: &str, pairs: &[(&Link, &Link)]) -> String {
    let (mut text, mut at) = (String::new(), 0);
    for (was, now) in pairs {
        if was.span.start >= at {
            text += &old[at..was.span.start];
            text += &now.raw;
            at = was.span.end;
        }
    }
    text + &old[at..]
}

/// Returns the same for JSON, whose strings contain the links.
fn in_canvas(old: &str, pairs: &[(&Link, &Link)]) -> String {
    let inner = |raw: &str| {
        let json = serde_json::Value::from(raw).to_string();
        json[1..json.len() - 1].to_owned()
    };
    pairs
        .iter()
        .filter(|(was, now)| was.raw != now.raw)
        .fold(old.to_owned(), |text, (was, now)| text.replacen(&inner(&was.raw), &inner(&now.raw), 1))
}

/// Whether all lines are equal, except for the targets in lines that define `[text][label]` links.
fn is_same_but_definitions(expected: &str, found: &str) -> bool {
    let label = |line: &str| {
        let line = line.trim_start_matches([' ', '>', '\t']);
        line.starts_with('[').then(|| line.find("]:").map(|end| line[..end].to_owned())).flatten()
    };
    let same = |(a, b): (&str, &str)| a == b || (label(a).is_some() && label(a) == label(b));
    let (a, b) = (expected.split_inclusive('\n'), found.split_inclusive('\n'));
    expected == found || (a.clone().count() == b.clone().count() && a.zip(b).all(same))
}

/// Returns how the spelling of a link was not exact; `None` if it was exact.
fn why(was: &Link, now: &Link, source: &VaultPath, target: &VaultPath, vault: &Spelled) -> Option<&'static str> {
    if was.path == now.path {
        return Some("it was encoded otherwise");
    }
    let exact = spellings(source, target);
    let lower = was.path.to_lowercase();
    if exact.contains(&was.path) {
        return match was.path.contains('/') {
            false if ranked(&vault.names, &was.path, source).len() > 1 => Some("several files bear the name"),
            false if vault.is_relative => Some("a name in a vault of relative links"),
            _ => None,
        };
    }
    let is_case = exact.iter().any(|exact| exact.to_lowercase() == lower);
    Some(if is_case { "upper and lower case" } else { "a path in part, or with a detour" })
}

/// Returns all ways to write the exact name or path of a file.
fn spellings(source: &VaultPath, target: &VaultPath) -> Vec<String> {
    let up = source.folder().split('/').filter(|name| !name.is_empty()).count();
    let mut ways = vec![target.to_string(), format!("/{target}"), target.file_name().to_owned()];
    for steps in 0..=up {
        let folder: Vec<&str> = source.folder().split('/').filter(|name| !name.is_empty()).take(up - steps).collect();
        let folder = folder.iter().map(|name| format!("{name}/")).collect::<String>();
        if let Some(rest) = target.as_str().strip_prefix(&folder) {
            ways.push("../".repeat(steps) + rest);
            // Only from the nearest common folder, because any other path would have a detour.
            break;
        }
    }
    let stems: Vec<String> = ways.iter().filter_map(|way| way.strip_suffix(".md")).map(str::to_owned).collect();
    ways.extend(stems);
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        let files = [("s.md", text), ("f/Soil.md", ""), ("g/Twin.md", ""), ("f/Twin.md", "")];
        Tree(files.iter().map(|(path, text)| (path.to_string(), Some(text.as_bytes().to_vec()))).collect())
    }

    fn check(before: &str, after: &str, expected: Result<&[&str], &str>) {
        let found = respelled(&tree(before), &tree(after));
        match expected {
            Ok(expected) => {
                let found: Vec<&str> = found.unwrap().iter().map(|link| link.why).collect();
                assert_eq!(found, expected, "{before} -> {after}");
            }
            Err(expected) => {
                let error = found.expect_err(after);
                assert!(error.contains(expected), "{before} -> {after}: {error}");
            }
        }
    }

    #[test]
    fn a_link_may_be_respelled_for_a_reason() {
        check("x [[soil|y]] z", "x [[Soil|y]] z", Ok(&["upper and lower case"]));
        check("[[./f/Soil]]", "[[f/Soil]]", Ok(&["a path in part, or with a detour"]));
        check("[[Twin]]", "[[f/Twin]]", Ok(&["several files bear the name"]));
        check("[x](Soil%2Emd)", "[x](Soil.md)", Ok(&["it was encoded otherwise"]));
        check("[x][y]\n\n[y]: soil\n", "[x][y]\n\n[y]: Soil\n", Ok(&["upper and lower case"]));
        check("[[Soil]]", "[[Soil]]", Ok(&[]));
    }

    #[test]
    fn nothing_else_may_differ() {
        check("[[Soil]]", "[[f/Soil]]", Err("for no reason"));
        check("[[soil]] x", "[[Soil]] y", Err("more than the paths"));
        check("[[soil]]", "[[Soil]]\n", Err("more than the paths"));
        check("[[soil]]", "[[f/Twin]]", Err("another link"));
        check("[[soil#a]]", "[[Soil#b]]", Err("another link"));
        check("[[soil]]", "", Err("0 links instead of 1"));
    }
}
