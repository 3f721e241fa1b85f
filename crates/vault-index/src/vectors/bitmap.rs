//! A set of slots, one bit each: what a filter lets through.

/// A set of small numbers in `0..len`, one bit each. Numbers from `len` on are never in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// An empty set over `0..len`.
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// All of `0..len`.
    pub fn full(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(64)];
        if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last = (1 << (len % 64)) - 1;
        }
        Self { words, len }
    }

    /// The size of the range it is over, not the number of its members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the range it is over is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `slot` in. The range grows to hold it.
    pub fn insert(&mut self, slot: usize) {
        if slot >= self.len {
            self.len = slot + 1;
            self.words.resize(self.len.div_ceil(64), 0);
        }
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    /// Takes `slot` out, if it is in.
    pub fn remove(&mut self, slot: usize) {
        if slot < self.len {
            self.words[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// Whether `slot` is in.
    pub fn contains(&self, slot: usize) -> bool {
        self.word(slot / 64) >> (slot % 64) & 1 == 1
    }

    /// How many are in. Linear in `len / 64`.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Keeps what is in `other` too.
    pub fn intersect(&mut self, other: &Self) {
        for (i, word) in self.words.iter_mut().enumerate() {
            *word &= other.word(i);
        }
    }

    /// Its members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| bits(word).map(move |bit| 64 * i + bit))
    }

    /// The bits of slots `64·i ..`, lowest first; zero beyond the end.
    pub(super) fn word(&self, i: usize) -> u64 {
        self.words.get(i).copied().unwrap_or(0)
    }
}

/// The numbers of the bits that are set, ascending.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(lowest)
    })
}

impl FromIterator<usize> for Bitmap {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Self {
        let mut bitmap = Self::default();
        for slot in slots {
            bitmap.insert(slot);
        }
        bitmap
    }
}
