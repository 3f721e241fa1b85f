//! From text to token ids, as the model's original tokenizer assigns them: lower-cased WordPiece.
//!
//! A word is a run of letters and digits, or one punctuation mark, or one Chinese character. A word is split into the
//! longest piece of the vocabulary that it starts with, then the longest that continues, and so on. If that fails, or
//! the word has more than 100 characters, the whole word becomes `[UNK]`.
//!
//! Reasons for its speed:
//! - a word of plain ASCII is lower-cased and hashed in the pass that finds its end, and most such words are in the
//!   vocabulary whole: one look-up, no allocation;
//! - all prefixes of any other word are hashed in one pass for each piece;
//! - only a run that contains a non-ASCII or control character takes the Unicode path.

use std::sync::LazyLock;

use crate::normalize::{is_latin, is_punctuation, normalize};
use crate::vocabulary::{Hash, PiecePosition, Vocabulary};

/// Longer words are unknown. Counted in characters, after normalization.
const MAX_WORD: usize = 100;

/// Tokens that every vocabulary has.
pub(crate) const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// A lower-casing WordPiece tokenizer, such as that of the bundled model.
pub struct WordPiece {
    vocabulary: Vocabulary,
    unknown: u32,
    start: u32,
    end: u32,
    special: [u32; SPECIAL.len()],
    /// Ids of the ASCII punctuation marks, all of which are in the vocabulary.
    punctuation: [u32; 128],
}

/// A word in normal form.
enum Word<'a> {
    /// One of [`SPECIAL`], written out in the text.
    Special(u32),
    /// An ASCII punctuation mark.
    Mark(u32),
    Letters(&'a [u8], Hash),
}

