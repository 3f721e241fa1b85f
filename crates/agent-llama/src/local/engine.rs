//! A loaded model, with everything that a reply needs.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};
use llguidance::toktrie::SimpleVob;

use crate::gguf::Gguf;
use agent_loop::{Error, ErrorKind, error::Result};

use super::cache::{Cache, CacheUse};
use super::grammar::Grammars;
use super::memory;
use super::options::LocalOptions;
use super::prompt::Prompts;
use super::vocabulary::Vocabulary;

/// The default context length, unless the model was trained with a shorter one.
const USUAL_CONTEXT: u32 = 8_192;
/// How many tokens are evaluated at once.
const CHUNK: usize = 512;

/// A loaded model.
pub(super) struct Engine<'m> {
    pub(super) options: LocalOptions,
    pub(super) vocabulary: Vocabulary<'m>,
    pub(super) prompts: Prompts,
    pub(super) grammars: Grammars,
    pub(super) cache: Cache<'m>,
    /// Warnings that no reply has reported yet.
    pub(super) pending_warnings: Vec<String>,
    /// Special tokens that are part of calls and thoughts; others are not text.
    marks: HashSet<LlamaToken>,
    usage: Arc<Mutex<CacheUse>>,
}

/// A process has one backend for all models.
static BACKEND: LazyLock<Result<LlamaBackend, String>> = LazyLock::new(|| {
    // Without this, llama.cpp writes to standard error.
    send_logs_to_tracing(LogOptions::default());
    LlamaBackend::init().map_err(|error| error.to_string())
});

/// Loads a model's weights, and returns the length of its context in tokens.
///
/// # Errors
/// Those of [`LocalModel::load`](super::LocalModel::load), without the path.
pub(super) fn load(
    options: &LocalOptions,
    mut progress: impl FnMut(f32) -> bool + 'static,
) -> Result<(&'static LlamaBackend, Gguf, LlamaModel, u32)> {
    let header = Gguf::read(&options.path)?;
    if !header.writes_text() {
        let message = format!("a model of the architecture {:?} does not generate text", header.architecture);
        return Err(Error::new(ErrorKind::BadRequest, message).with_remedy("choose a model for conversations"));
    }
    let trained = header.context_length.and_then(|length| u32::try_from(length).ok()).unwrap_or(USUAL_CONTEXT);
    let context = options.context.unwrap_or(trained.min(USUAL_CONTEXT)).max(8);
    memory::check(&header, weight_bytes(&options.path, &header), context, options.memory)?;
    check_processor()?;
    let backend = BACKEND.as_ref().map_err(|why| {
        Error::new(ErrorKind::State, "llama.cpp is used by another part of this program").with_source(why.clone())
    })?;
    let cancelled = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let mut params = LlamaModelParams::default().with_progress_callback(move |part| {
        let goes_on = progress(part);
        flag.store(!goes_on, std::sync::atomic::Ordering::Relaxed);
        goes_on
    });
    if let Some(layers) = options.gpu_layers {
        params = params.with_n_gpu_layers(layers);
    }
    let model = LlamaModel::load_from_file(backend, &options.path, &params).map_err(|error| {
        if cancelled.load(std::sync::atomic::Ordering::Relaxed) {
            return Error::new(ErrorKind::State, "loading was cancelled");
        }
        let message = format!("llama.cpp cannot load this model, whose architecture is {:?}", header.architecture);
        let remedy = "a newer version of this program may know it; or the file is damaged: download it again";
        Error::new(ErrorKind::BadRequest, message).with_source(error).with_remedy(remedy)
    })?;
    Ok((backend, header, model, context))
}

