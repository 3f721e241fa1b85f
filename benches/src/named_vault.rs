//! Generates a vault whose notes have names that occur in many other notes: the hardest case for a search by name.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;

use crate::random::Random;
use crate::words::learn;

/// The maximum number of words of a name.
const LONGEST: usize = 4;
/// The minimum number of other notes whose text contains a name.
const HOLDERS: usize = 20;
/// The average number of bytes of a note.
const BYTES: usize = 320;

/// Writes the notes into `folder`, which is created. The name of each is a phrase of one to four words that is in the
/// text of at least twenty others. Notes with an odd number have their name as title instead, and their file is
/// `index.md`. One in a hundred has the same name as another note.
///
/// # Errors
/// If a file cannot be read or written, or the texts have too few phrases.
pub fn make_named_vault(folder: &Path, source: &Path, notes: usize, seed: u64) -> io::Result<()> {
    let chain = learn(source)?;
    let mut random = Random(seed);
    let mut texts = Vec::with_capacity(notes);
    for _ in 0..notes {
        let length = random.length(BYTES).max(40);
        let mut text = String::new();
        while text.len() < length {
            chain.sentence(&mut random, &mut text);
            text.push(if random.below(6) == 0 { '\n' } else { ' ' });
        }
        texts.push(text);
    }
    let mut names = phrases(&texts);
    // A Fisher–Yates shuffle.
    for at in (1..names.len()).rev() {
        names.swap(at, random.below(at + 1));
    }
    if names.len() < notes {
        return Err(io::Error::other(format!("{} phrases for {notes} notes", names.len())));
    }
    for (at, text) in texts.iter().enumerate() {
        let name = &names[if at % 100 == 99 { at - 1 } else { at }];
        let place = folder.join(format!("{:03}", at / 100));
        std::fs::create_dir_all(&place)?;
        match at % 2 {
            0 => std::fs::write(place.join(format!("{name}.md")), text)?,
            _ => {
                let own = place.join(at.to_string());
                std::fs::create_dir_all(&own)?;
                std::fs::write(own.join("index.md"), format!("# {name}\n\n{text}"))?;
            }
        }
    }
    Ok(())
}

/// Returns the phrases that enough texts contain, without duplicates, capitalized and in alphabetical order.
fn phrases(texts: &[String]) -> Vec<String> {
    let mut holders: BTreeMap<String, usize> = BTreeMap::new();
    for text in texts {
        let mut found = HashSet::new();
        for sentence in text.split(['.', ',', ';', '\n']) {
            let words: Vec<String> = sentence.split_whitespace().map(str::to_lowercase).collect();
            let phrases = (1..=LONGEST).flat_map(|length| words.windows(length));
            found.extend(phrases.filter(|words| words.iter().all(|word| is_plain(word))).map(|words| words.join(" ")));
        }
        for phrase in found {
            *holders.entry(phrase).or_default() += 1;
        }
    }
    let common = holders.into_iter().filter(|(phrase, count)| *count > HOLDERS && phrase.len() >= 3);
    common.map(|(phrase, _)| phrase[..1].to_uppercase() + &phrase[1..]).collect()
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::notes_in;
    use crate::words::demo_vault;

    #[test]
    fn a_name_stands_in_many_other_notes() {
        let folder = tempfile::tempdir().unwrap();
        // With fewer notes, there would be fewer phrases than notes.
        let make = |name: &str| -> Vec<(String, String)> {
            let vault = folder.path().join(name);
            make_named_vault(&vault, &demo_vault(), 2500, 1).unwrap();
            let notes = notes_in(&vault).unwrap();
            let text = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap().to_lowercase();
            notes.iter().map(|path| (path.file_stem().unwrap().to_string_lossy().to_lowercase(), text(path))).collect()
        };
        let notes = make("a");
        assert!(notes.len() == 2500 && notes == make("b"));
        for (name, _) in notes.iter().filter(|(name, _)| name != "index").step_by(25) {
            assert!(notes.iter().filter(|(_, text)| text.contains(name)).count() >= HOLDERS, "{name}");
        }
    }
}
