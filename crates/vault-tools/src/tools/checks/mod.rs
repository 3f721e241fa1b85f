//! Checks the vault: links, frontmatter, tags and attachments (`lint`), and conformance to the Open Knowledge Format (`okf`).

mod okf;
pub(super) mod lint;
