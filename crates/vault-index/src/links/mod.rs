//! The resolution of links to files, and the graph of all links. Pure: it never reads a file.
//!
//! [`Names`] has the name of every file of the vault, [`Resolver`] finds the target of a link, and [`Graph`] is the
//! result. The rules of resolution are at the top of `resolve.rs`.

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
