//! What a note is renamed to: names with spaces and accents, in other folders, some deep, some made for it; names that
//! dangling links want; and names that another note bears.

use std::collections::BTreeSet;

use vault_index::VaultPath;
use vault_tools::SafePath;

use crate::random::Random;

/// What is special about a new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is new, in a folder that is there.
    There,
    /// In a folder that is made.
    New,
    /// In a folder in a folder in a folder.
    Deep,
    /// A link that leads nowhere wants it.
    Wanted,
    /// A note in another folder bears it.
    Shared,
}

/// The kinds in their turn.
pub const ALL: [Kind; 5] = [Kind::There, Kind::Wanted, Kind::New, Kind::Shared, Kind::Deep];
/// Those after which a rename back leaves nothing.
pub const PLAIN: [Kind; 3] = [Kind::There, Kind::New, Kind::Deep];

const WORDS: [&str; 8] =
    ["Été", "naïve plan", "Übersicht (alt)", "日本 notes", "it's here", "a & b", "Ångström", "50% done"];

/// What there is to choose from.
pub struct Choice<'a> {
    pub files: &'a BTreeSet<String>,
    pub folders: &'a [String],
    pub dangling: &'a [&'a str],
}

/// Where a note may go; `None` if nothing of that kind is to be had.
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

/// The path of the note that a dangling link wants.
fn wanted(link: &str, ending: &str) -> Option<String> {
    let has_ending = link.to_lowercase().ends_with(".md");
    let is_way = link.is_empty() || link.contains("..") || link.starts_with(['/', '.']) || link.ends_with('/');
    let name = link.rsplit('/').next()?;
    // Another file than a note is wanted.
    let is_file = !has_ending && name.contains('.');
    if is_way || is_file || ending != "md" {
        return None;
    }
    Some(if has_ending { link.to_owned() } else { format!("{link}.md") })
}
