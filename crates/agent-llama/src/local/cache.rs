//! The context with its attention cache: what of a prompt is there already is not evaluated again.

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use agent_loop::{Error, ErrorKind, error::Result};

use super::vocabulary::Vocabulary;

/// How many tokens a model has worked on since it was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheUse {
    /// Of the prompts of all replies.
    pub prompt: u64,
    /// Those of the prompts that were evaluated; the others were in the cache.
    pub evaluated: u64,
    /// Of the replies.
    pub generated: u64,
}

/// A context, and the tokens that its cache holds.
pub(super) struct Cache<'m> {
    pub(super) context: LlamaContext<'m>,
    pub(super) tokens: Vec<LlamaToken>,
    /// The tokens from here on were generated: another text could have been tokenized otherwise.
    pub(super) generated_from: usize,
    batch: LlamaBatch<'static>,
    /// Tokens evaluated at once: cancelling waits for them.
    chunk: usize,
}

impl<'m> Cache<'m> {
    pub(super) fn new(context: LlamaContext<'m>, chunk: usize) -> Self {
        Self { context, tokens: Vec::new(), generated_from: 0, batch: LlamaBatch::new(chunk, 1), chunk }
    }

    /// The tokens of a prompt, and how many of them the cache holds at its beginning.
    ///
    /// As long as the text is the same, tokens that were generated stay as they are, even where the text would be
    /// tokenized otherwise; then the tokens are compared.
    pub(super) fn plan(&self, prompt: &str, vocabulary: &Vocabulary<'_>) -> (Vec<LlamaToken>, usize) {
        let (mut kept, mut bytes, mut at) = (0, 0, 0);
        for (index, token) in self.tokens.iter().enumerate() {
            let piece = vocabulary.bytes(*token);
            if !prompt.as_bytes()[at..].starts_with(&piece) {
                break;
            }
            at += piece.len();
            // Behind a special token tokens begin anew.
            let is_boundary = vocabulary.tokens.is_control(*token)
                || (index + 1 == self.tokens.len() && self.generated_from <= index);
            if is_boundary && prompt.is_char_boundary(at) {
                (kept, bytes) = (index + 1, at);
            }
        }
        let mut tokens = self.tokens[..kept].to_vec();
        tokens.extend(vocabulary.tokenize(&prompt[bytes..]));
        let same = self.tokens[kept..].iter().zip(&tokens[kept..]).take_while(|(a, b)| a == b).count();
        (tokens, kept + same)
    }

    /// Evaluates what is not there of a prompt, and says how many tokens that were. `None` where `is_cancelled` says so in
    /// between; what was evaluated stays.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(super) fn evaluate(
        &mut self,
        tokens: &[LlamaToken],
        kept: usize,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>> {
        // The last one is needed for what follows it.
        let kept = self.truncate(kept.min(tokens.len().saturating_sub(1)));
        let rest = &tokens[kept..];
        for (at, chunk) in rest.chunks(self.chunk).enumerate() {
            if is_cancelled() {
                return Ok(None);
            }
            self.decode(chunk, (at + 1) * self.chunk >= rest.len())?;
        }
        self.generated_from = self.tokens.len();
        Ok(Some(rest.len()))
    }

    /// Evaluates one more token.
    ///
    /// # Errors
    /// `ContextTooLong` where there is no room, `Unavailable` where llama.cpp fails.
    pub(super) fn push(&mut self, token: LlamaToken) -> Result<()> {
        self.decode(&[token], true)
    }

    /// Forgets the tokens behind the first ones, and says how many are left: models with a state of another kind than
    /// attention cannot go back, and begin anew.
    pub(super) fn truncate(&mut self, mut kept: usize) -> usize {
        if kept < self.tokens.len() && self.context.kv_cache_seq_rm(0, Some(kept as u32), None).is_err() {
            self.context.clear_kv_cache();
            kept = 0;
        }
        self.tokens.truncate(kept);
        self.generated_from = self.generated_from.min(kept);
        kept
    }

    fn decode(&mut self, tokens: &[LlamaToken], is_last: bool) -> Result<()> {
        self.batch.clear();
        for (index, token) in tokens.iter().enumerate() {
            let position = (self.tokens.len() + index) as i32;
            let has_logits = is_last && index + 1 == tokens.len();
            self.batch.add(*token, position, &[0], has_logits).map_err(|error| failed(&error))?;
        }
        let decoded = self.context.decode(&mut self.batch);
        if let Err(error) = decoded {
            self.context.clear_kv_cache();
            self.tokens.clear();
            self.generated_from = 0;
            return Err(match error {
                DecodeError::NoKvCacheSlot => {
                    Error::new(ErrorKind::ContextTooLong, "the conversation does not fit the model's context")
                }
                error => failed(&error),
            });
        }
        self.tokens.extend_from_slice(tokens);
        Ok(())
    }

    /// Where in the last batch the prediction of the next token is.
    pub(super) fn last_index(&self) -> i32 {
        self.batch.n_tokens() - 1
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, "llama.cpp failed to compute").with_source(error.to_string())
}
