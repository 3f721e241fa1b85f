//! All words of a vault, and the letters of each.

/// All words of a vault, in folded form.
#[derive(Default)]
pub(super) struct Vocabulary {
    pub(super) words: String,
    /// The end of each word in `words`, and its letters.
    pub(super) ends: Vec<(u32, u64)>,
}

impl Vocabulary {
    pub(super) fn new<'w>(words: impl Iterator<Item = &'w str>) -> Self {
        let mut vocabulary = Self { words: String::new(), ends: Vec::new() };
        for word in words {
            // A number with another digit is another number, not a misspelling.
            let letters = if word.chars().all(char::is_alphabetic) { letters(word) } else { NO_SLIP };
            vocabulary.words.push_str(word);
            vocabulary.ends.push((vocabulary.words.len() as u32, letters));
        }
        vocabulary
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end as usize));
        starts.zip(&self.ends).map(|(start, (end, _))| &self.words[start..*end as usize])
    }
}

/// Used instead of the letters of a word that is never a correction.
pub(super) const NO_SLIP: u64 = 0;

/// One bit for each letter; some letters share a bit.
pub(super) fn letters(word: &str) -> u64 {
    word.chars().fold(0, |letters, c| letters | 1 << (c as u32 % 64))
}
