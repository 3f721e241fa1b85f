//! A set of small numbers, one bit each: which passages or slots pass a filter.

/// A set of small numbers, one bit each. Takes as many bits as the largest number that was ever in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// Adds a number.
    pub(crate) fn insert(&mut self, number: usize) {
        let word = number / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
    }

    /// Removes a number, if it is in the set.
    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(word) = self.words.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Whether a number is in the set.
    pub(crate) fn contains(&self, number: usize) -> bool {
        self.word(number / 64) >> (number % 64) & 1 == 1
    }

    /// How many numbers are in the set. Linear in the largest.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Removes what is not in `other` too.
    pub(crate) fn intersect(&mut self, other: &Self) {
        for (i, word) in self.words.iter_mut().enumerate() {
            *word &= other.word(i);
        }
    }

    /// Its members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| bits(word).map(move |bit| 64 * i + bit))
    }

    /// The bits of the numbers `64·i ..`, lowest first; zero beyond the end.
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
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bitmap = Self::default();
        for number in numbers {
            bitmap.insert(number);
        }
        bitmap
    }
}
