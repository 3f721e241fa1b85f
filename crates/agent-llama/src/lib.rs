//! Models from GGUF files for [`agent_loop`]: in this process, or on the user's own llama-server.
//!
//! ```text
//! FILE.gguf ──> Gguf: its header
//!          ├──> LlamaServer: a separate process, used over Chat Completions
//!          └──> LocalModel: llama.cpp in this process; a call fits its schema, whatever the weights are (feature `local`)
//! ```
//!
//! Both run a model file, and neither replaces the other. A llama-server is installed on many machines, needs no build,
//! and constrains calls to its own interpretation of a schema. `LocalModel` needs a C++ compiler to build, stops at a
//! call that waits for a person, and can move its cache to another process.

#![deny(missing_docs, missing_debug_implementations)]

/// Builder methods, one for each named public field: `Options::default().field(value)`.
macro_rules! setters {
    ($type:ident { $($field:ident: $value:ty),+ $(,)? }) => {
        impl $type {
            $(
                #[doc = concat!("Sets the field `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(mut self, $field: $value) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

// The order of the modules is the order of dependencies: a module uses only modules above it. A test checks it.
mod gguf;
mod llama_server;
#[cfg(feature = "local")]
mod local;

pub use gguf::Gguf;
pub use llama_server::{LlamaServer, LlamaServerOptions};
#[cfg(feature = "local")]
pub use local::{CacheUse, LocalModel, LocalOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
