//! The new names of notes for renames.
//!
//! They are names with spaces and accents in other folders, some of them deep or new; names that unresolved links have;
//! and names of other notes.

use std::collections::BTreeSet;

use vault_index::VaultPath;
use vault_tools::SafePath;

use crate::random::Random;

/// The kind of a new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A new name in an existing folder.
    There,
    /// A name in a new folder.
    New,
    /// A name in a folder at depth 3.
    Deep,
    /// The name of an unresolved link.
    Wanted,
    /// The name of a note in another folder.
    Shared,
}

/// The kinds in the order in which they take turns.
pub const ALL: [Kind; 5] = [Kind::There, Kind::Wanted, Kind::New, Kind::Shared, Kind::Deep];
/// The kinds after which a rename back restores everything.
pub const PLAIN: [Kind; 3] = [Kind::There, Kind::New, Kind::Deep];

const WORDS: [&str; 8] =
    ["Été", "naïve plan", "Übersicht (alt)", "日本 notes", "it's here", "a & b", "Ångström", "50% done"];

/// The folders, links and names to choose from.
pub struct Choice<'a> {
    pub files: &'a BTreeSet<String>,
    pub folders: &'a [String],
    pub dangling: &'a [&'a str],
}

/// Returns a new path for a note; `None` if there is no name of this kind.
pub fn new_path(random: &mut Random, kind: Kind, number: usize, note: &str, choice: &Choice<'_>) -> Option<String> {
    let note = VaultPath::new(note)?;
    let ending = note.extension()?.to_owned();
    let word = WORDS[random.below(WORDS.len())];
    let fresh = format!("{word} {number}.{ending}");
    let others: Vec<&String> = choice.folders.iter().filter(|folder| *folder != note.folder()).collect();
    let some = if others.is_empty() { None } else { Some(others[random.below(others.len())].as_str()) };
    let inside =
        |folder: &str, name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let path = match kind {
        Kind::There => inside(some?, &fresh),
        Kind::New => inside(&format!("New folder {}", number % 7), &fresh),
        Kind::Deep => inside(&format!("{}/très loin/{} b/c", some.unwrap_or("Z"), number % 5), &fresh),
        Kind::Wanted => {
            let wanted: Vec<String> = choice.dangling.iter().filter_map(|link| wanted(link, &ending)).collect();
            let wanted = wanted.get(random.below(wanted.len()))?;
            if wanted.contains('/') { wanted.clone() } else { inside(some?, wanted) }
        }
        Kind::Shared => {
            let same = |file: &&String| file.ends_with(&format!(".{ending}")) && **file != note.as_str();
            let notes: Vec<&String> = choice.files.iter().filter(same).collect();
            let other = VaultPath::new(notes.get(random.below(notes.len()))?)?;
            inside(some.filter(|folder| *folder != other.folder())?, other.file_name())
        }
    };
    let safe = SafePath::new(path.trim_start_matches('/')).ok()?;
    let is_free = choice.files.iter().all(|file| file.to_lowercase() != safe.as_str().to_lowercase());
    (safe.check_new().is_ok() && is_free).then(|| safe.as_str().to_owned())
}

/// Returns the path of the note that would resolve an unresolved link.
fn wanted(link: &str, ending: &str) -> Option<String> {
    let has_ending = link.to_lowercase().ends_with(".md");
    let is_way = link.is_empty() || link.contains("..") || link.starts_with(['/', '.']) || link.ends_with('/');
    let name = link.rsplit('/').next()?;
    // The link is to a file that is not a note.
    let is_file = !has_ending && name.contains('.');
    if is_way || is_file || ending != "md" {
        return None;
    }
    Some(if has_ending { link.to_owned() } else { format!("{link}.md") })
}
