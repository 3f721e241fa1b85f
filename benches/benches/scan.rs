//! Exact semantic search as a user calls it, a warm `Searcher::search`, compared with the peers, all in turns.
//!
//! The index is filled by an embedder that returns the bench's vectors, which are resampled from real embeddings
//! (`src/rows.rs`); the queries are real. There are 100,000 rows, with `BENCH_LARGE=1` also 1,000,000. usearch is
//! included with `--features peers`. The result is the median of the ratios within a round.

#![allow(clippy::print_stdout, reason = "a program that reports")]

use std::hint::black_box;
use std::sync::Arc;

#[cfg(feature = "peers")]
use benches::peers::Usearch;
use benches::peers::{Element, SqliteVec, overlap, plain_top_k};
use benches::{IndexedRows, ROWS_SEED, RealVectors, StoredVectors, TAG_1, TAG_10, Turns, data_folder, resample};
use vault_index::backend::Kernel;
use vault_index::{LoadOptions, Mode, ModelName, Query, Role};

const ROWS: usize = 100_000;
const LARGE: usize = 1_000_000;
/// The number of queries in a round.
const QUERIES: usize = 16;
const K: usize = 10;

fn main() {
    // When benches are run as tests, this argument is missing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let real = RealVectors::stored_in(&data_folder().expect("a folder")).expect("real vectors");
    measure(&real, ROWS, 9);
    if std::env::var("BENCH_LARGE").is_ok_and(|value| value == "1") {
        measure(&real, LARGE, 3);
    }
    embedding();
}

fn measure(real: &RealVectors, count: usize, rounds: usize) {
    let rows = resample(&real.passages, real.dimensions, count, ROWS_SEED);
    let vectors = Arc::new(StoredVectors::new(real.dimensions, rows, real.queries.clone()));
    let folder = data_folder().expect("a folder").join(format!("indexed-{count}"));
    let indexed = IndexedRows::new(&folder, &vectors).expect("an index");
    let by_vector = |tag| -> Vec<Query> {
        let query = |number| IndexedRows::query(Query::from_vector(vectors.query(number)), K, tag);
        (0..QUERIES).map(query).collect()
    };
    let text = |number| IndexedRows::query(Query::literal(format!("query {number}")).mode(Mode::Semantic), K, None);
    let (all, tenth, hundredth) = (by_vector(None), by_vector(Some(TAG_10)), by_vector(Some(TAG_1)));
    let texts: Vec<Query> = (0..QUERIES).map(text).collect();

    let tables = [("sqlite-vec 0.1.9, f32", Element::F32), ("sqlite-vec, int8", Element::Int8)];
    let tables = tables.map(|(name, element)| (name, SqliteVec::new(vectors.rows(), real.dimensions, element)));
    #[cfg(feature = "peers")]
    let usearch = (count <= ROWS).then(|| Usearch::new(vectors.rows(), real.dimensions, 2).expect("an index"));
    let mut turns = Turns::new();
    turns.add("ours", |query| drop(black_box(indexed.search(&all[query]))));
    turns.add("ours, by text (its embedding apart)", |query| drop(black_box(indexed.search(&texts[query]))));
    turns.add("ours, a filter that 10 % pass", |query| drop(black_box(indexed.search(&tenth[query]))));
    turns.add("ours, a filter that 1 % pass", |query| drop(black_box(indexed.search(&hundredth[query]))));
    turns.add("ours, 16 queries in one call, each", |query| {
        if query == 0 {
            drop(black_box(indexed.search_many(&all)));
        }
    });
    turns.add("a plain loop in f32", |query| {
        drop(black_box(plain_top_k(vectors.rows(), vectors.query(query), K, |_| true)));
    });
    for (name, table) in &tables {
        let table = table.as_ref().expect("a table");
        turns.add(name, |query| drop(black_box(table.top_k(vectors.query(query), K).expect("rows"))));
    }
    #[cfg(feature = "peers")]
    if let Some(usearch) = &usearch {
        turns.add("usearch, exact", |query| drop(black_box(usearch.exact(vectors.query(query), K).expect("rows"))));
        turns.add("usearch, HNSW", |query| drop(black_box(usearch.hnsw(vectors.query(query), K).expect("rows"))));
    }
    turns.run(QUERIES, rounds);

    let recall = |name: &str| -> Option<f64> {
        let found = |query: usize| -> Option<Vec<usize>> {
            let vector = vectors.query(query);
            match name {
                "ours" => Some(IndexedRows::rows(&indexed.search(&all[query])).iter().map(|row| row.0).collect()),
                "sqlite-vec, int8" => {
                    let found = tables[1].1.as_ref().expect("a table").top_k(vector, K).expect("rows");
                    Some(found.into_iter().map(|(row, _)| row).collect())
                }
                #[cfg(feature = "peers")]
                "usearch, HNSW" => usearch.as_ref().map(|usearch| usearch.hnsw(vector, K).expect("rows")),
                _ => None,
            }
        };
        let exact = |query| plain_top_k(vectors.rows(), vectors.query(query), K, |_| true);
        let share = |query: usize| {
            let exact: Vec<usize> = exact(query).into_iter().map(|(row, _)| row).collect();
            Some(overlap(&found(query)?, &exact))
        };
        (0..QUERIES).map(share).sum::<Option<f64>>().map(|sum| sum / QUERIES as f64)
    };
    let kernel = Kernel::best().name();
    println!("\n{count} rows of {} dimensions, k = {K}, kernel {kernel}; medians in turns\n", real.dimensions);
    println!("| | ms a query | times ours | recall |\n| --- | --- | --- | --- |");
    for name in turns.names() {
        let recall = recall(name).map(|recall| format!("{recall:.3}")).unwrap_or_default();
        println!("| {name} | {:.3} | {:.2} | {recall} |", turns.ms(name), turns.ratio("ours", name));
    }
    // For `benches/peers/scan.py`, which prints ratios relative to this.
    let text = format!("{{\"rows\": {count}, \"k\": {K}, \"ms\": {}}}\n", turns.ms("ours"));
    std::fs::write(folder.with_file_name(format!("ours-{count}.json")), text).expect("a file");
}

/// Times the embedding of a query by the bundled model, which is part of a search by text.
fn embedding() {
    let model = ModelName::MiniLm.load(&LoadOptions::default()).expect("the bundled model");
    let mut turns = Turns::new();
    turns.add("embedding", |query| {
        let text = format!("how to keep the garden through a dry summer {query}");
        drop(black_box(model.embed(&[&text], Role::Query).expect("a vector")));
    });
    turns.run(QUERIES, 9);
    println!("\nembedding a query of ten words: {:.2} ms", turns.ms("embedding"));
}
