//! An index in PostgreSQL beside the same index in a file, and beside plain SQL of pgvector: `team_server --help`.
//!
//! The vectors are resampled from real ones (`rows.rs`), one for each text, under the name of the bundled model, so that
//! a large vault is filled in minutes. Times are of warm searches for ten passages, in turns.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use benches::{
    ROWS_SEED, RealVectors, Turns, VaultPlan, data_folder, demo_vault, make_texts, make_vault, median, resample,
};
use clap::Parser;
use postgres::types::ToSql;
use vault_index::{
    Embedder, Filter, Grouping, Hits, Index, LoadOptions, Mode, ModelName, Options, Query, Role, Searcher, SyncOptions,
    TokenCount,
};
use vault_postgres::Database;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measures an index in PostgreSQL beside one in a file and plain SQL.
#[derive(Debug, Parser)]
struct Args {
    /// The vault, which is generated if the folder does not exist
    #[arg(long, value_name = "DIR")]
    vault: PathBuf,
    /// Number of notes in a generated vault; each has about eight passages
    #[arg(long, default_value_t = 20_000)]
    notes: usize,
    /// The index file, which is filled if it does not exist, and kept
    #[arg(long, value_name = "FILE")]
    index: PathBuf,
    /// The folder of the server's socket, whose user `postgres` owns the empty database `postgres`
    #[arg(long, value_name = "DIR")]
    socket: PathBuf,
    /// Number of rounds of the turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A vault-search with the feature `postgres`: also cold searches, and their bytes
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
}

const QUERIES: usize = 8;
const K: usize = 10;
/// The tag of one note in thirty of a generated vault.
const TAG: &str = "area/3";
/// How long one number of connections is tried.
const TRIED: Duration = Duration::from_secs(10);

/// The bundled model by its name and its tokens, with a vector for each text that is near a real one.
struct Resampled {
    model: Arc<dyn Embedder>,
    real: RealVectors,
}

impl TokenCount for Resampled {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for Resampled {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn dimensions(&self) -> usize {
        self.real.dimensions
    }

    fn max_tokens(&self) -> usize {
        self.model.max_tokens()
    }

