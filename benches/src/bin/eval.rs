//! Measures whether the right note is found: `eval --help`.

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

/// Measures whether the right note is found, through the real pipeline and searcher.
///
/// A folder is a collection in BEIR's layout (corpus.jsonl, queries.jsonl, qrels.tsv): each document becomes a note,
/// each query is taken literally. It prints nDCG@10, recall@100, MRR@10 and the time of each mode, and beside them the
/// reciprocal rank fusion (k = 60) of the lexical and the semantic list.
#[derive(Debug, Parser)]
struct Args {
    /// Collections; vaults with --known-item
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// How passages are ranked
    #[arg(long, value_enum, default_value_t = Modes::All)]
    mode: Modes,
    /// One JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Keep notes and indexes here, so that the next run embeds nothing; by default they go when all is done
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Write what became of each query: tab-separated, the first ten as a JSON array
    #[arg(long, value_name = "FILE")]
    per_query: Option<PathBuf>,
    /// Ask only the first N queries of each folder
    #[arg(long, value_name = "N")]
    limit_queries: Option<usize>,
    /// Folders are vaults: the words of a link are asked for, the note it leads to is the answer, and the notes that
    /// hold the link are left out
    #[arg(long, conflicts_with = "passages")]
    known_item: bool,
    /// Folders are vaults: their notes are asked for by their names, by the beginnings of names, and by names with a
    /// slip; words and hybrid, unless --mode says which
    #[arg(long, conflicts_with_all = ["passages", "known_item"])]
    names: bool,
    /// Folders are vaults: phrases and identifiers that one note has, or two, are asked for without quotes; words and
    /// hybrid, unless --mode says which
    #[arg(long, conflicts_with_all = ["passages", "known_item", "names"])]
    phrases: bool,
    /// The queries are asked while only a share of the passages has a vector
    #[arg(long, conflicts_with_all = ["passages", "known_item", "names", "phrases"])]
    shares: bool,
    /// Documents become sections of long notes; a passage must show the lines of the right section
    #[arg(long)]
    passages: bool,
    /// Sections of a long note
    #[arg(long, value_name = "N", default_value_t = 8, requires = "passages")]
    sections: usize,
    /// Which documents share a long note
    #[arg(long, value_name = "N", default_value_t = 1, requires = "passages")]
    seed: u64,
    /// The embedding model
    #[arg(long, value_name = "NAME")]
    model: Option<ModelName>,
}

/// What --mode takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Modes {
    /// By words only
    Lexical,
    /// By meaning only
    Semantic,
    /// By both: the default of a search
    Hybrid,
    /// Each of them
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
    // Lives until all is done.
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

/// What came of one folder.
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

/// Folders by their names, each a different one: indexes and rows go by them.
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
