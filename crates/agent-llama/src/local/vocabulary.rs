//! The tokens of a model: their texts, which of them are special, and which of these texts must be escaped in other
//! text.

use std::collections::{BTreeSet, HashSet};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use llama_cpp_2::vocab::LlamaVocab;

use super::form::CallForm;

/// The vocabulary data that a grammar, a prompt and a cache need.
pub(super) struct Vocabulary<'m> {
    pub(super) tokens: LlamaVocab<'m>,
    /// Tokens that ordinary text cannot produce, such as the mark of a turn, with their texts; longest first.
    controls: Vec<(String, LlamaToken)>,
    /// The texts that a prompt must not contain from outside: those of special tokens, and the tags of the template.
    reserved: HashSet<String>,
    lengths: BTreeSet<usize>,
    pub(super) bos: String,
    pub(super) eos: String,
    adds_bos: bool,
}

impl<'m> Vocabulary<'m> {
    pub(super) fn new(model: &'m LlamaModel, template: &str) -> Self {
        let tokens = model.vocab();
        let text = |token| String::from_utf8_lossy(&tokens.token_to_piece(token, true, None)).into_owned();
        let mut controls = Vec::new();
        let mut reserved: HashSet<String> = tags(template).map(String::from).collect();
        for token in tokens.tokens() {
            let is_control = tokens.is_control(token);
            if is_control || tokens.attr(token).contains(LlamaTokenAttr::UserDefined) {
                let text = text(token);
                if is_control {
                    controls.push((text.clone(), token));
                }
                // In some vocabularies runs of spaces and line breaks are tokens, but not special ones.
                if text.len() > 2 && text.contains(['<', '[', '|', '｜']) {
                    reserved.insert(text);
                }
            }
        }
        controls.retain(|(text, _)| !text.is_empty());
        controls.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let lengths = reserved.iter().map(String::len).collect();
        let special = |token: LlamaToken| if token.0 < 0 { String::new() } else { text(token) };
        let (bos, eos) = (special(tokens.bos()), special(tokens.eos()));
        let adds_bos = tokens.should_add_bos() && !bos.is_empty();
        Self { controls, reserved, lengths, bos, eos, adds_bos, tokens }
    }

    /// Returns the tokens of a part of a prompt, including special tokens.
    pub(super) fn tokenize(&self, text: &str) -> Vec<LlamaToken> {
        self.tokens.tokenize(text.as_bytes(), false, true)
    }

    /// Adds the mark of a prompt's beginning, if the model wants one.
    pub(super) fn with_bos(&self, prompt: String) -> String {
        if self.adds_bos && !prompt.starts_with(&self.bos) { self.bos.clone() + &prompt } else { prompt }
    }

    /// Returns the bytes of a token, including special ones.
    pub(super) fn bytes(&self, token: LlamaToken) -> Vec<u8> {
        self.tokens.token_to_piece(token, true, None)
    }

    /// Splits a text into special tokens and the parts between them.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        let (mut begin, mut at) = (0, 0);
        while at < text.len() {
            let control = self.controls.iter().find(|(control, _)| text[at..].starts_with(control.as_str()));
            let Some((control, token)) = control else {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
                continue;
            };
            if begin < at {
                parts.push(Part::Text(&text[begin..at]));
            }
            parts.push(Part::Control(*token));
            at += control.len();
            begin = at;
        }
        if begin < text.len() {
            parts.push(Part::Text(&text[begin..]));
        }
        parts
    }

    /// Returns the special tokens in calls of this form and in thoughts.
    pub(super) fn marks(&self, form: &CallForm) -> HashSet<LlamaToken> {
        let texts = [Some(&form.open), Some(&form.middle), Some(&form.close), form.between.as_ref()];
        let is_mark = |text: &str| form.format.has_mark(text) || texts.iter().flatten().any(|part| part.contains(text));
        self.controls.iter().filter(|(text, _)| is_mark(text)).map(|(_, token)| *token).collect()
    }

    /// Returns the position of the first token in a text that ends a reply.
    pub(super) fn end_of_turn(&self, text: &str) -> Option<usize> {
        let ends = self.controls.iter().filter(|(_, token)| self.tokens.is_eog(*token));
        ends.filter_map(|(control, _)| text.find(control.as_str())).min()
    }

    /// Escapes a text from outside, so that nothing in it is a special token or a tag of the template: the first
    /// character of each is written as a character reference. Linear except for the number of different lengths.
    pub(super) fn escape(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            let begins = !next.is_alphanumeric() && !next.is_whitespace() && self.is_reserved_at(text, at);
            if begins {
                out.push_str(&format!("&#{};", u32::from(next)));
            } else {
                out.push(next);
            }
            at += next.len_utf8();
        }
        out
    }

    fn is_reserved_at(&self, text: &str, at: usize) -> bool {
        let rest = &text[at..];
        self.lengths.iter().any(|length| rest.get(..*length).is_some_and(|part| self.reserved.contains(part)))
    }
}

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    Control(LlamaToken),
}

/// Returns the tags that a template writes, such as `<tool_response>` and `[INST]`.
fn tags(template: &str) -> impl Iterator<Item = &str> {
    const LONGEST: usize = 40;
    template.match_indices(['<', '[']).filter_map(|(at, open)| {
        let close = if open == "<" { '>' } else { ']' };
        let end = template[at..].find(close).filter(|end| (2..LONGEST).contains(end))?;
        let inside = &template[at + 1..at + end];
        let is_word = |c: char| c.is_alphanumeric() || "_|/-｜▁".contains(c);
        let is_tag = match open {
            "<" => inside.chars().all(is_word) && inside.contains(|c: char| c.is_alphabetic()),
            _ => inside.len() > 2 && inside.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == '/'),
        };
        is_tag.then(|| &template[at..=at + end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_templates_own_tags_are_found() {
        let template =
            "{% if a < b %}<|im_start|>user\n<tool_response>{{ x['y'] }}</tool_response>[INST] [/INST] <a b> [0]";
        let found: Vec<&str> = tags(template).collect();
        assert_eq!(found, ["<|im_start|>", "<tool_response>", "</tool_response>", "[INST]", "[/INST]"]);
    }
}
