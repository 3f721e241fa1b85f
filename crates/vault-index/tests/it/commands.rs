//! The commands as a user types them.
