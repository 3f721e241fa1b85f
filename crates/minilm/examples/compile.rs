//! Compiles a model's folder, and compares its vectors with those of another program: `cargo run -p minilm --example
//! compile -- FOLDER FILE [PROMPT TEXTS.json VECTORS.f32]`. Fails if a cosine is below .99.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use minilm::{CompileOptions, Model, ModelFolder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, file, rest @ ..] = arguments.as_slice() else {
        return Err("name a folder and a file to write".into());
    };
    let (folder, file) = (Path::new(folder), Path::new(file));
    let start = Instant::now();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ModelFolder::open(folder)?.compile(
        file,
        &CompileOptions { name, ..CompileOptions::default() },
        &AtomicBool::new(false),
        &|_| (),
    )?;
    println!("compiled   {:?}", start.elapsed());
    let start = Instant::now();
    let model = Model::open(file)?;
    println!("opened     {:?}", start.elapsed());
    let start = Instant::now();
    model.verify()?;
    println!("verified   {:?}", start.elapsed());
    let [prompt, texts, vectors] = rest else { return Ok(()) };
    let texts: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    let prompted: Vec<String> = texts.iter().map(|text| format!("{prompt}{text}")).collect();
    let prompted: Vec<&str> = prompted.iter().map(String::as_str).collect();
    let start = Instant::now();
    let found = model.embed_batch(&prompted, 2);
    println!("embedded   {} texts in {:?}", texts.len(), start.elapsed());
    let bytes = std::fs::read(vectors)?;
    let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let cosines = found.iter().zip(numbers.chunks_exact(found[0].len())).map(|(a, b)| {
        let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    });
    let mut cosines: Vec<(f64, &str)> = cosines.zip(texts.iter().map(String::as_str)).collect();
    cosines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = cosines.iter().map(|(cosine, _)| cosine).sum::<f64>() / cosines.len() as f64;
    println!("cosine     mean {mean:.5}, least {:.5}", cosines[0].0);
    for (cosine, text) in cosines.iter().take(5) {
        println!("           {cosine:.5} {text:?}");
    }
    if cosines[0].0 < 0.99 { Err("the vectors differ".into()) } else { Ok(()) }
}
