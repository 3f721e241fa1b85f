//! From a text to search terms, the same for notes, queries and snippets.
//!
//! This module knows neither the database nor the query syntax.
//!
//! | text | terms | rule |
//! | --- | --- | --- |
//! | `Gardening` | `gardening` | case is folded; words are not stemmed here, [`stem`] says which words belong together |
//! | `Café`, `STRASSE`, `straße`, `Łódź` | `cafe`, `strasse`, `strasse`, `lodz` | marks are dropped where a script can be read without them: Latin, Greek, Cyrillic, Hebrew, Arabic |
//! | `don’t`, `garden's` | `dont`, `gardens` | an apostrophe before at most two last letters is dropped ... |
//! | `l'été`, `O'Brien` | `l` `ete`, `o` `brien` | ... any other apostrophe splits |
//! | `snake_case`, `v1.2`, `3.14`, `a-b` | `snake` `case`, `v1` `2`, `3` `14`, `a` `b` | all other punctuation splits; camelCase does not |
//! | `plug-in`, `e-mail` | `plug` `in`, `e` `mail` | in addition, the [compounds](Terms::compounds) `plugin`, `email` |
//! | `C++`, `C#`, `F#`, `C++20` | `cpp`, `csharp`, `fsharp`, `cpp` and `20` | the three names that would be lost without their punctuation |
//! | `ダメ`, `だめ`, `ﾀﾞﾒ` | `だめ` | katakana is read as hiragana |
//! | `圖書館`, `图书馆` | `图书` `书馆` `馆` | traditional Chinese characters are read as simplified ones |
//! | `青森市` | `青森` `森市` `市` | scripts without spaces between words, and Korean, whose words have changing endings: overlapping pairs, and the last character of a run also alone |
//! | `Rust世界`, `2024年` | `rust` `世界` `界`, `2024` `年` | a run ends where the script changes |
//! | `👍🏽`, `🇫🇷` | `👍`, `🇫🇷` | an emoji is a term, without its skin tone; a flag is one |
//!
//! Pairs consist of Han, kana, Hangul, Thai, Lao, Khmer and Myanmar characters, each with the marks that follow it. The
//! last character is also a term of its own, because a query of one character searches for terms that begin with it
//! ([`TermMatch::Prefix`]): so it finds that character anywhere in a run, for one more term per run.
//!
//! A term is never empty, has no ASCII characters except `a-z0-9`, and is at most [`MAX_TERM`] bytes long (longer terms
//! are truncated), so a tokenizer that splits at ASCII punctuation and spaces leaves it whole. All functions are linear
//! in the text; English text is processed at about 100 MB/s.

mod fold;
mod script;
mod name_key;
mod stem;
mod stop;
mod language;
#[cfg(test)]
mod tests;

use std::ops::Range;

use fold::Fold;
pub(crate) use fold::letters;
pub(crate) use language::other_language;
pub(crate) use name_key::name_key;
use script::{Class, Script, apostrophe_joins, class, extends_unit};
pub(crate) use stem::stem;
pub use stop::is_stop_word;

/// Increased whenever the same text can give other terms, so that the text index is built again.
pub const TERMS_VERSION: u32 = 5;

/// The most bytes of a term.
pub const MAX_TERM: usize = 64;

/// Separates the items of a list. It is not a term of any text, so that phrases do not cross items.
pub const BETWEEN_ITEMS: char = '\u{E000}';

/// Precedes a compound that is written with hyphens in the index. It is a term of its own, so that the phrase
/// `"plugin"` matches only that word.
pub const HYPHENATED: char = '\u{E001}';

/// More words than this joined by hyphens are a name or an address, not a word that is also written as one.
const MAX_PARTS: usize = 3;

/// Splits texts into terms. It reuses its buffers, so create one and use it for many texts.
pub struct Terms {
    ascii: [u8; MAX_TERM],
    fold: Fold,
    pair: String,
}

/// A term of a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueryTerm {
    /// The term, or its prefix.
    pub text: String,
    /// The terms of a note that it matches.
    pub matching: TermMatch,
}

/// The terms of a note that a [`QueryTerm`] matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TermMatch {
    /// The same term.
    Whole,
    /// All terms that begin with it: for a single character of a script that is indexed in pairs.
    Prefix,
}

/// The part of its source that a term is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A word or an emoji.
    Word,
    /// Two characters of a run.
    Pair,
    /// The last character of a run of two or more.
    Tail,
    /// The only character of a run.
    Single,
}

impl Default for Terms {
    fn default() -> Self {
        Self { ascii: [0; MAX_TERM], fold: Fold::default(), pair: String::new() }
    }
}

impl Terms {
    /// Creates empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `emit` with each term of a note in the index, and the bytes of `text` that it came from.
    ///
    /// The terms are in order of their starts. Spans are on character boundaries; those of pairs overlap, others do
    /// not.
    pub fn each(&mut self, text: &str, mut emit: impl FnMut(&str, Range<usize>)) {
        self.scan(text, &mut |term, span, _| emit(term, span));
    }

