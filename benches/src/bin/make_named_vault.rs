//! Generates a vault of notes with common words as names: `make_named_vault FOLDER [NOTES [SEED]]`.

use std::path::Path;
use std::process::ExitCode;

use benches::{demo_vault, make_named_vault};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Some(default), |text| text.parse().ok());
    let (Some(folder), Some(notes), Some(seed)) = (arguments.first(), number(1, 20_000), number(2, 1)) else {
        return fail("usage: make_named_vault FOLDER [NOTES [SEED]]");
    };
    match make_named_vault(Path::new(folder), &demo_vault(), notes, seed as u64) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

#[allow(clippy::print_stderr)]
fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}
