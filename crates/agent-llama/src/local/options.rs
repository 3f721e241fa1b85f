//! Options for loading and sampling a model in this process.

use std::path::PathBuf;

/// Options of [`LocalModel::load`](super::LocalModel::load).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LocalOptions {
    /// The file, in the GGUF format; the first one if the model is split over several.
    pub path: PathBuf,
    /// The chat template, in the Jinja language; by default the file's.
    pub template: Option<String>,
    /// The context length in tokens; by default the one with which the model was trained, but at most 8,192, because
    /// each token takes memory.
    pub context: Option<u32>,
    /// The number of threads; by default one per processor.
    pub threads: Option<u32>,
    /// How many layers are computed on a graphics card; by default all, if the program was built for one.
    pub gpu_layers: Option<u32>,
    /// The most memory that the model may use, in bytes; by default the free memory, if the system reports it.
    pub memory: Option<u64>,
    /// The sampling temperature if the request has none; by default 0.7. At 0 the likeliest token is always chosen.
    pub temperature: f32,
    /// Nucleus sampling: tokens are chosen from the likeliest ones that together have this probability; by default
    /// 0.95.
    pub top_p: f32,
    /// The random seed. The same request with the same seed gives the same text; by default every reply has a new seed.
    pub seed: Option<u32>,
    /// Divides the likelihood of a token that is among the last 64 tokens; by default 1, which has no effect.
    pub repeat_penalty: f32,
    /// Subtracted from the likelihood of a token for each time that it occurs among the last 64 tokens; by default 0.
    pub frequency_penalty: f32,
    /// Subtracted once from the likelihood of a token that occurs among the last 64 tokens; by default 0.
    pub presence_penalty: f32,
    /// Stop sequences: the text of a reply ends before any of these.
    pub stop: Vec<String>,
}

setters!(LocalOptions {
    template: Option<String>,
    context: Option<u32>,
    threads: Option<u32>,
    gpu_layers: Option<u32>,
    memory: Option<u64>,
    temperature: f32,
    top_p: f32,
    seed: Option<u32>,
    repeat_penalty: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
    stop: Vec<String>,
});

impl LocalOptions {
    /// Creates the default options for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            template: None,
            context: None,
            threads: None,
            gpu_layers: None,
            memory: None,
            temperature: 0.7,
            top_p: 0.95,
            seed: None,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            stop: Vec::new(),
        }
    }
}
