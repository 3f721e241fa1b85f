//! What the crate promises as a whole, checked from outside.

// Tests set their stage with what the library itself may not use.
#![allow(clippy::disallowed_methods)]

mod bulk;
mod denied;
mod frontmatter;
mod leave_out;
mod library;
mod macros;
mod names_and_pages;
mod plain_folders;
mod plan_loops;
mod plan_property_tests;
mod plans;
mod plans_live;
mod real_vaults;
mod renames;
mod shipped_macros;
mod tokens;
mod tools;
mod vault;
