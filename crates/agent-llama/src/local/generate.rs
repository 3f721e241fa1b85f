//! One reply, token by token: text is unconstrained until a call begins; from there on the grammar applies.
//!
//! ```text
//! token ──> bytes ──> parser ── text, thoughts ──> deltas
//!   ^                   └ a call's mark ──> grammar of the tools ──┐
//!   └── sampler <── mask ──────────────────────────────────────────┘
//! ```

use llama_cpp_2::token::LlamaToken;
use llguidance::Matcher;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use agent_loop::ToolSpec;
use agent_loop::Usage;
use agent_loop::text_calls::{Format, Parser, deltas_of};
use agent_loop::{Delta, EndReason, Parallel, Request, ToolChoice};
use agent_loop::{Error, ErrorKind, error::Result};

use super::engine::Engine;
use super::grammar::OutputGrammar;
use super::prompt::may_call;
use super::sampler::Sampler;
use super::stop_filter::StopFilter;

/// A reply in progress.
struct Generation<'e, 'm, 'r> {
    engine: &'e mut Engine<'m>,
    request: &'r Request,
    out: &'r UnboundedSender<Result<Delta>>,
    parser: Parser,
    text: StopFilter,
    matcher: Option<Matcher>,
    sampler: Sampler,
    calls: usize,
    generated: usize,
}

impl Engine<'_> {
    /// Generates the reply to a request. `begun` is called once the prompt is known to fit.
    ///
    /// # Errors
    /// `ContextTooLong`, `Tools`, `BadRequest` if the template rejects the conversation; `Unavailable` if llama.cpp
    /// fails.
    pub(super) fn reply(
        &mut self,
        request: &Request,
        out: &UnboundedSender<Result<Delta>>,
        begun: impl FnOnce(),
    ) -> Result<()> {
        let refused = |why: String| {
            Error::new(ErrorKind::BadRequest, "the chat template refuses the conversation").with_source(why)
        };
        let prompt = self.prompts.prompt(request, &self.vocabulary).map_err(refused)?;
        let (tokens, kept) = self.cache.plan(&prompt, &self.vocabulary);
        if tokens.is_empty() {
            return Err(refused("its prompt is empty".into()));
        }
        let room = self.room(request, tokens.len())?;
        let opens_thoughts = ["<think>", "<thinking>"].into_iter().find(|mark| prompt.trim_end().ends_with(mark));

        let is_plain = request.tools.is_empty();
        let mut parser = match is_plain {
            true => Parser::of(Format::Hermes, [].into()),
            false => Parser::of(self.prompts.form.format, request.tools.clone()),
        };
        if let Some(mark) = opens_thoughts {
            parser.push(mark.as_bytes()).for_each(drop);
        }
        // Built for every request, so that an error comes before the first byte.
        let forced = self.forced(request)?;
        let matcher = forced.filter(|_| opens_thoughts.is_none());
        begun();
        for warning in std::mem::take(&mut self.pending_warnings) {
            send(out, Delta::Warning { text: warning });
        }

        let mut is_cancelled = || {
            send(out, Delta::Progress);
            out.is_closed()
        };
        let Some(evaluated) = self.cache.evaluate(&tokens, kept, &mut is_cancelled)? else { return Ok(()) };
        let mut usage = Usage::default().input(tokens.len() as u64).cached((tokens.len() - evaluated) as u64);
        send(out, Delta::Usage(usage));

        let temperature = request.temperature.map_or(self.options.temperature, |wanted| wanted as f32);
        let mut options = self.options.clone();
        options.top_p = request.settings.top_p.map_or(options.top_p, |wanted| wanted as f32);
        // The lower bits are an equally good seed.
        options.seed = request.settings.seed.map(|wanted| wanted as u32).or(options.seed);
        let sampler = Sampler::new(&options, temperature, self.vocabulary.tokens.n_tokens(), &tokens);
        let stops = [&options.stop[..], &request.settings.stop, &self.prompts.stop].concat();
        let text = StopFilter::new(stops);
        let mut writing =
            Generation { engine: self, request, out, parser, text, matcher, sampler, calls: 0, generated: 0 };
        let end = writing.write(room)?;
        usage = usage.output(writing.generated as u64);
        let generated = writing.generated;
        self.count(tokens.len(), evaluated, generated);
        if let Some(end) = end {
            send(out, Delta::Usage(usage));
            send(out, Delta::End(end));
        }
        Ok(())
    }

    /// Returns how many tokens the reply may have.
    fn room(&self, request: &Request, prompt: usize) -> Result<usize> {
        let context = self.cache.context.n_ctx() as usize;
        let wanted = request.max_output_tokens.map_or(usize::MAX, |most| most as usize);
        let room = context.saturating_sub(prompt);
        // With less than an eighth of the context, an answer is likely to be truncated.
        if room == 0 || room < wanted.min(context / 8) {
            let message = format!("the conversation has {prompt} tokens, and the model's context {context}");
            return Err(Error::new(ErrorKind::ContextTooLong, message)
                .with_remedy("start a new conversation, or load the model with a larger context"));
        }
        Ok(room.min(wanted))
    }

    /// Returns the grammar that applies from the first token on, if one does.
    fn forced(&mut self, request: &Request) -> Result<Option<Matcher>> {
        let must_call = may_call(request) && request.tool_choice != ToolChoice::Auto;
        let answer = request.answer_schema.as_deref().filter(|_| !must_call);
        if !must_call && answer.is_none() {
            return Ok(None);
        }
        let open = self.prompts.form.open.clone();
        let tools = if may_call(request) { offered(request) } else { Vec::new() };
        self.matcher(request, tools, (&open, ""), answer).map(Some)
    }

    fn matcher(
        &mut self,
        request: &Request,
        tools: Vec<&ToolSpec>,
        (open, begun): (&str, &str),
        answer: Option<&Value>,
    ) -> Result<Matcher> {
        let many = request.parallel == Parallel::Many;
        let grammar = OutputGrammar { form: &self.prompts.form, tools, open, begun, many, answer };
        self.grammars.matcher(grammar.lark(&self.vocabulary))
    }
}