/// Returns the weights of all parts of a model that is split over several files.
fn weight_bytes(path: &Path, header: &Gguf) -> u64 {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let Some((stem, count)) = name.strip_suffix(".gguf").and_then(|name| name.split_once("-00001-of-")) else {
        return header.weight_bytes;
    };
    let parts = 2..=count.parse::<u32>().unwrap_or(1).min(999);
    let part = |part| path.with_file_name(format!("{stem}-{part:05}-of-{count}.gguf"));
    let others = parts.filter_map(|number| Some(std::fs::metadata(part(number)).ok()?.len()));
    others.fold(header.weight_bytes, u64::saturating_add)
}

impl<'m> Engine<'m> {
    pub(super) fn new(
        backend: &LlamaBackend,
        model: &'m LlamaModel,
        header: &Gguf,
        context: u32,
        options: LocalOptions,
        usage: Arc<Mutex<CacheUse>>,
    ) -> Result<Self> {
        let processors = || std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let threads = options.threads.unwrap_or_else(processors).clamp(1, 512) as i32;
        // A chunk cannot be cancelled, so it is smaller for a large model.
        let chunk = match header.weight_bytes {
            0..2_000_000_000 => CHUNK,
            2_000_000_000..8_000_000_000 => CHUNK / 4,
            _ => CHUNK / 8,
        };
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(context))
            .with_n_batch(CHUNK as u32)
            .with_n_ubatch(CHUNK as u32)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_no_perf(true);
        let context = model.new_context(backend, params).map_err(|error| {
            Error::new(ErrorKind::Memory, "llama.cpp cannot make the model's context")
                .with_source(error)
                .with_remedy("choose a smaller context")
        })?;
        let template = options.template.as_deref().or(header.chat_template.as_deref());
        let vocabulary = Vocabulary::new(model, template.unwrap_or_default());
        let prompts = Prompts::new(template, &vocabulary);
        let pending_warnings = prompts.warnings.clone();
        let marks = vocabulary.marks(&prompts.form);
        let grammars = Grammars::new(model)?;
        let cache = Cache::new(context, chunk);
        Ok(Self { options, vocabulary, prompts, grammars, cache, pending_warnings, marks, usage })
    }

    /// Returns the bytes of a token as a reader sees them.
    pub(super) fn shown(&self, token: LlamaToken) -> Vec<u8> {
        if self.vocabulary.tokens.is_control(token) && !self.marks.contains(&token) {
            return Vec::new();
        }
        self.vocabulary.bytes(token)
    }

    /// Returns tokens of the same text without its last bytes.
    pub(super) fn without_tail(&self, token: LlamaToken, tail: usize) -> Vec<LlamaToken> {
        let bytes = self.vocabulary.bytes(token);
        if tail == 0 || tail >= bytes.len() {
            return vec![token];
        }
        self.vocabulary.tokenize(&String::from_utf8_lossy(&bytes[..bytes.len() - tail]))
    }

    /// Returns every token except those that end a reply.
    pub(super) fn all_but_ends(&self) -> SimpleVob {
        let tokens = &self.vocabulary.tokens;
        let mut all = SimpleVob::alloc_ones(tokens.n_tokens() as usize);
        for token in tokens.tokens().filter(|token| tokens.is_eog(*token)) {
            all.disallow_token(token.0 as u32);
        }
        all
    }

    pub(super) fn count(&self, prompt: usize, evaluated: usize, generated: usize) {
        let mut all = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        all.prompt += prompt as u64;
        all.evaluated += evaluated as u64;
        all.generated += generated as u64;
    }
}

/// Checks for the instructions with which llama.cpp is built by default, because it crashes on a processor without
/// them.
///
/// # Errors
/// `State` on a processor that lacks them.
fn check_processor() -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    {
        let is_there = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        if !is_there || !std::is_x86_feature_detected!("f16c") || !std::is_x86_feature_detected!("bmi2") {
            let message = "models in this process need a processor with AVX2, FMA, F16C and BMI2";
            return Err(Error::new(ErrorKind::State, message).with_remedy("use llama-server, built for this processor"));
        }
    }
    Ok(())
}
