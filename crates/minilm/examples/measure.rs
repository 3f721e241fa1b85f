//! Measures the speed of the model and its tokenizer on this machine: `cargo run --release -p minilm --example measure`.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use minilm::{MiniLm, WordPiece};

/// Texts of about 110 tokens each, all different.
fn passages(count: usize) -> Vec<String> {
    let words = include_str!("../testdata/texts.json").split_whitespace().collect::<Vec<_>>();
    let english: Vec<&str> =
        words.into_iter().filter(|word| word.len() < 12 && word.chars().all(|c| c.is_ascii_lowercase())).collect();
    let tokenizer = WordPiece::bundled();
    (0..count)
        .map(|n| {
            let mut text = format!("Note {n}:");
            for word in english.iter().cycle().skip(n * 7) {
                text = text + " " + word;
                if tokenizer.count(&text) >= 108 {
                    break;
                }
            }
            text
        })
        .collect()
}

fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn best<R>(times: usize, mut work: impl FnMut() -> R) -> Duration {
    (0..times).map(|_| timed(&mut work).1).min().unwrap_or_default()
}

fn main() {
    let (_, tokenizer) = timed(WordPiece::bundled);
    println!("tokenizer built        {tokenizer:?}");
    let (model, load) = timed(MiniLm::load);
    println!("model loaded           {load:?}");
    let query = "how to prune apple trees in winter";
    println!("first query            {:?}", timed(|| model.embed(query)).1);
    println!("second query           {:?}", timed(|| model.embed(query)).1);
    println!("queries 3 to 5         {:?}", timed(|| (0..3).for_each(|_| drop(model.embed(query)))).1);
    println!("a query after that     {:?}", best(200, || model.embed(query)));

    let passages = passages(300);
    let texts: Vec<&str> = passages.iter().map(String::as_str).collect();
    let tokens: usize = texts.iter().map(|text| WordPiece::bundled().count(text) + 2).sum();
    println!("tokens a text          {}", tokens / texts.len());
    for threads in [1, 2] {
        let took = best(3, || model.embed_batch(&texts, threads));
        println!("texts/s, {threads} threads     {:.0}", texts.len() as f64 / took.as_secs_f64());
    }

    let english = texts.join("\n").repeat(10);
    let took = best(10, || WordPiece::bundled().count(&english));
    println!("counting, plain words  {:.0} MB/s", english.len() as f64 / took.as_secs_f64() / 1e6);
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let took = best(5, || WordPiece::bundled().count(&text));
        let speed = text.len() as f64 / took.as_secs_f64() / 1e6;
        println!("counting, {path}  {speed:.0} MB/s");
    }
}
