//! The server side of OpenAI's Responses API over any [`Model`](crate::Model): a request body in, events out.
//!
//! ```text
//! JSON body ──> ApiRequest ──> Request ──> a model (a text-only one inside TextCalls) ──> deltas
//!                  └── what is echoed ──> ResponseEvents <───────────────────────────────┘ ──> SSE, or one object
//! ```
//!
//! Nothing is kept from one request to the next, unless a server has a [`Store`].
//!
//! Nothing here does I/O: a server reads the body, writes the events and ends the connection. The order of events is
//! the API's: `response.created`, `response.in_progress`, every item opened at the next free `output_index`, a message
//! closed before a call opens, exactly one terminal event, dense sequence numbers from 0, no `[DONE]`. Calls of one
//! reply may be open side by side, and text may come while a call is open: a call is closed when it ends.

mod error;
mod fields;
mod items;
mod store;
mod request;
mod stop;
mod events;
pub mod chat;
#[cfg(feature = "proxy")]
mod server;

pub use error::ApiError;
pub use events::{ResponseEvents, to_sse};
pub use request::{ApiRequest, Delivery, StrictTools};
#[cfg(feature = "proxy")]
pub use server::{OnWarning, Proxy, ProxyOptions, UnknownModel};
pub use store::{Keep, Store, StoreLimits};

/// What other servers need too. No part of the API: it may change in any release.
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod internal {
    pub use super::server::{Limits, Refusal, check_key, check_origin, serve_router};
}
