//! Compares how many texts per second we and the peers embed: `embed_throughput --help`.
//!
//! A first race finds the best setting of each peer. In the second race, we and the peers with their best settings take
//! turns, A B C A B C …, so that other load of the machine affects all alike; the result is the median of the ratios
//! within a round. Every time includes tokenizing, pooling and scaling to unit length. The texts are the same for all,
//! and sorted by length, so that batches have little padding. Cosines with the f32 model show that all compute the
//! same.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use benches::{demo_vault, make_texts, median};
use clap::Parser;
use fastembed::{InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel};
use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::Tensor;
use tokenizers::{Encoding, Tokenizer, TruncationParams};
use vault_index::{Embedder, LoadOptions, ModelName, Role};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Vectors = Vec<Vec<f32>>;

/// Measures embedded texts per second, compared with fastembed and ONNX Runtime.
#[derive(Debug, Parser)]
struct Args {
    /// Our model, of the same weights as the peers', for example `dir:FOLDER`
    #[arg(long, value_name = "MODEL", default_value = "minilm")]
    model: ModelName,
    /// The text that our model puts before a passage, which the peers get too
    #[arg(long, value_name = "TEXT", default_value = "")]
    prompt: String,
    /// Folder of the f32 model and its tokenizer, from benches/peers/make_models.py
    #[arg(long, value_name = "DIR")]
    fastembed_f32: PathBuf,
    /// A dynamic int8 model (repeatable; the best one counts)
    #[arg(long, value_name = "FILE", required = true)]
    ort_int8: Vec<PathBuf>,
    /// The library of ONNX Runtime, 1.24 or newer
    #[arg(long, value_name = "FILE", env = "ORT_DYLIB_PATH")]
    runtime: PathBuf,
    /// Number of texts
    #[arg(long, default_value_t = 256)]
    texts: usize,
    /// Minimum number of tokens in a text, which ends with the sentence that reaches it
    #[arg(long, default_value_t = 98)]
    tokens: usize,
    /// Seed of the texts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Batch sizes of the peers' models; each is tried
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    batches: Vec<usize>,
    /// Number of rounds in the first race, with all settings of the peers
    #[arg(long, default_value_t = 3)]
    first: usize,
    /// Number of rounds in the second race, with the best setting of each
    #[arg(long, default_value_t = 9)]
    second: usize,
}

/// The length of the vectors.
const DIMENSIONS: usize = 384;
/// The maximum number of tokens of a text that are used, including special tokens.
const MAX_TOKENS: usize = 256;
/// The indexer passes this many batches to an embedder at once.
const INDEXER_BATCHES: usize = 4;

/// The embedding library of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    Us,
    Fastembed,
    OnnxRuntime,
}

/// The texts without the prompt, which our model adds itself, and with it.
struct Texts<'t> {
    ours: Vec<&'t str>,
    peers: Vec<&'t str>,
}

/// A function from texts to vectors.
type Embed<'a> = dyn FnMut(&[&str]) -> Result<Vectors> + 'a;

/// One way to embed texts.
struct Setting<'a> {
    runner: Runner,
    name: String,
    embed: Box<Embed<'a>>,
    /// The seconds of each round.
    seconds: Vec<f64>,
}

impl<'a> Setting<'a> {
    fn new(runner: Runner, name: String, embed: impl FnMut(&[&str]) -> Result<Vectors> + 'a) -> Self {
        Self { runner, name, embed: Box::new(embed), seconds: Vec::new() }
    }

