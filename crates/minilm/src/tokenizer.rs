//! One tokenizer of either kind, as a model uses it: ids of a text with those before and after it, and counts.

use crate::WordPiece;
use crate::unigram::Unigram;

/// A reference to the tokenizer of a model.
#[derive(Clone, Copy)]
pub(crate) enum Tokenizer<'a> {
    WordPiece(&'a WordPiece),
    Unigram(Unigram<'a>),
}

impl Tokenizer<'_> {
    /// The ids of a text, without those before and after it.
    pub(crate) fn encode(self, text: &str) -> Vec<u32> {
        match self {
            Tokenizer::WordPiece(tokenizer) => tokenizer.encode(text),
            Tokenizer::Unigram(tokenizer) => {
                let mut ids = Vec::new();
                tokenizer.each_id(text, |id| {
                    ids.push(id);
                    true
                });
                ids
            }
        }
    }

    pub(crate) fn count(self, text: &str) -> usize {
        match self {
            Tokenizer::WordPiece(tokenizer) => tokenizer.count(text),
            Tokenizer::Unigram(tokenizer) => {
                let mut count = 0;
                tokenizer.each_id(text, |_| {
                    count += 1;
                    true
                });
                count
            }
        }
    }

    /// The share of a text that the model can read, from 0 to 1: of words for a model of one language, of tokens for
    /// one of many.
    pub(crate) fn known_share(self, text: &str) -> f32 {
        match self {
            Tokenizer::WordPiece(tokenizer) => tokenizer.known_share(text),
            Tokenizer::Unigram(tokenizer) => {
                let (mut all, mut unknown) = (0u32, 0u32);
                tokenizer.each_id(text, |id| {
                    all += 1;
                    unknown += u32::from(id == tokenizer.rules.unknown);
                    true
                });
                if all == 0 { 1.0 } else { 1.0 - unknown as f32 / all as f32 }
            }
        }
    }

    /// Writes the input of the model to `ids`: at most `limit` of them, the tokens before and after the text included.
    pub(crate) fn model_input(self, text: &str, limit: usize, ids: &mut Vec<u32>) {
        match self {
            Tokenizer::WordPiece(tokenizer) => tokenizer.model_input(text, limit, ids),
            Tokenizer::Unigram(tokenizer) => {
                ids.clear();
                ids.push(tokenizer.rules.start);
                tokenizer.each_id(text, |id| {
                    ids.push(id);
                    ids.len() < limit
                });
                ids.truncate(limit - 1);
                ids.push(tokenizer.rules.end);
            }
        }
    }
}
