//! The exact top k of many rows, by us and by the peers in the same run, and how near it comes to reading memory.
//!
//! Rows are resampled from real embeddings, which are made once and kept; queries are real ones. 1,000 to 100,000 rows;
//! 1,000,000 too with `BENCH_LARGE=1`. usearch takes part with `--features peers`.
//!
//! Criterion times each by itself. The summary at the end is a race: all take turns, and what counts is the median of
//! the ratios within a round. It comes with every run that chooses no other benches, and alone with `-- summary`.

#![allow(clippy::print_stdout, reason = "a program that reports")]

use std::cell::{LazyCell, OnceCell};
use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Duration;

#[cfg(feature = "peers")]
use benches::peers::Usearch;
use benches::peers::{Element, SqliteVec, overlap, plain_top_k};
use benches::{ROWS_SEED, Race, RealVectors, kept_folder, read_bandwidth, resample};
use criterion::{Criterion, SamplingMode, Throughput};
use vault_index::vectors::{Bitmap, Codes, QueryCodes, Threads, Wanted, rescore, top_k, top_k_many};

/// Rows of the bars, but for that of the bandwidth.
const ROWS: usize = 100_000;
/// Rows of the bar of the bandwidth: more than any cache holds.
const LARGE: usize = 1_000_000;
/// Queries that look at the rows together, and that a round of the race is of.
const TOGETHER: usize = 16;
/// A buffer that no cache holds.
const MEMORY: usize = 1 << 30;
const ONE: Threads = Threads::One;
const TWO: Threads = Threads::Exactly(NonZeroUsize::new(2).unwrap());

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(700))
        .sample_size(10)
        .nresamples(10_000)
        .configure_from_args();
    let real = LazyCell::new(|| {
        let folder = kept_folder().expect("a folder to keep vectors in");
        RealVectors::kept(&folder).expect("real vectors")
    });
    let is_large = std::env::var("BENCH_LARGE").is_ok_and(|value| value == "1");
    for count in [1_000, 10_000, ROWS, LARGE] {
        if count == LARGE && !is_large {
            continue;
        }
        let data = LazyCell::new(|| Data::new(&real, count));
        ours(&mut criterion, count, &data);
        peers(&mut criterion, count, &data);
        if wants_summary() && count >= ROWS {
            summary(&data);
        }
    }
    criterion.final_summary();
}

/// Whether no other benches were chosen.
fn wants_summary() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chosen = arguments.iter().find(|argument| !argument.starts_with('-'));
    arguments.iter().any(|argument| argument == "--bench") && chosen.is_none_or(|chosen| chosen == "summary")
}

/// Rows, what was made of them, and queries.
struct Data {
    dimensions: usize,
    rows: Vec<f32>,
    codes: Codes,
    queries: Vec<Vec<f32>>,
    /// One row in ten, and one in a hundred.
    tenth: Bitmap,
    hundredth: Bitmap,
    sqlite_f32: OnceCell<SqliteVec>,
    sqlite_int8: OnceCell<SqliteVec>,
    #[cfg(feature = "peers")]
    usearch: OnceCell<Usearch>,
}