    fn embed(&mut self, texts: &Texts<'_>) -> Result<Vectors> {
        (self.embed)(if self.runner == Runner::Us { &texts.ours } else { &texts.peers })
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let cores = thread::available_parallelism()?.get();
    let model = args.model.load(&LoadOptions::default())?;
    let mut texts = make_texts(&demo_vault(), args.texts, args.seed, |text| model.count(text) >= args.tokens)?;
    texts.sort_by_key(String::len);
    let prompted: Vec<String> = texts.iter().map(|text| format!("{}{text}", args.prompt)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let tokens: usize = texts.iter().map(|text| model.count(text)).sum();
    println!("{} texts of {} tokens on average, {cores} threads", texts.len(), tokens / texts.len().max(1));

    // Initialize ONNX Runtime with the path of its library first, because it hangs with a library that is too old.
    let environment = ort::init_from(&args.runtime)?.build()?;
    let tokenizer = tokenizer(&args.fastembed_f32)?;
    let mut settings = vec![ours(&*model)];
    for batch in [None].into_iter().chain(args.batches.iter().copied().map(Some)) {
        settings.push(fastembed_at(&environment, &args.fastembed_f32, batch)?);
    }
    for file in &args.ort_int8 {
        for (sessions, threads) in [(1, cores), (cores, 1)] {
            for &batch in &args.batches {
                settings.push(onnx_runtime_at(&environment, &tokenizer, file, sessions, threads, batch)?);
            }
        }
    }

    let mut all: Vec<&mut Setting<'_>> = settings.iter_mut().collect();
    let texts = Texts { ours: texts, peers: prompted.iter().map(String::as_str).collect() };
    check(&mut all, &texts)?;
    race(&mut all, &texts, args.first)?;
    println!("\nfirst race, {} rounds, texts a second", args.first);
    report(&all, texts.ours.len());

    let best = [Runner::Us, Runner::Fastembed, Runner::OnnxRuntime].map(|runner| best_of(&all, runner));
    let mut places = 0..;
    all.retain(|_| best.contains(&places.next()));
    race(&mut all, &texts, args.second)?;
    println!("\nsecond race, {} rounds, texts a second", args.second);
    report(&all, texts.ours.len());
    Ok(())
}

/// Our setting: the model called like in the indexer.
fn ours(model: &dyn Embedder) -> Setting<'_> {
    Setting::new(Runner::Us, "ours".into(), move |texts| {
        let mut vectors = Vec::with_capacity(texts.len());
        for part in texts.chunks(INDEXER_BATCHES * model.batch_size()) {
            vectors.extend(model.embed(part, Role::Passage)?);
        }
        Ok(vectors)
    })
}

/// A setting of fastembed as its users call it, on all cores. Without a batch size, it uses its default.
fn fastembed_at(environment: &Environment, folder: &Path, batch: Option<usize>) -> Result<Setting<'static>> {
    let files = TokenizerFiles {
        tokenizer_file: fs::read(folder.join("tokenizer.json"))?,
        config_file: fs::read(folder.join("config.json"))?,
        special_tokens_map_file: fs::read(folder.join("special_tokens_map.json"))?,
        tokenizer_config_file: fs::read(folder.join("tokenizer_config.json"))?,
    };
    let model = UserDefinedEmbeddingModel::new(fs::read(folder.join("model.onnx"))?, files).with_pooling(Pooling::Mean);
    let options = InitOptionsUserDefined::new().with_max_length(MAX_TOKENS).with_environment(environment.clone());
    let mut model = TextEmbedding::try_new_from_user_defined(model, options)?;
    let name =
        batch.map_or("fastembed f32, its own batches".into(), |batch| format!("fastembed f32, batches of {batch}"));
    Ok(Setting::new(Runner::Fastembed, name, move |texts| Ok(model.embed(texts, batch)?)))
}

/// A setting of ONNX Runtime without fastembed: `sessions` concurrent sessions with `threads` threads each.
fn onnx_runtime_at<'a>(
    environment: &Environment,
    tokenizer: &'a Tokenizer,
    file: &Path,
    sessions: usize,
    threads: usize,
    batch: usize,
) -> Result<Setting<'a>> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("ONNX Runtime {stem}, {sessions} sessions x {threads} threads, batches of {batch}");
    let mut sessions: Vec<Session> =
        (0..sessions).map(|_| session(environment, file, threads)).collect::<ort::Result<_>>()?;
    Ok(Setting::new(Runner::OnnxRuntime, name, move |texts| embed_on(&mut sessions, tokenizer, texts, batch)))
}

fn session(environment: &Environment, file: &Path, threads: usize) -> ort::Result<Session> {
    Session::builder(environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(threads)?
        .commit_from_file(file)
}

/// Loads the reference tokenizer. Overrides the padding and truncation at 128 tokens in its file, which the model's
/// users do not apply.
fn tokenizer(folder: &Path) -> Result<Tokenizer> {
    let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(Some(TruncationParams { max_length: MAX_TOKENS, ..TruncationParams::default() }))?;
    Ok(tokenizer)
}

/// Distributes the batches among the sessions: a free session takes the next batch.
fn embed_on(sessions: &mut [Session], tokenizer: &Tokenizer, texts: &[&str], batch: usize) -> Result<Vectors> {
    let batches: Vec<&[&str]> = texts.chunks(batch.max(1)).collect();
    let next = AtomicUsize::new(0);
    let is_alone = sessions.len() == 1;
    let work = |session: &mut Session| -> Result<Vec<(usize, Vectors)>> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(texts) = batches.get(at) else { return Ok(done) };
            // A single session may tokenize on all cores.
            let encoded: Vec<Encoding> = match is_alone {
                true => tokenizer.encode_batch_fast(texts.to_vec(), true)?,
                false => {
                    texts.iter().map(|text| tokenizer.encode_fast(*text, true)).collect::<tokenizers::Result<_>>()?
                }
            };
            done.push((at, run(session, &encoded)?));
        }
    };
    let parts = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = sessions.iter_mut().map(|session| scope.spawn(move || work(session))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Vec<(usize, Vectors)>>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let mut done: Vec<(usize, Vectors)> = parts.into_iter().flatten().collect();
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().flat_map(|(_, vectors)| vectors).collect())
}

