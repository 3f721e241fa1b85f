//! Evaluates the quality of search: `eval --help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use benches::eval::{
    Collection, PassagePlan, Plan, QueryRow, Result, ask_with_shares, find_known_items, find_names, find_passages,
    find_phrases, retrieve, rows_as_text,
};
use clap::{Parser, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use vault_index::{Mode, ModelName};

/// Evaluates the quality of search with the real pipeline and searcher.
///
/// A folder is a collection in BEIR's layout (corpus.jsonl, queries.jsonl, qrels.tsv). Each document becomes a note,
/// and each query is searched literally. Prints nDCG@10, recall@100, MRR@10 and the time of each mode, and for
/// comparison of the reciprocal rank fusion (k = 60) of the lexical and the semantic list.
#[derive(Debug, Parser)]
struct Args {
    /// Collections; with --known-item, --names or --phrases, vaults
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The ranking mode
    #[arg(long, value_enum, default_value_t = Modes::All)]
    mode: Modes,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Keep notes and indexes here, so that the next run embeds nothing; by default they are deleted at the end
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Write the result of each query: tab-separated, with the first ten hits as a JSON array
    #[arg(long, value_name = "FILE")]
    per_query: Option<PathBuf>,
    /// Run only the first N queries of each folder
    #[arg(long, value_name = "N")]
    limit_queries: Option<usize>,
    /// Known-item search in vaults: the words of a link are the query, the note it leads to is the answer, and the
    /// notes that contain the link are left out
    #[arg(long, conflicts_with = "passages")]
    known_item: bool,
    /// Search in vaults by names of notes, by prefixes of names, and by names with a typo; lexical and hybrid, unless
    /// --mode is given
    #[arg(long, conflicts_with_all = ["passages", "known_item"])]
    names: bool,
    /// Search in vaults, without quotes, by phrases and identifiers that are in one or two notes; lexical and hybrid,
    /// unless --mode is given
    #[arg(long, conflicts_with_all = ["passages", "known_item", "names"])]
    phrases: bool,
    /// Run the queries while only a share of the passages has a vector
    #[arg(long, conflicts_with_all = ["passages", "known_item", "names", "phrases"])]
    shares: bool,
    /// Make documents sections of long notes; a passage must have lines of the right section
    #[arg(long)]
    passages: bool,
    /// Number of sections in a long note
    #[arg(long, value_name = "N", default_value_t = 8, requires = "passages")]
    sections: usize,
    /// Seed for the distribution of documents to long notes
    #[arg(long, value_name = "N", default_value_t = 1, requires = "passages")]
    seed: u64,
    /// The embedding model
    #[arg(long, value_name = "NAME")]
    model: Option<ModelName>,
}

/// The values of --mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Modes {
    /// Rank by words
    Lexical,
    /// Rank by meaning
    Semantic,
    /// Rank by both: the default of a search
    Hybrid,
    /// Evaluate each mode
    All,
}

impl Modes {
    fn list(self) -> Vec<Mode> {
        match self {
            Self::Lexical => vec![Mode::Lexical],
            Self::Semantic => vec![Mode::Semantic],
            Self::Hybrid => vec![Mode::Hybrid],
            Self::All => Plan::default().modes,
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let plan =
        Plan { model: args.model.clone(), modes: args.mode.list(), queries: args.limit_queries.unwrap_or(usize::MAX) };
    let folders = named(&args.folders)?;
    // The folder must exist until the end.
    let temporary = tempfile::tempdir()?;
    let keep = args.index_dir.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    let (mut reports, mut rows) = (Vec::new(), Vec::new());
    for (name, folder) in &folders {
        eprintln!("{name}: indexing, if there is something to index, and searching …");
        let new = measure(args, &plan, name, folder, &keep)?;
        if !args.json {
            println!("{}", new.table);
        }
        reports.push(new.json);
        rows.extend(new.rows);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json!({ "task": task(args), "reports": reports }))?);
    }
    if let Some(file) = &args.per_query {
        fs::write(file, rows_as_text(&rows)).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// The report on one folder.
struct Outcome {
    table: String,
    json: Value,
    rows: Vec<QueryRow>,
}

impl Outcome {
    fn of((report, rows): (impl Display + Serialize, Vec<QueryRow>)) -> Result<Self> {
        Ok(Self { table: report.to_string(), json: serde_json::to_value(&report)?, rows })
    }
}

fn measure(args: &Args, plan: &Plan, name: &str, folder: &Path, keep: &Path) -> Result<Outcome> {
    let place = keep.join(task(args)).join(name);
    if args.names || args.phrases {
        let mut plan = plan.clone();
        plan.modes.retain(|mode| *mode != Mode::Semantic);
        let index_file = place.join("index.db");
        return match args.names {
            true => Outcome::of((find_names(name, folder, &index_file, &plan)?, Vec::new())),
            false => Outcome::of((find_phrases(name, folder, &index_file, &plan)?, Vec::new())),
        };
    }
    if args.known_item {
        return Outcome::of(find_known_items(name, folder, &place.join("index.db"), plan)?);
    }
    let collection = Collection::read(folder)?;
    fs::create_dir_all(&place)?;
    if args.shares {
        return Outcome::of((ask_with_shares(&collection, &place, plan)?, Vec::new()));
    }
    if args.passages {
        let notes = PassagePlan { sections: args.sections, seed: args.seed };
        return Outcome::of(find_passages(&collection, &place, plan, notes)?);
    }
    Outcome::of(retrieve(&collection, &place, plan)?)
}

fn task(args: &Args) -> &'static str {
    match args {
        Args { known_item: true, .. } => "known-item",
        Args { names: true, .. } => "names",
        Args { phrases: true, .. } => "phrases",
        Args { shares: true, .. } => "shares",
        Args { passages: true, .. } => "passages",
        _ => "retrieval",
    }
}

/// Returns the folders by their names, which must be distinct because they identify indexes and rows.
fn named(folders: &[PathBuf]) -> Result<Vec<(String, PathBuf)>> {
    let mut seen = HashSet::new();
    let mut named = Vec::new();
    for folder in folders {
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !seen.insert(name.clone()) {
            return Err(format!("two folders are called {name}").into());
        }
        named.push((name, folder));
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_make_sense() {
        Args::command().debug_assert();
        let args = Args::try_parse_from(["eval", "a", "b", "--passages", "--sections", "4", "--mode", "hybrid"]);
        let args = args.unwrap();
        assert_eq!((task(&args), args.sections, args.mode.list()), ("passages", 4, vec![Mode::Hybrid]));
        assert!(Args::try_parse_from(["eval"]).is_err());
        assert!(Args::try_parse_from(["eval", "a", "--passages", "--known-item"]).is_err());
    }
}
