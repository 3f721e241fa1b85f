//! SentencePiece's unigram tokenizer, as the reference tokenizer runs it: the split of a word that is likeliest.
//!
//! ```text
//! text ──special tokens──> stretches ──normalize──> words, each with ▁ before ──Viterbi──> ids
//! ```
//!
//! A piece has a score, the logarithm of its probability; the best split of a word has the greatest sum. A character
//! that is no piece has a score below all others, and several in a row become one unknown token. Sums are in f64 and
//! from left to right, so that ties are decided as in the reference.

use serde::{Deserialize, Serialize};

use crate::charsmap::Charsmap;
use crate::trie::Trie;

/// The character for a space, which also precedes a word.
const SPACE: char = '▁';

/// How much less likely than the least likely piece an unknown character is.
const UNKNOWN_PENALTY: f64 = 10.0;

/// The options of a tokenizer, besides its tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnigramRules {
    pub(crate) steps: Vec<NormalizationStep>,
    /// Whether the text is first split at white space, which then is in no token.
    pub(crate) splits_at_white_space: bool,
    /// The least score of a piece.
    pub(crate) least_score: f64,
    pub(crate) unknown: u32,
    /// The tokens before and after a text.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Tokens that a text can spell out, such as `</s>`.
    pub(crate) special: Vec<SpecialToken>,
}

impl UnigramRules {
    /// Whether a tokenizer with this number of scores gives only ids of a model's words, and comes to an end. The id of
    /// a piece is the place of its score.
    pub(crate) fn check(&self, scores: usize, words: usize) -> Result<(), String> {
        let special = self.special.iter().map(|special| special.id);
        let last = special.chain([self.unknown, self.start, self.end]).max().unwrap_or_default();
        if scores > words || last as usize >= words {
            return Err(format!("the tokenizer has {scores} pieces and the id {last}, but the model {words} words"));
        }
        match self.special.iter().find(|special| !special.text.starts_with('<')) {
            Some(special) => Err(format!("the special token {:?} does not start with <", special.text)),
            None => Ok(()),
        }
    }
}

/// A step of normalization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NormalizationStep {
    Charsmap,
    /// Without white space at the start, at the end.
    Strip(bool, bool),
    /// Two or more spaces become this.
    ReplaceSpaces(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpecialToken {
    pub(crate) text: String,
    pub(crate) id: u32,
    /// Whether it takes the white space before it, and behind it.
    pub(crate) takes_left: bool,
    pub(crate) takes_right: bool,
}

/// The tokenizer, whose tables may be those of a damaged file: whatever they hold, a text has some ids.
#[derive(Clone, Copy)]
pub(crate) struct Unigram<'a> {
    pub(crate) rules: &'a UnigramRules,
    pub(crate) charsmap: Charsmap<'a>,
    /// Piece -> id.
    pub(crate) pieces: Trie<'a>,
    /// The score of each id.
    pub(crate) scores: &'a [f64],
}

/// The best split of a word up to some byte: its score, and where its last piece starts.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    /// `None`: no split ends here.
    start: Option<usize>,
    id: u32,
}

const NO_SPLIT: Best = Best { score: 0.0, start: None, id: 0 };

impl<'a> Unigram<'a> {
    /// Calls `visit` with each id of a text, without those before and after it, until it returns false.
    pub(crate) fn each_id(self, text: &str, mut visit: impl FnMut(u32) -> bool) {
        let (mut best, mut ids, mut normal) = (Vec::new(), Vec::new(), String::new());
        self.each_stretch(text, |stretch, special| {
            self.normalize(stretch, &mut normal);
            let go_on = self.each_word(&normal, |word| {
                self.split(word, &mut best, &mut ids);
                ids.iter().rev().all(|id| visit(*id))
            });
            go_on && special.is_none_or(&mut visit)
        });
    }