    fn embed(&self, texts: &[&str], _: Role) -> vault_index::Result<Vec<Vec<f32>>> {
        let vector = |text: &&str| {
            let mut hasher = DefaultHasher::new();
            (ROWS_SEED, text).hash(&mut hasher);
            resample(&self.real.passages, self.real.dimensions, 1, hasher.finish())
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn batch_size(&self) -> usize {
        1024
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let real = RealVectors::stored_in(&data_folder()?)?;
    if !args.vault.exists() {
        make_vault(&args.vault, &demo_vault(), &VaultPlan { notes: args.notes, bytes: 4000, links: 6, seed: 2 })?;
    }
    let model = ModelName::MiniLm.load(&LoadOptions::default())?;
    let queries: Vec<Vec<f32>> = real.queries().take(QUERIES).map(<[f32]>::to_vec).collect();
    let of_file = || Options::new().index_file(&args.index);
    let resampled = Arc::new(Resampled { model, real });
    if !args.index.exists() {
        let options = of_file().embedder(Arc::<Resampled>::clone(&resampled));
        let took = timed(|| Index::open(&args.vault, options)?.sync().map(drop))?;
        println!("the file was synced in {took:.0} s");
        let name = rusqlite::Connection::open(&args.index)?;
        name.execute("UPDATE meta SET value = 'minilm' WHERE key = 'model'", [])?;
    }
    let file = Index::open(&args.vault, of_file())?;
    let status = file.status()?;
    println!("{} notes, {} passages; the file: {:.0} MB", status.notes, status.chunks, mb(status.index_bytes));

    let address = format!("host={} user=postgres dbname=postgres", args.socket.display());
    let database: Arc<dyn vault_index::backend::Database> = Arc::new(Database::new(&address)?);
    let shared = || Index::open(&args.vault, Options::new().database(Arc::clone(&database)));
    let took = timed(|| shared()?.copy_from(&file, &SyncOptions::new()).map(drop))?;
    let mut client = postgres::Client::connect(&address, postgres::NoTls)?;
    let analyzed = timed(|| client.batch_execute("VACUUM ANALYZE"))?;
    println!(
        "the database: {:.0} MB, filled from the file in {took:.0} s, {:.0} passages a second; VACUUM ANALYZE {analyzed:.0} s",
        mb(client.query_one("SELECT pg_database_size(current_database())", &[])?.get::<_, i64>(0).cast_unsigned()),
        status.chunks as f64 / took
    );
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS plain; CREATE TABLE plain AS SELECT p.id, e.embedding::vector({}) AS embedding, \
         EXISTS (SELECT FROM vault_search.tag t WHERE t.note = p.note AND t.key = '{TAG}') AS tagged \
         FROM vault_search.passage p JOIN vault_search.embedding e ON e.id = p.vector",
        resampled.dimensions()
    ))?;
    client.batch_execute("VACUUM ANALYZE plain")?;
    // Full-text search of PostgreSQL, in a table of its own, so that a scan of the vectors reads no words.
    let took = timed(|| {
        client.batch_execute(
            "DROP TABLE IF EXISTS plain_words; CREATE TABLE plain_words AS SELECT id, \
             to_tsvector('english', text) AS words FROM vault_search.passage_text; \
             CREATE INDEX ON plain_words USING gin(words)",
        )
    })?;
    client.batch_execute("VACUUM ANALYZE plain_words")?;
    let words_size: i64 = client.query_one("SELECT pg_total_relation_size('plain_words')", &[])?.get(0);
    println!("a table of ids and words alone: {:.0} MB, made in {took:.0} s", mb(words_size.cast_unsigned()));
    let plain_size: i64 = client.query_one("SELECT pg_total_relation_size('plain')", &[])?.get(0);
    println!("a table of ids and vectors alone: {:.0} MB", mb(plain_size.cast_unsigned()));

    let texts = make_texts(&demo_vault(), QUERIES, 5, |text| text.len() >= 30)?;
    compare(&file, &shared()?, client, &*resampled.model, &queries, &texts, args.rounds)?;
    at_once(&shared, &texts)?;
    if let Some(program) = &args.program {
        cold(program, &args, &texts)?;
    }
    Ok(())
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The seconds that an action takes.
fn timed<E>(act: impl FnOnce() -> std::result::Result<(), E>) -> std::result::Result<f64, E> {
    let started = Instant::now();
    act()?;
    Ok(started.elapsed().as_secs_f64())
}

fn query(query: Query, tag: Option<&str>) -> Query {
    let filter = tag.map_or_else(Filter::default, |tag| Filter::default().tag(tag).expect("a tag"));
    query.limit(K).grouping(Grouping::Passages).min_score(0.0).filter(filter)
}

/// Prints the times of searches in the file, in the database, and of plain SQL, after it has compared their answers.
fn compare(
    file: &Index,
    shared: &Index,
    client: postgres::Client,
    model: &dyn Embedder,
    vectors: &[Vec<f32>],
    texts: &[String],
    rounds: usize,
) -> Result<()> {
    let (file, shared, client) = (file.searcher()?, shared.searcher()?, Mutex::new(client));
    let by_vector = &|n: usize, tag| query(Query::from_vector(vectors[n].clone()), tag);
    let by_text = &|n: usize, mode| query(Query::literal(&texts[n]).mode(mode), None);
    let rows = &|sql: &str, texts: &[&(dyn ToSql + Sync)]| -> Vec<(i64, f64)> {
        let rows = client.lock().expect("no panic").query(sql, texts).expect("rows");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let distance = |vector: &[f32]| {
        let vector = vector.iter().map(f32::to_string).collect::<Vec<_>>().join(",");
        format!("embedding <#> '[{vector}]'")
    };
    let plain = &|n: usize, filter: &str| -> Vec<f64> {
        let distance = distance(&vectors[n]);
        let sql = format!("SELECT id, -({distance}) FROM plain {filter} ORDER BY {distance} LIMIT {K}");
        rows(&sql, &[]).into_iter().map(|(_, score)| score).collect()
    };
    let plain_words = &|n: usize| {
        let sql = format!("SELECT id, rank::float8 FROM ({}) words", by_any_word(K));
        rows(&sql, &[&texts[n]]).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    // Reciprocal rank fusion, which the README of pgvector names for this.
    let plain_hybrid = &|n: usize| {
        let distance = distance(&model.embed(&[&texts[n]], Role::Query).expect("a vector")[0]);
        let meaning = format!("SELECT id FROM plain ORDER BY {distance} LIMIT 20");
        let ranks = |best: &str| format!("SELECT id, row_number() OVER () AS place FROM ({best}) best");
        let sql = format!(
            "SELECT id, sum(1.0 / (60 + place))::float8 FROM ({} UNION ALL {}) ranks GROUP BY id ORDER BY 2 DESC LIMIT {K}",
            ranks(&meaning),
            ranks(&by_any_word(20))
        );
        rows(&sql, &[&texts[n]]).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let mut shared_by_plain = 0;
    for n in 0..QUERIES {
        let scores = |hits: Hits| hits.results.iter().map(|hit| hit.score).collect::<Vec<f32>>();
        for query in [by_vector(n, None), by_vector(n, Some(TAG)), by_text(n, Mode::Lexical), by_text(n, Mode::Hybrid)]
        {
            let (one, other) = (scores(file.search(&query)?), scores(shared.search(&query)?));
            assert_eq!(one, other, "the database answers what the file answers: {query:?}");
        }
        let hits = file.search(&by_vector(n, None))?.results;
        let cosines: Vec<f64> = hits.iter().filter_map(|hit| hit.why.semantic.map(f64::from)).collect();
        shared_by_plain += plain(n, "").iter().filter(|b| cosines.iter().any(|a| (a - *b).abs() < 1e-5)).count();
    }
    // The others have a share of their file's title in their score.
    println!("{shared_by_plain} of the {} cosines that plain SQL finds are those of our hits", QUERIES * K);
    let mut turns = Turns::new();
    let search = |searcher: &Searcher, query: &Query| drop(black_box(searcher.search(query).expect("hits")));
    let filtered = "by meaning, a filter that 3 % pass";
    for (place, searcher) in [("file", &file), ("database", &shared)] {
        turns.add(&format!("{place}, by meaning"), move |n| search(searcher, &by_vector(n, None)));
        turns.add(&format!("{place}, {filtered}"), move |n| search(searcher, &by_vector(n, Some(TAG))));
        turns.add(&format!("{place}, by words"), move |n| search(searcher, &by_text(n, Mode::Lexical)));
        turns.add(&format!("{place}, hybrid"), move |n| search(searcher, &by_text(n, Mode::Hybrid)));
    }
    turns.add("plain SQL, by meaning", move |n| drop(black_box(plain(n, ""))));
    turns.add(&format!("plain SQL, {filtered}"), move |n| drop(black_box(plain(n, "WHERE tagged"))));
    turns.add("plain SQL, by words", move |n| drop(black_box(plain_words(n))));
    turns.add("plain SQL, hybrid", move |n| drop(black_box(plain_hybrid(n))));
    turns.run(QUERIES, rounds);
    for name in turns.names() {
        println!("{:10.2} ms  {name}", turns.ms(name));
    }
    Ok(())
}

/// The passages with any of the words of the first parameter, the best first.
fn by_any_word(k: usize) -> String {
    format!(
        "SELECT id, ts_rank_cd(words, query) AS rank FROM plain_words, \
         LATERAL (SELECT replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery AS query) any_word \
         WHERE words @@ query ORDER BY rank DESC LIMIT {k}"
    )
}

/// Prints the searches a second of 1 to 8 programs, each with a connection of its own.
fn at_once(open: &(impl Fn() -> vault_index::Result<Index> + Sync), texts: &[String]) -> Result<()> {
    for programs in [1, 2, 4, 8] {
        let searchers = (0..programs).map(|_| open()?.searcher()).collect::<vault_index::Result<Vec<Searcher>>>()?;
        let (is_over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let searching = |searcher: &Searcher, first: usize| {
            for n in first.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                searcher.search(&query(Query::literal(&texts[n % texts.len()]), None)).expect("hits");
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let took = std::thread::scope(|scope| {
            let started = Instant::now();
            searchers
                .iter()
                .enumerate()
                .for_each(|(first, searcher)| _ = scope.spawn(move || searching(searcher, first)));
            std::thread::sleep(TRIED);
            is_over.store(true, Ordering::Relaxed);
            started.elapsed().as_secs_f64()
        });
        println!("{:10.2} hybrid searches a second over {programs} connections", done.into_inner() as f64 / took);
    }
    Ok(())
}

/// Prints the time and the bytes of searches by a program that starts for each.
fn cold(program: &Path, args: &Args, texts: &[String]) -> Result<()> {
    let (listener, bytes) = (TcpListener::bind("127.0.0.1:0")?, Arc::new(AtomicU64::new(0)));
    let address = format!("postgres://postgres@{}/postgres?sslmode=disable", listener.local_addr()?);
    let (socket, counted) = (args.socket.join(".s.PGSQL.5432"), Arc::clone(&bytes));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(std::result::Result::ok) {
            relay(&client, &UnixStream::connect(&socket).expect("the server"), &counted).expect("two streams");
        }
    });
    let mut times = Vec::new();
    for text in texts {
        let mut command = Command::new(program);
        command.args(["--json", "--index", &address, "--vault"]).arg(&args.vault).arg(text);
        times.push(timed(|| {
            match command.output()?.status.success() {
                true => Ok(()),
                false => Err(format!("{command:?} failed")),
            }
            .map_err(Box::<dyn Error + Send + Sync>::from)
        })?);
    }
    let each = bytes.load(Ordering::Relaxed) as f64 / texts.len() as f64 / 1000.0;
    println!("{:10.2} ms, {each:.0} kB: a cold vault-search", median(&times) * 1000.0);
    Ok(())
}

/// Copies what both sides say to the other, and counts its bytes.
fn relay(client: &TcpStream, server: &UnixStream, bytes: &Arc<AtomicU64>) -> std::io::Result<()> {
    let copy = |mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>, end: Box<dyn FnOnce() + Send>| {
        let bytes = Arc::clone(bytes);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                bytes.fetch_add(read as u64, Ordering::Relaxed);
                if to.write_all(&buffer[..read]).is_err() {
                    break;
                }
            }
            end();
        });
    };
    let (to_client, to_server) = (client.try_clone()?, server.try_clone()?);
    copy(
        Box::new(client.try_clone()?),
        Box::new(server.try_clone()?),
        Box::new(move || _ = to_server.shutdown(Shutdown::Write)),
    );
    copy(
        Box::new(server.try_clone()?),
        Box::new(client.try_clone()?),
        Box::new(move || _ = to_client.shutdown(Shutdown::Write)),
    );
    Ok(())
}
