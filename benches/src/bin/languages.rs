//! Searches notes in four languages by questions in the same language and in English: `languages --help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use clap::Parser;
use serde_json::Value;
use vault_index::{Index, Mode, ModelName, Options, Query};

/// Searches notes in German, Spanish, Russian and Japanese by questions in the same language and in English.
///
/// Each language is a vault of sixteen short notes, and a question shares few words with its answer. Prints how many of
/// the sixteen questions have their note first, and in how many it is among the first ten.
#[derive(Debug, Parser)]
struct Args {
    /// The models, for example `minilm` or `dir:FOLDER`
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<ModelName>,
}

const SUBJECTS: &str = include_str!("../../data/languages.json");
const LANGUAGES: [&str; 4] = ["de", "es", "ru", "ja"];

/// A note, and the questions that it answers: in its language and in English.
struct Subject {
    file: String,
    questions: [String; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    println!("| model | mode | questions in | {} |", LANGUAGES.join(" | "));
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (number, model) in args.models.iter().enumerate() {
        let mut rows: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        // Words alone are the same with each model.
        let modes: &[Mode] =
            if number == 0 { &[Mode::Lexical, Mode::Semantic, Mode::Hybrid] } else { &[Mode::Semantic, Mode::Hybrid] };
        for language in LANGUAGES {
            let folder = tempfile::tempdir()?;
            let subjects = write_notes(&folder.path().join("vault"), language)?;
            let options = Options::new().index_file(folder.path().join("index.db")).model(model.clone());
            let index = Index::open(folder.path().join("vault"), options)?;
            index.sync()?;
            for (mode_at, mode) in modes.iter().enumerate() {
                for asked in 0..2 {
                    let (first, ten) = found(&index, &subjects, asked, *mode)?;
                    rows.entry((mode_at, asked)).or_default().push(format!("{first} ({ten})"));
                }
            }
        }
        for ((mode_at, asked), cells) in rows {
            let asked = if asked == 0 { "the same language" } else { "English" };
            println!("| {model} | {:?} | {asked} | {} |", modes[mode_at], cells.join(" | "));
        }
    }
    Ok(())
}

fn write_notes(vault: &Path, language: &str) -> Result<Vec<Subject>, Box<dyn Error>> {
    std::fs::create_dir_all(vault)?;
    let subjects: Vec<Value> = serde_json::from_str(SUBJECTS)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let subject = |subject: &Value| -> std::io::Result<Subject> {
        let [title, body, question] = [0, 1, 2].map(|at| text(&subject[language][at]));
        let file = format!("{title}.md");
        std::fs::write(vault.join(&file), body)?;
        Ok(Subject { file, questions: [question, text(&subject["en"])] })
    };
    Ok(subjects.iter().map(subject).collect::<Result<_, _>>()?)
}

/// How many questions have their note first, and how many among the first ten results.
fn found(index: &Index, subjects: &[Subject], asked: usize, mode: Mode) -> Result<(usize, usize), Box<dyn Error>> {
    let (mut first, mut ten) = (0, 0);
    for subject in subjects {
        let hits = index.search(&Query::literal(&subject.questions[asked]).mode(mode).limit(10))?;
        let place = hits.results.iter().position(|hit| hit.path.as_str() == subject.file);
        first += usize::from(place == Some(0));
        ten += usize::from(place.is_some());
    }
    Ok((first, ten))
}
