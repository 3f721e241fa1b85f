//! What the crate promises, checked on the shipped model.

mod checksums;
mod tokens;
mod vectors;
