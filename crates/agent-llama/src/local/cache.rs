//! The context with its attention cache: the part of a prompt that is already cached is not evaluated again.

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use agent_loop::{Error, ErrorKind, error::Result};

use super::vocabulary::Vocabulary;

/// How many tokens a model has processed since it was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheUse {
    /// The tokens of the prompts of all replies.
    pub prompt: u64,
    /// The tokens of the prompts that were evaluated; the others were cached.
    pub evaluated: u64,
    /// The tokens of the replies.
    pub generated: u64,
}

/// A context, and the tokens in its cache.
pub(super) struct Cache<'m> {
    pub(super) context: LlamaContext<'m>,
    pub(super) tokens: Vec<LlamaToken>,
    /// The tokens from here on were generated. The tokenizer might split their text differently.
    pub(super) generated_from: usize,
    batch: LlamaBatch<'static>,
    /// How many tokens are evaluated at once. Cancelling waits for them.
    chunk: usize,
}

impl<'m> Cache<'m> {
    pub(super) fn new(context: LlamaContext<'m>, chunk: usize) -> Self {
        Self { context, tokens: Vec::new(), generated_from: 0, batch: LlamaBatch::new(chunk, 1), chunk }
    }

    /// Returns the tokens of a prompt, and how many of them at its beginning are cached.
    ///
    /// As long as the text is the same, generated tokens stay unchanged, even if the tokenizer would split the text
    /// differently. After that the tokens are compared.
    pub(super) fn plan(&self, prompt: &str, vocabulary: &Vocabulary<'_>) -> (Vec<LlamaToken>, usize) {
        let (mut kept, mut bytes, mut at) = (0, 0, 0);
        for (index, token) in self.tokens.iter().enumerate() {
            let piece = vocabulary.bytes(*token);
            if !prompt.as_bytes()[at..].starts_with(&piece) {
                break;
            }
            at += piece.len();
            // After a special token, tokenization starts over.
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

    /// Evaluates the part of a prompt that is not cached, and returns how many tokens that were. `None` if
    /// `is_cancelled` returned true in between; the evaluated part stays cached.
    ///
    /// # Errors
    /// The same as those of [`push`](Self::push).
    pub(super) fn evaluate(
        &mut self,
        tokens: &[LlamaToken],
        kept: usize,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<usize>> {
        // The last token is always evaluated, because its output predicts the next one.
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
    /// `ContextTooLong` if the context is full, `Unavailable` if llama.cpp fails.
    pub(super) fn push(&mut self, token: LlamaToken) -> Result<()> {
        self.decode(&[token], true)
    }

    /// Removes the tokens after the first `kept` ones, and returns how many are left. Models with a state of another
    /// kind than attention cannot go back, so they start over.
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

    /// Returns the index in the last batch of the prediction of the next token.
    pub(super) fn last_index(&self) -> i32 {
        self.batch.n_tokens() - 1
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, "llama.cpp failed to compute").with_source(error.to_string())
}
