//! Who points at whom: which file a link leads to, and the graph of all links. Pure; it never reads a file.
//!
//! [`Names`] knows every file of the vault by its name, [`Resolver`] answers where a link leads,
//! [`Graph`] is what comes out. The rules of resolution are page one of `resolve.rs`.

mod graph;
mod names;
mod resolve;
mod subpath;
#[cfg(test)]
mod tests;

pub use graph::{Direction, Graph, Step};
pub use names::{Names, keys_leading_to, link_key, unresolved_key};
pub use resolve::{Resolution, Resolver, Rule, ranked, resolve};
pub(crate) use subpath::slug;
pub use subpath::{block_at, heading_at, slug_at};