    /// Appends the terms of `text` to `out`, with a space between them and after the previous content, and calls
    /// `each_word` with those that are words or emoji.
    pub fn write_joined(&mut self, text: &str, out: &mut String, mut each_word: impl FnMut(&str)) {
        self.scan(text, &mut |term, _, part| {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(term);
            if part == Part::Word {
                each_word(term);
            }
        });
    }

    /// Calls `emit` with each word that is written in two or three parts with hyphens, with the parts joined, and the
    /// bytes that it came from. In order.
    pub fn compounds(&mut self, text: &str, mut emit: impl FnMut(&str, Range<usize>)) {
        let bytes = text.as_bytes();
        let is_inner = |at: usize| {
            let beside = |at: Option<&u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
            at > 0 && beside(bytes.get(at - 1)) && beside(bytes.get(at + 1))
        };
        let (mut done, mut from) = (0, 0);
        // Only text around a hyphen, without white space, is examined.
        while let Some(hyphen) = text[from..].find('-').map(|found| from + found) {
            from = hyphen + 1;
            if is_inner(hyphen) {
                let start = text[done..hyphen].rfind(char::is_whitespace).map_or(done, |space| done + space);
                from = text[hyphen..].find(char::is_whitespace).map_or(text.len(), |space| hyphen + space);
                let whole = &text[start..from];
                self.compounds_of(whole, &mut |compound, span| emit(compound, start + span.start..start + span.end));
                done = from;
            }
        }
    }

    fn compounds_of(&mut self, text: &str, emit: &mut impl FnMut(&str, Range<usize>)) {
        let (mut joined, mut span, mut parts) = (String::new(), 0..0, 0);
        let mut end = |joined: &str, span: &Range<usize>, parts| {
            let is_word = || text[span.clone()].starts_with(char::is_alphabetic);
            if (2..=MAX_PARTS).contains(&parts) && is_word() && joined.len() <= MAX_TERM - HYPHENATED.len_utf8() {
                emit(joined, span.clone());
            }
        };
        self.scan(text, &mut |term, of_term, part| {
            let is_part = part == Part::Word && parts > 0 && text.get(span.end..of_term.start) == Some("-");
            if !is_part {
                end(&joined, &span, parts);
                joined.clear();
                (span.start, parts) = (of_term.start, 0);
            }
            if part == Part::Word {
                joined.push_str(term);
                (span.end, parts) = (of_term.end, parts + 1);
            }
        });
        end(&joined, &span, parts);
    }

    /// The terms of a query's words, including duplicates, in order. Their order in a note does not matter.
    pub fn words(&mut self, query: &str) -> Vec<QueryTerm> {
        let mut terms = Vec::new();
        self.scan(query, &mut |term, _, part| {
            let matching = match part {
                Part::Word | Part::Pair => TermMatch::Whole,
                Part::Single => TermMatch::Prefix,
                Part::Tail => return,
            };
            terms.push(QueryTerm { text: term.to_owned(), matching });
        });
        terms
    }

    /// The terms that are adjacent, in this order, in every note that contains this phrase.
    ///
    /// Only the last can be a [`TermMatch::Prefix`].
    pub fn phrase(&mut self, phrase: &str) -> Vec<QueryTerm> {
        let mut terms = Vec::new();
        let mut last = Part::Word;
        self.scan(phrase, &mut |term, _, part| {
            last = part;
            terms.push(QueryTerm { text: term.to_owned(), matching: TermMatch::Whole });
        });
        // In a note the run may continue after the end of the phrase.
        match (last, terms.last_mut()) {
            (Part::Tail, _) => _ = terms.pop(),
            (Part::Single, Some(term)) => term.matching = TermMatch::Prefix,
            _ => {}
        }
        terms
    }

