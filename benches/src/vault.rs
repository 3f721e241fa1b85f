//! A generator of vaults: notes of realistic lengths, links, tags, headings and duplicates, seeded.
//!
//! Words follow a chain of pairs learned from the demo vault's notes, so that word frequencies, sentence lengths and
//! tokens per word are those of real notes. Lengths are log-normal around the mean asked for.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// What a vault is to be like.
#[derive(Debug, Clone)]
pub struct VaultPlan {
    /// How many notes.
    pub notes: usize,
    /// Bytes of a note, on average.
    pub bytes: usize,
    /// Links a note, on average; one in twenty leads nowhere.
    pub links: usize,
    /// The same seed and plan give the same vault.
    pub seed: u64,
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough for choosing words.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-normal with the given mean and sigma 0.6.
    fn length(&mut self, mean: usize) -> usize {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        (mean as f64 * (0.6 * normal - 0.18).exp()) as usize
    }
}

/// Writes the vault into `folder`, which is made. `source` is the vault whose words are learned.
///
/// # Errors
/// When a file cannot be read or written, or the source has no words.
pub fn make_vault(folder: &Path, source: &Path, plan: &VaultPlan) -> io::Result<()> {
    let chain = learn(source)?;
    if chain.starts.is_empty() {
        return Err(io::Error::other(format!("{}: no words to learn from", source.display())));
    }
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
        // One note in fifty is a copy of the one before.
        if n == 0 || random.below(50) != 0 {
            last = note(&chain, &mut random, title, &titles, plan);
        }
        std::fs::write(path, &last)?;
    }
    Ok(())
}

struct Chain {
    starts: Vec<String>,
    next: HashMap<String, Vec<String>>,
}

fn learn(source: &Path) -> io::Result<Chain> {
    let mut texts = BTreeMap::new();
    let mut folders = vec![source.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                texts.insert(path.clone(), std::fs::read_to_string(path)?);
            }
        }
    }
    let mut chain = Chain { starts: Vec::new(), next: HashMap::new() };
    for text in texts.values() {
        let mut before: Option<&str> = None;
        for word in text.split_whitespace().filter(|w| w.chars().all(|c| c.is_alphabetic() || "',.;".contains(c))) {
            match before {
                Some(before) if !before.ends_with('.') => {
                    chain.next.entry(before.to_string()).or_default().push(word.to_string());
                }
                _ => chain.starts.push(word.to_string()),
            }
            before = Some(word);
        }
    }
    Ok(chain)
}

impl Chain {
    fn sentence(&self, random: &mut Random, out: &mut String) {
        let mut word = &self.starts[random.below(self.starts.len())];
        for _ in 0..24 {
            out.push_str(word);
            let Some(next) = self.next.get(word).filter(|_| !word.ends_with('.')) else { break };
            out.push(' ');
            word = &next[random.below(next.len())];
        }
        if !out.ends_with('.') {
            out.push('.');
        }
    }
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
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_vault() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/vaults/demo");
        let folder = std::env::temp_dir().join(format!("make-vault-{}", std::process::id()));
        let plan = VaultPlan { notes: 60, bytes: 700, links: 4, seed: 1 };
        let read = |name: &str| {
            let folder = folder.join(name);
            make_vault(&folder, &source, &plan).unwrap();
            learned_files(&folder)
        };
        let (a, b) = (read("a"), read("b"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(a.len(), 60);
        assert_eq!(a, b);
        assert!(a.values().any(|text| text.contains("[[")));
    }

    fn learned_files(folder: &Path) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    files.insert(name, std::fs::read_to_string(path).unwrap());
                }
            }
        }
        files
    }
}