impl WordPiece {
    /// The one instance; the first call builds it (about 1 ms).
    pub fn bundled() -> &'static WordPiece {
        static BUNDLED: LazyLock<WordPiece> = LazyLock::new(|| WordPiece::new(minilm_weights_3::VOCABULARY));
        &BUNDLED
    }

    /// From a vocabulary with one token a line.
    pub(crate) fn new(text: &str) -> WordPiece {
        let vocabulary = Vocabulary::new(text);
        let special = SPECIAL.map(|token| vocabulary.find_start(token).unwrap_or_default());
        let [_, unknown, start, end, _] = special;
        let mut punctuation = [unknown; 128];
        for mark in (0..128u8).filter(u8::is_ascii_punctuation) {
            let found = vocabulary.find_start(char::from(mark).encode_utf8(&mut [0; 4]));
            punctuation[usize::from(mark)] = found.unwrap_or(unknown);
        }
        WordPiece { vocabulary, unknown, start, end, special, punctuation }
    }

    /// The ids of a text, without `[CLS]` and `[SEP]`, without a limit.
    ///
    /// A special token that the text spells out (`[SEP]`) becomes its id, as in
    /// the original tokenizer.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        self.each_word(text, |word| {
            self.each_piece(word, |id| ids.push(id));
            true
        });
        ids
    }

    /// The number of ids that [`encode`](Self::encode) would give, without collecting them.
    pub fn count(&self, text: &str) -> usize {
        let mut count = 0;
        self.each_word(text, |word| {
            self.each_piece(word, |_| count += 1);
            true
        });
        count
    }

    /// The share of a text's words that the model can read, from 0 to 1; only words with a letter count.
    ///
    /// A word cannot be read if it becomes `[UNK]` or has a letter that is not Latin: the vocabulary has many such
    /// letters, but the model never learned the words they form. A text without words gives 1.
    pub fn known_share(&self, text: &str) -> f32 {
        let (mut words, mut known) = (0u32, 0u32);
        self.each_word(text, |word| {
            let Word::Letters(bytes, _) = word else {
                return true;
            };
            let (mut any, mut latin) = (false, true);
            for letter in String::from_utf8_lossy(bytes).chars().filter(|c| c.is_alphabetic()) {
                any = true;
                latin &= is_latin(letter);
            }
            if any {
                let mut readable = latin;
                self.each_piece(word, |id| readable &= id != self.unknown);
                words += 1;
                known += u32::from(readable);
            }
            true
        });
        if words == 0 { 1.0 } else { known as f32 / words as f32 }
    }

    /// Writes the input of the model to `ids`: `[CLS]`, the text's first ids, `[SEP]`, at most `limit` in all.
    pub(crate) fn model_input(&self, text: &str, limit: usize, ids: &mut Vec<u32>) {
        ids.clear();
        ids.push(self.start);
        self.each_word(text, |word| {
            self.each_piece(word, |id| ids.push(id));
            ids.len() < limit
        });
        ids.truncate(limit - 1);
        ids.push(self.end);
    }

    /// Calls `visit` with every word until it returns false.
    #[inline]
    fn each_word(&self, text: &str, mut visit: impl FnMut(Word<'_>) -> bool) {
        let bytes = text.as_bytes();
        let mut word = [0; MAX_WORD];
        let mut normal = String::new();
        let mut at = 0;
        while at < bytes.len() {
            let first = bytes[at];
            let go_on = match class(first) {
                Class::Space => {
                    at += 1;
                    continue;
                }
                Class::Mark => {
                    let special = if first == b'[' { self.special_at(&text[at..]) } else { None };
                    let (mark, len) = match special {
                        Some((id, len)) => (Word::Special(id), len),
                        None => (Word::Mark(self.punctuation[usize::from(first)]), 1),
                    };
                    at += len;
                    visit(mark)
                }
                Class::Letter | Class::Other => {
                    let begin = at;
                    let mut hash = Hash::new(PiecePosition::Start);
                    while at < bytes.len() && LOWER[usize::from(bytes[at])] != 0 {
                        let byte = LOWER[usize::from(bytes[at])];
                        hash = hash.add(byte);
                        if let Some(position) = word.get_mut(at - begin) {
                            *position = byte;
                        }
                        at += 1;
                    }
                    if at < bytes.len() && class(bytes[at]) == Class::Other {
                        while at < bytes.len() && matches!(class(bytes[at]), Class::Letter | Class::Other) {
                            at += 1;
                        }
                        normal.clear();
                        normalize(&text[begin..at], &mut normal);
                        self.each_normal_word(&normal, &mut visit)
                    } else {
                        // A word that is too long for the buffer is also too long for the vocabulary, in either case.
                        let word = word.get(..at - begin).unwrap_or(&bytes[begin..at]);
                        visit(Word::Letters(word, hash))
                    }
                }
            };
            if !go_on {
                return;
            }
        }
    }

    /// [`each_word`](Self::each_word) for text in normal form; false if `visit` returned false.
    fn each_normal_word(&self, text: &str, visit: &mut impl FnMut(Word<'_>) -> bool) -> bool {
        for run in text.split(char::is_whitespace) {
            let mut rest = run;
            while let Some(first) = rest.chars().next() {
                let len = if is_punctuation(first) {
                    first.len_utf8()
                } else {
                    rest.find(is_punctuation).unwrap_or(rest.len())
                };
                let (word, after) = rest.split_at(len);
                rest = after;
                let hash = word.bytes().fold(Hash::new(PiecePosition::Start), Hash::add);
                if !visit(Word::Letters(word.as_bytes(), hash)) {
                    return false;
                }
            }
        }
        true
    }

    fn special_at(&self, text: &str) -> Option<(u32, usize)> {
        let found = SPECIAL.iter().position(|token| text.starts_with(token))?;
        Some((self.special[found], SPECIAL[found].len()))
    }

    #[inline]
    fn each_piece(&self, word: Word<'_>, mut piece: impl FnMut(u32)) {
        match word {
            Word::Special(id) | Word::Mark(id) => piece(id),
            Word::Letters(bytes, hash) => match self.vocabulary.find(bytes, PiecePosition::Start, hash) {
                Some(id) => piece(id),
                None => {
                    let mut ids = [0; MAX_WORD];
                    let len = self.split(bytes, &mut ids).unwrap_or_else(|| {
                        ids[0] = self.unknown;
                        1
                    });
                    ids[..len].iter().for_each(|id| piece(*id));
                }
            },
        }
    }

    /// Splits a word greedily and returns the number of pieces, or `None` if some part does not match a piece.
    ///
    /// It works on bytes: a piece is whole characters, so it cannot end inside one.
    fn split(&self, word: &[u8], ids: &mut [u32; MAX_WORD]) -> Option<usize> {
        let is_character_start = |byte: &&u8| **byte & 0xc0 != 0x80;
        if word.len() > MAX_WORD && word.iter().filter(is_character_start).count() > MAX_WORD {
            return None;
        }
        let (mut rest, mut position, mut len) = (word, PiecePosition::Start, 0);
        let mut hashes = [Hash::new(position); u8::MAX as usize];
        while !rest.is_empty() {
            let reach = rest.len().min(self.vocabulary.longest());
            let mut hash = Hash::new(position);
            for (byte, prefix) in rest[..reach].iter().zip(&mut hashes) {
                hash = hash.add(*byte);
                *prefix = hash;
            }
            let (end, id) = (1..=reach).rev().find_map(|end| {
                let id = self.vocabulary.find(&rest[..end], position, hashes[end - 1])?;
                Some((end, id))
            })?;
            ids[len] = id;
            len += 1;
            rest = &rest[end..];
            position = PiecePosition::Inside;
        }
        Some(len)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Mark,
    Letter,
    /// Control characters, which vanish inside words, and all non-ASCII characters.
    Other,
}

#[inline]
fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => Class::Space,
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            _ if byte.is_ascii_punctuation() => Class::Mark,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

/// ASCII letters and digits in lower case, 0 for every other byte.
const LOWER: [u8; 256] = {
    let mut lower = [0; 256];
    let mut byte = 0u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            lower[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    lower
};

impl std::fmt::Debug for WordPiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordPiece").finish_non_exhaustive()
    }
}
