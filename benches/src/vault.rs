//! A generator of vaults: notes of realistic lengths, links, tags, headings and duplicates, seeded.
//!
//! Words follow a Markov chain of word pairs from the notes of the demo vault, so that word frequencies, sentence
//! lengths and tokens per word are realistic. Lengths are log-normal around the requested mean.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::random::Random;
use crate::words::{Chain, learn};

/// The plan of a vault.
#[derive(Debug, Clone)]
pub struct VaultPlan {
    /// The number of notes.
    pub notes: usize,
    /// The average number of bytes of a note.
    pub bytes: usize,
    /// The average number of links of a note. One in twenty is unresolved.
    pub links: usize,
    /// The seed. The same seed and plan give the same vault.
    pub seed: u64,
}

/// Writes the vault into `folder`, which is created. `source` is the vault whose words are learned.
///
/// # Errors
/// If a file cannot be read or written, or the source has no words.
pub fn make_vault(folder: &Path, source: &Path, plan: &VaultPlan) -> io::Result<()> {
    let chain = learn(source)?;
    let mut random = Random(plan.seed);
    let titles: Vec<String> = (0..plan.notes).map(|n| title(&chain, &mut random, n)).collect();
    let folders = (plan.notes / 50).max(1);
    for n in 0..folders {
        std::fs::create_dir_all(folder.join(format!("area {}/topic {n}", n % 12)))?;
    }
    let mut last = String::new();
    for (n, title) in titles.iter().enumerate() {
        let place = random.below(folders);
        let path = folder.join(format!("area {}/topic {place}/{title}.md", place % 12));
        // One note in fifty is a copy of the previous one.
        if n == 0 || random.below(50) != 0 {
            last = note(&chain, &mut random, title, &titles, plan);
        }
        std::fs::write(path, &last)?;
    }
    Ok(())
}

fn title(chain: &Chain, random: &mut Random, n: usize) -> String {
    let mut words = String::new();
    for _ in 0..2 {
        let word = &chain.starts[random.below(chain.starts.len())];
        words.extend(word.chars().filter(|c| c.is_alphabetic()));
        words.push(' ');
    }
    format!("{words}{n}")
}

fn note(chain: &Chain, random: &mut Random, title: &str, titles: &[String], plan: &VaultPlan) -> String {
    let mut text = String::new();
    if random.below(3) == 0 {
        let _ = write!(text, "---\ntags: [area/{}]\nrating: {}\n---\n", random.below(30), random.below(6));
    }
    if random.below(2) == 0 {
        let _ = write!(text, "# {title}\n\n");
    }
    let length = random.length(plan.bytes).max(40);
    let every = (length / plan.links.max(1)).max(1);
    let mut linked = 0;
    while text.len() < length {
        chain.sentence(random, &mut text);
        if plan.links > 0 && text.len() / every > linked {
            linked += 1;
            match random.below(20) {
                0 => drop(write!(text, " [[Not yet {}]]", random.below(500))),
                1 => drop(write!(text, " ![[{}]]", titles[random.below(titles.len())])),
                _ => drop(write!(text, " [[{}]]", titles[random.below(titles.len())])),
            }
        }
        match random.below(9) {
            0 => {
                text.push_str("\n\n## ");
                let word = &chain.starts[random.below(chain.starts.len())];
                text.push_str(word);
                text.push_str("\n\n");
            }
            1 => text.push_str("\n- "),
            2 => text.push_str("\n\n"),
            3 => drop(write!(text, " #topic/{} ", random.below(200))),
            _ => text.push(' '),
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::notes::notes_in;
    use crate::words::demo_vault;

    #[test]
    fn the_same_seed_gives_the_same_vault() {
        let folder = std::env::temp_dir().join(format!("make-vault-{}", std::process::id()));
        let plan = VaultPlan { notes: 60, bytes: 700, links: 4, seed: 1 };
        let make = |name: &str| {
            let folder = folder.join(name);
            make_vault(&folder, &demo_vault(), &plan).unwrap();
            files(&folder)
        };
        let (a, b) = (make("a"), make("b"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(a.len(), 60);
        assert_eq!(a, b);
        assert!(a.values().any(|text| text.contains("[[")));
    }

    /// Every note's text by the note's name.
    fn files(folder: &Path) -> BTreeMap<String, String> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let notes = notes_in(folder).unwrap().into_iter();
        notes.map(|path| (name(&path), std::fs::read_to_string(path).unwrap())).collect()
    }
}