impl Data {
    fn new(real: &RealVectors, count: usize) -> Self {
        let dimensions = real.dimensions;
        let rows = resample(&real.passages, dimensions, count, ROWS_SEED);
        let mut codes = Codes::new(dimensions);
        codes.reserve(count);
        for (slot, row) in rows.chunks_exact(dimensions).enumerate() {
            codes.set(slot, row).expect("a row of unit length");
        }
        // A multiplicative hash, so that the rows that pass lie anywhere.
        let hash = |slot: usize| (slot as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let one_in = |n: u64| -> Bitmap { (0..count).filter(|&slot| hash(slot).is_multiple_of(n)).collect() };
        Self {
            dimensions,
            codes,
            queries: real.queries().map(<[f32]>::to_vec).collect(),
            tenth: one_in(10),
            hundredth: one_in(100),
            rows,
            sqlite_f32: OnceCell::new(),
            sqlite_int8: OnceCell::new(),
            #[cfg(feature = "peers")]
            usearch: OnceCell::new(),
        }
    }

    fn count(&self) -> usize {
        self.rows.len() / self.dimensions
    }

    /// One byte a dimension: what a scan would read that left nothing out.
    fn code_bytes(&self) -> usize {
        self.rows.len()
    }

    fn query(&self, number: usize) -> &[f32] {
        &self.queries[number % self.queries.len()]
    }

    fn row(&self, slot: usize) -> &[f32] {
        &self.rows[slot * self.dimensions..][..self.dimensions]
    }

    /// What is measured: from a query's vector to slots and exact scores.
    fn ours(&self, number: usize, k: usize, filter: Option<&Bitmap>, threads: Threads) -> Vec<(usize, f32)> {
        let query = self.query(number);
        let wanted = Wanted { query: &QueryCodes::new(query).expect("a query"), k, filter };
        top_k(&self.codes, wanted, threads, |slot| Ok(rescore(query, self.row(slot)))).expect("rows")
    }

    /// Many queries at once.
    fn together(&self, k: usize, threads: Threads) -> Vec<Vec<(usize, f32)>> {
        let queries: Vec<&[f32]> = (0..TOGETHER).map(|number| self.query(number)).collect();
        let codes: Vec<QueryCodes> = queries.iter().map(|query| QueryCodes::new(query).expect("a query")).collect();
        let wanted: Vec<Wanted<'_>> = codes.iter().map(|query| Wanted { query, k, filter: None }).collect();
        let exact = |query: usize, slot| Ok(rescore(queries[query], self.row(slot)));
        top_k_many(&self.codes, &wanted, threads, exact).expect("rows")
    }

    fn sqlite(&self, element: Element) -> &SqliteVec {
        let cell = if element == Element::F32 { &self.sqlite_f32 } else { &self.sqlite_int8 };
        cell.get_or_init(|| SqliteVec::new(&self.rows, self.dimensions, element).expect("a table"))
    }

    #[cfg(feature = "peers")]
    fn usearch(&self) -> &Usearch {
        self.usearch.get_or_init(|| Usearch::new(&self.rows, self.dimensions, 2).expect("an index"))
    }
}

fn ours(criterion: &mut Criterion, count: usize, data: &LazyCell<Data, impl FnOnce() -> Data>) {
    let mut group = criterion.benchmark_group(format!("scan_{count}"));
    group.throughput(Throughput::Elements(count as u64));
    for k in [10, 100] {
        for percent in [100, 10, 1] {
            for (name, threads) in [("one_thread", ONE), ("two_threads", TWO)] {
                group.bench_function(format!("ours_k{k}_filter{percent}_{name}"), |bencher| {
                    let data: &Data = data;
                    let filter = [(10, &data.tenth), (1, &data.hundredth)].into_iter().find(|(p, _)| *p == percent);
                    let filter = filter.map(|(_, filter)| filter);
                    let mut number = 0;
                    bencher.iter(|| {
                        number += 1;
                        data.ours(number, k, filter, threads)
                    });
                });
            }
        }
    }
    group.throughput(Throughput::Elements((count * TOGETHER) as u64));
    group.bench_function(format!("ours_k10_{TOGETHER}_queries_together_one_thread"), |bencher| {
        let data: &Data = data;
        bencher.iter(|| data.together(10, ONE));
    });
    group.finish();
}

fn peers(criterion: &mut Criterion, count: usize, data: &LazyCell<Data, impl FnOnce() -> Data>) {
    let mut group = criterion.benchmark_group(format!("peers_{count}"));
    group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(count as u64));
    for k in [10, 100] {
        for (name, element) in [("f32", Element::F32), ("int8", Element::Int8)] {
            group.bench_function(format!("sqlite_vec_{name}_k{k}"), |bencher| {
                let data: &Data = data;
                let (table, mut number) = (data.sqlite(element), 0);
                bencher.iter(|| {
                    number += 1;
                    table.top_k(data.query(number), k).expect("rows")
                });
            });
        }
        group.bench_function(format!("plain_f32_k{k}"), |bencher| {
            let data: &Data = data;
            let mut number = 0;
            bencher.iter(|| {
                number += 1;
                plain_top_k(&data.rows, data.query(number), k, None)
            });
        });
        #[cfg(feature = "peers")]
        if count <= ROWS {
            type Find = fn(&Usearch, &[f32], usize) -> Result<Vec<usize>, String>;
            for (name, find) in [("exact", Usearch::exact as Find), ("hnsw", Usearch::hnsw as Find)] {
                group.bench_function(format!("usearch_{name}_k{k}"), |bencher| {
                    let data: &Data = data;
                    let (index, mut number) = (data.usearch(), 0);
                    bencher.iter(|| {
                        number += 1;
                        find(index, data.query(number), k).expect("rows")
                    });
                });
            }
        }
    }
    group.finish();
}