    /// The stretches between special tokens, each with the token behind it.
    fn each_stretch(self, text: &str, mut visit: impl FnMut(&str, Option<u32>) -> bool) {
        let mut rest = text;
        loop {
            let found = rest.char_indices().find_map(|(at, c)| {
                // All of them start so, or this would take long: checked when the model's file is made and opened.
                let special = if c == '<' { self.special_at(&rest[at..]) } else { None };
                special.map(|special| (at, special))
            });
            let Some((at, special)) = found else {
                visit(rest, None);
                return;
            };
            let (before, after) = (&rest[..at], &rest[at + special.text.len()..]);
            let before = if special.takes_left { before.trim_end() } else { before };
            rest = if special.takes_right { after.trim_start() } else { after };
            if !visit(before, Some(special.id)) {
                return;
            }
        }
    }

    fn special_at(self, text: &str) -> Option<&'a SpecialToken> {
        let special = &self.rules.special;
        special.iter().filter(|special| text.starts_with(&special.text)).max_by_key(|special| special.text.len())
    }

    /// Writes the stretch in normal form to `out`.
    fn normalize(self, stretch: &str, out: &mut String) {
        out.clear();
        out.push_str(stretch);
        for step in &self.rules.steps {
            let before = std::mem::take(out);
            match step {
                NormalizationStep::Charsmap => self.charsmap.normalize(&before, out),
                NormalizationStep::Strip(left, right) => {
                    let kept = if *left { before.trim_start() } else { &before };
                    out.push_str(if *right { kept.trim_end() } else { kept });
                }
                NormalizationStep::ReplaceSpaces(by) => replace_spaces(&before, by, out),
            }
        }
    }

    /// The words of a normalized stretch; false if `visit` returned false.
    fn each_word(self, stretch: &str, mut visit: impl FnMut(&str) -> bool) -> bool {
        let mut marked = String::new();
        let mut each_marked = |run: &str| {
            if run.is_empty() {
                return true;
            }
            marked.clear();
            if !run.starts_with([SPACE, ' ']) {
                marked.push(SPACE);
            }
            marked.extend(run.chars().map(|c| if c == ' ' { SPACE } else { c }));
            let mut start = 0;
            let starts = marked.match_indices(SPACE).map(|(at, _)| at).skip(1).chain([marked.len()]);
            starts.into_iter().all(|end| {
                let word = &marked[start..end];
                start = end;
                visit(word)
            })
        };
        match self.rules.splits_at_white_space {
            true => stretch.split_whitespace().all(each_marked),
            false => each_marked(stretch),
        }
    }

    /// Writes the ids of a word to `ids`, the last one first.
    fn split(self, word: &str, best: &mut Vec<Best>, ids: &mut Vec<u32>) {
        let unknown_score = self.rules.least_score - UNKNOWN_PENALTY;
        best.clear();
        best.resize(word.len() + 1, NO_SPLIT);
        for (start, c) in word.char_indices() {
            let score_here = best[start].score;
            let character = c.len_utf8();
            let mut is_piece = false;
            let mut offer = |length: usize, id: u32, score: f64| {
                let split = &mut best[start + length];
                let score = score + score_here;
                if split.start.is_none() || score > split.score {
                    *split = Best { score, start: Some(start), id };
                }
            };
            self.pieces.each_prefix(&word.as_bytes()[start..], |length, id| {
                // A piece is whole characters, unless the table is damaged.
                if let Some(score) = self.scores.get(id as usize)
                    && word.is_char_boundary(start + length)
                {
                    is_piece |= length == character;
                    offer(length, id, *score);
                }
            });
            if !is_piece {
                offer(character, self.rules.unknown, unknown_score);
            }
        }
        ids.clear();
        let mut end = word.len();
        while let Some(start) = best[end].start {
            let id = best[end].id;
            // Unknown characters in a row are one token.
            if id != self.rules.unknown || ids.last() != Some(&id) {
                ids.push(id);
            }
            end = start;
        }
    }
}

fn replace_spaces(text: &str, by: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find("  ") {
        out.push_str(&rest[..at]);
        out.push_str(by);
        rest = rest[at..].trim_start_matches(' ');
    }
    out.push_str(rest);
}