/// Embeds one batch, padded to its longest text. Returns mean-pooled vectors of unit length.
fn run(session: &mut Session, encoded: &[Encoding]) -> Result<Vectors> {
    let width = encoded.iter().map(|one| one.get_ids().len()).max().unwrap_or(0);
    let (mut ids, mut mask) = (vec![0i64; encoded.len() * width], vec![0i64; encoded.len() * width]);
    for (row, one) in encoded.iter().enumerate() {
        for (column, &id) in one.get_ids().iter().enumerate() {
            ids[row * width + column] = i64::from(id);
            mask[row * width + column] = 1;
        }
    }
    let shape = [encoded.len(), width];
    let outputs = session.run(ort::inputs![
        "input_ids" => Tensor::from_array((shape, ids))?,
        "attention_mask" => Tensor::from_array((shape, mask))?,
        "token_type_ids" => Tensor::from_array((shape, vec![0i64; encoded.len() * width]))?,
    ])?;
    let (_, hidden) = outputs["last_hidden_state"].try_extract_tensor::<f32>()?;
    let rows = hidden.chunks_exact(width * DIMENSIONS);
    Ok(encoded.iter().zip(rows).map(|(one, rows)| pooled(&rows[..one.get_ids().len() * DIMENSIONS])).collect())
}

/// Returns the direction of the sum of the tokens' vectors, which is the direction of their mean.
fn pooled(rows: &[f32]) -> Vec<f32> {
    let mut sum = vec![0.0f32; DIMENSIONS];
    for row in rows.chunks_exact(DIMENSIONS) {
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    sum.iter_mut().for_each(|x| *x /= norm);
    sum
}

/// Warms up all settings, and prints the cosines of their vectors with those of the f32 model.
fn check(settings: &mut [&mut Setting<'_>], texts: &Texts<'_>) -> Result<()> {
    let mut vectors = Vec::new();
    for setting in settings.iter_mut() {
        eprintln!("warming up: {}", setting.name);
        vectors.push(setting.embed(texts)?);
    }
    let original = settings.iter().position(|setting| setting.runner == Runner::Fastembed).ok_or("no f32 model")?;
    println!("\ncosine with the f32 model, mean and least");
    for (setting, own) in settings.iter().zip(&vectors) {
        let cosines: Vec<f32> = own.iter().zip(&vectors[original]).map(|(a, b)| dot(a, b)).collect();
        let mean = cosines.iter().sum::<f32>() / cosines.len().max(1) as f32;
        let least = cosines.iter().copied().fold(f32::INFINITY, f32::min);
        println!("{mean:.4}  {least:.4}  {}", setting.name);
    }
    Ok(())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Lets all settings embed all texts in turn, `rounds` times. Discards earlier times.
fn race(settings: &mut [&mut Setting<'_>], texts: &Texts<'_>, rounds: usize) -> Result<()> {
    settings.iter_mut().for_each(|setting| setting.seconds.clear());
    for round in 1..=rounds.max(1) {
        eprintln!("round {round} of {}", rounds.max(1));
        for setting in settings.iter_mut() {
            let start = Instant::now();
            let vectors = setting.embed(texts)?;
            setting.seconds.push(start.elapsed().as_secs_f64());
            assert_eq!(vectors.len(), texts.ours.len());
        }
    }
    Ok(())
}

/// Returns the position of a library's fastest setting, by the median.
fn best_of(settings: &[&mut Setting<'_>], runner: Runner) -> Option<usize> {
    let of_runner = settings.iter().enumerate().filter(|(_, setting)| setting.runner == runner);
    of_runner.map(|(at, setting)| (at, median(&setting.seconds))).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// Prints the speeds, and the ratios of our speed to the others in the same round. Our setting is the first.
fn report(settings: &[&mut Setting<'_>], texts: usize) {
    println!("median   least    most  we are  setting");
    for setting in settings {
        let speeds: Vec<f64> = setting.seconds.iter().map(|seconds| texts as f64 / seconds).collect();
        let ratios: Vec<f64> = setting.seconds.iter().zip(&settings[0].seconds).map(|(they, we)| they / we).collect();
        let least = speeds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = speeds.iter().copied().fold(0.0, f64::max);
        let (speed, ratio) = (median(&speeds), median(&ratios));
        println!("{speed:6.1}  {least:6.1}  {most:6.1}  {ratio:5.2}x  {}", setting.name);
    }
}
