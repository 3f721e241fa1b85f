//! Generates a synthetic vault: `make_vault FOLDER [NOTES [BYTES [LINKS [SEED]]]]`.

use std::path::Path;
use std::process::ExitCode;

use benches::{VaultPlan, demo_vault, make_vault};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Some(default), |text| text.parse().ok());
    let (Some(folder), Some(notes), Some(bytes), Some(links), Some(seed)) =
        (arguments.first(), number(1, 5000), number(2, 1500), number(3, 6), number(4, 1))
    else {
        return fail("usage: make_vault FOLDER [NOTES [BYTES [LINKS [SEED]]]]");
    };
    let plan = VaultPlan { notes, bytes, links, seed: seed as u64 };
    match make_vault(Path::new(folder), &demo_vault(), &plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

#[allow(clippy::print_stderr)]
fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}