    fn scan(&mut self, text: &str, emit: &mut impl FnMut(&str, Range<usize>, Part)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at = match ASCII[byte as usize] {
                SEPARATOR => at + 1,
                NOT_ASCII => self.other(text, at, emit),
                _ => self.ascii_word(text, at, emit),
            };
        }
    }

    /// The fast path: a word of ASCII letters and digits. Returns the offset to continue at.
    fn ascii_word(&mut self, text: &str, start: usize, emit: &mut impl FnMut(&str, Range<usize>, Part)) -> usize {
        let bytes = text.as_bytes();
        let (mut at, mut length, mut folds) = (start, 0, false);
        while let Some(&byte) = bytes.get(at) {
            let folded = ASCII[byte as usize];
            if folded == NOT_ASCII {
                match class(char_at(text, at)) {
                    Class::Letter | Class::Mark | Class::Joiner => return self.word(text, start, emit),
                    Class::Apostrophe if is_letter(bytes[at - 1]) && apostrophe_joins(text, at) => {
                        return self.word(text, start, emit);
                    }
                    _ => break,
                }
            } else if folded == SEPARATOR {
                let joins = byte == b'\'' && is_letter(bytes[at - 1]) && apostrophe_joins(text, at);
                if !joins {
                    break;
                }
            } else {
                if length < MAX_TERM {
                    self.ascii[length] = folded;
                    length += 1;
                }
                folds |= folded != byte;
            }
            at += 1;
        }
        if at == start + 1
            && let Some((name, end)) = language(&bytes[start..])
        {
            emit(name, start..start + end, Part::Word);
            return start + end;
        }
        let term = match folds || at - start != length {
            true => std::str::from_utf8(&self.ascii[..length]).expect("ASCII"),
            false => &text[start..at],
        };
        emit(term, start..at, Part::Word);
        at
    }

    /// Text that begins with a non-ASCII character. Returns the offset to continue at.
    fn other(&mut self, text: &str, start: usize, emit: &mut impl FnMut(&str, Range<usize>, Part)) -> usize {
        let first = char_at(text, start);
        let end = start + first.len_utf8();
        match class(first) {
            Class::Letter => self.word(text, start, emit),
            Class::Paired(script) => self.run(text, start, script, emit),
            Class::Emoji => {
                emit(&text[start..end], start..end, Part::Word);
                end
            }
            Class::FlagLetter => match text[end..].chars().next() {
                Some(second) if class(second) == Class::FlagLetter => {
                    let end = end + second.len_utf8();
                    emit(&text[start..end], start..end, Part::Word);
                    end
                }
                _ => end,
            },
            Class::Separator | Class::Mark | Class::Joiner | Class::Apostrophe => end,
        }
    }

    /// A word of any letters. Returns the offset to continue at.
    fn word(&mut self, text: &str, start: usize, emit: &mut impl FnMut(&str, Range<usize>, Part)) -> usize {
        self.fold.clear(MAX_TERM);
        let (mut end, mut next, mut after_letter) = (start, start, false);
        for (offset, c) in text[start..].char_indices() {
            next = start + offset;
            match class(c) {
                Class::Letter | Class::Mark => {
                    self.fold.push(c);
                    end = next + c.len_utf8();
                    after_letter = !c.is_numeric();
                }
                Class::Joiner => {}
                Class::Apostrophe if after_letter && apostrophe_joins(text, next) => {}
                _ => break,
            }
            next += c.len_utf8();
        }
        let term = self.fold.finish();
        if !term.is_empty() {
            emit(term, start..end, Part::Word);
        }
        next
    }

    /// A run of characters that are indexed in pairs. Returns the offset to continue at.
    fn run(
        &mut self,
        text: &str,
        start: usize,
        script: Script,
        emit: &mut impl FnMut(&str, Range<usize>, Part),
    ) -> usize {
        // The first `before.1` bytes of `pair` are the previous unit, folded.
        let mut before: Option<(Range<usize>, usize)> = None;
        let mut part = Part::Single;
        let mut at = start;
        while let Some(c) = text[at..].chars().next()
            && class(c) == Class::Paired(script)
        {
            let unit = at;
            self.fold.clear(MAX_TERM / 2);
            self.fold.push(c);
            at += c.len_utf8();
            let mut end = at;
            while let Some(c) = text[at..].chars().next() {
                if class(c) == Class::Mark || extends_unit(c) {
                    self.fold.push(c);
                    end = at + c.len_utf8();
                } else if class(c) != Class::Joiner {
                    break;
                }
                at += c.len_utf8();
            }
            let folded = self.fold.finish();
            if folded.is_empty() {
                continue;
            }
            if let Some((previous, length)) = &before {
                self.pair.truncate(*length);
                self.pair.push_str(folded);
                emit(&self.pair, previous.start..end, Part::Pair);
                part = Part::Tail;
            }
            self.pair.clear();
            self.pair.push_str(folded);
            before = Some((unit..end, folded.len()));
        }
        if let Some((span, _)) = before {
            emit(&self.pair, span, part);
        }
        at
    }
}

/// `C++`, `C#` or `F#` at the start of the text, possibly followed by a version (`C++20`): its term, and its length in
/// bytes.
fn language(text: &[u8]) -> Option<(&'static str, usize)> {
    let ends = |at: usize| !text.get(at).is_some_and(|b| b.is_ascii_alphabetic() || b"+#".contains(b));
    match text {
        [b'C' | b'c', b'+', b'+', ..] if ends(3) => Some(("cpp", 3)),
        [b'C' | b'c', b'#', ..] if ends(2) => Some(("csharp", 2)),
        [b'F' | b'f', b'#', ..] if ends(2) => Some(("fsharp", 2)),
        _ => None,
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn char_at(text: &str, at: usize) -> char {
    text[at..].chars().next().unwrap_or('\0')
}

const SEPARATOR: u8 = 0;
const NOT_ASCII: u8 = 0xFF;

/// For each byte: itself in lower case, or one of the two constants above.
const ASCII: [u8; 256] = {
    let mut table = [SEPARATOR; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b >= 0x80 {
            table[byte] = NOT_ASCII;
        } else if b.is_ascii_alphanumeric() {
            table[byte] = b.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};
