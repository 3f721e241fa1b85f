//! Chooses the next token: penalties, the likeliest tokens, a random choice.

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llguidance::toktrie::SimpleVob;

use agent_loop::{Error, ErrorKind, error::Result};

use super::options::LocalOptions;

/// How many of the likeliest tokens are considered, as in llama.cpp.
const TOP_K: i32 = 40;
/// Over how many of the last tokens penalties count.
const LAST: usize = 64;

/// Samples the tokens of a reply.
pub(super) struct Sampler(LlamaSampler);

impl Sampler {
    /// Creates a sampler for a reply after these tokens.
    pub(super) fn new(options: &LocalOptions, temperature: f32, vocabulary: i32, before: &[LlamaToken]) -> Self {
        let mut chain = Vec::new();
        let (repeat, frequency, presence) =
            (options.repeat_penalty, options.frequency_penalty, options.presence_penalty);
        let has_penalties = repeat != 1.0 || frequency != 0.0 || presence != 0.0;
        if has_penalties {
            chain.push(LlamaSampler::penalties(vocabulary, LAST as i32, repeat.max(0.01), frequency, presence));
        }
        if temperature > 0.0 {
            let seed = options.seed.unwrap_or_else(|| fastrand::u32(..));
            chain.push(LlamaSampler::top_k(TOP_K));
            chain.push(LlamaSampler::top_p(options.top_p, 1));
            chain.push(LlamaSampler::temp(temperature));
            chain.push(LlamaSampler::dist(seed));
        } else {
            chain.push(LlamaSampler::greedy());
        }
        let mut chain = LlamaSampler::chain(chain, true);
        if has_penalties {
            chain.accept_many(&before[before.len().saturating_sub(LAST)..]);
        }
        Self(chain)
    }

    /// Returns the next token, one of the allowed ones.
    ///
    /// # Errors
    /// `BadResponse` if no token is allowed, or the weights do not give numbers.
    pub(super) fn next(
        &mut self,
        context: &LlamaContext<'_>,
        index: i32,
        allowed: Option<&SimpleVob>,
    ) -> Result<LlamaToken> {
        let Some(allowed) = allowed else { return Ok(self.0.sample(context, index)) };
        let logits = context.get_logits_ith(index);
        let mut candidates = Vec::new();
        allowed.iter_set_entries(|token| {
            if let Some(logit) = logits.get(token) {
                candidates.push(LlamaTokenData::new(LlamaToken(token as i32), *logit, 0.0));
            }
        });
        let mut candidates = LlamaTokenDataArray::new(candidates, false);
        candidates.apply_sampler(&mut self.0);
        let token = candidates.selected_token().filter(|token| allowed.is_allowed(token.0 as u32));
        let token =
            token.ok_or_else(|| Error::new(ErrorKind::BadResponse, "the model has no next token that is allowed"))?;
        self.0.accept(token);
        Ok(token)
    }
}
