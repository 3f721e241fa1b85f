//! Writes the rows and queries of the scan bench for `benches/peers/scan.py`: `dump_rows [ROWS]`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::process::ExitCode;

use benches::{ROWS_SEED, RealVectors, data_folder, resample, write_floats};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let Some(rows) = std::env::args().nth(1).map_or(Some(100_000), |text| text.parse().ok()) else {
        eprintln!("usage: dump_rows [ROWS]");
        return ExitCode::from(2);
    };
    match dump(rows) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn dump(rows: usize) -> Result<()> {
    let folder = data_folder()?;
    let real = RealVectors::stored_in(&folder)?;
    let files = [
        (format!("rows-{rows}.f32"), resample(&real.passages, real.dimensions, rows, ROWS_SEED)),
        ("queries.f32".to_owned(), real.queries),
    ];
    for (name, floats) in files {
        let path = folder.join(name);
        write_floats(&path, &floats)?;
        println!("{}: {} vectors of {} dimensions", path.display(), floats.len() / real.dimensions, real.dimensions);
    }
    Ok(())
}