/// The bars, each as measured in one race.
fn summary(data: &Data) {
    let rounds = if data.count() == LARGE { 2 } else { 5 };
    let mut race = Race::new();
    race.enter("ours", |query| drop(black_box(data.ours(query, 10, None, ONE))));
    race.enter("two threads", |query| drop(black_box(data.ours(query, 10, None, TWO))));
    race.enter("10 %", |query| drop(black_box(data.ours(query, 10, Some(&data.tenth), ONE))));
    race.enter("1 %", |query| drop(black_box(data.ours(query, 10, Some(&data.hundredth), ONE))));
    race.enter("together", |query| {
        if query == 0 {
            drop(black_box(data.together(10, ONE)));
        }
    });
    race.enter("plain f32 loop", |query| drop(black_box(plain_top_k(&data.rows, data.query(query), 10, None))));
    for (name, element) in [("sqlite-vec f32", Element::F32), ("sqlite-vec int8", Element::Int8)] {
        let table = data.sqlite(element);
        race.enter(name, move |query| drop(black_box(table.top_k(data.query(query), 10).expect("rows"))));
    }
    #[cfg(feature = "peers")]
    if data.count() <= ROWS {
        let index = data.usearch();
        race.enter("usearch exact", move |query| drop(black_box(index.exact(data.query(query), 10).expect("rows"))));
        race.enter("usearch HNSW", move |query| drop(black_box(index.hnsw(data.query(query), 10).expect("rows"))));
    }
    race.run(TOGETHER, rounds);
    let bandwidth = read_bandwidth(data.code_bytes(), 1);
    let memory = read_bandwidth(MEMORY, 1);
    print_race(data, &race);
    print_bandwidth(data, race.ms("ours"), bandwidth, memory);
    println!();
    keep_ours(data, race.ms("ours"));
}

fn print_race(data: &Data, race: &Race<'_>) {
    println!(
        "\n{} rows of {} dimensions, k = 10, one thread, kernel {}; medians in turns\n",
        data.count(),
        data.dimensions,
        data.codes.kernel().name()
    );
    println!("| | ms a query | times ours | recall@10 | bar |\n| --- | --- | --- | --- | --- |");
    for name in race.names() {
        // The bars are of 100,000 rows.
        let bar = match name {
            _ if data.count() != ROWS => "",
            "sqlite-vec f32" => "at least 30, aim 45",
            "usearch exact" => "at least 5",
            "1 %" => "at most 0.10",
            _ => "",
        };
        let title = match name {
            "two threads" => "ours, two threads".to_owned(),
            "10 %" | "1 %" => format!("ours, a filter that keeps {name}"),
            "together" => format!("ours, {TOGETHER} queries at once, each"),
            other => other.to_owned(),
        };
        let recall = recall(data, name).map(|recall| format!("{recall:.3}")).unwrap_or_default();
        println!("| {title} | {:.3} | {:.2} | {recall} | {bar} |", race.ms(name), race.ratio("ours", name));
    }
    #[cfg(feature = "peers")]
    if data.count() <= ROWS {
        println!("\nusearch's kernels: {}", data.usearch().acceleration());
    }
    #[cfg(not(feature = "peers"))]
    println!("\nusearch: run with `--features peers`");
    println!("faiss and numpy on these rows: benches/peers/scan.py");
}

/// Of those that may miss rows: the share of the exact ten that they find.
fn recall(data: &Data, name: &str) -> Option<f64> {
    let find = |number: usize| -> Option<Vec<usize>> {
        let query = data.query(number);
        match name {
            "sqlite-vec int8" => {
                let found = data.sqlite(Element::Int8).top_k(query, 10).expect("rows");
                Some(found.into_iter().map(|(slot, _)| slot).collect())
            }
            #[cfg(feature = "peers")]
            "usearch HNSW" => Some(data.usearch().hnsw(query, 10).expect("rows")),
            _ => None,
        }
    };
    let mut sum = 0.0;
    for number in 0..data.queries.len() {
        let found = find(number)?;
        let exact: Vec<usize> = data.ours(number, 10, None, ONE).into_iter().map(|(slot, _)| slot).collect();
        sum += overlap(&found, &exact);
    }
    Some(sum / data.queries.len() as f64)
}

/// The bytes of all codes in the time of a query, beside what reading them would take.
fn print_bandwidth(data: &Data, ms: f64, as_large: f64, memory: f64) {
    let bytes = data.code_bytes() as f64;
    let speed = bytes / (ms / 1000.0);
    let giga = |speed: f64| speed / 1e9;
    println!("\n| read, one thread | GB/s | share of it that the scan reaches | bar |\n| --- | --- | --- | --- |");
    println!("| the scan, counting all bytes of the codes | {:.1} | | |", giga(speed));
    let as_large_share = 100.0 * speed / as_large;
    println!(
        "| a buffer as large as the codes, {:.0} MB | {:.1} | {as_large_share:.0} % | |",
        bytes / 1e6,
        giga(as_large)
    );
    let bar = if data.count() == LARGE { "at least 60 %" } else { "" };
    println!("| memory: a buffer of 1 GiB | {:.1} | {:.0} % | {bar} |", giga(memory), 100.0 * speed / memory);
    if data.count() != LARGE {
        println!("\nThe bar of the bandwidth is of 1,000,000 rows: BENCH_LARGE=1");
    }
}

/// For the script that measures faiss: it prints ratios to this.
fn keep_ours(data: &Data, ms: f64) {
    let text = format!("{{\"rows\": {}, \"k\": 10, \"threads\": 1, \"ms\": {ms}}}\n", data.count());
    let file = kept_folder().expect("a folder").join(format!("ours-{}.json", data.count()));
    fs::write(file, text).expect("a file");
}
