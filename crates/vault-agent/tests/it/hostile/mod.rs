//! Notes are untrusted. A model that obeys every word of them changes nothing without a person's yes, learns nothing of
//! a denied folder, and cannot forge what the person is shown.
#![cfg(unix)]

mod notes;
mod model;

mod agent;
mod acp;
mod mcp;