/// Returns the tools that may be called.
fn offered(request: &Request) -> Vec<&ToolSpec> {
    let may = |tool: &&ToolSpec| match &request.tool_choice {
        ToolChoice::Tool(name) => tool.name == *name,
        _ => true,
    };
    request.tools.iter().filter(may).collect()
}

impl Generation<'_, '_, '_> {
    /// Generates tokens until the end; `None` if the receiver of the reply was dropped.
    fn write(&mut self, room: usize) -> Result<Option<EndReason>> {
        loop {
            if self.out.is_closed() {
                return Ok(None);
            }
            // Sent for each token, because its text may be held back for a long time.
            send(self.out, Delta::Progress);
            let token = self.next()?;
            if self.engine.vocabulary.tokens.is_eog(token) {
                return Ok(Some(self.finish(EndReason::Complete)));
            }
            self.generated += 1;
            let Some(tokens) = self.take(token)? else { return Ok(Some(self.finish(EndReason::Complete))) };
            if self.generated >= room {
                return Ok(Some(self.finish(EndReason::Length)));
            }
            for token in tokens {
                self.engine.cache.push(token)?;
            }
        }
    }

    fn next(&mut self) -> Result<LlamaToken> {
        let mask = match &mut self.matcher {
            Some(matcher) => Some(matcher.compute_mask_or_eos().map_err(broken)?),
            None => None,
        };
        // The reply must not end within thoughts before a forced call.
        let mask = mask.or_else(|| self.must_go_on().then(|| self.engine.all_but_ends()));
        let cache = &self.engine.cache;
        self.sampler.next(&cache.context, cache.last_index(), mask.as_ref())
    }

    fn is_forced(&self) -> bool {
        let must_call = may_call(self.request) && self.request.tool_choice != ToolChoice::Auto;
        must_call || self.request.answer_schema.is_some()
    }

    fn must_go_on(&self) -> bool {
        self.is_forced() && self.parser.is_in_thoughts()
    }

    /// Processes a sampled token, and returns the tokens that continue in its place; `None` if the reply is over.
    fn take(&mut self, token: LlamaToken) -> Result<Option<Vec<LlamaToken>>> {
        let bytes = self.engine.shown(token);
        if let Some(matcher) = &mut self.matcher {
            matcher.consume_token(token.0 as u32).map_err(broken)?;
            let is_over = matcher.is_stopped();
            let has_stopped = self.push(&bytes);
            return Ok((!is_over && !has_stopped).then(|| vec![token]));
        }
        let was_in_thoughts = self.parser.is_in_thoughts();
        for at in 0..bytes.len() {
            if self.push(&bytes[at..=at]) {
                return Ok(None);
            }
            if self.request.tools.is_empty() || self.parser.open_call().is_none() {
                continue;
            }
            if !may_call(self.request) {
                // The reply ends where a call would begin.
                self.parser = Parser::new();
                return Ok(None);
            }
            if self.begin_call()? {
                return Ok(Some(self.engine.without_tail(token, bytes.len() - at - 1)));
            }
        }
        if was_in_thoughts && !self.parser.is_in_thoughts() && self.is_forced() {
            self.matcher = self.engine.forced(self.request)?;
        }
        Ok(Some(vec![token]))
    }

    /// Returns whether a call follows the mark: then the grammar applies.
    fn begin_call(&mut self) -> Result<bool> {
        let (mark, tail) = self.parser.open_call().unwrap_or_default();
        let open = &self.engine.prompts.form.open;
        let open = open.find(mark).map_or(open.as_str(), |at| &open[at + mark.len()..]).to_string();
        // If a longer mark begins with this one, some text after it was already read when the mark was recognized.
        let tail = tail.to_string();
        let mut tools = offered(self.request);
        tools.retain(|tool| format!("{open}{}", tool.name).starts_with(&tail));
        if !tools.is_empty() {
            self.matcher = Some(self.engine.matcher(self.request, tools, (&open, &tail), None)?);
        }
        Ok(self.matcher.is_some())
    }

    /// Passes bytes to the parser and sends its output. Returns whether a stop text ends the reply.
    fn push(&mut self, bytes: &[u8]) -> bool {
        // The grammar limits the number of calls.
        let deltas = deltas_of(self.parser.push(bytes), &mut self.calls, Parallel::Many);
        self.send(deltas)
    }

    fn send(&mut self, deltas: Vec<Delta>) -> bool {
        for delta in deltas {
            match delta {
                Delta::Text { text } => {
                    let (text, is_over) = self.text.push(&text);
                    self.show(text);
                    if is_over {
                        return true;
                    }
                }
                Delta::CallStart { .. } | Delta::CallFault { .. } => {
                    self.end_text();
                    send(self.out, delta);
                }
                other => send(self.out, other),
            }
        }
        false
    }

    fn show(&mut self, text: String) {
        if !text.is_empty() {
            send(self.out, Delta::Text { text });
        }
    }

    fn end_text(&mut self) {
        let text = self.text.finish();
        self.show(text);
    }

    /// Handles the text that was held back, and ends the reply.
    fn finish(&mut self, reason: EndReason) -> EndReason {
        let deltas = deltas_of(self.parser.finish(), &mut self.calls, Parallel::Many);
        self.send(deltas);
        self.end_text();
        reason
    }
}

fn send(out: &UnboundedSender<Result<Delta>>, delta: Delta) {
    // An error means that the receiver was dropped, which is checked before each token.
    let _ = out.send(Ok(delta));
}

fn broken(error: impl ToString) -> Error {
    Error::new(ErrorKind::BadResponse, "the grammar of the reply failed").with_source(error.to_string())
}
