//! How a model in this process is loaded and sampled.

use std::path::PathBuf;

/// Options of [`LocalModel::load`](super::LocalModel::load).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LocalOptions {
    /// The file, in the format GGUF; the first one where the model is split over several.
    pub path: PathBuf,
    /// The chat template, in Jinja's language; by default the file's.
    pub template: Option<String>,
    /// Tokens of context; by default those that the model was trained on, 8,192 at most, since each takes memory.
    pub context: Option<u32>,
    /// Threads to compute on; by default one for each processor.
    pub threads: Option<u32>,
    /// How many layers are computed on a graphics card; by default all, where the program is built for one.
    pub gpu_layers: Option<u32>,
    /// The most memory it may take, in bytes; by default what is free, where the system tells.
    pub memory: Option<u64>,
    /// Randomness where the request does not say: by default 0.7. At 0 the likeliest token is always taken.
    pub temperature: f32,
    /// Tokens are chosen from the likeliest ones that together have this probability; by default 0.95.
    pub top_p: f32,
    /// The same request with the same seed gives the same text; by default every reply has another one.
    pub seed: Option<u32>,
    /// What a token's likelihood is divided by when it is among the last 64 ones: by default 1, which changes nothing.
    pub repeat_penalty: f32,
    /// What a token's likelihood is lowered by for each time it is among the last 64 ones: by default 0.
    pub frequency_penalty: f32,
    /// What a token's likelihood is lowered by once when it is among the last 64 ones: by default 0.
    pub presence_penalty: f32,
    /// The text of a reply ends before any of these.
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
    /// The default ones for a file.
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
