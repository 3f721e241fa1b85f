//! English words -> stems, cached: the stemmer is slow and words repeat.

use rust_stemmers::{Algorithm, Stemmer};

/// Longer words are not cached.
const WORD: usize = 20;
/// The most letters a stem has after those it shares with its word: `dying`, `die`.
const ENDING: usize = 3;
/// A power of two. In scientific abstracts, 95 % of the words are found in the cache.
const SLOTS: usize = 1 << 15;

/// A cached word: the word, how many of its letters the stem keeps, and the letters that follow
/// those, padded with zeros; all zeros if free. Plain bytes, so that a new table costs no writes.
type Slot = [u8; WORD + 1 + ENDING];

/// The stemmer and its cache, with two slots for each hash: the most recent word and the one before it.
pub(super) struct Stems {
    stemmer: Stemmer,
    slots: Vec<Slot>,
    stem: String,
}

impl Stems {
    /// With an empty cache.
    pub(super) fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            slots: vec![[0; WORD + 1 + ENDING]; SLOTS],
            stem: String::new(),
        }
    }

    /// The stem of a word of `a-z`; a word of up to two letters is its own stem.
    pub(super) fn stem<'a>(&'a mut self, word: &'a str) -> &'a str {
        if word.len() <= 2 {
            return word;
        }
        if word.len() > WORD {
            self.stem.clear();
            self.stem.push_str(&self.stemmer.stem(word));
            return &self.stem;
        }
        let mut key = [0; WORD];
        key[..word.len()].copy_from_slice(word.as_bytes());
        let first = slot_of(&key);
        let slot = if self.slots[first][..WORD] == key {
            self.slots[first]
        } else if self.slots[first + 1][..WORD] == key {
            self.slots.swap(first, first + 1);
            self.slots[first]
        } else {
            let stem = self.stemmer.stem(word);
            let kept = word.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b).count();
            let ending = &stem.as_bytes()[kept..];
            if ending.len() > ENDING {
                self.stem.clear();
                self.stem.push_str(&stem);
                return &self.stem;
            }
            let mut slot = [0; WORD + 1 + ENDING];
            slot[..WORD].copy_from_slice(&key);
            slot[WORD] = kept as u8;
            slot[WORD + 1..][..ending.len()].copy_from_slice(ending);
            self.slots[first + 1] = self.slots[first];
            self.slots[first] = slot;
            slot
        };
        let kept = &word[..usize::from(slot[WORD])];
        let ending = &slot[WORD + 1..];
        if ending[0] == 0 {
            return kept;
        }
        self.stem.clear();
        self.stem.push_str(kept);
        self.stem.extend(ending.iter().take_while(|b| **b != 0).map(|b| char::from(*b)));
        &self.stem
    }
}

/// The first of a word's two slots.
fn slot_of(key: &[u8; WORD]) -> usize {
    let mut hash = 0u64;
    for part in key.chunks(8) {
        let mut eight = [0; 8];
        eight[..part.len()].copy_from_slice(part);
        hash = (hash ^ u64::from_le_bytes(eight)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    (hash >> 32) as usize & (SLOTS - 2)
}
