//! Folds a word: removes case, width, ligatures and diacritics, so that spellings of one word are equal.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Folds one word at a time, a character at a time: NFKD, optional marks dropped, full case folding, then NFC.
/// Idempotent.
#[derive(Default)]
pub(super) struct Fold {
    out: String,
    composed: String,
    limit: usize,
    marks_are_optional: bool,
    compose: bool,
}

impl Fold {
    /// Starts a new word, which is truncated at `limit` bytes.
    pub(super) fn clear(&mut self, limit: usize) {
        self.out.clear();
        self.limit = limit;
        self.marks_are_optional = false;
        self.compose = false;
    }

    /// Adds the next character.
    pub(super) fn push(&mut self, c: char) {
        if self.out.len() >= self.limit {
            return;
        }
        match c {
            'a'..='z' | '0'..='9' => {
                self.marks_are_optional = true;
                self.add_wanted(c);
            }
            // These need no folding: Cyrillic small letters except й, ideographs, kana, Hangul syllables. (NFC would
            // compose those that can be decomposed again.)
            'а'..='и' | 'к'..='я' => {
                self.marks_are_optional = true;
                self.add_wanted(c);
            }
            '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' => {
                self.marks_are_optional = false;
                self.add_wanted(c);
            }
            _ => decompose_compatible(c, |part| self.part(part)),
        }
    }

    /// The folded word.
    pub(super) fn finish(&mut self) -> &str {
        if self.compose {
            self.composed.clear();
            self.composed.extend(self.out.nfc());
            &self.composed
        } else {
            &self.out
        }
    }

    fn part(&mut self, c: char) {
        if c >= '\u{300}' && is_combining_mark(c) {
            if !self.marks_are_optional && !self.out.is_empty() {
                self.compose = true;
                self.add(c);
            }
            return;
        }
        // NFKD can produce spaces and punctuation: ⑴ becomes (1).
        if !c.is_alphanumeric() {
            return;
        }
        self.marks_are_optional = marks_are_optional(c);
        // Letters that NFC joins with a preceding letter: Hangul jamo and the vowels of Kirat Rai.
        self.compose |= matches!(c, '\u{1100}'..='\u{11FF}' | '\u{16D63}'..='\u{16D6A}');
        letters(c, |c| self.add(c));
    }

    fn add(&mut self, c: char) {
        let wanted = c.is_alphanumeric() || (!c.is_ascii() && is_combining_mark(c));
        if wanted {
            self.add_wanted(c);
        }
    }

    fn add_wanted(&mut self, c: char) {
        let c = match c {
            '\u{30A1}'..='\u{30FE}' => hiragana(c),
            '\u{4E00}'..='\u{9FFF}' => simplified(c),
            CANDRABINDU => ANUSVARA,
            _ => c,
        };
        if let Some(nasal) = nasal_before(c)
            && let Some(before) = self.out.strip_suffix(VIRAMA).and_then(|out| out.strip_suffix(nasal))
        {
            self.out.truncate(before.len());
            self.add_wanted(ANUSVARA);
        }
        if self.out.len() + c.len_utf8() <= self.limit {
            self.out.push(c);
        }
    }
}

/// Traditional Chinese characters, each followed by its simplified form, in order (`data/han.py`).
const HAN: &str = include_str!("../../data/han.txt");

/// The first ideograph of the block.
const FIRST_HAN: u32 = 0x4E00;

/// Converts a traditional character to its simplified form, because people write the same word in either.
fn simplified(c: char) -> char {
    static FORMS: LazyLock<Vec<char>> = LazyLock::new(|| {
        let mut forms: Vec<char> = ('\u{4E00}'..='\u{9FFF}').collect();
        let mut characters = HAN.trim_end().chars();
        while let (Some(traditional), Some(form)) = (characters.next(), characters.next()) {
            forms[(u32::from(traditional) - FIRST_HAN) as usize] = form;
        }
        forms
    });
    FORMS[(u32::from(c) - FIRST_HAN) as usize]
}

const CANDRABINDU: char = '\u{901}';
const ANUSVARA: char = '\u{902}';
const VIRAMA: char = '\u{94D}';

/// The nasal of the same place as a Devanagari stop. Before the stop, people write it as a letter or as an anusvara:
/// हिन्दी, हिंदी.
fn nasal_before(stop: char) -> Option<char> {
    match stop {
        '\u{915}'..='\u{918}' => Some('\u{919}'),
        '\u{91A}'..='\u{91D}' => Some('\u{91E}'),
        '\u{91F}'..='\u{922}' => Some('\u{923}'),
        '\u{924}'..='\u{927}' => Some('\u{928}'),
        '\u{92A}'..='\u{92D}' => Some('\u{92E}'),
        _ => None,
    }
}

/// Converts katakana to hiragana, because people write the same word in either.
fn hiragana(c: char) -> char {
    match c {
        '\u{30A1}'..='\u{30F6}' | '\u{30FD}' | '\u{30FE}' => char::from_u32(c as u32 - 0x60).unwrap_or(c),
        _ => c,
    }
}

/// The letters that a letter is compared as: lower case, without a stroke.
pub(crate) fn letters(c: char, mut each: impl FnMut(char)) {
    if let Some(letters) = without_stroke(c) {
        letters.chars().for_each(each);
    } else if c.is_ascii() {
        each(c.to_ascii_lowercase());
    } else {
        // Via the capital letter: ß -> SS -> ss, ς -> Σ -> σ; via the small letter first: ẞ -> ß.
        c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase).for_each(each);
    }
}

/// Scripts whose diacritics readers and writers may leave out.
fn marks_are_optional(c: char) -> bool {
    matches!(c,
        '0'..='9' | 'A'..='Z' | 'a'..='z' | '\u{AA}'..='\u{2AF}' | '\u{1D00}'..='\u{1DBF}'
        | '\u{1E00}'..='\u{1EFF}' | '\u{2C60}'..='\u{2C7F}' | '\u{A720}'..='\u{A7FF}' | '\u{AB30}'..='\u{AB6F}'
        | '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}'
        | '\u{400}'..='\u{52F}' | '\u{1C80}'..='\u{1C8F}' | '\u{A640}'..='\u{A69F}'
        | '\u{5D0}'..='\u{5F2}' | '\u{620}'..='\u{6D5}' | '\u{6EE}'..='\u{77F}')
}

/// Letters that Unicode does not decompose, but that people also type without the stroke.
fn without_stroke(c: char) -> Option<&'static str> {
    Some(match c {
        'Æ' | 'æ' => "ae",
        'Œ' | 'œ' => "oe",
        'Ø' | 'ø' => "o",
        'Đ' | 'đ' | 'Ð' | 'ð' => "d",
        'Ħ' | 'ħ' => "h",
        'ı' => "i",
        'Ł' | 'ł' => "l",
        'Ŧ' | 'ŧ' => "t",
        'Þ' | 'þ' => "th",
        _ => return None,
    })
}
