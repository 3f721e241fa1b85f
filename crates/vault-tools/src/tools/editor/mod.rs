//! The editor around the vault: its selection and cursor (`selection`), its open files (`workspace`) and its commands
//! (`commands`).

pub(super) mod selection;
pub(super) mod workspace;
pub(super) mod commands;
