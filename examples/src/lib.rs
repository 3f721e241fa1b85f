//! Programs to copy from: each file beside `Cargo.toml` is one. `cargo run -p examples --example search_a_folder`

/// The code in the workspace's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadMe;
