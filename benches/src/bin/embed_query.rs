//! Loads the bundled model, embeds one query and exits: `embed_query TEXT`. The minimum work of a semantic search.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::process::ExitCode;

use vault_index::{LoadOptions, ModelName, Result, Role};

fn main() -> ExitCode {
    let Some(query) = std::env::args().nth(1) else {
        eprintln!("usage: embed_query TEXT");
        return ExitCode::from(2);
    };
    match embed(&query) {
        Ok(first) => {
            println!("{first}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn embed(query: &str) -> Result<f32> {
    let model = ModelName::default().load(&LoadOptions::default())?;
    Ok(model.embed(&[query], Role::Query)?[0][0])
}
