//! A server of OpenAI's Responses and Chat Completions APIs over any [`Model`](agent_loop::Model).
//!
//! ```text
//! JSON body ──> ApiRequest ──> Request ──> a model (a text-only one inside TextCalls) ──> deltas
//!                  └── what is echoed ──> ResponseEvents <───────────────────────────────┘ ──> SSE, or one object
//! ```
//!
//! [`Proxy`] is the whole server. [`ApiRequest`] and [`ResponseEvents`], and those of [`chat`], are only the
//! conversion: they do no I/O, so you can use them for a server on another HTTP stack.
//!
//! ```no_run
//! # async fn example(model: agent_loop::ScriptedModel) -> std::io::Result<()> {
//! use agent_proxy::{Proxy, ProxyOptions};
//!
//! let listener = Proxy::listen(8080).await?;
//! Proxy::new(ProxyOptions::default()).model("local", model).serve(listener, std::future::pending()).await
//! # }
//! ```
//!
//! Nothing is stored from one request to the next, unless a server has a [`Store`].
//!
//! The order of events is the API's: `response.created`, `response.in_progress`, every item opened at the next free
//! `output_index`, a message closed before a call opens, exactly one terminal event, dense sequence numbers from 0, no
//! `[DONE]`. Several calls of one reply may be open at the same time, and text may arrive while a call is open: a call
//! is closed when it ends.

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
mod error;
mod fields;
mod items;
mod store;
mod request;
mod stop_sequences;
mod events;
pub mod chat;
mod server;

pub use error::ApiError;
pub use events::{ResponseEvents, to_sse};
pub use request::{ApiRequest, Delivery, StrictTools};
pub use server::{
    ConnectionLimits, OnWarning, Proxy, ProxyOptions, Refusal, UnknownModel, check_key, check_origin, serve_router,
};
pub use store::{PendingEntry, Store, StoreLimits};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
