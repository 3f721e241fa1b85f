//! The stages of indexing and searching, each on its own: parse, chunk, links, sync, search.
//!
//! Words, lengths and links are those of `make_vault`. Searches run on vectors of hashed words, in the same number and
//! length as the model's, because embedding 16,000 passages would take longer than all other benches. The time that the
//! model adds to a search is `search/embed_query`.

use std::cell::LazyCell;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use benches::{LinkPlan, LinkTable, VaultPlan, demo_vault, make_links, make_vault, notes_in};
use criterion::{BatchSize, Criterion, SamplingMode, Throughput};
use tempfile::TempDir;
use vault_index::chunk::{ChunkOptions, TokenCount, chunk};
use vault_index::links::{Graph, Names, Resolver};
use vault_index::note::{Note, ParseOptions, parse};
use vault_index::{
    Embedder, FileId, HashedEmbedder, Index, LoadOptions, Mode, ModelName, Options, Query, Role, SyncOptions, VaultPath,
};

/// The number of notes in the vault.
const NOTES: usize = 5000;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5))
        .sample_size(20)
        .configure_from_args();
    let vault = Vault::new();
    notes(&mut criterion, &vault);
    links(&mut criterion);
    sync(&mut criterion, &vault);
    search(&mut criterion, &vault);
    criterion.final_summary();
}

/// Parses bytes to notes, and splits notes into chunks; each iteration covers all notes of the vault.
fn notes(criterion: &mut Criterion, vault: &Vault) {
    let files = vault.files();
    let parse_all =
        || -> Vec<Note> { files.iter().map(|(path, bytes)| parse(path, bytes, &ParseOptions::default())).collect() };
    let notes = LazyCell::new(parse_all);
    let model = bundled();
    let options = ChunkOptions { max_tokens: model.max_tokens(), ..ChunkOptions::default() };

    let mut group = criterion.benchmark_group("notes");
    group.throughput(Throughput::Bytes(files.iter().map(|(_, bytes)| bytes.len() as u64).sum()));
    group.bench_function("parse", |bencher| bencher.iter_with_large_drop(parse_all));
    group.bench_function("chunk", |bencher| {
        let notes: &[Note] = &notes;
        bencher.iter(|| notes.iter().map(|note| chunk(note, &*model, &options).len()).sum::<usize>());
    });
    group.finish();
}

/// Resolves the links of a large vault, from the list of its files to the graph.
fn links(criterion: &mut Criterion) {
    let table = make_links(&LinkPlan { notes: 46_000, links: 290_000, seed: 1 });
    let path = |text: &String| VaultPath::new(text).expect("a path");
    let files: Vec<(FileId, VaultPath)> =
        table.paths.iter().zip(0..).map(|(text, number)| (FileId(number), path(text))).collect();

    let mut group = criterion.benchmark_group("links");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(table.links.len() as u64));
    group.bench_function("resolve", |bencher| {
        let names = names_of(&files);
        bencher.iter(|| {
            let resolver = Resolver::new(&names);
            let found = table.links.iter().filter(|(source, link)| {
                let source = &files[*source].1;
                resolver.resolve(link, source).target.is_some()
            });
            black_box(found.count())
        });
    });
    group.bench_function("files_to_graph", |bencher| bencher.iter_with_large_drop(|| graph_of(&files, &table)));
    group.finish();
}

fn names_of(files: &[(FileId, VaultPath)]) -> Names {
    let mut names = Names::new();
    for (id, path) in files {
        names.insert(*id, path);
    }
    names
}

fn graph_of(files: &[(FileId, VaultPath)], table: &LinkTable) -> Graph {
    let names = names_of(files);
    let resolver = Resolver::new(&names);
    Graph::new(table.links.iter().filter_map(|(source, link)| {
        let (id, path) = &files[*source];
        Some((*id, resolver.resolve(link, path).target?))
    }))
}

