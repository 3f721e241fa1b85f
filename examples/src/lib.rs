//! Programs to copy from: each file beside `Cargo.toml` is one. `cargo run -p examples --example search_a_folder`