/// Times a first sync, and one that finds nothing to do; without vectors.
fn sync(criterion: &mut Criterion, vault: &Vault) {
    let text_only = || SyncOptions::new().without_vectors();
    let synced = LazyCell::new(|| {
        let index = vault.index("unchanged", None);
        index.sync_with(&text_only()).expect("a sync");
        // Files that are as recent as these are read once more.
        std::thread::sleep(Duration::from_secs(3));
        index.sync_with(&text_only()).expect("a sync");
        index
    });

    let mut group = criterion.benchmark_group("sync");
    group.throughput(Throughput::Elements(NOTES as u64));
    group.bench_function("unchanged", |bencher| {
        let index: &Index = &synced;
        bencher.iter(|| {
            let report = index.sync_with(&text_only()).expect("a sync");
            assert_eq!(report.unchanged, NOTES);
        });
    });
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.bench_function("first_without_vectors", |bencher| {
        let new_index = || {
            let folder = tempfile::tempdir_in(vault.folder.path()).expect("a folder");
            let options = Options::new().index_file(folder.path().join("index.db"));
            // Drop the index before its folder.
            (Index::open(vault.notes(), options).expect("an index"), folder)
        };
        let first = |(index, folder): (Index, TempDir)| {
            let report = index.sync_with(&text_only()).expect("a sync");
            assert_eq!(report.added, NOTES);
            (index, folder)
        };
        bencher.iter_batched(new_index, first, BatchSize::PerIteration);
    });
    group.finish();
}

/// Times warm searches of the vault, and the embedding of a query.
fn search(criterion: &mut Criterion, vault: &Vault) {
    let text = "how to keep the garden through a dry summer";
    let indexed = LazyCell::new(|| {
        let index = vault.index("search", Some(Arc::new(Stretched { bundled: bundled() })));
        let report = index.sync().expect("a sync");
        assert_eq!(report.pending, 0);
        index
    });

    let mut group = criterion.benchmark_group("search");
    for (name, mode) in [("lexical", Mode::Lexical), ("semantic", Mode::Semantic), ("hybrid", Mode::Hybrid)] {
        group.bench_function(name, |bencher| {
            let index: &Index = &indexed;
            let query = Query::literal(text).mode(mode);
            bencher.iter(|| index.search(&query).expect("an answer"));
        });
    }
    group.bench_function("embed_query", |bencher| {
        let model = bundled();
        // The first texts include the time for loading the weights and arranging them in memory.
        let many: Vec<String> = (0..8).map(|n| format!("{text} {n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        model.embed(&many, Role::Query).expect("vectors");
        bencher.iter(|| model.embed(&[black_box(text)], Role::Query).expect("a vector"));
    });
    group.finish();
}

fn bundled() -> Arc<dyn Embedder> {
    ModelName::MiniLm.load(&LoadOptions::default()).expect("the bundled model")
}

/// The vault of all benches except `links`, in a folder that is deleted with it.
struct Vault {
    folder: TempDir,
}

impl Vault {
    fn new() -> Self {
        let vault = Self { folder: tempfile::tempdir().expect("a folder") };
        let plan = VaultPlan { notes: NOTES, bytes: 1500, links: 6, seed: 2 };
        make_vault(&vault.notes(), &demo_vault(), &plan).expect("a vault");
        vault
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn files(&self) -> Vec<(VaultPath, Vec<u8>)> {
        let file = |path: PathBuf| {
            let inside = path.strip_prefix(self.notes()).expect("below the vault");
            (VaultPath::from_disk(inside).expect("a path"), std::fs::read(&path).expect("a note"))
        };
        notes_in(&self.notes()).expect("notes").into_iter().map(file).collect()
    }

    /// Opens an index next to the notes; without an embedder, with the bundled model.
    fn index(&self, name: &str, embedder: Option<Arc<dyn Embedder>>) -> Index {
        let mut options = Options::new().index_file(self.folder.path().join(name).join("index.db"));
        options.embedder = embedder;
        Index::open(self.notes(), options).expect("an index")
    }
}

/// An embedder of hashed words, repeated to the length of the model's vectors. It counts tokens like the model, so that
/// passages are the same.
struct Stretched {
    bundled: Arc<dyn Embedder>,
}

impl TokenCount for Stretched {
    fn count(&self, text: &str) -> usize {
        self.bundled.count(text)
    }
}

impl Embedder for Stretched {
    fn id(&self) -> &str {
        "hashed-stretched"
    }

    fn dimensions(&self) -> usize {
        self.bundled.dimensions()
    }

    fn max_tokens(&self) -> usize {
        self.bundled.max_tokens()
    }

    fn embed(&self, texts: &[&str], role: Role) -> vault_index::Result<Vec<Vec<f32>>> {
        let times = self.dimensions() / HashedEmbedder.dimensions();
        let shrink = 1.0 / (times as f32).sqrt();
        let stretch = |vector: Vec<f32>| -> Vec<f32> { vector.repeat(times).iter().map(|x| x * shrink).collect() };
        Ok(HashedEmbedder.embed(texts, role)?.into_iter().map(stretch).collect())
    }

    fn batch_size(&self) -> usize {
        1024
    }
}
